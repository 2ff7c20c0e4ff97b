"""Pictures of tunings: drawn is what the rounds say, panels without anything are left out, all others are labelled."""

import dataclasses
import math

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
from figures.plots import style
from targets import mixtures
from toolkit import Sampler, Tuned, dynamics, samplers, tune
from toolkit.tuning.result import Cost
from toolkit.tuning.step_sizes import BEST
from toolkit.tuning.study import Fit, Round

mpl.use("Agg")
NAN = math.nan
SHARES, DRAWS = "share of the variance between chains", "independent draws per 1,000 gradients"
ENERGY, DISCREPANCY = "mean energy", "kernel Stein discrepancy"
EXPLORED = (
    Round("exploration", 8, 64, 2_000, (1.0, 2.0, 4.0), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (), (1.2, 0.5, 0.0), SHARES,
          2_000),
    Round("exploration", 16, 64, 4_000, (1.0, 2.0, 4.0), (0.2, 0.3, 0.5), (0.7, 0.6, 0.65), (), (1.0, 0.4, 0.1), SHARES,
          6_500),
)  # fmt: skip
CUT = (
    Round("ladder", 16, 20, 1_000, (1.0, 3.0, 4.0), (0.2, 0.4, 0.6), (0.6, 0.7, 0.8), (0.2, 0.6), spent=8_000),
    Round("ladder", 32, 20, 2_000, (1.0, 2.0, 4.0), (0.2, 0.4, 0.7), (0.6, 0.7, 0.71), (0.4, 0.4), spent=10_000),
    Round("ladder", 64, 32, 4_000, (1.0, 4.0), (0.2, 0.7), (0.65, 0.66), (0.7,), spent=14_000),
)
RACED = (
    Round("path length", 99, 32, 5_000, (1.0, 4.0), (0.2, 0.7), (0.6, 0.61), (), (7.0,), DRAWS, 20_000, "path length 2",
          score=0.021),
    Round("path length", 99, 32, 5_000, (1.0, 4.0), (0.3, 0.8), (0.6, 0.61), (), (6.0,), DRAWS, 26_000, "path length 1",
          score=0.022),
)  # fmt: skip
SIZES = (0.8, 0.4, 0.2, 0.1)
FIT = Fit(energy=5.0, slope=2.0, error=0.5, allowed=0.1, largest=0.4, step_size=0.05)
BIASED = (
    Round("step size", 64, 64, 3_000, (1.0,) * 4, SIZES, (), (), (9.0, 7.0, 6.0, 5.5), ENERGY, 9_000),
    Round("step size", 64, 64, 3_000, (1.0,) * 4, SIZES, (), (), (math.inf, 5.9, 5.2, 5.3), ENERGY, 12_000, fit=FIT),
    Round("step size", 64, 64, 3_000, (1.0,) * 4, SIZES, (), (), (8.0, 5.7, 5.5, 5.1), ENERGY, 15_000,
          fit=FIT._replace(energy=5.1)),
)  # fmt: skip
LADDER = samplers.pt_hmc((0.3, 0.8), temperatures=(1.0, 4.0))


def made(rounds, sampler=LADDER, worth=6e-3, **changes):
    """A tuning of such rounds."""
    starts, nowhere = np.zeros((4, sampler.n_replicas, 2)), np.zeros((0, 2))
    cost = Cost(30_000, 1.25)
    one = Tuned("a $ problem", sampler, 7, starts, 16, 1, nowhere, rounds, (), (), worth, cost)
    return dataclasses.replace(one, **changes)


def drawn(tuned):
    """Panels of a picture."""
    with figures.paper_style():
        figure = plt.figure(figsize=(style.WIDTH, 5.4))
        return figures.tuning(tuned, figure)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def scatters(axes):
    """Marks, round by round."""
    return [artist for artist in axes.collections if type(artist) is mpl.collections.PathCollection]


def marks(axes):
    """Places of all marks, in the order in which they were drawn."""
    return np.concatenate([np.asarray(artist.get_offsets()) for artist in scatters(axes)])


def middle(each):
    """Of a round, in thousands of gradients."""
    return 1e-3 * (each.spent - 0.5 * each.gradients)


def expected(rounds, values):
    """Places of what a panel over gradients is of."""
    return [(middle(each), value) for each in rounds for value in values(each)]


def fills(axes):
    """Colours of all marks by their places."""
    found = {}
    for artist in scatters(axes):
        for place, colour in zip(np.asarray(artist.get_offsets()), artist.get_facecolors(), strict=True):
            found[tuple(place)] = tuple(colour)
    return found


# Over gradients.


def test_marks_are_the_rounds_numbers():
    rounds = (*EXPLORED, *CUT, *RACED)
    panels = drawn(made(rounds))
    assert list(panels) == ["temperatures", "step_sizes", "acceptance", "rejection", "race"]
    for name in ("temperatures", "step_sizes", "acceptance"):
        np.testing.assert_allclose(marks(panels[name]), expected(rounds, lambda each, name=name: getattr(each, name)))
    np.testing.assert_allclose(marks(panels["rejection"]), expected(CUT, lambda each: each.rejection))
    for name in ("temperatures", "step_sizes", "acceptance"):
        assert panels[name].get_xlim() == (0.0, 30.0)
        low, high = panels[name].get_ylim()
        assert (marks(panels[name])[:, 1] <= high).all()
        assert (marks(panels[name])[:, 1] >= low).all()


def test_threads_lead_from_round_to_round_where_there_are_as_many_rungs():
    panels = drawn(made((*EXPLORED, *CUT, *RACED)))
    threads = [line.get_xydata() for line in panels["temperatures"].lines]
    pairs = [(EXPLORED[0], EXPLORED[1]), (CUT[0], CUT[1]), (CUT[2], RACED[0]), (RACED[0], RACED[1])]
    wanted = [
        [(middle(a), t), (middle(b), u)] for a, b in pairs for t, u in zip(a.temperatures, b.temperatures, strict=True)
    ]
    np.testing.assert_allclose(threads, wanted)


def test_a_temperature_has_its_colour_in_all_panels():
    rounds = (*EXPLORED, *CUT, *RACED)
    panels = drawn(made(rounds))
    seen = {}
    for name in ("temperatures", "step_sizes", "acceptance"):
        of_place = fills(panels[name])
        for each in (*CUT, *RACED):
            for temperature, value in zip(each.temperatures, getattr(each, name), strict=True):
                seen.setdefault(temperature, set()).add(of_place[middle(each), value])
    assert all(len(colours) == 1 for colours in seen.values())
    light = [mpl.colors.to_rgb(next(iter(seen[t]))) @ np.array([0.2126, 0.7152, 0.0722]) for t in sorted(seen)]
    assert (np.diff(light) > 0.02).all()  # and keep apart in grey, and show on white
    assert light[-1] < 0.75


def test_exploration_is_filled_by_the_share_between_chains():
    of_place = fills(drawn(made((*EXPLORED, *CUT, *RACED)))["temperatures"])
    for each in EXPLORED:
        for temperature, share in zip(each.temperatures, each.figure, strict=True):
            assert of_place[middle(each), temperature] == pytest.approx((*[1.0 - 0.55 * min(share, 1.0)] * 3, 1.0))


def test_lines_of_the_best_acceptance_and_of_mean_rejections():
    panels = drawn(made((*EXPLORED, *CUT, *RACED)))
    (best,) = [line for line in panels["acceptance"].lines if line.get_linewidth() == 2.0]
    assert set(best.get_ydata()) == {BEST["hmc"]}
    means = [line.get_xydata() for line in panels["rejection"].lines if line.get_linewidth() == 2.0]
    wanted = [
        [(1e-3 * (each.spent - each.gradients), np.mean(each.rejection)), (1e-3 * each.spent, np.mean(each.rejection))]
        for each in CUT
    ]
    np.testing.assert_allclose(means, wanted)
    assert panels["rejection"].get_xlim() == (7.0, 14.0)
    mala = made((*EXPLORED, *CUT), samplers.pt_mala((0.1, 0.2), temperatures=(1.0, 4.0)))
    axes = drawn(mala)["acceptance"]
    (best,) = [line for line in axes.lines if line.get_linewidth() == 2.0]
    assert set(best.get_ydata()) == {BEST["mala"]}
    words = axes.figure.legends[0].get_texts()[-1].get_text()
    assert words == f"best acceptance of MALA, {BEST['mala']:.2f}; mean rejection of a round"


def test_step_sizes_of_exploration_stand_beside_those_of_hmc_alone():
    rounds = (*EXPLORED, *CUT)
    panels = drawn(made(rounds, samplers.pt_mala((0.1, 0.2), temperatures=(1.0, 4.0))))
    np.testing.assert_allclose(marks(panels["step_sizes"]), expected(CUT, lambda each: each.step_sizes))


def test_rounds_that_nobody_has_counted_follow_each_other():
    uncounted = [each._replace(spent=0) for each in (*EXPLORED, *CUT)]
    x = np.unique(marks(drawn(made(tuple(uncounted)))["temperatures"])[:, 0])
    np.testing.assert_allclose(x, [1.0, 4.0, 6.5, 8.0, 11.0])


# Step sizes of moves that are biased, and of particles.


def test_energies_are_above_that_at_step_size_0_of_their_own_round():
    axes = drawn(made((*EXPLORED, *BIASED), samplers.sgld(0.05), NAN))["energy"]
    wanted = [(size, energy - each.fit.energy) for each in BIASED[1:]
              for size, energy in zip(SIZES, each.figure, strict=True) if math.isfinite(energy)]  # fmt: skip
    np.testing.assert_allclose(marks(axes), wanted)
    of_place = fills(axes)
    for size, height in wanted:
        assert (of_place[size, height][:3] == (1.0, 1.0, 1.0)) == (size > FIT.largest)
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert list(crosses.get_xdata()) == [0.8]
    (line,) = [line for line in axes.lines if len(line.get_xdata()) == 200]
    np.testing.assert_allclose(line.get_ydata(), FIT.slope * line.get_xdata())
    assert line.get_xdata().max() == pytest.approx(FIT.largest)
    found = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert [set(found[0].get_ydata()), set(found[1].get_xdata())] == [{FIT.allowed}, {FIT.step_size}]
    low, high = axes.get_ylim()
    assert low < min(height for _, height in wanted)
    assert high > max(height for _, height in wanted)


def test_energies_without_a_line_are_as_they_are():
    axes = drawn(made((*EXPLORED, BIASED[0]), samplers.sgld(0.05), NAN))["energy"]
    np.testing.assert_allclose(marks(axes), list(zip(SIZES, BIASED[0].figure, strict=True)))
    assert axes.get_ylabel() == "mean energy, nats"


def test_discrepancies():
    rounds = [Round("step size", 9, 1, 2_000, (1.0,), (size,), (), (), (value,), DISCREPANCY, 9_000 + i)
              for i, (size, value) in enumerate([(0.01, 90.0), (0.1, 2.0), (1.0, math.inf)])]  # fmt: skip
    panels = drawn(made((*EXPLORED, *rounds), samplers.svgd(0.1, n_replicas=2), NAN))
    assert list(panels) == ["temperatures", "acceptance", "discrepancy"]
    np.testing.assert_allclose(marks(panels["discrepancy"]), [(0.01, 90.0), (0.1, 2.0)])


# Races.


def test_bars_are_what_variants_made_and_the_one_that_was_kept_is_marked():
    axes = drawn(made((*EXPLORED, *CUT, *RACED)))["race"]
    assert [bar.get_width() for bar in axes.patches] == [7.0, 6.0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["path length 2", "path length 1"]
    assert [text.get_text() for text in axes.texts] == ["7, score 21", "6, score 22: kept"]
    assert [mpl.colors.to_hex(bar.get_facecolor()).upper() == style.MEDIUM for bar in axes.patches] == [False, True]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first at the top


def test_a_race_that_measured_nothing_keeps_none():
    nothing = tuple(each._replace(figure=(0.0,), score=0.0, variant="as it is", stage="as it is") for each in RACED)
    axes = drawn(made((*EXPLORED, *nothing), worth=0.0))["race"]
    assert [text.get_text() for text in axes.texts] == ["none measured"] * 2
    assert [text.get_text() for text in axes.get_yticklabels()] == ["as it is, step 0.2", "as it is, step 0.3"]
    assert axes.get_xlim() == (0.0, 1.0)


# All of it.


@pytest.mark.parametrize(
    ("rounds", "names"),
    [
        ((*EXPLORED,), ["temperatures", "step_sizes", "acceptance"]),
        (RACED, ["temperatures", "step_sizes", "acceptance", "race"]),
        ([each._replace(temperatures=(1.0,), step_sizes=(0.2,), acceptance=(NAN,)) for each in RACED], ["race"]),
        (BIASED, ["energy"]),
    ],
)
def test_panels_without_anything_are_left_out(rounds, names):
    panels = drawn(made(tuple(rounds)))
    assert list(panels) == names
    assert next(iter(panels.values())).figure.axes == list(panels.values())


def test_every_axis_says_what_it_is_and_the_title_what_was_tuned_and_what_it_took():
    panels = drawn(made((*EXPLORED, *CUT, *BIASED, *RACED), warnings=("careful",)))
    for name, axes in panels.items():
        assert axes.get_ylabel() or name == "race"
        assert axes.get_xlabel() or name in ("temperatures", "step_sizes")  # as there is the same axis below
    figure = panels["race"].figure
    title = figure.get_suptitle()
    for words in ("pt_hmc on a \\$ problem", "30,000 gradients in 1.2 s", "10 rounds", "seed 7", "1 warning in"):
        assert words in title
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "exploration; 0, 50, 100 % of variance between chains", "rungs, cold to hot",
        "best acceptance of HMC, 0.65; mean rejection of a round",
    ]  # fmt: skip
    figure.canvas.draw()


def test_a_subfigure_will_do_and_a_plain_figure_gets_a_layout():
    figure = plt.figure()
    left, _ = figure.subfigures(1, 2)
    panels = figures.tuning(made(EXPLORED), left)
    assert all(axes.figure is left for axes in panels.values())
    plain = mpl.figure.Figure()
    assert plain.get_layout_engine() is None
    figures.tuning(made(EXPLORED), plain)
    assert plain.get_layout_engine() is not None


REFUSED = {
    "tuned must be a Tuned, got 'pt_hmc'": lambda figure: figures.tuning("pt_hmc", figure),
    "tuned must be a Tuned, got <": lambda figure: figures.tuning(object(), figure),
    "tuned must have at least one round": lambda figure: figures.tuning(made(()), figure),
    "and something to show": lambda figure: figures.tuning(made((BIASED[0]._replace(figure_name=""),)), figure),
    "figure must be a Figure or a SubFigure, got None": lambda _: figures.tuning(made(EXPLORED), None),
    "figure must be a Figure or a SubFigure, got <Axes": lambda _: figures.tuning(made(EXPLORED), plt.subplots()[1]),
    "figure must be empty, got one with 1 axes": lambda _: figures.tuning(made(EXPLORED), plt.subplots()[0]),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused_before_anything_is_drawn(said):
    figure = plt.figure()
    with pytest.raises((TypeError, ValueError), match=said):
        REFUSED[said](figure)
    assert not [*figure.axes, *figure.texts, *figure.legends, *figure.subfigs]


# Of tunings as they are.


@pytest.fixture(scope="module")
def biased():
    baoab = Sampler("baoab", (0.01,), dynamics=dynamics.baoab(friction=0.5))
    return tune(mixtures.cosine25(), baoab, seed=1, n_gradients=60_000)


def test_a_tuning_tells_what_its_picture_needs(biased):
    assert list(drawn(biased)) == ["temperatures", "acceptance", "energy", "race"]
    ends, starts = [each.spent for each in biased.rounds], [each.spent - each.gradients for each in biased.rounds]
    assert all(end <= start for end, start in zip([0, *ends[:-1]], starts, strict=True))
    assert ends[-1] <= biased.cost.gradients
    fits = [each.fit for each in biased.rounds if each.fit is not None]
    assert fits
    fit = fits[-1]
    steeper = max(fit.slope, fit.error)
    usable = fit.allowed / steeper if steeper > 0.0 else math.inf
    assert fit.step_size == pytest.approx(usable, rel=1e-3) or fit.step_size < usable
    assert fit.step_size == biased.sampler.arrays["step_sizes"].max() or "halved" in biased.report
    variants = [each.variant for each in biased.rounds if each.figure_name == DRAWS]
    assert variants[0] == "as it is, friction 0.5"
    assert all(variant.startswith(("as it is", "friction ")) for variant in variants)
    assert any(text.get_text().endswith("kept") for text in drawn(biased)["race"].texts)
    biased_line = next(each for each in biased.rounds if each.fit is fit)
    used = np.array(biased_line.step_sizes) <= fit.largest
    above = np.array(biased_line.figure)[used] - fit.energy - fit.slope * np.array(biased_line.step_sizes)[used]
    assert above.min() <= 0.0 <= above.max()  # a line goes through its points
