"""Explain why a run's kernel does not compile for CUDA, and warn where its results may differ from a CPU's."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

from ..._compiler import signatures as s
from ...errors import CudaWarning, package_root, warn_user
from ...problem.point_function import reason
from ..state import TEMPER, Numbers, Parts
from . import compiling
from .compiling import Code, contracts
from .kernel import Kinds, Shape, argument_types, compiled_chain_kernel

if TYPE_CHECKING:
    from ..job import Job

LOCATIONS = re.compile(r'File "([^"\n]+)", line (\d+)|\bat ([^"\n]+?) \((\d+)\)')
NOT_THE_USERS = (package_root(__name__), Path(numba.__file__).resolve().parent)
NAMES = {"pow": "pow (**)", "powi": "pow (**)", "tgamma": "gamma", "fmax": "max", "fmin": "min"}


def chain_kernel_of(job: "Job", parts: Parts, shape: Shape, numbers: Numbers, kinds: Kinds) -> Any:
    """``compiled_chain_kernel``, with an explanation where it does not compile.

    Raises TypeError that names the part, the line and what CUDA lacks; warns with CudaWarning where bits may differ
    from a CPU's.
    """
    try:
        kernel = compiled_chain_kernel(parts, shape, numbers, kinds)
    except compiling.REFUSALS as error:
        raise TypeError(explanation(job, parts, shape, error)) from error
    code = compiling.code_of(kernel, argument_types(kinds))
    if code is not None:
        warn_of_bits(job, code)
    return kernel


def explanation(job: "Job", parts: Parts, shape: Shape, error: Exception) -> str:
    """The error message: names the first part that does not compile by itself, else the whole kernel."""
    problem, sampler = job.problem, job.sampler
    target = s.TARGET.args if shape.scratch_is_local else (*s.TARGET.args[:4], compiling.strided(2))
    temper = type(sampler.tempering).__name__
    parts_by_name = {
        f"target {problem.target.name!r}": (parts.target, target),
        f"domain {'' if problem.domain is None else problem.domain.name!r}": (parts.locate, s.DOMAIN.args),
        f"dynamics {sampler.dynamics.name!r}": (parts.move, s.DYNAMICS.args),
        f"tempering {temper}": (parts.temper, TEMPER.args),
    }
    for name, (part, signature) in parts_by_name.items():
        part_error = compiling.compile_error(part, signature)
        if part_error is not None:
            return f"backend must be 'cpu' for {name}, of which CUDA lacks something: {words(part_error)}"
    return f"backend must be 'cpu' for {problem.name!r} by {sampler.name!r}, whose kernel CUDA refuses: {words(error)}"


def words(error: Exception) -> str:
    """The part of Numba's message that says what is missing, with the user's file and line."""
    text = str(error)
    locations = [(a or c, b or d) for a, b, c, d in LOCATIONS.findall(text)] + list(locations_in(error))
    location = next((location for location in locations if is_users(location[0])), None)
    message = re.sub(r", in line \d+ of [^,]*$", "", reason(error))
    if "NRT required" in text:
        message = "arrays, lists and dictionaries made anew, for which a thread has no memory"
    return message if location is None else f"{message}, in line {location[1]} of {Path(location[0]).name}"


def locations_in(error: Exception) -> Iterator[tuple[str, str]]:
    """Files and lines that Numba was compiling, innermost first, read from its stack frames."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        location: Any = getattr(frame.f_locals.get("self"), "loc", None)
        if hasattr(location, "filename"):
            yield str(location.filename), str(location.line)


def is_users(path: str) -> bool:
    """Whether a file is neither of this package nor of Numba."""
    return not any(Path(path).resolve().is_relative_to(folder) for folder in NOT_THE_USERS) and "numba" not in path


def warn_of_bits(job: "Job", code: Code) -> None:
    """Warn where the compiled code may give other bits than a CPU."""
    reasons = []
    if contracts(code.ptx):
        reasons.append("the compiler has fused products and sums")
    if code.functions:
        names = sorted({NAMES.get(name, name) for name in code.functions})
        reasons.append(f"it calls {', '.join(names)}, which CUDA has of its own")
    if reasons:
        warn_user(
            f"draws of {job.problem.name!r} by {job.sampler.name!r} on a device may differ from a CPU's in their last "
            f"bits, as {' and '.join(reasons)}; both are draws of the same law",
            CudaWarning,
        )
