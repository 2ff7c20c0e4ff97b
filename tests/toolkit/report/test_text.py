"""A run in words: golden text, warnings that fire where they should and nowhere else, HTML with the same numbers."""

import html
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from tests.support.laws import gaussian
from tests.support.simple_targets import QUARTIC, WELLS
from toolkit import DivergenceError, Layout, accumulators, boundaries, sample, samplers, stream
from toolkit.tempering.contour_tempering import Partition

GAUSSIAN = gaussian(np.eye(2))
APART = [[-12.0], [12.0], [12.0], [-12.0]]
STARTS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])


def drawn(target=GAUSSIAN, sampler=samplers.sgld(0.5), **asked):
    """A run whose own warnings, of contour or Ctrl-C, are not those looked at here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(target, sampler, **{"n_steps": 2_000, "n_chains": 4, "burn_in": 100, "seed": 0, **asked})


@pytest.fixture(scope="module")
def good():
    return drawn()


GOLDEN = """\
sgld on gaussian
  dynamics   langevin, step size 0.5
  schedule   constant()
  tempering  none, temperature 1
  boundary   ignore
  noise      none
  draws      4 chains × 1,900 draws × 2 dimensions, burn-in 100, thin 1, seed 0
  steps      2,000 of 2,000 in 0.25 s; 8,000 gradient evaluations, 3.2e+04 a second
  bias       by the step size, as no Metropolis test takes it away: toolkit.check_step_size(run) measures it

"""


def test_chains_that_stand_still_apart_have_an_infinite_r_hat_in_words():
    """Steps of 10¹² × their like are never accepted; no number as large as 1.8e+308 is printed."""
    run = drawn(sampler=samplers.mala(1e12), init=STARTS)
    assert (run.acceptance == 0.0).all()
    assert any(sentence.startswith("R-hat is infinite for coordinate 0") for sentence in run.warnings)
    assert "∞" in str(run)
    assert "e+308" not in str(run)


def test_golden_text(good):
    """The lines before the table, whole; of the table, whose last digits are NumPy's, the numbers behind it."""
    text = str(replace(good, elapsed=0.25))
    assert text.startswith(GOLDEN)
    lines = text[len(GOLDEN) :].splitlines()
    assert lines[0].split() == ["coordinate", "mean", "sd", "MCSE", "ESS", "R-hat"]
    assert len(lines) == 3
    for d, line in enumerate(lines[1:]):
        number, mean, sd, mcse, worth, ratio = line.split()
        assert number == str(d)
        x = good.draws[..., d]
        assert float(mean) == pytest.approx(x.mean(), abs=0.51e-3)
        assert float(sd) == pytest.approx(x.std(), rel=1e-3)
        # SGLD at h = ½ is an AR(1) with φ = ½ and variance 1 / (1 − h/2): 7,600 draws are worth a third.
        assert 0.7 < float(worth.replace(",", "")) / (7_600 / 3) < 1.4
        assert 0.7 < float(mcse) / np.sqrt(4 / 3 / (7_600 / 3)) < 1.4
        assert 0.99 < float(ratio) < 1.01
    assert repr(good).count("\n") == 0


def test_nothing_speaks_against_a_good_run(good):
    assert good.warnings == []
    assert "!" not in str(good)
    assert "<li>" not in good._repr_html_()


def test_a_good_run_of_every_part():
    """Swaps, walls and Metropolis in their good ranges raise no warning either."""
    flower = constrained(mixtures.cosine25(), shapes.flower())
    cold = samplers.r2sgld(step_sizes=(5e-4, 1.5e-3), temperatures=(1.0, 10.0))
    run = drawn(flower, cold, n_steps=40_000, burn_in=5_000, thin=5)
    assert run.warnings == []
    text = str(run)
    for line in (
        "tempering    replica exchange (deo, swap tried every step, fixed correction), temperatures 1, 10",
        "boundary     reflect, at the edge of flower",
        "0 given up",
    ):
        assert line in text
    rates = re.search(r"swap rates +0–1: ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text).groups()
    found = run.swap_rates
    np.testing.assert_allclose([float(r) for r in rates], [found.mean(), found.min(), found.max()], atol=6e-4)
    trips = re.search(r"round trips +([\d,]+) ", text).group(1)
    assert float(trips.replace(",", "")) == pytest.approx(run.round_trips.mean(), abs=0.51)
    mala = drawn(sampler=samplers.mala(0.7), init=STARTS)
    assert mala.warnings == []
    assert f"acceptance  {mala.acceptance.mean():.3f}" in str(mala)


SQUARE = constrained(GAUSSIAN, shapes.polygon_of("square", [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]))
LADDER = (1.0, 1.2)


def close():
    return samplers.resgld((0.1, 0.1), temperatures=LADDER)


CASES = [
    ({"n_chains": 1}, "There is one chain: R-hat compares its two halves alone"),
    (
        {"target": WELLS, "init": APART},
        r"R-hat is [\d.]+ for coordinate 0: chains are in different places.*give tempering, such as samplers.resgld",
    ),
    (
        {"target": WELLS, "sampler": samplers.resgld((0.1, 0.1), temperatures=(1.0, 3.0)), "init": APART},
        "R-hat is .*give it more time, more replicas or a hotter top",
    ),
    ({"sampler": samplers.sgld(0.005)}, r"R-hat is .* for coordinate \d"),
    ({"sampler": samplers.sgld(0.005)}, r"ESS is \d+ for coordinate \d; below 400, "),
    ({"sampler": samplers.sgld(0.01), "n_chains": 1}, r"ESS is \d+ for coordinate \d; below 100, "),
    (
        {"sampler": samplers.resgld((0.1, 0.1), temperatures=(1.0, 1e4))},
        r"Rungs 0 and 1 swap at [\d.]+% of the attempts, which is less than 5%: put temperatures between them",
    ),
    ({"sampler": close()}, r"Rungs 0 and 1 swap at [\d.]+% of the attempts, more than 60%: they are closer"),
    (
        {"sampler": samplers.resgld((0.1, 0.1), temperatures=(1.0, 1e6)), "n_steps": 200},
        "In [1-4] of 4 chains no state has been to the hottest rung and back",
    ),
    (
        {"sampler": samplers.resgld((0.1, 0.1), temperatures=LADDER, swap_every=3_000)},
        "No swap of rungs 0 and 1 was tried after burn-in",
    ),
    (
        {"target": SQUARE, "sampler": samplers.sgld(4.0, boundary=boundaries.reflect(max_bounces=1))},
        "moves were still outside after 1 reflections and were given up",
    ),
    ({"target": SQUARE, "sampler": samplers.mala(0.5)}, "The sampler ignores the domain, and its draws may lie"),
    ({"target": SQUARE, "sampler": samplers.sgld(4.0, boundary=boundaries.reflect())}, "A replica meets the wall"),
    ({"sampler": samplers.mala(5.0)}, r"\d+% of the moves are accepted, and about 57% is best; make the step size sm"),
    ({"sampler": samplers.mala(0.01)}, r"\d+% of the moves are accepted, and about 57% is best; make the step size la"),
    ({"sampler": samplers.hmc(2.2, n_leapfrogs=3)}, r"\d+% of the moves are accepted, and about 65% is best; .* sm"),
    ({"n_steps": 103}, "With 3 draws a chain nothing can be said"),
    (
        {"sampler": samplers.csgld(0.05, partition=Partition(0.0, 0.1, 40), zeta=10.0)},
        r"The weights leave [\d.]+% of the draws",
    ),
    ({"sampler": samplers.csgld(0.05, partition=Partition(3.0, 0.5, 10))}, "of the energies lie below the partition"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "sentence"), CASES, ids=[sentence[:40] for _, sentence in CASES])
def test_each_warning_fires_where_it_should(asked, sentence):
    run = drawn(**asked)
    matching = [text for text in run.warnings if re.match(f".*{sentence}", text)]
    assert len(matching) == 1, run.warnings
    assert f"  ! {matching[0]}" in str(run)
    assert html.escape(matching[0]) in run._repr_html_()


def test_a_run_of_which_no_draw_has_weight_says_so():
    """And not that a few carry all; by its draws, or by moments where none are kept."""
    sampler = samplers.tact_hmc(1e-2, top_temperature=6.0)
    for asked in ({}, {"keep_draws": False, "accumulators": {"moments": accumulators.moments()}}):
        run = drawn(sampler=sampler, n_steps=160, burn_in=150, n_chains=2, seed=10, **asked)
        assert not run.weights.any()
        matching = [text for text in run.warnings if "weight" in text]
        assert len(matching) == 1
        assert matching[0].startswith("No draw has weight, so none counts: ")


def test_interrupted_runs_say_so(good):
    run = replace(good, interrupted=True, n_steps=900)
    assert run.warnings == [
        "The run was interrupted after 900 of 2,000 steps; what it holds is what there was by then."
    ]
    assert str(run).startswith("sgld on gaussian, interrupted\n")


def test_runs_with_few_or_no_draws_print():
    for n_steps in (101, 102, 104, 110):
        assert "coordinate" in str(drawn(n_steps=n_steps))
    chunks = list(stream(GAUSSIAN, samplers.sgld(0.5), n_steps=20, burn_in=10, seed=0, layout=Layout(chunk_steps=10)))
    assert chunks[0].warnings == ["There are no draws: the burn-in of 10 steps has not ended; go on, or shorten it."]
    assert "no draws of whole chains" in str(chunks[0])
    assert "no draws of whole chains" in chunks[0]._repr_html_()
    nothing = drawn(keep_draws=False)
    assert nothing.warnings == ["There are no draws to judge: keep them, or give accumulators."]
    still = drawn(gaussian(np.eye(1)), samplers.sgld(1e-300), n_steps=120, init=[5.0])
    assert "–" in str(still)


def test_a_diverged_run_prints_its_whole_chains():
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, samplers.sgld(0.02), n_steps=300, n_chains=3, init=[[0.1], [50.0], [0.2]], seed=6)
    run = caught.value.run
    step = caught.value.step
    assert run.warnings[0].startswith(f"1 of 3 chains diverged, the first at step {step}: ")
    text = str(run)
    assert "(of 2 of 3 chains)" in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["0"])
    assert float(row.split()[1]) == pytest.approx(run.draws[[0, 2]].mean(), abs=0.06)
    assert "divergences  1 of 3 replicas" in text
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, samplers.sgld(0.02), n_steps=300, init=[50.0], seed=6)
    assert "no draws of whole chains" in str(caught.value.run)


def table_of(run):
    """The table's numbers, (row, column)."""
    lines = str(run).splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:1] == ["coordinate"]) + 1
    rows = [line.replace(",", "").split() for line in lines[first : first + run.problem.target.dim]]
    return np.array([[float(cell.replace("–", "nan")) for cell in row] for row in rows])


def test_accumulators_speak_where_no_draws_are_kept():
    chosen = {"batches": accumulators.batch_means(), "moments": accumulators.moments()}
    asked = {"n_chains": 200, "n_steps": 1_100}
    stored = table_of(drawn(**asked))
    for names, source in ((["moments", "batches"], "moments'], by the spread"), (["batches"], "batches'], by batches")):
        run = drawn(keep_draws=False, accumulators={name: chosen[name] for name in names}, **asked)
        assert run.warnings == []
        assert f"(of accumulated['{source}" in str(run)
        found = table_of(run)
        np.testing.assert_allclose(found[:, 1], stored[:, 1], atol=2e-3)
        np.testing.assert_allclose(found[:, 2], stored[:, 2], rtol=1e-3)
        np.testing.assert_allclose(found[:, 3:5], stored[:, 3:5], rtol=0.35)
        np.testing.assert_allclose(found[:, 5], 1.0, atol=0.01)
    by_chain, pooled = (
        drawn(keep_draws=False, accumulators={"moments": one}, **asked)
        for one in (accumulators.moments(), accumulators.pooled(accumulators.moments()))
    )
    np.testing.assert_array_equal(table_of(pooled), table_of(by_chain))
    apart = drawn(WELLS, init=APART, keep_draws=False, accumulators={"m": accumulators.moments()})
    assert any("chains are in different places" in sentence for sentence in apart.warnings)
    assert "–" in str(drawn(n_chains=1, keep_draws=False, accumulators={"m": accumulators.moments()}))


def test_weighted_runs_print_weighted_numbers():
    flat = samplers.icsgld(0.05, n_replicas=3, partition=Partition(0.0, 0.25, 24))
    run = drawn(GAUSSIAN, flat, n_steps=20_000, burn_in=5_000, thin=10)
    share = run.weights / run.weights.sum(axis=1, keepdims=True)
    mean = (share[..., None] * run.draws).sum(axis=1).mean(axis=0)
    second = (share[..., None] * run.draws**2).sum(axis=1).mean(axis=0)
    table = table_of(run)
    np.testing.assert_allclose(table[:, 1], mean, atol=0.006)
    np.testing.assert_allclose(table[:, 2], np.sqrt(second - mean**2), rtol=1e-3)
    assert abs(table[:, 2] - run.draws.std(axis=(0, 1))).min() > 0.05  # without weights it is much wider
    text = str(run)
    assert "contour (ζ = 0.75, 24 bins of 0.25 nats from 0)" in text
    assert "4 chains × 1,500 draws × 3 replicas × 2 dimensions" in text
    assert re.search(r"weights +leave [\d.]+%", text)


def test_large_runs_are_judged_by_a_stated_part():
    """Never more than a million numbers are ranked, of all chains."""
    run = drawn(n_chains=400, n_steps=3_100)
    assert "(of one in 3 of 3,000 draws of each chain)" in str(run)
    long = drawn(gaussian(np.eye(1)), n_chains=2, n_steps=700_000)
    assert "(of one in 2 of 699,900 draws of each chain)" in str(long)
    wide = drawn(gaussian(np.eye(12)), samplers.sgld(0.3), n_steps=300)
    assert "(the first 10 of 12 coordinates)" in str(wide)
    assert "<em>the first 10 of 12 coordinates</em>" in wide._repr_html_()


class Page(HTMLParser):
    """Cells of all tables; fails where a tag is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_html_has_the_numbers_of_the_text(good):
    hostile = replace(good, sampler=replace(good.sampler, name="<script>alert('a & b')</script>"))
    for run in (good, hostile, drawn(n_steps=150), drawn(n_chains=1)):
        page = Page()
        page.feed(run._repr_html_())
        page.close()
        assert page.open == []
        assert "script" not in page.tags
        words = str(run).split()
        for cell in page.cells:
            assert all(word in words for word in cell.split()), cell
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_a_loaded_run_prints_the_same(good, tmp_path):
    from toolkit import load

    good.save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert str(again) == str(good)
    assert again.warnings == good.warnings


def test_the_page_prints_what_it_says(capsys):
    """docs/results.md runs as written, and its example is what is printed, but for the time."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "results.md", "exec"), names)
    example = re.search(r"```text\n(.*?)```", page, re.S).group(1)
    printed, written = (
        [line for line in text.rstrip().splitlines() if not line.startswith("  steps")]
        for text in (capsys.readouterr().out, example)
    )
    assert printed == written
    assert names["gathered"].accumulated["kl"].kl.shape == (10, 2)
