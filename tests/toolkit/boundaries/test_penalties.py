"""The penalty's law: energy ½ λ distance², in closed form, the same under every dynamics and swap."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from targets import constrained, domains, mixtures, shapes
from targets.domains.convex import Convex
from tests.laws.test_equivalences import SINGLE
from toolkit import Problem, Sampler, boundaries, dynamics, sample, samplers, target, tempering
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import DOMAIN
from toolkit._output.storage.description import describe, rebuild_sampler
from toolkit.tempering.contour_tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
CONVEX = [region for region in domains.catalogue() if isinstance(region, Convex)]
LOW, HIGH, COEFFICIENT = -1.0, 0.5, 3.0
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
LINE = constrained(NORMAL, domains.box([LOW], [HIGH]))
PENALTY = boundaries.penalise(COEFFICIENT)
PVALUE = 1e-6  # false alarms of one comparison of samples


def law(x, temperature):
    """The distribution function of exp(−(x² / 2 + ½ λ distance²) / T): a piece of a normal law on either side.

    With b an end, x² / 2 + ½ λ (x − b)² = ½ (1 + λ) (x − λ b / (1 + λ))² + ½ λ b² / (1 + λ).
    """
    stiff, width = 1.0 + COEFFICIENT, np.sqrt(temperature)

    def tail(end, places):
        """Mass from the far side up to each of ``places`` beyond ``end``."""
        height = np.exp(-0.5 * COEFFICIENT * end**2 / (stiff * temperature)) / np.sqrt(stiff)
        scaled = (places - COEFFICIENT * end / stiff) * np.sqrt(stiff) / width
        return height * stats.norm.cdf(np.sign(end) * -scaled)

    below, above = tail(LOW, np.array(LOW)), tail(HIGH, np.array(HIGH))
    inside = stats.norm.cdf(HIGH / width) - stats.norm.cdf(LOW / width)
    middle = stats.norm.cdf(np.clip(x, LOW, HIGH) / width) - stats.norm.cdf(LOW / width)
    mass = np.where(x < LOW, tail(LOW, np.minimum(x, LOW)), below + middle)
    mass = np.where(x > HIGH, below + inside + above - tail(HIGH, np.maximum(x, HIGH)), mass)
    return mass / (below + inside + above)


def test_the_law_is_that_of_quadrature():
    x = np.linspace(-8.0, 8.0, 160_001)
    for temperature in (1.0, 3.0):
        density = np.exp(-(0.5 * x**2 + 0.5 * COEFFICIENT * (x - np.clip(x, LOW, HIGH)) ** 2) / temperature)
        whole = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        np.testing.assert_allclose(law(x, temperature), whole / whole[-1], atol=1e-8)


def exchanging(**own):
    """Replica exchange by exact moves at three temperatures, whose swaps are all that could be wrong."""
    rule = tempering.replica_exchange(**own)
    return Sampler("swaps", (0.5, 1.0, 1.5), (1.0, 2.0, 3.0), dynamics=dynamics.mala(), tempering=rule,
                   boundary=PENALTY)  # fmt: skip


EXACT = {
    "mala": samplers.mala(0.5, boundary=PENALTY),
    "hmc": samplers.hmc(0.4, n_leapfrogs=3, boundary=PENALTY),
    **{
        f"{scheme}, swaps every {every}": exchanging(scheme=scheme, swap_every=every)
        for scheme in ("deo", "seo", "all_pairs") for every in (1, 10)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_dynamics_have_the_closed_form_whatever_the_swaps(name):
    """One draw of each of 20,000 chains after 60 steps, of every temperature."""
    run = sample(
        LINE, EXACT[name], n_steps=60, thin=60, n_chains=20_000, seed=41, keep_replicas=True, keep_statistics=False
    )
    for replica, temperature in enumerate(EXACT[name].temperatures):
        draws = run.replica_draws[:, replica, 0, 0]
        assert stats.kstest(draws, functools.partial(law, temperature=temperature)).pvalue > PVALUE


def test_sgld_has_the_stationary_law_of_its_step():
    """The law of x ← x − h (x + λ (x − n(x))) + √(2h) z on a fine grid, by powers of its transition matrix."""
    h = 0.1
    places = np.linspace(-5.0, 5.0, 1_001)
    drifted = places - h * (places + COEFFICIENT * (places - np.clip(places, LOW, HIGH)))
    moves = stats.norm.pdf(places, drifted[:, None], np.sqrt(2.0 * h))
    moves /= moves.sum(axis=1, keepdims=True)
    shares = np.linalg.matrix_power(moves, 256)[500]
    outside = shares[(places < LOW - 1e-9) | (places > HIGH + 1e-9)].sum() + 0.5 * shares[[400, 550]].sum()
    run = sample(LINE, samplers.sgld(h, boundary=PENALTY), n_steps=100, thin=100, n_chains=40_000, seed=42)
    seen = ~LINE.contains(run.draws.reshape(-1, 1))
    error = np.sqrt(outside * (1.0 - outside) / 40_000)
    assert abs(seen.mean() - outside) < 4.5 * error  # fails with probability 7e-6
    closed = law(LOW, 1.0) + 1.0 - law(HIGH, 1.0)
    assert closed == pytest.approx(0.351442, abs=1e-6)
    assert abs(outside - closed) < 0.02  # the bias of the step


CORNER = domains.box([-0.4, -0.3], [0.2, 0.5])


@target(dim=2)
def penalised(x):
    """N(0, 1) twice with the penalty of CORNER written out: what every part must see."""
    away0 = x[0] - min(max(x[0], -0.4), 0.2)
    away1 = x[1] - min(max(x[1], -0.3), 0.5)
    energy = 0.5 * (x[0] * x[0] + x[1] * x[1]) + 2.0 * (away0 * away0 + away1 * away1)
    return energy, (x[0] + 4.0 * away0, x[1] + 4.0 * away1)


@target(dim=2)
def plain(x):
    """N(0, 1) twice."""
    return 0.5 * (x[0] * x[0] + x[1] * x[1]), (x[0], x[1])


PARTITION = Partition(-0.1, 0.4, 10)
EVERY = {
    **SINGLE,
    "swaps": samplers.resgld((0.02, 0.05), temperatures=(1.0, 4.0), energy_noise=0.2, swap_every=1),
    "rare swaps": samplers.resgld((0.02, 0.05), temperatures=(1.0, 4.0), swap_every=10),
    "momenta swapped": samplers.r2sghmc((0.02, 0.05), temperatures=(1.0, 4.0), boundary=boundaries.ignore()),
    "contour": samplers.csgld(0.05, partition=PARTITION, zeta=0.5),
    "mala under contour": replace(samplers.mala(0.05), tempering=tempering.contour(partition=PARTITION, zeta=0.5)),
    "continuous tempering": samplers.tact_hmc(0.02),
    "stein": samplers.svgd(0.05, n_replicas=4),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_part_sees_the_penalty_as_part_of_the_energy(name):
    """Draws, energies and weights are those of a target that has the penalty in its energy, corners included."""
    sampler = EVERY[name]
    rng = np.random.default_rng(1)
    options = {
        "n_steps": 60, "n_chains": 5, "seed": 43, "keep_replicas": True, "keep_energies": True,
        "init": rng.uniform(-0.2, 0.2, (5, sampler.n_replicas, 2)),
    }  # fmt: skip
    walled = sample(Problem(plain, CORNER.domain), replace(sampler, boundary=boundaries.penalise(4.0)), **options)
    written = sample(penalised, sampler, **options)
    beyond = (walled.replica_draws < [-0.4, -0.3]) | (walled.replica_draws > [0.2, 0.5])
    assert beyond.all(axis=-1).any()  # at a corner, two walls hold
    np.testing.assert_allclose(walled.replica_draws, written.replica_draws, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(walled.energies, written.energies, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(walled.weights, written.weights, rtol=1e-8)
    free = sample(plain, sampler, **options)
    assert np.abs(free.replica_draws - walled.replica_draws).max() > 1e-3


ROWS = np.random.default_rng(2).standard_normal((12, 4))
WALLS = [
    *CONVEX, domains.half_spaces(ROWS, np.abs(ROWS[:, 0]) + 0.3), domains.ordered(9, lower=0.0, upper=1.0),
    domains.half_spaces([[1.0, 50.0], [1.0, -50.0]], [0.0, 0.0]),
    domains.intersection(domains.simplex(4), domains.ball([0.1] * 4, 0.6)),
]  # fmt: skip


def nearest(domain, points):
    """The points of a domain nearest to ``points`` (n, dim), and which of these are outside."""
    feet, outside = np.full(points.T.shape, np.nan), np.ones(len(points))
    look = compile_part(domain.nearest, DOMAIN, packed=True)
    look(np.ascontiguousarray(points.T), feet, outside, domain.float_table, domain.int_table)
    return feet.T, outside != 0.0


@pytest.mark.parametrize("region", WALLS, ids=lambda region: f"{region.name} {region.dim}")
@pytest.mark.parametrize("spread", [0.5, 3.0, 300.0])
def test_the_nearest_point_of_walls_is_that_of_the_whole_domain(region, spread):
    """Against least distance programming, near and far, where one wall holds the point and where several do."""
    points = region.interior + spread * np.random.default_rng(3).standard_normal((100, region.dim))
    feet, outside = nearest(region.domain, points)
    np.testing.assert_array_equal(outside, ~region.contains(points))
    expected = region.nearest(points[outside])
    np.testing.assert_allclose(feet[outside], expected, rtol=0, atol=1e-12 * np.abs(points).max())


def test_ordered_coordinates_pool_their_violators():
    """The nearest increasing numbers are the isotonic regression."""
    points = np.random.default_rng(4).normal(size=(200, 12))
    feet, outside = nearest(domains.ordered(12).domain, points)
    assert outside.all()
    for x, foot in zip(points, feet, strict=True):
        best = [max(min(x[j : k + 1].mean() for k in range(i, 12)) for j in range(i + 1)) for i in range(12)]
        np.testing.assert_allclose(foot, best, atol=1e-13)


@pytest.mark.parametrize("shape", [shapes.flower(n_vertices=512), shapes.annulus(n_vertices=256), shapes.star()],
                         ids=lambda shape: shape.name)  # fmt: skip
@pytest.mark.parametrize("spread", [1.0, 3.0, 100.0])
def test_the_nearest_point_of_a_polygon_is_that_of_all_edges(shape, spread):
    """Near, in holes and notches, and far beyond the grid."""
    points = spread * np.random.default_rng(5).standard_normal((2_000, 2))
    feet, outside = nearest(shape.domain, points)
    starts = np.concatenate(shape.rings)
    along = np.concatenate([np.roll(ring, -1, axis=0) - ring for ring in shape.rings])
    shares = ((points[:, None] - starts) * along).sum(axis=2) / (along**2).sum(axis=1)
    places = starts + np.clip(shares, 0.0, 1.0)[:, :, None] * along
    distances = np.linalg.norm(points[:, None] - places, axis=2).min(axis=1)
    assert 0.05 < outside.mean() < 1.0 or spread == 100.0
    np.testing.assert_array_equal(outside, ~shape.contains(points))
    np.testing.assert_allclose(
        np.linalg.norm(points - feet, axis=1)[outside], distances[outside], rtol=1e-12, atol=1e-13 * spread
    )


def test_a_domain_without_the_origin_is_no_matter():
    """A penalty pulls to the domain, wherever that is: N(0, 1) in [4, 5] is left by some √(1/λ), and not for 0."""
    away = constrained(NORMAL, domains.box([4.0], [5.0]))
    run = sample(away, samplers.mala(1e-3, boundary=boundaries.penalise(1e3)), n_steps=2_000, n_chains=50, seed=44,
                 init=[4.1])  # fmt: skip
    assert 3.7 < run.draws.min() < 4.0
    assert run.draws.max() < 5.2


def test_where_the_nearest_point_is_not_known_a_penalty_is_refused():
    unknown = Problem(plain, CORNER.domain._replace(nearest=None))
    sampler = samplers.sgld(0.1, boundary=boundaries.penalise(1.0))
    with pytest.raises(ValueError, match=r"must not be 'penalise' in 'plain in box'.*nearest point.*is not known"):
        sample(unknown, sampler, n_steps=10, seed=45)


def test_files_of_the_first_penalty_hold_the_one_as_printed():
    """Its stored kind was 'penalise'; the law's is another word, which no earlier version takes for its own."""
    old = describe(LINE, samplers.sgld(0.1))["sampler"]
    old["boundary"] = {"type": "Boundary", "kind": "penalise", "coefficient": 2.0, "max_bounces": 0}
    assert rebuild_sampler(old).boundary == boundaries.penalise_as_printed(2.0)
    for boundary in (boundaries.penalise(2.0), boundaries.penalise_as_printed(2.0)):
        described = describe(LINE, samplers.sgld(0.1, boundary=boundary))["sampler"]
        assert rebuild_sampler(described).boundary == boundary
        assert (described["boundary"]["kind"] == "penalise") == (boundary.kind == "penalise_as_printed")
