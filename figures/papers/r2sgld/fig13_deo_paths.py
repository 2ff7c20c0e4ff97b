"""r2SGLD (2024), figure 13: walkers on a ladder of temperatures under even–odd swaps, and the round trips they make.

A walker is a state on its way through the temperatures. Left: every walker of one chain of r2SGLD with 8 replicas on
the flower of figure 5, one walker in blue; under the deterministic even–odd scheme (DEO) it goes up and down in nearly
straight lines, under the stochastic one (SEO), which tosses a coin between even and odd pairs, it diffuses. Right:
round trips coldest → hottest → coldest of all walkers per attempt, for 2 to 16 replicas, and as expected at the same
swap rates if states forgot themselves between attempts (Syed et al., 2022): DEO's number is set by the rejections
alone, SEO's falls with the number of replicas; with two replicas both schemes are the same. Our choices: temperatures
from 1 to 10 in equal ratios, step sizes 5e-4 √T, an attempt every 10 steps, gradient noise 0.05.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script, swaps
from figures.plots import style
from figures.scripts.claims import THEORY, said_above
from figures.scripts.statistics import means_and_errors, ratio_of
from targets import constrained, mixtures, shapes
from toolkit import samplers
from toolkit.diagnostics import exchange_summary
from toolkit.ladders import geometric_ladder
from toolkit.samplers import Sampler

SEED = 13
DIFFERS = (
    "The paper draws a sketch; these are walkers of real runs, beside the scheme that DEO replaces and the number of "
    "round trips that theory expects of both."
)
SHAPE = shapes.flower(petals=5, offset=3.0, radius=2.0)
SCHEMES = ("deo", "seo")
REPLICAS = (2, 4, 8, 16)
SHOWN, SWAP_EVERY, ATTEMPTS_SHOWN = 8, 10, 150


def sampler_of(scheme: str, n_replicas: int) -> Sampler:
    """r2SGLD on a geometric ladder from 1 to 10."""
    ladder = geometric_ladder(1.0, 10.0, n_replicas)
    steps = tuple(5e-4 * temperature**0.5 for temperature in ladder)
    return samplers.r2sgld(steps, temperatures=ladder, scheme=scheme, swap_every=SWAP_EVERY, gradient_noise=0.05)


def measure(study: Study) -> dict[str, Any]:
    """Walkers (scheme, replica, attempt) of a chain; round trips per attempt (scheme, ladder, chain), and expected."""
    problem = constrained(mixtures.cosine25(), SHAPE)
    attempts, n_chains = study.size((4_000, 64), (1_000, 16))
    trips, expected, rates, walkers = [], [], [], []
    for scheme in SCHEMES:
        for n in REPLICAS:
            run = study.sample(
                f"{scheme.upper()}, {n} replicas", problem, sampler_of(scheme, n), n_steps=SWAP_EVERY * attempts,
                n_chains=n_chains, thin=SWAP_EVERY * attempts // 10, trace_every=SWAP_EVERY,
                init=np.zeros(2),
            )  # fmt: skip
            summary = exchange_summary(run)
            trips.append(run.round_trips / attempts)
            expected.append(summary.expected_round_trips / attempts)
            rates.append(run.swap_rates.mean(axis=-1))
            if n == SHOWN:
                assert run.trace is not None
                walkers.append(run.trace.fields["walker"][0, :, :ATTEMPTS_SHOWN])
    shape = (len(SCHEMES), len(REPLICAS))
    return {
        "walkers": walkers, "round_trips": np.reshape(trips, (*shape, n_chains)),
        "expected": np.reshape(expected, shape), "swap_rates": np.reshape(rates, (*shape, n_chains)),
    }  # fmt: skip


def draw(data: Data) -> Figure:
    """Two index processes, and round trips over the number of replicas."""
    figure, panels = plt.subplot_mosaic([["a", "c"], ["b", "c"]], figsize=(style.WIDTH, 3.4), width_ratios=[1.7, 1.0])
    for letter, scheme, walkers in zip("ab", SCHEMES, data["walkers"], strict=True):
        swaps(walkers, panels[letter], highlight=0)
        panels[letter].set(ylabel="replica, coldest 0", xlim=(0, ATTEMPTS_SHOWN - 1))
        panels[letter].set_title(f"({letter}) {scheme.upper()}, 8 replicas, one walker in blue", loc="left")
    panels["a"].tick_params(labelbottom=False)
    panels["b"].set_xlabel("attempt to swap")
    means, errors = means_and_errors(data["round_trips"])
    for s, (scheme, colour, marker) in enumerate(zip(SCHEMES, (style.MEDIUM, style.LIGHT), "os", strict=True)):
        panels["c"].plot(REPLICAS, data["expected"][s], "--", color=colour, label=f"{scheme.upper()}, expected")
        panels["c"].errorbar(REPLICAS, means[s], 2.0 * errors[s], fmt=marker, color=colour, markersize=4,
                             label=f"{scheme.upper()}, counted")  # fmt: skip
    panels["c"].set(xscale="log", yscale="log", xlabel="replicas", ylabel="round trips per attempt")
    panels["c"].set_xticks(REPLICAS, map(str, REPLICAS))
    panels["c"].set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
    panels["c"].minorticks_off()
    panels["c"].set_title("(c) mean ± 2 standard errors", loc="left")
    panels["c"].legend(loc="lower left")
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per scheme and number of replicas."""
    means, errors = means_and_errors(data["round_trips"])
    return [
        {"scheme": scheme, "replicas": n, "swap_rate": float(data["swap_rates"][s, k].mean()),
         "round_trips_per_attempt": float(means[s, k]), "standard_error": float(errors[s, k]),
         "expected_if_independent": float(data["expected"][s, k])}
        for s, scheme in enumerate(SCHEMES)
        for k, n in enumerate(REPLICAS)
    ]  # fmt: skip


def compare(data: Data) -> list[Claim]:
    """What A.4 says of the scheme, beside the scheme that it replaces here; and how near it comes to the theory."""
    claims, ratio = [], means_and_errors(data["round_trips"] / data["expected"][:, :, None])
    for k, n in enumerate(REPLICAS):
        if n > 2:
            claims.append(
                said_above(
                    f"round trips of DEO over SEO's, {n} replicas",
                    1.0,
                    ratio_of(*data["round_trips"][:, k]),
                    "A.4, “reduces round trip times”",
                )
            )
            claims.append(said_above(f"swap rate of DEO over SEO's, {n} replicas", 1.0,
                                     ratio_of(*data["swap_rates"][:, k]), "A.4, “significantly increases swap rates”",
                                     "Which pairs are tried does not change how often one of them swaps."))  # fmt: skip
    memory = "States remember themselves over the 10 steps between attempts, and turn back more often."
    return claims + [
        Claim(f"round trips of {scheme.upper()} over those expected of independent swaps, 8 replicas", 1.0,
              float(ratio[0][s, 2]), float(ratio[1][s, 2]), 1.0, 0.0, "Syed et al., 2022", memory, origin=THEORY)
        for s, scheme in enumerate(SCHEMES)
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
