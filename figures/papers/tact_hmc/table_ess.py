"""TACT-HMC (2018), section 5.1: effective sample size of 10⁵ draws, TACT-HMC beside SGHMC and SGNHT.

Target, noise and settings of figure 1a; 64 chains from exact draws, so that each mode has its share of them from the
first, which flatters samplers that stay where they are; 5 · 10⁵ gradient evaluations each after 2 · 10⁴, one state
kept per 50. SGHMC has TACT-HMC's friction c and nothing against the noise, as it is unknown; "noise known" has
friction c + ηv/2 and takes the noise for its own, which SGNHT finds out by itself. Standard errors: over 8 groups of
8 chains.

(a) ESS of 10⁵ draws that count, n/(1 + 2Σρ), about the mean of all chains, as it must be (filled); and of pieces of
200 draws about their own mean, as one sees it while a chain is in one mode (open); crosses: the paper's. (b) ESS of
the first kind per 10⁶ gradient evaluations: TACT-HMC keeps one state of 500. SGHMC with unknown noise owes its number
to a law that is nearly three times too wide. (c) TACT-HMC's ESS against K, steps between candidates: per draw it
grows nearly as K, per gradient evaluation it falls, by half from K = 10 to 200. (d) against its other settings, one
changed at a time from η = 0.02, η_ξ/η = 0.1, g(1) = 15, c = 0.05, γ = 1, noise 3; 500 evaluations per draw in each.
Chains diverge with η_ξ/η = 0.3 or more, or η = 0.08: the thermostat of ξ then spreads too far, as λ'² is up to 5.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.arrays import Array
from figures.papers.tact_hmc.ablations import (
    EXCHANGE,
    TACT,
    Settings,
    counted_draws,
    equal_cost,
    exchange_sampler,
    mode_errors,
    tact_sampler,
    truth_of,
)
from figures.plots import style
from figures.scripts.statistics import mean_and_error, ratio_and_error
from targets import mixtures
from toolkit import samplers
from toolkit.diagnostics import ess, ess_by_cutoff, r_hat
from toolkit.samplers import Sampler

SEED = 2018
DIFFERS = (
    "The paper's ratios, 60 % of SGHMC's ESS and 51 % of SGNHT's, compare chains that see all modes with chains that "
    "hardly leave one; across chains TACT-HMC's ESS is many times that of those whose law is right, per draw and per "
    "gradient evaluation. Replica exchange under thermostats is better still."
)
SETTINGS, GROUPS, PIECE = Settings(), 8, 200
STATES = (10, 20, 50, 100, 200)  # K
CHANGES = {
    "η = 0.005": Settings(step_size=0.005),
    "η = 0.01": Settings(step_size=0.01),
    "η = 0.04": Settings(step_size=0.04),
    "η_ξ/η = 0.01": Settings(coupling_share=0.01),
    "η_ξ/η = 0.03": Settings(coupling_share=0.03),
    "g(1) = 8": Settings(top=8.0),
    "g(1) = 20": Settings(top=20.0),
    "c = 0.02": Settings(friction=0.02),
    "c = 0.1": Settings(friction=0.1),
    "γ = 4": Settings(inertia=4.0),
    "no noise": Settings(noise=0.0),
    "noise 5": Settings(noise=5.0),
}
PRINTED = {TACT: 2.1096e4, "SGHMC": 2.1096e4 / 0.602, "SGNHT": 2.1096e4 / 0.509}


def baselines() -> dict[str, Sampler]:
    """TACT-HMC, the paper's two, SGHMC that knows the noise, and replica exchange."""
    h, c, noise = SETTINGS.step_size, SETTINGS.friction, SETTINGS.noise
    known = c + 0.5 * h * noise**2
    return {
        TACT: tact_sampler(SETTINGS),
        "SGHMC": samplers.sghmc(h, friction=c, gradient_noise=noise),
        "SGHMC, noise known": samplers.sghmc(h, friction=known, noise_estimate=noise, gradient_noise=noise),
        "SGNHT": samplers.sgnht(h, friction=c, inertia=SETTINGS.inertia, gradient_noise=noise),
        EXCHANGE: exchange_sampler(SETTINGS),
    }


def ess_of_groups(draws: Array, piece: int) -> tuple[Array, Array]:
    """ESS per 10⁵ draws of each group of chains: across its chains, and of pieces about their own mean; (group,)."""
    groups = np.split(draws, GROUPS)
    pieces_of_groups = [group[:, : group.shape[1] // piece * piece].reshape(-1, piece, 1) for group in groups]
    return (
        np.array([1e5 * ess(group, method="mean")[0] / group.size for group in groups]),
        np.array([1e5 * ess_by_cutoff(pieces).mean() / piece for pieces in pieces_of_groups]),
    )


def measure(study: Study) -> dict[str, Any]:
    """ESS (sampler, kind, group), costs, R-hat and modes of all samplers; ESS and costs of TACT-HMC by setting."""
    target, n_chains = mixtures.three_on_a_line(), study.size(64, 32)
    init = truth_of(target).independent_draws(n_chains, seed=study.seed)
    n_steps, burn_in = study.size((500_000, 20_000), (30_000, 5_000))
    numbers, costs, hats, tables = [], [], [], []
    for label, sampler in baselines().items():
        plan = equal_cost(sampler, n_steps, burn_in, SETTINGS.keep_every)
        run = study.sample(label, target, sampler, n_chains=n_chains, init=init, **plan)
        draws = counted_draws(run)
        numbers.append(ess_of_groups(draws, min(PIECE, draws.shape[1])))
        costs.append(n_steps * n_chains / (run.weights > 0.0).sum())
        hats.append(r_hat(draws)[0])
        tables.append(mode_errors(run, truth_of(target)))
    changed = {f"K = {k}": Settings(keep_every=k) for k in STATES} | CHANGES
    swept, swept_costs, (n_steps, burn_in) = [], [], study.size((100_000, 20_000), (15_000, 5_000))
    n_chains = study.size(64, 16)
    for label, settings in changed.items():
        plan = equal_cost(tact_sampler(settings), n_steps, burn_in, settings.keep_every)
        run = study.sample(
            f"{TACT}, {label}", target, tact_sampler(settings), n_chains=n_chains, init=init[:n_chains], **plan
        )
        swept.append(ess_of_groups(counted_draws(run), 2)[0])
        swept_costs.append(n_steps * n_chains / (run.weights > 0.0).sum())
    return {
        "ess": numbers, "evaluations": costs, "r_hat": hats, "modes": tables, "swept": swept,
        "swept_evaluations": swept_costs,
    }  # fmt: skip


def ratio(numerator: Array, denominator: Array) -> tuple[float, float]:
    """Ratio of the means of two sets of groups, with its standard error to first order."""
    return ratio_and_error(mean_and_error(numerator), mean_and_error(denominator))


def draw(data: Data) -> Figure:
    """ESS by sampler, per draw and per gradient evaluation; by K; by the other settings."""
    figure = plt.figure(figsize=(style.WIDTH, 4.9))
    above, below = figure.subfigures(2, 1, height_ratios=[1.0, 1.35])
    per_draw, per_gradient = above.subplots(1, 2, sharey=True)
    by_state, by_setting = below.subplots(1, 2)
    names = list(baselines())
    for i, name in enumerate(names):
        (value, error), (own, own_error) = (mean_and_error(row) for row in data["ess"][i])
        per_draw.errorbar(value, i, xerr=2.0 * error, fmt="o", markersize=4.5, color=style.MEDIUM,
                          label="about the mean of all chains")  # fmt: skip
        per_draw.errorbar(own, i + 0.22, xerr=2.0 * own_error, fmt="o", markersize=4.5, color=style.LIGHT, mfc="white",
                          label="pieces of 200 draws, about their own mean")  # fmt: skip
        scale = 10.0 / data["evaluations"][i]
        per_gradient.errorbar(scale * value, i, xerr=2.0 * scale * error, fmt="o", markersize=4.5, color=style.MEDIUM)
        if name in PRINTED:
            per_draw.plot(PRINTED[name], i, "x", color="black", label="the paper", zorder=3)
    handles, labels = per_draw.get_legend_handles_labels()
    per_draw.set_yticks(range(len(names)), names)
    per_draw.set(xscale="log", ylim=(4.5, -0.5), xlabel="ESS of 10⁵ draws", title="(a) ESS per draw")
    per_gradient.set(xscale="log", xlabel="ESS per 10⁶ gradient evaluations", title="(b) ESS per cost")
    unique = dict(zip(labels, handles, strict=True))
    above.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3)
    draw_settings(data, by_state, by_setting)
    handles, labels = by_state.get_legend_handles_labels()
    default, name = by_setting.get_legend_handles_labels()
    below.legend([*handles, *default], [*labels, *name], loc="outside lower center", ncols=4,
                 title="bars, here and above: ± 2 standard errors", title_fontsize=7)  # fmt: skip
    return figure


def draw_settings(data: Data, by_state: Any, by_setting: Any) -> None:
    """TACT-HMC's ESS against K, and against its other settings."""
    values = np.array([mean_and_error(row) for row in data["swept"]])
    scale = 10.0 / data["swept_evaluations"]
    n = len(STATES)
    by_state.errorbar(
        STATES, values[:n, 0], 2.0 * values[:n, 1], fmt="o-", markersize=4.5, color=style.MEDIUM, label="of 10⁵ draws"
    )
    by_state.errorbar(
        STATES, 100.0 * scale[:n] * values[:n, 0], 200.0 * scale[:n] * values[:n, 1], fmt="s", linestyle=(0, (4, 2)),
        markersize=4, color=style.LIGHT, label="of 10⁸ gradient evaluations",
    )  # fmt: skip
    by_state.axhline(PRINTED[TACT], color="black", linewidth=0.8, linestyle=":", label="the paper, of 10⁵ draws")
    by_state.set(xscale="log", yscale="log", xlabel="$K$", ylabel="ESS", title="(c) TACT-HMC against $K$")
    by_state.margins(y=0.1)
    by_state.set_xticks(STATES, [str(k) for k in STATES])
    by_state.set_xticks([], minor=True)
    places = np.arange(len(CHANGES))
    by_setting.errorbar(values[n:, 0], places, xerr=2.0 * values[n:, 1], fmt="o", markersize=4.5, color=style.MEDIUM)
    by_setting.axvline(values[STATES.index(50), 0], color=style.MEDIUM, linewidth=0.8, label="settings of figure 1a")
    by_setting.axvline(PRINTED[TACT], color="black", linewidth=0.8, linestyle=":")
    by_setting.set_yticks(places, [label.replace("η_ξ", r"$\eta_\xi$") for label in CHANGES])
    by_setting.set(ylim=(len(CHANGES) - 0.5, -0.5), xlabel="ESS of 10⁵ draws")
    by_setting.set_xlim(left=0.0)
    by_setting.locator_params(axis="x", nbins=5)
    by_setting.xaxis.set_major_formatter("{x:,.0f}")
    by_setting.set_title("(d) TACT-HMC, one setting changed")


def table(data: Data) -> list[dict[str, Any]]:
    """One row per sampler, and per setting of TACT-HMC."""
    rows = []
    for i, name in enumerate(baselines()):
        (value, error), (own, own_error) = (mean_and_error(row) for row in data["ess"][i])
        cost, (weights, variances) = float(data["evaluations"][i]), data["modes"][i][..., 0]
        rows.append(
            {"sampler": name, "setting": "as stated", "ess_of_1e5_draws": value, "standard_error": error,
             "printed": PRINTED.get(name, np.nan), "gradient_evaluations_per_draw": cost,
             "ess_per_1e6_gradients": 10.0 * value / cost, "standard_error_per_1e6_gradients": 10.0 * error / cost,
             "ess_of_1e5_draws_within_pieces": own, "standard_error_within_pieces": own_error,
             "r_hat": float(data["r_hat"][i]), "mean_variance_over_truth": float(np.nanmean(variances)),
             "largest_error_of_a_weight": float(np.abs(weights - 1.0).max())}
        )  # fmt: skip
    for label, row, cost in zip([f"K = {k}" for k in STATES] + list(CHANGES), data["swept"],
                                map(float, data["swept_evaluations"]), strict=True):  # fmt: skip
        value, error = mean_and_error(row)
        known = {"sampler": TACT, "setting": label, "ess_of_1e5_draws": value, "standard_error": error,
                 "gradient_evaluations_per_draw": cost, "ess_per_1e6_gradients": 10.0 * value / cost,
                 "standard_error_per_1e6_gradients": 10.0 * error / cost}  # fmt: skip
        rows.append({key: known.get(key, np.nan) for key in rows[0]})
    return rows


def compare(data: Data) -> list[Claim]:
    """The printed ESS and its two ratios, of another target; the same ratios at equal cost; replica exchange."""
    across, own = (dict(zip(baselines(), data["ess"][:, kind], strict=True)) for kind in (0, 1))
    cost = dict(zip(baselines(), data["evaluations"], strict=True))
    trapped = "The untempered sampler decorrelates in its mode within 50 steps, and this ESS does not see other modes."
    seldom = "Across chains the untempered sampler's ESS is small, as it seldom changes modes."
    claims = [Claim("ESS of 10⁵ draws that count", PRINTED[TACT], *mean_and_error(across[TACT]), "higher",
                    why=OTHER, is_same=False)]  # fmt: skip
    for name, printed in (("SGHMC, noise known", 0.602), ("SGNHT", 0.509)):
        claims += [
            Claim(f"ESS over that of {name}, equal draws, across chains", printed, *ratio(across[TACT], across[name]),
                  "higher", why=f"{OTHER} {seldom}", is_same=False),
            Claim(f"ESS over that of {name}, equal draws, the latter in pieces of {PIECE} about their own mean",
                  printed, *ratio(across[TACT], own[name]), "higher", why=f"{OTHER} {trapped}", is_same=False),
            Claim(f"ESS over that of {name}, equal gradient evaluations, across chains", np.nan,
                  *ratio(across[TACT] / cost[TACT], across[name] / cost[name]), "higher"),
        ]  # fmt: skip
    best = ratio(across[EXCHANGE] / cost[EXCHANGE], across[TACT] / cost[TACT])
    what = "replica exchange under thermostats: ESS over TACT-HMC's, equal gradient evaluations"
    return [*claims, Claim(what, np.nan, *best, "higher")]


OTHER = "The paper states neither target nor noise nor step size, and not about which mean its ESS is."

if __name__ == "__main__":
    run_script(__file__)
