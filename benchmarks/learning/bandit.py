"""The mushroom bandit of ICSGLD (2022), figure 4, at full length: cumulative regret of seven agents over many seeds.

Two runs at a time, 3 to 6 minutes each on a core; finished ones are kept in a folder, so that a command that is broken
off goes on. The table holds all that are there: means over seeds and their standard errors.
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner.tables import Table
from figures.papers.icsgld.bandit import AGENTS, Mushrooms, mushrooms, regrets
from figures.papers.icsgld.fig4 import draw
from figures.plots.style import paper_style

AT = (51, 100, 200, 500, 1000, 2000)  # turns
COLUMNS = ("inputs", "agent", "seeds", *(f"{name} {turn}" for turn in AT for name in ("regret at", "±")))


def path_of(folder: Path, inputs: int, agent: str, n_turns: int, seed: int) -> Path:
    """The file of one run."""
    return folder / f"{inputs} {agent.replace('×', 'x').replace(',', '')} {n_turns} {seed}.npy"


def run(folder: Path, data: Mushrooms, agent: str, n_turns: int, seed: int) -> None:
    """One run, if it has not been made."""
    path = path_of(folder, data.features.shape[1], agent, n_turns, seed)
    if not path.exists():
        found = np.array(list(regrets(AGENTS[agent], data, n_turns, seed)))
        writing = path.with_suffix(f".{os.getpid()}")
        with open(writing, "wb") as file:
            np.save(file, found)
        os.replace(writing, path)
        print(f"{path.stem}: {found[-1]:.0f}", flush=True)


def curves_of(folder: Path, inputs: int, agent: str, n_turns: int, n_seeds: int) -> Any:
    """Regret after each turn of the runs that are there, (seed, turn)."""
    paths = [path_of(folder, inputs, agent, n_turns, seed) for seed in range(n_seeds)]
    return np.array([np.load(path) for path in paths if path.exists()])


def rows(folder: Path, inputs: int, n_turns: int, n_seeds: int) -> Iterator[tuple[object, ...]]:
    """A row of the table for every agent of which a run is there."""
    for agent in AGENTS:
        curves = curves_of(folder, inputs, agent, n_turns, n_seeds)
        if len(curves):
            at = curves[:, [turn - 1 for turn in AT if turn <= n_turns]]
            error = at.std(axis=0, ddof=1) / len(at) ** 0.5 if len(at) > 1 else np.full(at.shape[1], np.nan)
            yield inputs, agent, len(curves), *np.stack([at.mean(axis=0), error], axis=1).ravel().tolist()


def main(arguments: list[str]) -> None:
    """Make the runs that are missing, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks learning bandit", description=__doc__)
    parser.add_argument("--inputs", type=int, nargs="*", default=[22, 117], choices=[22, 117])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/out/bandit"), help="of finished runs")
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--only-table", action="store_true", help="of the runs that are there")
    parser.add_argument("--picture", type=Path, help="a file for the picture of the first inputs, as of icsgld_fig4")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    if not given.only_table:
        data = {inputs: mushrooms(inputs) for inputs in given.inputs}
        with ThreadPoolExecutor(given.threads) as pool:
            jobs = [
                pool.submit(run, given.folder, data[inputs], agent, given.turns, seed)
                for inputs, seed, agent in product(given.inputs, range(given.seeds), AGENTS)
            ]
            for job in jobs:
                job.result()
    table = Table(given.out, "bandit", *COLUMNS[: 3 + 2 * sum(turn <= given.turns for turn in AT)])
    for inputs in given.inputs:
        for row in rows(given.folder, inputs, given.turns, given.seeds):
            table.row(*row)
    if given.picture is not None:
        curves = {agent: curves_of(given.folder, given.inputs[0], agent, given.turns, given.seeds) for agent in AGENTS}
        with paper_style():
            draw({agent: found for agent, found in curves.items() if len(found)}).savefig(given.picture)
