"""One process that loads hostile files: says each before it is loaded, and what came of it.

Argument: a JSON file of the folder, the room in bytes, and the files, each [number, kind, path]. A file that takes
longer than ``LIMIT`` ends the process, as does one that crashes it.
"""

import faulthandler
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

LIMIT = 5.0  # seconds for one file
LONGEST = 2000  # characters of a refusal


def memory(field: str) -> int:
    """Bytes of this process, of a field of its status."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    return 0


def forget_peak() -> None:
    """Let the peak of memory begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def attempt(kind: str, path: Path) -> str:
    """What came of loading a file: "refused", or what is wrong."""
    from tests.hostile.files.attack import STEPS, base_call
    from toolkit import CheckpointError, LoadError, load, sample

    problem, sampler, options = base_call()
    try:
        if kind == "load":
            load(path)
        else:
            sample(
                problem,
                sampler,
                **{**options, "n_steps": STEPS["n_steps"] + 40},
                checkpoint=path,
                checkpoint_every=1e-6,
            )
    except (LoadError, FileNotFoundError, CheckpointError) as error:
        return judged(str(error), path)
    except ValueError as error:  # of an argument, said before anything is read
        return judged(str(error), path) if kind == "checkpoint" else f"ValueError: {str(error)[:200]}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "taken"


def judged(said: str, path: Path) -> str:
    """Whether a refusal names the path and is short."""
    if path.name not in said and Path(os.path.realpath(path)).name not in said:
        return f"does not name the path: {said[:200]}"
    return "refused" if len(said) <= LONGEST else f"takes {len(said)} characters"


def main(plan: str) -> None:
    """Load every file of the plan."""
    asked = json.loads(Path(plan).read_text(encoding="utf-8"))
    folder = Path(asked["folder"])
    warnings.simplefilter("ignore")
    from tests.hostile.files.attack import base
    from toolkit import load

    for suffix in asked["formats"]:
        load(base(folder / "x", suffix))
        load(base(folder / "x", suffix, "larger"))
    if any(kind == "checkpoint" for _, kind, _ in asked["files"]):  # which compiles it
        from tests.hostile.files.attack import base_call
        from toolkit import sample

        problem, sampler, options = base_call()
        sample(problem, sampler, **options)
    room = memory("VmSize") + asked["room"]
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
    with (
        (folder / "said").open("a", encoding="utf-8") as said,
        (folder / "traces").open("a", encoding="utf-8") as traces,
    ):
        for number, kind, path in asked["files"]:
            print(json.dumps({"begun": number}), file=said, flush=True)
            forget_peak()
            before, started = memory("VmRSS"), time.perf_counter()
            faulthandler.dump_traceback_later(LIMIT, exit=True, file=traces)
            came = attempt(kind, Path(path))
            faulthandler.cancel_dump_traceback_later()
            took = time.perf_counter() - started
            ended = {"ended": number, "came": came, "took": took, "memory": memory("VmHWM") - before}
            print(json.dumps(ended), file=said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
