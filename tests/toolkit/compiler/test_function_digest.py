"""Functions of one's own in descriptions: a change is seen through every door, docstrings and lines are none."""

import math

import numpy as np
import pytest

from toolkit import Target, from_callable, samplers, target
from toolkit._output.storage.description import describe, differences


def made_from(source, name="ring"):
    """What a module of ``source`` calls ``name``."""
    space = {"__name__": "somebodys_module", "math": math, "np": np}
    exec(compile(source, "somebodys_module.py", "exec"), space)
    return space[name]


RING = """
K = 4.0
TABLE = np.array([1.0, 2.0])
def square(x):
    return x * x
def ring(x, y, tilt=0.5):
    "A ring."
    gap = square(x) + square(y) - TABLE[0]
    return K * gap**2 + tilt * x, (4.0 * K * gap * x + tilt, 4.0 * K * gap * y)
"""
CHANGED = {  # what is changed, by what, and the words for it
    "a global": ("K = 4.0", "K = 5.0", "values.somebodys_module.ring.K: 4.0 there, 5.0 here"),
    "an array": ("2.0]", "3.0]", "values.somebodys_module.ring.TABLE: 'float64(2,)"),
    "a default": ("tilt=0.5", "tilt=0.25", "values.somebodys_module.ring.tilt: 0.5 there, 0.25 here"),
    "a constant": ("4.0 * K * gap * x", "4.5 * K * gap * x", ": other code of somebodys_module.ring"),
    "the code": ("+ tilt * x", "- tilt * x", ": other code of somebodys_module.ring"),
    "a called function": ("x * x", "x * x * x", ": other code of somebodys_module.square"),
}


def by_decorator(function):
    return target(dim=2)(function)


def by_callable(function):
    return from_callable(lambda points: [np.array(v) for v in zip(*(function(*p) for p in points), strict=True)], dim=2)


def by_block(function):
    def block(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane], slope = function(position[0, lane], position[1, lane])
            gradient[0, lane], gradient[1, lane] = slope

    return Target("by block", 2, block)


@pytest.mark.parametrize("door", [by_decorator, by_callable, by_block])
@pytest.mark.parametrize("what", CHANGED)
def test_a_change_of_a_function_is_seen_through_every_door(door, what):
    before, after, words = CHANGED[what]
    assert RING.count(before) == 1
    described = [describe(door(made_from(s)), samplers.sgld(0.1)) for s in (RING, RING, RING.replace(before, after))]
    assert not differences(described[0], described[1])
    found = differences(described[0], described[2])
    assert len(found) == 1, found
    assert found[0].startswith("problem.target.energy_gradient"), found
    assert words in found[0], found


def test_docstrings_and_lines_are_no_difference():
    moved = "\n\n# moved\n" + RING.replace('"A ring."', '"A ring of radius 1."')
    assert not differences(*(describe(by_decorator(made_from(s)), samplers.sgld(0.1)) for s in (RING, moved)))


def test_what_cannot_be_read_is_said():
    class Opaque:
        __slots__ = ()

        def __call__(self, points):
            return points[:, 0], points

    described = describe(from_callable(Opaque(), dim=1), samplers.sgld(0.1))["problem"]["target"]["energy_gradient"]
    assert described["function"].endswith("Opaque")
    assert described["unknown"] == [f"the function: an object of type {described['function']}"]
    assert any(name.endswith("Opaque.__call__") for name in described["code"])


def test_objects_count_by_their_fields():
    class Model:
        def __init__(self, k):
            self.k = k
            self.table = np.full(3, k)

        def __call__(self, points):
            return self.k * points[:, 0], points

    one, same, other = (describe(from_callable(Model(k), dim=1), samplers.sgld(0.1)) for k in (1.0, 1.0, 2.0))
    assert not differences(one, same)
    assert [line.partition(": ")[0].rpartition(".")[2] for line in differences(one, other)] == ["k", "table"]


def test_a_python_targets_handle_is_no_part_of_it():
    def own(points):
        return points[:, 0], points

    one, other = (from_callable(own, dim=1) for _ in range(2))
    assert one.parameters != other.parameters
    assert not differences(describe(one, samplers.sgld(0.1)), describe(other, samplers.sgld(0.1)))
