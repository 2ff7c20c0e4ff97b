"""TACT-HMC (2018), figure 1b: the path of TACT-HMC, its two thermostats, its memory and its temperature.

Target, noise and settings of figure 1a; chains start at 0. (a) the first 1,400 draws of one chain that count (λ = 1,
one candidate per 50 steps), with the histogram of the same draws, and the truth. (b) running means of the thermostats
s = z/√η of θ and ξ over the time of the first 10⁵ steps, at our time step √η and at a sixteenth of it (η/256, c/16, 16
v, which leave the law of s as it is); dashed: the mean of theorem 1, c/√η + √η v/2. (c), (d) their histograms over all
chains after a tenth of that time, and the normal law of theorem 1. (e)
autocorrelation of the draws that count, about the mean of the truth, ± 2 standard errors over chains (in the table over
the variance of the truth, so that lag 0 has the ratio of the variances). (f) the effective temperature 1/λ(ξ) of one
chain over 300 units of time, √η each step.

Theorem 1 is for time steps of no length. The means are 7 % (θ) and 9 % (ξ) below it at our time step, 2 and 4 % at a
quarter, and 0.7 and 0.7 % at a sixteenth of it.
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
from figures.scripts.claims import DERIVED, THEORY, said_above, said_below
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
    "Settings are ours, as the paper prints none. At our time step the thermostats' means are 7 and 9 % below theorem "
    "1, which is for time steps of no length; at a sixteenth of it, shown beside, they are 0.7 % below."
)
SETTINGS = Settings()
SLOWER = (1, 4, 16)  # the same dynamics at the time step over each of these: s has the same law by theorem 1
FINER = [
    SETTINGS._replace(
        step_size=SETTINGS.step_size / k**2, friction=SETTINGS.friction / k, noise=SETTINGS.noise * k**0.5
    )
    for k in SLOWER
]
FRACTIONS = ("", " at a quarter of the time step", " at a sixteenth of the time step")
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
    runs = [thermostats(study, settings, slower) for settings, slower in zip(FINER, SLOWER, strict=True)]
    run, by_step = runs[0][0], np.stack([s for _, s in runs])
    late = by_step[..., first:]
    long_run = study.sample(
        TACT, target, tact_sampler(SETTINGS), n_chains=study.size(32, 16), init=[0.0], n_steps=n_steps + 20_000,
        burn_in=20_000, thin=SETTINGS.keep_every,
    )  # fmt: skip
    draws = counted_draws(long_run)[..., 0]
    truth = truth_of(target)
    scaled = (draws - truth.mean[0]) / truth.covariance[0, 0] ** 0.5
    return {
        "path": draws[0, :1400],
        "averages": [running_average(s)[:, :, 199::200] for s in by_step[[0, -1]]],
        "heights": [[np.histogram(values, EDGES, density=True)[0] for values in s] for s in late[[0, -1]]],
        "means": late.mean(axis=3),
        "deviations": late.std(axis=3),
        "correlations": [(scaled[:, : scaled.shape[1] - k] * scaled[:, k:]).mean(axis=1) for k in range(LAGS + 1)],
        "temperatures": effective_temperature(run)[0, 0, first:][: int(300.0 / time_steps(SETTINGS)[0]) // EVERY],
    }


def draw(data: Data) -> Figure:
    """Six panels."""
    figure = plt.figure(figsize=(style.WIDTH, 5.9))
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=[1.0, 1.2, 1.0])
    draw_path(data["path"], *upper.subplots(1, 2, sharey=True, width_ratios=[5.0, 1.0]))
    means, *histograms = middle.subplots(1, 3, width_ratios=[1.4, 1.0, 1.0])
    steps = (np.arange(data["averages"].shape[3]) + 1) * 200 * EVERY / 1e4
    for i, colour in enumerate((style.MEDIUM, style.LIGHT)):
        mean, deviation = laws(SETTINGS)[i]
        for averages, line, name in zip(data["averages"], (":", "-"), ("our step", "step/16"), strict=True):
            means.plot(steps, averages[i].mean(axis=0), line, color=colour, label=f"${SYMBOLS[i]}$, {name}")
        law_name = "" if i else r"theorem 1, $\eta \to 0$"
        means.axhline(mean, color="black", linewidth=0.8, linestyle=(0, (4, 2)), label=law_name)
        panel, at = histograms[i], np.linspace(-3.0, 5.0, 401)
        ours, finest = data["heights"][:, i]
        panel.stairs(finest, EDGES, fill=True, color="0.78", label="(c), (d): step/16")
        panel.stairs(ours, EDGES, color=colour, linewidth=1.2, linestyle=":")
        law = np.exp(-0.5 * ((at - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
        panel.plot(at, law, color="black", linestyle=(0, (4, 2)), linewidth=0.9)
        panel.set(xlabel=f"${SYMBOLS[i]}$", xlim=(-3, 5), ylim=(0, 0.5))
        panel.set_title((r"(c) thermostat of $\theta$", r"(d) thermostat of $\xi$")[i])
    low, high = data["averages"].mean(axis=2).min(), data["averages"].mean(axis=2).max()
    means.set(ylim=(low - 0.05, high + 0.05), xlabel="time in 10⁴ of our steps", ylabel="running mean")
    means.set_title("(b) thermostats: mean over chains and time")
    handles, labels = means.get_legend_handles_labels()
    fill, fill_name = histograms[0].get_legend_handles_labels()
    middle.legend([*handles, *fill], [*labels, *fill_name], loc="outside lower center", ncols=6, columnspacing=1.0)
    histograms[0].set_ylabel("density")
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
    for (k, settings), (i, name) in product(enumerate(FINER), enumerate(("s_theta", "s_xi"))):
        for quantity, law in zip(("mean", "deviation"), laws(settings)[i], strict=True):
            mean, error = mean_and_error(data[f"{quantity}s"][k, i])
            label = f"{quantity} of {name}, step size {settings.step_size:g}"
            rows.append({"quantity": label, "ours": mean, "standard_error": error, "law": float(law)})
    for lag, row in enumerate(data["correlations"]):
        mean, error = mean_and_error(row)
        rows.append({"quantity": f"autocorrelation at lag {lag}", "ours": mean, "standard_error": error, "law": np.nan})
    return rows


def compare(data: Data) -> list[Claim]:
    """The thermostats beside theorem 1 at three time steps; the autocorrelation; how often the temperature is 1."""
    claims, text = [], "figure 1 (b)"
    for k, fraction in enumerate(FRACTIONS):
        for (i, name), (j, quantity) in product(enumerate(("θ", "ξ")), enumerate(("mean", "deviation"))):
            law = float(laws(SETTINGS)[i, j])
            ours = mean_and_error(data[f"{quantity}s"][k, i])
            off = f"{100.0 * (ours[0] / law - 1.0):+.1f} %: theorem 1 is for time steps of no length."
            claims.append(Claim(f"{quantity} of the thermostat s of {name}{fraction}", law, *ours, law, 0.0,
                                "theorem 1", off, origin=THEORY))  # fmt: skip
    time = mean_and_error(1.0 + 2.0 * data["correlations"][1:].sum(axis=0))
    why = "The paper's target, noise and step size are not stated; it follows from its ESS, of table_ess."
    rises = np.diff(data["correlations"], axis=0)
    largest = int(np.argmax(rises.mean(axis=1)))
    at_one = data["temperatures"][: data["temperatures"].size // 10 * 10].reshape(10, -1) < 1.0 + 1e-9
    return [
        *claims,
        Claim("autocorrelation time up to lag 30, in draws that count", 1e5 / 2.1096e4, *time, "lower",
              source="its ESS", why=why, origin=DERIVED, is_same=False),
        said_below("largest rise of the autocorrelation from a lag to the next, up to lag 30", 0.0,
                   mean_and_error(rises[largest]), f"{text}, “decreases monotonically”",
                   f"of {len(rises)} rises; from lag {largest} to {largest + 1}"),
        said_above("autocorrelation at lag 1 less that at lag 30", 0.0,
                   mean_and_error(data["correlations"][1] - data["correlations"][LAGS]), f"{text}, “down to … 0+”"),
        said_above("share of time at temperature 1, one chain", 0.0, mean_and_error(at_one.mean(axis=1)),
                   f"{text}, “returns to the unity temperature occasionally”"),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
