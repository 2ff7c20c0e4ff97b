"""A run in another Python process: a fresh interpreter, started for it alone, that reads what to run from a pipe.

What goes through the pipe is pickled, with Numba's cloudpickle, as functions written in a script or a notebook can go
no other way. No file is involved, and nothing that came from outside: this process writes to its own child, which runs
what this process was about to run anyway. The child's answer is arrays alone, and is read with pickles refused.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba import cloudpickle
from numpy.typing import NDArray

from ..problem.definition import Domain, Problem, Target
from ..problem.python_callable import from_callable
from ..samplers.sampler import Sampler
from ..sampling import sample

Arrays = dict[str, NDArray[Any]]

LIMIT = 300.0  # seconds
ENTRANCE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {module} import answer; answer()"


class NotSentError(RuntimeError):
    """A run cannot be made in another process; says why."""


Order = tuple[Problem, Sampler, dict[str, Any]]  # what ``sample`` is to be given


def run_elsewhere(orders: list[Order], arrays_of: Callable[[Any], Arrays]) -> list[Arrays]:
    """``arrays_of(sample(…))`` of every order, from one other process, with hashes seeded otherwise.

    Raises NotSentError where something cannot be sent, or the process fails or takes more than five minutes.
    """
    try:
        parcel = cloudpickle.dumps(([(packed(order[0]), *order[1:]) for order in orders], arrays_of))
    except Exception as error:  # whatever a user's object raises when it is pickled
        names = ", ".join(repr(order[0].name) for order in orders)
        raise NotSentError(f"{names} or its sampler cannot be sent to another process ({error})") from error
    command = [sys.executable, "-c", ENTRANCE.format(module=__name__), json.dumps(sys.path)]
    environment = {**os.environ, "PYTHONHASHSEED": "20111"}
    try:
        done = subprocess.run(command, input=parcel, capture_output=True, env=environment, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotSentError(f"the other process did not come to its end ({error})") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing said"]
        raise NotSentError(f"the other process ended with status {done.returncode}: {said[-1]}")
    found: list[Arrays] = [{} for _ in orders]
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as arrays:
        for key, values in arrays.items():
            which, _, name = key.partition(" ")
            found[int(which)][name] = values
    return found


class Packed(NamedTuple):
    """A problem on its way: without its truth, which may be large, and with functions in place of compiled ones."""

    target: Target | tuple[Any, ...]  # or the arguments of ``from_callable``
    domain: tuple[Any, ...] | None  # its fields, with the function behind ``look``


def packed(problem: Problem) -> Packed:
    """``problem`` as it can be sent."""
    callback, domain = problem.target.callback, problem.domain
    target = replace(problem.target, truth=None) if callback is None else callback.recipe
    if domain is not None:
        domain = domain._replace(look=getattr(domain.look, "py_func", domain.look))
    return Packed(target, None if domain is None else tuple(domain))


def unpacked(parcel: Packed) -> Problem:
    """The problem that was sent, its functions compiled here."""
    if isinstance(parcel.target, Target):
        target = parcel.target
    else:
        function, dim, name = parcel.target
        target = from_callable(function, dim=dim, name=name)
    if parcel.domain is None:
        return Problem(target)
    return Problem(target, Domain(*parcel.domain).compiled())


def answer() -> None:
    """What the other process does: read, run, write the arrays to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a user's function prints must not come between
    orders, arrays_of = cloudpickle.loads(sys.stdin.buffer.read())
    found: Arrays = {}
    for i, (parcel, sampler, arguments) in enumerate(orders):
        run = sample(unpacked(parcel), sampler, **arguments)
        found |= {f"{i} {name}": values for name, values in arrays_of(run).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **found)  # type: ignore[arg-type]
    out.write(buffer.getvalue())
    out.close()
