"""What verify says of the example of docs/guarantees.md, HMC at a wall, and the bias of a step size."""

import re
from pathlib import Path
from typing import Any

import numpy as np

import toolkit
from targets import constrained, domains, mixtures
from toolkit import boundaries, sample, samplers

LAWS = ("mean", "covariance", "mode weights", "cells", "energies", "Stein's identity")
PAGE = Path(toolkit.__file__).resolve().parents[1] / "docs" / "guarantees.md"  # of the tree that is measured


def show(what: str, value: Any, wanted: str) -> None:
    """A line of evidence."""
    print(f"{what}: {value} (wanted {wanted})")


def verdict_of(report: Any) -> str:
    """What a report says in all."""
    made = [check.name for check in report.checks if check.name in LAWS and check.passed is not None]
    return f"passed {report.passed}, {len(made)} of {len(LAWS)} laws judged ({', '.join(made) or 'none'})"


def longest_standstill(run: Any) -> int:
    """The longest stretch of steps, of kept draws, in which a chain stays at one place."""
    longest = 0
    for draws in run.draws:
        ends = np.concatenate([[-1], np.flatnonzero((draws[1:] != draws[:-1]).any(axis=1)), [len(draws) - 1]])
        longest = max(longest, int((np.diff(ends) - 1).max()) * run.thin)
    return longest


def main() -> None:
    """Print what the point of the examination asks for."""
    stuck = toolkit.verify(mixtures.unequal_pair(), samplers.sgld(0.05), n_steps=4_000, n_chains=64)
    show("verify of SGLD that never changes its mode", verdict_of(stuck), "passed False")
    print(f"  {getattr(stuck, 'verdict', 'no sentence on it')}")
    block = re.search(r"\n((?:pair = [^\n]*\n)?report = toolkit\.verify[^\n]*\n)", PAGE.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"toolkit": toolkit, "samplers": samplers, "mixtures": mixtures}
    exec(block.group(1) if block else "", names)
    show("verify of the page of guarantees", verdict_of(names["report"]), "passed True, 6 of 6")
    edge = constrained(mixtures.gaussian_mixture([[0.0, -2.0], [0.0, 2.0]], 0.7), domains.box([-0.7, -6.0], [6.0, 6.0]))
    for kind in ({"random_length": False}, {}):
        try:
            mover = samplers.hmc(0.2, n_leapfrogs=10, boundary=boundaries.reject(), **kind)
        except TypeError:
            continue
        run = sample(edge, mover, n_steps=50_000, n_chains=16, seed=4, progress=False)
        name = "fixed length" if kind else "default"
        wall = run.reflections.sum() / (run.n_chains * run.n_steps)
        moved = float((run.draws[:, 1:] != run.draws[:, :-1]).any(axis=2).mean())
        show(f"HMC at a wall, {name}: longest standstill", longest_standstill(run), "tens of steps, or a warning")
        show("  acceptance", f"{run.acceptance.mean():.3f}", f"{moved:.3f}, the share of moves made; {wall:.3f} back")
        show("  warnings", run.warnings, "one on the chain that stands still, none for longer steps")
    half = sample(
        mixtures.gaussian_mixture([[0.0]], 1.0), samplers.hmc(np.pi / 10.0), n_steps=2_000,
        n_chains=64, init=np.full(1, 2.0), seed=1, progress=False,
    )  # fmt: skip
    show("HMC on N(0, 1), half a period, all chains from 2: variance", f"{half.draws.var():.3f}", "1")
    normal = sample(
        mixtures.gaussian_mixture([[0.0]], 1.0), samplers.sgld(0.5), n_steps=5_000, n_chains=64, seed=1, progress=False
    )
    check = getattr(toolkit, "check_step_size", None)
    print(check(normal) if check else "no check of the step size's bias for a run (wanted sd 1.155 at h, 1.069 at h/2)")


if __name__ == "__main__":
    main()
