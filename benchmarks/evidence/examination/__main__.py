"""What an examination from outside found wrong: print what every topic's cases give, in this tree or another.

``python -m benchmarks evidence examination [--of FOLDER] [TOPIC …]``: FOLDER is the root of another checkout, whose
packages are measured by the cases of this one, so that one command shows before and after. Each topic runs in a process
of its own, and keeps its compiled code in the cache folder of the tree that it measures.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUN = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2], run_name='cases')['main']()"


def main(arguments: list[str]) -> int:
    """Run the topics; the number of those that ended with an error."""
    topics = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks evidence examination", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--of", type=Path, default=HERE.parents[2], metavar="FOLDER")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(topics)}; none for all")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.topics} - {*topics}):
        parser.error(f"unknown topics {', '.join(unknown)}; there are {', '.join(topics)}")
    root = given.of.resolve()
    if not (root / "toolkit").is_dir():
        parser.error(f"--of must be the root of a checkout, and {root} has no folder toolkit")
    failed = 0
    for topic in given.topics or topics:
        print(f"\n## {topic}\n", flush=True)
        command = [sys.executable, "-c", RUN, str(root), str(HERE / f"{topic}.py")]
        failed += subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
