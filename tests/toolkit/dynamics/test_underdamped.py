"""SGHMC's stationary law by the Lyapunov equation of its step, and the laws of the thermostat that learns its noise."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from tests.support.laws import SIGMAS, deviation, gaussian, variance_deviation
from toolkit import Sampler, dynamics, sample, samplers, schedules, tempering

NORMAL = gaussian(1.0)
SWEEP = [(h, t) for h in (0.1, 0.5, 1.0) for t in (0.25, 1.0, 4.0)]
CHAINS = 40_000


def step_matrix(h, friction):
    """The step of SGHMC on N(0, 1) without its noise, as a matrix on (x, p)."""
    root, keep = np.sqrt(h), 1.0 - friction
    return np.array([[1.0 - h, root * keep], [-root, keep]])


def stationary(h, friction, kick):
    """The covariance of (x, p) when every step kicks p with variance ``kick``."""
    push = np.array([np.sqrt(h), 1.0])
    return solve_discrete_lyapunov(step_matrix(h, friction), kick * np.outer(push, push))


def closed(h, friction, temperature, noise=0.0, estimate=0.0):
    """The variance of x as the docstring has it."""
    return (temperature + h * (noise**2 - estimate**2) / (2 * friction)) / (1 - h / (4 - 2 * friction))


def pairs(h, temperature, seed, **options):
    """(x, p) of every chain at the end of a run that starts at N(0, T); p from the last two draws."""
    slowest = np.abs(np.linalg.eigvals(step_matrix(h, options["friction"]))).max()
    n_steps = int(np.ceil(8.0 / (1.0 - slowest)))  # the start is forgotten as exp(−16)
    start = np.sqrt(temperature) * np.random.default_rng(seed).standard_normal((CHAINS, 1))
    sampler = samplers.sghmc(h, temperature=temperature, **options)
    run = sample(NORMAL, sampler, n_steps=n_steps, burn_in=n_steps - 2, n_chains=CHAINS, init=start, seed=seed)
    x = run.draws[:, :, 0]
    return x[:, 1], (x[:, 1] - x[:, 0]) / np.sqrt(h)


def covariance_error(x, p, law):
    """How far E xp is from that of the law's covariance matrix, in the standard errors of that law."""
    return ((x * p).mean() - law[0, 1]) / np.sqrt((law[0, 0] * law[1, 1] + law[0, 1] ** 2) / x.size)


@pytest.mark.cases(2)
@pytest.mark.slow_cases("0.05-1.0-0.0")
@pytest.mark.parametrize(
    ("friction", "noise", "estimate"),
    [(0.05, 0.0, 0.0), (0.05, 1.0, 0.0), (0.3, 0.0, 0.0), (0.3, 0.35, 0.35), (1.0, 1.0, 0.0), (1.0, 1.0, 0.7)],
)
def test_stationary_covariance_of_position_and_momentum(friction, noise, estimate):
    for h, t in SWEEP:
        x, p = pairs(h, t, 31, friction=friction, gradient_noise=noise, noise_estimate=estimate)
        kick = 2 * friction * t + h * (noise**2 - estimate**2)
        law = stationary(h, friction, kick)
        assert law[0, 0] == pytest.approx(closed(h, friction, t, noise, estimate), rel=1e-12)
        assert law[0, 1] == pytest.approx(0.5 * np.sqrt(h) * law[1, 1], rel=1e-12)
        assert variance_deviation(x, law[0, 0]) < SIGMAS
        assert variance_deviation(p, law[1, 1]) < SIGMAS
        assert abs(covariance_error(x, p, law)) < SIGMAS
        assert covariance_error(x, -p, law) < -2 * SIGMAS  # as if x had moved by the momentum before the kick
        wrong = [
            0.5 * kick,
            kick - friction**2 * t,  # η (2 − η) T, which would keep the momentum's variance without a force
            h * kick,  # as for the paper's v
            kick + h * noise**2,  # the gradient's noise twice
            kick + h * estimate**2,  # its estimate not subtracted
        ]
        for other in wrong:
            if abs(other / kick - 1) > 0.05:  # 7 standard errors
                law = stationary(h, friction, other)
                assert variance_deviation(x, law[0, 0]) > SIGMAS
                assert variance_deviation(p, law[1, 1]) > SIGMAS
        if h >= 0.5:  # no bias of the step size; and that of SGLD
            assert variance_deviation(x, closed(1e-9, friction, t, noise, estimate)) > SIGMAS
            assert variance_deviation(x, closed(h, 1.0, t, noise, estimate)) > SIGMAS or friction == 1.0


def test_friction_1_is_langevin():
    """To rounding, whatever the momentum at the start: a friction of 1 forgets it."""
    options = {"n_steps": 200, "n_chains": 10, "seed": 32}
    one = sample(NORMAL, samplers.sghmc(0.3, friction=1.0, gradient_noise=2.0), **options).draws
    np.testing.assert_allclose(one, sample(NORMAL, samplers.sgld(0.3, gradient_noise=2.0), **options).draws, atol=1e-12)


def test_a_chain_of_a_sweep_is_the_chain_of_a_run_by_itself():
    """Step size and temperature per chain: chain i of the sweep has the bits of chain i at those values."""
    sizes, temperatures = np.array([0.1, 0.2, 0.4]), np.array([4.0, 1.0, 0.25])
    options = {"n_steps": 50, "n_chains": 3, "seed": 33}
    together = sample(NORMAL, samplers.sghmc(sizes, temperature=temperatures), **options).draws
    for i, (h, t) in enumerate(zip(sizes, temperatures, strict=True)):
        alone = sample(NORMAL, samplers.sghmc(h, temperature=t), **options).draws
        np.testing.assert_array_equal(together[i], alone[i])
        assert (together[i - 1] != alone[i - 1]).all()


def test_a_correlated_gaussian_along_its_principal_axes():
    """Along an axis of curvature k the law is that of N(0, 1) with h k in place of h, divided by k."""
    rng = np.random.default_rng(34)
    axes, curvatures = np.linalg.qr(rng.standard_normal((5, 5)))[0], np.array([0.3, 0.6, 1.0, 2.0, 4.0])
    h, friction, t, n = 0.25, 0.3, 2.0, 60_000
    start = rng.standard_normal((n, 5)) * np.sqrt(t / curvatures) @ axes.T
    target = gaussian(axes * curvatures @ axes.T)
    sampler = samplers.sghmc(h, friction=friction, temperature=t)
    x = sample(target, sampler, n_steps=150, thin=150, n_chains=n, init=start, seed=34).draws[:, 0] @ axes
    for d, k in enumerate(curvatures):
        assert variance_deviation(x[:, d], closed(h * k, friction, t) / k) < SIGMAS
        if k >= 0.6:
            assert variance_deviation(x[:, d], t / k) > SIGMAS
    off_diagonal = np.corrcoef(x.T)[np.triu_indices(5, 1)]
    assert (np.abs(off_diagonal) < SIGMAS / np.sqrt(n)).all()
    assert (np.abs(np.corrcoef((x @ axes.T).T)[np.triu_indices(5, 1)]) > SIGMAS / np.sqrt(n)).any()


STEP, FRICTION, SPREAD = 0.02, 0.05, 0.002  # of the thermostat's tests; SPREAD is its variance, from which γ follows
THERMOSTAT_CHAINS = 1024


def thermostatted(target, temperature, noise, seed, *, by_coordinate=False):
    """z (chain, thermostat, draw), x and p (chain, dim, draw) of stationary SGNHT."""
    dim = target.dim
    inertia = STEP * temperature / (SPREAD * (1 if by_coordinate else dim))
    sampler = samplers.sgnht(
        STEP, friction=FRICTION, inertia=inertia, by_coordinate=by_coordinate, temperature=temperature,
        gradient_noise=noise,
    )  # fmt: skip
    start = np.sqrt(temperature) * np.random.default_rng(seed).standard_normal((THERMOSTAT_CHAINS, dim))
    options = {"n_chains": THERMOSTAT_CHAINS, "init": start, "seed": seed, "trace_every": 10}
    run = sample(target, sampler, n_steps=3000, burn_in=500, **options)
    names = [name for name in run.trace.fields if name.startswith("thermostat")]
    assert len(names) == (dim if by_coordinate else 1)
    z = np.stack([run.trace.fields[name][:, 0, -250:] for name in names], axis=1)
    x = np.swapaxes(run.draws, 1, 2)
    return z, x[:, :, 1:], np.diff(x, axis=2) / np.sqrt(STEP)


def mean_thermostat(temperature, noise, curvature=1.0):
    """z̄, to a share of SPREAD: where what the kicks bring is what is lost, with (1 − z/2) E p² = T.

    For constant z the covariance has k E x² = (1 − z/2) E p² and E p² (2z − z² − hkz/2) = 2cT + h s². And the z of a
    kick has met the |p|² it damps for half a step, which adds 2T Var z to the loss. So
    z̄ = c + h s²/(2T) − Var z + hkz̄/(4 − 2z̄), in which the printed rule, (2z − z² − hkz/2) T = 2cT + h s², has z²/2.
    """
    z = first = FRICTION + 0.5 * STEP * noise**2 / temperature - SPREAD
    for _ in range(100):
        z = first + 0.25 * STEP * curvature * z / (1.0 - 0.5 * z)
    return z


def printed_mean_thermostat(temperature, noise, curvature=1.0):
    """z̄ by the printed rule, at which E p² = T."""
    z = first = FRICTION + 0.5 * STEP * noise**2 / temperature
    for _ in range(100):
        z = first + 0.5 * z**2 + 0.25 * STEP * curvature * z
    return z


def spread(z, centre):
    """Mean of (z − centre)² of every chain; z is (chain, draw)."""
    return ((z - centre) ** 2).mean(axis=1)


def check_thermostat(z, temperature, noise, curvature=1.0):
    """z (chain, draw) has mean z̄ to a share of SPREAD and variance SPREAD to a share of O(z̄ + h); return z̄."""
    mean, first = mean_thermostat(temperature, noise, curvature), 0.5 * STEP * noise**2 / temperature
    means, squares, slack = z.mean(axis=1), spread(z, z.mean()), SPREAD * (0.05 + 0.35 * mean)
    assert deviation(means, mean, slack=0.25 * SPREAD) < SIGMAS
    assert deviation(means, printed_mean_thermostat(temperature, noise, curvature), slack=0.25 * SPREAD) > SIGMAS
    assert deviation(squares, SPREAD, slack) < SIGMAS
    if noise:
        for wrong in (0.0, 2.0 * first, 0.5 * first, *([first * temperature] if temperature != 1.0 else [])):
            assert deviation(means, mean - first + wrong, slack=SPREAD) > SIGMAS
    for wrong in (0.5, 2.0, 0.7, *([1 / temperature] if temperature != 1.0 else [])):  # the last: 1/γ in place of T/γ
        assert deviation(squares, wrong * SPREAD, slack) > SIGMAS
    return mean


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
@pytest.mark.parametrize(("dim", "noise"), [(1, 0.0), (1, 2.0), (4, 2.0)])
def test_the_thermostat_has_its_law_and_takes_up_the_noise(temperature, dim, noise):
    """E x² = T, whatever the noise, E p² = T/(1 − z̄/2) and z̄, to O(SPREAD); Var z = hT/(γD)."""
    z, x, p = thermostatted(gaussian(np.eye(dim)), temperature, noise, seed=35)
    mean = check_thermostat(z[:, 0], temperature, noise)
    kinetic, square = (p**2).mean(axis=(1, 2)) / temperature, (x**2).mean(axis=(1, 2)) / temperature
    assert deviation(kinetic, 1.0 / (1.0 - 0.5 * mean), slack=0.5 * SPREAD) < SIGMAS
    for wrong in (1.0, 1.0 + mean):  # the first: as printed
        assert deviation(kinetic, wrong, slack=0.5 * SPREAD) > SIGMAS
    assert deviation(square, 1.0, slack=SPREAD) < SIGMAS
    heated = 1.0 + 0.5 * STEP * noise**2 / (FRICTION * temperature)
    for wrong in (1.0 - 0.5 * mean, 1.0 + 0.5 * mean, *([heated] if noise else [])):  # the first: as printed
        assert deviation(square, wrong, slack=SPREAD) > SIGMAS


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_a_thermostat_per_coordinate_has_the_law_of_one_dimension(temperature):
    """Whatever the curvature k: hT/γ for each, not hT/(γD); each keeps its own k E x² at T, and E p² at T/(1 − z̄/2)."""
    curvatures = np.array([0.25, 1.0, 4.0])
    z, x, p = thermostatted(gaussian(np.diag(curvatures)), temperature, 2.0, seed=36, by_coordinate=True)
    for d, k in enumerate(curvatures):
        mean = check_thermostat(z[:, d], temperature, 2.0, k)
        kinetic = (p[:, d] ** 2).mean(axis=1) / temperature
        assert deviation(kinetic, 1.0 / (1.0 - 0.5 * mean), slack=0.5 * SPREAD) < SIGMAS
        assert deviation(kinetic, 1.0, slack=0.5 * SPREAD) > SIGMAS
        scaled = k * (x[:, d] ** 2).mean(axis=1) / temperature
        assert deviation(scaled, 1.0, slack=SPREAD) < SIGMAS
        assert deviation(scaled, 1.0 - 0.5 * mean, slack=SPREAD) > SIGMAS
    assert np.abs(np.corrcoef(z[:, :, -1].T)[np.triu_indices(3, 1)]).max() < SIGMAS / np.sqrt(THERMOSTAT_CHAINS)
    # One thermostat for all holds only the sum of their E p²: the stiff coordinate runs warmer than the soft one.
    z, x, p = thermostatted(gaussian(np.diag(curvatures)), temperature, 2.0, seed=36)
    kinetic, law = (p**2).mean(axis=2) / temperature, 1.0 / (1.0 - 0.5 * z.mean())
    assert deviation(kinetic.mean(axis=1), law, slack=0.5 * SPREAD) < SIGMAS
    if temperature == 0.25:  # where there is the most noise
        assert deviation(kinetic[:, 2], law, slack=0.5 * SPREAD) > SIGMAS


def test_unknown_gradient_noise_heats_the_others_by_closed_form_and_not_the_thermostat():
    noise, t, n = 2.0, 1.0, 20_000
    start = np.random.default_rng(37).standard_normal((n, 1))
    options = {"n_steps": 600, "thin": 600, "n_chains": n, "init": start, "seed": 37}
    sgld = sample(NORMAL, samplers.sgld(STEP, gradient_noise=noise), **options).draws.ravel()
    assert variance_deviation(sgld, closed(STEP, 1.0, t, noise)) < SIGMAS  # 1.05
    sampler = samplers.sghmc(STEP, friction=FRICTION, gradient_noise=noise)
    sghmc = sample(NORMAL, sampler, **options).draws.ravel()
    assert variance_deviation(sghmc, closed(STEP, FRICTION, t, noise)) < SIGMAS  # 1.81
    for draws in (sgld, sghmc):
        assert variance_deviation(draws, t) > SIGMAS
    sampler = samplers.sgnht(STEP, friction=FRICTION, inertia=STEP / SPREAD, gradient_noise=noise)
    sgnht = sample(NORMAL, sampler, **options).draws.ravel()
    slack = 3.0 * SPREAD
    assert deviation(sgnht**2, t, slack) < SIGMAS
    for wrong in (closed(STEP, 1.0, t, noise), closed(STEP, FRICTION, t, noise)):
        assert deviation(sgnht**2, wrong, slack) > SIGMAS


@pytest.mark.parametrize("by_coordinate", [False, True])
@pytest.mark.parametrize("scheme", ["deo", "all_pairs"])
def test_swaps_at_every_step_leave_every_rung_its_thermostat(scheme, by_coordinate):
    """Var z = hT/(γD) at the rung's own T; moved in one piece, z diverged here.

    An eighth of it may be missing, as without swaps; with momenta scaled by the temperatures alone it is a third.
    """
    h, inertia, friction, temperatures, n = 0.03, 2.0, 0.05, np.array([0.5, 1.0, 2.0]), 512
    move = dynamics.nose_hoover(friction=friction, inertia=inertia, by_coordinate=by_coordinate)
    exchange = tempering.replica_exchange(scheme=scheme, swap_every=1)
    sampler = Sampler("swapped", (h,) * 3, tuple(temperatures), dynamics=move, tempering=exchange)
    start = np.random.default_rng(39).standard_normal((n, 3, 2)) * np.sqrt(temperatures)[:, None]
    options = {"n_chains": n, "init": start, "seed": 39, "trace_every": 5, "keep_replicas": True}
    run = sample(gaussian(np.eye(2)), sampler, n_steps=3000, burn_in=1000, thin=5, **options)
    assert np.isfinite(run.replica_draws).all()
    for name in ("thermostat[0]", "thermostat[1]") if by_coordinate else ("thermostat",):
        for i, t in enumerate(temperatures):
            z, law = run.trace.fields[name][:, i, -400:], h * t / (inertia * (1 if by_coordinate else 2))
            squares, slack = spread(z, z.mean()), 0.15 * law
            assert deviation(squares, law, slack) < SIGMAS
            for wrong in (4.0 * law, 2.0 * law, 0.7 * law):  # the first: a standard deviation twice as large
                assert deviation(squares, wrong, slack) > SIGMAS
            assert deviation(z.mean(axis=1), friction, slack=1.2 * law) < SIGMAS
            assert deviation(z.mean(axis=1), 2.0 * friction, slack=1.2 * law) > SIGMAS
    for i, t in enumerate(temperatures):
        square = (run.replica_draws[:, i] ** 2).mean(axis=(1, 2)) / t
        assert deviation(square, 1.0, slack=h) < SIGMAS
        assert deviation(square, 0.9, slack=h) > SIGMAS


def test_a_thermostat_needs_its_temperature():
    """At temperature 0 it rests and the friction is c: plain descent with momentum, without noise."""
    schedule = schedules.custom(temperature=lambda steps: np.where(steps < 5, 0.0, 1.0))
    sampler = samplers.sgnht(0.1, friction=0.2, schedule=schedule)
    run = sample(NORMAL, sampler, n_steps=8, init=[1.0], seed=38, trace_every=1)
    x, p = 1.0, 0.0
    for k in range(5):
        p = 0.8 * p - np.sqrt(0.1) * x
        x += np.sqrt(0.1) * p
        assert run.draws[0, k, 0] == pytest.approx(x, rel=1e-13)
    thermostat = run.trace.fields["thermostat"][0, 0]
    assert (thermostat[:5] == 0.2).all()
    assert (thermostat[5:] != 0.2).all()
