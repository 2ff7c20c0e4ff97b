"""Runs in another Python process: a new interpreter that reads problems and samplers from a pipe.

They are pickled with Numba's cloudpickle, the only way to send functions of a script or notebook. No file and no data
from outside are involved: this process sends to its own child only what it could run itself. The child returns arrays
only, which are read without unpickling.
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

from .._engine.run_options import RunOptions
from .._output.execution import run_sampler
from ..problem.definition import Domain, Problem, Target
from ..problem.python_callable import from_callable
from ..samplers.sampler import Sampler

Arrays = dict[str, NDArray[Any]]

LIMIT = 300.0  # seconds
CHILD_CODE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {module} import run_orders; run_orders()"


class NotSentError(RuntimeError):
    """A run in another process is impossible; the message says why."""


Order = tuple[Problem, Sampler, dict[str, Any]]  # the arguments of ``sample``


def run_in_subprocess(orders: list[Order], arrays_of: Callable[[Any], Arrays]) -> list[Arrays]:
    """``arrays_of(sample(…))`` of every order, all from one other process, with another hash seed.

    Raises NotSentError where something cannot be sent, or the process fails or takes more than five minutes.
    """
    try:
        payload = cloudpickle.dumps(([(to_picklable(order[0]), *order[1:]) for order in orders], arrays_of))
    except Exception as error:  # pickling a user's object can raise anything
        names = ", ".join(repr(order[0].name) for order in orders)
        raise NotSentError(f"{names} or its sampler cannot be sent to another process ({error})") from error
    command = [sys.executable, "-c", CHILD_CODE.format(module=__name__), json.dumps(sys.path)]
    environment = {**os.environ, "PYTHONHASHSEED": "20111"}
    try:
        child = subprocess.run(command, input=payload, capture_output=True, env=environment, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotSentError(f"the other process did not come to its end ({error})") from error
    if child.returncode != 0:
        lines = child.stderr.decode(errors="replace").strip().splitlines() or ["nothing said"]
        raise NotSentError(f"the other process ended with status {child.returncode}: {lines[-1]}")
    results: list[Arrays] = [{} for _ in orders]
    with np.load(io.BytesIO(child.stdout), allow_pickle=False) as arrays:
        for key, values in arrays.items():
            index, _, name = key.partition(" ")
            results[int(index)][name] = values
    return results


class PicklableProblem(NamedTuple):
    """A problem in picklable form: without its truth, which may be large, and with uncompiled functions."""

    target: Target | tuple[Any, ...]  # or the arguments of ``from_callable``
    domain: tuple[Any, ...] | None  # its fields, with the function behind ``locate``


def to_picklable(problem: Problem) -> PicklableProblem:
    """``problem`` in picklable form."""
    callback, domain = problem.target.callback, problem.domain
    target = replace(problem.target, truth=None) if callback is None else callback.recipe
    if domain is not None:
        domain = domain._replace(locate=getattr(domain.locate, "py_func", domain.locate))
    return PicklableProblem(target, None if domain is None else tuple(domain))


def from_picklable(pickled: PicklableProblem) -> Problem:
    """The problem, with its functions compiled in this process."""
    if isinstance(pickled.target, Target):
        target = pickled.target
    else:
        function, options = pickled.target
        target = from_callable(function, **options)
    if pickled.domain is None:
        return Problem(target)
    return Problem(target, Domain(*pickled.domain).compiled())


def run_orders() -> None:
    """The child's main function: read orders, run them, write the arrays to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by a user's function must not mix with the arrays
    orders, arrays_of = cloudpickle.loads(sys.stdin.buffer.read())
    arrays: Arrays = {}
    for i, (pickled, sampler, arguments) in enumerate(orders):
        run = run_sampler(from_picklable(pickled), sampler, RunOptions(**arguments))
        arrays |= {f"{i} {name}": values for name, values in arrays_of(run).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    out.write(buffer.getvalue())
    out.close()
