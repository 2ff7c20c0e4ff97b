"""Default starts, what a run says of them, and of whom its R-hat is: point 9 of the outside examination."""

import re
import time
from typing import Any

import numpy as np

from targets import mixtures
from toolkit import Target, sample, samplers


def wells_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Two unit normals 24 apart."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        centre = 12.0 if x > 0.0 else -12.0
        energy[lane] = 0.5 * (x - centre) ** 2
        gradient[0, lane] = x - centre


def largest_r_hat(run: Any) -> str:
    """The largest R-hat of the printed tables."""
    rows = [line.split() for line in str(run).splitlines() if re.match(r" +\d+ +-?\d", line)]
    return max((row[5] for row in rows), default="no table", key=lambda x: float(x) if x not in "–∞" else 0.0)


def modes_of(run: Any) -> int:
    """Of the 25 modes at {−4, −2, 0, 2, 4}², those with draws."""
    places = 2.0 * np.round(0.5 * run.draws[:, ::10].reshape(-1, 2))
    return len(np.unique(np.clip(places, -4.0, 4.0), axis=0))


def main() -> None:
    """Print a line for each case."""
    grid, normal = mixtures.gaussian_grid25(), mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
    asked = {"n_steps": 30_000, "n_chains": 8, "burn_in": 3_000, "seed": 0}
    for label, init in (("default start", {}), ("all at the origin", {"init": [0.0, 0.0]})):
        run = sample(grid, samplers.sgld(1e-3), **asked, **init)
        print(f"gaussian_grid25, SGLD, 8 chains, {label}: {len(np.unique(run.init, axis=0))} starts, R-hat "
              f"{largest_r_hat(run)}, {modes_of(run)} of 25 modes, {len(run.warnings)} warnings (≥ 1)")  # fmt: skip
        for sentence in run.warnings:
            print(f"    ! {sentence}")
        print(*(f"    {line.strip()}" for line in str(run).splitlines() if line.startswith("  truth")), sep="\n")

    places = np.full((8, 1), -12.0)
    places[[3, 6]] = 12.0
    run = sample(Target("wells", 1, wells_block), samplers.sgld(0.5), n_steps=160_000, n_chains=8, seed=0, init=places)
    notes = [line.strip() for line in str(run).splitlines() if line.startswith("  (")]
    print(f"two of 8 chains in another mode, 1.28·10⁶ numbers: R-hat {largest_r_hat(run)} (wanted > 1.1), {notes} "
          "(wanted: all chains)")  # fmt: skip

    swept = sample(normal, samplers.sgld(0.5, temperature=[1.0, 9.0] * 4), n_steps=20_000, n_chains=8, burn_in=500,
                   seed=0)  # fmt: skip
    print(f"a sweep of T = 1 and 9, mixed: R-hat {largest_r_hat(swept)} (wanted < 1.01), "
          f"{len(swept.warnings)} warnings (wanted 0)")  # fmt: skip
    for sentence in swept.warnings:
        print(f"    ! {sentence}")

    try:
        run = sample(grid, samplers.sgld(1e-3), n_steps=1, n_chains=1_000, seed=1)
        few = sample(grid, samplers.sgld(1e-3), n_steps=1, n_chains=7, seed=1)
        print(f"distinct starts of 1,000 chains: {len(np.unique(run.init, axis=0))} (wanted 1,000); the first 7 equal "
              f"those of 7 chains: {np.array_equal(run.init[:7], few.init)} (wanted True)")  # fmt: skip
    except Exception as error:
        print(f"distinct starts: {error!r}")

    seconds = []
    for init in ({}, {"init": [0.0, 0.0]}):
        started = time.perf_counter()
        sample(grid, samplers.sgld(1e-3), n_steps=1, n_chains=10**6, seed=0, progress=False, **init)
        seconds.append(time.perf_counter() - started)
    print(f"10⁶ chains, one step: {seconds[0]:.2f} s by default, {seconds[1]:.2f} s from the origin (wanted: 1 s more)")


if __name__ == "__main__":
    main()
