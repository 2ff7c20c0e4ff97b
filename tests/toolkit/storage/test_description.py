"""Descriptions: every number of every part is in them, they survive JSON bit for bit, and samplers come back equal."""

import dataclasses
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from tests.support.saving_cases import NAMED, own_move
from toolkit import Problem, Sampler, Target, boundaries, dynamics, sample, samplers, schedules, tempering
from toolkit._compiler.disk_cache import environment
from toolkit._output.storage.description import describe, differences, from_json, rebuild_sampler, to_json
from toolkit.errors import UnavailableError

ROOT = Path(__file__).resolve().parents[3]
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
BALLS = constrained(NORMAL, shapes.flower(petals=5, offset=3.0, radius=2.0))
SCHEDULES = {
    "constant": schedules.constant(),
    "exponential_decay": schedules.exponential_decay(0.99, start=3, every=2),
    "polynomial_decay": schedules.polynomial_decay(0.55, offset=1.5, start=2),
    "cosine_cycles": schedules.cosine_cycles(4, exploration=0.3, floor=0.1),
    "custom": schedules.custom(np.linspace(1.0, 0.3, 40), temperature=np.ones(40), keep=np.arange(40) % 3 == 0),
}
EVERY = {**NAMED, **{f"sgld × {name}": samplers.sgld(0.1, schedule=s) for name, s in SCHEDULES.items()}}


def through_json(description):
    """A description written out and read again, arrays by name."""
    text, arrays = to_json(description)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return from_json(text, {name: array.copy() for name, array in arrays.items()})


def test_hmc_of_files_from_before_random_lengths_has_fixed_ones():
    """They name no random_length; nor does what has a fixed length today, so that such a run is resumed."""
    fixed, free = samplers.hmc(0.1, n_leapfrogs=4, random_length=False), samplers.hmc(0.1, n_leapfrogs=4)
    there = describe(NORMAL, fixed)["sampler"]
    assert "random_length" not in there["dynamics"]
    assert rebuild_sampler(there) == fixed != free
    assert rebuild_sampler(describe(NORMAL, free)["sampler"]) == free
    there["dynamics"]["random_length"] = 1
    with pytest.raises((TypeError, ValueError), match="random_length must be True or False, got 1"):
        rebuild_sampler(there)


def test_every_constructor_is_here():
    assert set(NAMED) == set(samplers.__all__) - {"Sampler"}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", EVERY)
def test_a_sampler_comes_back_equal_and_with_the_same_bits(name):
    sampler = EVERY[name]
    back = rebuild_sampler(through_json(describe(BALLS, sampler))["sampler"])
    assert back == sampler
    assert not differences(describe(BALLS, sampler), describe(BALLS, back))
    many = sampler.tempering is not None and isinstance(sampler.tempering, tempering.Stein)
    init = np.arange(2 * 3 * 2).reshape(2, 3, 2) / 20 if many else None
    arguments = {"n_steps": 40, "burn_in": 12, "n_chains": 2, "seed": 2, "init": init}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit._output.execution.warn_about", lambda *_, **__: None)  # runs too short for θ
        runs = [sample(BALLS, s, **arguments) for s in (sampler, back)]
    np.testing.assert_array_equal(runs[0].replica_draws, runs[1].replica_draws)
    np.testing.assert_array_equal(runs[0].steps, runs[1].steps)


def leaves(value, path=""):
    """Path and value of every number, string, None and array of a description."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def with_other(value, wanted, path=""):
    """A copy of a description in which the leaf ``wanted`` is another."""
    if isinstance(value, dict):
        return {k: with_other(v, wanted, f"{path}.{k}" if path else k) for k, v in value.items()}
    if isinstance(value, list):
        return [with_other(v, wanted, f"{path}[{i}]") for i, v in enumerate(value)]
    if path != wanted:
        return value
    if isinstance(value, np.ndarray):
        other = value.copy()
        other.flat[-1] = not other.flat[-1] if value.dtype == bool else other.flat[-1] + 1
        return other
    if isinstance(value, bool):
        return not value
    return math.nextafter(value, math.inf) if isinstance(value, float) else f"another than {value}"


@pytest.mark.parametrize("name", EVERY)
def test_a_change_anywhere_is_named_by_its_path_and_no_other(name):
    saved = describe(BALLS, EVERY[name])
    paths = [path for path, value in leaves(saved) if not (isinstance(value, np.ndarray) and value.size == 0)]
    assert len(paths) > 30
    for path in paths:
        found = differences(saved, with_other(saved, path))
        function = re.match(r"(.*)\.(code)\.", path)
        if path.endswith(".type"):
            assert [line.partition(": ")[0] for line in found] == [path.removesuffix(".type")], (path, found)
        elif function:
            assert len(found) == 1, found
            assert found[0].startswith(f"{function[1]}: other code of "), found
        elif path.endswith(".python"):
            assert found == [f"{path.removesuffix('.python')}: compiled by Python {sys.version_info.major}."
                             f"{sys.version_info.minor} there, another than {sys.version_info.major}."
                             f"{sys.version_info.minor} here"]  # fmt: skip
        else:
            assert len(found) == 1, found
            assert re.split(r": |\[\d+(, \d+)*\]: ", found[0])[0] in (path, path.rpartition("[")[0]), (path, found)


def changed_samplers():
    """Each sampler beside one in which one field of one part is another, by the path where it must show."""
    exchange, contour = NAMED["r2sgld"], NAMED["icsgld"]
    re_sets = {
        "correction": 0.5, "swap_every": 2, "swap_threshold": 0.1, "scheme": "seo", "window": 2,
        "one_swap_per_window": True,
    }  # fmt: skip
    for field, value in re_sets.items():
        yield f"tempering.{field}", exchange, {"tempering": dataclasses.replace(exchange.tempering, **{field: value})}
    part = contour.tempering
    for field, value in {"zeta": 0.1, "field": "theta_zeta", "interpolated": False, "freezes": True}.items():
        yield f"tempering.{field}", contour, {"tempering": dataclasses.replace(part, **{field: value})}
    for field, value in {"u_min": -1.0, "width": 0.1, "n_bins": 7}.items():
        other = dataclasses.replace(part, partition=dataclasses.replace(part.partition, **{field: value}))
        yield f"tempering.partition.{field}", contour, {"tempering": other}
    for field, value in {"gain": 1.5, "exponent": 0.7, "offset": 7.0, "cap": 0.5}.items():
        other = dataclasses.replace(part, decay=dataclasses.replace(part.decay, **{field: value}))
        yield f"tempering.decay.{field}", contour, {"tempering": other}
    coupled = NAMED["tact_hmc"]
    numbers = {
        "top_temperature": 1.5, "plateau": 0.11, "step_size": 0.02, "friction": 0.01, "inertia": 2.5, "bias": "none",
        "n_bins": 9, "height": 0.3, "thermostat": False, "resample_every": 99,
    }  # fmt: skip
    for field, value in numbers.items():
        yield f"tempering.{field}", coupled, {"tempering": dataclasses.replace(coupled.tempering, **{field: value})}
    plain = NAMED["sgld"]
    yield "step_sizes[0]", plain, {"step_sizes": (0.2,)}
    yield "temperatures[0]", plain, {"temperatures": (1.0000000000000002,)}
    yield "gradient_noise", plain, {"gradient_noise": 0.4}
    yield "energy_noise", exchange, {"energy_noise": 0.4}
    yield "name", plain, {"name": "other"}
    yield "boundary.max_bounces", exchange, {"boundary": boundaries.reflect(max_bounces=7)}
    yield "tempering.bandwidth", NAMED["svgd"], {"tempering": tempering.stein(bandwidth=2.0)}
    for name, arguments in {
        "exponential_decay": {"rate": 0.98, "start": 4, "every": 3},
        "polynomial_decay": {"exponent": 0.6, "offset": 1.6, "start": 5},
        "cosine_cycles": {"n_cycles": 5, "exploration": 0.4, "floor": 0.2},
    }.items():
        old = SCHEDULES[name].made_by[1]
        for field, value in arguments.items():
            other = getattr(schedules, name)(**{**old, field: value})
            yield f"schedule.{field}", EVERY[f"sgld × {name}"], {"schedule": other}


CHANGES = list(changed_samplers())


@pytest.mark.parametrize(("path", "sampler", "change"), CHANGES, ids=[f"{s.name}-{p}" for p, s, _ in CHANGES])
def test_a_changed_field_of_a_part_is_named(path, sampler, change):
    other = dataclasses.replace(sampler, **change)
    found = differences(describe(BALLS, sampler), describe(BALLS, other))
    assert [line.partition(":")[0] for line in found] == [f"sampler.{path}"], found
    assert other != sampler


def test_dynamics_differ_by_their_numbers():
    one, other = (describe(BALLS, samplers.sghmc(0.01, friction=f))["sampler"] for f in (0.3, 0.4))
    assert all(line.startswith("dynamics.parameters[0]: 0.3 there, 0.4") for line in differences(one, other))


def test_words_of_a_difference():
    one, other = (describe(NORMAL, samplers.sgld(h)) for h in (0.01, 0.02))
    assert differences(one, other) == ["sampler.step_sizes[0]: 0.01 there, 0.02 here"]
    other = describe(BALLS, samplers.sgld(0.01))
    assert differences(one, other) == ["problem.domain: None there, flower here"]
    arrays = [{"a": np.array([[1.0, np.nan], [3.0, 4.0]])}, {"a": np.array([[1.0, np.nan], [3.5, 5.0]])}]
    assert differences(*arrays) == ["a[1, 0]: 3.0 there, 3.5 here, and 1 further entries"]
    assert differences({"a": np.zeros(3)}, {"a": np.zeros((3, 1))}) == ["a: shape (3,) there, (3, 1) here"]
    assert differences({"a": 1}, {"b": 1}) == ["a: 1 there, nothing here", "b: nothing there, 1 here"]
    assert differences({"a": True}, {"a": 1}) == ["a: True there, 1 here"]
    assert not differences({"a": math.nan}, {"a": math.nan})


def test_json_keeps_every_bit():
    rng = np.random.default_rng(0)
    numbers = [
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        0.1,
        2**64 - 1,
        -(2**70),
        *rng.standard_normal(100).tolist(),
        True,
        None,
    ]
    back = through_json({"numbers": numbers, "nan": math.nan, "unicode": "Δ ∇ é", "array": rng.random((2, 3))})
    assert math.isnan(back["nan"])
    assert [repr(value) for value in back["numbers"]] == [repr(value) for value in numbers]
    assert back["unicode"] == "Δ ∇ é"
    assert back["array"].shape == (2, 3)


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a"', '{"a": {"$array": "b"}}', '{"a": {"$float": [1]}}', "[" * 100_000]
)
def test_json_that_is_none_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  it is the kind of exception that counts
        from_json(text, {})


def test_closures_of_ones_own_schedule_and_dynamics_count():
    def with_number(number):
        def factors(steps, total):
            return schedules.Factors(np.full(steps.size, number), np.ones(steps.size), np.ones(steps.size, np.bool_))

        return samplers.sgld(0.1, schedule=schedules.Schedule("mine", factors, keeps_all=True))

    found = differences(*(describe(NORMAL, with_number(number)) for number in (0.5, 0.25)))
    assert len(found) == 1
    assert found[0].startswith("sampler.schedule.factors.values.")
    assert found[0].endswith(".number: 0.5 there, 0.25 here")
    own = [
        samplers.sgld(0.1, schedule=schedules.custom(lambda steps, k=k: k * np.ones(steps.size))) for k in (1.0, 2.0)
    ]
    assert own[0] != own[1]
    assert len(differences(*(describe(NORMAL, s) for s in own))) == 1


@pytest.mark.parametrize(
    "sampler",
    [
        Sampler("mine", (0.1,), dynamics=dynamics.Dynamics("mine", own_move)),
        samplers.sgld(0.1, schedule=schedules.custom(lambda steps: np.ones(steps.size))),
        samplers.sgld(0.1, schedule=schedules.Schedule("mine", schedules.constant().factors)),
    ],
    ids=["dynamics", "custom schedule", "own schedule"],
)
def test_functions_of_ones_own_come_back_as_what_says_that_it_is_missing(sampler):
    back = rebuild_sampler(through_json(describe(NORMAL, sampler))["sampler"])
    assert not differences(describe(NORMAL, sampler), describe(NORMAL, back))
    with pytest.raises(UnavailableError, match="but not its code"):
        sample(NORMAL, back, n_steps=5, seed=1)


def test_known_dynamics_with_other_sizes_are_not_taken_for_known():
    """A file must not make a kernel read beyond its arrays."""
    description = describe(NORMAL, NAMED["sghmc"])["sampler"]
    for field, value in {"parameters": [0.1], "memory": ["a"], "has_momentum": False}.items():
        broken = {**description, "dynamics": {**description["dynamics"], field: value}}
        if field == "memory":
            broken["dynamics"]["memory_start"] = [0.0]
        with pytest.raises((UnavailableError, ValueError)):
            sample(NORMAL, rebuild_sampler(broken), n_steps=5, seed=1)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3}, {"step_sizes": None}, {"step_sizes": [-1.0]}, {"dynamics": {}}, {"dynamics": 3},
        {"schedule": {"type": "os.system"}}, {"schedule": {"type": "constant", "rate": 1}},
        {"tempering": {"type": "eval"}},
        {"tempering": {"type": "Stein", "bandwidth": "a"}}, {"boundary": None}, {"gradient_noise": "1"},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_descriptions_of_samplers_are_refused(change):
    with pytest.raises(ValueError):  # noqa: PT011  whichever check finds it first
        rebuild_sampler({**describe(NORMAL, NAMED["sgld"])["sampler"], **change})


def test_another_python_is_left_out_where_portable():
    saved = describe(NORMAL, NAMED["sgld"])
    there = with_other(saved, "problem.target.energy_gradient.python")
    there["problem"]["target"]["energy_gradient"]["code"] = {"toolkit": "other"}
    assert len(differences(there, saved)) == 1
    assert not differences(there, saved, portable=True)
    same_python = with_other(saved, "problem.target.energy_gradient.code.toolkit")
    assert len(differences(same_python, saved, portable=True)) == 1


@pytest.mark.cases(0)
def test_other_processes_describe_alike():
    program = (
        "import numpy as np\n"
        "from targets import mixtures\n"
        "from toolkit import samplers, target\n"
        "from toolkit._output.storage.description import describe, to_json\n"
        "@target(dim=1)\n"
        "def own(x):\n    return (x[0] if x[0] in {1.0, 2.0, 3.0} else 0.0), (1.0,)\n"
        "for problem in (mixtures.cosine25(), own):\n    print(to_json(describe(problem, samplers.csgld(0.1)))[0])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_stand_in_problem_is_described_as_what_it_stands_for():
    from toolkit.errors import Unavailable

    described = describe(NORMAL, NAMED["sgld"])
    block = Unavailable("target 'x'", described["problem"]["target"]["energy_gradient"])
    stand_in = Problem(Target(NORMAL.name, 2, block, NORMAL.parameters, NORMAL.scratch_rows))
    assert not differences(described, describe(stand_in, NAMED["sgld"]))


def test_the_environment_is_strings():
    found = environment()
    assert {"python", "manymodes", "numpy", "numba", "scipy", "machine", "sources"} <= found.keys()
    assert all(isinstance(value, str) and value for value in found.values())
