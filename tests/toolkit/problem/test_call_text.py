"""What objects show of themselves: one line, which makes them again where a constructor has made them."""

import dataclasses
import pickle

import numpy as np
import pytest

import targets
from targets import classics, constrained, domains, mixtures, shapes
from toolkit import Sampler, boundaries, cycles, dynamics, samplers, schedules, tempering, thermostats
from toolkit.problem import is_inside
from toolkit.problem.call_text import argument_text, recorded

NAMES = {
    "Sampler": Sampler, "boundaries": boundaries, "classics": classics, "constrained": constrained, "cycles": cycles,
    "domains": domains, "mixtures": mixtures, "samplers": samplers, "schedules": schedules, "shapes": shapes,
    "tempering": tempering, "thermostats": thermostats,
}  # fmt: skip
LONGEST = 300
SAMPLERS = [getattr(samplers, name)() for name in samplers.__all__ if name != "Sampler"]
OTHERS = [
    samplers.sgld(0.25, temperature=[1.0, 2.0], schedule=schedules.polynomial_decay(0.6, offset=3.0)),
    samplers.sgld(boundary=boundaries.reflect(max_bounces=3)),
    samplers.r2sgld(step_sizes=(0.01, 0.02), temperatures=(1.0, 4.0), swap_every=5),
    samplers.hmc(0.3, n_leapfrogs=4, boundary=boundaries.penalise(2.5)),
    schedules.constant(), schedules.exponential_decay(0.5, every=7), schedules.cosine_cycles(4, floor=0.1),
    boundaries.ignore(), boundaries.reject(), boundaries.penalise_as_printed(0.5),
]  # fmt: skip
PLACES = [
    shapes.flower(), shapes.star(points=7), domains.box([0.0, -np.inf], [1.0, np.inf]), domains.ball([0.0, 1.0], 2.0),
    domains.ordered(3, lower=0.0), domains.intersection(domains.simplex(2), domains.ball([0.0, 0.0], 0.5)),
]  # fmt: skip


def again(value):
    """What the text of ``value`` makes."""
    return eval(repr(value), {"__builtins__": {"float": float}}, dict(NAMES))  # of this file's own objects


@pytest.mark.parametrize("value", [*SAMPLERS, *OTHERS], ids=repr)
def test_the_text_makes_an_equal_object(value):
    assert again(value) == value
    assert "\n" not in repr(value)
    assert len(repr(value)) < LONGEST


@pytest.mark.parametrize("entry", targets.catalogue(), ids=lambda entry: entry.name)
def test_problems_of_the_catalogue_are_one_short_line(entry):
    text = repr(entry)
    assert "\n" not in text
    assert len(text) < LONGEST
    if text.startswith("<") or "<array" in text:
        return
    made = again(entry)
    target, other = (getattr(one, "target", one) for one in (entry, made))
    assert (made.name, target.energy_gradient) == (entry.name, other.energy_gradient)
    np.testing.assert_array_equal(target.parameters, other.parameters)


@pytest.mark.parametrize("place", PLACES, ids=repr)
def test_places_are_made_again(place):
    made = again(place)
    points = np.random.default_rng(0).normal(size=(50, made.domain.dim))
    np.testing.assert_array_equal(is_inside(made.domain, points), is_inside(place.domain, points))


def test_a_problem_shows_its_target_and_its_walls():
    problem = constrained(mixtures.gaussian_mixture([[0.0, 0.0], [2.0, 1.0]], 0.5), shapes.heart(radius=3.0))
    assert repr(problem) == (
        "constrained(mixtures.gaussian_mixture([[0.0, 0.0], [2.0, 1.0]], 0.5), shapes.heart(radius=3.0))"
    )
    assert repr(again(problem)) == repr(problem)


def test_what_is_changed_shows_its_parts():
    changed = dataclasses.replace(samplers.hmc(0.3), scale=(1.0, 100.0))
    assert repr(changed).startswith("Sampler('hmc', (0.3,), ")
    assert "scale=(1.0, 100.0)" in repr(changed)
    assert "function" not in repr(changed)
    assert repr(dynamics.nose_hoover(friction=0.25)).startswith("<Dynamics 'nose_hoover' with 0.25")


def test_pickles_keep_the_text():
    for value in (samplers.sgld(0.5), mixtures.cosine25(), shapes.flower(petals=3)):
        assert repr(pickle.loads(pickle.dumps(value))) == repr(value)


def test_many_numbers_are_not_shown():
    many = mixtures.gaussian_mixture(np.arange(60.0).reshape(30, 2), 1.0)
    assert repr(many) == "mixtures.gaussian_mixture(<array of shape (30, 2)>, 1.0)"
    assert argument_text(list(range(100))) == "<list of 100>"
    assert argument_text((1.0,)) == "(1.0,)"
    assert argument_text(np.float64(0.5)) == "0.5"


def test_of_calls_in_calls_the_outer_one_is_shown():
    assert repr(mixtures.unequal_pair()) == "mixtures.unequal_pair()"

    @recorded("mine")
    def made(weight, *, name="pair"):
        assert name
        return mixtures.gaussian_mixture([[weight]], 1.0)

    assert repr(made(2.0, name="other")) == "mine.made(2.0, name='other')"


@pytest.mark.parametrize("kind", [np.longdouble, np.float16, np.float32, np.int8, np.uint64])
def test_numbers_of_any_precision_are_shown_as_floats(kind):
    assert repr(samplers.sgld(kind(2))) in ("samplers.sgld(2.0)", "samplers.sgld(2)")
    assert samplers.sgld(kind(2)) == samplers.sgld(2.0)
    ends = domains.box(np.zeros(2, kind), np.ones(2, kind))
    assert repr(ends) in ("domains.box([0.0, 0.0], [1.0, 1.0])", "domains.box([0, 0], [1, 1])")
    assert repr(mixtures.gaussian_mixture(np.zeros((1, 2), kind), kind(2))).count("0") >= 2
    assert argument_text([kind(1), (kind(3),)]) in ("[1.0, (3.0,)]", "[1, (3,)]")


def test_numbers_that_are_no_real_floats_are_refused_by_name():
    with pytest.raises(ValueError, match=r"step_size must be finite and > 0, got .*1e.4000"):
        samplers.sgld(np.longdouble("1e4000"))
    with pytest.raises(TypeError, match="step_size must be a number"):
        samplers.sgld(np.clongdouble(1.0))
    with pytest.raises(TypeError, match="lower must be an array of real numbers"):
        domains.box(np.zeros(2, object), np.ones(2))
    with pytest.raises(ValueError, match="must be finite, got inf"):
        mixtures.gaussian_mixture(np.array([[np.longdouble("1e4000")]]), 1.0)


def test_no_argument_makes_a_text_fail():
    class Rude:
        def __repr__(self):
            raise RuntimeError("no")

    endless = []
    endless.append(endless)
    assert argument_text(Rude()) == "<Rude>"
    assert argument_text([1.0, Rude()]) == "<list>"
    assert argument_text(endless) == "<list>"
    assert argument_text(np.clongdouble(2.0)) == "(2+0j)"
