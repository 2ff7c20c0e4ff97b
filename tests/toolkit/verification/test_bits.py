"""Bits: what makes a run depend on its layout is found, named with the first number that differs, and explained."""

import os
import warnings

import numpy as np
import pytest

from targets import mixtures
from toolkit import CudaError, CudaWarning, Target, accumulators, from_callable, sample, samplers, schedules
from toolkit.problem.definition import as_problem
from toolkit.tempering.contour_tempering import Partition
from toolkit.verification.bits import Case, Difference, arrays_of, check_bits, first_difference, joined, likely_cause

NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
SGLD = samplers.sgld(0.01)


def case_of(problem, sampler, chains=5, steps=60):
    problem = as_problem(problem)
    rng = np.random.default_rng(2)
    start = rng.standard_normal((chains, sampler.n_replicas, problem.target.dim))
    return Case(problem, sampler, steps, steps // 4, start, 7)


@pytest.fixture
def alone(monkeypatch):
    """No other process, where it is not asked about."""
    from toolkit.verification.subprocess_run import NotSentError

    def refuse(orders, arrays_of):
        raise NotSentError("left to another test")

    monkeypatch.setattr("toolkit.verification.bits.run_in_subprocess", refuse)


def failures(problem, sampler, **size):
    return {name: verdict.words for name, verdict in check_bits(case_of(problem, sampler, **size), likely_cause)
            if verdict.passed is False}  # fmt: skip


def weighted(points):
    """½ |x|² of coordinates summed by a matrix product, whose order of summation depends on the number of points."""
    matrix = np.eye(points.shape[1]) + 0.1 * np.sin(np.arange(points.shape[1] ** 2)).reshape(points.shape[1], -1)
    matrix = matrix @ matrix.T
    slopes = points @ matrix
    return 0.5 * (slopes * points).sum(axis=1), slopes


def of_company(points):
    """A value that depends on the number of points, as rounding does, only more."""
    return 0.5 * (points**2).sum(axis=1), points * (1.0 + 1e-15 * len(points))


def coarse(points):
    energies, slopes = of_company(points)
    return energies.astype(np.float32), (slopes * (1.0 + 1e-6 * len(points))).astype(np.float32)


@pytest.mark.usefixtures("alone")
def test_a_python_function_whose_rounding_depends_on_its_company_is_found():
    found = failures(from_callable(of_company, dim=2), SGLD)
    assert set(found) == {"blocks", "chains"}
    assert "depends on how many points it is given, as that of matrix products (BLAS)" in found["blocks"]
    assert "draws in chain 0, replica 0, draw 0 (step 15), coordinate 0 differs: " in found["blocks"]
    assert "less precision" not in found["blocks"]
    assert "less precision than float64" in failures(from_callable(coarse, dim=2), SGLD)["blocks"]


@pytest.mark.usefixtures("alone")
def test_a_product_of_matrices_passes_or_is_explained():
    """Whether BLAS rounds otherwise is the machine's affair; where it does, it is said."""
    found = failures(from_callable(weighted, dim=24), SGLD)
    assert set(found) <= {"blocks", "chains", "threads"}
    assert all("BLAS" in words for words in found.values())


@pytest.mark.usefixtures("alone")
def test_a_function_with_state_is_found():
    calls = []

    def counting(points):
        calls.append(len(points))
        return 0.5 * (points**2).sum(axis=1), points * (1.0 + 1e-9 * len(calls))

    found = failures(from_callable(counting, dim=2), SGLD)
    assert "called again" in found
    assert "keeps state from call to call" in found["called again"]


def test_a_function_that_knows_its_process_is_found_in_another():
    def known(points):
        return 0.5 * (points**2).sum(axis=1), points * (1.0 + 1e-12 * (os.getpid() == HERE))

    found = failures(from_callable(known, dim=2), SGLD)
    assert set(found) == {"another process"}
    assert "something that is not the same there" in found["another process"]


HERE = os.getpid()


@pytest.mark.usefixtures("alone")
def test_a_schedule_that_depends_on_the_other_steps_is_found():
    schedule = schedules.custom(lambda steps: np.linspace(1.0, 0.5, steps.size))
    found = failures(NORMAL, samplers.sgld(0.01, schedule=schedule))
    assert {"chunks", "streamed"} <= set(found) <= {"chunks", "streamed", "resumed"}
    assert "must depend on each step alone" in found["chunks"]


def mixing_block(position, energy, gradient, parameters, scratch):
    """N(0, I), its gradient tinged with that of the first lane."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * (position[0, lane] ** 2 + position[1, lane] ** 2)
        for d in range(2):
            gradient[d, lane] = position[d, lane] + 1e-9 * position[d, 0]


def stale_block(position, energy, gradient, parameters, scratch):
    """N(0, I), with a gradient that reads a row it writes only afterwards."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * (position[0, lane] ** 2 + position[1, lane] ** 2)
        for d in range(2):
            gradient[d, lane] = position[d, lane] + 1e-3 * scratch[0, lane]
        scratch[0, lane] = position[0, lane]


@pytest.mark.usefixtures("alone")
def test_block_functions_that_mix_lanes_or_keep_things_are_found():
    found = failures(Target("mixing", 2, mixing_block), SGLD)
    assert "blocks" in found
    assert "mixes lanes" in found["blocks"]
    case = case_of(Target("stale", 2, stale_block, scratch_rows=1), SGLD)
    assert "reads rows of its scratch that it has not written" in likely_cause(case, "chunks")
    assert "reads rows of its scratch that it has not written" in failures(case.problem, SGLD)["chunks"]


@pytest.mark.usefixtures("alone")
def test_chains_with_step_sizes_of_their_own_pass_and_keep_them():
    sampler = samplers.sgld([0.01, 0.02, 0.03, 0.04, 0.05], temperature=np.linspace(0.5, 1.0, 5))
    case = case_of(NORMAL, sampler)
    assert case.of_chains(2).sampler.step_sizes == ((0.01,), (0.02,))
    assert failures(NORMAL, sampler) == {}


def test_the_first_difference_names_chain_draw_and_both_values():
    run = sample(NORMAL, SGLD, n_steps=20, burn_in=5, n_chains=3, seed=1)
    ours = arrays_of(run)
    assert first_difference(ours, {name: values[:2].copy() for name, values in ours.items()}, run.steps) is None
    theirs = {name: values.copy() for name, values in ours.items()}
    theirs["draws"][0, 0, 9, 0] += 1.0  # of a lower chain, and later
    theirs["draws"][2, 0, 4, 1] = np.nextafter(theirs["draws"][2, 0, 4, 1], np.inf)
    found = first_difference(ours, theirs, run.steps)
    expected, got = ours["draws"][2, 0, 4, 1], theirs["draws"][2, 0, 4, 1]
    assert found == Difference("draws in chain 2, replica 0, draw 4 (step 9), coordinate 1", expected, got)
    minus = {name: np.zeros_like(values) for name, values in ours.items()}
    plus = {name: values.copy() for name, values in minus.items()}
    minus["draws"][1, 0, 0, 0] = -0.0
    assert first_difference(plus, minus, run.steps).place.startswith("draws in chain 1, ")
    nan = {"draws": np.full((1, 1, 2, 1), np.nan)}
    assert first_difference(nan, {"draws": nan["draws"].copy()}, run.steps) is None
    fewer = {name: values for name, values in ours.items() if name != "draws"}
    assert first_difference(ours, fewer, run.steps).place == "draws is there in one of the two alone"
    assert first_difference({"theta": np.zeros((2, 3))}, {"theta": np.ones((2, 3))}, run.steps).place == (
        "theta in chain 0, entry [0]"
    )


def test_what_is_of_all_chains_is_compared_where_all_are_there():
    """Not by chain: with other chains it differs, and its arrays have no chain first."""
    case = case_of(NORMAL, SGLD, chains=3)
    pooled = {name: accumulators.pooled(a) for name, a in case.arguments()["accumulators"].items()}
    run = case.run(accumulators=pooled)
    ours, fewer = arrays_of(run), arrays_of(case.of_chains(2).run(accumulators=pooled))
    assert first_difference(ours, fewer, run.steps) is None
    name = next(name for name in ours if name.endswith("moments.covariance"))
    assert ours[name].tolist() != fewer[name].tolist()
    assert joined([run, run])[name].shape == (2, 2)
    theirs = {name: values.copy() for name, values in ours.items()}
    theirs[name][1, 0] = np.nextafter(theirs[name][1, 0], np.inf)
    found = first_difference(ours, theirs, run.steps)
    assert found == Difference(
        "accumulated, pooled: moments.covariance in entry [1, 0]", ours[name][1, 0], theirs[name][1, 0]
    )


def test_all_that_a_run_computed_is_compared():
    sampler = samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0))
    case = case_of(NORMAL, sampler)
    arrays = arrays_of(case.run())
    assert {"draws", "energies", "walker", "swaps", "reflections", "trace.walker", "counts.accepted"} <= set(arrays)
    assert {"accumulated.moments.covariance", "accumulated.best.energy"} <= set(arrays)
    flat = arrays_of(case_of(NORMAL, samplers.icsgld(0.1, partition=Partition(1.0, 1.0, 4)), steps=40).run())
    assert {"weights", "trace.theta", "counts.theta", "counts.visits"} <= set(flat)
    chunks = [case.run(), case.run()]
    assert joined(chunks)["draws"].shape[2] == 2 * arrays["draws"].shape[2]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("gpu", "passed", "said"), [
    ({}, True, "equal with a GPU"),
    ({"seed": 8}, False, "with a GPU, draws in chain 0"),
    (CudaError("out of memory"), None, "not checked: out of memory"),
    (CudaWarning("pow is CUDA's own"), None, "not checked: pow is CUDA's own"),
])  # fmt: skip
def test_a_gpu_is_held_to_the_same_bits_where_there_is_one(monkeypatch, gpu, passed, said):
    """The GPU is played by the CPU, as it should be, with other numbers, or refusing."""
    plain = Case.run

    def run(case, backend="cpu", **changes):
        if backend == "cuda" and isinstance(gpu, CudaWarning):
            warnings.warn(gpu, stacklevel=1)
        if backend == "cuda" and isinstance(gpu, Exception):
            raise gpu
        return plain(case, **changes, **(gpu if backend == "cuda" else {}))

    monkeypatch.setattr(Case, "run", run)
    monkeypatch.setattr("toolkit.verification.bits.has_gpu", lambda: True)
    verdict = dict(check_bits(case_of(NORMAL, SGLD), likely_cause))["GPU"]
    assert verdict.passed is passed
    assert said in verdict.words


@pytest.mark.usefixtures("alone")
def test_no_gpu_is_asked_for_a_python_function(monkeypatch):
    monkeypatch.setattr("toolkit.verification.bits.has_gpu", lambda: True)
    python = from_callable(lambda points: (0.5 * (points**2).sum(axis=1), points), dim=2)
    assert "GPU" not in dict(check_bits(case_of(python, SGLD), likely_cause))
