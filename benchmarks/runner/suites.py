"""The suites and their tables: which module makes each, and which command runs it.

A table is a module whose ``main`` takes a ``Plan``; the first line of its docstring is what ``--help`` says of it.
"""

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"

BENCH = "bench"  # run by `python -m benchmarks bench`, beside peers
OTHERS = "others"  # run by `python -m benchmarks others`
NAMED = "named"  # run where it is named, as it takes long or changes what is committed
COMMAND = "command"  # a command with options of its own: ``main`` takes its arguments and returns the exit status
STAGE = "stage"  # of a GPU, run by ``cuda.stages``
MARKS = {BENCH: " ", OTHERS: " ", NAMED: "*", COMMAND: ">", STAGE: ">"}  # in the list of ``--help``


class Table(NamedTuple):
    """The module of a table, and what runs it."""

    module: str
    kind: str = OTHERS


SPEED = {
    "engine": Table("speed.engine", BENCH),
    "one_chain": Table("speed.one_chain", BENCH),
    "tiers": Table("speed.tiers", NAMED),
    "first_draw": Table("speed.first_draw", BENCH),
    "scaling": Table("speed.scaling", BENCH),
    "memory": Table("speed.memory", BENCH),
    "targets": Table("speed.targets"),
    "user_targets": Table("speed.user_targets"),
    "accumulators": Table("speed.accumulators"),
    "storage": Table("speed.storage"),
    "checkpoint": Table("speed.checkpoint"),
    "large_runs": Table("speed.large_runs"),
    "sweeps": Table("speed.sweeps"),
}
QUALITY = {
    "samplers": Table("quality.comparison", BENCH),
    "tuned": Table("quality.tuned", BENCH),
    "contour_rounds": Table("quality.contour_rounds"),
    "search": Table("quality.search", COMMAND),
}
LEARNING = {
    "networks": Table("learning.networks", BENCH),
    "bandit": Table("learning.bandit", COMMAND),
    "full_data": Table("learning.full_data", COMMAND),
}
IDENTIFICATION = {
    "gradients": Table("identification.gradients", BENCH),
    "fits": Table("identification.fits", BENCH),
    "weak_form": Table("identification.weak_form"),
    "field": Table("identification.field", NAMED),
    "lorenz_grid": Table("identification.lorenz_grid", NAMED),
    "bimodal": Table("identification.bimodal"),
    "stiff": Table("identification.stiff"),
}
CUDA = {
    "floors": Table("cuda.floors", STAGE),
    "equality": Table("cuda.equality", STAGE),
    "speed": Table("cuda.speed", STAGE),
    "registers": Table("cuda.registers", STAGE),
    "cold": Table("cuda.cold", STAGE),
    "jax": Table("cuda.jax_stage", STAGE),
    "sanitizer": Table("cuda.sanitizer", STAGE),
    "counters": Table("cuda.counters", STAGE),
    "ptx": Table("cuda.ptx", NAMED),
}
EVIDENCE = {
    "laws": Table("evidence.laws"),
    "truth": Table("evidence.truth"),
    "domains": Table("evidence.domains"),
    "diagnostics": Table("evidence.diagnostics"),
    "calibration": Table("evidence.calibration"),
    "verify": Table("evidence.verify"),
    "float32": Table("evidence.float32"),
    "table5_readings": Table("evidence.table5_readings", NAMED),
    "examination": Table("evidence.examination.__main__", COMMAND),
    "golden": Table("evidence.golden", COMMAND),
    "cluster": Table("evidence.cluster", NAMED),
    "held_chains": Table("evidence.held_chains"),
    "referee": Table("evidence.referee.__main__", COMMAND),
    "layout": Table("evidence.layout_counts", COMMAND),
}
SUITES = {
    "speed": SPEED, "quality": QUALITY, "learning": LEARNING, "identification": IDENTIFICATION,
    "evidence": EVIDENCE, "cuda": CUDA,
}  # fmt: skip


def file_of(module: str) -> Path:
    """The file of a module of the benchmarks."""
    path = FOLDER.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def first_line(module: str) -> str:
    """The first line of a module's docstring, read without an import."""
    return (ast.get_docstring(ast.parse(file_of(module).read_text(encoding="utf-8"))) or "").partition("\n")[0]


def listing() -> str:
    """Every suite and table, a line each."""
    lines = []
    for suite, tables in SUITES.items():
        lines.append(f"\n{suite}: {first_line(suite)}")
        lines += [f"{MARKS[table.kind]} {name:<14} {first_line(table.module)}" for name, table in tables.items()]
    return "\n".join(lines).strip()
