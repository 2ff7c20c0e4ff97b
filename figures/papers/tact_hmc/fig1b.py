"""TACT-HMC (2018), figure 1b: the path of TACT-HMC, its two thermostats, its memory and its temperature.

Target, noise and settings of figure 1a; chains start at 0. (a) the first 1,400 draws of one chain that count (λ = 1,
one candidate per 50 steps), with the histogram of the same draws, and the truth. (b) running means of the thermostats
s = z/√η of θ and ξ over the first 10⁵ steps: one chain in strong colour, the others pale; dashed: the mean of theorem
1, c/√η + √η v/2. (c), (d) their histograms over all chains after 10⁴ steps, and the normal law of theorem 1. (e)
autocorrelation of the draws that count, about the mean of the truth, ± 2 standard errors over chains (in the table over
the variance of the truth, so that lag 0 has the ratio of the variances).
(f) the effective temperature 1/λ(ξ) of one chain over 300 units of time, √η each step.

Theorem 1 is for time steps of no length. The table has the thermostats at a quarter of the time step as well (η/16,
c/4, 4 v, which leave the law of s as it is), where they are a third as far from it.
"""

from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.arrays import Array
from figures.papers.tact_hmc.ablations import TACT, Settings, counted_draws, tact_sampler, truth_of
from figures.plots import style
from figures.scripts.statistics import mean_and_error
from targets import mixtures
from toolkit import Run
from toolkit.diagnostics.thermostats import (
    coupling_thermostat_law,
    effective_temperature,
    running_average,
    thermostat_law,
)

SEED = 2018
DIFFERS = (
    "Settings are ours, as the paper prints none. The thermostats' means are 7 and 9 % below theorem 1, which is for "
    "time steps of no length; at a quarter of the time step they are 2 and 4 % below."
)
SETTINGS = Settings()
SLOWER = 4  # the same dynamics at a quarter of the time step: s has the same law by theorem 1
FINER = SETTINGS._replace(
    step_size=SETTINGS.step_size / SLOWER**2, friction=SETTINGS.friction / SLOWER, noise=SETTINGS.noise * SLOWER**0.5
)
NAMES, SYMBOLS = ("thermostat", "xi_thermostat"), (r"s_\theta", r"s_\xi")
EDGES, LAGS, EVERY, SETTLED = np.linspace(-3.0, 5.0, 81), 30, 5, 10_000


def time_steps(settings: Settings) -> tuple[float, float]:
    """Δt of θ and of ξ, √η each."""
    return settings.step_size**0.5, (settings.coupling_share * settings.step_size) ** 0.5


def laws(settings: Settings) -> Array:
    """Mean and standard deviation of s_θ and s_ξ by theorem 1, (2, 2)."""
    both = thermostat_law(tact_sampler(settings), 1), coupling_thermostat_law(tact_sampler(settings))
    return np.array([(mean / dt, sd / dt) for (mean, sd), dt in zip(both, time_steps(settings), strict=True)])


def thermostats(study: Study, settings: Settings, slower: int) -> tuple[Run, Array]:
    """A traced run, ``slower`` times as long, and its thermostats s of θ and ξ, (2, chain, time)."""
    run = study.sample(
        f"{TACT}, traced, η = {settings.step_size}", mixtures.three_on_a_line(), tact_sampler(settings),
        n_chains=32, init=[0.0],
        n_steps=slower * study.size(100_000, 20_000), trace_every=slower * EVERY, keep_draws=False,
    )  # fmt: skip
    assert run.trace is not None
    scaled = zip(NAMES, time_steps(settings), strict=True)
    return run, np.stack([run.trace.fields[name][:, 0] / dt for name, dt in scaled])


def measure(study: Study) -> dict[str, Any]:
    """Path, thermostats, autocorrelation and temperature."""
    target, first, n_steps = mixtures.three_on_a_line(), SETTLED // EVERY, study.size(1_000_000, 100_000)
    (run, s), (_, finer) = thermostats(study, SETTINGS, 1), thermostats(study, FINER, SLOWER)
    late = np.stack([s, finer])[..., first:]
    long_run = study.sample(
        TACT, target, tact_sampler(SETTINGS), n_chains=study.size(32, 16), init=[0.0], n_steps=n_steps + 20_000,
        burn_in=20_000, thin=SETTINGS.keep_every,
    )  # fmt: skip
    draws = counted_draws(long_run)[..., 0]
    truth = truth_of(target)
    scaled = (draws - truth.mean[0]) / truth.covariance[0, 0] ** 0.5
    return {
        "path": draws[0, :1400],
        "averages": running_average(s)[:, :, 199::200],
        "heights": [np.histogram(values, EDGES, density=True)[0] for values in late[0]],
        "means": late.mean(axis=3),
        "deviations": late.std(axis=3),
        "correlations": [(scaled[:, : scaled.shape[1] - k] * scaled[:, k:]).mean(axis=1) for k in range(LAGS + 1)],
        "temperatures": effective_temperature(run)[0, 0, first:][: int(300.0 / time_steps(SETTINGS)[0]) // EVERY],
    }


def draw(data: Data) -> Figure:
    """Six panels."""
    figure = plt.figure(figsize=(style.WIDTH, 5.6))
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=[1.0, 1.1, 1.0])
    draw_path(data["path"], *upper.subplots(1, 2, sharey=True, width_ratios=[5.0, 1.0]))
    means, *histograms = middle.subplots(1, 3, width_ratios=[1.4, 1.0, 1.0])
    steps = (np.arange(data["averages"].shape[2]) + 1) * 200 * EVERY / 1e4
    for i, colour in enumerate((style.MEDIUM, style.LIGHT)):
        mean, deviation = laws(SETTINGS)[i]
        means.plot(steps, data["averages"][i, 1:].T, color=colour, linewidth=0.3, alpha=0.35)
        means.plot(steps, data["averages"][i, 0], color=colour, label=f"${SYMBOLS[i]}$")
        law_name = "" if i else r"theorem 1, $\eta \to 0$"
        means.axhline(mean, color="black", linewidth=0.8, linestyle=(0, (4, 2)), label=law_name)
        panel, at = histograms[i], np.linspace(-3.0, 5.0, 401)
        panel.stairs(data["heights"][i], EDGES, fill=True, color="0.78")
        law = np.exp(-0.5 * ((at - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
        panel.plot(at, law, color="black", linestyle=(0, (4, 2)), linewidth=0.9, label="theorem 1")
        panel.set(xlabel=f"${SYMBOLS[i]}$", xlim=(-3, 5), ylim=(0, 0.5))
        panel.set_title((r"(c) thermostat of $\theta$", r"(d) thermostat of $\xi$")[i])
    low, high = data["averages"].min(), data["averages"].max()
    means.set(ylim=(low - 0.05, high + 0.3), xlabel="steps, 10⁴", ylabel="running mean")
    means.set_title("(b) running means of the thermostats")
    means.legend(loc="upper right", ncols=3, handlelength=1.4, columnspacing=1.0)
    histograms[0].set_ylabel("density")
    histograms[0].legend(loc="upper right", handlelength=1.8, borderaxespad=0.0)
    lags, heat = lower.subplots(1, 2)
    values = np.array([mean_and_error(row) for row in data["correlations"]])
    values /= values[0, 0]  # of the draws' own variance
    lags.bar(np.arange(LAGS + 1), values[:, 0], yerr=2.0 * values[:, 1], color="0.7", error_kw={"linewidth": 0.8})
    lags.axhline(0.0, color="black", linewidth=0.6)
    lags.set(xlabel="lag, draws that count", ylabel=r"$\rho$", title="(e) autocorrelation")
    times = np.arange(data["temperatures"].size) * EVERY * time_steps(SETTINGS)[0]
    heat.plot(times, data["temperatures"], color=style.MEDIUM, linewidth=0.8)
    heat.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
    heat.set(xlabel="time", ylabel=r"$1/\lambda(\xi)$", ylim=(0, 16), xlim=(0, 300), title="(f) effective temperature")
    return figure


def draw_path(path: Array, panel: Any, histogram_axes: Any) -> None:
    """The draws one after the other, and their histogram beside the truth."""
    panel.plot(path, ".", color=style.MEDIUM, markersize=2)
    panel.set(
        xlabel="draw", ylabel=r"$\theta$", ylim=(-20, 20), title="(a) draws of one chain that count, in their order"
    )
    at = np.linspace(-20.0, 20.0, 401)
    histogram_axes.hist(path, np.linspace(-20.0, 20.0, 81), density=True, orientation="horizontal", color="0.78")
    truth = np.exp(truth_of(mixtures.three_on_a_line()).log_density(at[:, None]))
    histogram_axes.plot(truth, at, color=style.MEDIUM, linewidth=1.0)
    histogram_axes.set(xlabel="density")


def table(data: Data) -> list[dict[str, Any]]:
    """Thermostats' means and deviations beside the law, and the autocorrelation at each lag."""
    rows = []
    for (k, settings), (i, name) in product(enumerate((SETTINGS, FINER)), enumerate(("s_theta", "s_xi"))):
        for quantity, law in zip(("mean", "deviation"), laws(settings)[i], strict=True):
            mean, error = mean_and_error(data[f"{quantity}s"][k, i])
            label = f"{quantity} of {name}, step size {settings.step_size:g}"
            rows.append({"quantity": label, "ours": mean, "standard_error": error, "law": float(law)})
    for lag, row in enumerate(data["correlations"]):
        mean, error = mean_and_error(row)
        rows.append({"quantity": f"autocorrelation at lag {lag}", "ours": mean, "standard_error": error, "law": np.nan})
    return rows


def compare(data: Data) -> list[Claim]:
    """The thermostats' laws, and the autocorrelation time."""
    claims, why = [], "Theorem 1 is for time steps of no length; at a quarter of ours the means are 2 and 4 % off."
    for i, name in enumerate(("θ", "ξ")):
        for quantity, law in zip(("mean", "deviation"), laws(SETTINGS)[i], strict=True):
            ours = mean_and_error(data[f"{quantity}s"][0, i])
            what = f"{quantity} of the thermostat s of {name}, beside theorem 1"
            claims.append(Claim(what, float(law), *ours, float(law), source="derived", why=why))
    time = 1.0 + 2.0 * data["correlations"][1:].sum(axis=0)
    claims.append(
        Claim("autocorrelation time up to lag 30, in draws that count", 1e5 / 2.1096e4, *mean_and_error(time), "lower",
              source="derived")
    )  # fmt: skip
    return claims


if __name__ == "__main__":
    run_script(__file__)
