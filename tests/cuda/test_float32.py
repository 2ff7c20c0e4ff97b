"""``dtype="float32"``: its functions, that every part has a twin, laws, and what it refuses."""

import inspect
import re
from types import FunctionType

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs the cuda extra")

from benchmarks.evidence.float32 import (
    FUNCTIONS,
    SAMPLERS,
    error_of,
    every_float32,
    in_float32,
    starts,
    twins_on_this_processor,
)
from benchmarks.evidence.laws import NORMAL
from sysid.function_constraints import beyond_of
from sysid.likelihoods.trajectory_kernel import forbid
from targets import catalogue, mixtures
from tests.support.laws import deviation, variance_deviation
from toolkit import CheckpointError, Target, sample, samplers
from toolkit._compiler.code_walk import codes_in
from toolkit._engine.cuda import float32
from toolkit._engine.job import make_job
from toolkit._engine.loop import advance
from toolkit._engine.metropolis_step import propose, propose_by_contour
from toolkit._engine.run_options import RunOptions
from toolkit._output.storage.description import TEMPERINGS, describe_call, differences
from toolkit.dynamics.preconditioned import move_preconditioned
from toolkit.maths.philox import to_uniform
from toolkit.maths.special import angle
from toolkit.tempering.interface import no_tempering

SIGMAS = 4.5  # a right law fails with probability 7e-6
# Largest errors on all float32, in ulp, or absolute in units of 2⁻²⁴, rounded up.
BOUNDS = {
    "exp": 1.1, "exp_share": 1.1, "log": 0.95, "expm1": 1.65, "log1p": 1.5, "sinh": 2.7, "cosh": 1.6, "tanh": 2.6,
    "asinh": 3.0, "acosh": 3.0, "atanh": 2.6, "atan": 2.1, "asin": 2.9, "acos": 2.6, "sin": 1.6, "cos": 1.6,
    "sincos_turns, sine": 1.9,
}  # fmt: skip
QUICK = ("exp", "log", "sincos_turns, sine")
CASES = [pytest.param(f, id=f.name, marks=[pytest.mark.slow] * (f.name not in QUICK)) for f in FUNCTIONS]


def job_of(problem, sampler, **options):
    return make_job(problem, sampler, RunOptions(n_steps=10, seed=0, n_chains=2, threads=1, **options))


@pytest.mark.parametrize("function", CASES)
def test_functions_are_right_on_all_float32(function):
    arguments = every_float32(9973 if function.name in QUICK else 499)
    assert error_of(function, arguments) <= BOUNDS[function.name]


def test_a_wrong_function_is_seen():
    log = next(f for f in FUNCTIONS if f.name == "log")
    assert error_of(log._replace(exact=lambda x: np.log(x) * (1 + 2.0**-22)), every_float32(9973)) > 2.0
    assert error_of(log._replace(exact=lambda x: np.log(np.abs(x))), every_float32(9973)) == np.inf


def test_uniforms_are_never_0_or_1_and_follow_the_bits():
    uniform = float32.twin(to_uniform)
    bits = [0, 1 << 32, 1 << 40, 1 << 63, 2**64 - 1]
    found = [uniform(np.uint64(b)) for b in bits]
    assert all(type(u) is float or u.dtype == np.float32 for u in found)
    assert found[0] == 2.0**-32
    assert found[-1] == 1.0 - 2.0**-24
    assert found == sorted(found)
    words = np.random.default_rng(0).integers(0, 2**64, 4000, dtype=np.uint64)
    assert max(abs(uniform(w) - w / 2.0**64) for w in words) < 2.0**-25


def test_every_part_has_a_twin_and_a_constant_beyond_float32_is_named():
    for target in catalogue():
        if not target.stochastic:
            float32.twin(target.energy_gradient)
    for sampler in (samplers.sgld(1e-3), samplers.psgld(1e-3), samplers.sghmc(1e-3), samplers.sgnht(1e-3),
                    samplers.svgd(1e-3), samplers.hmc(0.1)):  # fmt: skip
        float32.twin(sampler.dynamics.move)
    steps = [kind.step.fget(None) for kind in TEMPERINGS]
    for part in (no_tempering, *steps, propose, propose_by_contour, advance):
        float32.twin(part)

    def tiny(position, energy, gradient, parameters, scratch):
        energy[0] = 1e-60

    with pytest.raises(float32.PrecisionError, match=r"dtype must be 'float64' for .*tiny.*1e-60"):
        float32.twin(tiny)


STAND_INS = [(name, number) for name, numbers in float32.FLOAT32_NUMBERS.items() for number in numbers]
ELSEWHERE = {"sysid.forbid": forbid.py_func, "sysid.beyond_of": beyond_of}  # not imported by the toolkit


@pytest.mark.parametrize(("name", "number"), STAND_INS)
def test_what_stands_in_for_a_constant_is_another_float32(name, number):
    if number in (1e300, 1e-300):
        with pytest.raises(float32.PrecisionError):
            float32.to_single(number, "part")
    found = float32.to_single(number, "part", float32.FLOAT32_NUMBERS[name])
    assert np.isfinite(found)
    assert found != 0.0
    with np.errstate(over="ignore"):
        assert found != np.float32(number)


@pytest.mark.parametrize("name", [name for name in float32.FLOAT32_NUMBERS if not name.startswith("toolkit.")])
def test_functions_of_other_packages_with_stand_ins_are_there(name):
    outer = inspect.unwrap(ELSEWHERE[name.partition(".<locals>")[0]])
    (code,) = [code for code in codes_in(outer.__code__) if f"sysid.{code.co_qualname}" == name]
    inner = FunctionType(code.replace(co_freevars=()), outer.__globals__)
    assert float32.FLOAT32_NUMBERS[name].keys() <= float32.numbers_read(inner)


@pytest.mark.parametrize("function", [angle, move_preconditioned])
def test_a_number_that_needs_a_stand_in_is_not_overlooked(function, monkeypatch):
    """Of our functions: π's low part as a float32 would pass, and make arcs worse without a word."""
    function = getattr(function, "py_func", function)
    name = f"toolkit.{function.__name__}"
    monkeypatch.setitem(float32.FLOAT32_NUMBERS, name, {0.25: 0.5})
    with pytest.raises(LookupError, match=name):
        float32.replacements_of(function)
    monkeypatch.delitem(float32.FLOAT32_NUMBERS, name)
    with pytest.raises(LookupError, match=name):
        float32.replacements_of(function)


def test_float32_is_refused_where_it_cannot_be(monkeypatch):
    monkeypatch.setattr("toolkit._engine.job.check_backend", lambda backend, problem: None)
    huge = Target("huge", 1, NORMAL.energy_gradient, np.array([1e200]))
    options = {"n_steps": 2, "seed": 0, "backend": "cuda", "dtype": "float32"}
    with pytest.raises(ValueError, match=r"parameters of 'huge'.*1e\+200"):
        sample(huge, samplers.sgld(0.1), **options)
    with pytest.raises(ValueError, match="drift correction"):
        sample(NORMAL, samplers.psgld(0.1), **options)
    with pytest.raises(ValueError, match="step sizes: no float32 can hold 1e-60"):
        sample(NORMAL, samplers.sgld(1e-60), **options)


def test_a_saved_run_says_its_precision_and_not_its_backend():
    with twins_on_this_processor():
        asked = [
            describe_call(job_of(NORMAL, samplers.sgld(0.1), backend=backend, dtype=dtype), "sample")
            for backend, dtype in (("cpu", "float64"), ("cuda", "float64"), ("cuda", "float32"))
        ]
    assert differences(asked[0], asked[1]) == []
    assert len(differences(asked[1], asked[2])) == 1
    assert "float32" in differences(asked[1], asked[2])[0]


@pytest.mark.slow
def test_sgld_has_its_law_and_a_checkpoint_knows_its_precision(tmp_path):
    h = 0.5
    run = in_float32(NORMAL, samplers.sgld(h), n_steps=40, burn_in=39, n_chains=100_000, seed=1)
    draws = run.draws.ravel()
    assert run.draws.dtype == np.float64
    assert np.array_equal(draws, draws.astype(np.float32))
    assert variance_deviation(draws, 1.0 / (1.0 - h / 2.0)) < SIGMAS
    assert variance_deviation(draws, 1.0) > SIGMAS
    saved = {"n_steps": 4, "n_chains": 2, "seed": 1, "checkpoint": tmp_path / "run"}
    first = in_float32(NORMAL, samplers.sgld(h), **saved)
    longer = in_float32(NORMAL, samplers.sgld(h), **{**saved, "n_steps": 9})
    whole = in_float32(NORMAL, samplers.sgld(h), n_steps=9, n_chains=2, seed=1)
    assert np.array_equal(longer.draws[:, :4], first.draws)
    assert np.array_equal(longer.draws, whole.draws)
    with pytest.raises(CheckpointError, match=r"dtype.*float32.*float64"):
        sample(NORMAL, samplers.sgld(h), **saved)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_keep_the_law_they_have_in_float64(name):
    problem, sampler = SAMPLERS[name]
    options = {"n_steps": 1500, "burn_in": 500, "thin": 5, "n_chains": 1000, "seed": 4, "init": starts(problem, 1000)}
    ours, theirs = in_float32(problem, sampler, **options), sample(problem, sampler, **options)
    squares = [(run.weights * run.draws[..., 0] ** 2).sum(axis=1) / run.weights.sum(axis=1) for run in (ours, theirs)]
    assert deviation(squares[0] - squares[1], 0.0) < SIGMAS
    assert deviation(squares[0], 1.2 * squares[1].mean()) > SIGMAS
    if name == "r2SGLD in the flower":
        assert problem.contains(ours.draws.reshape(-1, 2)).all()
        assert ours.reflections.sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [samplers.sgld(1e-3), samplers.sgnht(1e-3), samplers.mala(5e-3)])
def test_kernels_have_no_arithmetic_in_float64_but_a_schedules(sampler):
    """A schedule's factors are float64: step size and temperature are rounded once, where these change."""
    from toolkit._engine.cuda import compiling
    from toolkit._engine.cuda.inspection import chain_ptx

    with twins_on_this_processor():
        job = job_of(mixtures.cosine25(), sampler, backend="cuda", dtype="float32")
    double = re.compile(r"\b(?:add|sub|mul|div|fma|sqrt|min|max|setp\.\w+)(?:\.\w+)*\.f64\b")
    ptx = chain_ptx(job, (9, 0))
    assert not compiling.contracts(ptx)
    assert len(re.findall(r"\bfma\.rn\.f32\b", ptx)) > 30
    assert double.findall(ptx) == ["mul.rn.f64"] * 2
    assert len(double.findall(chain_ptx(job, (9, 0), np.float64))) > 30
