"""Where chains start by default: numbers from a Philox of plain integers, laws of the places, and what a run says."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from sysid import identify, priors, systems
from sysid.data import simulate
from targets import catalogue, constrained, domains, mixtures, shapes
from tests.support.laws import gaussian
from tests.support.simple_targets import WELLS
from toolkit import (
    CheckpointError,
    Layout,
    Problem,
    Spread,
    Target,
    accumulators,
    boundaries,
    diagnostics,
    from_callable,
    ladders,
    sample,
    samplers,
    stream,
    target,
)
from toolkit._engine.job import check_start
from toolkit.problem.starts import Keys

ONE_STEP = {"n_steps": 1, "progress": False}
RIGHT = 1e-4  # p-value: a right law fails with this probability, and each test has a fixed seed


def flat_block(position, energy, gradient, parameters, scratch):
    energy[:] = 0.0
    gradient[:, :] = 0.0


def flat(dim, **fields):
    """A target of energy 0."""
    return Target("flat", dim, flat_block, **fields)


def starts(problem, n_chains, seed=0, sampler=samplers.sgld(1e-6), **asked):
    """The starts (chain, replica, dim) of a run."""
    return sample(problem, sampler, seed=seed, n_chains=n_chains, **ONE_STEP, **asked).init


def philox(counter, key):
    """Philox4x32-10 on Python's integers, of Salmon et al. (2011), section 3.3."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        high, low = divmod(0xD2511F53 * c0, 2**32)
        top, bottom = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = top ^ c1 ^ k0, bottom, high ^ c3 ^ k1, low
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def share_of(seed, chain, replica, attempt, coordinate, purpose=32):
    """A uniform on (0, 1) for a coordinate of a start: its 52 highest bits, in the middle of their interval."""
    counter = (attempt, purpose << 16, chain, replica | (coordinate // 2) << 16)
    words = philox(counter, (seed % 2**32, seed // 2**32))[2 * (coordinate % 2) :]
    return ((words[0] << 32 | words[1]) // 2**12) / 2**52 + 2.0**-53


@pytest.mark.parametrize("seed", [0, 5, 2**64 - 3])
def test_a_start_is_a_function_of_seed_chain_and_replica(seed):
    """Without a scale or a domain, ±2: bit for bit what integers give, whatever else runs."""
    sampler = samplers.resgld((1e-6,) * 3, temperatures=(1.0, 2.0, 4.0))
    found = starts(flat(3), 5, seed, sampler)
    expected = [
        [[share_of(seed, chain, replica, 0, d) for d in range(3)] for replica in range(3)] for chain in range(5)
    ]
    np.testing.assert_array_equal(found, (1.0 - np.array(expected)) * -2.0 + np.array(expected) * 2.0)
    np.testing.assert_array_equal(found, starts(flat(3), 70, seed, sampler, layout=Layout(lanes=4), threads=1)[:5])
    np.testing.assert_array_equal(found[:, :1], starts(flat(3), 5, seed))
    assert len(np.unique(found[..., 0])) == 15
    chunk = next(stream(flat(3), sampler, seed=seed, n_chains=5, n_steps=4, progress=False))
    np.testing.assert_array_equal(chunk.init, found)


def test_runs_from_default_starts_are_those_from_the_same_starts_given():
    one = sample(gaussian(np.eye(2)), samplers.sgld(0.1), n_steps=50, n_chains=3, seed=1)
    two = sample(gaussian(np.eye(2)), samplers.sgld(0.1), n_steps=50, n_chains=3, seed=1, init=one.init)
    np.testing.assert_array_equal(one.draws, two.draws)


def test_the_default_is_uniform_within_two():
    x = starts(flat(2), 4_000)[:, 0]
    for values in x.T:
        assert kstest(values / 4.0 + 0.5, "uniform").pvalue > RIGHT
        assert kstest(values / 3.6 + 0.5, "uniform").pvalue < 1e-6  # ±1.8
    assert abs(np.corrcoef(x.T)[0, 1]) < 4.0 / math.sqrt(4_000)


def test_in_a_bounded_domain_starts_are_uniform():
    """In a ball the share of the volume within a start's distance is uniform; in the flower, cells have its areas."""
    ball = constrained(flat(3), domains.ball([1.0, -2.0, 7.0], 2.5))
    away = np.linalg.norm(starts(ball, 4_000)[:, 0] - [1.0, -2.0, 7.0], axis=1)
    assert kstest((away / 2.5) ** 3, "uniform").pvalue > RIGHT
    annulus = constrained(flat(2), shapes.annulus())
    x = starts(annulus, 4_000)[:, 0]
    assert annulus.contains(x).all()
    inside = shapes.annulus().uniform_draws(400_000, seed=3)
    edges = np.linspace(*np.array([ends[0] for ends in shapes.annulus().bounds]) * 1.001, 6)
    counts, many = (np.histogram2d(*points.T, bins=[edges, edges])[0].ravel() for points in (x, inside))
    assert chisquare(counts[many > 0], many[many > 0] * len(x) / len(inside)).pvalue > RIGHT


FAR = shapes.polygon_of("far", [[11.0, 1.0], [12.0, 1.0], [11.0, 2.0]])
REGIONS = {
    "away from the origin": constrained(flat(2), FAR),
    "half of it open": constrained(flat(2), domains.box([0.0, -np.inf], [np.inf, 1.0])),
    "far out and open": constrained(flat(1), domains.box([1e6], [np.inf])),
    "a simplex of 64": constrained(flat(64), domains.simplex(64)),
    "ordered, open": constrained(flat(5), domains.ordered(5)),
    "beside the scale": constrained(flat(2, spread=Spread(0.1)), FAR),
    "a bare domain": Problem(flat(2), shapes.flower().domain),
}


@pytest.mark.parametrize("name", REGIONS)
def test_starts_lie_inside_and_apart(name):
    problem = REGIONS[name]
    x = starts(problem, 200, sampler=samplers.sgld(1e-9, boundary=boundaries.reflect()))[:, 0]
    assert problem.contains(x).all()
    assert len(np.unique(x, axis=0)) == 200
    assert (x.std(axis=0) > 0.0).all()


def test_an_open_side_begins_with_the_target():
    """Half a line from 0: uniform on (0, 4), as long as the box of ±2; far from it too, and where a scale is stated."""
    for low, spread, length in ((0.0, None, 4.0), (1e3, None, 4.0), (-1.0, Spread(5.0, 3.0), 9.0)):
        x = starts(constrained(flat(1, spread=spread), domains.box([low], [np.inf])), 2_000)[:, 0, 0]
        assert kstest((x - low) / length, "uniform").pvalue > RIGHT, (low, spread)


def test_a_stated_scale():
    own = flat(2, spread=Spread([1.0, 30.0], [5.0, 0.0]))
    for problem, asked in ((own, {}), (flat(2), {"init": Spread([1.0, 30.0], [5.0, 0.0])})):
        x = starts(problem, 3_000, **asked)[:, 0]
        assert kstest((x[:, 0] - 4.0) / 2.0, "uniform").pvalue > RIGHT
        assert kstest((x[:, 1] + 30.0) / 60.0, "uniform").pvalue > RIGHT
    np.testing.assert_array_equal(
        starts(own, 4, init=Spread(2.0)), starts(flat(2), 4)
    )  # what is asked for goes before what the target says

    @target(dim=2, spread=Spread(1e-3))
    def bowl(x, y):
        return 0.5 * (x * x + y * y), (x, y)

    calls = []

    def counted(points):
        calls.append(len(points))
        return 0.5 * (points**2).sum(axis=1), points

    called = from_callable(counted, dim=2, spread=Spread(1e-3))
    for problem in (bowl, called):
        assert np.abs(starts(problem, 50)).max() < 1e-3
    calls.clear()
    check_start(Problem(called), samplers.sgld(0.1), None, 0, Keys(np.arange(50)))
    assert calls == [50]  # one evaluation, of all starts


def logarithmic(points):
    """−log x, nan below 0: an exponential's tail, of one's own."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return points[:, 0] - np.log(points[:, 0]), 1.0 - 1.0 / points


def test_a_start_without_a_finite_energy_is_drawn_anew():
    problem = from_callable(logarithmic, dim=1)
    x = starts(problem, 2_000, seed=4)
    assert kstest(x.ravel() / 2.0, "uniform").pvalue > RIGHT
    np.testing.assert_array_equal(x[:7], starts(problem, 7, seed=4))
    chain = int(np.flatnonzero([share_of(4, c, 0, 0, 0) < 0.5 for c in range(20)])[0])
    attempt = next(a for a in range(100) if share_of(4, chain, 0, a, 0) > 0.5)
    assert x[chain, 0, 0] == pytest.approx(4.0 * share_of(4, chain, 0, attempt, 0) - 2.0, abs=1e-14)


def test_where_no_start_is_found_the_chain_is_named():
    def nowhere(points):
        return np.where(points[:, 0] > -1e9, np.inf, 0.0), np.zeros_like(points)

    message = (
        r"init must be given for 'nowhere': of the points drawn between \[-2.0\] and \[2.0\] for chain 0, replica 0, "
        r"100 lie inside, and none has a finite energy and gradient; the last, \[.*\], has energy inf"
    )
    with pytest.raises(ValueError, match=message):
        sample(from_callable(nowhere, dim=1), samplers.sgld(0.1), n_steps=1, seed=0, n_chains=3)
    outside = constrained(flat(2), FAR)
    with pytest.raises(ValueError, match="for chain 0, replica 0, none lies inside the domain"):
        sample(outside, samplers.sgld(0.1), n_steps=1, seed=0, n_chains=3, init=Spread(1.0))


BAD_SPREADS = [
    ((0.0,), ValueError, "scale must be > 0 and < 1e[+]300, got 0.0"),
    (([1.0, -1.0],), ValueError, "scale must be > 0"),
    ((np.nan,), ValueError, "scale must be finite, got nan"),
    ((1.0, np.inf), ValueError, "center must be finite, got inf"),
    (("wide",), TypeError, "scale must be an array of real numbers, got 'wide'"),
    (([[1.0]],), ValueError, r"scale must be a number or have shape \(dim,\), got shape \(1, 1\)"),
    ((1.0, 1e305), ValueError, "center must be within ±1e[+]300"),
    ((1.0, [[[0.0]]]), ValueError, r"center must be a number or have shape \(dim,\), got shape \(1, 1, 1\)"),
    (([[1.0]], [[0.0], [1.0]]), ValueError, r"scale must be .* or that of center, \(2, 1\), got shape \(1, 1\)"),
    ((1.0, [[0.0], [1.0]], [1.0]), ValueError, r"weights must be > 0, one for each of 2 boxes, got \[1\.0\]"),
    ((1.0, [[0.0], [1.0]], [1.0, 0.0]), ValueError, "weights must be > 0, one for each of 2 boxes"),
    ((1.0, 0.0, [1.0, 1.0]), ValueError, "weights must be > 0, one for each of 1 boxes"),
]


@pytest.mark.parametrize(("given", "kind", "message"), BAD_SPREADS, ids=[str(given) for given, *_ in BAD_SPREADS])
def test_bad_spreads_are_refused(given, kind, message):
    with pytest.raises(kind, match=message):
        Spread(*given)


@pytest.mark.parametrize("n_replicas", [1, 4])
def test_chains_share_several_boxes_by_their_weights(n_replicas):
    """Each start lies in one of the boxes, the shares are those asked for, whatever the number of chains."""
    boxes = Spread([[0.1, 0.2], [0.3, 0.4], [0.1, 0.1]], [[0.0, 0.0], [10.0, -10.0], [50.0, 50.0]], [5.0, 4.0, 1.0])
    sampler = samplers.sgld(1e-6) if n_replicas == 1 else samplers.icsgld(1e-6, n_replicas=n_replicas)
    points = starts(flat(2, spread=boxes), 50, sampler=sampler)
    inside = (np.abs(points[..., None, :] - boxes.center) <= boxes.scale).all(axis=-1)
    assert (inside.sum(axis=-1) == 1).all()
    assert np.abs(inside.mean(axis=(0, 1)) - [0.5, 0.4, 0.1]).max() < 0.03
    assert np.array_equal(points[:7], starts(flat(2), 7, sampler=sampler, init=boxes))
    assert np.abs(inside[:10, 0].sum(axis=0) - [5, 4, 1]).max() <= 1
    tempered = samplers.resgld([1e-6, 1e-6], temperatures=[1.0, 2.0])
    cold, hot = np.moveaxis(starts(flat(2), 20, sampler=tempered, init=boxes), 1, 0)
    boxes_of_both = [(np.abs(one[:, None] - boxes.center) <= boxes.scale).all(axis=-1) for one in (cold, hot)]
    assert np.array_equal(*boxes_of_both)


def test_spreads_of_another_dimension_or_kind_are_refused():
    three = Spread([1.0, 1.0, 1.0])
    for make in (lambda: flat(2, spread=three), lambda: starts(flat(2), 2, init=three)):
        with pytest.raises(ValueError, match=r"scale must be a number or have shape \(2,\), got shape \(3,\)"):
            make()
    for make in (lambda: flat(2, spread=3.0), lambda: target(dim=2, spread=3.0)):
        with pytest.raises(TypeError, match=r"spread must be a Spread, got 3\.0"):
            make()


@pytest.mark.parametrize("one", catalogue(), ids=lambda one: one.name)
def test_the_catalogue_starts_about_all_its_modes(one):
    """Every mode lies in the box, or is the only one; a usual run from there does not diverge."""
    lower, upper = one.spread.ends(one.dim)
    if len(one.truth.memberships(np.zeros((1, one.dim)))[0]) > 1:
        centres = one.truth.modes.centres if hasattr(one.truth, "weights") else getattr(one.truth, "centres", None)
        if centres is not None:
            assert ((centres >= lower - 1e-9) & (centres <= upper + 1e-9)).all()
    run = sample(one, samplers.sgld(1e-4), n_steps=200, n_chains=16, seed=1, burn_in=199)
    assert len(np.unique(run.init, axis=0)) == 16


def test_the_partition_of_a_pilot_does_not_depend_on_the_number_of_chains():
    asked = {"n_steps": 40, "seed": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few, many = (sample(mixtures.cosine25(), samplers.csgld(1e-3), n_chains=n, **asked) for n in (3, 40))
    assert few.partition == many.partition
    np.testing.assert_array_equal(few.draws, many.draws[:3])


def test_particles_start_apart():
    run = sample(mixtures.cosine25(), samplers.svgd(0.05, n_replicas=6), n_steps=5, n_chains=2, seed=0)
    assert len(np.unique(run.init.reshape(-1, 2), axis=0)) == 12


def test_a_ladder_is_adapted_from_spread_starts():
    problem = constrained(mixtures.cosine25(), FAR)  # the origin is outside
    sampler = samplers.resgld((1e-3, 1e-3), temperatures=(1.0, 2.0), boundary=boundaries.reflect())
    ladder = ladders.adapted_ladder(problem, sampler, n_steps=60, n_chains=2, seed=0, n_rounds=2)
    assert ladder is not None


def test_a_run_goes_on_from_a_checkpoint_with_the_starts_it_had(tmp_path):
    path = tmp_path / "run.ckpt"
    asked = {"seed": 11, "n_chains": 4}
    sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=60, checkpoint=path, **asked)
    longer = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=100, checkpoint=path, **asked)
    whole = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=100, **asked)
    np.testing.assert_array_equal(longer.draws, whole.draws)
    given = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=110, checkpoint=path, init=whole.init, **asked)
    np.testing.assert_array_equal(given.init, whole.init)
    with pytest.raises(CheckpointError, match=r"init\[0, 0, 0\]: "):
        sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=120, checkpoint=path, init=[0.0, 0.0], **asked)


# What a run says of its starts, its modes, its draws and its settings.


def drawn(problem, sampler=samplers.sgld(0.5), **asked):
    return sample(problem, sampler, **{"n_steps": 2_000, "n_chains": 4, "burn_in": 100, "seed": 0, **asked})


def said(run, sentence):
    """Whether a warning begins with ``sentence``, a pattern."""
    return any(re.match(sentence, warning) for warning in run.warnings)


GRID = mixtures.gaussian_grid25()
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)


def test_one_mode_of_25_does_not_pass():
    """Eight chains of SGLD never leave a mode: 2,000 kept draws in each of 25 would be 0.04 of them each."""
    asked = {"n_steps": 12_000, "burn_in": 2_000, "n_chains": 8}
    spread = drawn(GRID, samplers.sgld(1e-3), **asked)
    assert any(
        re.match(r"R-hat is [\d.]+ for coordinate \d: chains are in different places", w) for w in spread.warnings
    )
    found = len({tuple(place) for place in (2.0 * np.round(0.5 * spread.draws[:, ::100].reshape(-1, 2))).tolist()})
    assert f"  truth      {found} of 25 modes found; mean off by at most " in str(spread)
    together = drawn(GRID, samplers.sgld(1e-3), init=[0.0, 0.0], **asked)
    assert "1 of 25 modes found" in str(together)
    assert any(
        w.startswith("24 of 25 modes of the truth have no draws, of probability 0.96") for w in together.warnings
    )
    assert any(w.startswith("All 8 chains began at one point, so that R-hat cannot see") for w in together.warnings)
    assert not any("R-hat is" in w for w in together.warnings)  # which is blind to it


def test_one_point_matters_only_to_several_chains_with_draws_and_modes_to_miss():
    at_origin = {"init": [0.0, 0.0]}
    own = gaussian(np.eye(2))
    assert [w[:28] for w in drawn(own, **at_origin).warnings] == ["All 4 chains began at one po"]
    assert not any("began" in w for w in drawn(own, n_chains=1, **at_origin).warnings)
    assert not any("began" in w for w in drawn(own, keep_draws=False, **at_origin).warnings)
    kept = drawn(own, keep_draws=False, accumulators={"m": accumulators.moments()}, n_chains=100, **at_origin)
    assert any(w.startswith("All 100 chains began") for w in kept.warnings)
    assert drawn(NORMAL, **at_origin).warnings == []  # its truth is at hand, and has no mode that is not seen
    assert drawn(own).warnings == []


def test_the_truth_beside_a_run_is_that_of_its_draws():
    """SGLD at h = ½ has variance 1 / (1 − h/2) = 4/3 on N(0, I): the sd is 1.155 of the truth's."""
    line = next(line for line in str(drawn(NORMAL, n_steps=40_000)).splitlines() if line.startswith("  truth"))
    ratios = [float(x) for x in re.search(r"sd ([\d.]+)(?: to ([\d.]+))? of the truth's", line).groups() if x]
    assert all(1.135 < ratio < 1.175 for ratio in ratios)
    off, errors = map(float, re.search(r"mean off by at most ([\d.]+) sd \(([\d.]+) standard errors\)", line).groups())
    assert off < 0.03
    assert errors < 5.0
    assert "truth " not in str(drawn(NORMAL, samplers.sgld(0.5, temperature=2.0)))  # another law than the truth's
    pair = mixtures.unequal_pair()
    mixed = drawn(pair, samplers.resgld((0.1, 0.1), temperatures=(1.0, 12.0)), n_steps=20_000)
    assert "2 of 2 modes found" in str(mixed)
    assert not any("modes of the truth" in w for w in mixed.warnings)


def test_no_chain_is_left_out_of_a_long_run():
    """Two of eight chains in the other mode, which are those that evenly chosen six of eight would miss."""
    places = np.full((8, 1), -12.0)
    places[[3, 6]] = 12.0
    run = drawn(WELLS, n_chains=8, n_steps=160_100, init=places)
    text = str(run)
    assert "(of one in 2 of 160,000 draws of each chain)" in text
    assert not re.search(r"of \d+ of \d+ chains|of \d+ chains\)", text)
    part = run.draws[:, 1::2]
    row = next(line for line in text.splitlines() if line.split()[:1] == ["0"]).split()
    assert float(row[1]) == pytest.approx(part.mean(), abs=0.51 * 10.0 ** -len(row[1].partition(".")[2]))
    assert float(row[5]) == pytest.approx(diagnostics.r_hat(part)[0], abs=1e-4)
    assert any("chains are in different places" in w for w in run.warnings)


def test_more_chains_than_can_be_ranked_are_judged_by_their_means():
    """300,000 chains of 6 draws, of which a quarter begins in another mode; and none, where R-hat is near 1."""
    asked = {"n_chains": 300_000, "n_steps": 6, "burn_in": 0, "sampler": samplers.sgld(1.0)}
    places = np.where(np.arange(300_000) % 4 == 0, 12.0, -12.0)[:, None]
    apart = drawn(WELLS, init=places, **asked)
    assert "ESS and R-hat by the spread of the chains' means" in str(apart)
    row = next(line for line in str(apart).splitlines() if line.split()[:1] == ["0"]).split()
    # Between the means of chains: 144 · ¾ · … of a two-point law, 4 · ¼ · ¾ · 12² = 108; within: 2 for h = 1, φ = 0.
    draws = apart.draws[..., 0]
    n = draws.shape[1]
    classic = math.sqrt((n - 1) / n + draws.mean(axis=1).var(ddof=1) / draws.var(axis=1, ddof=1).mean())
    assert float(row[5]) == pytest.approx(classic, rel=1e-4)
    assert classic == pytest.approx(math.sqrt(5 / 6 + (108.0 + 2.0 / 6.0) / 2.0), rel=0.2)
    assert any("chains are in different places" in w for w in apart.warnings)


def tables(run):
    """The rows of each table by the line above it."""
    found, heading = {}, ""
    for line in str(run).splitlines():
        if re.search(r"\(\d+ chains?\)$", line):
            heading = line.strip()
        elif line.split()[:1] and line.split()[0].isdigit():
            found.setdefault(heading, []).append([float(x.replace(",", "")) for x in line.split()])
    return found


def test_chains_of_two_temperatures_are_two_laws():
    """At T the law of SGLD on N(0, I) is N(0, T / (1 − h/2)): one table would have neither's sd."""
    sampler = samplers.sgld(0.5, temperature=[1.0, 9.0] * 4)
    run = drawn(NORMAL, sampler, n_chains=8, n_steps=20_000)
    assert run.warnings == []
    found = tables(run)
    assert list(found) == ["temperature 1 (4 chains)", "temperature 9 (4 chains)"]
    for heading, temperature in zip(found, (1.0, 9.0), strict=True):
        for row in found[heading]:
            assert row[2] == pytest.approx(math.sqrt(temperature / 0.75), rel=0.05)
            assert row[5] < 1.01
    page = run._repr_html_()
    assert all(f"<strong>{heading}</strong>" in page for heading in found)
    gathered = drawn(
        NORMAL, samplers.sgld(0.5, temperature=[1.0, 9.0] * 40), n_chains=80, keep_draws=False,
        accumulators={"m": accumulators.moments()}, n_steps=20_000,
    )  # fmt: skip
    sds = [rows[0][2] for rows in tables(gathered).values()]
    np.testing.assert_allclose(sds, [math.sqrt(t / 0.75) for t in (1.0, 9.0)], rtol=0.05)
    assert gathered.warnings == []


def test_the_worst_of_many_settings_is_named():
    """Twelve step sizes, of which 0.0002 does not mix in 2,000 steps; none is judged with another."""
    sizes = [0.5] * 44 + [0.0002] * 4
    sizes[:44] = np.repeat(np.linspace(0.3, 0.5, 11), 4).tolist()
    run = drawn(NORMAL, samplers.sgld(sizes), n_chains=48, n_steps=20_000, init=Spread(3.0))
    assert "12 settings of the chains, too many for a table of each" in str(run)
    found = [w for w in run.warnings if w.startswith("R-hat")]
    assert len(found) == 1
    assert "of the chains with step size 0.0002: chains are in different places" in found[0]
    assert "(1 of 12 settings are above 1.01)" in found[0]
    lonely = drawn(NORMAL, samplers.sgld([0.3, 0.4]), n_chains=2, n_steps=20_000)
    assert any(w.startswith("2 of 2 settings have one chain") for w in lonely.warnings)
    crowd = drawn(NORMAL, samplers.sgld(np.linspace(0.1, 0.5, 400)), n_chains=400, n_steps=110)
    assert any(w.startswith("The chains have 400 settings, too many to judge") for w in crowd.warnings)


def test_swaps_of_a_sweep_are_judged_by_setting():
    """Half the chains have a ladder that swaps at 4 % and half one at 96 %: together they would pass for a half."""
    ladder = [[1.0, 300.0], [1.0, 1.02]] * 2
    sampler = samplers.resgld((0.1, 0.1), temperatures=(1.0, 2.0))
    run = drawn(NORMAL, replace(sampler, temperatures=ladder), n_steps=10_000)
    assert any(
        re.search(r"Rungs 0 and 1 of the chains with temperatures 1, 300 swap at [\d.]+%", w) for w in run.warnings
    )


def test_identification_starts_about_what_the_data_say():
    """Scaled: ±2 about the mode, of unit covariance; Gaussian: two of the posterior's sds; in the constraints."""
    data = simulate(systems.lorenz(), np.arange(301) * 0.05, seed=0)
    problem = identify(data, systems.lorenz())
    scaled = starts(problem.scaled(), 500)[:, 0]
    assert kstest(scaled[:, 0] / 4.0 + 0.5, "uniform").pvalue > RIGHT
    plain = (problem.parameters(starts(problem, 500)[:, 0]) - problem.posterior.mean) / problem.posterior.sd
    for column in plain.T:
        assert kstest(column / 4.0 + 0.5, "uniform").pvalue > RIGHT
    inside = identify(data, systems.lorenz(), constraints=["sigma > 5", "sigma < 12", "rho > beta"])
    theta = inside.parameters(starts(inside, 200)[:, 0])
    assert ((theta[:, 0] > 5.0) & (theta[:, 0] < 12.0) & (theta[:, 1] > theta[:, 2])).all()
    assert len(np.unique(theta, axis=0)) == 200
    curved = identify(data, systems.lorenz(), prior=priors.laplace(0.0, 5.0))
    found = curved.parameters(starts(curved, 200)[:, 0])
    assert (np.abs(found - curved.prepared.start) <= 0.5 * np.abs(curved.prepared.start) + 1e-12).all()
    swept = sample(problem, samplers.sgld(1e-6, temperature=[1.0, 2.0]), n_steps=5, n_chains=2, seed=0)
    with pytest.raises(ValueError, match="run must have one temperature for all chains, got 1 to 2"):
        problem.estimates(swept)
