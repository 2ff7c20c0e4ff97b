"""How a tuning went: what each of its short runs tried and showed, over the gradients it had spent by then."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from toolkit import Tuned
from toolkit.errors import check_instance, shown
from toolkit.tuning.step_sizes import BEST
from toolkit.tuning.study import Fit, Round

from ..arrays import Array
from .fits import check_empty_figure
from .style import DARK, LIGHT, MEDIUM, TRUTH

EDGE, THREAD, BAND = "0.45", "0.8", "0.95"  # greys: exploration's marks, lines between marks, every other stage
WARMEST = 0.8  # of cividis, whose last fifth is too light for white
STAGES = {"exploration": "exploration", "step size": "step sizes", "ladder": "ladder"}  # the others are races
TIME = "gradients spent, thousands"
DRAWS, ENERGY, DISCREPANCY = "independent draws per 1,000 gradients", "mean energy", "kernel Stein discrepancy"
MARKS: dict[str, Any] = {"s": 15, "linewidths": 0.6, "zorder": 2.6}
EACH = HandlerTuple(None, 0.2)  # marks of a tuple beside each other
FOUND: dict[str, Any] = {"color": MEDIUM, "linewidth": 1.0, "linestyle": (0, (5, 1.5)), "zorder": 2.2}


def tuning(tuned: Any, figure: Any) -> dict[str, Axes]:
    """Draw how a tuning went into an empty ``figure``, with axes, legends and a title; its panels by name.

    tuned: what ``toolkit.tune`` gives. figure: a Figure or a SubFigure without axes, some 6 inches wide and 2 high for
    each row of two panels. Those that have nothing to show are left out:

    temperatures: of the rungs, a mark for each in the middle of its round, with its colour in all panels. Grey:
    exploration, filled as far as the variance is between chains; hollow where they forget where they began.
    step_sizes, acceptance: by rung, with the acceptance that is best. rejection: of swaps, by pair of rungs; grey: the
    mean of a round, which all pairs shall have. energy: of moves without a test, the mean energy over step sizes, round
    by round, the last one black; its line through the filled marks, with its standard error, comes to what is allowed
    at the step size that was found. discrepancy: over step sizes, of Stein's particles. race: independent draws per
    1,000 gradients of each variant in its turn, and which one was kept: by the score, their geometric mean, of weight
    ⅔, with new places per 1,000 gradients.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/tuning.png.
    """
    check_instance("tuned", tuned, Tuned)
    names = [name for name, (shows, _, _) in PANELS.items() if shows(tuned)] if tuned.rounds else []
    if not names:
        raise ValueError(f"tuned must have at least one round, and something to show, got {shown(tuned)}")
    check_empty_figure(figure)
    heights = [1.0] * ((len(names) + 1) // 2)
    if names[-1] == "race" and len(names) % 2:
        heights[-1] = 0.15 + 0.1 * slots(tuned)
    grid = figure.add_gridspec(len(heights), 2 if len(names) > 1 else 1, height_ratios=heights)
    panels: dict[str, Axes] = {}
    for i, name in enumerate(names):
        alone = i == len(names) - 1 and i % 2 == 0
        panels[name] = axes = figure.add_subplot(grid[i // 2, slice(None) if alone else i % 2])
        _, draw, over_gradients = PANELS[name]
        if over_gradients and name != "rejection":
            draw_stages(tuned, axes, named=i < 2)
        draw(tuned, axes)
    for name, below in zip(names, names[2:], strict=False):
        if PANELS[below][2] and panels[name].get_xlim() == panels[below].get_xlim():
            panels[name].set_xlabel("")
    marks = marks_of(tuned, panels)
    if marks:
        handles, labels = zip(*marks, strict=True)
        figure.legend(handles, labels, loc="outside lower center", ncols=2, handler_map={tuple: EACH})
    figure.suptitle(title_of(tuned))
    return panels


def title_of(tuned: Tuned) -> str:
    """Sampler and problem; cost and warnings."""
    (gradients, seconds), n = tuned.cost, len(tuned.rounds)
    cost = f"{gradients:,} gradients in {seconds:.2g} s, {n} rounds, seed {tuned.seed}"
    if tuned.warnings:
        cost += f"; {len(tuned.warnings)} warning{'s' * (len(tuned.warnings) > 1)} in its report"
    return f"{tuned.sampler.name} on {tuned.problem}, tuned\n{cost}".replace("$", r"\$")


# What the panels over gradients share.


class Span(NamedTuple):
    """A round, and the gradients that were spent at its beginning and its end, in thousands."""

    round: Round
    start: float
    end: float

    @property
    def middle(self) -> float:
        """Where its marks are."""
        return 0.5 * (self.start + self.end)


def spans(tuned: Tuned) -> list[Span]:
    """All rounds with their places."""
    ends = [each.spent for each in tuned.rounds]
    if min(ends) <= 0:  # of rounds that nobody has counted
        ends = np.cumsum([each.gradients for each in tuned.rounds]).tolist()
    return [Span(each, 1e-3 * (end - each.gradients), 1e-3 * end) for each, end in zip(tuned.rounds, ends, strict=True)]


def of_rungs(tuned: Tuned) -> list[Span]:
    """Rounds of the sampler itself, whose settings are its rungs."""
    return [span for span in spans(tuned) if span.round.stage not in ("exploration", "step size")]


def of_exploration(tuned: Tuned) -> list[Span]:
    """Rounds of HMC at temperatures of its own."""
    return [span for span in spans(tuned) if span.round.stage == "exploration"]


def draw_stages(tuned: Tuned, axes: Axes, named: bool) -> None:
    """The x axis, and bands of every other stage, with their names above where ``named``."""
    groups: list[tuple[str, float, float]] = []
    for span in spans(tuned):
        name = STAGES.get(span.round.stage, "races")
        start = span.start
        if groups and groups[-1][0] == name:
            start = groups.pop()[1]
        groups.append((name, start, span.end))
    for i, (name, start, end) in enumerate(groups):
        if i % 2:
            axes.axvspan(start, end, color=BAND, linewidth=0.0, zorder=0.5)
        if named:
            axes.text(
                0.5 * (start + end), 1.01, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom",
                fontsize="small", color="0.35",
            )  # fmt: skip
    axes.set(xlim=(0.0, 1e-3 * max(tuned.cost.gradients, tuned.rounds[-1].spent)), xlabel=TIME)


def colours_of(tuned: Tuned, temperatures: Sequence[float]) -> Array:
    """A colour for each temperature, of which the hottest of any rung is the warmest."""
    hottest = max((max(span.round.temperatures) for span in of_rungs(tuned)), default=1.0)
    coldest = float(tuned.sampler.arrays["temperatures"].min())
    range_ = np.log(hottest / coldest) or 1.0
    places = np.clip(np.log(np.asarray(temperatures) / coldest) / range_, 0.0, 1.0)
    return np.asarray(mpl.colormaps["cividis"](WARMEST * places))


def draw_marks(
    axes: Axes, drawn: list[Span], values: Callable[[Round], Sequence[float]], fills: Callable[[Round], Any]
) -> None:
    """A mark for each value of a round, and threads from round to round where there are as many values."""
    for before, after in itertools.pairwise(drawn):
        if len(values(before.round)) == len(values(after.round)):
            pairs = np.stack([values(before.round), values(after.round)])
            axes.plot([before.middle, after.middle], pairs, color=THREAD, linewidth=0.6, linestyle="-", zorder=2.0)
    for span in drawn:
        heights = values(span.round)
        axes.scatter(
            np.full(len(heights), span.middle), heights, c=fills(span.round)[: len(heights)], clip_on=False,
            edgecolors=EDGE if span.round.stage == "exploration" else "white", **MARKS,
        )  # fmt: skip


def greys(shares: Any) -> Array:
    """Fills of exploration's marks: white where no variance is between chains, to grey where all is."""
    return np.repeat(1.0 - 0.55 * np.clip(np.asarray(shares), 0.0, 1.0)[:, None], 3, axis=1)


def shares_of(each: Round) -> Array:
    """Fills of a round of exploration."""
    return greys(each.figure)


def hollow(each: Round) -> Array:
    """Fills of a round of exploration where shares are not the matter."""
    return greys(np.zeros(len(each.temperatures)))


def log_axis(axis: Any, values: Array, base: float = 10.0) -> None:
    """A logarithmic axis with its numbers written out, where positive ``values`` differ by a factor of 3 or more."""
    ratio = float(values.max() / values.min())
    if ratio < 3.0:
        return
    setter = axis.axes.set_yscale if axis.axis_name == "y" else axis.axes.set_xscale
    setter("log", base=base)
    subs = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0) if ratio < 8.0 else (1.0, 2.0, 5.0) if ratio < 200.0 else (1.0,)
    subs = subs if base == 10.0 else (1.0,)
    axis.set_major_locator(LogLocator(base=base, subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def mark(fill: Any, edge: Any) -> Line2D:
    """A mark for a legend."""
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.0, "markeredgewidth": 0.6}
    return Line2D([], [], markerfacecolor=fill, markeredgecolor=edge, **look)


def all_values(drawn: list[Span], values: Callable[[Round], Sequence[float]]) -> Array:
    """Those of all rounds that are finite."""
    flat = np.array([value for span in drawn for value in values(span.round)], np.float64)
    return flat[np.isfinite(flat)]


# The panels, each with what it shows something of.


def temperatures(each: Round) -> Sequence[float]:
    """Of a round."""
    return each.temperatures


def step_sizes(each: Round) -> Sequence[float]:
    """Of a round."""
    return each.step_sizes


def acceptance(each: Round) -> Sequence[float]:
    """Of a round; none where it has none."""
    return each.acceptance if np.isfinite(each.acceptance).any() else ()


def rejection(each: Round) -> Sequence[float]:
    """Of a round."""
    return each.rejection


def has_temperatures(tuned: Tuned) -> bool:
    """Whether there are several."""
    return len(set(all_values(of_exploration(tuned) + of_rungs(tuned), temperatures).tolist())) > 1


def draw_temperatures(tuned: Tuned, axes: Axes) -> None:
    """The ladder as it moves."""
    draw_marks(axes, of_exploration(tuned), temperatures, shares_of)
    draw_marks(axes, of_rungs(tuned), temperatures, lambda each: colours_of(tuned, each.temperatures))
    found = all_values(of_exploration(tuned) + of_rungs(tuned), temperatures)
    log_axis(axes.yaxis, found, 2.0 if found.max() < 2000.0 * found.min() else 10.0)
    axes.set_ylabel("temperature $T$ of $U/T$")


def explores_as_it_moves(tuned: Tuned) -> bool:
    """Whether exploration's step sizes are of the sampler's kind."""
    return tuned.sampler.dynamics.name == "hmc"


def spans_with_steps(tuned: Tuned) -> list[Span]:
    """Rounds whose step sizes are of the sampler's kind."""
    return (of_exploration(tuned) if explores_as_it_moves(tuned) else []) + of_rungs(tuned)


def has_step_sizes(tuned: Tuned) -> bool:
    """Whether several were tried, by rounds that are not in a panel of their own."""
    return len(set(all_values(spans_with_steps(tuned), step_sizes).tolist())) > 1


def draw_step_sizes(tuned: Tuned, axes: Axes) -> None:
    """By rung, with exploration's where they are the same thing."""
    if explores_as_it_moves(tuned):
        draw_marks(axes, of_exploration(tuned), step_sizes, hollow)
    draw_marks(axes, of_rungs(tuned), step_sizes, lambda each: colours_of(tuned, each.temperatures))
    log_axis(axes.yaxis, all_values(spans_with_steps(tuned), step_sizes))
    axes.set_ylabel(step_label(tuned))


def step_label(tuned: Tuned) -> str:
    """What a step size is, and its unit; a scale makes x a number."""
    moves, unit = tuned.sampler.dynamics.name, "$x$" if tuned.sampler.scale is None else "$x$/scale"
    if moves == "hmc":
        return rf"leapfrog $\epsilon$, units of {unit}"
    if moves == "preconditioned_langevin":
        return f"step size $h$, units of {unit}"
    return "step size $h$, units of " + ("$x^2$" if unit == "$x$" else f"({unit})$^2$")


def has_acceptance(tuned: Tuned) -> bool:
    """Whether any round has a test."""
    return len(all_values(spans(tuned), acceptance)) > 0


def draw_acceptance(tuned: Tuned, axes: Axes) -> None:
    """By rung, and the best."""
    own = of_rungs(tuned)
    draw_marks(axes, of_exploration(tuned), acceptance, hollow)
    draw_marks(axes, own, acceptance, lambda each: colours_of(tuned, each.temperatures))
    axes.axhline(BEST[tested_moves(tuned)], **TRUTH)
    axes.set(ylim=(0.0, 1.0), ylabel="acceptance, share")


def tested_moves(tuned: Tuned) -> str:
    """The moves whose best acceptance is drawn: the sampler's, or where they have no test, exploration's."""
    name = tuned.sampler.dynamics.name
    return name if name in BEST and len(all_values(of_rungs(tuned), acceptance)) else "hmc"


def has_rejection(tuned: Tuned) -> bool:
    """Whether there are swaps."""
    return len(all_values(spans(tuned), rejection)) > 0


def draw_rejection(tuned: Tuned, axes: Axes) -> None:
    """By pair of rungs, and the mean of each round."""
    swapped = [span for span in of_rungs(tuned) if span.round.rejection]
    axes.set(xlim=(swapped[0].start, swapped[-1].end), xlabel=TIME)  # a small part of the whole
    for span in swapped:
        mean = float(np.mean(span.round.rejection))
        axes.plot([span.start, span.end], [mean, mean], **TRUTH)

    def between(each: Round) -> Array:
        ladder = np.asarray(each.temperatures)
        return colours_of(tuned, np.sqrt(ladder[1:] * ladder[:-1]))

    draw_marks(axes, swapped, rejection, between)
    axes.set(ylim=(0.0, 1.0), ylabel="rejection of swaps, share")


def rounds_of(tuned: Tuned, figure_name: str) -> list[Round]:
    """Rounds that look at one figure."""
    return [each for each in tuned.rounds if each.figure_name == figure_name]


def draw_energy(tuned: Tuned, axes: Axes) -> None:
    """Mean energy over step sizes: above that at step size 0 of the round's own line, where any has a line."""
    tried = rounds_of(tuned, ENERGY)
    fitted = [each for each in tried if each.fit is not None and np.isfinite(each.fit).all()]
    drawn = [(np.array(r.figure) - (0.0 if r.fit is None else r.fit.energy), r) for r in fitted or tried]
    for i, (heights, each) in enumerate(drawn):
        grey, sizes = grey_of(i, len(drawn)), np.array(each.step_sizes)
        used = sizes <= (np.inf if each.fit is None else each.fit.largest)
        fine = np.isfinite(heights)
        fills = [grey if u else "white" for u in used[fine]]
        axes.scatter(sizes[fine], heights[fine], c=fills, edgecolors=grey, **MARKS)
    diverged = [
        size
        for each in tried
        for size, height in zip(each.step_sizes, each.figure, strict=True)
        if not np.isfinite(height)
    ]
    handles: list[tuple[Any, str]] = [
        (tuple(mark(grey_of(i, 3), grey_of(i, 3)) for i in range(3)), "rounds, first to last"),
    ]
    if diverged:
        top = axes.get_xaxis_transform()
        (crosses,) = axes.plot(diverged, [0.97] * len(diverged), "x", color=DARK, markersize=4.0, transform=top)
        handles.append((crosses, "diverged"))
    axes.set_ylabel("mean energy, nats")
    found = np.array([size for each in tried for size in each.step_sizes])
    if fitted:
        last = fitted[-1].fit
        assert last is not None
        found = np.append(found, last.step_size)
        handles.insert(1, (mark("white", DARK), "not in its line"))
        handles += draw_fit(axes, last, np.concatenate([heights for heights, _ in drawn]), bool(diverged))
    log_axis(axes.xaxis, found)
    axes.set_xlabel(step_label(tuned))
    axes.legend(
        *zip(*handles, strict=True), loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0,
        fontsize="x-small", labelspacing=0.2, columnspacing=0.9, handlelength=1.4, handler_map={tuple: EACH},
    )  # fmt: skip


def grey_of(i: int, n: int) -> str:
    """Of round ``i`` of ``n``, the last one black."""
    return str(round(0.75 * (n - 1 - i) / max(1, n - 1), 3))


def draw_fit(axes: Axes, fit: Fit, heights: Array, more: bool) -> list[tuple[Any, str]]:
    """The line, what is allowed, and where they meet; handles and texts. more: room at the top."""
    sizes = np.geomspace(0.5 * fit.step_size, max(fit.largest, fit.step_size), 200)
    low, high = ((fit.slope + sign * fit.error) * sizes for sign in (-1.0, 1.0))
    axes.fill_between(sizes, low, high, color=MEDIUM, alpha=0.18, linewidth=0, zorder=1.8)
    (line,) = axes.plot(sizes, fit.slope * sizes, color=MEDIUM)
    allowed = axes.axhline(fit.allowed, color=LIGHT, linewidth=1.6)
    found = axes.axvline(fit.step_size, **FOUND)
    axes.set_yscale("symlog", linthresh=fit.allowed)
    first = np.ceil(np.log10(2.0 * fit.allowed))
    powers = 10.0 ** np.arange(first, first + 30.0)
    axes.yaxis.set_major_locator(FixedLocator([*-powers[::-1], 0.0, *powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    finite = np.concatenate([heights[np.isfinite(heights)], low, high, [2.0 * fit.allowed]])
    axes.set_ylim(2.0 * min(finite.min(), -0.25 * fit.allowed), (5.0 if more else 2.0) * finite.max())
    axes.set_ylabel("excess of energy, nats")
    return [(line, "line, ± error"), (allowed, f"allowed: {fit.allowed:.2g}"), (found, f"found: {fit.step_size:.4g}")]


def discrepancies(tuned: Tuned) -> Array:
    """Step sizes and squared discrepancies (round, 2), where they are finite."""
    tried = rounds_of(tuned, DISCREPANCY)
    return np.array([(each.step_sizes[0], each.figure[0]) for each in tried if np.isfinite(each.figure[0])])


def draw_discrepancy(tuned: Tuned, axes: Axes) -> None:
    """Kernel Stein discrepancy over step sizes."""
    sizes, heights = discrepancies(tuned).T
    found = float(tuned.sampler.arrays["step_sizes"].flat[0])
    axes.plot(sizes, heights, color=THREAD, linewidth=0.6, zorder=2.0)
    axes.scatter(sizes, heights, c=DARK, **MARKS)
    axes.axvline(found, **FOUND, label=f"found: {found:.4g}")
    log_axis(axes.xaxis, sizes)
    if (heights > 0.0).all():
        log_axis(axes.yaxis, heights)
    axes.set(xlabel=step_label(tuned), ylabel="kernel Stein discrepancy, squared")
    axes.legend()


def draw_race(tuned: Tuned, axes: Axes) -> None:
    """A bar for each variant, the first at the top, and which one was kept."""
    raced = rounds_of(tuned, DRAWS)
    worth = np.array([each.figure[0] for each in raced])
    kept = kept_of(tuned, worth)
    bars = axes.barh(np.arange(len(raced)), worth, height=0.7, color=THREAD, zorder=2.0)
    if kept is not None:
        bars[kept].set(facecolor=MEDIUM)
    for i, value in enumerate(worth):
        score = 1e3 * raced[i].score
        text = f"{value:.3g}" if value > 0.0 else "none measured"
        text += (f", score {score:.3g}" if score > 0.0 else "") + (": kept" if i == kept else "")
        axes.annotate(text, (value, i), (2.0, 0.0), textcoords="offset points", va="center", fontsize="small")
    axes.set_yticks(range(len(raced)), names_of(raced))
    axes.tick_params(axis="y", length=0.0)
    axes.set(xlim=(0.0, 1.8 * worth.max() or 1.0), ylim=(slots(tuned) - 0.4, -0.6), xlabel=DRAWS)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def slots(tuned: Tuned) -> int:
    """Bars that there is room for."""
    return max(3, len(rounds_of(tuned, DRAWS)))


def names_of(raced: list[Round]) -> list[str]:
    """What each variant is, with its step size where others are called the same."""
    names = [each.variant or each.stage for each in raced]
    return [
        (name if names.count(name) == 1 else f"{each.stage}, step {each.step_sizes[0]:.3g}").replace("$", r"\$")
        for name, each in zip(names, raced, strict=True)
    ]


def kept_of(tuned: Tuned, worth: Array) -> int | None:
    """The last variant whose worth is that of the sampler."""
    same = np.flatnonzero(np.isclose(worth, 1e3 * tuned.draws_per_gradient, rtol=1e-12) & (worth > 0.0))
    return int(same[-1]) if len(same) else None


PANELS: dict[str, tuple[Callable[[Tuned], bool], Callable[[Tuned, Axes], None], bool]] = {
    "temperatures": (has_temperatures, draw_temperatures, True),
    "step_sizes": (has_step_sizes, draw_step_sizes, True),
    "acceptance": (has_acceptance, draw_acceptance, True),
    "rejection": (has_rejection, draw_rejection, True),
    "energy": (lambda tuned: bool(rounds_of(tuned, ENERGY)), draw_energy, False),
    "discrepancy": (lambda tuned: len(discrepancies(tuned)) > 0, draw_discrepancy, False),
    "race": (lambda tuned: bool(rounds_of(tuned, DRAWS)), draw_race, False),
}  # name: whether it has something to show, what draws it, and whether it is over gradients


def marks_of(tuned: Tuned, panels: dict[str, Axes]) -> list[tuple[Any, str]]:
    """Handles and texts of the marks that panels over gradients share."""
    found: list[tuple[Any, str]] = []
    if "temperatures" in panels and of_exploration(tuned):
        greyed = [mark(tuple(fill), EDGE) for fill in greys(np.array([0.0, 0.5, 1.0]))]
        found += [(tuple(greyed), "exploration; 0, 50, 100 % of variance between chains")]
    if any(PANELS[name][2] for name in panels) and of_rungs(tuned):
        ladder = sorted(set(all_values(of_rungs(tuned), temperatures).tolist()))
        some = [ladder[0], (ladder[0] * ladder[-1]) ** 0.5, ladder[-1]] if len(ladder) > 1 else ladder
        words = "rungs, cold to hot" if len(ladder) > 1 else "the sampler"
        found.append((tuple(mark(tuple(c), "white") for c in colours_of(tuned, some)), words))
    moves = tested_moves(tuned)
    best = f"best acceptance of {moves.upper()}, {BEST[moves]:.2f}"
    said = [text for name, text in (("acceptance", best), ("rejection", "mean rejection of a round")) if name in panels]
    return [*found, (Line2D([], [], **TRUTH), "; ".join(said))] if said else found
