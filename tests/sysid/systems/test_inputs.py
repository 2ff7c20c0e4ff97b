"""Known inputs and doses: their values at any time, systems that have them, and solutions against closed forms."""

import pickle

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import sysid
from sysid import Inputs, System, data, libraries, model_of, systems
from sysid.solvers.integrate import STEP_LIMIT, solve

RAMP = ([0.0, 1.0, 3.0], [0.0, 2.0, -2.0])


def relaxing(t, x, p, u):
    return (-p[0] * x[0] + u[0],)


RELAXING = systems.own(relaxing, states=["x"], parameters=["k"], usual=[1.0], start=[1.0], inputs=["u"])


def test_inputs_are_linear_or_held_and_a_number_is_constant():
    given = Inputs({"u": RAMP, "valve": RAMP, "c": 3.0}, held=("valve",))
    times = [0.0, 0.5, 1.0, 2.0, 3.0]
    expected = np.array([[0.0, 1.0, 2.0, 0.0, -2.0], [0.0, 0.0, 2.0, 2.0, -2.0], [3.0] * 5]).T
    np.testing.assert_allclose(given.at(times), expected)
    np.testing.assert_allclose(given.at(times, ["valve"], before=True)[:, 0], [0.0, 0.0, 0.0, 2.0, 2.0])
    np.testing.assert_allclose(given.at([7.0], ["valve", "c", "t"]), [[-2.0, 3.0, 7.0]])  # held on; "t" is time


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": {"u": ([0.0, 0.0], [1.0, 2.0])}}, "increasing times"),
        ({"values": {"u": ([0.0, 1.0], [1.0])}}, "shapes"),
        ({"values": {"u": [1.0, 2.0, 3.0]}}, r"\(times, numbers\)"),
        ({"values": {"u": ([0.0, 1.0], [1.0, np.nan])}}, "finite"),
        ({"held": ("u",)}, "held must name inputs"),
        ({"doses": {"x": ([1.0, 0.0], [1.0, 1.0])}}, "increasing times"),
    ],
)
def test_inputs_that_are_none_are_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Inputs(**arguments)


def test_an_input_is_asked_for_only_where_it_is_known():
    given = Inputs({"u": RAMP})
    for when, name in (([3.5], "u"), ([-0.1], "u"), ([1.0], "w")):
        with pytest.raises(ValueError, match="inputs must have values"):
            given.at(when, [name])
    with pytest.raises(ValueError, match="inputs must be given for 'relaxing'"):
        solve(RELAXING, [0.0, 1.0])
    with pytest.raises(ValueError, match="inputs must have values of 'u' at all times"):
        solve(RELAXING, [0.0, 5.0], inputs=given)
    with pytest.raises(ValueError, match="doses must be of states"):
        solve(RELAXING, [0.0, 1.0], inputs=Inputs({"u": RAMP}, doses={"y": ([0.5], [1.0])}))


def exact(time, doses):
    """x′ = −x + u(t) from x(0) = 1, by its integral, with doses before ``time``."""
    drive = quad(lambda s: np.exp(s - time) * np.interp(s, *RAMP), 0.0, time, points=[min(1.0, time)])[0]
    return np.exp(-time) + drive + sum(a * np.exp(s - time) for s, a in doses if s < time)


@pytest.mark.parametrize("method", ["dopri5", "rk4", "rk5"])
def test_solutions_are_the_closed_form_with_kinks_and_doses(method):
    """Also at times between the knots, at a dose (before it), and from a dose at the first time."""
    doses = [(0.0, 0.5), (0.7, 2.0), (2.5, -1.0)]
    given = Inputs({"u": RAMP}, doses={"x": np.array(doses).T})
    times = np.array([0.0, 0.3, 0.7, 1.6, 2.5, 3.0])
    step = None if method == "dopri5" else 1e-3
    found = solve(RELAXING, times, inputs=given, method=method, step=step).check()
    np.testing.assert_allclose(found.states[:, 0], [exact(t, doses) for t in times], rtol=0.0, atol=1e-8)
    lanes = solve(RELAXING, times, [[1.0], [2.0]], inputs=given, method=method, step=step)
    np.testing.assert_array_equal(lanes.states[0], found.states)


def test_steps_of_a_lane_are_counted_over_all_intervals():
    given = Inputs({"u": (np.linspace(0.0, 3.0, 50), np.zeros(50))})
    found = solve(RELAXING, [0.0, 3.0], inputs=given, max_steps=20)
    assert found.status[0] == STEP_LIMIT
    assert np.isnan(found.states[-1]).all()


def test_a_held_input_has_its_value_until_the_next_time():
    given = Inputs({"u": ([0.0, 1.0], [1.0, 3.0])}, held=("u",))
    found = solve(RELAXING, [0.0, 1.0, 2.0], start=[1.0], inputs=given).check()
    np.testing.assert_allclose(found.states[:, 0], [1.0, 1.0, 3.0 - 2.0 * np.exp(-1.0)], atol=1e-8)


def test_models_of_states_inputs_and_time_are_solved_as_by_scipy():
    library = libraries.polynomial(("x", "y"), 2, inputs=("u", "t")) + libraries.functions(
        ("x", "y"), {"wave": lambda x: np.sin(3.0 * x[3]) * x[0]}, inputs=("u", "t")
    )
    model = model_of(library, free=["dx:y", "dx:xu", "dy:x", "dy:t", "dy:wave"])
    beta = [1.0, -0.3, -2.0, 0.1, 0.5]
    given = Inputs({"u": RAMP})
    times = np.linspace(0.0, 3.0, 7)

    def slopes(t, x):
        u = np.interp(t, *RAMP)
        return x[1] - 0.3 * x[0] * u, -2.0 * x[0] + 0.1 * t + 0.5 * np.sin(3.0 * t) * x[0]

    expected = solve_ivp(slopes, (0.0, 3.0), [1.0, 0.5], "DOP853", times, rtol=1e-11, atol=1e-12, max_step=0.1).y.T
    found = solve(model.system, times, beta, [1.0, 0.5], inputs=given).check()
    np.testing.assert_allclose(found.states, expected, atol=2e-7)
    assert model.system.inputs == ("u", "t")
    assert "+2 y u" in model_of(libraries.polynomial(("x", "y"), 2, inputs=("u",)), free=["dx:yu"]).equations(
        [2.0]
    ).replace("yu", "y u")


def test_libraries_of_other_inputs_do_not_add_up():
    with pytest.raises(ValueError, match="same states and inputs"):
        libraries.polynomial(("x",), 1) + libraries.polynomial(("x",), 1, inputs=("u",))
    with pytest.raises(ValueError, match="distinct"):
        libraries.polynomial(("x", "u"), 1, inputs=("u",))
    with pytest.raises(ValueError, match="inputs must not be named as states"):
        System("s", ("x",), ("k",), relaxing, [1.0], [1.0], inputs=("k",))


def test_systems_of_sympy_and_of_functions_agree_and_check_their_terms():
    sympy = pytest.importorskip("sympy")
    x, k, u = sympy.symbols("x k u")
    written = systems.from_sympy({x: -k * x + u}, parameters=[k], usual=[1.0], start=[1.0], inputs=[u])
    given = Inputs({"u": RAMP})
    times = [0.0, 1.5, 3.0]
    np.testing.assert_allclose(
        solve(written, times, inputs=given).states, solve(RELAXING, times, inputs=given).states, rtol=1e-12
    )
    terms = {"x": {"x": {"k": -1.0}, "u": 1.0}}
    made = systems.own(relaxing, states=["x"], parameters=["k"], usual=[1.0], start=[1.0], inputs=["u"], terms=terms)
    assert model_of(libraries.polynomial(("x",), 1, inputs=("u",))).library.variables == ("x", "u")
    assert made.terms == terms
    with pytest.raises(ValueError, match="terms must be those of function"):
        systems.own(
            relaxing, states=["x"], parameters=["k"], usual=[1.0], start=[1.0], inputs=["u"],
            terms={"x": {"x": {"k": -1.0}, "u": 2.0}},
        )  # fmt: skip


def test_simulated_series_carry_their_inputs_and_exact_velocities():
    given = Inputs({"u": RAMP}, doses={"x": ([0.7], [2.0])})
    times = np.linspace(0.0, 3.0, 13)
    series = data.simulate(RELAXING, times, inputs=given, seed=0)
    np.testing.assert_allclose(series.values[:, 0], [exact(t, [(0.7, 2.0)]) for t in times], atol=1e-8)
    np.testing.assert_allclose(series.velocities[:, 0], -series.values[:, 0] + np.interp(times, *RAMP), atol=1e-8)
    assert series.inputs is given
    assert "1 doses to x" in repr(series)
    assert not data.check(series, RELAXING)
    again = pickle.loads(pickle.dumps(series))
    np.testing.assert_array_equal(again.inputs.at(times), given.at(times))


def test_columns_of_tables_and_files_become_inputs(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": [0.0, 1.0, 2.0, 3.0], "x": [1.0, 2.0, np.nan, 4.0], "u": [0.0, np.nan, 4.0, 1.0]})
    series = data.from_dataframe(frame, time="t", inputs=["u"])
    assert series.states == ("x",)
    np.testing.assert_allclose(series.inputs.at([1.0, 2.5])[:, 0], [2.0, 2.5])  # the missing one is left out
    frame.to_csv(tmp_path / "table.csv", index=False)
    loaded = data.load(tmp_path / "table.csv", time="t", inputs=["u"], held=["u"])
    assert loaded.states == ("x",)
    np.testing.assert_allclose(loaded.inputs.at([1.0, 2.5])[:, 0], [0.0, 4.0])
    with pytest.raises(ValueError, match="has no column 'w'"):
        data.load(tmp_path / "table.csv", time="t", inputs=["w"])
    with pytest.raises(ValueError, match="inputs must name columns"):
        data.from_dataframe(frame, time="t", inputs=["w"])


def test_exponents_are_of_systems_without_inputs():
    with pytest.raises(ValueError, match="without inputs"):
        sysid.largest_lyapunov(RELAXING)
