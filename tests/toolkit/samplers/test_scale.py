"""A sampler of scale s moves in z = x / s as one without does on the target in z: draws are s times those, bit for bit.

Scales are powers of two, so that s enters without rounding. The target is curved and correlated in three dimensions.
"""

import dataclasses
import math

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from tests.support.saving_cases import own_move
from toolkit import (
    Layout,
    Sampler,
    boundaries,
    dynamics,
    from_callable,
    load,
    sample,
    samplers,
    schedules,
    target,
    tempering,
    thermostats,
)
from toolkit._output.storage.description import describe, rebuild_sampler
from toolkit.diagnostics import ess
from toolkit.errors import CheckpointError, DivergenceError
from toolkit.tempering.contour_tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
SCALE = (0.25, 1.0, 8.0)
ONES = (1.0, 1.0, 1.0)
STARTS = np.random.default_rng(3).standard_normal((6, 1, 3)) * 0.5
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)


def curved(scale):
    """U(z) = z₀²/2 + 2 (z₁ − √(1 + z₀²))² + (z₂ − z₁/2)²/2 at z = x / scale."""
    s0, s1, s2 = scale

    @target(dim=3, name="curved")
    def in_x(x):
        z0, z1, z2 = x[0] / s0, x[1] / s1, x[2] / s2
        root = math.sqrt(1.0 + z0 * z0)
        bend, lean = z1 - root, z2 - 0.5 * z1
        energy = 0.5 * z0 * z0 + 2.0 * bend * bend + 0.5 * lean * lean
        return energy, ((z0 - 4.0 * bend * z0 / root) / s0, (4.0 * bend - 0.5 * lean) / s1, lean / s2)

    return in_x


IN_Z, IN_X = curved(ONES), curved(SCALE)
MOVES = {
    "langevin": (dynamics.langevin(), 0.02),
    "underdamped_langevin": (dynamics.underdamped_langevin(friction=0.3, noise_estimate=0.5), 0.02),
    "baoab": (dynamics.baoab(friction=0.3), 0.02),
    "nose_hoover": (dynamics.nose_hoover(), 0.01),
    "nose_hoover by coordinate": (dynamics.nose_hoover(by_coordinate=True), 0.01),
    "mala": (dynamics.mala(), 0.05),
    "hmc": (dynamics.hmc(n_leapfrogs=4), 0.2),
}
WITHOUT = ("preconditioned_langevin", "descent")
TEMPERINGS = {
    "none": (None, (1.0,)),
    "exchange": (tempering.replica_exchange(), (1.0, 2.0, 4.0)),
    "all pairs": (tempering.replica_exchange(scheme="all_pairs", swap_every=2), (0.5, 1.0, 2.0)),
    "contour": (tempering.contour(partition=Partition(0.0, 0.25, 30)), (1.0, 1.0)),
    "continuous": (tempering.continuous_tempering(top_temperature=3.0, step_size=0.02, inertia=5.0), (1.0,)),
}
CASES = [(move, kind) for move in MOVES for kind in TEMPERINGS]


def sampler_of(move, kind, **options):
    moves, step_size = MOVES[move]
    part, temperatures = TEMPERINGS[kind]
    steps = tuple(step_size * (1.0 + 0.5 * r) for r in range(len(temperatures)))
    return Sampler("test", steps, temperatures, moves, tempering=part, **options)


def run_of(problem, sampler, scale=ONES, **options):
    starts = np.repeat(STARTS, sampler.n_replicas, axis=1)
    starts = starts + 0.125 * np.arange(sampler.n_replicas)[:, None]
    given = {"n_steps": 150, "burn_in": 20, "keep_replicas": True, "keep_energies": True, **options}
    return sample(problem, sampler, n_chains=len(STARTS), init=starts * scale, seed=5, threads=1, **given)


def assert_scaled(in_x, in_z, scale=SCALE):
    """Draws s times the others; energies, weights and counts the same."""
    np.testing.assert_array_equal(in_x.replica_draws, in_z.replica_draws * scale)
    np.testing.assert_array_equal(in_x.energies, in_z.energies)
    if in_z.sampler.is_weighted:
        np.testing.assert_array_equal(in_x.replica_weights, in_z.replica_weights)
    for name, values in in_z.counts._asdict().items():
        np.testing.assert_array_equal(getattr(in_x.counts, name), values, err_msg=name)


def scaled(sampler, scale=SCALE):
    return dataclasses.replace(sampler, scale=scale)


def test_every_dynamics_is_here():
    assert {name.partition(" ")[0] for name in MOVES} | {*WITHOUT} == {*dynamics.__all__} - {"Dynamics"}
    for name in dynamics.__all__[1:]:
        assert getattr(dynamics, name)().scales == (name not in WITHOUT)


@pytest.mark.cases(8)
@pytest.mark.parametrize(("move", "kind"), CASES)
def test_it_moves_in_z_as_without_a_scale(move, kind):
    plain = sampler_of(move, kind)
    in_z = run_of(IN_Z, plain)
    assert np.isfinite(in_z.replica_draws).all()
    assert np.ptp(in_z.replica_draws, axis=2).min() > 0.0
    if isinstance(plain.tempering, tempering.ReplicaExchange):
        assert (in_z.counts.accepted > 0).all()
    in_x = run_of(IN_X, scaled(plain), SCALE)
    assert_scaled(in_x, in_z)
    for wrong in (None, tuple(s * s for s in SCALE), SCALE[::-1]):
        try:
            other = run_of(IN_X, scaled(plain, wrong), SCALE)
        except DivergenceError:
            continue
        assert not np.array_equal(other.replica_draws, in_x.replica_draws)


@pytest.mark.parametrize("move", MOVES)
def test_schedules(move):
    plain = sampler_of(move, "exchange", schedule=schedules.cosine_cycles(3, exploration=0.2, floor=0.1))
    assert_scaled(run_of(IN_X, scaled(plain), SCALE), run_of(IN_Z, plain))


@pytest.mark.slow_cases("underdamped_langevin")
@pytest.mark.parametrize("move", ["underdamped_langevin", pytest.param("hmc", marks=pytest.mark.slow)])
def test_fused_engines(move):
    plain = sampler_of(move, "exchange")
    assert_scaled(run_of(IN_X, scaled(plain), SCALE, layout=Layout(fused=True)), run_of(IN_Z, plain))


@pytest.mark.parametrize("move", MOVES)
def test_a_scale_of_1_changes_no_bit(move):
    for kind in TEMPERINGS:
        plain = sampler_of(move, kind)
        assert_scaled(run_of(IN_Z, scaled(plain, ONES)), run_of(IN_Z, plain), ONES)


@pytest.mark.parametrize("move", ["langevin", "underdamped_langevin", "hmc"])
def test_other_scales_agree_to_rounding(move):
    plain, scale = sampler_of(move, "none"), (0.3, 1.7, 29.0)
    in_x = run_of(curved(scale), scaled(plain, scale), scale, n_steps=20, burn_in=0)
    in_z = run_of(IN_Z, plain, n_steps=20, burn_in=0)
    np.testing.assert_allclose(in_x.replica_draws / scale, in_z.replica_draws, rtol=1e-9, atol=1e-11)


def test_gradient_noise_is_that_of_the_gradient_in_x():
    plain = samplers.resgld((0.01, 0.02), temperatures=(1.0, 2.0), gradient_noise=0.5)
    with_noise = dataclasses.replace(plain, gradient_noise=0.125, scale=(4.0,) * 3)
    assert_scaled(run_of(curved((4.0,) * 3), with_noise, 4.0), run_of(IN_Z, plain), 4.0)


def test_the_pilot_of_contour_finds_the_same_partition():
    plain = Sampler("test", (0.05,), (1.0,), dynamics.hmc(n_leapfrogs=3), tempering=tempering.contour())
    in_x, in_z = run_of(IN_X, scaled(plain), SCALE), run_of(IN_Z, plain)
    assert in_x.partition == in_z.partition
    assert_scaled(in_x, in_z)


def test_multipliers_that_a_metropolis_test_would_refuse_are_found_in_z():
    """Bins far narrower than a step, where a multiplier becomes 1 by the size of the gradient in z."""
    part = tempering.contour(partition=Partition(0.0, 0.02, 400))
    plain = Sampler("test", (0.2,), (1.0,), dynamics.mala(), tempering=part)
    in_x = run_of(IN_X, scaled(plain), SCALE, n_steps=600)
    assert_scaled(in_x, run_of(IN_Z, plain, n_steps=600))


BOX = ((-1.0, -0.5, -1.5), (0.75, 1.0, 2.0))


@pytest.mark.parametrize(
    ("rule", "move"),
    [(rule, move) for rule in ("reject", "penalise", "reflect") for move in ("langevin", "underdamped_langevin")]
    + [("reject", "hmc"), ("penalise", "hmc")],
)  # fmt: skip
def test_boundaries(rule, move):
    """Rejection knows no metric; a penalty is energy in x, and a reflection is right for one common scale."""
    scale = SCALE if rule == "reject" else (4.0,) * 3
    boundary = {
        "reject": boundaries.reject(), "reflect": boundaries.reflect(), "penalise": boundaries.penalise(16.0),
    }[rule]  # fmt: skip
    inside = {"init": np.clip(STARTS, -0.4, 0.6)[:, 0]}
    plain = sampler_of(move, "none", boundary=boundary)
    weaker = boundaries.penalise(1.0) if rule == "penalise" else boundary  # λ d²/2 is the same at a distance of 4 d

    def run(problem, edges, sampler, start):
        box = domains.box(*(np.array(edge) * edges for edge in BOX))
        return sample(
            constrained(problem, box), sampler, n_steps=300, n_chains=len(STARTS), seed=6, keep_energies=True,
            init=start * edges,
        )  # fmt: skip

    in_z = run(IN_Z, np.ones(3), plain, inside["init"])
    in_x = run(curved(scale), np.array(scale), dataclasses.replace(plain, boundary=weaker, scale=scale), inside["init"])
    assert_scaled(in_x, in_z, scale)
    assert rule == "penalise" or in_z.reflections.sum() > 20


def test_one_step_in_numbers():
    """x ← x − h s² ∂U + √(2hT) s ξ, with ξ recovered from a run at scale 1."""
    h, start = 0.1, np.array([0.5, -1.0])
    sampler = samplers.sgld(h)
    plain = sample(NORMAL, sampler, n_steps=1, init=start, seed=15).draws[0, 0]
    kick = plain - (1.0 - h) * start
    moved = sample(NORMAL, scaled(sampler, (3.0, 0.2)), n_steps=1, init=start, seed=15).draws[0, 0]
    s = np.array([3.0, 0.2])
    np.testing.assert_allclose(moved, start - h * s**2 * start + s * kick, rtol=1e-13)
    assert not np.allclose(moved, start - h * s * start + s * kick, rtol=1e-3)


def test_the_thermostats_law_under_gradient_noise():
    """z settles at c + h s² σ²/(2T), s² the mean square of the scale: 0.1 + 0.02 · 5 · 4/2 = 0.3 here."""
    sampler = samplers.sgnht(0.02, gradient_noise=2.0, friction=0.1)
    sampler = scaled(sampler, (1.0, 3.0))
    wide = mixtures.gaussian_mixture([[0.0, 0.0]], 3.0)
    law = thermostats.thermostat_law(sampler, 2)
    assert law.mean == pytest.approx(0.3)
    run = sample(wide, sampler, n_steps=6000, burn_in=2000, n_chains=64, seed=7, trace_every=10)
    found = run.trace.fields["thermostat"][:, 0, run.trace.steps >= 2000].mean(axis=1)
    error = found.std() / 8.0
    assert abs(found.mean() - law.mean) < 4.5 * error + 0.05 * law.mean  # the law is to first order in h
    assert abs(found.mean() - thermostats.thermostat_law(samplers.sgnht(0.02, gradient_noise=2.0), 2).mean) > 0.1
    by_coordinate = scaled(samplers.sgnht(0.02, gradient_noise=2.0, by_coordinate=True), (1.0, 3.0))
    with pytest.raises(ValueError, match="thermostats by coordinate to have one law"):
        thermostats.thermostat_law(by_coordinate, 2)
    with pytest.raises(ValueError, match="dim must be 2, the size of the sampler's scale, got 3"):
        thermostats.thermostat_law(sampler, 3)


def own_scaled_move(lanes, memory, parameters, changes):
    """Gradient descent in z."""
    for d in range(lanes.position.shape[0]):
        square = lanes.scale[d] * lanes.scale[d]
        for lane in range(lanes.position.shape[1]):
            lanes.position[d, lane] -= square * lanes.step_size[lane] * lanes.gradient[d, lane]


def test_a_move_of_the_users_may_read_it():
    own = Sampler("mine", (0.02,), dynamics=dynamics.Dynamics("mine", own_scaled_move, scales=True), scale=SCALE)
    assert_scaled(run_of(IN_X, own, SCALE), run_of(IN_Z, dataclasses.replace(own, scale=None)))
    with pytest.raises(ValueError, match=r"scale must be None for dynamics 'mine', .*scales=True.*got \(0.25, 1.0, 8"):
        Sampler("mine", (0.02,), dynamics=dynamics.Dynamics("mine", own_move), scale=SCALE)


def test_a_probe_of_the_curvature_is_as_short_as_a_step():
    """Dynamics that ask for the curvature get it in x, exact for a quadratic energy, by a probe of s δ."""
    calls = []

    def bowl(points):
        calls.append(points.copy())
        return 0.5 * (points**2 * [1.0, 4.0]).sum(axis=1), points * [1.0, 4.0]

    asks = dynamics.Dynamics("mine", own_move, needs_curvature=True, gradients=2, scales=True)
    sampler = Sampler("mine", (0.5,), dynamics=asks, scale=(1.0, 100.0))
    start = np.array([0.3, 0.2])
    sample(from_callable(bowl, dim=2), sampler, n_steps=1, init=start, seed=1)
    away = np.abs(np.concatenate(calls) - start).reshape(-1, 2)
    assert np.isclose(away, [5e-4, 5e-2], rtol=1e-9).all(axis=1).any()


BAD = {
    "none": ((), "scale must have one number for every coordinate, got ()"),
    "zero": ((1.0, 0.0), "scale[1] must be finite and > 0, got 0.0"),
    "negative": ((-1.0,), "scale[0] must be finite and > 0, got -1.0"),
    "nan": ((1.0, float("nan")), "scale[1] must be finite and > 0, got nan"),
    "square overflows": ((1e200,), "scale[0] must be finite and > 1e-100 and < 1e+100, got 1e+200"),
    "text": ("12", "scale must be a sequence of numbers, got '12'"),
    "number": (2.0, "scale must be a sequence of numbers, got 2.0"),
    "not triangular": (np.ones((2, 2)), "scale must be lower triangular where it is a matrix, such as the Cholesky"),
    "oblong": (((1.0, 0.0),), "scale must have shape (dim,), or (dim, dim) where it is a matrix, got (1, 2)"),
    "diagonal": (((1.0, 0.0), (1.0, 0.0)), "scale[1, 1] must be finite and > 0, got 0.0"),
    "nan in a matrix": (((1.0, 0.0), (float("nan"), 1.0)), "scale must be finite, got nan at [1, 0]"),
    "huge": (((1.0, 0.0), (-1e101, 1.0)), "scale must have entries below 1e100, got 1e+101"),
    "ragged": (((1.0,), (1.0, 2.0)), "scale must be an array of numbers"),
    "no move": (((1.0, 0.0), (1.0, 2.0)), "scale must have one number for every coordinate with dynamics 'langevin'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_scales_are_refused(name):
    value, words = BAD[name]
    with pytest.raises((TypeError, ValueError)) as refused:
        scaled(samplers.sgld(0.1), value)
    assert str(refused.value).startswith(words)


def test_what_it_does_not_go_together_with_is_refused():
    for sampler in (samplers.psgld(0.1), samplers.svgd(0.1)):
        with pytest.raises(ValueError, match=r"scale must be None for dynamics '.*', whose move does not read it"):
            scaled(sampler, (1.0, 1.0))
    reflected = samplers.r2sgld()
    assert scaled(reflected, (2.0, 2.0)).scale == (2.0, 2.0)
    with pytest.raises(ValueError, match=r"scale must be the same .* 'reflect'.*got \(1.0, 2.0\).*reject\(\) takes"):
        scaled(reflected, (1.0, 2.0))
    for n in (1, 3):
        with pytest.raises(ValueError, match=rf"scale of 'sgld' must have shape \(dim,\) = \(2,\) on .*got \({n},\)"):
            sample(NORMAL, scaled(samplers.sgld(0.1), (1.0,) * n), n_steps=1, seed=1)


# A matrix L: x = L z.

MATRIX = ((2.0, 0.0, 0.0), (0.5, 1.0, 0.0), (-1.0, 0.25, 0.5))
INVERSE = np.linalg.inv(MATRIX)


@target(dim=3, name="curved")
def in_lx(x):
    """The energy of ``curved`` at z = L⁻¹ x, with the gradient L⁻ᵀ ∂U/∂z."""
    z0 = INVERSE[0, 0] * x[0]
    z1 = INVERSE[1, 0] * x[0] + INVERSE[1, 1] * x[1]
    z2 = INVERSE[2, 0] * x[0] + INVERSE[2, 1] * x[1] + INVERSE[2, 2] * x[2]
    root = math.sqrt(1.0 + z0 * z0)
    bend, lean = z1 - root, z2 - 0.5 * z1
    energy = 0.5 * z0 * z0 + 2.0 * bend * bend + 0.5 * lean * lean
    g0, g1, g2 = z0 - 4.0 * bend * z0 / root, 4.0 * bend - 0.5 * lean, lean
    return energy, (
        INVERSE[0, 0] * g0 + INVERSE[1, 0] * g1 + INVERSE[2, 0] * g2, INVERSE[1, 1] * g1 + INVERSE[2, 1] * g2,
        INVERSE[2, 2] * g2,
    )  # fmt: skip


@pytest.mark.parametrize("kind", TEMPERINGS)
@pytest.mark.parametrize("move", ["mala", "hmc"])
def test_a_matrix_moves_in_z_as_without_a_scale(move, kind):
    """To rounding, which grows from step to step."""
    sampler = sampler_of(move, kind)
    in_z = run_of(IN_Z, sampler, n_steps=25, burn_in=0)
    starts = np.repeat(STARTS, sampler.n_replicas, axis=1) + 0.125 * np.arange(sampler.n_replicas)[:, None]
    matrix = np.array(MATRIX)
    in_x = sample(
        in_lx, scaled(sampler, matrix), n_chains=len(STARTS), init=starts @ matrix.T, seed=5, threads=1, n_steps=25,
        keep_replicas=True, keep_energies=True,
    )  # fmt: skip
    assert 0.2 < in_z.acceptance.mean() < 1.0
    np.testing.assert_allclose(in_x.replica_draws, in_z.replica_draws @ matrix.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(in_x.energies, in_z.energies, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(in_x.counts.accepted_moves, in_z.counts.accepted_moves)


@pytest.mark.parametrize(
    ("move", "engine"),
    [
        ("mala", Layout(fused=False)),
        ("hmc", Layout(fused=False)),
        pytest.param("hmc", Layout(fused=True), marks=pytest.mark.slow),
    ],
)
def test_a_diagonal_matrix_changes_no_bit(move, engine):
    rows = run_of(IN_X, scaled(sampler_of(move, "exchange")), SCALE, layout=engine)
    matrix = run_of(IN_X, scaled(sampler_of(move, "exchange"), np.diag(SCALE)), SCALE, layout=engine)
    np.testing.assert_array_equal(matrix.replica_draws, rows.replica_draws)


def test_a_matrix_makes_correlated_coordinates_as_cheap_as_others():
    """Cov = L Lᵀ: the lag-1 autocorrelation of HMC is that on a normal law without correlation."""
    dim = 8
    covariance = np.full((dim, dim), 0.99) + 0.01 * np.eye(dim)
    correlated = mixtures.gaussian_mixture(np.zeros((1, dim)), covariance[None])
    sampler = scaled(samplers.hmc(0.8, n_leapfrogs=2), np.linalg.cholesky(covariance))
    run = sample(correlated, sampler, n_steps=1500, burn_in=100, n_chains=64, seed=2, progress=False)
    sizes = ess(run.draws)
    draws = run.draws.reshape(-1, dim)
    assert sizes.min() > 0.5 * len(draws)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=4.5 / np.sqrt(sizes.min()))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=4.5 * np.sqrt(2.0 / sizes.min()))


def test_a_matrix_is_kept_in_files_and_named_in_the_report(tmp_path):
    sampler = scaled(samplers.hmc(0.3), np.array([[1.0, 0.0], [1.0 / 3.0, 2.0]]))
    assert sampler.scale == ((1.0, 0.0), (1.0 / 3.0, 2.0))
    assert hash(sampler) == hash(dataclasses.replace(sampler))
    assert scaled(samplers.sgld(0.1), [[3.0]]).scale == (3.0,)
    run = sample(NORMAL, sampler, n_steps=30, seed=1)
    assert "a scale of 2 × 2\n" in str(run)
    described = describe(NORMAL, sampler)["sampler"]
    assert rebuild_sampler(described) == sampler
    run.save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz", NORMAL).sampler == sampler
    path = tmp_path / "checkpoint"
    sample(NORMAL, sampler, n_steps=30, seed=1, checkpoint=path)
    continued = sample(NORMAL, sampler, n_steps=60, seed=1, checkpoint=path)
    np.testing.assert_array_equal(continued.draws, sample(NORMAL, sampler, n_steps=60, seed=1).draws)
    with pytest.raises(CheckpointError, match=r"sampler\.scale"):
        sample(NORMAL, scaled(samplers.hmc(0.3), (1.0, 2.0)), n_steps=60, seed=1, checkpoint=path)


def test_what_a_matrix_does_not_go_together_with_is_refused():
    matrix = ((1.0, 0.0), (0.5, 2.0))
    for name in ("sgld", "sghmc", "sgnht"):
        with pytest.raises(ValueError, match=r"a matrix is for those with a Metropolis test, dynamics\.hmc\(\)"):
            scaled(getattr(samplers, name)(0.1), matrix)
    with pytest.raises(ValueError, match=r"scale of 'hmc' must have shape .* or \(dim, dim\), got \(2, 2\)"):
        sample(IN_Z, scaled(samplers.hmc(0.1), matrix), n_steps=1, seed=1)


def test_it_is_kept_as_floats_and_named_in_the_report():
    sampler = scaled(samplers.sgld(0.1), np.array([1, 2], np.int32))
    assert sampler.scale == (1.0, 2.0)
    assert all(type(s) is float for s in sampler.scale)
    for scale, words in ((None, "step size 0.1\n"), ((1.0, 2.0), "scales 1 to 2\n"), ((3.0, 3.0), "scale 3\n")):
        run = sample(NORMAL, scaled(sampler, scale), n_steps=30, seed=1)
        assert words in str(run)


def test_descriptions_have_it_only_where_it_is_given():
    plain = samplers.hmc(0.3)
    scale = (1.0 / 3.0, 1e-90)
    assert "scale" not in describe(NORMAL, plain)["sampler"]
    assert "scales" not in describe(NORMAL, plain)["sampler"]["dynamics"]
    described = describe(NORMAL, scaled(plain, scale))["sampler"]
    assert described["scale"] == list(scale)
    assert rebuild_sampler(described) == scaled(plain, scale) != plain
    described["scale"] = [1.0, -1.0]
    with pytest.raises(ValueError, match="scale"):
        rebuild_sampler(described)
    of_psgld = describe(NORMAL, samplers.psgld(0.1))["sampler"] | {"scale": [1.0, 2.0]}
    with pytest.raises(ValueError, match="scale must be None for dynamics 'preconditioned_langevin'"):
        rebuild_sampler(of_psgld)


@pytest.mark.parametrize("form", [".npz", ".nc", ".zarr"])
def test_files_keep_it(form, tmp_path):
    if form != ".npz":
        pytest.importorskip("h5py" if form == ".nc" else "zarr")
    own = Sampler("mine", (0.02,), dynamics=dynamics.Dynamics("mine", own_scaled_move, scales=True))
    for sampler in (samplers.hmc(0.3), own):
        run = sample(NORMAL, scaled(sampler, (1.0 / 3.0, 77.7)), n_steps=20, seed=1)
        run.save(tmp_path / f"run{form}")
        loaded = load(tmp_path / f"run{form}", NORMAL)
        assert loaded.sampler.scale == (1.0 / 3.0, 77.7)
        np.testing.assert_array_equal(loaded.draws, run.draws)


def test_checkpoints_continue_and_tell_scales_apart(tmp_path):
    sampler = scaled(samplers.resgld((0.01, 0.02), temperatures=(1.0, 2.0)))
    path = tmp_path / "checkpoint"
    whole = run_of(IN_X, sampler, SCALE)
    run_of(IN_X, sampler, SCALE, n_steps=70, checkpoint=path)
    np.testing.assert_array_equal(run_of(IN_X, sampler, SCALE, checkpoint=path).replica_draws, whole.replica_draws)
    with pytest.raises(CheckpointError, match=r"sampler\.scale\[1\]: 1\.0 there, 2\.0 here"):
        run_of(IN_X, scaled(sampler, (0.25, 2.0, 8.0)), SCALE, checkpoint=path)
    with pytest.raises(CheckpointError, match=r"sampler\.scale: .* there, nothing here"):
        run_of(IN_X, scaled(sampler, None), SCALE, checkpoint=path)
