"""Symmetries of energies that are known in closed form."""

import itertools

import numpy as np

from sysid.modes.images.symmetries import candidate_symmetries, new_symmetries, sentence, symmetries_of
from sysid.modes.search import mode_from

NAMES = ("k1", "k2", "a1", "a2", "c")
TIMES = np.linspace(0.0, 5.0, 40)
TRUTH = np.array([0.4, 2.1, 3.0, 1.7, 1.3])
NONE_LOG = np.zeros(5, np.bool_)


def two_exponentials(theta):
    """a1 exp(−k1 t) + a2 exp(−k2 t) + c² t at every θ (n, 5)."""
    k1, k2, a1, a2, c = theta.T[:, :, None]
    return a1 * np.exp(-k1 * TIMES) + a2 * np.exp(-k2 * TIMES) + c**2 * TIMES


def energy_of(model, truth, *, noise=0.05, prior=None):
    """Energy and gradient, by central differences, of normal errors about ``model``."""
    data = model(truth[None])[0] + noise * np.random.default_rng(0).standard_normal(TIMES.size)

    def energies(points):
        with np.errstate(over="ignore"):
            found = 0.5 * (((model(points) - data) / noise) ** 2).sum(axis=1)
        return found + (0.0 if prior is None else prior(points))

    def evaluate(points):
        steps = 1e-6 * np.eye(points.shape[1])
        slopes = [(energies(points + step) - energies(points - step)) / 2e-6 for step in steps]
        return energies(points), np.stack(slopes, axis=1)

    return evaluate


def found_words(evaluate, start, names, log, **asked):
    mode = mode_from(evaluate, start, None)
    return {one.words(names) for one in new_symmetries(symmetries_of(evaluate, mode, log, **asked), (mode,))}


def test_swaps_of_two_terms_and_the_sign_of_a_square_are_found():
    evaluate = energy_of(two_exponentials, TRUTH)
    assert found_words(evaluate, TRUTH, NAMES, NONE_LOG) == {"c → −c", "k1 ↔ k2, a1 ↔ a2"}


def test_a_prior_or_a_constraint_that_tells_the_sides_apart_leaves_no_symmetry():
    evaluate = energy_of(two_exponentials, TRUTH, prior=lambda at: 0.5 * ((at - TRUTH) ** 2).sum(axis=1))
    assert found_words(evaluate, TRUTH, NAMES, NONE_LOG) == set()
    evaluate = energy_of(two_exponentials, TRUTH)

    def ordered(at):
        return (at[:, 4] > 0.0) & (at[:, 0] < at[:, 1])

    assert found_words(evaluate, TRUTH, NAMES, NONE_LOG, contains=ordered) == set()


def test_logarithms_keep_their_sign_and_are_swapped_with_each_other_only():
    log = np.array([True, True, False, False, True])

    def model(points):
        return two_exponentials(np.where(log, np.exp(points), points))

    truth = np.where(log, np.log(np.where(log, TRUTH, 1.0)), TRUTH)
    assert found_words(energy_of(model, truth), truth, NAMES, log) == {"k1 ↔ k2, a1 ↔ a2"}


def test_two_signs_that_change_together_are_found():
    names = ("gain", "offset", "slope")

    def model(points):
        gain, offset, slope = points.T[:, :, None]
        return gain * np.tanh(offset + slope * TIMES)

    truth = np.array([2.0, -1.0, 0.6])
    evaluate = energy_of(model, truth)
    assert found_words(evaluate, truth, names, np.zeros(3, np.bool_)) == set()  # three signs change together

    def product(points):
        return model(np.stack([points[:, 0], points[:, 1] ** 2, points[:, 1] * points[:, 2]], axis=1))

    truth = np.array([2.0, 1.0, 0.6])
    evaluate = energy_of(product, truth)
    assert found_words(evaluate, truth, names, np.zeros(3, np.bool_)) == {"offset → −offset, slope → −slope"}


def test_a_mode_that_is_its_own_mirror_image_is_not_told_of():
    def quadratic(points):
        return 0.5 * (points**2).sum(axis=1), points

    mode = mode_from(quadratic, np.full(3, 0.2), None)
    assert symmetries_of(quadratic, mode, np.zeros(3, np.bool_)) == ()


def test_the_sentence_names_what_changes():
    evaluate = energy_of(two_exponentials, TRUTH)
    mode = mode_from(evaluate, TRUTH, None)
    words = sentence(symmetries_of(evaluate, mode, NONE_LOG), NAMES)
    assert words.startswith("the energy is unchanged by c → −c; by k1 ↔ k2, a1 ↔ a2: modes come in groups")


def test_candidates_of_many_parameters_come_one_by_one_swaps_among_the_first():
    """Two swaps at once of 100 parameters are 12 million, and flips of two of 40 signed ones 780."""
    log = np.ones(100, np.bool_)
    assert len(list(itertools.islice(candidate_symmetries(log), 5_000))) == 5_000
    signed = list(itertools.islice(candidate_symmetries(np.zeros(40, np.bool_)), 100))
    assert sum((one.sign < 0.0).any() for one in signed) == 40
    assert sum((one.order != np.arange(40)).any() for one in signed) == 60


def test_a_swap_with_both_signs_is_among_the_candidates():
    """(exp(r t) − exp(−d t))/(r + d) is unchanged by r → −d, d → −r."""
    swapped = np.array([-0.5, -0.8])
    given, found = np.array([0.8, 0.5]), candidate_symmetries(np.zeros(2, np.bool_))
    assert any(np.array_equal(one(given), swapped) for one in found)
