"""Golden hashes of short runs: every constructor × target × number of chains × engine, to see that no bit changes.

``python -m benchmarks evidence golden --write FILE`` writes one line a run (name, hash of all that the run computed);
``--compare FILE`` runs the same again and prints each line that differs, and exits with 1 where there is one.
``--fused`` runs the fused engine too (some 10 s each to compile, once). Names, as arguments, pick the lines that
contain one of them. Starts are given, so defaults do not matter.
"""

import argparse
import hashlib
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sysid
from targets import constrained, mixtures, posteriors, shapes
from toolkit import DivergenceError, Layout, Sampler, boundaries, sample, samplers, tempering
from toolkit.accumulators import best_point, moments
from toolkit.problem.definition import as_problem

H, STEPS, CHAINS = 1e-3, 60, (1, 7, 70)
BINS = tempering.Partition(-4.0, 0.5, 32)
NARROW, WIDE = (H, 2 * H), (1.0, 3.0)
TAKES_MINIBATCHES, EXACT = ("sgld", "psgld", "sghmc", "sgnht", "cyclical_sgld"), ("r2sgld", "tact_hmc", "mala", "hmc")
FIXED_LENGTH = {"random_length": False} if "random_length" in inspect.signature(samplers.hmc).parameters else {}


def constructors(boundary: Any, exact: Any) -> dict[str, Sampler]:
    """Every constructor by name; those with a Metropolis test have the boundary ``exact``."""
    edge = {"boundary": boundary}
    return {
        "sgld": samplers.sgld(H, gradient_noise=0.1, **edge),
        "psgld": samplers.psgld(H, floor=1.0, **edge),
        "sghmc": samplers.sghmc(H, **edge),
        "sgnht": samplers.sgnht(H, **edge),
        "sgnht by coordinate": samplers.sgnht(H, by_coordinate=True, **edge),
        "cyclical_sgld": samplers.cyclical_sgld(H, **edge),
        "cyclical_sghmc": samplers.cyclical_sghmc(H, **edge),
        "csgld": samplers.csgld(H, partition=BINS, energy_noise=0.1, **edge),
        "icsgld": samplers.icsgld(H, partition=BINS, n_replicas=3, **edge),
        "icsghmc": samplers.icsghmc(H, partition=BINS, n_replicas=3, **edge),
        "resgld": samplers.resgld(NARROW, temperatures=WIDE, **edge),
        "resgld of five": samplers.resgld((H,) * 5, temperatures=(1.0, 2.0, 3.0, 4.0, 5.0), scheme="seo", **edge),
        "r2sgld": samplers.r2sgld(NARROW, temperatures=WIDE, energy_noise=0.1, **edge),
        "r2sghmc": samplers.r2sghmc(NARROW, temperatures=WIDE, **edge),
        "tact_hmc": samplers.tact_hmc(H, **edge),
        "svgd": samplers.svgd(n_replicas=8),
        "mala": samplers.mala(H, boundary=exact),
        "hmc": samplers.hmc(0.03, n_leapfrogs=4, boundary=exact, **FIXED_LENGTH),
    }


def cases() -> Iterator[tuple[str, Any, Sampler]]:
    """Name, problem and sampler of every run."""
    grid, flower = mixtures.gaussian_grid25(), constrained(mixtures.cosine25(), shapes.flower())
    rng = np.random.default_rng(1)
    data = rng.standard_normal((40, 3)), np.arange(40) % 2
    system = sysid.systems.lotka_volterra()
    series = sysid.data.simulate(system, np.arange(0.0, 6.0, 0.5), errors="lognormal", noise=0.1, seed=2)
    problems = {
        "plain": grid,
        "minibatches": posteriors.logistic_regression(*data, batch_size=4),
        "identification": sysid.identify(series, system),
    }
    for where, problem in problems.items():
        for name, sampler in constructors(boundaries.ignore(), boundaries.ignore()).items():
            if where == "plain" or name in TAKES_MINIBATCHES or (where != "minibatches" and name in EXACT):
                yield f"{where}: {name}", problem, sampler
    for name, sampler in constructors(boundaries.reflect(), boundaries.reject()).items():
        if name != "svgd":
            yield f"flower: {name}", flower, sampler


def hash_of(problem: Any, sampler: Sampler, n_chains: int, fused: bool) -> str:
    """Hash of draws, weights, energies, counts, trace and what was accumulated, until it diverged where it did."""
    problem = as_problem(problem)
    shape = (n_chains, sampler.n_replicas, problem.target.dim)
    start = np.random.default_rng(2).uniform(-0.2, 0.2, shape)
    if isinstance(problem, sysid.Identification):
        start = problem.starts(n_chains * sampler.n_replicas, seed=2).reshape(shape)
    digest = hashlib.sha256()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = sample(
                problem, sampler, n_steps=STEPS, burn_in=STEPS // 3, n_chains=n_chains, init=start, seed=7,
                keep_replicas=True, keep_energies=True, trace_every=7, layout=Layout(fused=fused),
                accumulators={"moments": moments(), "best": best_point()},
            )  # fmt: skip
        except DivergenceError as error:
            run = error.run
    for name, values in sorted(arrays_of(run).items()):
        digest.update(f"{name}{values.dtype}{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:20]


def arrays_of(run: Any) -> dict[str, Any]:
    """All arrays that a run holds, by name, from its public fields alone."""
    found = {"draws": run.replica_draws, "energies": run.energies, "weights": run.replica_weights}
    found |= {} if run.statistics is None else run.statistics._asdict()
    found |= run.trace.fields | {"theta": run.trace.theta}
    found |= {name: getattr(run, name) for name in ("swaps", "round_trips", "corrections", "reflections")}
    for name, result in run.accumulated.items():
        found |= {f"{name}.{field}": values for field, values in result._asdict().items()}
    return {name: np.asarray(values) for name, values in found.items() if values is not None}


def lines(wanted: list[str], fused: bool) -> Iterator[tuple[str, str]]:
    """Name and hash of every run that is wanted."""
    for name, problem, sampler in cases():
        for n_chains in CHAINS:
            for engine in ("general", "fused") if fused else ("general",):
                line = f"{name}, {n_chains} chains, {engine}"
                if not wanted or any(word in line for word in wanted):
                    yield line, hash_of(problem, sampler, n_chains, engine == "fused")


def main(arguments: list[str]) -> int:
    """Write or compare; the exit status, 1 where a line differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks evidence golden", description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("wanted", nargs="*")
    given = parser.parse_args(arguments)
    found = dict(lines(given.wanted, given.fused))
    text = "".join(f"{value}  {name}\n" for name, value in found.items())
    if given.compare is None:
        given.write.write_text(text) if given.write else print(text, end="")
        return 0
    before = {line.split("  ", 1)[1]: line.split("  ", 1)[0] for line in given.compare.read_text().splitlines()}
    differ = [name for name, value in found.items() if before.get(name) != value]
    for name in differ:
        print(f"{name}: {before.get(name, 'not there')} → {found[name]}")
    print(f"{len(found)} runs, {len(differ)} differ")
    return int(bool(differ))
