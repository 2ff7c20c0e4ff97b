"""Points 6 and 8: labels of units, times that are dates, numbers above a million, gaps in the record."""

import datetime
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sysid import Inputs, Series, data, discover, identify, likelihoods, systems

from .case import Case, Outcome, classified

RATE = 0.5  # per hour, of the decay
HOURS = np.linspace(0.0, 5.0, 26)
DECAYED = 10.0 * np.exp(-RATE * HOURS)[:, None] + 0.05 * np.random.default_rng(0).normal(size=(26, 1))


def decay(time_unit: str = "h", unit: str = "") -> Any:
    """c′ = −k c from 10."""
    return systems.own(
        lambda t, x, p: (-p[0] * x[0],), states=("c",), parameters=("k",), usual=[0.5], start=[10.0],
        time_unit=time_unit, units=(unit,),
    )  # fmt: skip


def series(times: Any, values: Any, time_unit: str, name: str, unit: str = "") -> Series:
    """Measurements of c."""
    return Series(times, values, ("c",), time_unit=time_unit, name=name, units=(unit,))


class Fit(NamedTuple):
    """What the trajectory likelihood finds: the rate, the first state, the standard deviation of the errors."""

    rate: float
    start: float
    sd: float


def fit_of(given: Any, system: Any) -> Fit:
    """The fit, of the first series where there are several."""
    problem = identify(given, system, likelihood="trajectory", progress=False)
    values = problem.modes.parameters[0]
    start = next(k for k, name in enumerate(problem.names) if name.startswith("c(0)"))
    return Fit(float(values[problem.names.index("k")]), float(values[start]), float(values[-1]))


def is_fit(found: Fit) -> bool:
    """Whether it has the truth: 0.5 per hour from 10, with errors of 0.05."""
    return is_rate(found.rate) and abs(found.start - 10.0) < 0.2 and 0.02 < found.sd < 0.1


def is_rate(value: float) -> bool:
    """Whether it is the rate per hour, within ten standard deviations."""
    return abs(value - RATE) < 0.03


def units_case(first: Series, second: Series | None, system: Any) -> Outcome:
    """Series that contradict each other or a system."""
    given = first if second is None else [first, second]
    return classified(lambda: fit_of(given, system), is_fit, refusal="must be the same wherever")


def discovered_rate(given: Any) -> float:
    """The coefficient of c in c′."""
    found = discover(given, degree=1, progress=False)
    return float(-found.coefficients[found.library.names.index("c"), 0])


A, B = series(HOURS, DECAYED, "h", "a"), series(60.0 * HOURS, DECAYED, "min", "b")
DAYS = series(HOURS / 24.0, DECAYED, "days", "days")
GRAMS, MILLIGRAMS = series(HOURS, DECAYED, "h", "g", "g/L"), series(HOURS, 1e3 * DECAYED, "h", "mg", "mg/L")


def dosed_in_minutes() -> Fit:
    """The fit of data in hours whose dose is at a time in minutes, and says so where it can."""
    amounts = {"c": ([120.0], [5.0])}
    try:
        inputs = Inputs(doses=amounts, time_unit="min")  # type: ignore[call-arg, unused-ignore]
    except TypeError:  # no label can be given
        inputs = Inputs(doses=amounts)
    late = np.where(HOURS > 2.0, 5.0 * np.exp(-RATE * (HOURS - 2.0)), 0.0)[:, None]
    return fit_of(replace(series(HOURS, DECAYED + late, "h", "dosed"), inputs=inputs), decay())


def converted() -> Fit:
    """The fit of both series, one of them converted."""
    return fit_of([A, B.with_time_unit("h")], decay())  # type: ignore[attr-defined, unused-ignore]


STEPS = np.ones(39)  # the true steps of forty days, in days
FORTY_DAYS = [datetime.date(2021, 1, 20) + datetime.timedelta(days=k) for k in range(40)]
LEVEL = 10.0 * np.exp(-0.05 * np.arange(40.0))


def steps_of_text(words: Sequence[str], **options: Any) -> Any:
    """Steps of the times in a file with these words, in days."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "well.csv"
        rows = [f"{word},{level:.4f}" for word, level in zip(words, LEVEL, strict=False)]
        path.write_text("date,level\n" + "\n".join(rows), encoding="utf-8")
        return np.diff(data.load(path, time="date", time_unit="day", **options).times)


def steps_of(times: Any) -> Any:
    """Steps of the times of a series, in days."""
    return np.diff(Series(times, LEVEL[:, None], ("x",), time_unit="day").times)


def dates_case(call: Any, steps: Any, refusal: str) -> Outcome:
    """Times that are dates: right where steps are as they should be."""
    return classified(call, lambda found: np.allclose(found, steps, rtol=1e-9), refusal=refusal)


def in_text(shape: str, dates: Sequence[Any] = FORTY_DAYS) -> Any:
    """A function that reads dates written in some shape."""
    return lambda: steps_of_text([date.strftime(shape) for date in dates])


def dose_steps() -> Any:
    """Steps of doses at dates, in days."""
    inputs = Inputs(doses={"x": (np.array(FORTY_DAYS, "M8[D]"), np.ones(40))})
    made = Series(np.array(FORTY_DAYS, "M8[D]"), LEVEL[:, None], ("x",), time_unit="day", inputs=inputs)
    return np.diff(made.inputs.doses["x"].times) if made.inputs else None


def grown(scale: float) -> float:
    """The rate of growth of a population that begins at ``scale``, 0.4."""
    times = np.linspace(0.0, 10.0, 21)
    noise = np.exp(0.05 * np.random.default_rng(1).normal(size=21))
    growth = systems.own(lambda t, x, p: (p[0] * x[0],), states=("cfu",), parameters=("r",), usual=[0.5], start=[scale])
    law = likelihoods.trajectory(errors="lognormal")
    measured = Series(times, (scale * np.exp(0.4 * times) * noise)[:, None], ("cfu",))
    return float(identify(measured, growth, likelihood=law, progress=False).modes.parameters[0, 0])


def epidemic(size: float) -> float:
    """The rate of infection, 0.5, of a population of which the infected are measured."""
    times = np.linspace(0.0, 60.0, 31)
    sir = systems.own(
        lambda t, x, p: (-p[0] * x[0] * x[1] / size, p[0] * x[0] * x[1] / size - p[1] * x[1]),
        states=("S", "I"), parameters=("beta", "gamma"), usual=[0.5, 0.2], start=[size - 100.0, 100.0],
    )  # fmt: skip
    infected = data.simulate(sir, times, seed=0).values[:, 1]
    noisy = infected * np.exp(0.05 * np.random.default_rng(0).standard_normal(31))
    law = likelihoods.trajectory(errors="lognormal", start=sir.start, step=0.5)
    problem = identify(Series(times, noisy[:, None], ("I",)), sir, likelihood=law, progress=False)
    return float(problem.modes.parameters[0, 0])


def hunted(first: int, last: int, state: int | None, *, left_out: bool) -> str:
    """The terms that are found of prey and predators without rows first … last − 1."""
    made = data.simulate(systems.lotka_volterra(), np.linspace(0, 20, 201), seed=0)
    values = made.values + np.random.default_rng(0).normal(size=made.values.shape) * [0.5, 0.4]
    rows = np.r_[0:first, last:201] if left_out else np.arange(201)
    values[first:last, slice(None) if state is None else state] = np.nan
    found = discover(Series(made.times[rows], values[rows], made.states), progress=False)
    return ", ".join(sorted(found.sparse.support))


TRUE_TERMS = "dpredator:predator, dpredator:prey predator, dprey:prey, dprey:prey predator"


def gap_case(first: int, last: int, state: int | None = None, *, left_out: bool = False) -> Outcome:
    """A gap in the record of prey and predators."""
    return classified(lambda: hunted(first, last, state, left_out=left_out), lambda terms: terms == TRUE_TERMS)


def dated(shape: str) -> Any:
    """A function that judges forty days written as numbers in some order."""
    numbers = [float(date.strftime(shape)) for date in FORTY_DAYS]
    return lambda: dates_case(lambda: steps_of(numbers), STEPS, "look like dates")


def slip_case(row: int) -> Outcome:
    """A level around 5 of which one value at an end is 100 times as large."""
    values = (5.0 + 3.0 * np.sin(np.arange(201.0) / 20.0)) * np.exp(0.01 * np.random.default_rng(4).normal(size=201))
    values[row] *= 100.0
    made = Series(np.arange(201.0), values[:, None], ("x",))
    return classified(lambda: data.check(made), lambda found: any(f"(row {row}," in text for text in found))


def poor_subject() -> Any:
    """Parameters of four subjects' prey and predators, of which one is measured three times within 1e-5."""
    system, rng, group = systems.lotka_volterra(), np.random.default_rng(0), []
    for k in range(4):
        times = np.sort(np.r_[0, rng.uniform(0, 8, 9)])
        values = data.simulate(system, times, start=rng.uniform(4, 16, 2), seed=k).values
        values = values * np.exp(0.05 * rng.normal(size=values.shape))
        if k == 1:
            times, values = np.array([0.0, 1e-6, 1e-5, 8.0]), values[:4]
        group.append(Series(times, values, system.states, name=f"s{k}"))
    law = likelihoods.trajectory(errors="lognormal")
    return identify(group, system, likelihood=law, progress=False).modes.parameters[0][:4]


TRUTH, TERMS = "k 0.5 per h, from 10, errors 0.05", "the four true terms"
K_HOURS, ONE_DAY = f"{TRUTH}; or refused", "steps of one day, or refused as dates"

CASES = (
    Case(6, "experiments in h and min", "others", K_HOURS, lambda: units_case(A, B, decay())),
    Case(6, "discover of experiments in h and min", "others", "0.5 per h, or refused",
         lambda: classified(lambda: discovered_rate([A, B]), is_rate, refusal="must be the same wherever")),
    Case(6, "a system in h, data in min", "others", K_HOURS, lambda: units_case(B, None, decay())),
    Case(6, "mg/L beside g/L", "others", K_HOURS, lambda: units_case(GRAMS, MILLIGRAMS, decay())),
    Case(6, "a system in hr, data in days", "ours", K_HOURS, lambda: units_case(DAYS, None, decay("hr"))),
    Case(6, "a system in g/L, data in mg/L", "ours", K_HOURS, lambda: units_case(MILLIGRAMS, None, decay("h", "g/L"))),
    Case(6, "doses in min, data in h", "ours", K_HOURS,
         lambda: classified(dosed_in_minutes, is_fit, refusal="must be the same wherever")),
    Case(6, "synonyms: h, hours", "ours", f"{TRUTH}; not refused",
         lambda: units_case(A, replace(A, time_unit="hours"), decay("hr"))),
    Case(6, "h and min after with_time_unit", "ours", TRUTH, lambda: classified(converted, is_fit)),
    Case(6, "text: 20210130", "others", ONE_DAY, lambda: dates_case(in_text("%Y%m%d"), STEPS, "date_format")),
    Case(6, "text: 30.01.2021", "others", ONE_DAY, lambda: dates_case(in_text("%d.%m.%Y"), STEPS, "date_format")),
    Case(6, "text: 30/01/2021", "others", ONE_DAY, lambda: dates_case(in_text("%d/%m/%Y"), STEPS, "date_format")),
    Case(6, "text: 2021-01-30T00:00:00+01:00", "others", ONE_DAY,
         lambda: dates_case(in_text("%Y-%m-%dT00:00:00+01:00"), STEPS, "date_format")),
    Case(6, "text: 2021-01", "others", "steps of 31 and 28 days, or refused as dates",
         lambda: dates_case(lambda: steps_of_text(["2021-01", "2021-02", "2021-03"]), [31, 28], "date_format")),
    Case(6, "text: Jan 30 2021", "others", ONE_DAY, lambda: dates_case(in_text("%b %d %Y"), STEPS, "date_format")),
    Case(6, "text: 06:00:00", "others", "steps of an hour, or refused as times",
         lambda: dates_case(lambda: steps_of_text(["06:00:00", "07:00:00"]), [1 / 24], "date_format")),
    Case(6, "numbers: 20210130", "ours", ONE_DAY,
         lambda: dates_case(lambda: steps_of([int(f"{d:%Y%m%d}") for d in FORTY_DAYS]), STEPS, "look like dates")),
    Case(6, "text: 202101300600", "ours", ONE_DAY, lambda: dates_case(in_text("%Y%m%d0600"), STEPS, "look like dates")),
    Case(6, "text: months as 202101", "ours", "refused as dates, or months", lambda: dates_case(
        lambda: steps_of_text(["202011", "202012", "202101"]), [30, 31], "look like dates")),
    Case(6, "text: 2021/01/30", "ours", ONE_DAY, lambda: dates_case(in_text("%Y/%m/%d"), STEPS, "date_format")),
    Case(6, "text: 01.02.2021, no row tells", "ours", "refused as dates",
         lambda: dates_case(in_text("%d.%m.%Y", FORTY_DAYS[12:22]), [], "date_format")),
    Case(6, "dates of Python", "ours", ONE_DAY, lambda: dates_case(lambda: steps_of(FORTY_DAYS), STEPS, "look like")),
    Case(6, "doses at dates", "ours", ONE_DAY, lambda: dates_case(dose_steps, STEPS, "look like")),
    *(Case(6, f"numbers: {shape}", "ours", ONE_DAY, dated(shape)) for shape in ("%d%m%Y", "%m%d%Y", "%y%m%d")),
    Case(6, "numbers: 930, 1015, ...", "ours", "steps of 45 minutes, or refused as times",
         lambda: dates_case(lambda: steps_of([930.0, 1015.0, 1100.0, 1145.0, 1230.0]), 1 / 32, "look like times")),
    Case(6, "numbers: ms since 1970 as days", "ours", "steps of one day, or refused as such",
         lambda: dates_case(lambda: steps_of(1e3 * (1.6e9 + 86400.0 * np.arange(40.0))), STEPS, "since 1970")),
    Case(6, "text: 2021-1-30", "ours", ONE_DAY, lambda: dates_case(
        lambda: steps_of_text([f"{d.year}-{d.month}-{d.day}" for d in FORTY_DAYS]), STEPS, "date_format")),
    Case(2, "the first value times 100", "ours", "row 0 is named", lambda: slip_case(0)),
    Case(2, "the last value times 100", "ours", "row 200 is named", lambda: slip_case(200)),
    Case(8, "a poor subject of four", "ours", "1.03, 0.105, 0.072, 1.5 (10 %)",
         lambda: classified(poor_subject, lambda p: np.allclose(p, [1.03, 0.105, 0.072, 1.5], rtol=0.1))),
    Case(8, "bacteria in CFU", "others", "r = 0.4",
         lambda: classified(lambda: grown(1e7), lambda r: abs(r - 0.4) < 0.02)),
    Case(8, "SIR of 6e7", "others", "β = 0.5",
         lambda: classified(lambda: epidemic(6e7), lambda b: abs(b - 0.5) < 0.03)),
    Case(8, "growth from 1e12", "ours", "r = 0.4",
         lambda: classified(lambda: grown(1e12), lambda r: abs(r - 0.4) < 0.02)),
    Case(8, "growth from 1e-9", "ours", "r = 0.4",
         lambda: classified(lambda: grown(1e-9), lambda r: abs(r - 0.4) < 0.02)),
    Case(8, "SIR of 1e3", "ours", "β = 0.5", lambda: classified(lambda: epidemic(1e3), lambda b: abs(b - 0.5) < 0.03)),
    Case(8, "a gap of rows of nan", "others", TERMS, lambda: gap_case(60, 110)),
    Case(8, "a gap of rows left out", "others", TERMS, lambda: gap_case(60, 110, left_out=True)),
    Case(8, "a later gap, of nan", "ours", TERMS, lambda: gap_case(100, 170)),
    Case(8, "a gap of one state", "ours", TERMS, lambda: gap_case(60, 110, 0)),
    Case(8, "a short gap, of nan", "ours", TERMS, lambda: gap_case(60, 72)),
)  # fmt: skip
