"""Results of all chains: one fixed tree for any division of the chains, to the bit; and what results by chain say."""

from fractions import Fraction

import numpy as np
import pytest

from tests.support.accumulator_cases import COSINE, EDGES, UNEVEN, every, filled, gathered, problem
from tests.support.simple_targets import QUARTIC
from toolkit import Layout, accumulators, diagnostics, sample, samplers, stream
from toolkit.accumulators import chain_tree
from toolkit.accumulators.chain_tree import chains_in, merge_nodes, nodes_of, pooled, result_of_nodes, root_of
from toolkit.tempering.contour_tempering import Partition

KINDS = ["moments", "plane", "line", "kl", "energies", "best", "batches"]
MASSES = np.full((15, 15), 1.0 / 240)
AT = [3, 20, 40]
WEIGHTED = samplers.icsgld(1e-3, n_replicas=3, partition=Partition(-4.5, 0.5, 40))


def made(n_chains, seed, *, is_weighted=True):
    """Draws, weights and energies; one chain without weight, one with few draws, and energies that tie."""
    rng = np.random.default_rng(seed)
    draws = 1e3 + rng.standard_normal((n_chains, 40, 2)) + rng.standard_normal((n_chains, 1, 2))
    weights = np.exp(rng.standard_normal((n_chains, 40))) * np.exp(9.0 * rng.standard_normal((n_chains, 1)))
    if n_chains > 2:
        weights[n_chains // 2] = 0.0
        draws[n_chains // 3, 30:] = np.nan
    energies = np.round(rng.standard_normal((n_chains, 40)), 1)
    return draws - 1e3, weights if is_weighted else None, energies


def by_definition(accumulator, state, n_chains):
    """The root, by recursion over single nodes."""
    leaves = accumulator.leaves(state, 0)

    def node(level, index):
        if level == 0:
            return {name: values[index : index + 1] for name, values in leaves.items()}
        left, middle = node(level - 1, 2 * index), (2 * index + 1) << (level - 1)
        return accumulator.merge(left, node(level - 1, 2 * index + 1)) if middle < n_chains else left

    return node(*root_of(n_chains))


def pieces_of(rng, n_chains):
    """A random division into contiguous pieces, in random order."""
    ends = np.unique([0, n_chains, *rng.integers(0, n_chains + 1, rng.integers(0, 6))])
    return [(int(ends[i]), int(ends[i + 1])) for i in rng.permutation(ends.size - 1)]


def assert_same_bits(a, b):
    assert type(a) is type(b)
    for name, x, y in zip(a._fields, a, b, strict=True):
        assert (x is None) == (y is None), name
        assert x is None or (x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()), (name, x, y)


def part_of(state, first, last):
    return {name: values[first:last] for name, values in state.items()}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_chains", [1, 2, 3, 7, 13, 32, 45])
def test_any_pieces_in_any_order_give_the_same_bits(name, n_chains, monkeypatch):
    """And those of the tree's definition, whatever is reduced at a time."""
    rng = np.random.default_rng([n_chains, KINDS.index(name)])
    chosen = pooled(every(MASSES, AT)[name])
    state = filled(chosen, *made(n_chains, 3))
    whole = chosen.result(state)
    defined = {root_of(n_chains): by_definition(chosen.accumulator, state, n_chains)}
    assert_same_bits(whole, result_of_nodes(chosen, defined, n_chains))
    for trial in range(12):
        if trial == 6:
            monkeypatch.setattr(chain_tree, "BYTES_AT_ONCE", 3 * sum(values[0].nbytes for values in state.values()))
        places = [{}, {}, {}]  # machines, each with some of the pieces, which may lie apart
        for first, last in pieces_of(rng, n_chains):
            nodes = nodes_of(chosen, part_of(state, first, last), first, n_chains)
            at = rng.integers(0, 3)
            places[at] = merge_nodes(chosen, places[at], nodes, n_chains)
        merged = merge_nodes(chosen, merge_nodes(chosen, places[2], places[0], n_chains), places[1], n_chains)
        assert_same_bits(whole, result_of_nodes(chosen, merged, n_chains))


@pytest.mark.parametrize("name", ["moments", "kl", "energies", "batches"])
def test_another_order_of_merging_would_be_seen(name):
    """Chain after chain gives other bits than the tree."""
    n_chains = 13
    chosen = pooled(every(MASSES, AT)[name])
    state = filled(chosen, *made(n_chains, 3))
    leaves = chosen.accumulator.leaves(state, 0)
    one_by_one = part_of(leaves, 0, 1)
    for chain in range(1, n_chains):
        one_by_one = chosen.accumulator.merge(one_by_one, part_of(leaves, chain, chain + 1))
    whole = nodes_of(chosen, state, 0, n_chains)[root_of(n_chains)]
    assert any(whole[name].tobytes() != one_by_one[name].tobytes() for name in whole)


COUNTED = ["plane", "line", "kl"]


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("n_chains", [1, 2, 7, 32, 45])
def test_numbers_of_draws_are_summed_without_the_tree_to_the_same_bits(name, n_chains, monkeypatch):
    """For any pieces; chains that have lost draws, or all of them, too."""
    rng = np.random.default_rng([n_chains, COUNTED.index(name)])
    draws = made(n_chains, 4)[0]
    draws[-1] = np.nan
    chosen = pooled(every(MASSES, AT)[name])
    state = filled(chosen, draws)
    defined = {root_of(n_chains): by_definition(chosen.accumulator, state, n_chains)}
    monkeypatch.setattr(chain_tree, "subtrees", None)
    for _ in range(12):
        nodes = {}
        for first, last in pieces_of(rng, n_chains):
            piece = nodes_of(chosen, part_of(state, first, last), first, n_chains)
            nodes = merge_nodes(chosen, nodes, piece, n_chains)
        assert list(nodes) == list(defined)
        for field, values in defined[root_of(n_chains)].items():
            found = nodes[root_of(n_chains)][field]
            assert (found.shape, found.dtype, found.tobytes()) == (values.shape, values.dtype, values.tobytes()), field
    assert_same_bits(chosen.result(state), result_of_nodes(chosen, defined, n_chains))


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_no_number_of_draws_is_merged_along_the_tree(name):
    """Sums of such counts would depend on their order; those of one chain are enough."""
    accumulator = pooled(every(MASSES, AT)[name]).accumulator
    state = filled(accumulator, made(6, 4)[0])
    assert accumulator.exact_sum(state) is not None

    def changed(**values):
        other = {field: array.copy() for field, array in state.items()}
        for field, value in values.items():
            other[field][4] = value
        return accumulator.exact_sum(other)

    counts, beyond, draws = (state[field][4] for field in ("counts", "beyond", "draws"))
    for value in (0.5, 1e300, np.inf, np.nan):
        assert changed(beyond=beyond + value) is None
        assert changed(counts=counts + np.where(np.arange(counts.size) == 3, value, 0.0)) is None
    assert changed(counts=2.0 * counts, beyond=2.0 * beyond) is None  # weights of 2 are scaled
    halves = counts + 0.5 * (np.arange(counts.size) < 2)
    assert changed(counts=halves, draws=draws + 1) is None  # of which the sum is whole
    assert changed(beyond=2.0**53 - draws, draws=2**53) is None  # sums may be rounded
    weighted = filled(accumulator, *made(6, 4)[:2])
    assert accumulator.exact_sum(weighted) is None
    if name == "kl":
        early = filled(accumulator, made(6, 4)[0][:, :30])
        assert accumulator.exact_sum(early) is None


def test_nodes_are_few():
    """At most 2 log₂ n of a piece, each chain in one; and as few while pieces come in order."""
    n_chains = 1_000
    chosen = pooled(accumulators.best_point())
    state = chosen.start(problem(2), n_chains)
    rng = np.random.default_rng(2)
    for first, last in [p for _ in range(30) for p in pieces_of(rng, n_chains)]:
        nodes = nodes_of(chosen, part_of(state, first, last), first, n_chains)
        assert len(nodes) <= 20
        spans = sorted(chains_in(key, n_chains) for key in nodes)
        assert [c for span in spans for c in range(*span)] == list(range(first, last))
        assert merge_nodes(chosen, nodes, {}, n_chains).keys() == nodes.keys()
    nodes = {}
    for first in range(0, n_chains, 7):
        piece = part_of(state, first, min(first + 7, n_chains))
        nodes = merge_nodes(chosen, nodes, nodes_of(chosen, piece, first, n_chains), n_chains)
        assert len(nodes) <= 20
    assert list(nodes) == [(10, 0)]
    assert list(nodes_of(chosen, part_of(state, 999, 1_000), 999, 1_000)) == [(0, 999)]
    assert list(nodes_of(chosen, part_of(state, 960, 1_000), 960, 1_000)) == [(6, 15)]  # at the right edge


def test_what_is_missing_or_there_twice_is_named():
    chosen = pooled(accumulators.best_point())
    state = chosen.start(problem(2), 10)
    nodes = nodes_of(chosen, part_of(state, 0, 4), 0, 10)
    more = nodes_of(chosen, part_of(state, 6, 10), 6, 10)
    with pytest.raises(ValueError, match=r"nodes must hold all 10 chains: chains 4 … 5 are missing"):
        result_of_nodes(chosen, merge_nodes(chosen, nodes, more, 10), 10)
    with pytest.raises(ValueError, match=r"chains 4 … 9 are missing"):
        result_of_nodes(chosen, nodes, 10)
    with pytest.raises(ValueError, match=r"chains 3 … 3 are there twice"):
        merge_nodes(chosen, nodes, nodes_of(chosen, part_of(state, 3, 6), 3, 10), 10)
    with pytest.raises(ValueError, match=r"node \(0, 12\) is none of a run of n_chains=10"):
        merge_nodes(chosen, {}, {(0, 12): state}, 10)
    with pytest.raises(ValueError, match=r"chains 4 … 13 must be chains of a run of n_chains=10"):
        nodes_of(chosen, state, 4, 10)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_moments_are_those_pooled_of_chains(is_weighted):
    draws, weights, _ = made(45, 5, is_weighted=is_weighted)
    found = gathered(pooled(accumulators.moments()), draws, weights)
    chains = gathered(accumulators.moments(), draws, weights)
    assert (found.chains, found.draws) == (45 - 1 - is_weighted, 40 * (45 - 1 - is_weighted))
    np.testing.assert_allclose(found.mean, chains.pooled_mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, chains.pooled_covariance, rtol=1e-12)
    np.testing.assert_allclose(found.standard_error, chains.standard_error, rtol=1e-12)
    means = chains.mean[chains.draws == 40]
    within = np.nanmean(chains.covariance[chains.draws == 40], axis=0)
    assert not np.allclose(found.covariance, within, rtol=0.1)  # without the scatter between chains
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(within) + np.nanvar(means, axis=0), rtol=1e-12)
    one = gathered(pooled(accumulators.moments()), draws[:1], None)
    assert np.isnan(one.standard_error).all()
    assert np.isfinite(one.covariance).all()
    none = gathered(pooled(accumulators.moments()), draws, np.zeros(draws.shape[:2]))
    assert (none.chains, none.draws) == (0, 0)
    assert np.isnan(none.mean).all()
    assert np.isnan(none.covariance).all()


def exact_pooled(draws):
    """Mean, covariance and the mean's standard error of chains of equal length, (chain, draw, dim), in fractions."""
    chains, n, dim = draws.shape
    rows = [[[Fraction(x) for x in row] for row in chain] for chain in draws.tolist()]
    means = [[sum(row[i] for row in chain) / n for i in range(dim)] for chain in rows]
    mean = [sum(m[i] for m in means) / chains for i in range(dim)]
    together = [row for chain in rows for row in chain]
    covariance = [
        [float(sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in together) / (n * chains)) for j in range(dim)]
        for i in range(dim)
    ]
    spread = [float(sum((m[i] - mean[i]) ** 2 for m in means) / ((chains - 1) * chains)) for i in range(dim)]
    return np.array([float(m) for m in mean]), np.array(covariance), np.sqrt(spread)


@pytest.mark.parametrize("dim", [1, 3])
def test_moments_of_large_means(dim):
    """Mean 10⁸, standard deviation 10⁻³: those of rational arithmetic, standard errors too.

    ``MomentsSoFar`` has its chains' means rounded to 10⁻⁸, of which its pooled fields are made.
    """
    rng = np.random.default_rng(dim)
    draws = 1e8 + 1e-3 * rng.standard_normal((13, 40, dim)) @ np.linspace(0.5, 1.5, dim * dim).reshape(dim, dim)
    mean, covariance, error = exact_pooled(draws)
    found, chains = (gathered(a, draws) for a in (pooled(accumulators.moments()), accumulators.moments()))
    np.testing.assert_allclose(found.mean, mean, rtol=3e-16)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-12)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-12)
    assert not np.allclose(chains.standard_error, error, rtol=1e-9, atol=0.0)
    np.testing.assert_allclose(chains.standard_error, error, rtol=1e-3)
    np.testing.assert_allclose(chains.pooled_covariance, covariance, rtol=1e-7)


def shares_of(weights, kept):
    """The weights of the draws that are kept, scaled to sum to each chain's number of them."""
    total = (weights * kept).sum(axis=1)
    factor = np.divide(kept.sum(axis=1), total, where=total > 0.0, out=np.zeros(len(total)))
    return (weights * factor[:, None])[kept]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", ["plane", "line"])
def test_histograms_are_of_all_draws(name, is_weighted):
    draws, weights, _ = made(21, 6, is_weighted=is_weighted)
    chosen = every(MASSES, AT)[name]
    found, chains = gathered(pooled(chosen), draws, weights), gathered(chosen, draws, weights)
    if is_weighted:
        kept = np.isfinite(draws[..., 0])
        points, shares = draws[kept], shares_of(weights, kept)
        grid = [EDGES, UNEVEN] if name == "plane" else [UNEVEN]
        columns = points if name == "plane" else points[:, 1:]
        np.testing.assert_allclose(found.counts, np.histogramdd(columns, grid, weights=shares)[0], rtol=1e-12)
        assert found.draws == 20 * 40 - 10
        assert not np.allclose(found.counts, chains.counts.sum(axis=0), rtol=0.1)  # as if weights were of one scale
    else:
        np.testing.assert_array_equal(found.counts, chains.counts.sum(axis=0))
        assert found.beyond == chains.beyond.sum()
        assert found.draws == chains.draws.sum() == 21 * 40 - 10
    assert found.counts.sum() + found.beyond == pytest.approx(found.draws, rel=1e-13)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_energies_are_of_all_draws(is_weighted):
    draws, weights, energies = made(21, 7, is_weighted=is_weighted)
    chosen = accumulators.energy_histogram([-1.0, 0.0, 0.5, 2.0])
    found, chains = (gathered(a, draws, weights, energies) for a in (pooled(chosen), chosen))
    has = np.isfinite(chains.mean)
    factor = chains.draws[has] / ((weights[has].sum(axis=1)) if is_weighted else 40.0)
    for field in ("counts", "below", "above"):
        np.testing.assert_allclose(getattr(found, field), factor @ getattr(chains, field)[has], rtol=1e-12)
    assert (found.minimum, found.maximum) == (np.nanmin(chains.minimum), np.nanmax(chains.maximum))
    assert found.mean == pytest.approx(np.average(chains.mean[has], weights=chains.draws[has]), rel=1e-12)
    assert found.draws == chains.draws[has].sum()
    nothing = gathered(pooled(chosen), draws, weights, np.full(energies.shape, np.nan))
    assert found.draws > nothing.draws == 0
    assert np.isnan([nothing.minimum, nothing.maximum, nothing.mean]).all()


def test_the_best_point_is_the_lowest_chains_of_equal_ones():
    draws, _, energies = made(21, 8)
    energies[[4, 9, 20], [3, 1, 0]] = -9.0
    found = gathered(pooled(accumulators.best_point()), draws, None, energies)
    assert (found.energy, found.chain, found.step) == (-9.0, 4, 3)
    np.testing.assert_array_equal(found.position, draws[4, 3])
    nothing = gathered(pooled(accumulators.best_point()), draws, None, np.full(energies.shape, np.nan))
    assert (nothing.energy, nothing.chain, nothing.step) == (np.inf, -1, -1)


def test_batch_means_of_all_chains():
    draws, weights, _ = made(21, 9)
    found, chains = (
        gathered(a, draws, weights) for a in (pooled(accumulators.batch_means(8)), accumulators.batch_means(8))
    )
    used = (chains.draws == 40) & np.isfinite(chains.mean[:, 0])
    assert (found.chains, found.draws, found.batch_length) == (19, 760, chains.batch_length[0])
    np.testing.assert_allclose(found.mean, chains.mean[used].mean(axis=0), rtol=1e-12)
    spread = chains.mean[used].var(axis=0)
    np.testing.assert_allclose(found.variance, chains.variance[used].mean(axis=0) + spread, rtol=1e-12)
    error = np.sqrt((chains.standard_error[used] ** 2).sum(axis=0)) / 19
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-12)
    np.testing.assert_allclose(found.ess, chains.ess[used].sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("at", [[25], [3, 20], [3, 20, 40, 90]])
def test_kl_is_of_all_draws_by_then(at):
    """Without weights to the bit, and the same for any cuts; with weights to rounding."""
    draws, weights, _ = made(21, 10)
    finite = np.isfinite(draws[..., 0])
    chosen = pooled(accumulators.kl(MASSES, EDGES, EDGES, at=at))
    plain, weighted = gathered(chosen, draws), gathered(chosen, draws, weights)
    for cuts in ([3], [19, 20], range(1, 40)):
        assert_same_bits(plain, gathered(chosen, draws, cuts=cuts))
    for i, end in enumerate(at):
        if end > 40:
            assert np.isnan([plain.kl[i], plain.expected[i]]).all()
            continue
        kept = finite[:, :end]
        counts = diagnostics.cell_counts(draws[:, :end][kept], EDGES, EDGES)
        assert plain.draws[i] == kept.sum()
        assert plain.kl[i] == diagnostics.kl_divergence(counts, MASSES, total=kept.sum())
        assert plain.expected[i] == diagnostics.expected_kl(MASSES, int(kept.sum()))
        x, y = draws[:, :end][kept].T
        counts = np.histogram2d(x, y, bins=[EDGES, EDGES], weights=shares_of(weights[:, :end], kept))[0]
        n = int(kept.sum()) - min(40, end)
        assert weighted.draws[i] == n
        assert weighted.kl[i] == pytest.approx(diagnostics.kl_divergence(counts, MASSES, total=n), rel=1e-11)


def test_kl_of_one_time_keeps_one_grid():
    chosen = pooled(accumulators.kl(MASSES, EDGES, EDGES, at=[40]))
    cells = sum(values.size for values in chosen.start(problem(2), 3).values() if values.dtype == np.float64)
    assert cells == 3 * (225 + 1)


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
@pytest.mark.parametrize("sampler", [samplers.sgld(0.01), WEIGHTED], ids=["sgld", "icsgld"])
def test_runs_pool_the_same_bits(sampler, tmp_path):
    """By any threads and chunks, streamed, and resumed from a checkpoint; beside the by-chain results."""
    masses = COSINE.truth.cell_masses(EDGES, EDGES)
    plain = every(masses, [10, 100, 120])
    chosen = {name: pooled(accumulator) for name, accumulator in plain.items()}
    chosen["kl once"] = pooled(accumulators.kl(masses, EDGES, EDGES, at=[100]))
    asked = {"n_chains": 5, "burn_in": 20, "thin": 3, "seed": 3, "accumulators": chosen}
    run = sample(COSINE, sampler, n_steps=120, threads=1, keep_draws=False, **asked)
    others = [
        sample(COSINE, sampler, n_steps=120, threads=2, layout=Layout(lanes=2, chunk_steps=7), **asked),
        [*stream(COSINE, sampler, n_steps=120, layout=Layout(chunk_steps=50), **asked)][-1],
        [sample(COSINE, sampler, n_steps=n, checkpoint=tmp_path / "c", **asked) for n in (70, 120)][-1],
    ]
    for other in others:
        for name in chosen:
            assert_same_bits(run.accumulated[name], other.accumulated[name])
    chains = sample(COSINE, sampler, n_steps=120, **{**asked, "accumulators": plain}).accumulated
    np.testing.assert_allclose(run.accumulated["moments"].covariance, chains["moments"].pooled_covariance, rtol=1e-12)
    assert run.accumulated["best"].energy == chains["best"].energy.min()
    assert run.accumulated["kl"].draws[-1] == chains["kl"].draws[:, -1].sum()
    assert run.accumulated["kl once"].kl[0] == run.accumulated["kl"].kl[1]


def test_chains_that_diverge_are_no_part_of_pooled_moments():
    chosen = {"pooled": pooled(accumulators.moments()), "chains": accumulators.moments()}
    run = sample(
        QUARTIC, samplers.sgld(0.02), n_steps=300, n_chains=3, init=[[0.1], [5.0], [0.2]], seed=6,
        accumulators=chosen, on_divergence="keep",
    )  # fmt: skip
    found, chains = run.accumulated["pooled"], run.accumulated["chains"]
    assert run.diverged.tolist() == [False, True, False]
    assert (found.chains, found.draws) == (2, 600)
    np.testing.assert_allclose(found.mean, chains.pooled_mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, chains.pooled_covariance, rtol=1e-12)


class Own:
    """An accumulator of a user's."""

    needs_energies = False

    def start(self, problem, n_chains):
        return {"n": np.zeros(n_chains)}

    def update(self, state, draws, weights, energies, steps):
        state["n"] += 1

    def result(self, state):
        return state


@pytest.mark.parametrize(
    "value",
    [Own(), None, accumulators.moments, pooled(accumulators.moments())],
    ids=["own", "None", "function", "twice"],
)
def test_what_cannot_be_pooled_is_refused(value):
    with pytest.raises(TypeError, match=r"accumulator must be moments\(\), batch_means\(\), histogram\(\), "):
        accumulators.pooled(value)
