"""Hostile headers, with a checksum that fits: unknown types, giant sizes, arrays that are missing or do not fit."""

import json
from pathlib import Path

import numpy as np

from .attack import Attack, run_arrays, write_run

HUGE = 10**400


def header(change, suffix=".npz"):
    """The good file with another header; ``change`` gives it from the good one, as text or as what JSON holds."""

    def build(folder: Path) -> Path:
        text, arrays = run_arrays(folder)
        made = change(json.loads(text))
        return write_run(folder, made if isinstance(made, str) else json.dumps(made), arrays, suffix)

    return build


def at(path, value):
    """A change of one entry, by its keys."""

    def change(nested):
        inner = nested
        *outer, last = path.split("/")
        for key in outer:
            inner = inner[int(key) if isinstance(inner, list) else key]
        if value is None:
            del inner[last]
        else:
            inner[last] = value(inner[last]) if callable(value) else value
        return nested

    return change


def array(name, change):
    """The good file with another array of that name."""

    def build(folder: Path) -> Path:
        text, arrays = run_arrays(folder)
        return write_run(folder, text, {**arrays, name: change(arrays[name])})

    return build


SAMPLER, PROBLEM = "description/sampler", "description/problem"
DEEP = "[" * 100_000 + "]" * 100_000
TEXTS = {
    "deep lists": lambda _: DEEP,
    "deep objects": lambda _: '{"a":' * 100_000,
    "digits": lambda _: f'{{"seed": {"9" * 10**6}}}',
    "nan": lambda _: '{"format": NaN}',
    "a list": lambda _: "[]",
    "a number": lambda _: "3",
    "nothing": lambda _: "",
    "text": lambda _: '"x"',
    "null": lambda _: "null",
    "4 million lists": lambda n: json.dumps(n)[:-1] + ', "x": [' + "[]," * 4_000_000 + "[]]}",
    "30 million lists": lambda n: json.dumps(n)[:-1] + ', "x": [' + "[]," * 30_000_000 + "[]]}",
    "an array in itself": lambda _: '{"$array": "init"}',
    "array of a list": lambda _: '{"a": {"$array": ["init"]}}',
    "array of a dict": lambda _: '{"a": {"$array": {"b": 1}}}',
    "float of text": lambda _: '{"a": {"$float": "x"}}',
    "float of a million digits": lambda _: '{"a": {"$float": "' + "9" * 10**6 + 'x"}}',
    "code of a list": lambda n: {**n, "x": {"function": 1, "code": [], "values": []}},
}
ENTRIES = {
    "format": [2, "1", [1]],
    "seed": [-1, 2**64, HUGE, 1.5, "1", True],
    "n_steps": [HUGE, -1, 10.0, "60", None],
    "total_steps": [-1, 1e300],
    "thin": [0, -3],
    "burn_in": [10**9],
    "gradient_evaluations": [-5, "x"],
    "elapsed": [-1.0, "long", 1e400],
    "counts": [{}, [], None, {"hook": 1}],
    "statistics": [{"walker": 1}, 7],
    "trace": [3, {"steps": 1}],
    "made_with": [1, ["a"]],
    "accumulated": [{"names": ["a"], "results": []}, 5],
    "replica_draws": [[[[[1.0]]]], {"$array": "steps"}, {"$array": "no"}],
    "init": [{"$array": "replica_draws"}, 0.0],
    "steps": [{"$array": "init"}, [1, 2]],
    "description": [None, {}, 5],
    SAMPLER: [{}, None, "sgld"],
    PROBLEM: [{}, None, "box"],
    f"{SAMPLER}/step_sizes": [[], [HUGE], ["0.1"], [-1.0] * 3, [0.1] * 2, [0.1] * 500_000, {"$float": "nan"}, 0.1],
    f"{SAMPLER}/temperatures": [[], [0.0], [1.0] * 500_000, [[1.0]], "1", {"$array": "init"}],
    f"{SAMPLER}/name": [5, ["x"]],
    f"{SAMPLER}/schedule/type": ["os.system", "eval", 5, ["constant"], "__import__"],
    f"{SAMPLER}/schedule": [
        {},
        {"type": "constant", "hook": 1},
        {"type": "cosine_cycles", "n_cycles": HUGE},
        {"type": "exponential_decay", "rate": "x"},
    ],
    f"{SAMPLER}/tempering": [
        {},
        {"type": "os.system"},
        {"type": "Canary"},
        {"type": ["Contour"]},
        {"type": "own tempering"},
        {"type": "Contour", "hook": 1},
        5,
    ],
    f"{SAMPLER}/tempering/partition": [
        {"type": "Partition", "u_min": 0.0, "width": 0.5, "n_bins": n} for n in (HUGE, -1, 0, 1.5, "20", 10**9)
    ],
    f"{SAMPLER}/tempering/decay": [{"type": "Popen", "args": "id"}, {}, 7],
    f"{SAMPLER}/boundary": [{}, {"type": "Popen"}, {"type": "Boundary", "kind": 99}, 5],
    f"{SAMPLER}/dynamics": [{}, None, {"move": {"function": "os.system"}}],
    f"{SAMPLER}/dynamics/leapfrogs": ["x", [1]],
    f"{SAMPLER}/dynamics/move": [None, 5, {}],
    f"{SAMPLER}/dynamics/parameters": [5, None],
    f"{SAMPLER}/dynamics/memory": [7, None],
    f"{PROBLEM}/target/dim": [HUGE, 10**12, 0, -1, 1.5, "2", 3],
    f"{PROBLEM}/target/scratch_rows": [-1, "x", 1.5],
    f"{PROBLEM}/target/parameters": [5, "x", {"$array": "no"}],
    f"{PROBLEM}/target": [{}, None, 5],
    f"{PROBLEM}/domain": [{}, 5, "box"],
    f"{PROBLEM}/domain/dim": [HUGE, -1, 7, "2"],
    f"{PROBLEM}/domain/real": [5, "x", {"$array": "no"}],
}
ARRAYS = {
    "init": lambda a: a[:, :1],
    "replica_draws": lambda a: a[:1],
    "steps": lambda a: a[::-1].copy(),
    "energies": lambda a: a.astype(np.int64),
    "counts.theta": lambda a: a[:, :3],
    "counts.visits": lambda a: a - 10**6,
    "trace.steps": lambda a: a[:2],
    "counts.status": lambda a: a * 0 - 1,
    "replica_weights": lambda a: a * np.nan,
    "trace.theta": lambda a: a[:1],
}


def short(value):
    text = repr(value) if not (isinstance(value, int) and value > 10**30) else "huge"
    return text[:40]


ATTACKS = [
    *(
        Attack("header: JSON", f"{name}{suffix}", header(change, suffix))
        for name, change in TEXTS.items()
        for suffix in (".npz", ".nc", ".zarr")
    ),
    *(
        Attack("header: entries", f"{path}, {number}: {short(value)}", header(at(path, value)))
        for path, values in ENTRIES.items()
        for number, value in enumerate(values)
    ),
    *(Attack("header: arrays", name, array(name, change)) for name, change in ARRAYS.items()),
]
