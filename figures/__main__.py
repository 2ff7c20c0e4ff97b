"""Figures and tables of the papers: `python -m figures [list | run [NAME …] | report]`; nothing: run all, then report.

Scripts run side by side, as many as there are cores, each in a process with its share of them (--jobs), from two halves
of the list in turns; those that show seconds run alone, at the end, small versions excepted. A script that fails does
not stop the others: the end names it and its error, and the exit status is 1. Data that are still valid are read back,
so that a change of a picture measures nothing anew.
QUICK=1 in the environment, or --quick: small versions.
"""

import argparse
import functools
import sys
import traceback
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from tqdm import tqdm

from targets import mixtures
from toolkit import CudaError, samplers, stream

from .scripts.cached_data import read
from .scripts.output import QUICK, folder_of
from .scripts.runner import names, produce_in_words, script
from .scripts.side_by_side import Outcome, default_jobs, outcome_of, run_side_by_side

EXPECTED = 20.0  # seconds of a script that has not been run here


def parser() -> argparse.ArgumentParser:
    """The command line."""
    cli = argparse.ArgumentParser(prog="python -m figures", description=__doc__.partition("\n")[0])
    commands = cli.add_subparsers(dest="command")
    commands.add_parser("list", help="every script and what it shows")
    run = commands.add_parser("run", help="produce figures, all where no name is given, without a report")
    run.add_argument("names", nargs="*", metavar="NAME", help="as `list` gives them")
    run.add_argument("--seed", type=int, help="in place of the scripts' own")
    run.add_argument("--backend", default="cpu", choices=("cpu", "cuda"), help="cpu (default) or cuda")
    run.add_argument("--jobs", type=jobs_of, metavar="N", help="scripts at a time; default: a core each, on cuda 1")
    run.add_argument("--fresh", action="store_true", help="measure again what could be read back")
    report = commands.add_parser("report", help="one page of all figures that have been produced")
    report.add_argument("--numbers", type=Path, metavar="FILE", help="also write the tables of numbers into this file")
    for command in (run, report):
        command.add_argument("--out", type=Path, help="folder for the files; default figures/out")
        command.add_argument(
            "--quick", action="store_true", default=QUICK, help="small versions; with no --out in quick/"
        )
    return cli


def jobs_of(text: str) -> int:
    """A number of scripts at a time."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")
    return int(text)


def run_all(chosen: Sequence[str], options: argparse.Namespace) -> dict[str, str]:
    """Produce the figures; the errors of those that failed, in a line each, by their names."""
    failed: dict[str, str] = {}
    jobs = min(options.jobs or (1 if options.backend == "cuda" else default_jobs()), len(chosen))
    alone = [name for name in chosen if runs_alone(name)] if jobs > 1 and not options.quick else []
    shared = [name for name in chosen if name not in alone]
    shared = in_two_streams(shared) if jobs > 1 else shared
    place = {name: f"{k + 1} of {len(chosen)}" for k, name in enumerate([*shared, *alone])}
    expected = {name: seconds_before(name, options) for name in chosen}
    work = functools.partial(  # of a module that a child process can import, which this one is not where it is run
        produce_in_words, out=options.out, quick=options.quick, seed=options.seed, backend=options.backend,
        fresh=options.fresh,
    )  # fmt: skip
    shape = "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left"
    with tqdm(total=sum(expected.values()), bar_format=shape, disable=None, file=sys.stderr) as bar:

        def say(text: str) -> None:
            bar.write(text.rstrip("\n"), file=sys.stdout)
            sys.stdout.flush()

        def begins(name: str) -> None:
            bar.set_description_str(name)
            say(f"{place[name]}: {name}")

        def ends(name: str, outcome: Outcome) -> None:
            if outcome.error:
                failed[name] = outcome.error
            say(f"{outcome.printed}{outcome.text}")
            bar.update(expected[name])

        if jobs > 1:
            run_side_by_side(work, shared, alone, jobs, begins, ends)
        else:
            for name in shared:
                begins(name)
                ends(name, outcome_of(work, name))
    return failed


def in_two_streams(chosen: Sequence[str]) -> list[str]:
    """Of two halves of the list in turns, as scripts of one paper would compile the same beside each other.

    Galleries begin the second half: they need least of what the first script compiles.
    """
    papers = [name for name in chosen if not name.startswith("gallery_")]
    galleries = [name for name in chosen if name not in papers]
    middle = (len(chosen) + 1) // 2
    pairs = zip_longest(papers[:middle], galleries + papers[middle:])
    return [name for pair in pairs for name in pair if name is not None]


def runs_alone(name: str) -> bool:
    """Whether no other script may run beside it; one that cannot be imported fails when its turn comes."""
    try:
        return script(name).runs_alone
    except Exception:
        return False


def report_on(folder: Path, numbers_in: Path | None = None) -> dict[str, str]:
    """Write the report and say where it is; where that failed, the error of "report"."""
    from .report import write_report

    try:
        print(*write_report(folder, numbers_in), sep="\n")
    except Exception as error:
        print(error if isinstance(error, FileNotFoundError) else traceback.format_exc(), file=sys.stderr)
        return {"report": f"{type(error).__name__}: {error}"}
    return {}


def seconds_before(name: str, options: argparse.Namespace) -> float:
    """Seconds a script took the last time, by which the bar reckons the time left."""
    found = read(folder_of(options.out, options.quick) / "data" / f"{name}.npz")
    return found[1].seconds if found else EXPECTED


def gpu_refusal() -> str | None:
    """Why no figure can be measured on a GPU; None where they can be."""
    try:
        stream(
            mixtures.unequal_pair(), samplers.sgld(0.1), n_steps=1, seed=0, backend="cuda"
        )  # checks, and runs nothing
    except (ImportError, CudaError) as error:
        return str(error)
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status."""
    cli = parser()
    options = cli.parse_args(arguments)
    if options.command is None:
        options = cli.parse_args(["run"])
        options.command = "all"
    if options.command == "list":
        width = max(map(len, names()))
        print(*(f"{name:<{width}}  {script(name).title}" for name in names()), sep="\n")
        return 0
    failed: dict[str, str] = {}
    try:
        if options.command in ("run", "all"):
            unknown = sorted(set(options.names) - set(names()))
            if unknown:
                cli.error(f"there is no figure {', '.join(unknown)}; `python -m figures list` names those there are")
            if options.backend == "cuda" and (refusal := gpu_refusal()):
                cli.error(refusal)
            chosen = list(dict.fromkeys(options.names)) or names()
            failed = run_all(chosen, options)
            print(
                f"{len(chosen) - len(failed)} of {len(chosen)} figures are in {folder_of(options.out, options.quick)}"
            )
        if options.command in ("report", "all"):
            failed |= report_on(folder_of(options.out, options.quick), getattr(options, "numbers", None))
    except KeyboardInterrupt:
        print("interrupted: figures that were finished are kept, and are not measured again", file=sys.stderr)
        return 130
    if failed:
        print(*(f"{name}: {error}" for name, error in failed.items()), sep="\n", file=sys.stderr)
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
