"""The fit from the guess: the start is no higher than least squares from it; modes count where the start has none."""

import dataclasses
import functools
import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import scipy

from sysid import Series, identify, priors, systems
from sysid.modes.guess_fit import Guesses, Objective, lowest_start
from sysid.modes.laplace import laplace
from sysid.priors import flat
from tests.sysid.right_hand_sides import decay_by_product

TIMES = np.linspace(0.0, 4.0, 21)
DATA = 2.0 * np.exp(-0.8 * TIMES) + 0.05 * np.random.default_rng(0).standard_normal(21)


class Decay:
    """a exp(−b t) + 0 c with normal errors of sd ``sd``: closed form, and no word on c."""

    names = ("a", "b", "c", "sd")
    positive = (False, False, False, True)
    numbers = DATA
    scale_rows = np.full(21, 3)

    def residuals(self, theta):
        a, b, _, sd = theta.T[..., None]
        return (a * np.exp(-b * TIMES) - DATA) / sd

    def evaluate(self, theta):
        r, (a, b, _, sd) = self.residuals(theta), theta.T[..., None]
        decay = np.exp(-b * TIMES) / sd
        slopes = [
            (r * decay).sum(1),
            -(r * a * TIMES * decay).sum(1),
            0.0 * theta[:, 2],
            (21 - (r**2).sum(1)) / sd[:, 0],
        ]
        return 0.5 * (r**2).sum(1) + 21 * np.log(sd[:, 0] * np.sqrt(2 * np.pi)), np.stack(slopes, axis=1)


class Stub(NamedTuple):
    """A search that finds ``theta``, or raises ``error``."""

    theta: np.ndarray
    error: Exception | None = None
    thetas: tuple = (np.array([5.0, 0.2, 3.0, 0.5]),)

    def guesses(self):
        return Guesses(Decay(), self.thetas, np.zeros(4))

    def settled(self, guesses, theta):
        if isinstance(self.error, TimeoutError):
            raise self.error  # nothing may be evaluated once the time is up
        return guesses.energy, theta

    def run(self):
        if self.error is not None:
            raise self.error
        return Decay(), self.theta


LAWS = (flat(), flat(), priors.gaussian(-1.0, 0.5), flat())
WRONG = np.array([0.1, 3.0, 0.0, 2.0])


def laws_of(names):
    return LAWS


def closed_form():
    """Least squares by SciPy, with the prior's mean of c and the errors' root mean square."""
    found = scipy.optimize.least_squares(lambda q: q[0] * np.exp(-q[1] * TIMES) - DATA, [5.0, 0.2], xtol=1e-12)
    return np.array([*found.x, -1.0, np.sqrt(np.mean(found.fun**2))])


def test_the_fit_from_the_guess_is_least_squares_with_priors():
    _, theta = lowest_start(Stub(WRONG), laws_of, lambda energies: None)
    np.testing.assert_allclose(theta, closed_form(), rtol=1e-5)


def test_what_the_search_finds_stays_to_the_bit_where_it_is_as_low():
    found = closed_form() * (1.0 + 1e-7)
    assert lowest_start(Stub(found), laws_of, lambda energies: None)[1] is found
    higher = closed_form() * [1.0, 1.02, 1.0, 1.0]
    assert lowest_start(Stub(higher), laws_of, lambda energies: None)[1] is not higher


@pytest.mark.parametrize("error", [ValueError("data must be near a solution"), TimeoutError("the time is up")])
def test_where_the_search_fails_the_fit_from_the_guess_is_the_start(error):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, theta = lowest_start(Stub(WRONG, error), laws_of, lambda energies: None)
    np.testing.assert_allclose(theta, closed_form(), rtol=1e-5)
    said = [str(warning.message) for warning in caught]
    assert said == (["identify: the time is up. The result is the fit from the usual parameters"]
                    if isinstance(error, TimeoutError) else [])  # fmt: skip
    beyond = Stub(WRONG, error, (np.array([5.0, 0.2, 3.0, -0.5]),))
    with pytest.raises(type(error), match=str(error)):
        lowest_start(beyond, laws_of, lambda energies: None)


def test_a_fit_whose_time_is_up_is_not_taken():
    def count(energies):
        raise TimeoutError("the time is up")

    with pytest.raises(TimeoutError, match="the time is up"):
        lowest_start(Stub(WRONG, TimeoutError("the time is up")), laws_of, count)
    assert lowest_start(Stub(WRONG), laws_of, count)[1] is WRONG


def test_slopes_are_those_of_the_energy_with_every_prior():
    laws = (priors.laplace(1.0, 0.3), priors.lognormal(0.2, 0.7), priors.gaussian(-1.0, 0.5), flat())
    objective = Objective(Decay(), laws, np.array([0.0, 0.0, 0.0, 0.01]))
    point = np.array([1.7, -0.3, 0.4, -2.0])
    (energy,), (slope,) = objective.evaluate(point[None])
    steps = 1e-6 * np.eye(4)
    differences = (objective.evaluate(point + steps)[0] - objective.evaluate(point - steps)[0]) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-5)
    theta = np.array([1.7, np.exp(-0.3), 0.4, np.exp(-2.0)])
    expected = Decay().evaluate(theta[None])[0][0] + 0.7 / 0.3 + 0.5 * (0.5 / 0.7) ** 2 + 0.5 * (1.4 / 0.5) ** 2
    assert energy == pytest.approx(expected + 21 * (0.01 / np.exp(-2.0)) ** 2)


def binding(t, x, p):
    """Substrate, complex and product of an enzyme of total 1 (Michaelis & Menten 1913; Briggs & Haldane 1925)."""
    bound = p[0] * x[0] * (1.0 - x[1])
    return (-bound + p[1] * x[1], bound - (p[1] + p[2]) * x[1], p[2] * x[1])


TRUTH, START = np.array([2.0, 0.5, 1.0]), np.array([5.0, 0.1, 0.1])
GUESS, GUESSED_START = TRUTH * [1.6, 0.7, 1.3], START * [0.8, 1.2, 1.1]
ENZYME = systems.own(
    binding, states=("S", "C", "P"), parameters=("on", "off", "cat"), usual=GUESS, start=GUESSED_START, name="enzyme"
)
PRIORS = {name: priors.lognormal(np.log(value), 1.0) for name, value in zip(ENZYME.parameters, GUESS, strict=True)} | {
    f"{name}(0)": priors.lognormal(np.log(value), 0.5) for name, value in zip("SC", GUESSED_START[:2], strict=True)
}


def solution(times, theta):
    """The product of the enzyme, by LSODA."""
    return scipy.integrate.solve_ivp(
        lambda t, x: binding(t, x, theta[:3]), (0.0, times[-1]), theta[3:6], t_eval=times, method="LSODA", rtol=1e-8,
        atol=1e-10,
    ).y[2]  # fmt: skip


def product_alone(seed):
    """Data of the product, and its exact solution's errors."""
    times = np.linspace(0.0, 12.0, 25)
    exact = solution(times, np.append(TRUTH, START))
    return Series(times, (exact + 0.08 * np.random.default_rng(seed).standard_normal(25))[:, None], ("P",))


def energy_of(problem, theta):
    return float(problem.target.evaluate(problem.positions(np.atleast_2d(theta)))[0][0])


@functools.cache
def identified():
    """The problem of the product alone, with priors about the guess."""
    return identify(product_alone(0), ENZYME, likelihood="trajectory", prior=PRIORS, n_searches=2)


@pytest.mark.slow
def test_two_of_three_states_hidden_the_start_is_no_higher_than_the_guess_nor_than_least_squares():
    data, problem = product_alone(0), identified()
    location = np.log(np.append(GUESS, GUESSED_START[:2]))

    def residuals(v):
        theta = np.append(np.exp(v[:5]), v[5])
        prior = (v[:5] - location) / [1.0, 1.0, 1.0, 0.5, 0.5]
        return np.append((solution(data.times, theta) - data.values[:, 0]) / 0.08, prior)

    guess = np.append(location, GUESSED_START[2])
    peer = scipy.optimize.least_squares(residuals, guess, diff_step=1e-5)
    for v in (guess, peer.x):
        noise = 0.08 * np.sqrt(np.mean(residuals(v)[:25] ** 2))
        energy = energy_of(problem, np.concatenate([np.exp(v[:5]), [v[5], noise]]))
        assert energy_of(problem, problem.usual_start()) < energy + 1e-2
    scaled = problem.scaled()
    assert problem.modes.energies[0] <= energy_of(scaled, scaled.parameters(np.zeros(7))) + 1e-6 < energy + 1e-2


def test_a_mode_found_elsewhere_is_where_scaled_coordinates_and_chains_begin():
    """The start's own search failed: the only mode that is known is not the start's."""
    problem = identified()
    (mode,) = problem.found
    assert mode.is_of_start
    own = laplace(problem.target, problem.positions(problem.usual_start()))
    np.testing.assert_array_equal(problem.scaled().coordinates.shift, own.position)
    np.testing.assert_array_equal(problem.starts(2, seed=0), problem.positions([problem.usual_start()] * 2))
    far = problem.usual_start() * [30.0, 1.0, 1e-3, 1.0, 1.0, 1.0, 1e-2]
    for start in (far, np.full(7, 1e200)):  # of a high and of an infinite energy
        lost = dataclasses.replace(
            problem, prepared=problem.prepared._replace(start=start), found=(mode._replace(is_of_start=False),)
        )
        scaled = lost.scaled()
        np.testing.assert_allclose(scaled.coordinates.shift, mode.position, atol=1e-3 * mode.sd.min())
        starts = lost.starts(3, seed=0)
        np.testing.assert_array_equal(starts, np.tile(mode.position, (3, 1)))
    unknown = dataclasses.replace(lost, found=())
    with pytest.raises(ValueError, match=r"infinite at its start, on = 1e.200, off = "):
        unknown.scaled()


def test_a_problem_without_a_mode_says_so_and_names_its_parameters():
    """x′ = −a b x: the data tell the product alone."""
    times = np.linspace(0.0, 8.0, 41)
    values = 2.0 * np.exp(-0.5 * times) + 0.03 * np.random.default_rng(0).standard_normal(41)
    ridge = systems.own(decay_by_product, states=("x",), parameters=("a", "b"), usual=(1.0, 0.4), start=(1.5,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = identify(Series(times, values[:, None], ("x",)), ridge, likelihood="trajectory", n_searches=2)
        problem.scaled()
    said = [str(warning.message) for warning in caught]
    assert problem.found == ()
    words = r"identify: no mode was found: the search from the start and 2 from other .* along [ab], [ab]"
    assert any(re.match(words, one) for one in said)
    assert any("mostly along a: data" in one or "mostly along b: data" in one for one in said)


def test_a_guess_that_fails_leaves_the_others_and_the_search():
    """A division by a complex 0, at which Numba raises, at the first guess; then at all of them."""

    class Raising(Decay):
        def residuals(self, theta):
            if ((theta[:, 0] > 6.5) & (theta[:, 0] != 7.0)).any():  # as soon as it is moved
                raise ZeroDivisionError
            return super().residuals(theta)

    class Search(Stub):
        def guesses(self):
            return Guesses(Raising(), self.thetas, np.zeros(4))

    first, second = np.array([7.0, 0.2, 3.0, 0.5]), np.array([5.0, 0.2, 3.0, 0.5])
    _, theta = lowest_start(Search(WRONG, None, (first, second)), laws_of, lambda energies: None)
    np.testing.assert_allclose(theta, closed_form(), rtol=1e-5)
    assert lowest_start(Search(WRONG, None, (first,)), laws_of, lambda energies: None)[1] is WRONG


def test_where_there_is_no_guess_the_search_goes_on():
    class Search(Stub):
        def guesses(self):
            raise ValueError("step must leave at most 1000000 steps")

    assert lowest_start(Search(WRONG), laws_of, lambda energies: None)[1] is WRONG
