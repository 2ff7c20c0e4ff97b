"""``python -m toolkit verify my_model.py``: check bits and laws of a user's problem and sampler."""

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import cloudpickle

from .verification.report import verify

NAME = "verified_script"  # the user's file as a module; its functions are pickled by value


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns 0 if the report has passed, else 1. A missing file or name exits with 2."""
    parser = argparse.ArgumentParser(prog="python -m toolkit", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("verify", help="check bits, laws and gradient of a problem and a sampler")
    command.add_argument("script", type=Path, help="a Python file that makes both; it is run as if imported")
    command.add_argument("--problem", default="problem", help="a Problem or Target in it (default: problem)")
    command.add_argument("--sampler", default="sampler", help="a Sampler in it (default: sampler)")
    command.add_argument("--steps", type=int, help="of runs that judge laws (default: 50,000; 200,000 with contour)")
    command.add_argument("--chains", type=int, help="of those runs (default: 256; 64 with contour)")
    command.add_argument("--seed", type=int, default=0, help="of all runs (default: 0)")
    options = parser.parse_args(arguments)
    if not options.script.is_file():
        parser.error(f"script must be a Python file, got {str(options.script)!r}")
    script = load_script(options.script)
    problem, sampler = (get_object(parser, script, name) for name in (options.problem, options.sampler))
    report = verify(problem, sampler, n_steps=options.steps, n_chains=options.chains, seed=options.seed)
    print(report)
    return 0 if report.passed else 1


def load_script(path: Path) -> ModuleType:
    """Import the file as a module; it can import modules from its folder, as when it is run."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module


def get_object(parser: argparse.ArgumentParser, script: ModuleType, name: str) -> Any:
    """The object ``name`` of ``script``; exits with an error where there is none."""
    if not hasattr(script, name):
        parser.error(f"{script.__file__} has no {name!r}")
    return getattr(script, name)


if __name__ == "__main__":
    sys.exit(main())
