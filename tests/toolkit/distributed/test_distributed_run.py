"""Runs on a cluster have the bits of one machine, for any division into tasks; what cannot be is refused."""

import functools

import numpy as np
import pytest

import toolkit
from targets import constrained, mixtures, shapes
from tests.support.device_cases import CONSTRUCTORS, made
from tests.toolkit.distributed.clusters import local_cluster
from toolkit import DivergenceError, accumulators, boundaries, sample, samplers, stopping
from toolkit._distributed import distributed_run
from toolkit._distributed.collection import ChainSet
from toolkit._distributed.distributed_run import checked
from toolkit._distributed.part import arrays_of, compute_part
from toolkit._distributed.sizes import TaskSizes
from toolkit._engine.run_options import RunOptions

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # short runs are not settled

COSINE = mixtures.cosine25()
FLOWER = constrained(COSINE, shapes.flower())
GRID = np.linspace(-4.0, 4.0, 6)
SHORT = {"n_steps": 60, "burn_in": 10, "thin": 5, "seed": 11, "n_chains": 9}


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


def everything(run):
    """All arrays of a run by name, with its accumulators' results and the facts that no division changes."""
    arrays = arrays_of(run, {})
    for name, result in run.accumulated.items():
        arrays |= {f"{name}.{field}": np.asarray(value) for field, value in result._asdict().items()}
    facts = ("seed", "n_steps", "total_steps", "burn_in", "thin", "sampling_steps", "gradient_evaluations")
    arrays |= {name: np.asarray(getattr(run, name)) for name in facts}
    return arrays | {"steps": run.steps}


def assert_same(run, other):
    mine, theirs = everything(run), everything(other)
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        assert values.dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def in_pieces(problem, sampler, pieces, **options):
    """The run of tasks with so many chains each, computed here."""
    asked = checked(problem, sampler, RunOptions(threads=1, **options))
    collection = distributed_run.ByChain(asked.job, asked.request)
    first = 0
    for size in pieces:
        starts = None if asked.starts is None else asked.starts[first : first + size]
        collection.add(compute_part(asked.request, first, first + size, 1, starts))
        first += size
    return collection.result(pilot_gradients=asked.pilot_gradients, elapsed=0.0)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_every_constructor_has_the_bits_of_one_machine(name):
    sampler = made(name)
    options = {**SHORT, "keep_replicas": True, "keep_energies": True, "trace_every": 20}
    options["accumulators"] = {"moments": accumulators.moments()}
    problem = COSINE if sampler.boundary.kind == "ignore" else FLOWER
    whole = sample(problem, sampler, **options)
    assert_same(whole, in_pieces(problem, sampler, (4, 1, 4), **options))


def test_keys_of_a_part_are_those_of_the_whole():
    """The wrong law: a part whose chains are numbered from 0 repeats the first part's draws."""
    whole = sample(COSINE, samplers.sgld(0.02), **SHORT)
    alone = sample(COSINE, samplers.sgld(0.02), **{**SHORT, "n_chains": 4})
    np.testing.assert_array_equal(whole.draws[:4], alone.draws)
    assert (whole.draws[4:8] != alone.draws).all()


@pytest.mark.parametrize("chains_per_task", [None, 2, 5, 100])
def test_on_a_cluster(client, chains_per_task):
    sampler = samplers.r2sgld(boundary=boundaries.reflect())
    options = {**SHORT, "accumulators": {"moments": accumulators.moments()}}
    whole = sample(FLOWER, sampler, **options)
    assert_same(whole, sample(FLOWER, sampler, **options, client=client, chains_per_task=chains_per_task))


def test_the_pilot_of_a_contour_is_run_once(client):
    whole = sample(COSINE, samplers.icsgld(0.02, n_replicas=3), **SHORT)
    spread = sample(COSINE, samplers.icsgld(0.02, n_replicas=3), **SHORT, client=client, chains_per_task=4)
    assert spread.partition == whole.partition
    assert_same(whole, spread)


@pytest.mark.parametrize("shape", [(2,), (9, 2), (9, 2, 2)])
def test_starts_that_are_given(client, shape):
    init = np.random.default_rng(3).uniform(-2.0, 2.0, shape)
    sampler = samplers.resgld(step_sizes=(0.01, 0.03), temperatures=(1.0, 3.0))
    whole = sample(COSINE, sampler, **SHORT, init=init)
    assert_same(whole, sample(COSINE, sampler, **SHORT, init=init, client=client, chains_per_task=4))


def test_step_sizes_by_chain(client):
    sampler = samplers.Sampler("mine", [[0.01 * (c + 1)] for c in range(9)], (1.0,))
    whole = sample(COSINE, sampler, **SHORT)
    spread = sample(COSINE, sampler, **SHORT, client=client, chains_per_task=4)
    assert_same(whole, spread)
    np.testing.assert_array_equal(spread.sampler.arrays["step_sizes"], sampler.arrays["step_sizes"])


@toolkit.target(dim=1)
def steep(x):
    """Overshoots with a step size of 1.5 where |x| is above 1."""
    return 0.25 * x[0] ** 4, (x[0] ** 3,)


def test_chains_that_diverge_do_not_end_others(client):
    init = np.array([[0.1], [3.0], [0.2], [3.0], [0.3]])
    options = {"n_steps": 40, "seed": 2, "n_chains": 5, "init": init, "on_divergence": "keep"}
    whole = sample(steep, samplers.sgld(0.3), **options)
    spread = sample(steep, samplers.sgld(0.3), **options, client=client, chains_per_task=1)
    assert 0 < whole.diverged.sum() < 5
    assert_same(whole, spread)


def test_a_divergence_ends_the_run_and_names_the_chain(client):
    init = np.array([[0.1], [0.2], [0.3], [50.0]])
    with pytest.raises(DivergenceError, match="chain 3, replica 0 diverged") as caught:
        sample(steep, samplers.sgld(0.3), n_steps=40, seed=2, n_chains=4, init=init, client=client, chains_per_task=1)
    assert caught.value.chain == 3
    with pytest.raises(DivergenceError, match="all 4 chains diverged"):
        sample(steep, samplers.sgld(0.3), n_steps=40, seed=2, n_chains=4, init=np.array([50.0]), client=client,
               on_divergence="keep", chains_per_task=2)  # fmt: skip


@functools.cache  # the masses of the cells take a fourth of a second
def pools():
    return {
        "moments": accumulators.pooled(accumulators.moments()),
        "kl": accumulators.pooled(accumulators.kl(COSINE.truth, GRID, GRID, at=[30, 60])),
        "best": accumulators.pooled(accumulators.best_point()),
    }


@pytest.mark.parametrize("name", ["sgld", "resgld", "csgld", "hmc"])
@pytest.mark.parametrize("chains_per_task", [None, 4])
def test_pooled_results_have_the_bits_of_one_machine(client, name, chains_per_task):
    options = {**SHORT, "accumulators": pools(), "keep_draws": False}
    whole = sample(COSINE, made(name), **options)
    pooled = sample(COSINE, made(name), **options, client=client, chains_per_task=chains_per_task)
    assert not hasattr(pooled, "draws")
    assert (pooled.n_chains, pooled.n_steps, pooled.warnings) == (9, 60, [])
    assert "9 chains × 60 steps" in repr(pooled)
    for result, other in zip(whole.accumulated.values(), pooled.accumulated.values(), strict=True):
        for one, two in zip(result, other, strict=True):
            np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(pooled.acceptance, whole.acceptance.mean(axis=0), equal_nan=True)
    assert pooled.gradient_evaluations == whole.gradient_evaluations
    assert pooled.round_trips == whole.round_trips.sum()


def test_slices_of_a_task_change_no_bit(monkeypatch):
    """A task advances its chains in slices, whose state has a limit."""
    options = {**SHORT, "n_chains": 37, "accumulators": pools(), "keep_draws": False}
    asked = checked(COSINE, samplers.sgld(0.02), RunOptions(threads=1, **options))
    results = []
    for chains in (37, 8, 5):
        monkeypatch.setattr("toolkit._distributed.part.chains_together", lambda request, chains=chains: chains)
        collection = distributed_run.PooledResults(asked.job, asked.request)
        collection.add(compute_part(asked.request, 0, 20))
        collection.add(compute_part(asked.request, 20, 37))
        results.append(collection.result(pilot_gradients=0, elapsed=0.0))
    for other in results[1:]:
        for one, two in zip(results[0].accumulated.values(), other.accumulated.values(), strict=True):
            for a, b in zip(one, two, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_tuned_sampler(client):
    run = sample(COSINE, seed=3, n_steps=50, n_chains=6, client=client)
    assert run.draws.shape[0] == 6
    assert run.tuning is not None


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"client": 3}, TypeError, "client must be None or a dask.distributed.Client, got 3"),
        ({"until": stopping.ess(10)}, ValueError, "until must be None with a client"),
        ({"n_steps": None}, ValueError, "n_steps must be given with a client"),
        ({"chains_per_task": 0}, ValueError, "chains_per_task must be ≥ 1, got 0"),
        ({"n_chains": 0}, ValueError, "n_chains must be ≥ 1, got 0"),
        ({"backend": "tpu"}, ValueError, "backend must be"),
        ({"threads": 0}, ValueError, "threads must be ≥ 1"),
        ({"save": "run.npz"}, ValueError, "save must end in .zarr with a client"),
        ({"n_chains": 4 * 10**9, "keep_draws": False}, ValueError, "n_chains must fit into memory"),
    ],
)
def test_refusals(client, arguments, error, words):
    with pytest.raises(error, match=words):
        sample(COSINE, samplers.sgld(0.02), **{**SHORT, "client": client, **arguments})


def test_a_closed_client_is_refused():
    with local_cluster(n_workers=1, processes=False) as closed:
        closed.close()
        with pytest.raises(
            ValueError, match="client must be connected to its scheduler, got one whose status is 'closed"
        ):
            sample(COSINE, samplers.sgld(0.02), **SHORT, client=closed)


def test_without_a_client_tasks_have_no_size():
    with pytest.raises(ValueError, match="chains_per_task must be None without a client, got 5"):
        sample(COSINE, samplers.sgld(0.02), **SHORT, chains_per_task=5)


def test_tasks_come_to_seconds_and_all_workers_end_together():
    sizes, taken = TaskSizes(), []
    for _ in range(8):
        taken.append(sizes.next(1e12, 4))
        sizes.add(taken[-1], 1e-8 * taken[-1])
    assert taken[:3] == [2e6, 1.6e7, 1.28e8]
    assert taken[-1] == pytest.approx(2e8)  # two seconds
    assert sizes.next(1.2e9, 4) == pytest.approx(1e8)  # a third of what is left for each thread
    assert sizes.next(1e3, 4) == pytest.approx(1e7)  # a tenth of a second, below which tasks cost more than they take
    sizes.add(1e7, 10.0)  # slow ones
    assert sizes.next(1e12, 4) == pytest.approx(2e6)


def test_a_set_of_chains_is_that_of_a_mask():
    rng = np.random.default_rng(4)
    for _ in range(50):
        chains, mask = ChainSet(40), np.zeros(40, np.bool_)
        assert (chains.any(), chains.count(), chains.missing()) == (False, 0, [(0, 40)])
        for _ in range(8):
            first, last = np.sort(rng.choice(41, 2, replace=False)).tolist()
            chains.add(first, last)
            mask[first:last] = True
            np.testing.assert_array_equal(chains.mask(), mask)
            assert (chains.any(), chains.all(), chains.count()) == (mask.any(), mask.all(), mask.sum())
            ends = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
            np.testing.assert_array_equal(chains.stretches(), ends.reshape(-1, 2))
            assert chains.stretches().dtype == np.int64
            others = np.ones(40, np.bool_)
            for first, last in chains.missing():
                others[first:last] = False
            np.testing.assert_array_equal(others, mask)
    for first, last in [(-1, 3), (3, 3), (3, 41)]:
        with pytest.raises(ValueError, match=f"chains {first} to {last} of 40"):
            chains.add(first, last)


def test_memory_of_what_is_done_does_not_grow_with_the_chains():
    """A run of 10⁸ chains whose tasks end in another order than they began."""
    chains, size, most = ChainSet(10**8), 10**5, 0
    for i in range(0, 10**8 // size, 4):
        for j in (2, 0, 3, 1):
            chains.add((i + j) * size, (i + j + 1) * size)
            most = max(most, len(chains.stretches()))
    assert chains.all()
    assert most <= 3
