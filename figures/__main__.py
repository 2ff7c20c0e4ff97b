"""Figures and tables of the papers: `python -m figures [list | run [NAME …] | report]`; nothing: run all, then report.

A script that fails does not stop the others: the end names it, and the exit status is 1. Data that are still valid are
read back, so that a change of a picture measures nothing anew. QUICK=1 in the environment, or --quick: small versions.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from targets import mixtures
from toolkit import CudaError, samplers, stream

from .scripts.cached_data import read
from .scripts.output import QUICK, folder_of
from .scripts.runner import Product, names, produce, script

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
    run.add_argument("--fresh", action="store_true", help="measure again what could be read back")
    for command in (run, commands.add_parser("report", help="one page of all figures that have been produced")):
        command.add_argument("--out", type=Path, help="folder for the files; default figures/out")
        command.add_argument("--quick", action="store_true", default=QUICK, help="small versions, in a folder quick")
    return cli


def run_all(chosen: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Produce the figures one after another; the names of those that failed."""
    failed: list[str] = []
    expected = {name: seconds_before(name, options) for name in chosen}
    shape = "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left"
    with tqdm(total=sum(expected.values()), bar_format=shape, disable=None, file=sys.stderr) as bar:
        for name in chosen:
            bar.set_description_str(name)
            started = time.perf_counter()
            try:
                message = summary_line(produce_one(name, options), time.perf_counter() - started)
            except Exception:
                failed.append(name)
                message = f"{name} failed\n{traceback.format_exc()}"
            bar.write(message, file=sys.stdout)
            sys.stdout.flush()
            bar.update(expected[name])
    return failed


def produce_one(name: str, options: argparse.Namespace) -> Product:
    """Produce one figure, and check that its comparison with the paper runs."""
    product = produce(script(name), out=options.out, quick=options.quick, seed=options.seed, backend=options.backend,
                      fresh=options.fresh)  # fmt: skip
    product.script.compare(product.measured.data)
    return product


def summary_line(product: Product, seconds: float) -> str:
    """The result of a script, in a line."""
    action = "read back and drawn" if product.reused else "measured and drawn"
    kinds = ",".join(path.suffix[1:] for path in product.paths)
    return f"{product.script.name}: {action} in {seconds:.1f} s → {product.paths[0].with_suffix('')}.{{{kinds}}}"


def report_on(folder: Path) -> list[str]:
    """Write the report and say where it is; "report" where that failed."""
    from .report import write_report

    try:
        print(*write_report(folder), sep="\n")
    except Exception as error:
        print(error if isinstance(error, FileNotFoundError) else traceback.format_exc(), file=sys.stderr)
        return ["report"]
    return []


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
    failed: list[str] = []
    if options.command in ("run", "all"):
        unknown = sorted(set(options.names) - set(names()))
        if unknown:
            cli.error(f"there is no figure {', '.join(unknown)}; `python -m figures list` names those there are")
        if options.backend == "cuda" and (refusal := gpu_refusal()):
            cli.error(refusal)
        failed = run_all(options.names or names(), options)
    if options.command in ("report", "all"):
        failed += report_on(folder_of(options.out, options.quick))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
