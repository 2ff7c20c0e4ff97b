"""Good calls of everything public in ``sysid``, and of the methods of what it gives back."""

import datetime as dt
import functools
import math
import warnings
from pathlib import Path

import numpy as np
import pandas
import sympy
from hypothesis import strategies as st

import sysid
import toolkit
from sysid import Inputs, Series, System, data, forecasts, libraries, likelihoods, priors, sparsity, systems
from sysid.discovery import compare
from sysid.identification import Identification
from sysid.libraries import Library, Term
from sysid.likelihoods.start_search import SearchProgress
from sysid.model import Model
from sysid.solvers.integrate import solve
from targets import domains
from tests.hostile.calls import FREE, OPEN_SHARE, POSITIVE, RNG
from tests.hostile.tables.call import Call
from tests.hostile.tables.result_calls import runs, temporary_folder
from tests.hostile.values import (
    array,
    choice,
    count,
    flag,
    function,
    instance,
    is_whole,
    kind,
    number,
    or_none,
    plain,
    text,
)
from toolkit import samplers

LORENZ, PREDATORS = systems.lorenz(), systems.lotka_volterra()
TIMES = np.linspace(0.0, 1.0, 51)
FRAME = pandas.DataFrame({"t": TIMES, "x": TIMES, "y": 1.0 - TIMES, "z": TIMES**2})
DATA = data.simulate(LORENZ, TIMES, noise=0.01, seed=0)
NAMED = ("x", "y", "z")
LIBRARY = libraries.polynomial(NAMED, 1)
COUNTED = libraries.polynomial(("x", "y"), 2)
MODEL = sysid.model_of(LIBRARY, free=["dx:x"], fixed={"dy:y": 2.0}, tied={"a": {"dz:x": 1.0, "dz:y": -1.0}})
SCALE = number(1e-100, 1e100)
PATHS = kind(lambda v: False, st.sampled_from(["", ".", "\0", "nowhere/x.csv", "/dev/null", "x" * 5000, "/", b"a.csv"]))
FILE_WORDS = {"path": "file folder path line", "time": "column states time", "states": "column states"}


@functools.cache
def problem(prior=None):
    """The posterior of Lorenz' parameters, with one prior for all."""
    return sysid.identify(DATA, LORENZ, prior=prior)


@functools.cache
def run():
    """A short run of it."""
    return toolkit.sample(problem().scaled(), samplers.sgld(0.1), n_steps=20, seed=0, n_chains=2, threads=1)


@functools.cache
def by_trajectory():
    """A posterior of the parameters of solutions."""
    system = systems.lotka_volterra()
    series = data.simulate(system, np.arange(0.0, 6.0, 0.5), noise=0.1, seed=2)
    return sysid.identify(series, system, likelihood="trajectory", n_searches=0).scaled()


@functools.cache
def run_by_trajectory():
    """A run of it."""
    return toolkit.sample(by_trajectory(), samplers.hmc(0.1), n_steps=20, seed=0, n_chains=2, threads=1)


@functools.cache
def proper():
    """A posterior that has an evidence."""
    return problem(priors.gaussian(0.0, 50.0)).scaled()


@functools.cache
def run_of_proper():
    """A run of it."""
    return toolkit.sample(proper(), samplers.hmc(0.5), n_steps=100, seed=0, n_chains=2, threads=1)


@functools.cache
def ensemble():
    """Trajectories of three draws."""
    return sysid.simulate(np.tile(LORENZ.usual, (3, 1)), TIMES[:5], problem=LORENZ, n_draws=None, threads=1)


@functools.cache
def quadratic():
    """A likelihood that is quadratic."""
    return likelihoods.derivative().prepare(DATA, LORENZ)


@functools.cache
def discovered():
    """Equations of noisy data."""
    return sysid.discover(DATA, degree=2, sweeps=50)


@functools.cache
def compared():
    """Our posterior in the table of methods, with a truth."""
    return sysid.compare_pysindy(DATA, degree=1, methods=(), truth=np.ones((4, 3)))


def row_method(name):
    """A method of the table, with a row as its argument."""
    return lambda row: getattr(compared(), name)(row)


def flow(t, x, p):
    """A harmonic oscillator."""
    return x[1], -p[0] * x[0]


def wave(x):
    """A term of the user's."""
    return x[0] * x[1]


def load(path=None, time="t", states=None, missing=("", "NA"), decimal=".", time_unit="", units=(), name="", source=""):
    """``data.load`` of a file that is there, or from ``path``."""
    with temporary_folder("a.csv"):
        Path("a.csv").write_text("t,x,y\n0,1,2\n1,2,3\n", encoding="utf-8")
        return data.load(
            "a.csv" if path is None else path,
            time=time,
            states=states,
            missing=missing,
            decimal=decimal,
            time_unit=time_unit,
            units=units,
            name=name,
            source=source,
        )


def estimates_of(run, level):
    """Estimates of a run, which is too short for its R-hat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem().scaled().estimates(run, level=level)


def shaped(good, shape, holds=lambda a: True, *, finite=True):
    """An array of a shape, None for any length, for which ``holds`` is true."""
    return array(
        good,
        lambda a: (
            a.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, a.shape, strict=True)) and holds(a)
        ),
        finite=finite,
    )


def last(good, length, **options):
    """An array whose last axis has a length."""
    return array(good, lambda a: a.ndim > 0 and a.shape[-1] == length, **options)


def names(*taken, also=()):
    """A sequence of names, of which only ``taken`` are known to be right."""
    near = st.sampled_from([["x", "x"], ("",), "xy", ["x", 1], [None], [], {"x"}, "x", *also])
    return kind(lambda v: isinstance(v, list | tuple | range) and tuple(v) in taken, near)


def only(*taken):
    """Nothing but these."""
    return kind(lambda v: any(v is one for one in taken))


def not_none(one):
    """The same, but None is neither right nor wrong: it is right where another argument is None too."""
    return one._replace(wrong=one.wrong.filter(lambda v: v is not None))


def is_rising(a):
    """Whether numbers increase."""
    return a.size > 0 and (np.diff(a) > 0.0).all()


SYSTEM, SERIES, RUNS = instance(System), instance(Series), instance(toolkit.Run)
OTHER_RUNS = RUNS._replace(wrong=st.one_of(RUNS.wrong, st.builds(lambda: runs()["plain"])))
MODELS = instance(System, Library, Model)
UNITS = kind(
    lambda v: (
        isinstance(v, list | tuple | range) and (len(v) == 0 or (len(v) == 3 and all(isinstance(u, str) for u in v)))
    )
)
DESCRIBED = {"time_unit": text(), "source": text(), "units": UNITS, "name": text()}
IS_TIMES = shaped(TIMES, (None,), is_rising)
IS_USUAL = shaped(LORENZ.usual, (3,))
IS_ONE = array(LORENZ.usual, lambda a: a.shape in ((3,), (1, 3)))
IS_LANES = or_none(array(LORENZ.usual, lambda a: a.ndim in (1, 2) and a.shape[-1] == 3 and a.size))
IS_DRAWS = array(np.ones((2, 3)), lambda a: a.ndim > 0 and a.shape[-1] == 3 and a.size)
PRIORS = kind(
    lambda v: v is None or isinstance(v, priors.Prior) or v == {},
    st.sampled_from([{"sigma": 1.0}, {"k": priors.flat()}, {1: priors.flat()}, [priors.flat()]]),
)
NOISES = kind(lambda v: isinstance(v, str), array([1.0], lambda a: a.ndim < 2 and a.size and (a > 0).all()).wrong)
NOISES = NOISES._replace(
    wrong=NOISES.wrong.filter(lambda v: not array([1.0], lambda a: a.ndim < 2 and a.size and (a > 0).all()).takes(v))
)
KNOWN = kind(
    lambda v: v is None or v == {} or v == {"k": 1.0},
    st.sampled_from([{"k": "1"}, {"k": math.nan}, {"k": ()}, {"k": [[1.0]]}, {1: 1.0}, {"k": None}, ["k"], "k"]),
)
EXPERIMENT = or_none(
    kind(lambda v: isinstance(v, str) or (is_whole(v) and v == 0), st.sampled_from(["none of these", 1, -1, 0.5, [0]]))
)
WORDS = st.sampled_from(["", "frees", "FREE", "known ", "mean\0"])
TERMS = kind(
    lambda v: v is None or v == {},
    st.sampled_from(
        [
            {"w": {}},
            {"x": 1},
            {"x": {1: 1.0}},
            {"x": {"x": "k"}},
            {"x": {"x": {"sigma": "1"}}},
            {"x": {"x": math.nan}},
            {"x": {"y": None}},
        ]
    ),
)
FUNCTIONS = kind(
    callable,
    st.sampled_from(
        [
            lambda: 0.0,
            lambda t, x, p: 1.0,
            lambda t, x, p: (x[0],),
            lambda t, x, p: (abs(x[0]), x[1]),
            lambda t, x, p: (np.nan, x[1]),
        ]
    ),
)
FUNCTIONS = FUNCTIONS._replace(wrong=FUNCTIONS.wrong.filter(lambda v: not issubclass(type(v), type)))
COEFFICIENTS = st.sampled_from([{"dx:w": 1.0}, {"dx:x": "1"}, {"dx:x": None}, {1: 1.0}, {None: 2.0}, [("dx:x", 1.0)]])
SYSTEM_KINDS = {
    **DESCRIBED,
    "states": names(NAMED, also=[("sigma", "y", "z")]),
    "usual": IS_USUAL,
    "start": IS_USUAL,
    "parameters": names(("sigma", "rho", "beta"), also=[("x", "rho", "beta")]),
    "terms": TERMS,
    "invariant": or_none(function()),
    "lyapunov": or_none(number()),
    "inputs": names((), ("u",), also=[["x"], ["sigma"]]),
}
X, Y, K, T = sympy.symbols("x y k t")
OSCILLATOR = {
    **DESCRIBED,
    "units": kind(lambda v: isinstance(v, list | tuple | range) and len(v) == 0),
    "states": names(("x", "y")),
    "parameters": names(("k",)),
    "usual": shaped([1.0], (1,)),
    "start": shaped([1.0, 0.0], (2,)),
    "terms": TERMS,
    "invariant": or_none(function()),
    "lyapunov": or_none(number()),
    "inputs": names((), also=[["x"], ["k"], ["u"]]),
}
OWN = {"states": ("x", "y"), "parameters": ("k",), "usual": [1.0], "start": [1.0, 0.0]}
ALSO_SYSTEM = {
    "states": "usual start function parameters terms",
    "parameters": "usual function",
    "usual": "function parameters",
    "start": "function states",
    "function": "rhs",
    "inputs": "rhs function",
}
SEARCHES = or_none(instance(SearchProgress))
INPUTS = or_none(instance(Inputs))
DRIVING = names((), ("u",), also=[["x"], ["y", "x"]])  # names of inputs, of which those of states are wrong
SOLVED = {
    "method": choice("dopri5", "radau", "rk4", "rk5"),
    "rtol": number(1e-14, 1.0, ends="["),
    "max_steps": count(1, 2**62),
    "limit": number(0.0, 1e150, ends="]"),
    "step": kind(lambda v: v is None),
}
SOLVED = {name: one._replace(odd=None) for name, one in SOLVED.items()}
PROBLEM = problem()
POSITIVE_PROBLEM = problem(priors.lognormal())
UNIT = np.eye(3)
PREPARED = kind(lambda v: getattr(v, "quadratic", None) is not None)

NO_FORMAT = kind(lambda v: isinstance(v, str) and v == "")  # as the times below are numbers
ORIGIN = kind(lambda v: v is None, st.sampled_from([3.0, "today", "06:00", dt.time(6), np.datetime64("NaT")]))
ORIGIN = ORIGIN._replace(wrong=ORIGIN.wrong.filter(lambda v: not isinstance(v, dt.date | np.datetime64 | str)))
HOURS = Series([0.0, 1.0], [[1.0], [2.0]], ("x",), time_unit="h", noise=[0.1])
MEASURED = {
    **DESCRIBED,
    "states": names(NAMED),
    "times": shaped(TIMES, (51,), is_rising),
    "values": kind(
        lambda v: isinstance(v, np.ma.MaskedArray),
        array(DATA.values, lambda a: a.shape == (51, 3), finite=False).wrong,
    ),
    "velocities": or_none(shaped(DATA.values, (51, 3))),
    "noise": or_none(shaped(UNIT[0], (3,), lambda a: (a >= 0).all())),
    "inputs": INPUTS,
}

CALLS = [
    Call(
        "sysid.systems.system.System",
        System,
        {
            "name": "lorenz",
            "states": NAMED,
            "parameters": ("sigma", "rho", "beta"),
            "rhs": LORENZ.rhs,
            "usual": LORENZ.usual,
            "start": LORENZ.start,
        },
        {**SYSTEM_KINDS, "rhs": function()},
        {"states": "usual start parameters units terms", "parameters": "usual terms"},
    ),
    *[
        Call(f"sysid.systems.textbook.{f.__name__}", f)
        for f in (
            systems.lorenz,
            systems.lotka_volterra,
            systems.rossler,
            systems.van_der_pol,
            systems.fitzhugh_nagumo,
            systems.damped_pendulum,
            systems.sir,
            systems.catalogue,
        )
    ],
    Call(
        "sysid.systems.user_systems.own",
        systems.own,
        {"function": flow, **OWN},
        {**OSCILLATOR, "function": FUNCTIONS},
        ALSO_SYSTEM,
    ),
    Call(
        "sysid.systems.user_systems.from_sympy",
        systems.from_sympy,
        {"expressions": {X: Y, Y: -K * X}, "parameters": [K], "usual": [1.0], "start": [1.0, 0.0]},
        {
            **OSCILLATOR,
            "expressions": kind(
                lambda v: False,
                st.sampled_from(
                    [
                        {},
                        {X: "y"},
                        {X: None},
                        {"x": Y},
                        {X: sympy.oo},
                        {X: sympy.I * X},
                        {X: sympy.Symbol("w")},
                        [(X, Y)],
                        {X: sympy.zeta(X)},
                    ]
                ),
            ),
            "parameters": kind(lambda v: False, st.sampled_from([[X], ["k"], [None], 3, K + 1, [K, K]])),
            "time": kind(lambda v: v is None, st.sampled_from(["t", 3, X + 1])),
        },
        {
            **ALSO_SYSTEM,
            "expressions": "states start usual",
            "parameters": "expressions usual",
            "time": "parameters states",
        },
    ),
    # data
    Call(
        "sysid.data.series.Series",
        Series,
        {"times": TIMES, "values": DATA.values, "states": NAMED},
        {**MEASURED, "origin": ORIGIN},
        {"states": "values units", "times": "values"},
    ),
    Call(
        "sysid.data.series.check_series",
        lambda data: sysid.data.check_series("data", data),
        {"data": DATA},
        {"data": SERIES},
    ),
    Call(
        "sysid.data.checks.check",
        data.check,
        {"series": DATA, "system": LORENZ, "parameters": LORENZ.usual},
        {
            "series": SERIES,
            "system": or_none(SYSTEM)._replace(
                wrong=st.one_of(SYSTEM.wrong.filter(lambda v: v is not None), st.just(PREDATORS))
            ),
            "parameters": or_none(IS_USUAL),
        },
        {"system": "parameters"},  # a system of another number of parameters
    ),
    Call(
        "sysid.data.sources.from_arrays",
        data.from_arrays,
        {"times": TIMES, "values": DATA.values, "states": NAMED},
        {**MEASURED, "date_format": NO_FORMAT},
        {"states": "values units", "times": "values"},
    ),
    Call(
        "sysid.data.sources.simulate",
        data.simulate,
        {"system": LORENZ, "times": TIMES[:5], "seed": 0},
        {
            "system": SYSTEM,
            "times": shaped(TIMES, (None,), lambda a: len(a) > 1 and is_rising(a)),
            "parameters": or_none(IS_USUAL),
            "start": or_none(IS_USUAL),
            "noise": array(0.0, lambda a: a.size in (1, 3) and (a >= 0).all() and (a < 1e150).all()),
            "errors": choice("gaussian"),
            "relative": flag(),
            "missing": number(0.0, 1.0, ends="["),
            "method": choice("DOP853", "LSODA", "dopri5"),
            "inputs": INPUTS,
        },
    ),
    Call(
        "sysid.data.sources.from_dataframe",
        data.from_dataframe,
        {"frame": FRAME, "time": "t"},
        {
            **DESCRIBED,
            "frame": only(FRAME),
            "time": kind(lambda v: isinstance(v, str) and v in ("t", "x", "y"), st.text(max_size=3)),
            "states": or_none(names(("x", "y"), ("x",), ("y",), ("y", "x"), ("z",))),
            "noise": or_none(shaped(UNIT[0], (3,), lambda a: (a >= 0).all())),
            "date_format": NO_FORMAT,
            "inputs": names((), ("y",), ("z",), also=[["t"], ["w"]]),
            "held": names((), also=[["w"]]),
        },
        {"time": "states", "states": "time", "noise": "states", "inputs": "states", "held": "inputs"},
    ),
    Call(
        "sysid.systems.inputs.Inputs",
        Inputs,
        {"values": {"u": (TIMES, TIMES)}, "doses": {"x": ([0.5], [1.0])}},
        {
            "values": kind(
                lambda v: isinstance(v, dict) and len(v) == 0,
                st.sampled_from(
                    [None, 3.0, {"u": None}, {"u": "1"}, {"u": ([1.0, 0.0], [0.0, 1.0])}, {"u": [1.0]}, {"": 1.0}]
                ),
            ),
            "held": names((), ("u",), also=[["w"]]),
            "doses": kind(
                lambda v: isinstance(v, dict) and len(v) == 0,
                st.sampled_from([None, 3.0, {"x": 1.0}, {"x": ([0.0], [math.nan])}, {1: ([0.0], [1.0])}, {"x": "ab"}]),
            ),
            "time_unit": text(),
            "origin": ORIGIN,
        },
        {"values": "held"},
    ),
    Call(
        "sysid.systems.inputs.Inputs.at",
        Inputs({"u": (TIMES, TIMES)}).at,
        {"times": TIMES},
        {
            "times": shaped(TIMES, (None,), lambda a: (a >= 0.0).all() and (a <= 1.0).all()),
            "names": or_none(names((), ("u",), ("t",), also=[["w"]])),
            "before": flag(),
        },
        {"names": "inputs", "times": "inputs"},
    ),
    Call("sysid.data.series.Series.to_dataframe", DATA.to_dataframe),
    Call(
        "sysid.data.series.Series.with_time_unit",
        HOURS.with_time_unit,
        {"time_unit": "turns", "factor": 2.0},
        {"time_unit": kind(lambda v: isinstance(v, str)), "factor": POSITIVE},
    ),
    Call(
        "sysid.data.series.Series.with_units",
        HOURS.with_units,
        {"units": {"x": "m"}, "factor": 2.0, "errors": "gaussian"},
        {
            "units": kind(
                lambda v: isinstance(v, dict) and len(v) == 0,
                st.sampled_from([None, {"w": "m"}, {"x": 1.0}, {"x": None}, "m", ["m"]]),
            ),
            "factor": POSITIVE,
            "errors": choice("gaussian", "lognormal"),
        },
    ),
    Call(
        "sysid.systems.inputs.Inputs.with_time_unit",
        Inputs(doses={"x": ([0.5], [1.0])}, time_unit="h").with_time_unit,
        {"time_unit": "turns", "factor": 2.0},
        {"time_unit": kind(lambda v: isinstance(v, str)), "factor": POSITIVE},
    ),
    Call("sysid.data.sources.lynx_hare", data.lynx_hare),
    Call(
        "sysid.data.files.load",
        load,
        {},
        {
            "path": PATHS._replace(wrong=PATHS.wrong.filter(lambda v: v is not None)),
            "time": kind(lambda v: isinstance(v, str) and v in ("t", "x", "y"), st.text(max_size=3)),
            "states": or_none(names(("x", "y"), ("x",), ("y",), ("y", "x"))),
            "inputs": names((), ("y",), also=[["t"], ["w"]]),
            "held": names((), also=[["w"]]),
            "time_unit": text(),
            "source": text(),
            "name": text(),
            "decimal": choice("."),
            "missing": kind(lambda v: isinstance(v, list | tuple) and all(isinstance(w, str) for w in v)),
            "units": kind(
                lambda v: (
                    isinstance(v, list | tuple)
                    and (len(v) == 0 or (len(v) == 2 and all(isinstance(u, str) for u in v)))
                )
            ),
        },
        FILE_WORDS,
    ),
    # libraries and models
    Call(
        "sysid.libraries.Term",
        Term,
        {"name": "w", "text": "x[0]"},
        {
            "name": text(),
            "text": text(),
            "powers": or_none(
                kind(lambda v: isinstance(v, list | tuple | range) and all(count(0, 64).takes(n) for n in v))
            ),
            "own": or_none(function()),
        },
    ),
    Call(
        "sysid.libraries.Library",
        Library,
        {"states": NAMED, "terms": LIBRARY.terms},
        {
            "states": names(NAMED),
            "terms": kind(
                lambda v: False,
                st.sampled_from(
                    [[], [Term("w", "x[0]", (1,))], [1.0], "x", [LIBRARY.terms[0]] * 2, list(LIBRARY.terms) * 600]
                ),
            ),
            "inputs": names((), also=[["x"], ["u"]]),
        },
        {"states": "terms", "terms": "library", "inputs": "terms states"},
    ),
    Call(
        "sysid.libraries.Library.evaluate",
        LIBRARY.evaluate,
        {"states": DATA.values},
        {"states": shaped(DATA.values, (None, 3), finite=False)},
    ),
    Call(
        "sysid.libraries.Library.subset",
        LIBRARY.subset,
        {"names": ["x"]},
        {"names": names(("x",), ("1",), ("y", "x"), also=[["w"]])},
    ),
    Call(
        "sysid.libraries.Library of two",
        lambda other: LIBRARY + other,
        {"other": LIBRARY},
        {"other": kind(lambda v: False)._replace(wrong=st.just(COUNTED))},
        {"other": "libraries"},
    ),
    Call(
        "sysid.libraries.polynomial",
        libraries.polynomial,
        {"states": NAMED, "degree": 2},
        {
            "states": names(NAMED),
            "degree": count(1, 9)._replace(wrong=st.one_of(count(1, 64).wrong, st.just(40))),
            "constant": flag(),
            "inputs": DRIVING,
        },
        {"degree": "terms", "states": "inputs"},
    ),
    Call(
        "sysid.libraries.fourier",
        libraries.fourier,
        {"states": NAMED, "n_frequencies": 2},
        {
            "states": names(NAMED),
            "n_frequencies": count(1, 300)._replace(wrong=st.one_of(count(1, 1024).wrong, st.just(400)), odd=None),
            "frequency": SCALE,
            "inputs": DRIVING,
        },
        {"states": "inputs"},
    ),
    Call(
        "sysid.libraries.functions",
        libraries.functions,
        {"states": ("x", "y"), "named": {"w": wave}},
        {
            "states": names(("x", "y"), also=[("x",)]),
            "inputs": DRIVING,
            "named": kind(
                lambda v: False,
                st.sampled_from(
                    [
                        {},
                        {"w": None},
                        {"w": lambda: 1.0},
                        {"w": lambda x: None},
                        {"w": lambda x: "a"},
                        {1: wave},
                        {"": wave},
                        {"w": lambda x: 1j},
                        {"w": lambda x: [x]},
                        {"w": lambda x: math.nan},
                        [("w", wave)],
                    ]
                ),
            ),
        },
        {"named": "terms name", "states": "named"},
    ),
    Call(
        "sysid.model.Model",
        Model,
        {
            "library": LIBRARY,
            "parameters": MODEL.parameters,
            "constant": MODEL.constant,
            "directions": MODEL.directions,
        },
        {
            "library": only(LIBRARY),
            "parameters": names(MODEL.parameters),
            "constant": shaped(MODEL.constant, (4, 3)),
            "directions": shaped(MODEL.directions, (2, 4, 3), lambda a: a.any(axis=(1, 2)).all()),
            "name": text(),
        },
        {"parameters": "directions", "directions": "parameters", "library": "constant"},
    ),
    Call(
        "sysid.model.Model.coefficients",
        MODEL.coefficients,
        {"parameters": [1.0, 2.0]},
        {"parameters": last([1.0, 2.0], 2, finite=False)},
    ),
    Call(
        "sysid.model.Model.equations",
        MODEL.equations,
        {"parameters": [1.0, 2.0]},
        {
            "parameters": shaped([1.0, 2.0], (2,), finite=False),
            "errors": or_none(array([1.0, 2.0], lambda a: a.shape == (2,) and (a >= 0.0).all(), finite=False)),
            "style": choice("text", "latex"),
            "digits": count(1, 101)._replace(odd=None),
        },
    ),
    Call(
        "sysid.model.Model.sympy_equations",
        MODEL.sympy_equations,
        {"parameters": [1.0, 2.0]},
        {"parameters": shaped([1.0, 2.0], (2,), finite=False)},
    ),
    Call(
        "sysid.model.model_of",
        sysid.model_of,
        {"library": LIBRARY},
        {
            "library": instance(Library),
            "free": or_none(names(("dx:x",), also=[["dx:w"], ["x"]])),
            "fixed": kind(lambda v: v is None or (isinstance(v, dict) and not v), COEFFICIENTS),
            "tied": kind(
                lambda v: v is None or (isinstance(v, dict) and not v),
                st.sampled_from(
                    [
                        {"a": {}},
                        {"a": 1.0},
                        {1: {"dx:x": 1.0}},
                        {"": {"dx:x": 1.0}},
                        {"a": {"dx:x": 0.0}},
                        {"dx:y": {"dx:x": 1.0}},
                    ]
                ),
                COEFFICIENTS.map(lambda v: {"a": v}),
            ),
            "name": text(),
        },
        {"free": "model", "fixed": "free", "tied": "parameters free"},
    ),
    # solving
    Call(
        "sysid.solvers.integrate.solve",
        solve,
        {"system": LORENZ, "times": TIMES[:5], "threads": 1},
        {
            **SOLVED,
            "system": SYSTEM,
            "times": IS_TIMES,
            "parameters": IS_LANES,
            "start": IS_LANES,
            "atol": POSITIVE._replace(odd=None),
            "inputs": INPUTS,
        },
        {"method": "step"},
    ),
    Call("sysid.solvers.solution.Solution.check", solve(LORENZ, TIMES[:2]).check),
    Call(
        "sysid.forecasts.simulate",
        sysid.simulate,
        lambda: {"draws": run(), "times": TIMES[:5], "problem": problem().scaled(), "n_draws": 3, "threads": 1},
        {
            **SOLVED,
            "limit": or_none(SOLVED["limit"])._replace(odd=None),
            "draws": OTHER_RUNS._replace(wrong=OTHER_RUNS.wrong.filter(lambda v: not IS_DRAWS.takes(v))),
            "times": shaped(TIMES, (None,), lambda a: is_rising(a) and a[0] >= 0.0),
            "problem": or_none(instance(System, Identification)),
            "n_draws": or_none(count(1, idle=False)),
            "start": or_none(shaped(LORENZ.start, (3,))),
            "noise": or_none(array(1.0, lambda a: a.shape in [(), (3,), (40, 3)] and (a >= 0.0).all())),
            "errors": choice("gaussian", "lognormal", "student", "poisson", "negative_binomial"),
            "dof": number(0.0, 1e6),
            "inputs": INPUTS,
            "experiment": EXPERIMENT,
        },
        {"draws": "problem", "problem": "draws", "times": "start", "method": "step", "errors": "noise"},
    ),
    Call(
        "sysid.forecasts.simulate of a system",
        sysid.simulate,
        {"draws": UNIT, "times": TIMES[:3], "problem": LORENZ, "threads": 1},
        {
            **SOLVED,
            "limit": or_none(SOLVED["limit"])._replace(odd=None),
            "draws": IS_DRAWS,
            "times": IS_TIMES,
            "problem": SYSTEM,
            "n_draws": or_none(count(1, idle=False)),
            "start": or_none(shaped(LORENZ.start, (3,), finite=False)),
            "noise": or_none(array(1.0, lambda a: a.shape in [(), (3,)] and (a >= 0.0).all())),
            "errors": choice("gaussian", "lognormal", "student", "poisson", "negative_binomial"),
            "dof": number(0.0, 1e6),
            "inputs": INPUTS,
            "experiment": kind(lambda v: v is None, st.sampled_from([0, "lorenz", -1])),
        },
        {"method": "step"},
    ),
    Call(
        "sysid.forecasts.Ensemble.bands",
        lambda probabilities: ensemble().bands(probabilities),
        {"probabilities": [0.1, 0.5]},
        {"probabilities": array([0.1, 0.5], lambda a: a.ndim == 1 and ((a >= 0) & (a <= 1)).all())},
    ),
    Call(
        "sysid.forecasts.Ensemble.valid_time",
        lambda truth, threshold, lyapunov: ensemble().valid_time(truth, threshold=threshold, lyapunov=lyapunov),
        lambda: {"truth": ensemble().states[0], "threshold": 0.4, "lyapunov": None},
        {
            "truth": shaped(np.ones((5, 3)), (5, 3), lambda a: a.any() and (np.abs(a) < 1e150).all()),
            "threshold": POSITIVE,
            "lyapunov": or_none(POSITIVE),
        },
    ),
    Call(
        "sysid.forecasts.largest_lyapunov",
        sysid.largest_lyapunov,
        {"system": LORENZ, "time": 2.0, "burn_in": 1.0, "n_paths": 2},
        {
            "system": SYSTEM,
            "parameters": or_none(IS_ONE),
            "start": or_none(IS_ONE),
            "time": number(0.0, 1e7)._replace(odd=None),
            "burn_in": number(0.0, 1e7, ends="[")._replace(odd=None),
            "interval": number(3e-7)._replace(odd=None),
            "step": number(3e-9)._replace(odd=None),
            "n_paths": count(2, 2**16)._replace(odd=None),
            "method": choice("rk4", "rk5"),
        },
        {"parameters": "start", "interval": "time", "step": "time", "burn_in": "time"},
    ),
    Call(
        "sysid.forecasts.histograms",
        sysid.histograms,
        {"states": DATA.values},
        {
            "states": array(
                DATA.values,
                lambda a: a.ndim > 1 and a.size and np.isfinite(a).all(axis=-1).any(),
                finite=False,
            ),
            "edges": or_none(
                array(
                    np.tile([0.0, 1.0], (3, 1)),
                    lambda a: a.ndim == 2 and len(a) == 3 and a.shape[1] > 1 and (np.diff(a) > 0).all(),
                )
            ),
            "bins": count(1, 2**20),
        },
    ),
    Call(
        "sysid.forecasts.Histograms.distance",
        sysid.histograms(DATA.values).distance,
        {"other": sysid.histograms(DATA.values)},
        {
            "other": instance(forecasts.Histograms)._replace(
                wrong=st.one_of(instance(forecasts.Histograms).wrong, st.just(sysid.histograms(np.ones((3, 2)))))
            )
        },
    ),
    # priors
    *[
        Call(f"sysid.priors.{f.__name__}", f, good, kinds)
        for f, good, kinds in [
            (priors.flat, {}, {}),
            (priors.gaussian, {}, {"mean": FREE, "sd": SCALE}),
            (priors.lognormal, {}, {"mu": number(-600.0, 600.0), "sigma": SCALE}),
            (priors.laplace, {}, {"mean": FREE, "scale": SCALE}),
            (
                priors.spike_and_slab,
                {"spike": 0.1, "slab": 3.0},
                {"spike": number(1e-100, 3.0), "slab": number(0.1, 1e100), "inclusion": OPEN_SHARE},
            ),
            (
                priors.horseshoe,
                {"scale": 1.0},
                {
                    "scale": SCALE,
                    "slab": kind(lambda v: (isinstance(v, float) and v == math.inf) or number(1.0, 1e100).takes(v)),
                },
            ),
        ]
    ],
    Call(
        "sysid.priors.Prior",
        priors.Prior,
        {"kind": 1},
        {
            "kind": only(0, 1, 2, 3),
            "location": FREE,
            "scale": SCALE,
            "weights": kind(lambda v: isinstance(v, list | tuple | range) and len(v) == 0),
            "scales": kind(lambda v: isinstance(v, list | tuple | range) and len(v) == 0),
            "spikes": only(0),
        },
        {"kind": "weights"},
    ),
    Call(
        "sysid.priors.Prior.draws",
        priors.gaussian().draws,
        {"n": 3, "rng": RNG},
        {"n": count(0, idle=False), "rng": instance(np.random.Generator)},
    ),
    Call(
        "sysid.priors.Prior.draws of a mixture",
        priors.horseshoe(1.0).draws,
        {"n": 3, "rng": RNG},
        {"n": count(0, idle=False), "rng": instance(np.random.Generator)},
    ),
    Call(
        "sysid.priors.Prior.inclusion",
        priors.horseshoe(1.0).inclusion,
        {"values": [1.0]},
        {"values": array([1.0], lambda a: (np.abs(a.astype(np.float64)) < 1e100).all())},
    ),
    # likelihoods
    Call(
        "sysid.likelihoods.velocity.derivative",
        likelihoods.derivative,
        {},
        {
            "velocities": choice("exact", "finite_difference", "savitzky_golay", "spline"),
            "noise": NOISES,
            "batch_size": or_none(count(1, 2**17)),
            "batches": choice("independent", "windows"),
            "window": or_none(kind(lambda v: count(5, 2**31).takes(v) and plain(v) % 2 == 1, st.just(6))),
        },
    ),
    Call(
        "sysid.likelihoods.velocity.derivative by a word",
        lambda noise: likelihoods.derivative(noise=noise),
        {"noise": "mean"},
        {"noise": choice("mean", "estimated")._replace(wrong=WORDS)},
    ),
    Call(
        "sysid.likelihoods.weak_form.weak",
        likelihoods.weak,
        {},
        {
            "noise": or_none(array([1.0], lambda a: a.ndim < 2 and a.size and (a > 0).all())),
            "substeps": or_none(only(1, 2, 4)),
            "iterations": count(1, 10**4),
            "pieces": or_none(count(1, 2**20)),
        },
    ),
    Call(
        "sysid.likelihoods.trajectories.trajectory",
        likelihoods.trajectory,
        {},
        {
            "errors": choice("gaussian", "lognormal", "student", "poisson", "negative_binomial"),
            "dof": number(0.0, 1e6),
            "noise": NOISES,
            "start": kind(
                lambda v: isinstance(v, str | int | float),  # a number may be the start of one state
                array([1.0], lambda a: a.size).wrong.filter(
                    lambda v: not isinstance(v, int | float) and not array([1.0], lambda a: a.size).takes(v)
                ),
            ),
            "method": choice("rk4", "rk5", "sdirk4"),
            "step": or_none(POSITIVE),
            "segments": count(1, 2**16),
            "gap": number(0.0, 1e6),
            "limit": or_none(number(0.0, 1e100)),
            "own": names(("k",), ("sd(x)", "k"), ()),
            "known": KNOWN,
            "observe": kind(
                lambda v: v is None or (isinstance(v, dict) and len(v) == 0),
                st.sampled_from([3.0, "y", [1.0], {"y": None}, {"y": 1.0}, {"": len}, {1: len}, {"y": "x"}]),
            ),
        },
    ),
    Call(
        "sysid.likelihoods.trajectories.trajectory by a word",
        lambda noise, start: likelihoods.trajectory(noise=noise, start=start),
        {"noise": "free", "start": "free"},
        {
            "noise": choice("free", "known")._replace(wrong=WORDS),
            "start": choice("free", "fixed")._replace(wrong=WORDS),
        },
    ),
    Call(
        "sysid.likelihoods.velocity.Derivative.prepare",
        likelihoods.derivative().prepare,
        {"data": DATA, "model": LORENZ},
        {"data": SERIES, "model": MODELS},
    ),
    Call(
        "sysid.likelihoods.weak_form.Weak.prepare",
        likelihoods.weak().prepare,
        {"data": DATA, "model": LORENZ},
        {"data": SERIES, "model": MODELS},
        tried=False,
    ),
    Call(
        "sysid.likelihoods.trajectories.Trajectory.prepare",
        lambda data, model, progress=None: likelihoods.trajectory().prepare(data, model, progress),
        {"data": DATA, "model": LORENZ},
        {"data": SERIES, "model": MODELS, "progress": SEARCHES},
        tried=False,
    ),
    Call(
        "sysid.likelihoods.trajectories.Trajectory.energy_and_start",
        lambda data, model, progress=None: likelihoods.trajectory().energy_and_start(data, model, progress),
        {"data": DATA, "model": LORENZ},
        {"data": SERIES, "model": MODELS, "progress": SEARCHES},
        tried=False,
    ),
    Call(
        "sysid.likelihoods.weak_form.Weak.fit",
        likelihoods.weak().fit,
        {"data": [DATA], "model": MODEL},
        {"data": only(), "model": instance(Model)},
        tried=False,
    ),
    # identification
    Call(
        "sysid.identification.identify",
        sysid.identify,
        {"data": DATA, "model": LORENZ},
        {
            "data": SERIES._replace(
                wrong=st.one_of(
                    SERIES.wrong, st.sampled_from([[DATA, 1.0], [], data.simulate(PREDATORS, TIMES, seed=0)])
                )
            ),
            "model": MODELS,
            "likelihood": kind(
                lambda v: isinstance(v, str) and v in ("derivative", "weak"), st.sampled_from(["weak ", ""])
            ),
            "prior": PRIORS,
            "constraints": kind(
                lambda v: v is None or (isinstance(v, list | tuple | range) and len(v) == 0),
                st.sampled_from(
                    [
                        "sigma",
                        "sigma > k",
                        "sigma**2 < 1",
                        "sigma > 1 > 2 > sigma",
                        ["rho > 1", 3],
                        "1 < 2",
                        domains.box([0.0], [1.0]),
                        "sigma > nan",
                        "sigma > 1e999",
                        "(" * 500,
                        lambda: 1.0,
                    ]
                ),
            ),
            "log": or_none(names(("sigma",), (), also=[["k"]])),
            "time_limit": POSITIVE,
        },
    ),
    Call(
        "sysid.identification.identify by trajectories",
        lambda time_limit, progress, n_searches: sysid.identify(
            DATA, LORENZ, likelihood="trajectory", time_limit=time_limit, progress=progress, n_searches=n_searches
        ),
        {"time_limit": 1.0, "progress": None, "n_searches": 1},
        {
            "time_limit": POSITIVE._replace(odd=None),
            "progress": or_none(flag()),
        },
        tried=False,
    ),
    *[
        call
        for label, one in (("", PROBLEM), (" of logarithms", POSITIVE_PROBLEM))
        for call in [
            Call(
                f"sysid.identification.Identification.parameters of draws{label}",
                one.parameters,
                {"draws": UNIT},
                {"draws": last(UNIT, 3, finite=False)},
            ),
            Call(
                f"sysid.identification.Identification.positions of numbers{label}",
                one.positions,
                {"parameters": UNIT + 1.0},
                {
                    "parameters": array(
                        UNIT + 1.0,
                        lambda a, log=bool(label): a.ndim > 0 and a.shape[-1] == 3 and (not log or (a > 0.0).all()),
                    )
                },
            ),
            Call(
                f"sysid.identification.Identification.system_parameters_of numbers{label}",
                one.system_parameters_of,
                {"parameters": UNIT},
                {
                    "parameters": array(UNIT, lambda a: a.ndim in (1, 2) and a.shape[-1] == 3, finite=False),
                    "experiment": EXPERIMENT,
                },
            ),
            Call(
                f"sysid.identification.Identification.start_of numbers{label}",
                one.start_of,
                {"parameters": UNIT},
                {
                    "parameters": array(UNIT, lambda a: a.ndim in (1, 2) and a.shape[-1] == 3, finite=False),
                    "experiment": EXPERIMENT,
                },
            ),
            Call(
                f"sysid.identification.Identification.scaled to given{label}",
                one.scaled,
                {"mode": [10.0, 28.0, 2.0], "root": UNIT},
                {
                    "mode": not_none(
                        shaped([10.0, 28.0, 2.0], (3,), lambda a, log=bool(label): not log or (a > 0).all())
                    ),
                    "root": not_none(
                        shaped(
                            UNIT,
                            (3, 3),
                            lambda a: (
                                abs(np.linalg.det(a / max(np.abs(a).max(), 1e-300))) > 1e-6
                                and 1e-100 < np.abs(a).max() < 1e100
                            ),
                        )
                    ),
                },
                {"mode": "root", "root": "mode"},
            ),
            Call(
                f"sysid.identification.Identification.starts of chains{label}",
                one.starts,
                {"n_chains": 2, "seed": 0},
                {"n_chains": count(1, idle=False), "spread": number(0.0, ends="[")},
            ),
            Call(f"sysid.identification.Identification.usual_start of it{label}", one.usual_start),
        ]
    ],
    Call(
        "sysid.identification.Identification.estimates of a run",
        estimates_of,
        lambda: {"run": run(), "level": 0.9},
        {"run": OTHER_RUNS, "level": OPEN_SHARE},
        {"run": "draws"},
    ),
    Call(
        "sysid.identification.Identification.solver_check of a run",
        lambda run: by_trajectory().solver_check(run),
        lambda: {"run": run_by_trajectory()},
        {"run": OTHER_RUNS},
    ),
    Call("sysid.identification.Identification.refined of it", lambda: by_trajectory().refined()),
    Call(
        "sysid.identification.Identification.inclusion of a run",
        lambda run: problem().scaled().inclusion(run),
        lambda: {"run": run()},
        {"run": OTHER_RUNS},
        {"run": "draws"},
    ),
    Call(
        "sysid.identification.Identification.to_datatree of a run",
        lambda run, log_likelihood: problem().scaled().to_datatree(run, log_likelihood=log_likelihood),
        lambda: {"run": run(), "log_likelihood": True},
        {"run": OTHER_RUNS, "log_likelihood": flag()},
    ),
    Call(
        "sysid.identification.Identification.log_likelihood of a run",
        lambda run: problem().scaled().log_likelihood(run),
        lambda: {"run": run()},
        {"run": OTHER_RUNS},
    ),
    Call(
        "sysid.identification.Identification.loo of a run",
        lambda run: problem().scaled().loo(run),
        lambda: {"run": run()},
        {"run": OTHER_RUNS},
        tried=False,
    ),
    Call(
        "sysid.identification.Identification.evidence of a run",
        lambda run, seed: proper().evidence(run, seed=seed),
        lambda: {"run": run_of_proper(), "seed": 0},
        {"run": OTHER_RUNS},
    ),
    Call(
        "sysid.estimates.Estimates.to_dataframe of some",
        sysid.Estimates(NAMED, *np.ones((7, 3))).to_dataframe,
    ),
    Call(
        "sysid.estimates.marginal_modes",
        sysid.marginal_modes,
        {"draws": DATA.values},
        {
            "draws": shaped(DATA.values, (51, None), lambda a: (np.abs(a) < 1e100).all()),
            "weights": or_none(shaped(np.ones(51), (51,), lambda a: (a >= 0).all() and np.sort(a)[-2] > 0)),
        },
        {"draws": "weights"},
    ),
    # sparse posteriors
    Call(
        "sysid.sparsity.natural_scales",
        sparsity.natural_scales,
        {"data": DATA, "model": LORENZ},
        {"data": SERIES, "model": MODELS},
    ),
    Call(
        "sysid.sparsity.sparse_prior",
        sparsity.sparse_prior,
        lambda: {"prepared": quadratic(), "scales": [1.0] * 3},
        {
            "prepared": PREPARED,
            "scales": shaped([1.0] * 3, (3,), lambda a: (a > 0).all() and (a < 1e90).all() and (a > 1e-90).all()),
            "inclusion": OPEN_SHARE,
            "slab": SCALE._replace(odd=None),
            "spike": SCALE._replace(odd=None),
        },
    ),
    *[
        Call(
            f"sysid.sparsity.{f.__name__}",
            f,
            lambda: {"prepared": quadratic(), "prior": None, "sweeps": 10},
            {
                "prepared": PREPARED,
                "prior": PRIORS,
                "sweeps": count(10, 10**7)._replace(odd=None),
                "progress": or_none(flag()),
                "groups": or_none(array([0, 0, 1], lambda a: a.shape == (3,) and a.dtype.kind in "iu")),
            },
        )
        for f in (sparsity.sparse_posterior, sparsity.inclusion_probabilities)
    ],
    Call("sysid.sparsity.term_degrees", sparsity.term_degrees, {"model": LORENZ}, {"model": MODELS}),
    Call(
        "sysid.sparsity.Sparse.intervals of draws",
        lambda share: sparsity.sparse_posterior(quadratic(), None, sweeps=10).intervals(share),
        {"share": 0.5},
        {"share": OPEN_SHARE},
    ),
    # discovery
    Call(
        "sysid.discovery.sparse_equations.discover",
        sysid.discover,
        {"series": DATA, "degree": 2, "sweeps": 10},
        {
            "series": SERIES,
            "library": kind(lambda v: v is None or isinstance(v, Library), st.sampled_from([MODEL, LORENZ, "xyz", 3])),
            "degree": count(1, 8)._replace(odd=None),
            "likelihood": kind(
                lambda v: isinstance(v, str) and v in ("derivative", "weak"),
                st.sampled_from(["weak ", "", "trajectory", None]),
            ),
            "level": OPEN_SHARE,
            "inclusion": or_none(OPEN_SHARE)._replace(odd=None),  # which may warn of intervals
            "sweeps": count(10, 10**7)._replace(odd=None),
            "time_limit": POSITIVE._replace(odd=None),
        },
    ),
    *[
        Call(
            f"sysid.discovery.sparse_equations.Discovery.{method}",
            getattr(discovered(), method),
            good,
            kinds,
            {"series": "data", "times": "start"},
        )
        for method, good, kinds in [
            ("equations", {}, {"style": choice("text", "latex")}),
            ("latex", {}, {}),
            ("sympy", {}, {}),
            (
                "simulate",
                {"times": TIMES[:3], "n_draws": 2},
                {
                    "times": or_none(array(TIMES, lambda a: a.ndim == 1 and is_rising(a) and a[0] >= 0.0)),
                    "start": or_none(IS_USUAL),
                    "n_draws": or_none(count(1, 2**31)._replace(odd=None)),
                    "noise": or_none(array(UNIT[0], lambda a: a.shape in ((), (3,)) and (a >= 0).all())),
                    "inputs": INPUTS,
                    "method": SOLVED["method"],
                    "step": SOLVED["step"],
                },
            ),
            (
                "forecast",
                {"times": TIMES[:3] + 1.0, "n_draws": 2},
                {
                    "times": array(TIMES + 1.0, lambda a: a.ndim == 1 and is_rising(a) and a[0] >= 1.0),
                    "n_draws": or_none(count(1, 2**31)._replace(odd=None)),
                    "noise": or_none(array(UNIT[0], lambda a: a.shape in ((), (3,)) and (a >= 0).all())),
                    "inputs": INPUTS,
                },
            ),
            (
                "forecast_check",
                {"fraction": 0.2, "n_draws": 2},
                {
                    "fraction": OPEN_SHARE._replace(odd=None),  # which may leave too few rows
                    "n_draws": or_none(count(1, 2**31)._replace(odd=None)),
                    "time_limit": POSITIVE._replace(odd=None),
                },
            ),
            ("residuals", {}, {"series": or_none(SERIES)}),
            ("score", {}, {"series": or_none(SERIES)}),
        ]
    ],
    # PySINDy
    Call(
        "sysid.discovery.compare.compare_pysindy",
        sysid.compare_pysindy,
        {"data": DATA, "degree": 1, "methods": ()},
        {
            "data": SERIES,
            "degree": count(1, 8)._replace(odd=None),
            "truth": or_none(shaped(np.ones((4, 3)), (4, 3))),
            "methods": kind(
                lambda v: isinstance(v, list | tuple | range) and len(v) == 0,
                st.sampled_from([["stlsqs"], "sbr", [1], [None]]),
            ),
            "thresholds": shaped([0.1], (None,), lambda a: a.size and (a >= 0).all()),
            "samples": count(10)._replace(odd=None),
        },
        {"degree": "truth"},
        tried=False,
    ),
    *[
        Call(
            f"sysid.discovery.compare.Comparison.{m} of a row",
            row_method(m),
            lambda: {"row": compared().rows[0]},
            {"row": instance(compare.Row)},
        )
        for m in ("error", "is_right", "covered")
    ],
]
