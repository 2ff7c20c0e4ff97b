"""ICSGLD (2022), figure 3: the rugged target and what six samplers make of it, at equal cost, in seven panels and ours.

(a) The truth in the box [−2.5, 2.5]², by quadrature. (b)–(g) Draws of one repeat: SGLD, SVGD, reSGLD and ICSGLD with
five replicas (×P5), cycSGLD and CSGLD with one and five times the steps (×T5); CSGLD and ICSGLD by their weights. (h)
Ours: replica exchange with momentum, temperatures 1 and 5. Settings as in figure 6 (D.2), 400,000 gradient evaluations
each; SVGD has 5 × 100 particles, which start uniformly in the box and make 800 steps of size 3·10⁻³ with exact
gradients (dots). All methods stay in the box: moves out of it are taken back. Below each panel: KL(truth ‖ draws) in
nats over cells of side 0.2, and the L1 error of the 25 weights, means of 32 repeats (4 with a tenth of the
steps in the quick version) with standard errors; below the truth, those of as many independent draws as SGLD keeps,
19,750. SVGD's KL is of 500 particles: that of 500 independent draws is 0.32.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import Claim, Data, Study, density, run_script
from figures.papers.icsgld.rugged_box import BOXED, CELLS, EVALUATIONS, methods, run_method
from figures.plots import style
from figures.scripts.claims import said_above
from figures.scripts.statistics import mean_and_error, mode_weight_errors, ratio_and_error, with_error
from toolkit import boundaries, samplers
from toolkit.diagnostics import cell_counts, expected_kl, kl_path
from toolkit.maths.seeds import REPEAT, derived_seed

SEED = 2022
DIFFERS = (
    "The paper runs SGLD, cycSGLD, reSGLD and SVGD without the box that its CSGLD, ICSGLD and truth have, and SVGD for "
    "some twelve times the cost; here all share box and cost, and reSGLD is nearer the truth than ICSGLD."
)
TRUTH: Any = BOXED.truth
EDGES = np.linspace(-2.5, 2.5, 51)
PANELS = ("SGLD×P5", "cycSGLD×T5", "SVGD×P5", "reSGLD×P5", "CSGLD×T5", "ICSGLD×P5", "reSGHMC×P2")
LABELS = (*PANELS[:-1], "reSGHMC×P2 (ours)")
EXACT = "independent draws"


def measure(study: Study) -> dict[str, Any]:
    """Of one repeat weighted cells (method, x, y) and SVGD's particles; by repeat KL, L1 and the share of the left."""
    repeats, share = study.size((32, 1.0), (4, 0.1))
    masses = TRUTH.cell_masses(CELLS, CELLS)
    known = methods(boundaries.reject())
    found: dict[str, list[Any]] = {key: [] for key in ("cells", "kl", "l1", "left", "draws", "floor")}
    for name in (*PANELS, EXACT):
        if name == EXACT:
            n = found["draws"][0]
            draws = np.stack(
                [TRUTH.independent_draws(n, seed=derived_seed(study.seed, REPEAT, c)) for c in range(repeats)]
            )
            weights = np.ones(draws.shape[:2])
        elif name == "SVGD×P5":
            draws = particles(study, repeats, share)
            weights, dots = np.ones(draws.shape[:2]), draws[0]
        else:
            run = run_method(study, name, BOXED, known[name], repeats, share)
            draws, weights = run.draws, run.weights
        found["cells"].append(cell_counts(draws[0], EDGES, EDGES, weights=weights[0]))
        found["kl"].append(kl_path(draws, masses, CELLS, CELLS, weights=weights)[:, 0])
        found["l1"].append(mode_weight_errors(TRUTH, draws, weights))
        found["left"].append((weights * (draws[..., 0] < 0.0)).sum(axis=1) / weights.sum(axis=1))
        found["draws"].append(draws.shape[1])
        found["floor"].append(expected_kl(masses, draws.shape[1]))
    return {**found, "masses": TRUTH.cell_masses(EDGES, EDGES), "particles": dots}


def particles(study: Study, repeats: int, share: float) -> Any:
    """The 5 × 100 particles of SVGD at the end of every repeat, (repeat, particle, 2)."""
    steps = round(share * EVALUATIONS) // 500
    rng = np.random.default_rng(study.seed)
    sampler = samplers.svgd(3e-3, n_replicas=100, boundary=boundaries.reject())
    start = rng.uniform(-2.5, 2.5, (5 * repeats, 100, 2))
    run = study.sample("SVGD×P5", BOXED, sampler, n_steps=steps, burn_in=steps - 1, n_chains=5 * repeats, init=start)
    return run.draws.reshape(repeats, 500, 2)


def draw(data: Data) -> Figure:
    """Eight panels."""
    figure, panels = plt.subplots(2, 4, figsize=(style.WIDTH, 4.3), sharex=True, sharey=True)
    highest = float(data["masses"].max() / (EDGES[1] - EDGES[0]) ** 2)
    settings: dict[str, Any] = {"x_edges": EDGES, "y_edges": EDGES, "highest": highest}
    for i, (axes, label) in enumerate(zip(panels.flat, ("truth", *LABELS), strict=True)):
        cells = data["masses"] if i == 0 else data["cells"][i - 1] / data["cells"][i - 1].sum()
        dotted = label.startswith("SVGD")
        image = density(np.zeros_like(cells) if dotted else cells, axes, **settings)
        if dotted:
            axes.plot(*data["particles"].T, ".", color="white", markersize=1.2)
        axes.set(title=f"({'abcdefgh'[i]}) {label}", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        describe(axes, data, i - 1)
    for axes in panels[:, 0]:
        axes.set_ylabel("$x_2$")
    figure.colorbar(image, ax=panels, label="density", shrink=0.7, pad=0.01, extend="max")
    return figure


def describe(axes: Axes, data: Data, which: int) -> None:
    """The two numbers of a method, below its panel; of the independent draws, the last, below the truth."""
    (kl, kl_error), (l1, l1_error) = mean_and_error(data["kl"][which]), mean_and_error(data["l1"][which])
    first = "$x_1$\n" + ("exact draws:\n" if which < 0 else "")
    axes.set_xlabel(f"{first}KL {with_error(kl, kl_error)}\nL1 {with_error(l1, l1_error)}", fontsize=7)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method."""
    return [
        {
            "method": label,
            "draws": int(data["draws"][i]),
            "kl_nats": mean_and_error(data["kl"][i])[0],
            "kl_standard_error": mean_and_error(data["kl"][i])[1],
            "kl_of_independent_draws": float(data["floor"][i]),
            "modes_l1": mean_and_error(data["l1"][i])[0],
            "modes_l1_standard_error": mean_and_error(data["l1"][i])[1],
            "share_on_the_left": mean_and_error(data["left"][i])[0],
            "share_on_the_left_standard_error": mean_and_error(data["left"][i])[1],
        }
        for i, label in enumerate((*LABELS, EXACT))
    ]


def compare(data: Data) -> list[Claim]:
    """What the text says of (b) to (g): who is nearest the truth, who is farthest, and on which side (f) errs."""
    l1 = {name: mean_and_error(values) for name, values in zip(PANELS, data["l1"][:-1], strict=True)}
    left = data["left"][PANELS.index("CSGLD×T5")]
    worst = "the text, “SGLD … undoubtedly performs the worst”"
    repeat = "What the text sees is one repeat; another may err to the right."
    return [
        Claim("modes' weights, L1: ICSGLD×P5", np.nan, *l1["ICSGLD×P5"], "lower"),
        *(said_above(f"modes' weights, L1: {name} over ICSGLD×P5", 1.0, ratio_and_error(l1[name], l1["ICSGLD×P5"]),
                     "the text, “most accurate”", WORSE.get(name, ""))
          for name in PANELS[:5]),
        *(said_above(f"modes' weights, L1: SGLD×P5 over {name}", 1.0, ratio_and_error(l1["SGLD×P5"], l1[name]), worst,
                     STARTS.get(name, ""))
          for name in PANELS[1:5]),
        Claim("modes' weights, L1: ICSGLD×P5 over reSGHMC×P2 (ours)", np.nan,
              *ratio_and_error(l1["ICSGLD×P5"], l1["reSGHMC×P2"]), "higher"),
        said_above("weight of x₁ < 0 by CSGLD×T5, truth 0.5", 0.5, mean_and_error(left),
                   "the text, “overestimates the weights on the left side”", repeat),
        Claim("standard deviation of that weight between repeats", np.nan, float(left.std(ddof=1)),
              float(left.std(ddof=1) / np.sqrt(2.0 * (left.size - 1))), "lower"),
    ]  # fmt: skip


STARTS = {
    "cycSGLD×T5": "SGLD's five replicas start in five modes, the one long chain in one",
    "SVGD×P5": "its particles stay in the modes they start near",
}
WORSE = {"reSGLD×P5": "on one domain and at equal cost replica exchange changes modes faster than a flattened energy"}


if __name__ == "__main__":
    run_script(__file__)
