"""Figures 3 and 5 of ICSGLD (2022), small: the target's own numbers, and what samplers make of it at equal cost."""

from itertools import pairwise

import numpy as np
import pytest

from figures.papers.icsgld.rugged_box import BOXED, FREE
from figures.scripts.statistics import mean_and_error, mode_weight_errors


@pytest.fixture(scope="module")
def panels(produced):
    product = produced("icsgld_fig3")
    module, data = product.script.module, product.measured.data
    return {name: {key: data[key][i] for key in ("cells", "kl", "l1", "left", "draws", "floor")}
            for i, name in enumerate((*module.PANELS, module.EXACT))}  # fmt: skip


def test_exact_draws_have_the_floor_and_no_side(panels):
    """Four repeats of 1,975 draws: 15 standard errors are passed by 7·10⁻⁴ of all seeds, where the seed is ours."""
    exact = panels["independent draws"]
    mean, error = mean_and_error(exact["kl"])
    assert abs(mean - exact["floor"]) < 15.0 * error
    assert abs(exact["left"].mean() - 0.5) < 4.5 * 0.5 / np.sqrt(4 * exact["draws"])


def test_samplers_in_order(panels):
    """With a tenth of the steps ICSGLD beats SGLD, and replica exchange beats ICSGLD, in the weights of the modes."""
    l1 = {name: mean_and_error(panel["l1"]) for name, panel in panels.items()}
    order = ("independent draws", "reSGHMC×P2", "ICSGLD×P5")
    for better, worse in [*pairwise(order), ("reSGLD×P5", "ICSGLD×P5"), ("ICSGLD×P5", "SGLD×P5")]:
        assert l1[better][0] + 2.0 * np.hypot(l1[better][1], l1[worse][1]) < l1[worse][0], (better, worse)
    assert panels["reSGHMC×P2"]["kl"].mean() < 1.5 * panels["reSGHMC×P2"]["floor"]


def test_panels_stand_at_equal_cost(produced):
    records = produced("icsgld_fig3").measured.records
    assert {r.label for r in records} == set(produced("icsgld_fig3").script.module.PANELS)
    costs = {
        r.label: r.gradient_evaluations / (r.chains // 5 if r.label.startswith("SVGD") else r.chains) for r in records
    }
    assert set(costs.values()) == {40_000}
    data = produced("icsgld_fig3").measured.data
    assert data["draws"].tolist() == [1975, 1975, 500, 1975, 1975, 1975, 1975, 1975]
    assert data["particles"].shape == (500, 2)
    assert np.abs(data["particles"]).max() <= 2.5


def test_weights_are_those_of_the_modes():
    """Exact draws: the mean of Σ |error| is √(2/π) Σ √(w (1 − w) / n) to a few per cent; equal weights are far off."""
    draws = np.stack([BOXED.truth.independent_draws(5_000, seed=s) for s in range(8)])
    w = BOXED.truth.modes.weights
    expected = np.sqrt(2.0 / np.pi * w * (1.0 - w) / 5_000).sum()
    errors = mode_weight_errors(BOXED.truth, draws)
    assert errors.mean() == pytest.approx(expected, rel=0.25)  # 25 weights, 8 repeats: 5 standard errors
    tilted = mode_weight_errors(BOXED.truth, draws, np.exp(FREE.evaluate(draws.reshape(-1, 2))[0]).reshape(8, -1))
    assert tilted.min() > 5.0 * expected


def test_the_target_is_the_one_of_the_text(produced):
    product = produced("icsgld_fig5")
    data = product.measured.data
    x, y = data["centres"].T
    np.testing.assert_allclose(FREE.evaluate(data["centres"])[1], 0.0, atol=1e-9)
    assert sorted(zip(np.round(x).tolist(), np.round(y).tolist(), strict=True)) == [
        (i, j) for i in range(-2, 3) for j in range(-2, 3)
    ]
    by_hand = 0.2 * (x**2 + y**2) - 2.0 * (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y))
    np.testing.assert_allclose(data["depths"], by_hand, atol=1e-12)
    assert data["weights"].sum() == pytest.approx(1.0, abs=1e-6)
    heights, line = product.script.module.heights(data), data["line"]
    assert np.trapezoid(np.trapezoid(heights, line), line) == pytest.approx(1.0, abs=2e-3)
    assert [claim.verdict for claim in product.script.compare(data)] == ["equal within error", *["held"] * 3]
