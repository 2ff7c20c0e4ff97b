"""Why a run's kernel does not compile for CUDA, in words; and why its bits may not be those of a CPU."""

import re
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

from ..._compiler import signatures as s
from ...errors import CudaWarning, package_root
from ...problem.point_function import reason
from ..settings import Parts
from ..state import TEMPER, Numbers
from . import compiling
from .compiling import Code, contracts
from .kernel import Kinds, Shape, argument_types, compiled_chain_kernel

if TYPE_CHECKING:
    from ..job import Job

PLACES = re.compile(r'File "([^"\n]+)", line (\d+)|\bat ([^"\n]+?) \((\d+)\)')
NOT_THE_USERS = (package_root(__name__), Path(numba.__file__).resolve().parent)
NAMES = {"pow": "pow (**)", "powi": "pow (**)", "tgamma": "gamma", "fmax": "max", "fmin": "min"}


def chain_kernel_of(job: "Job", parts: Parts, shape: Shape, numbers: Numbers, kinds: Kinds) -> Any:
    """``compiled_chain_kernel``, of which it is known whose fault it is where it does not compile.

    Raises TypeError that names the part, the line and what CUDA lacks; warns with CudaWarning where bits may differ
    from a CPU's.
    """
    try:
        kernel = compiled_chain_kernel(parts, shape, numbers, kinds)
    except compiling.REFUSALS as error:
        raise TypeError(cause(job, parts, shape, error)) from error
    code = compiling.code_of(kernel, argument_types(kinds))
    if code is not None:
        warn_of_bits(job, code)
    return kernel


def cause(job: "Job", parts: Parts, shape: Shape, error: Exception) -> str:
    """What is to blame: the first part that does not compile by itself, else the whole."""
    problem, sampler = job.problem, job.sampler
    target = s.TARGET.args if shape.scratch_is_local else (*s.TARGET.args[:4], compiling.strided(2))
    temper = type(sampler.tempering).__name__
    alone = {
        f"target {problem.target.name!r}": (parts.target, target),
        f"domain {'' if problem.domain is None else problem.domain.name!r}": (parts.look, s.DOMAIN.args),
        f"dynamics {sampler.dynamics.name!r}": (parts.move, s.DYNAMICS.args),
        f"tempering {temper}": (parts.temper, TEMPER.args),
    }
    for name, (part, signature) in alone.items():
        refusal = compiling.why_not(part, signature)
        if refusal is not None:
            return f"backend must be 'cpu' for {name}, of which CUDA lacks something: {words(refusal)}"
    return f"backend must be 'cpu' for {problem.name!r} by {sampler.name!r}, whose kernel CUDA refuses: {words(error)}"


def words(error: Exception) -> str:
    """What of Numba's message says what is missing, and in which line of whose file."""
    text = str(error)
    found = [(a or c, b or d) for a, b, c, d in PLACES.findall(text)] + list(places_of(error))
    place = next((place for place in found if is_users(place[0])), None)
    said = re.sub(r", in line \d+ of [^,]*$", "", reason(error))
    if "NRT required" in text:
        said = "arrays, lists and dictionaries made anew, for which a thread has no memory"
    return said if place is None else f"{said}, in line {place[1]} of {Path(place[0]).name}"


def places_of(error: Exception) -> Iterator[tuple[str, str]]:
    """Files and lines that Numba was at, the innermost first, where its message does not tell them."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        place: Any = getattr(frame.f_locals.get("self"), "loc", None)
        if hasattr(place, "filename"):
            yield str(place.filename), str(place.line)


def is_users(path: str) -> bool:
    """Whether a file is neither of this package nor of Numba."""
    return not any(Path(path).resolve().is_relative_to(folder) for folder in NOT_THE_USERS) and "numba" not in path


def warn_of_bits(job: "Job", code: Code) -> None:
    """Warn where what the compiler wrote may give other bits than a CPU."""
    causes = []
    if contracts(code.ptx):
        causes.append("the compiler has fused products and sums")
    if code.functions:
        names = sorted({NAMES.get(name, name) for name in code.functions})
        causes.append(f"it calls {', '.join(names)}, which CUDA has of its own")
    if causes:
        warnings.warn(
            f"draws of {job.problem.name!r} by {job.sampler.name!r} on a device may differ from a CPU's in their last "
            f"bits, as {' and '.join(causes)}; both are draws of the same law",
            CudaWarning,
            stacklevel=2,
        )
