"""The whole product, dynamics × schedule × tempering × boundary: every point is refused with a reason or obeys a law.

The target is N(0, I) in two dimensions at temperature ½, in a square that the draws never reach and in one that cuts
it. Far from the edge all boundaries give the same bits, and the weighted E x² is ½; near it, that of the law cut off.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from targets import constrained, mixtures, shapes
from toolkit import Sampler, boundaries, dynamics, sample, schedules, tempering
from toolkit.tempering.contour_tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # 240 steps are few for θ

CHAINS, STEPS, BURN_IN, T = 512, 240, 120, 0.5
SIGMAS, BIAS = 4.5, 0.06  # a right law of that bias at most fails with probability 7e-6 per point
EXACT = ("mala", "hmc")


def square(half):
    edge = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), shapes.polygon_of("square", edge))


WIDE, NARROW = square(12.0), square(1.0)
FREE_LAW = T
CUT_LAW, CUT_LAW_AT_1 = (t * stats.truncnorm.var(-(t**-0.5), t**-0.5) for t in (T, 1.0))
DYNAMICS = {
    "langevin": (dynamics.langevin(), 0.05),
    "preconditioned_langevin": (dynamics.preconditioned_langevin(decay=0.95, floor=0.3), 0.05),
    "underdamped_langevin": (dynamics.underdamped_langevin(friction=0.4), 0.05),
    "nose_hoover": (dynamics.nose_hoover(friction=0.2, inertia=2.0), 0.03),
    "nose_hoover by coordinate": (dynamics.nose_hoover(friction=0.2, inertia=2.0, by_coordinate=True), 0.03),
    "mala": (dynamics.mala(), 0.2),
    "hmc": (dynamics.hmc(n_leapfrogs=3), 0.3),
    "descent": (dynamics.descent(preconditioned=False), 0.3),
}
# A new dynamics joins with its own defaults.
DYNAMICS |= {name: (getattr(dynamics, name)(), 0.05) for name in {*dynamics.__all__} - {*DYNAMICS, "Dynamics"}}
SCHEDULES = {
    "constant": schedules.constant(),
    "polynomial_decay": schedules.polynomial_decay(0.2, start=40),
    "exponential_decay": schedules.exponential_decay(0.9, start=60, every=20),
    "cosine_cycles": schedules.cosine_cycles(1, exploration=0.05, floor=0.3),
    "custom": schedules.custom(
        lambda steps: 0.8 + 0.2 * (steps % 3),
        temperature=lambda steps: np.where(steps < 20, 2.0, 1.0),
        keep=lambda steps: steps % 2 == 1,
    ),
}
TEMPERING = {
    "none": (None, (T, T)),
    "replica_exchange deo": (tempering.replica_exchange(), (T, 2 * T, 4 * T)),
    "replica_exchange all_pairs": (tempering.replica_exchange(scheme="all_pairs"), (T, 2 * T, 4 * T)),
    "contour": (tempering.contour(partition=Partition(0.0, 0.3, 12), zeta=0.5), (T, T)),
    "continuous_tempering": (tempering.continuous_tempering(top_temperature=3.0, step_size=0.02, inertia=5.0), (T, T)),
    "stein": (tempering.stein(bandwidth=1.0), (T,) * 6),
}
BOUNDARIES = {
    "ignore": boundaries.ignore(),
    "reflect": boundaries.reflect(),
    "reject": boundaries.reject(),
    "penalise": boundaries.penalise(4.0),
}
POINTS = list(itertools.product(DYNAMICS, TEMPERING, SCHEDULES))


def reason_against(move, temper, boundary):
    """What the documentation says against a point of the product, as the message says it; None where nothing."""
    if (move == "descent") != (temper == "stein"):
        return "tempering by stein and dynamics.descent() need each other: Stein's particles move without noise"
    if move in EXACT and boundary == "reflect":
        return f"boundary must not be 'reflect' for '{move}': its test is passed before the reflection"
    return None


def sampler_of(move, temper, schedule, boundary):
    way, step_size = DYNAMICS[move]
    rule, temperatures = TEMPERING[temper]
    return Sampler(
        f"{move} × {schedule} × {temper} × {boundary}",
        (step_size,) * len(temperatures),
        temperatures,
        dynamics=way,
        schedule=SCHEDULES[schedule],
        tempering=rule,
        boundary=BOUNDARIES[boundary],
    )


def starts():
    """Exact draws (chain, replica, dim) at temperature 1, of the whole law and of that cut off by the narrow square."""
    rng = np.random.default_rng(1)
    whole = rng.standard_normal((CHAINS, 6, 2))
    cut = stats.truncnorm.rvs(-1.0, 1.0, size=(CHAINS, 6, 2), random_state=rng)
    return whole, cut


WHOLE, CUT = starts()


def run_of(problem, sampler, start):
    replicas = sampler.n_replicas
    scale = np.sqrt(sampler.temperatures)[:, None] if problem is WIDE else 1.0
    return sample(
        problem, sampler, n_steps=STEPS, burn_in=BURN_IN, thin=10, n_chains=CHAINS, seed=7, threads=1,
        init=start[:, :replicas] * scale,
    )  # fmt: skip


def mean_square(run):
    """Weighted E x² of a coordinate, and its standard error over the chains, which are independent."""
    squares = (run.weights[:, :, None] * run.draws**2).mean(axis=(1, 2))
    weights = run.weights.mean(axis=1)
    ratio = squares.sum() / weights.sum()
    return ratio, np.std(squares - ratio * weights) / weights.mean() / np.sqrt(CHAINS)


def obeys(run, law, bias=BIAS):
    """Whether E x² is ``law`` to the allowed bias and chance."""
    value, error = mean_square(run)
    return abs(value - law) < bias * law + SIGMAS * error


def rest(run, temperature):
    """Largest |φ| of Stein's particles at the end (bandwidth 1), over the mean |∇U|: 0 where they rest."""
    x = run.replica_draws[:, :, -1]
    apart = x[:, :, None] - x[:, None]  # x_i − x_j
    k = np.exp(-(apart**2).sum(axis=3))[..., None]
    phi = (k * (-x[:, None] + temperature * 2.0 * apart)).mean(axis=2)
    return np.abs(phi).max() / np.abs(x).mean()


@pytest.mark.cases(30)
@pytest.mark.parametrize(("move", "temper", "schedule"), POINTS)
def test_every_point_is_refused_or_obeys_its_law(move, temper, schedule):
    free = None
    for boundary in BOUNDARIES:
        against = reason_against(move, temper, boundary)
        if against is not None:
            with pytest.raises(ValueError, match="^" + against.replace("(", r"\(").replace(")", r"\)")):
                sampler_of(move, temper, schedule, boundary)
            continue
        sampler = sampler_of(move, temper, schedule, boundary)
        run, cut = run_of(WIDE, sampler, WHOLE), run_of(NARROW, sampler, CUT)
        free = free or run
        np.testing.assert_array_equal(run.replica_draws, free.replica_draws)
        np.testing.assert_array_equal(run.weights, free.weights)
        assert run.reflections.sum() == 0
        assert np.isfinite(cut.draws).all()
        assert np.ptp(cut.draws, axis=1).min() > 0
        if temper == "stein":
            assert rest(run, T) < 0.06
            assert rest(run, 2.0 * T) > 0.3
        else:
            assert obeys(run, FREE_LAW)
            assert not obeys(run, 2.0 * FREE_LAW)
            assert not obeys(run, 0.5 * FREE_LAW)
        inside = NARROW.contains(cut.draws.reshape(-1, 2))
        if boundary in ("reflect", "reject"):
            assert inside.all()
            assert cut.reflections.sum() > 0 or temper == "stein"
            if temper != "stein":
                assert obeys(cut, CUT_LAW)
                assert not obeys(cut, FREE_LAW)
                assert temper == "continuous_tempering" or not obeys(cut, CUT_LAW_AT_1, bias=0.0)
        elif temper != "stein":
            assert not inside.all()
            assert obeys(cut, FREE_LAW) == (boundary == "ignore")


def test_as_many_points_are_refused_as_the_documentation_says():
    """Descent without Stein, 100; Stein with another dynamics, 20 of each; reflection after a Metropolis test, 50."""
    reasons = [
        reason_against(move, temper, boundary)
        for move, temper, boundary in itertools.product(DYNAMICS, TEMPERING, BOUNDARIES)
        for _ in SCHEDULES
    ]
    assert len(reasons) == 120 * len(DYNAMICS) >= 1080
    assert sum(reason is not None for reason in reasons) == 100 + 20 * (len(DYNAMICS) - 1) + 50
