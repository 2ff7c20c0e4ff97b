"""What is compiled of a user's function is what it was when it was given, and the next one sees what changed since."""

import copy
import math
import pickle
import types as python_types
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from numba.extending import overload

from sysid import libraries, systems
from sysid.constraints import Coordinates
from sysid.function_constraints import implicit_domain
from sysid.model import all_free
from sysid.solvers.integrate import solve
from targets import posteriors
from toolkit import Layout, Target, check_gradient, sample, samplers, target
from toolkit._compiler.binding import bound
from toolkit._output.storage.description import describe, differences
from toolkit.dynamics import langevin
from toolkit.problem.definition import as_problem, is_inside
from toolkit.verification.subprocess_run import run_in_subprocess

K = 1.0
TABLE = np.array([1.0, 2.0])
CONFIG = python_types.ModuleType("config")
CONFIG.inner = python_types.ModuleType("config.inner")
CONFIG.inner.K = 1.0
wave = math.sin


@njit
def helper(x):
    return K * x


@njit("float64(float64)")
def declared(x):
    return K * x


def parabola(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = 0.5 * K * position[0, lane] ** 2
        gradient[0, lane] = K * position[0, lane]


def parabola_25(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = 0.5 * 25.0 * position[0, lane] ** 2
        gradient[0, lane] = 25.0 * position[0, lane]


def of(function):
    """A target of energy ``function(x)`` of one number, and no slope."""
    point = njit(function)

    def block(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = point(position[0, lane])
            gradient[0, lane] = 0.0

    return Target("own", 1, block)


def energy(problem, x=0.5):
    return problem.evaluate([[x]])[0].item()


@pytest.mark.slow_cases("fused")
@pytest.mark.parametrize("layout", [Layout(fused=False), Layout(fused=True)], ids=["general", "fused"])
def test_a_number_that_changed_is_seen_by_the_next_target(layout, monkeypatch):
    """The draws are those of the number written out, bit for bit, in either engine; the first target keeps its own."""

    def draws(problem):
        return sample(problem, samplers.sgld(0.01), n_steps=60, n_chains=3, seed=1, layout=layout).draws

    first = Target("parabola", 1, parabola)
    before = draws(first)
    monkeypatch.setitem(globals(), "K", 25.0)
    second = Target("parabola", 1, parabola)
    expected = draws(Target("parabola", 1, parabola_25))
    assert np.array_equal(draws(second), expected)
    assert np.array_equal(draws(first), before)
    assert not np.array_equal(before, expected)
    assert energy(second) == 25.0 / 8.0
    assert energy(first) == 1.0 / 8.0
    (difference,) = differences(describe(first, samplers.sgld(0.01)), describe(second, samplers.sgld(0.01)))
    assert difference.endswith("parabola.K: 1.0 there, 25.0 here")


def test_a_target_is_what_its_function_was_although_it_compiles_later(monkeypatch):
    first = Target("parabola", 1, parabola)
    monkeypatch.setitem(globals(), "K", 25.0)
    assert energy(first) == 1.0 / 8.0


def test_an_array_is_what_it_was_although_it_compiles_later(monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", TABLE.copy())
    first = of(lambda x: TABLE[0] * x)
    TABLE[0] = 3.0
    assert (energy(first), energy(of(lambda x: TABLE[0] * x))) == (0.5, 1.5)


def test_the_gradient_check_looks_at_what_is_there_now(monkeypatch):
    def block(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = 0.5 * 25.0 * position[0, lane] ** 2
            gradient[0, lane] = K * position[0, lane]

    with pytest.raises(ValueError, match=r"0\.04 times"):
        check_gradient(Target("block", 1, block))
    monkeypatch.setitem(globals(), "K", 25.0)
    assert check_gradient(Target("block", 1, block)).error < 1e-6


def test_the_same_function_and_values_compile_once():
    assert Target("a", 1, parabola).energy_gradient is Target("b", 1, parabola).energy_gradient
    assert bound(bound(parabola)) is bound(parabola)
    assert bound(posteriors.posterior) is posteriors.posterior, "the distribution's own stay as they are"


def by_global(monkeypatch):
    def block(x):
        return K * x

    return block, lambda: monkeypatch.setitem(globals(), "K", 3.0)


def by_helper(monkeypatch):
    assert helper(2.0) == 2.0, "compiled, with the number that it reads"

    def block(x):
        return helper(x)

    return block, lambda: monkeypatch.setitem(globals(), "K", 3.0)


def by_declared_helper(monkeypatch):
    def block(x):
        return declared(x)

    return block, lambda: monkeypatch.setitem(globals(), "K", 3.0)


def by_another_helper(monkeypatch):
    def block(x):
        return helper(x)

    return block, lambda: monkeypatch.setitem(globals(), "helper", njit(lambda x: 3.0 * x))


def by_closure(monkeypatch):
    factor = 1.0

    def block(x):
        return factor * x

    def change():
        nonlocal factor
        factor = 3.0

    return block, change


def by_array(monkeypatch):
    def block(x):
        return TABLE[0] * x

    return block, lambda: TABLE.__setitem__(0, 3.0)


def by_module(monkeypatch):
    def block(x):
        return CONFIG.inner.K * x

    return block, lambda: monkeypatch.setattr(CONFIG.inner, "K", 3.0)


def by_module_in_a_closure(monkeypatch):
    config = CONFIG

    def block(x):
        return config.inner.K * x

    return block, lambda: monkeypatch.setattr(CONFIG.inner, "K", 3.0)


def by_default(monkeypatch):
    def block(x, factor=1.0):
        return factor * x

    return block, lambda: monkeypatch.setattr(block, "__defaults__", (3.0,))


def by_code(monkeypatch):
    def block(x):
        return x

    return block, lambda: monkeypatch.setattr(block, "__code__", (lambda x: 3.0 * x).__code__)


CHANGES = [
    by_global, by_helper, by_declared_helper, by_another_helper, by_closure, by_array, by_module,
    by_module_in_a_closure, by_default, by_code,
]  # fmt: skip


DOORS = ["block", "pointwise", "posterior", "prior", "system", "library", "domain"]
QUICK = {("block", change) for change in CHANGES} | {(door, by_helper) for door in DOORS if door != "prior"}
COMPLEX = ("system", "library", "domain")  # which take derivatives by complex steps
CASES = [
    pytest.param(change, door, marks=[] if (door, change) in QUICK else [pytest.mark.slow])
    for change in CHANGES
    for door in DOORS
    if not (door in COMPLEX and change is by_declared_helper)
]


@pytest.mark.parametrize(("changed", "door"), CASES)
def test_whatever_changes_is_seen_through_every_door(changed, door, monkeypatch):
    """A compiled function is x, then 3 x: what was made of it before is 0.5 at 0.5 throughout, what after is 1.5."""
    function, change = changed(monkeypatch)
    called, before = njit(function), TABLE.copy()
    assert called(0.5) == 0.5
    value = made_by(door, called)
    try:
        first = value()
        second_value = first()
        change()
        third = value()
        assert (second_value, first(), third()) == pytest.approx((0.5, 0.5, 1.5), rel=5e-3)  # a library's is a step
    finally:
        TABLE[:] = before


def made_by(door, called):
    """What makes something of ``called`` through a door, and gives back what tells its value at 0.5."""

    def block(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = called(position[0, lane])
            gradient[0, lane] = 0.0

    def point(x):
        return called(x[0]), (0.0,)

    def datum(x, row):
        return called(x[0]), (0.0,)

    def nothing(x, row):
        return 0.0, (0.0,)

    def rhs(t, x, p):
        return (called(x[0]),)

    def term(x):
        return called(x[0])

    def inside(p):
        return called(p[0]) - 1.0

    def by_library():
        made = libraries.functions(["x"], {"own": term})
        return lambda: solve(all_free(made).system, [0.0, 1e-3], [1.0], [0.5], method="rk4").states[1, 0] * 1e3 - 500.0

    def by_system():
        made = systems.own(rhs, states=["x"], parameters=(), usual=[], start=[0.5])
        return lambda: 0.5 * math.log(solve(made, [0.0, 1.0]).states[-1, 0] / 0.5)

    def by_domain():
        coordinates = Coordinates(np.zeros(1, bool), np.zeros(1), np.eye(1))
        made = implicit_domain([inside], ("a",), coordinates, (np.zeros((0, 1)), np.zeros(0)))
        return lambda: 1.5 if is_inside(made, np.array([[0.5]]))[0] else 0.5

    def with_energy(made):
        return lambda: energy(made)

    return {
        "block": lambda: with_energy(Target("block", 1, block)),
        "pointwise": lambda: with_energy(target(dim=1)(point)),
        "posterior": lambda: with_energy(posteriors.posterior(datum, [0.0], 1)),
        "prior": lambda: with_energy(posteriors.posterior(nothing, [0.0], 1, prior=point)),
        "system": by_system,
        "library": by_library,
        "domain": by_domain,
    }[door]


def test_an_alias_of_another_function_is_another_function(monkeypatch):
    first = of(lambda x: wave(x))
    monkeypatch.setitem(globals(), "wave", math.cos)
    second = of(lambda x: wave(x))
    assert (energy(first), energy(second)) == pytest.approx((math.sin(0.5), math.cos(0.5)), rel=1e-15)
    (difference,) = differences(describe(first, samplers.sgld(0.01)), describe(second, samplers.sgld(0.01)))
    assert difference.endswith("wave: 'math.sin' there, 'math.cos' here")


def test_a_description_of_an_earlier_version_does_not_know_what_c_functions_are_called():
    now = describe(of(lambda x: wave(x)), samplers.sgld(0.01))
    there = describe(of(lambda x: wave(x)), samplers.sgld(0.01))
    del there["problem"]["target"]["energy_gradient"]["references"]
    assert not differences(there, now)


def test_a_helper_that_is_defined_later_is_found(monkeypatch):
    monkeypatch.delitem(globals(), "helper")
    made = Target("late", 1, calls_helper)
    monkeypatch.setitem(globals(), "helper", njit(lambda x: 7.0 * x))
    assert energy(made) == 3.5


def calls_helper(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = helper(position[0, lane])
        gradient[0, lane] = 0.0


def test_functions_that_call_themselves_are_bound(monkeypatch):
    @njit
    def fallen(n, x):
        return x if n == 0 else K + fallen(n - 1, x)

    first = of(lambda x: fallen(3, x))
    assert energy(first) == 3.5
    monkeypatch.setitem(globals(), "K", 2.0)
    assert energy(of(lambda x: fallen(3, x))) == 6.5


def test_a_declared_result_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setitem(globals(), "K", 1)

    @njit("(int64,)")
    def whole(x):
        return K * x

    def block(position, energy, gradient, parameters, scratch):
        energy[0] = whole(2)

    Target("whole", 1, block)
    monkeypatch.setitem(globals(), "K", 1.5)
    with pytest.raises(TypeError, match=r"whole was compiled for .* it returns float64: define it again"):
        Target("whole", 1, block)


def stands_in(x):
    raise NotImplementedError


@overload(stands_in)
def stands_in_compiled(x):
    return lambda x: 4.0 * x


def test_what_numba_knows_by_identity_stays(monkeypatch):
    assert energy(of(lambda x: stands_in(x))) == 2.0


def test_another_process_gets_the_values_that_were_bound(monkeypatch):
    """Also those of a module, which the other process would import from its file."""
    made = of(lambda x: CONFIG.inner.K * helper(x))
    monkeypatch.setitem(globals(), "K", 25.0)
    monkeypatch.setattr(CONFIG.inner, "K", 25.0)
    arguments = {"n_steps": 3, "n_chains": 1, "seed": 1, "keep_energies": True, "init": [0.5]}
    sampler = samplers.sgld(0.1)
    (there,) = run_in_subprocess([(as_problem(made), sampler, arguments)], energies_of)
    assert np.array_equal(there["energies"], sample(made, sampler, **arguments).energies)
    assert energy(made) == 0.5


def test_what_holds_functions_can_be_pickled(monkeypatch):
    """With the values that were bound; and where it is opened where it was made, it is the same function."""
    made = Target("parabola", 1, parabola)
    system = systems.own(slows, states=["x"], parameters=(), usual=[], start=[0.5])
    monkeypatch.setitem(globals(), "K", 25.0)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        again = pickle.loads(pickle.dumps(made, protocol))
        assert energy(again) == 1.0 / 8.0
        assert again.energy_gradient is made.energy_gradient
        assert pickle.loads(pickle.dumps(system, protocol)).rhs is system.rhs
    assert copy.copy(made).energy_gradient is made.energy_gradient


def slows(t, x, p):
    return (-K * x[0],)


def energies_of(run):
    return {"energies": run.energies}


def test_a_dynamics_of_ones_own_follows_its_numbers(monkeypatch):
    def move(lanes, memory, parameters, changes):
        for lane in range(lanes.step_size.size):
            lanes.position[0, lane] += K

    def last(sampler):
        return sample(of(lambda x: 0.0 * x), sampler, n_steps=4, n_chains=1, seed=1, init=[0.0]).draws[0, -1, 0]

    def made():
        return replace(samplers.sgld(0.1), dynamics=langevin()._replace(name="own", move=move))

    first = made()
    assert last(first) == 4.0
    monkeypatch.setitem(globals(), "K", 3.0)
    assert last(made()) == 12.0
    assert last(first) == 4.0


@pytest.mark.parametrize("slopes", [(5.0, 3.0), (2.0, 5.0), (3.0, 2.0)])
def test_functions_of_one_factory_are_not_taken_for_each_other(slopes):
    """Two functions by one name in one target: the second one's values must not hide those of the first."""

    def line_of(slope):
        @njit
        def line(x):
            return slope * x

        return line

    def target_of(first, second):
        def energy(x, y):
            a, b = first(x), second(y)
            return 0.5 * (a * a + b * b), (first(a), second(b))

        return target(dim=2)(energy)

    targets = [target_of(line_of(a), line_of(b)) for a, b in ((2.0, 3.0), slopes)]
    for own, (a, b) in zip(targets, ((2.0, 3.0), slopes), strict=True):
        energy, gradient = own.evaluate(np.array([[1.0, 1.0]]))
        np.testing.assert_array_equal(energy, [0.5 * (a * a + b * b)])
        np.testing.assert_array_equal(gradient, [[a * a, b * b]])


def test_a_default_is_not_hidden_by_a_global_of_its_name():
    """The code names ``tilt`` as an attribute, so that the global counts as read, beside the argument."""

    def energy_of(tilt):
        space = {"tilt": 0.125}
        exec(f"def energy(x, tilt={tilt}):\n    return tilt * x.tilt\n", space)
        return space["energy"]

    one, other = (bound(energy_of(tilt)) for tilt in (1.0, 2.0))
    assert one is not other
    assert (one.__defaults__, other.__defaults__) == ((1.0,), (2.0,))
