"""Solve a system for many parameters and starts at once, by fixed or by adaptive steps."""

import concurrent.futures
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit._compiler import CUBE, FLOATS, INTEGERS, MATRIX, available_threads, compile_part
from toolkit.errors import check_array, check_choice, check_count, check_instance, check_number, plain_array, shown

from ..arrays import Array
from ..systems.inputs import Inputs, is_driven
from ..systems.system import System
from .adaptive import (
    ADAPTIVE,
    BLEW_UP,
    DONE,
    N_CLOCK,
    N_COUNTERS,
    STAGES,
    STEP_LIMIT,
    STEP_TOO_SMALL,
    Block,
    Controls,
    InitialValues,
    OneLane,
    Results,
    solve_lanes,
)
from .driven_solution import solve_driven
from .right_hand_side import ADVANCE, COMPLEX_ADVANCE, COMPLEX_MATRIX, FIXED, advance_pointer, slope_pointer
from .solution import STATUS_WORDS, Solution
from .stiff import stiff_solver

__all__ = ["BLEW_UP", "DONE", "STATUS_WORDS", "STEP_LIMIT", "STEP_TOO_SMALL", "Solution", "solve"]


class FixedBlock(NamedTuple):
    """Work arrays of the lanes that step together."""

    x: NDArray[Any]  # (dim, lane), states
    next_x: NDArray[Any]  # (dim, lane), states after the step
    p: NDArray[Any]  # (n_parameters, lane)
    clock: Array  # (3, lane): time, step, scratch


def solve_block(advance, initial, n_steps, limit, results, block):
    """Solve a block of lanes: states (lane, n, dim) of ``results``, left alone where not reached.

    advance: function pointer of type ``right_hand_side.ADVANCE`` or ``COMPLEX_ADVANCE``. n_steps: number of equal steps
    in each interval of the times. block: a FixedBlock, as scratch.
    """
    times, start, x, next_x, p = initial.times, initial.start, block.x, block.next_x, block.p
    states, status, steps = results.states, results.status, results.steps
    lanes, dim = start.shape
    for lane in range(lanes):
        status[lane], results.reached[lane], steps[lane] = DONE, 0, 0
        for j in range(p.shape[0]):
            p[j, lane] = initial.parameters[lane, j]
        for d in range(dim):
            x[d, lane] = start[lane, d]
            states[lane, 0, d] = start[lane, d]
            if not abs(start[lane, d]) <= limit:
                status[lane] = BLEW_UP
    now, step = block.clock[0], block.clock[1]
    for i in range(times.size - 1):
        h = (times[i + 1] - times[i]) / n_steps[i]
        any_active = False
        for lane in range(lanes):
            step[lane] = h
            any_active = any_active or status[lane] == DONE
        if not any_active:
            return
        for s in range(n_steps[i]):
            for lane in range(lanes):
                now[lane] = times[i] + s * h
                steps[lane] += status[lane] == DONE
            advance(now, step, x, p, next_x, block.clock[2])
            for d in range(dim):
                for lane in range(lanes):
                    x[d, lane] = next_x[d, lane]
                    if not abs(next_x[d, lane]) <= limit:
                        status[lane] = BLEW_UP
        for lane in range(lanes):
            if status[lane] == DONE:
                results.reached[lane] = i + 1
                for d in range(dim):
                    states[lane, i + 1, d] = x[d, lane]


METHODS = ("dopri5", "radau", *FIXED)
LANES_PER_BLOCK = 32  # lanes that step together
LANES_PER_TASK = 256  # lanes that one thread takes at a time
COMPLEX_CUBE = types.Array(types.complex128, 3, "C")


def solve(
    system: System,
    times: Any,
    parameters: Any = None,
    start: Any = None,
    *,
    method: str = "dopri5",
    step: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 100_000,
    limit: float = 1e8,
    threads: int | None = None,
    inputs: Inputs | None = None,
) -> Solution:
    """States of ``system`` at ``times``, from ``start`` at times[0], for one or many lanes.

    times: (n,), increasing. parameters: (lanes, n_parameters) or (n_parameters,); start: (lanes, dim) or (dim,); None:
    the system's usual ones. One row serves all lanes of the other.
    method: "dopri5", adaptive with local errors below atol + rtol |x| and dense output of order 4 between steps;
    "radau", for stiff systems, with the same tolerances: SciPy's implicit Radau IIA of order 5, with exact Jacobians;
    "rk4" or "rk5", each interval in equal steps of at most ``step`` (None: one), for complex parameters and starts too,
    which makes derivatives by complex steps exact. max_steps: for each lane. limit: a state beyond it has blown up.
    threads: ≥ 1; None: all processors. inputs: known inputs and doses; steps end where these change. A state at the
    time of a dose is that before it; doses before times[0] are in ``start``. Law: the same bits for any number of
    threads and of other lanes; global error O(step⁴), O(step⁵) or some times rtol for well-conditioned problems. Never
    raises for what happens on the way: see ``Solution.status``. Source: Kutta (1901); Dormand & Prince (1980); Hairer &
    Wanner (1996).
    Raises TypeError or ValueError naming the argument where something is off, or the right-hand side does not compile.
    """
    check_instance("system", system, System)
    check_choice("method", method, METHODS)
    times = check_times(times)
    parameters = plain_array("parameters", system.usual if parameters is None else parameters)
    start = plain_array("start", system.start if start is None else start)
    is_complex = any(np.iscomplexobj(given) for given in (parameters, start))
    if is_complex and method not in FIXED:
        raise ValueError(f"method must be 'rk4' or 'rk5' for complex parameters or starts, got {shown(method)}")
    p = rows_of("parameters", parameters, system.n_parameters, is_complex)
    x = rows_of("start", start, system.dim, is_complex)
    is_one = max(parameters.ndim, start.ndim) < 2
    lanes = max(len(p), len(x)) if min(len(p), len(x)) else 0
    if {len(p), len(x)} - {1, lanes}:
        raise ValueError(f"parameters and start must have the same lanes, or one, got {len(p)} and {len(x)}")
    p, x = (np.array(np.broadcast_to(a, (lanes, a.shape[1])), order="C") for a in (p, x))
    max_steps = check_count("max_steps", max_steps, at_least=1, below=2**62)
    limit = check_number("limit", limit, above=0.0, at_most=1e150)
    rtol, atol = check_number("rtol", rtol, at_least=1e-14, below=1.0), check_number("atol", atol, above=0.0)
    controls = Controls(rtol, atol, limit, max_steps)
    if step is not None:
        check_number("step", step, above=0.0)
        if method not in FIXED:
            raise ValueError(f"step must be None for the adaptive method {shown(method)}, got {step}")
    threads = available_threads() if threads is None else check_count("threads", threads, at_least=1, below=2**12)
    if inputs is not None:
        check_instance("inputs", inputs, Inputs)
    if is_driven(system, inputs):
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "max_steps": max_steps, "limit": limit}

        def solve_lanes(plain: System, when: Array, parameters: NDArray[Any], start: NDArray[Any]) -> Solution:
            return solve(plain, when, parameters, start, method=method, step=step, threads=threads, **options)

        found = solve_driven(solve_lanes, system, times, p, x, inputs, max_steps)
        return replace(found, states=found.states[0]) if is_one else found
    try:
        states = np.full((lanes, times.size, system.dim), np.nan, np.complex128 if is_complex else np.float64)
    except MemoryError as error:
        wanted = (lanes, times.size, system.dim)
        raise ValueError(f"times and lanes must fit into memory, got states of {wanted}") from error
    status, reached, steps = (np.zeros(lanes, np.int64) for _ in range(3))
    if method in FIXED:
        solve_slice = fixed_step_solver(system, method, times, step, controls, is_complex)
        size = LANES_PER_BLOCK
    else:
        solve_slice = (stiff_solver if method == "radau" else adaptive_solver)(system, controls)
        size = LANES_PER_TASK
    slices = [slice(k, k + size) for k in range(0, lanes, size)]

    def solve_task(part: slice) -> None:
        initial = InitialValues(times, x[part], p[part])
        solve_slice(initial, Results(states[part], status[part], reached[part], steps[part]))

    if min(threads, len(slices)) < 2:
        for part in slices:
            solve_task(part)
    else:
        with concurrent.futures.ThreadPoolExecutor(min(threads, len(slices))) as pool:
            try:
                list(pool.map(solve_task, slices))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return Solution(system, times, states[0] if is_one else states, status, times[reached], steps)


def adaptive_solver(system: System, controls: Controls) -> Callable[[InitialValues, Results], None]:
    """The function that solves a slice of lanes by Dormand–Prince steps."""
    kernel = compile_part(solve_lanes, ADAPTIVE)
    slope = slope_pointer(system.rhs, system.dim, system.n_parameters)
    dim, q = system.dim, system.n_parameters

    def work(initial: InitialValues, results: Results) -> None:
        slots = min(LANES_PER_BLOCK, len(initial.start))
        block = Block(
            x=np.zeros((dim, slots)),
            p=np.zeros((q, slots)),
            k=np.zeros((STAGES, dim, slots)),
            trial=np.zeros((dim, slots)),
            error=np.zeros((dim, slots)),
            dense=np.zeros((dim, slots)),
            clock=np.zeros((N_CLOCK, slots)),
            counters=np.zeros((N_COUNTERS, slots), np.int64),
        )
        kernel(slope, initial, controls, results, block, OneLane(np.zeros(1), np.zeros((dim, 1)), np.zeros((q, 1))))

    return work


def fixed_step_solver(
    system: System, method: str, times: Array, step: float | None, controls: Controls, is_complex: bool
) -> Callable[[InitialValues, Results], None]:
    """The function that solves a slice of lanes by fixed steps, up to ``max_steps`` of the controls."""
    intervals = np.diff(times)
    n_steps = np.ones(intervals.size) if step is None else equal_steps(intervals, step)
    n_reached = int(np.searchsorted(np.cumsum(n_steps), controls.max_steps, side="right"))
    counts = n_steps[:n_reached].astype(np.int64)
    kernel = compile_part(solve_block, fixed_signature(is_complex))
    advance = advance_pointer(system.rhs, system.dim, system.n_parameters, method, is_complex)
    kind = np.complex128 if is_complex else np.float64

    def work(initial: InitialValues, results: Results) -> None:
        lanes, dim = initial.start.shape
        block = FixedBlock(
            x=np.zeros((dim, lanes), kind),
            next_x=np.zeros((dim, lanes), kind),
            p=np.zeros((system.n_parameters, lanes), kind),
            clock=np.zeros((3, lanes)),
        )
        reached_part = initial._replace(times=times[: n_reached + 1])
        kernel(advance, reached_part, counts, controls.limit, results, block)
        if n_reached < intervals.size:
            results.status[results.status == DONE] = STEP_LIMIT

    return work


@functools.cache
def fixed_signature(is_complex: bool) -> Any:
    """Numba's signature of ``solve_block``."""
    pointer = types.FunctionType(COMPLEX_ADVANCE if is_complex else ADVANCE)
    matrix, cube = (COMPLEX_MATRIX, COMPLEX_CUBE) if is_complex else (MATRIX, CUBE)
    initial = types.BaseTuple.from_types((FLOATS, matrix, matrix), InitialValues)
    results = types.BaseTuple.from_types((cube, INTEGERS, INTEGERS, INTEGERS), Results)
    block = types.BaseTuple.from_types((matrix, matrix, matrix, MATRIX), FixedBlock)
    return types.void(pointer, initial, INTEGERS, types.float64, results, block)


def equal_steps(intervals: Array, step: float) -> Array:
    """Number of equal steps in each interval, at least one, none longer than ``step`` but for rounding."""
    return np.asarray(np.maximum(np.ceil(intervals / step * (1.0 - 1e-12)), 1.0))


def check_times(times: Any) -> Array:
    """``times`` as increasing floats, at least one. Raises TypeError or ValueError naming what is off."""
    given = check_array("times", times)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"times must have shape (n,) with n ≥ 1, got {given.shape}")
    back = np.flatnonzero(~(np.diff(given) > 0.0))
    if back.size:
        k = int(back[0])
        raise ValueError(f"times must increase, got {given[k]:.15g} and then {given[k + 1]:.15g} at [{k + 1}]")
    return given


def rows_of(name: str, values: Any, length: int, is_complex: bool) -> NDArray[Any]:
    """``values`` as finite rows (lanes, length), of complex numbers where asked for."""
    if is_complex:
        given = plain_array(name, values)
        parts = [check_array(name, part) for part in (given.real, given.imag)]
        array: NDArray[Any] = parts[0] + 1j * parts[1]
    else:
        array = check_array(name, values)
    if array.ndim not in (1, 2) or array.shape[-1] != length:
        raise ValueError(f"{name} must have shape ({length},) or (lanes, {length}), got {array.shape}")
    return np.atleast_2d(array)
