"""The papers' report: verdicts, claims in words without a row, quick versions, and numbers typed in by hand."""

import functools
import math
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from figures import Claim, Study, script
from figures.report.contents import Contents, Entry
from figures.report.html import page
from figures.report.markdown import markdown
from figures.scripts.cached_data import Measured, as_data
from figures.scripts.runner import Script

from .case import RIGHT, SILENT, Case, Outcome


@functools.cache
def quick_data(name: str) -> Any:
    """What the quick version of a figure measures."""
    module = script(name).module
    return as_data(module.measure(Study(quick=True, seed=module.SEED)))


def quick_claims(name: str) -> list[Claim]:
    """The claims of the quick version of a figure."""
    return script(name).compare(quick_data(name))


def verdict_of(claim: Callable[[], Claim], *right: str) -> Callable[[], Outcome]:
    """Whether a claim gets the right verdict, in the words of either tree."""

    def run() -> Outcome:
        found = claim().verdict
        return Outcome(RIGHT if found in right else SILENT, found)

    return run


def made(*values: Any, **more: Any) -> Claim:
    """A claim, of those arguments that this version of ``Claim`` takes."""
    known = {key: value for key, value in more.items() if key in Claim._fields}
    return Claim(*values, **known)


def words(printed: float, ours: float, error: float, aim: str = "higher") -> Callable[[], Claim]:
    """A claim in words."""
    return lambda: Claim("A less B", printed, ours, error, aim, in_words=True)


def row_of(name: str, *parts: str) -> Callable[[], Outcome]:
    """Whether a figure has a row, whatever its verdict, whose text and source contain all ``parts``."""

    def run() -> Outcome:
        found = [c for c in quick_claims(name) if all(part in f"{c.what} {c.source}" for part in parts)]
        kind = RIGHT if any(not math.isnan(c.printed) for c in found) else SILENT
        return Outcome(kind, found[0].what if found else f"{len(quick_claims(name))} rows, none of them")

    return run


def judged(name: str, part: str, wrong: Iterable[str]) -> Callable[[], Outcome]:
    """Whether no number of a figure's full version whose text contains ``part`` gets one of the ``wrong`` verdicts.

    The number is moved far to the better side, with an error of next to nothing.
    """

    def run() -> Outcome:
        claims = [c for c in quick_claims(name) if part in c.what and not math.isnan(c.printed) and not c.in_words]
        moved = [c._replace(ours=c.printed * (1.2 if c.aim != "lower" else 0.8), error=1e-9) for c in claims]
        found = [c.verdict for c in moved]
        bad = not found or any(verdict in wrong for verdict in found)
        return Outcome(SILENT if bad else RIGHT, ", ".join(found) or "no row")

    return run


def counted_once(name: str) -> Callable[[], Outcome]:
    """Whether no number of ours is compared twice with numbers printed by the paper."""

    def run() -> Outcome:
        printed = [
            c for c in quick_claims(name) if getattr(c, "comes_from", "printed by the paper").startswith("print")
        ]
        ours = [
            re.sub(r" \(table.*", "", c.what) for c in printed if c.verdict not in ("not printed", "another quantity")
        ]
        twice = sorted({text for text in ours if ours.count(text) > 1})
        return Outcome(SILENT if twice else RIGHT, f"{len(ours)} rows, twice: {', '.join(twice) or 'none'}")

    return run


def small_report() -> Contents:
    """A report of one quick figure with one number."""
    module = ModuleType("csgld_fig99")
    module.__doc__ = "CSGLD (2020), figure 99: one.\n\nText.\n"
    picture = Path(tempfile.mkdtemp()) / "csgld_fig99.png"
    picture.write_bytes(b"picture")
    entry = Entry(Script("csgld_fig99", module), Measured({}, [], 1.0), [Claim("KL, nats", 0.5, 0.321, 0.01, "lower")],
                  picture, True, True)  # fmt: skip
    return Contents([entry], [], "M")


def numbers_of_quick_reports() -> Outcome:
    """Whether the table of all numbers of a quick report has the number."""
    counts = [text.count("0.321 ± 0.010") for text in (page(small_report()), markdown(small_report()))]
    shown = f"in HTML and Markdown, with the figure and in the table: {counts}"
    return Outcome(RIGHT if counts == [2, 2] else SILENT, shown)


def pictures_come_first() -> Outcome:
    """Whether the long tables stand behind the pictures, and a list of contents before them."""
    text = markdown(small_report())
    places = [text.find(part) for part in ("## Contents", "![", "## All numbers")]
    right = -1 < places[0] < places[1] < places[2]
    return Outcome(RIGHT if right else SILENT, f"contents, picture, numbers at {places}")


def quick_draws_are_seen(name: str) -> Callable[[], Outcome]:
    """Whether every panel of a quick posterior, but of SGLD, whose σ does not arrive, shows its curve."""

    def run() -> Outcome:
        data = quick_data(name)
        peak = data["densities"][:, -1].max(axis=-1)  # of all seeds together, (method, parameter)
        step = data["grids"][:, 1] - data["grids"][:, 0]
        shown = (data["densities"][:, -1].sum(axis=-1) * step > 0.5) & (peak > 0.0)
        panels = [bool(x) for m, row in zip(data["methods"].tolist(), shown, strict=True)
                  for k, x in enumerate(row) if not (k == 0 and m in ("SGLD", "R-SGLD"))]  # fmt: skip
        return Outcome(RIGHT if all(panels) else SILENT, f"{sum(panels)} of {len(panels)} panels show their draws")

    return run


def quick_simulations_move(name: str) -> Callable[[], Outcome]:
    """Whether simulations from the modes of a quick version go on moving, as the truth does."""

    def run() -> Outcome:
        spread = quick_data(name)["states"][:, -1000:].std(axis=1)[:, 0]
        ratio = spread[1:] / spread[0]
        return Outcome(
            RIGHT if (ratio > 0.3).all() else SILENT, f"late spread over the truth's: {ratio.round(2).tolist()}"
        )

    return run


def thermostats_beside_the_theorem() -> Outcome:
    """How far the thermostats' means are from theorem 1 at the smallest time step that is shown."""
    claims = [c for c in quick_claims("tact_hmc_fig1b") if c.what.startswith("mean of the thermostat")]
    off = [100.0 * (c.ours / c.printed - 1.0) for c in claims[-2:]]
    return Outcome(RIGHT if max(map(abs, off)) < 4.0 else SILENT, f"{off[0]:.1f} and {off[1]:.1f} %")


def printed_rule_is_computed() -> Outcome:
    """Whether the numbers beside ours of CSGLD's rule as printed have errors of a run, and are not typed in."""
    found = [c for c in quick_claims("csgld_fig1") if "rule as printed" in c.source]
    shown = ", ".join(f"{c.printed:.3f} ± {c.printed_error:.3f}" for c in found)
    return Outcome(RIGHT if any(c.printed_error > 0.0 for c in found) else SILENT, shown)


def digits_have_momentum_and_walls() -> Outcome:
    """Whether reSGHMC and the reflected methods are run, and compared as the paper compares them."""
    pairs = ("reSGHMC ×4 less SGHMC", "r2SGHMC ×4 less reSGHMC ×4", "R-SGHMC less SGHMC")
    found = [any(pair in c.what for c in quick_claims("csgmcmc_table1_digits")) for pair in pairs]
    return Outcome(RIGHT if all(found) else SILENT, f"{dict(zip(pairs, found, strict=True))}")


LORENZ, LV = "r2sgld_fig{}_lorenz_{}", "r2sgld_fig{}_lotka_volterra_{}"
SIMULATION, POSTERIOR = "simulation", "posterior"
CASES = (
    Case(16, "words: ours exactly the bound", "others", "not shown", verdict_of(words(0.0, 0.0, 0.0), "not shown")),
    Case(16, "words: ours -0.33 ± 0.36", "others", "not shown", verdict_of(words(0.0, -0.33, 0.36), "not shown")),
    Case(16, "words: ours 1.9 errors above", "ours", "not shown", verdict_of(words(1.0, 1.19, 0.1), "not shown")),
    Case(16, "words: ours 2.1 errors below", "ours", "contradicted",
         verdict_of(words(1.0, 0.79, 0.1), "contradicted", "not as claimed")),
    Case(16, "words: ours 2.1 errors above, said below", "ours", "contradicted",
         verdict_of(words(1.0, 1.21, 0.1, "lower"), "contradicted", "not as claimed")),
    Case(16, "a law of 2.512 missed at 2.86 ± 0.15", "others", "missed", verdict_of(
        lambda: made("law", 2.51189, 2.86, 0.15, "higher", origin="from theory"), "missed")),
    Case(16, "a law of 1 missed at 1.3 ± 0.1, more being better", "ours", "missed", verdict_of(
        lambda: made("law", 1.0, 1.3, 0.1, "higher", origin="from theory"), "missed")),
    Case(16, "the corollary's ratio in the report", "others", "never better",
         judged("icsgld_fig7_theta", "variance of θ", ("better",))),
    Case(16, "ESS ratio of 1495 beside 0.602", "others", "never better",
         judged("tact_hmc_table_ess", "ESS over that of", ("better", "equal within error"))),
    Case(16, "table 4 counted", "others", "each number once", counted_once("csgmcmc_table4")),
    Case(16, "theorem 1's means in the report", "ours", "never better",
         judged("tact_hmc_fig1b", "of the thermostat s", ("better", "worse"))),
    Case(17, "figure 3: r2SGLD's simulation is nearer", "others", "a row",
         row_of(LORENZ.format(3, SIMULATION), "r2SGLD", "reSGLD")),
    Case(17, "figure 7: r2SGLD replicates most closely", "others", "a row",
         row_of(LORENZ.format(7, SIMULATION), "r2SGLD's less R-cycSGLD's")),
    Case(17, "figure 8: reflection benefits", "others", "a row",
         row_of(LV.format(8, POSTERIOR), "cycSGLD's over R-cycSGLD's")),
    Case(17, "figure 9: r2SGLD marginally closer", "others", "a row",
         row_of(LV.format(9, SIMULATION), "R-cycSGLD's less r2SGLD's")),
    Case(17, "A.1: outperforms the others", "others", "a row",
         row_of(LORENZ.format(6, POSTERIOR), "R-cycSGLD's over r2SGLD's")),
    Case(17, "A.1: reflection significantly improves", "others", "a row",
         row_of(LORENZ.format(6, POSTERIOR), "cycSGLD's over R-cycSGLD's")),
    Case(17, "4.1: dual peaks", "ours", "a row", row_of(LORENZ.format(4, POSTERIOR), "peaks")),
    Case(17, "4.2: reflection reduces KL", "ours", "a row", row_of("r2sgld_fig5_flower", "SGLD over R-SGLD's")),
    Case(17, "A.4: swap rates", "ours", "a row", row_of("r2sgld_fig13_deo_paths", "swap rate")),
    Case(17, "ICSGLD 5.2: SGLD performs the worst", "ours", "a row", row_of("icsgld_fig3", "SGLD×P5 over cycSGLD×T5")),
    Case(17, "ICSGLD 5.3: pCSGLD first worst", "ours", "a row", row_of("icsgld_fig4", "pCSGLD ×T4 over that of pSGLD")),
    Case(17, "CSGLD: multiplier negative", "ours", "a row", row_of("csgld_fig2", "multiplier", "negative")),
    Case(17, "cSG-MCMC A.2: dramatically outperforms", "ours", "a row", row_of("csgmcmc_table5", "cSGLD over SGLD")),
    Case(17, "CSGLD's rule as printed", "others", "computed by the script", printed_rule_is_computed),
    Case(18, "digits: reSGHMC, and walls at ±4", "others", "run and compared", digits_have_momentum_and_walls),
    Case(19, "quick report: all numbers", "others", "not empty", numbers_of_quick_reports),
    Case(19, "report: contents first, long tables last", "others", "in this order", pictures_come_first),
    Case(19, "quick: Lorenz posterior, figure 4", "others", "draws in every panel",
         quick_draws_are_seen(LORENZ.format(4, POSTERIOR))),
    Case(19, "quick: Lorenz posterior, figure 6", "others", "draws in every panel, σ of SGLD excepted",
         quick_draws_are_seen(LORENZ.format(6, POSTERIOR))),
    Case(19, "quick: Lorenz simulated, figure 3", "others", "no fixed point",
         quick_simulations_move(LORENZ.format(3, SIMULATION))),
    Case(19, "quick: Lorenz simulated, figure 7", "ours", "no fixed point",
         quick_simulations_move(LORENZ.format(7, SIMULATION))),
    Case(19, "thermostats at the smallest step shown", "others", "within 4 % of theorem 1",
         thermostats_beside_the_theorem),
)  # fmt: skip
