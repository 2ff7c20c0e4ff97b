"""Problems of identification: closed forms, coordinates, priors, constraints, minibatches, and what is refused."""

import numpy as np
import pytest
from numba import njit

from sysid import Series, identify, libraries, likelihoods, model_of, priors, systems
from sysid.function_constraints import compiled_forms
from sysid.likelihoods.interface import Prepared
from sysid.solvers.integrate import solve
from targets import domains
from tests.support.laws import deviation, estimates
from tests.sysid.right_hand_sides import decay
from toolkit import boundaries, check_gradient, sample, samplers

TIMES = np.arange(2001) * 0.01
RNG = np.random.default_rng(7)
TRUE = np.array([10.0, 28.0, 8.0 / 3.0])


def assert_mean(values, law):
    """The mean of independent values is that of the law, to 4.5 standard errors: one false alarm in 150,000."""
    assert abs(deviation(values, law)) < 4.5


def lorenz_series(noise=0.0, seed=0):
    """Exact states with velocities that have independent errors."""
    system = systems.lorenz()
    states = solve(system, TIMES, rtol=1e-10, atol=1e-10).states
    exact = np.array([system.rhs(0.0, tuple(x), tuple(TRUE)) for x in states])
    return Series(
        TIMES, states, system.states, velocities=exact + noise * np.random.default_rng(seed).normal(size=exact.shape)
    )


EXACT = lorenz_series()
NOISY = lorenz_series(noise=2.0)


def test_the_posterior_is_that_of_least_squares():
    """Mean and covariance against NumPy's least squares of the stacked equations, with the noise known."""
    problem = identify(NOISY, systems.lorenz(), likelihood=likelihoods.derivative(noise=2.0))
    x, y, z = NOISY.values.T
    zero = np.zeros_like(x)
    design = np.concatenate([np.stack(c, axis=1) for c in ([y - x, zero, zero], [zero, x, zero], [zero, zero, -z])])
    right = np.concatenate([NOISY.velocities[:, 0], NOISY.velocities[:, 1] + y + x * z, NOISY.velocities[:, 2] - x * y])
    mean, rest = np.linalg.lstsq(design, right)[:2]
    covariance = 4.0 * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(problem.posterior.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(problem.posterior.covariance, covariance, rtol=1e-8, atol=1e-15)
    lowest = 0.5 * rest[0] / 4.0 + right.size * np.log(np.sqrt(2 * np.pi) * 2.0)
    energy, gradient = problem.target.evaluate(mean[None])
    assert energy[0] == pytest.approx(lowest, rel=1e-10)
    assert np.abs(gradient).max() < 1e-6
    assert np.abs((problem.posterior.mean - TRUE) / problem.posterior.sd).max() < 4.5


@pytest.mark.parametrize("noise", ["mean", "estimated", 2.0, (1.0, 2.0, 3.0)])
@pytest.mark.parametrize("scaled", [False, True])
def test_gradients(noise, scaled):
    problem = identify(
        NOISY, libraries.polynomial(("x", "y", "z"), 1), likelihood=likelihoods.derivative(noise=noise),
        prior={"dx:x": priors.gaussian(1.0, 2.0), "dx:y": priors.laplace(0.0, 3.0),
               "dy:x": priors.spike_and_slab(0.1, 20.0), "dy:y": priors.horseshoe(0.5)},
    )  # fmt: skip
    if scaled:
        root = np.tril(RNG.normal(size=(12, 12))) + 3.0 * np.eye(12)
        problem = problem.scaled(problem.prepared.start + 0.1, 0.01 * root)
    points = problem.positions(problem.prepared.start + RNG.normal(size=(16, 12)))
    assert check_gradient(problem, points=points).compared >= 150  # and raises where one is off


def test_log_coordinates_carry_their_jacobian():
    """Draws of a log-normal prior alone, sampled as logarithm and as itself inside x > 0, have one law."""
    system = systems.lorenz()
    series = Series(EXACT.times[:3], EXACT.values[:3], EXACT.states, velocities=EXACT.velocities[:3])
    prior = {"sigma": priors.lognormal(0.5, 0.4), "rho": priors.gaussian(28.0, 1.0), "beta": priors.gaussian(2.6, 0.1)}
    wide = likelihoods.derivative(noise=1e6)
    means = []
    for log in (None, ()):
        problem = identify(series, system, likelihood=wide, prior=prior, log=log)
        scaled = problem.scaled([1.6, 28.0, 2.6], np.diag([0.4 if log is None else 0.7, 1.0, 0.1]))
        mover = samplers.hmc(0.3, n_leapfrogs=8) if log is None else samplers.mala(0.2, boundary=boundaries.reject())
        run = sample(
            scaled, mover, n_steps=6000, burn_in=500, thin=5, n_chains=64, seed=3, init=scaled.starts(64, seed=1)
        )
        sigma = scaled.parameters(run)[..., 0]
        assert (sigma > 0).all()
        means.append(sigma.mean(axis=1))
    law = np.exp(0.5 + 0.08)
    for mean in means:
        assert_mean(mean, law)
        with pytest.raises(AssertionError):
            assert_mean(mean, np.exp(0.5))  # without the Jacobian, its logarithm's mean


def test_a_scaled_posterior_is_standard_normal():
    problem = identify(NOISY, systems.lorenz()).scaled()
    np.testing.assert_allclose(problem.truth.mean, 0.0, atol=1e-7)
    np.testing.assert_allclose(problem.truth.covariance, np.eye(3), atol=1e-8)
    points = problem.truth.independent_draws(1000, seed=1)
    np.testing.assert_allclose(problem.positions(problem.parameters(points)), points, atol=1e-6)


@pytest.mark.cases(1)
@pytest.mark.parametrize("batches", ["independent", "windows"])
def test_batches_are_unbiased_and_whole_at_the_end(batches):
    """The mean gradient over many steps is that of all data, the energies' too; 5 of 100 too few are noticed."""
    batch = likelihoods.derivative(noise="mean", batch_size=100, batches=batches)
    problem = identify(NOISY, systems.lorenz(), likelihood=batch)
    full = identify(NOISY, systems.lorenz(), likelihood=likelihoods.derivative(noise="mean"))
    point = TRUE + np.array([0.5, -0.3, 0.2])
    energies, slopes = (values[..., 0, :].T for values in estimates(problem.target, point[None], 4000)[:2])
    energy, slope = full.target.evaluate(point[None])
    assert_mean(energies, energy[0])
    for k in range(3):
        assert_mean(slopes[:, k], slope[0, k])
        with pytest.raises(AssertionError):
            assert_mean(slopes[:, k] * 95 / 100, slope[0, k])
    np.testing.assert_allclose(problem.target.evaluate(point[None])[1], slope, rtol=1e-12)
    assert slopes.std() > 0.0


def test_a_batch_of_all_windows_is_all_data():
    batch = likelihoods.derivative(noise="mean", batch_size=len(NOISY), batches="windows")
    problem = identify(NOISY, systems.lorenz(), likelihood=batch)
    energies, slopes = (values[..., 0, :].T for values in estimates(problem.target, (TRUE + 0.3)[None], 16)[:2])
    energy, slope = identify(NOISY, systems.lorenz(), likelihood=likelihoods.derivative(noise="mean")).target.evaluate(
        (TRUE + 0.3)[None]
    )
    np.testing.assert_allclose(energies, energy[0], rtol=1e-10)
    np.testing.assert_allclose(slopes, np.repeat(slope, 16, axis=0), rtol=1e-9)


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    ("constraints", "inside", "outside"),
    [
        ("sigma > 1 + beta", [4.0, 0.0, 2.9], [4.0, 0.0, 3.1]),
        (["rho >= 1", "beta > 0"], [0.0, 1.1, 0.1], [0.0, 0.9, 0.1]),
        ("1 < 2*rho - sigma/4 < 9", [4.0, 1.5, 0.0], [4.0, 5.1, 0.0]),
        ("-(sigma + rho) < -3*beta", [2.0, 2.0, 1.3], [2.0, 2.0, 1.4]),
        (domains.box([0.0, 0.0, 0.0], [1.0, 2.0, np.inf]), [0.5, 1.0, 9.0], [0.5, 2.1, 9.0]),
        ([lambda x: 1.0 - x[0] * x[0] - x[1] * x[1], "beta > 0"], [0.5, 0.5, 0.1], [0.8, 0.8, 0.1]),
    ],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_constraints(constraints, inside, outside, scaled):
    problem = identify(NOISY, systems.lorenz(), constraints=constraints)
    problem = problem.scaled() if scaled else problem
    assert problem.contains(problem.positions([inside, outside])).tolist() == [True, False]


def test_a_curved_constraint_is_reflected_at_its_nearest_point():
    """The law inside a disc of two parameters, by SGLD, against the truth's draws that fall inside."""
    inside = lambda x: 0.09 - (x[0] - 10.0) * (x[0] - 10.0) - (x[1] - 28.0) * (x[1] - 28.0)  # noqa: E731
    energy = likelihoods.derivative(noise="mean")
    problem = identify(EXACT, systems.lorenz(), likelihood=energy, constraints=[inside, "sigma > 9.9"]).scaled()
    free = identify(EXACT, systems.lorenz(), likelihood=energy).scaled()
    points = free.truth.independent_draws(400_000, seed=1)
    exact = free.parameters(points)
    kept = (inside(exact.T) >= 0.0) & (exact[:, 0] > 9.9)
    assert (problem.contains(points) == kept).all()
    mover = samplers.sgld(0.003, boundary=boundaries.reflect())
    run = sample(
        problem, mover, n_steps=12_000, n_chains=128, burn_in=2000, thin=10, seed=1, init=problem.starts(128, seed=0)
    )
    means = problem.parameters(run).mean(axis=1)
    for k in range(2):
        assert_mean(means[:, k], exact[kept, k].mean())
    with pytest.raises(AssertionError):
        assert_mean(means[:, 0], exact[:, 0].mean())


@pytest.mark.cases(1)
@pytest.mark.parametrize("far", [1.01, 1.5, 4.0])
def test_the_foot_on_a_curved_wall_is_its_nearest_point(far):
    """Of a ball about the truth, from ``far`` radii: along the radius; the first tangent plane alone misses it."""
    ball = lambda x: 0.04 - (x[0] - 10.0) ** 2 - (x[1] - 28.0) ** 2 - (x[2] - 2.5) ** 2  # noqa: E731
    problem = identify(NOISY, systems.lorenz(), constraints=ball)
    centre, direction = np.array([10.0, 28.0, 2.5]), np.array([[2.0, -1.0, 2.0]]) / 3.0
    position, foot, outside = (centre + 0.2 * far * direction).T.copy(), np.zeros((3, 1)), np.ones(1)
    problem.domain.locate(position, foot, outside, problem.domain.float_table, problem.domain.int_table)
    assert outside[0] == 1.0
    np.testing.assert_allclose(foot.T, centre + 0.2 * direction, rtol=1e-9)


def test_a_gaussian_prior_adds_its_precision_and_its_mean():
    """Conjugate: precision Λ + 1/s², mean weighted by precisions; the target's truth and energy are of the same."""
    likelihood = likelihoods.derivative(noise=2.0)
    flat = identify(NOISY, systems.lorenz(), likelihood=likelihood).posterior
    prior = {"sigma": priors.gaussian(12.0, 0.01), "beta": priors.gaussian(2.0, 0.02)}
    problem = identify(NOISY, systems.lorenz(), likelihood=likelihood, prior=prior)
    own, location = np.array([1e4, 0.0, 2500.0]), np.array([12.0, 0.0, 2.0])
    precision = np.linalg.inv(flat.covariance)
    mean = np.linalg.solve(precision + np.diag(own), precision @ flat.mean + own * location)
    np.testing.assert_allclose(problem.posterior.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(
        np.linalg.inv(problem.posterior.covariance), precision + np.diag(own), rtol=1e-7, atol=1e-6
    )
    energies, slopes = problem.target.evaluate(np.stack([mean, mean + 0.01]))
    assert np.abs(slopes[0]).max() < 1e-6
    assert energies[0] == pytest.approx(problem.truth.energy_quantiles([0.0])[0], abs=1e-6)
    quadratic = 0.5 * 0.01**2 * (precision + np.diag(own)).sum()
    assert energies[1] - energies[0] == pytest.approx(quadratic, rel=1e-6)


def test_inclusion_is_the_share_of_the_slab():
    law = priors.spike_and_slab(0.1, 5.0, inclusion=0.3)
    x = np.array([0.0, 0.1, 0.5, 3.0])
    slab, spike = 0.3 * np.exp(-0.5 * (x / 5) ** 2) / 5, 0.7 * np.exp(-0.5 * (x / 0.1) ** 2) / 0.1
    np.testing.assert_allclose(law.inclusion(x), slab / (slab + spike), rtol=1e-12)
    assert priors.gaussian().inclusion(x).tolist() == [1.0] * 4


def test_the_horseshoe_is_a_mixture_close_to_it():
    """Against the exact density z^(-½) e^z E1(z) with z = x²/2, to 1 % from 1e-3 to 100 scales."""
    from scipy.special import exp1

    from sysid.priors import WIDTH, add_mixture, prior_table

    law = priors.horseshoe(1.0)
    x = np.geomspace(1e-3, 100.0, 40)
    parts = prior_table((law,))[WIDTH:]
    energy, slope = np.zeros(40), np.zeros(40)
    add_mixture(x, energy, slope, parts)
    z = 0.5 * x * x
    exact = np.log(np.exp(np.minimum(z, 700)) * exp1(np.minimum(z, 700)))
    exact = np.where(z > 600, -np.log(z), exact)
    difference = -energy - exact
    assert np.ptp(difference) < 0.02
    assert np.abs(np.gradient(energy, x)[5:-5] / slope[5:-5] - 1.0).max() < 0.2


@pytest.mark.parametrize("law", [priors.gaussian(1.0, 2.0), priors.lognormal(0.3, 0.5), priors.laplace(1.0, 0.7),
                                 priors.spike_and_slab(0.1, 3.0, inclusion=0.2)])  # fmt: skip
def test_draws_of_a_prior_have_its_moments(law):
    draws = law.draws(200_000, np.random.default_rng(0))
    mean, sd = {1: (1.0, 2.0), 2: (np.exp(0.3 + 0.125), None), 3: (1.0, 0.7 * np.sqrt(2)),
                4: (0.0, np.sqrt(0.8 * 0.01 + 0.2 * 9.0))}[law.kind]  # fmt: skip
    assert_mean(draws, mean)
    if sd is not None:
        assert_mean((draws - mean) ** 2, sd**2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: identify(NOISY, systems.lorenz(), constraints="sigma"), "must be inequalities such as"),
        (
            lambda: identify(NOISY, systems.lorenz(), constraints="sigma > tau"),
            "must name parameters .*got 'tau'",
        ),
        (lambda: identify(NOISY, systems.lorenz(), constraints="sigma*rho > 1"), "must be linear"),
        (lambda: identify(NOISY, systems.lorenz(), constraints="1 > 2"), "must hold a parameter"),
        (
            lambda: identify(NOISY, systems.lorenz(), constraints=["beta > 3", "beta < 1"]),
            "must be <|empty|interior",
        ),
        (
            lambda: identify(NOISY, systems.lorenz(), prior={"tau": priors.gaussian()}),
            "prior must name parameters",
        ),
        (lambda: identify(NOISY, systems.lorenz(), likelihood="magic"), "likelihood must be one of"),
        (lambda: identify(NOISY, systems.lorenz(), log=["tau"]), "log must name parameters"),
        (
            lambda: identify(NOISY, systems.lotka_volterra()),
            "data must have states of the model, prey, predator, got 'x'",
        ),
        (
            lambda: identify(Series(TIMES, NOISY.values, NOISY.states), systems.lorenz()),
            "needs a Series with velocities",
        ),
        (lambda: likelihoods.derivative(noise=0.0), "noise must be one or one per state, each > 0"),
        (lambda: likelihoods.derivative(velocities="guess"), "velocities must be one of"),
        (lambda: likelihoods.derivative(batch_size=0), "batch_size must be ≥ 1"),
        (lambda: likelihoods.derivative(window=6), "window must be odd, got 6"),
        (lambda: likelihoods.derivative(velocities="spline", window=3), "window must be ≥ 5"),
        (
            lambda: identify(NOISY, systems.lorenz(), constraints=["sigma > 10", "sigma < 5"]),
            "^constraints must leave sigma an interval with an interior, got sigma > 10 and sigma < 5$",
        ),
        (
            lambda: identify(NOISY, systems.lorenz(), log=["rho"], constraints=["2*rho > 60", "rho < 28"]),
            "^constraints must leave rho an interval with an interior, got rho > 30 and rho < 28$",
        ),
        (
            lambda: identify(
                NOISY, systems.lorenz(), prior={"beta": priors.lognormal(0.0, 1.0)}, log=(), constraints="beta < -1"
            ),
            "^constraints must leave beta an interval with an interior, got beta > 0 and beta < -1$",
        ),
        (lambda: priors.spike_and_slab(2.0, 1.0), "spike must be finite and < 1"),
        (lambda: priors.gaussian(0.0, -1.0), "sd must be"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_window_that_is_no_number_is_refused_for_every_velocity():
    for velocities in ("exact", "finite_difference", "spline", "savitzky_golay"):
        with pytest.raises(TypeError, match="window must be an integer, got 'seven'"):
            likelihoods.derivative(velocities=velocities, window="seven")


def test_terms_that_are_alike_are_named():
    """A state that does not vary makes its terms multiples of the constant."""
    values = NOISY.values.copy()
    values[:, 2] = 5.0
    series = Series(TIMES, values, NOISY.states, velocities=NOISY.velocities)
    with pytest.raises(ValueError, match=r"leave a direction of .*dx:z.* What looks wrong .*: 'z' is constant"):
        identify(series, libraries.polynomial(("x", "y", "z"), 1))
    with pytest.warns(UserWarning, match="identify: 'z' is constant, 5: nothing can be learnt from it"):
        problem = identify(series, libraries.polynomial(("x", "y", "z"), 1), prior=priors.gaussian(0.0, 10.0))
    assert np.isfinite(problem.posterior.mean).all()


def test_missing_rows_are_left_out():
    values, velocities = NOISY.values.copy(), NOISY.velocities
    values[5:9, 1] = np.nan
    some = identify(Series(TIMES, values, NOISY.states, velocities=velocities), systems.lorenz())
    kept = np.r_[0:5, 9 : len(TIMES)]
    whole = identify(Series(TIMES[kept], values[kept], NOISY.states, velocities=velocities[kept]), systems.lorenz())
    np.testing.assert_allclose(some.posterior.mean, whole.posterior.mean, rtol=1e-12)


@pytest.mark.parametrize("velocities", ["finite_difference", "savitzky_golay", "spline"])
def test_velocities_from_clean_states(velocities):
    """From exact states every 0.01: to the error of each method, 1 %."""
    series = Series(TIMES[:500], EXACT.values[:500], EXACT.states)
    problem = identify(series, systems.lorenz(), likelihood=likelihoods.derivative(velocities=velocities, window=5))
    np.testing.assert_allclose(problem.posterior.mean, TRUE, rtol=0.01)


def test_a_problem_has_the_name_given():
    named, plain = (identify(NOISY, systems.lorenz(), **given) for given in ({"name": "lake"}, {}))
    assert (named.name, plain.name) == ("lake", "lorenz by derivative")
    assert repr(named.scaled()).startswith("<Identification 'lake' of 3 parameters")


def test_estimates_name_their_numbers():
    problem = identify(NOISY, model_of(libraries.polynomial(("x", "y", "z"), 2), free=["dx:x", "dx:y"])).scaled()
    run = sample(problem, samplers.mala(0.8), n_steps=2000, burn_in=100, n_chains=16, seed=1)
    table = problem.estimates(run)
    np.testing.assert_allclose(table.mean, problem.posterior.mean, atol=5 * problem.posterior.sd.max() / 50)
    np.testing.assert_allclose(table.sd, problem.posterior.sd, rtol=0.1)
    assert (table.lower < table.median).all()
    assert (table.median < table.upper).all()
    assert str(table).count("\n") == 3
    assert "| dx:y |" in str(table)


@pytest.mark.usefixtures("nothing_kept")
def test_the_function_of_a_constraint_is_kept_on_disk():
    for hits in (0, 1):
        forms = compiled_forms.__wrapped__(lambda q: 3.0 - q[0] ** 2)
        assert [form((number,)) for form, number in zip(forms, (1.0, 1.0j), strict=True)] == [2.0, 4.0]
        assert [sum(form._cache_hits.values()) for form in forms] == [hits, hits]


@njit
def square(theta, energy, slope, numbers, work, about=1.0):
    for lane in range(energy.size):
        if theta[0, lane] > 3.0:
            raise ValueError("rate too large")
        energy[lane], slope[0, lane] = 0.5 * (theta[0, lane] - about) ** 2, theta[0, lane] - about


def test_the_kernel_of_a_likelihood_of_ones_own_may_raise_and_have_defaults():
    class Square:
        def prepare(self, data, model):
            return Prepared(("rate",), square, np.zeros(1), 1, (False,), np.ones(1))

    fading = systems.own(decay, states=["x"], parameters=["rate"], usual=[1.0], start=[1.0])
    times = np.linspace(0.0, 1.0, 5)
    problem = identify(Series(times, np.exp(-times)[:, None], ("x",)), fading, likelihood=Square())
    energy, slope = problem.target.evaluate([[1.5], [0.0]])
    np.testing.assert_array_equal(energy, [0.125, 0.5])
    np.testing.assert_array_equal(slope, [[0.5], [-1.0]])
    with pytest.raises(ValueError, match="rate too large"):
        problem.target.evaluate([[4.0]])
