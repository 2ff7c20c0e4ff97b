"""``python -m benchmarks cuda [STAGE …] [--small] [--tiny] [--dry] [--cases …] [--chains …] [--kept …] [--out …] …``.

Nothing is measured where there is no device. Each stage takes less than ten minutes unless ``--minutes`` says more.
"""

import argparse
import importlib
import time
from pathlib import Path

from benchmarks.runner.suites import CUDA, STAGE, first_line
from toolkit._engine.cuda import device

from .cases import MAKERS
from .measure import WHAT, Plan

STAGES = {name: table.module for name, table in CUDA.items() if table.kind == STAGE}


def at_least_1(text: str) -> int:
    """A number of the command line. Raises ArgumentTypeError below 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks cuda",
        description="\n".join([__doc__ or "", *map(first_line, STAGES.values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; none: all, so")
    parser.add_argument("--cases", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--chains", nargs="+", type=at_least_1, help="so many instead of 10³ to 10⁷")
    parser.add_argument("--kept", nargs="+", choices=WHAT, default=list(WHAT))
    parser.add_argument("--rounds", type=at_least_1, help="so many instead of 5")
    parser.add_argument("--small", action="store_true", help="10³ to 10⁵ chains, 3 rounds")
    parser.add_argument("--tiny", action="store_true", help="few chains and steps, on the device")
    parser.add_argument("--dry", action="store_true", help="the same without a device, to try the script itself")
    parser.add_argument("--out", type=Path, help="a folder for the tables, as Markdown and CSV")
    parser.add_argument("--minutes", type=float, default=8.0, help="begin no row after so many")
    given = parser.parse_args(arguments)
    if unknown := set(given.stages) - set(STAGES):
        parser.error(f"stages must be of {', '.join(STAGES)}, got {sorted(unknown)}")
    return given


def plan_of(given: argparse.Namespace) -> Plan:
    """How much is measured."""
    usual = (10**3, 10**4, 10**5, 10**6, 10**7)[: 3 if given.small else 5]
    tiny = given.dry or given.tiny or device.SIMULATED
    return Plan(
        names=tuple(given.cases),
        sizes=(2, 3) if tiny else tuple(given.chains or usual),
        kept=tuple(given.kept),
        rounds=1 if tiny else given.rounds or (3 if given.small else 5),
        seconds=0.1 if given.small else 0.3,
        deadline=time.monotonic() + 60.0 * given.minutes,
        folder=given.out,
        is_dry=tiny,
    )


def main(arguments: list[str]) -> None:
    """Run the stages, or say that there is no device."""
    given = parsed(arguments)
    try:
        device.check_available()
    except device.CudaError as error:
        if not (given.dry and given.stages == ["floors"]):  # which needs no device
            print(f"nothing measured: {error}")
            return
    plan = plan_of(given)
    for stage in given.stages or STAGES:
        module = importlib.import_module(f"benchmarks.{STAGES[stage]}")
        print(f"\n### {first_line(STAGES[stage])}\n", flush=True)
        module.main(plan)
