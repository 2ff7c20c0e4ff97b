"""On a GPU: every sampler and feature gives the CPU's bits; laws at many chains; what it costs to come back.

``make test-cuda`` runs this file. With NVIDIA's checker of memory and races in front, which is slow, some cases:
``compute-sanitizer --tool memcheck .venv-device/bin/python -m pytest -m cuda tests/cuda -k "bits and sgld"``, and
``--tool racecheck`` in place of ``memcheck`` for the shared memory of the kernels that bring draws home.
"""

import multiprocessing
import warnings

import numpy as np
import pytest

from targets import mixtures
from tests.support.device_cases import CASES, FAULTS, Continued, arrays, box, what_differs
from toolkit import CudaError, accumulators, sample, samplers

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")]
LINE = mixtures.gaussian_mixture([[0.0]], 1.0)
EDGES = np.linspace(-1.0, 1.0, 2)


@pytest.fixture(autouse=True, scope="module")
def _on_a_device():
    """A reason to skip, where there is none."""
    pytest.importorskip("numba_cuda", reason='numba-cuda is not installed: pip install "manymodes[cuda]"')
    from toolkit._engine.cuda.device import check_available

    try:
        check_available()
    except CudaError as error:
        pytest.skip(str(error))


def difference(name, folder):
    """The first number of a case that differs from the CPU's."""
    case = CASES.get(name)
    if isinstance(case, Continued) and case.first == "cpu":
        case.begin(folder)
    got = arrays(name, "cuda", folder)
    if isinstance(case, Continued) and case.first == "cuda":
        got = case.end("cpu", folder)
    expected = arrays(name, "cpu", folder)
    return what_differs(expected, got)


@pytest.mark.parametrize("name", CASES)
def test_the_device_gives_the_cpus_bits(name, tmp_path):
    assert difference(name, tmp_path) is None


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, tmp_path):
    assert difference(name, tmp_path) is not None


@pytest.mark.parametrize("n_chains", [31, 32, 33, 127, 129, 20_000, 70_001])
def test_whatever_the_number_of_chains(n_chains):
    """The grid's last block is full or not; blocks of either size."""
    given = {"n_steps": 12, "n_chains": n_chains, "seed": 3, "thin": 3, "trace_every": 4}
    for problem, sampler in (
        (LINE, samplers.sgld(0.1)),
        (box(), samplers.r2sgld((0.05, 0.1), temperatures=(1.0, 3.0))),
    ):
        ours, theirs = (sample(problem, sampler, backend=backend, **given) for backend in ("cpu", "cuda"))
        np.testing.assert_array_equal(theirs.draws, ours.draws)
        np.testing.assert_array_equal(theirs.trace.fields["energy"], ours.trace.fields["energy"])


def test_draws_of_more_rows_than_a_grid_has_columns():
    """One chain of many steps and coordinates: their tiles are more than 65,535."""
    target = mixtures.gaussian_mixture([[0.0] * 40], 1.0)
    given = {"n_steps": 240_000, "seed": 3, "progress": False}
    ours, theirs = (sample(target, samplers.sgld(0.1), backend=backend, **given) for backend in ("cpu", "cuda"))
    np.testing.assert_array_equal(theirs.draws, ours.draws)


@pytest.mark.parametrize("step_size", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_variance_of_a_normal(step_size, temperature):
    """T/(1 − h/2), to 5 standard errors of as many independent chains; 1.5 % more is rejected."""
    n_chains, target = 400_000, mixtures.gaussian_mixture([[0.0]], 1.0)
    n_steps = int(40 / step_size)
    run = sample(
        target, samplers.sgld(step_size, temperature=temperature), n_steps=n_steps, burn_in=n_steps - 1,
        n_chains=n_chains, seed=11, backend="cuda",
    )  # fmt: skip
    law = temperature / (1.0 - 0.5 * step_size)
    slack = 5.0 * np.sqrt(2.0 / n_chains) * law
    seen = run.draws[:, -1, 0].var()
    assert abs(seen - law) < slack
    assert abs(seen - 1.015 * law) > slack


def test_a_normal_in_a_box_keeps_its_law_on_both_rungs():
    """The share beyond 0 and the mean of r2SGLD's cold replica, and of the hot one, which swaps must not move."""
    problem = box()
    sampler = samplers.r2sgld((2e-4, 4e-4), temperatures=(1.0, 4.0))
    n_chains = 100_000
    run = sample(problem, sampler, n_steps=8_000, burn_in=7_999, n_chains=n_chains, seed=4, keep_replicas=True,
                 init=[-0.25, 0.25], backend="cuda")  # fmt: skip
    grid = [np.linspace(low, high, 20_001) for low, high in ((-1.0, 0.5), (-0.5, 1.0))]
    assert run.swap_rates.mean() > 0.3
    for replica, temperature in enumerate((1.0, 4.0)):
        for d in range(2):
            density = np.exp(-0.5 * grid[d] ** 2 / temperature)
            mean = np.average(grid[d], weights=density)
            slack = 5.0 * np.sqrt(np.average((grid[d] - mean) ** 2, weights=density) / n_chains) + 2e-3
            seen = run.replica_draws[:, replica, -1, d].mean()
            assert abs(seen - mean) < slack
            assert abs(seen - (mean + 0.02)) > slack


def test_nothing_warns_and_the_hosts_memory_does_not_hold_what_it_need_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sample(LINE, samplers.sgld(0.1), n_steps=400, n_chains=50_000, seed=1, backend="cuda", keep_draws=False,
                     accumulators={"moments": accumulators.moments()})  # fmt: skip
    assert run.draws.size == 0
    assert abs(run.accumulated["moments"].pooled_mean[0]) < 0.01


def test_more_chains_than_the_device_holds_are_refused():
    with pytest.raises(ValueError, match="n_chains must"):
        sample(LINE, samplers.sgld(0.1), n_steps=2, n_chains=2**31, seed=1, backend="cuda")


def in_a_fork(answers):
    """What a forked child hears."""
    try:
        sample(LINE, samplers.sgld(0.1), n_steps=10, seed=1, backend="cuda")
    except CudaError as error:
        answers.put(str(error))
    else:
        answers.put("")


def test_a_fork_of_a_process_that_has_used_it_is_told_so():
    sample(LINE, samplers.sgld(0.1), n_steps=10, seed=1, backend="cuda")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = context.Process(target=in_a_fork, args=(answers,))
        child.start()
    assert "cannot use the GPU" in answers.get()
    child.join()
