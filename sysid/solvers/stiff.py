"""Adaptive solutions of stiff systems, lane by lane: SciPy's Radau IIA of order 5, with compiled derivatives.

Source: Hairer & Wanner (1996), Solving Ordinary Differential Equations II, IV.8.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy
from numba import types

from toolkit._compiler import FLOATS, MATRIX

from ..arrays import Array
from ..systems.system import System, analytic, checked_rhs, tuple_text
from .adaptive import BLEW_UP, DONE, STEP_LIMIT, STEP_TOO_SMALL, Controls, InitialValues, Results
from .adjoint import HUGE, TINY
from .right_hand_side import Pointer, pointer, slope_pointer
from .runge_kutta import built

SMALLEST_RTOL = 2.3e-14  # below it SciPy warns
JACOBIAN = types.void(types.float64, FLOATS, FLOATS, MATRIX)


@functools.lru_cache(maxsize=256)
def jacobian_pointer(rhs: Callable[..., Any], dim: int, n_parameters: int) -> Pointer:
    """df/dx by complex steps: a function (t, x (dim,), p (n_parameters,), jacobian (dim, dim)) that writes it.

    Raises TypeError with Numba's reason where the right-hand side does not compile.
    """
    checked_rhs(rhs, dim, n_parameters, types.complex128)
    lines = ["def block(t, x, p, jacobian):"]
    parameters = tuple_text([f"complex(p[{j}])" for j in range(n_parameters)])
    for d in range(dim):
        at = tuple_text([f"x[{e}] + {TINY if e == d else 0.0!r}j" for e in range(dim)])
        lines.append(f"    f{d} = rhs(t, {at}, {parameters})")
        lines += [f"    jacobian[{e}, {d}] = complex(f{d}[{e}]).imag*{HUGE!r}" for e in range(dim)]
    return pointer(built("block", "\n".join(lines), rhs=analytic(rhs)), JACOBIAN, rhs, dim)


class StiffSteps:
    """The accepted steps of one lane's solution: iterate for SciPy's solver after each; then ``status`` says how it is.

    parameters: (n_parameters,). start: (dim,). status: as of ``integrate.Solution``. count: accepted steps.
    """

    def __init__(self, system: System, rtol: float, atol: float | Array, limit: float, max_steps: int) -> None:
        self.system, self.rtol, self.atol = system, max(rtol, SMALLEST_RTOL), atol
        self.limit, self.max_steps = limit, max_steps
        self.slope = slope_pointer(system.rhs, system.dim, system.n_parameters).compiled
        self.jacobian = jacobian_pointer(system.rhs, system.dim, system.n_parameters).compiled
        self.status, self.count = DONE, 0

    def along(
        self, start: Array, parameters: Array, first: float, last: float, first_step: float | None = None
    ) -> Iterator[Any]:
        """Steps from ``start`` at time ``first`` to time ``last``; the first is tried with ``first_step``, > 0."""
        p = np.ascontiguousarray(parameters, np.float64)
        column, out, now, spare = p[:, None].copy(), np.empty((self.system.dim, 1)), np.empty(1), np.empty(1)
        self.status, self.count = DONE, 0

        def slope(t: float, x: Array) -> Array:
            now[0] = t
            self.slope(now, np.ascontiguousarray(x[:, None]), column, out, spare)
            return out[:, 0].copy()

        def jacobian(t: float, x: Array) -> Array:
            matrix = np.empty((self.system.dim, self.system.dim))
            self.jacobian(t, np.ascontiguousarray(x), p, matrix)
            return matrix

        if not (np.abs(start) <= self.limit).all() or not np.isfinite(slope(first, start)).all():
            self.status = BLEW_UP
            return
        try:
            with np.errstate(all="ignore"):
                solver = scipy.integrate.Radau(
                    slope, first, start, last, rtol=self.rtol, atol=self.atol, jac=jacobian, first_step=first_step
                )
                while solver.status == "running":
                    if self.count >= self.max_steps:
                        self.status = STEP_LIMIT
                        return
                    solver.step()
                    if solver.status == "failed":
                        self.status = STEP_TOO_SMALL
                        return
                    self.count += 1
                    yield solver
                    if not (np.abs(solver.y) <= self.limit).all():
                        self.status = BLEW_UP
                        return
        except (ValueError, ZeroDivisionError, np.linalg.LinAlgError):  # a Jacobian that is not finite
            self.status = BLEW_UP


def stiff_solver(system: System, controls: Controls) -> Callable[[InitialValues, Results], None]:
    """The function that solves a slice of lanes by Radau steps."""

    def work(initial: InitialValues, results: Results) -> None:
        times = initial.times
        steps = StiffSteps(system, controls.rtol, controls.atol, controls.limit, controls.max_steps)
        for lane, (start, parameters) in enumerate(zip(initial.start, initial.parameters, strict=True)):
            states = results.states[lane]
            states[0] = start
            reached, beyond = 1, False
            if times.size > 1:
                for solver in steps.along(start, parameters, float(times[0]), float(times[-1])):
                    last = times.size if solver.status == "finished" else np.searchsorted(times, solver.t, "right")
                    if last > reached:
                        found = solver.dense_output()(times[reached:last]).T
                        inside = (np.abs(found) <= controls.limit).all(axis=1)
                        n = int(np.argmin(np.append(inside, False)))
                        states[reached : reached + n] = found[:n]
                        beyond, reached = reached + n < last, reached + n
                    if beyond:
                        break
            results.status[lane] = BLEW_UP if beyond else steps.status
            results.reached[lane], results.steps[lane] = reached - 1, steps.count

    return work
