"""A fused engine: the bits of the general one, whatever the run; all it calls taken in; kept on disk by what it is."""

import os
import re
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from benchmarks.speed.chain_cases import EVERY_SAMPLER
from targets import constrained, mixtures, posteriors, shapes
from toolkit import DivergenceError, Layout, Target, from_callable, sample, samplers, stream, tempering
from toolkit._engine import fused
from toolkit._engine.fused import ARRAY, ITEM, STACK, on_stack, shapes_of
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.settings import compile_time_constants, engine_numbers, parts_of
from toolkit._engine.state import make_blocks
from toolkit.problem.definition import as_problem
from toolkit.verification.bits import Case, arrays_of, first_difference, joined

GENERAL, FUSED = Layout(fused=False), Layout(fused=True)
PIECES = Layout(fused=True, chunk_steps=23)  # what a chunk leaves behind, the next one finds
GRID = mixtures.gaussian_grid25()
FLOWER = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))
NOISY = samplers.csgld(1e-3, energy_noise=0.3, partition=tempering.Partition(-4.0, 0.5, 32))
CASES = EVERY_SAMPLER
KEEPS = {"keep_energies": True, "trace_every": 1}  # as ``case_of``: what tests share is compiled once
QUICK = {
    "sgld, one chain": (GRID, CASES["sgld"], 1),
    "reflected exchange of momenta": (FLOWER, samplers.r2sghmc((5e-4, 1.5e-3)), 3),
    "contour, noisy energies": (GRID, NOISY, 9),
    "trajectories at a tempered energy": (GRID, CASES["hmc, 10 leapfrogs"], 2),
}


def case_of(problem, sampler, chains, steps=90):
    problem = as_problem(problem)
    start = np.random.default_rng(2).uniform(-0.2, 0.2, (chains, sampler.n_replicas, problem.target.dim))
    return Case(problem, sampler, steps, steps // 3, start, 7)


def check_same(case, **changes):
    """Fail with the first number of the fused run that is not the general one's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs this short settle nothing
        expected, got = case.run(), case.run(**{"layout": PIECES} | changes)
    difference = first_difference(arrays_of(expected), arrays_of(got), expected.steps)
    assert difference is None, difference
    assert len(expected.replica_draws) == len(case.init)


@pytest.mark.slow_cases("contour, noisy energies", "trajectories at a tempered energy")
@pytest.mark.parametrize("name", QUICK)
def test_its_bits_are_the_general_engines(name):
    check_same(case_of(*QUICK[name]), threads=2)


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 3, 70])
@pytest.mark.parametrize("name", CASES)
def test_every_constructor(name, chains):
    chains = min(chains, 3) if CASES[name].name == "svgd" else chains
    for problem in (GRID, FLOWER) if CASES[name].boundary.kind != "ignore" else (GRID,):
        check_same(case_of(problem, CASES[name], chains), threads=2)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 3, 64])
def test_dimensions(dim):
    target = mixtures.gaussian_mixture(np.eye(dim)[: min(dim, 2)], 0.5)
    for name in ("sgld", "resgld × 2", "mala"):
        check_same(case_of(target, CASES[name], 5))


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 8, 10**6])
def test_blocks_of_any_width(lanes):
    layout = Layout(fused=True, lanes=lanes, chunk_steps=31)
    check_same(case_of(GRID, CASES["resgld × 5"], 300), layout=layout)


@pytest.mark.slow
def test_minibatches_are_the_same():
    target = posteriors.logistic_regression(
        np.random.default_rng(1).standard_normal((40, 3)), np.arange(40) % 2, batch_size=4
    )
    check_same(case_of(target, samplers.sgld(1e-3, gradient_noise=0.1), 2))


def test_a_stream_and_a_checkpoint_change_engines(tmp_path):
    case = case_of(GRID, CASES["sgld"], 1)
    chunks = list(stream(case.problem, case.sampler, **case.arguments(layout=PIECES)))
    expected = case.run()
    assert first_difference(arrays_of(expected), joined(chunks), expected.steps) is None
    for number, (first, second) in enumerate([(PIECES, GENERAL), (GENERAL, PIECES)]):
        file = {"checkpoint": tmp_path / f"{number}.ckpt"}
        case._replace(n_steps=60).run(layout=first, **file)
        resumed = case.run(layout=second, **file)
        assert first_difference(arrays_of(expected), arrays_of(resumed), expected.steps) is None


def test_what_diverges_is_told_in_the_same_words():
    told = []
    for layout in (GENERAL, FUSED):
        with pytest.raises(DivergenceError) as caught:
            sample(GRID, samplers.sgld(1e3), n_steps=200, n_chains=1, seed=1, layout=layout, **KEEPS)
        told.append(str(caught.value))
    assert told[0] == told[1]


def quartic(points):
    return 0.25 * (points**4).sum(axis=1), points**3


def allocating(position, energy, gradient, parameters, scratch):
    """exp(−|x|²/2) by way of an array made anew, which the engine itself could not make."""
    squares = np.zeros(position.shape[1])
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            squares[lane] += position[d, lane] ** 2
            gradient[d, lane] = position[d, lane]
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * squares[lane]


@pytest.mark.parametrize(
    "target", [from_callable(quartic, dim=2), Target("allocating", 2, allocating)], ids=["Python", "arrays"]
)
def test_a_target_that_cannot_be_taken_in_is_called(target):
    check_same(case_of(target, CASES["sgld"], 2))


@njit
def bounded(x):
    if x > 0.21:  # beyond where `case_of` starts
        raise ValueError("too far")
    return x


def raising(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = 0.0
        for d in range(position.shape[0]):
            gradient[d, lane] = position[d, lane]
            energy[lane] += 0.5 * bounded(position[d, lane]) ** 2


def test_what_a_callee_raises_is_told_as_by_the_general_engine(monkeypatch):
    case = case_of(Target("raising", 2, raising), CASES["sgld"], 2)
    seen = []
    for layout in (GENERAL, FUSED):
        told = []
        monkeypatch.setattr(sys, "unraisablehook", lambda given, told=told: told.append(str(given.exc_value)))
        seen.append((told, case.run(layout=layout).draws.tobytes()))
    assert set(seen[0][0]) == {"too far"}
    assert seen[0] == seen[1]


STIFFNESS = 1.0


def stiff(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * STIFFNESS * position[0, lane] ** 2
        gradient[0, lane] = STIFFNESS * position[0, lane]


@pytest.mark.slow
def test_a_number_that_changed_since_it_was_compiled_changes_no_bit(monkeypatch):
    """Numba freezes a global number when it compiles; the engines freeze the same one."""
    case = case_of(Target("stiff", 1, stiff), CASES["sgld"], 2)
    before = case.run().draws
    monkeypatch.setitem(globals(), "STIFFNESS", 4.0)
    check_same(case)
    assert case.run(layout=FUSED).draws.tobytes() == before.tobytes()


def test_what_the_users_function_raises_arrives():
    def raising(points):
        raise RuntimeError("a simulator of mine")

    with pytest.raises(RuntimeError, match="a simulator of mine"):
        sample(from_callable(raising, dim=2), CASES["sgld"], n_steps=10, n_chains=1, seed=1, layout=FUSED)


def engine_of(target, sampler, n_chains):
    """The fused engine of a run, its parts, shapes and constants."""
    start = np.zeros((n_chains, sampler.n_replicas, target.dim))
    asked = {"n_steps": 10, "seed": 1, "n_chains": n_chains, "init": start, "threads": 1, "layout": FUSED} | KEEPS
    job = make_job(target, sampler, RunOptions(**asked))
    (block,) = make_blocks(job.problem, sampler, start, FUSED, 1)
    made_of = (parts_of(job), shapes_of(block.state), compile_time_constants(engine_numbers(job), n_chains))
    return fused.compiled(*made_of), made_of


@pytest.mark.slow
@pytest.mark.skipif(
    not fused.can_set_attributes(), reason="llvmlite before 0.48 cannot set it, and LLVM inlines only some"
)
def test_all_that_it_calls_is_taken_in(monkeypatch):
    _, made_of = engine_of(GRID, CASES["mala"], 64)
    monkeypatch.setattr(fused, "fused_stamp", lambda *made_of: (None, False))  # what comes from the disk cannot be read
    engine = fused.compile_fused(*made_of)
    (code,) = engine.inspect_llvm().values()
    apart = set(re.findall(r"^attributes (#\d+) = .*\bnoinline\b", code, re.M))  # of `compiling.apart`
    defined = re.findall(r"^define [^@]*@\"?([^\"(]+).*(#\d+)", code, re.M)
    assert [name for name, group in defined if "advance_fused" in name]
    others = [name for name, group in defined if "advance_fused" not in name and group not in apart]
    assert not others, others
    assert not re.search(r"call [^@\n]* %\w+\(", code), "a call by address"


@pytest.mark.slow
def test_others_have_engines_of_their_own():
    engine, (parts, shapes, constants) = engine_of(GRID, CASES["sgld"], 1)
    assert engine_of(GRID, samplers.sgld(2e-3, temperature=2.0), 1)[0] is engine, "other numbers compile nothing"
    others = [
        (parts._replace(target=mixtures.cosine25().energy_gradient), shapes, constants),
        (parts, (*shapes[:-1], (999,)), constants),
        (parts, shapes, constants._replace(n_kept=2)),
        (parts, shapes, constants._replace(energy_noise=1.0)),
    ]
    stamps = [fused.fused_stamp(*one) for one in [(parts, shapes, constants), *others]]
    assert None not in stamps
    assert len(set(stamps)) == len(stamps)


@pytest.mark.skipif(
    not fused.can_set_attributes(), reason="the Numba that comes with llvmlite before 0.48 keeps none on disk"
)
def test_another_process_finds_it_on_disk():
    program = (
        "from tests.toolkit.engine.test_fused import *\n"
        "engine, made_of = engine_of(GRID, CASES['sgld'], 1)\n"
        "print(sum(engine.stats.cache_hits.values()), sum(engine.stats.cache_misses.values()))\n"
        "run = sample(GRID, CASES['sgld'], n_steps=40, n_chains=1, seed=3, layout=FUSED, **KEEPS)\n"
        "print(run.draws.tobytes().hex())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    expected = sample(GRID, CASES["sgld"], n_steps=40, n_chains=1, seed=3, layout=GENERAL).draws.tobytes().hex()
    engine_of(GRID, CASES["sgld"], 1)  # on disk now, if it was not
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["1", "0", expected]


def test_small_arrays_go_onto_the_stack_and_it_never_runs_over():
    assert on_stack(((2, 8), (0, 8), (3,))) == (True, False, True)
    assert on_stack(((ARRAY // ITEM + 1,), (ARRAY // ITEM,))) == (False, True)
    shapes = ((ARRAY // ITEM,),) * 9 + ((4,),)
    chosen = on_stack(shapes)
    assert chosen[-1], "the smallest come first"
    assert sum(ITEM * np.prod(shape) for shape, is_local in zip(shapes, chosen, strict=True) if is_local) <= STACK


@pytest.mark.slow
def test_a_thread_of_little_stack_is_enough():
    told = []
    before = threading.stack_size(2**19)  # of macOS, for threads that are not the first
    try:
        thread = threading.Thread(target=lambda: told.append(case_of(GRID, CASES["sgld"], 500).run(layout=FUSED)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(told) == 1


@pytest.mark.parametrize("given", [1, "yes", 0.5])
def test_fused_is_a_flag(given):
    with pytest.raises(TypeError, match=r"layout\.fused must be True, False or None, got"):
        sample(GRID, CASES["sgld"], n_steps=10, n_chains=1, seed=1, layout=Layout(fused=given))


def test_what_does_not_compile_whole_is_named(monkeypatch):
    def refuse(*made_of):
        raise TypingError("no such thing")

    monkeypatch.setattr(fused, "compiled", refuse)
    with pytest.raises(TypeError, match=r"layout\.fused must be False for 'gaussian_grid25' by 'sgld'.*no such thing"):
        sample(GRID, CASES["sgld"], n_steps=10, n_chains=1, seed=1, layout=FUSED)
