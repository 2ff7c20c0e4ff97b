"""The mushroom bandit of ICSGLD (2022), figure 4, at full length: cumulative regret of seven agents over many seeds.

Two runs at a time, 3 to 6 minutes each on a core; finished ones are kept in a folder, so that a command that is broken
off goes on, and those of benchmarks/measured/bandit_runs.csv are not made again. The table holds all that are there:
means over seeds and their standard errors.
"""

import argparse
import csv
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.runner.suites import FOLDER
from benchmarks.runner.tables import Table
from figures.papers.icsgld.bandit import AGENTS, Mushrooms, mushrooms, regrets
from figures.papers.icsgld.fig4 import draw
from figures.plots.style import paper_style

EVERY = 4  # turns between those whose regret is kept
AT = (52, 100, 200, 500, 1000, 2000)  # turns of the table
COLUMNS = ("inputs", "agent", "seeds", *(f"{name} {turn}" for turn in AT for name in ("regret at", "±")))
RUNS_TABLE = "bandit_runs"
KEPT = FOLDER / "measured" / f"{RUNS_TABLE}.csv"


class Key(NamedTuple):
    """One run."""

    inputs: int
    agent: str
    n_turns: int
    seed: int


Runs = dict[Key, Any]  # regret after every EVERY turns, (turn,)


def path_of(folder: Path, key: Key) -> Path:
    """The file of one run."""
    return folder / f"{key.inputs} {key.agent.replace('×', 'x').replace(',', '')} {key.n_turns} {key.seed}.npy"


def run(folder: Path, data: Mushrooms, key: Key) -> None:
    """One run, if it has not been made."""
    path = path_of(folder, key)
    if not path.exists():
        found = np.array(list(regrets(AGENTS[key.agent], data, key.n_turns, key.seed)))
        writing = path.with_suffix(f".{os.getpid()}")
        with open(writing, "wb") as file:
            np.save(file, found)
        os.replace(writing, path)
        print(f"{path.stem}: {found[-1]:.0f}", flush=True)


def kept_runs() -> Runs:
    """The runs of the repository's file."""
    if not KEPT.exists():
        return {}
    with open(KEPT, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {Key(int(i), agent, int(turns), int(seed)): np.array(v, float) for i, agent, turns, seed, *v in rows}


def all_runs(folder: Path, keys: list[Key]) -> Runs:
    """Those of ``keys`` that are there, in the repository's file or in ``folder``."""
    kept = kept_runs()
    found = {}
    for key in keys:
        if key in kept:
            found[key] = kept[key]
        elif path_of(folder, key).exists():
            found[key] = np.load(path_of(folder, key))[EVERY - 1 :: EVERY]
    return found


def curves_of(runs: Runs, inputs: int, agent: str) -> Any:
    """Regret (seed, turn) of one agent."""
    return np.array([curve for key, curve in runs.items() if key[:2] == (inputs, agent)])


def rows(runs: Runs, inputs: int, n_turns: int) -> Iterator[tuple[object, ...]]:
    """A row of the table for every agent of which a run is there."""
    for agent in AGENTS:
        curves = curves_of(runs, inputs, agent)
        if len(curves):
            at = curves[:, [turn // EVERY - 1 for turn in AT if turn <= n_turns]]
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
    parser.add_argument("--out", type=Path, help="a folder for the table, and for that of all runs")
    parser.add_argument("--only-table", action="store_true", help="of the runs that are there")
    parser.add_argument("--picture", type=Path, help="a file for the picture of the first inputs, as of icsgld_fig4")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    keys = [
        Key(inputs, agent, given.turns, seed)
        for inputs, seed, agent in product(given.inputs, range(given.seeds), AGENTS)
    ]
    if not given.only_table:
        data, kept = {inputs: mushrooms(inputs) for inputs in given.inputs}, kept_runs()
        with ThreadPoolExecutor(given.threads) as pool:
            jobs = [pool.submit(run, given.folder, data[key.inputs], key) for key in keys if key not in kept]
            for job in jobs:
                job.result()
    runs = all_runs(given.folder, keys)
    if given.out is not None:
        write_runs(given.out, runs, given.turns)
    table = Table(given.out, "bandit", *COLUMNS[: 3 + 2 * sum(turn <= given.turns for turn in AT)])
    for inputs in given.inputs:
        for row in rows(runs, inputs, given.turns):
            table.row(*row)
    if given.picture is not None:
        curves = {agent: curves_of(runs, given.inputs[0], agent) for agent in AGENTS}
        with paper_style():
            draw({agent: found for agent, found in curves.items() if len(found)}, every=EVERY).savefig(given.picture)


def write_runs(folder: Path, runs: Runs, n_turns: int) -> None:
    """All runs as bandit_runs.csv: regret after every EVERY turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / KEPT.name, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Key._fields, *range(EVERY, n_turns + 1, EVERY)])
        writer.writerows([*key, *(f"{value:.0f}" for value in curve)] for key, curve in runs.items())
