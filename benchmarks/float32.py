"""What ``dtype="float32"`` loses: its elementary functions, single steps, and laws, beside float64 and theory."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from toolkit import driver, job
from toolkit.blocks import Layout, engine_numbers, look_nowhere, make_blocks, tempering_numbers
from toolkit.chain_kernel import INTERPRETED
from toolkit.device import interpreted
from toolkit.engine import advance
from toolkit.proposals import propose, propose_nothing
from toolkit.single import twin
from toolkit.tempers import TEMPERS

Single = np.float32
KEPT = ("contour", "continuous", "masses")  # parts of a state that stay float64


class TwinEngine:
    """``blocks.Engine`` in float32 by the device's functions, compiled for this processor: the same numbers, sooner."""

    counts_by_chunk = True
    may_have_diverged = True
    threads = 1

    def __init__(self, asked: Any, wants_draws: bool, states: Any) -> None:
        problem, sampler = asked.problem, asked.sampler
        kind, self._tempering = tempering_numbers(sampler, asked.burn_in)
        leaps = propose if sampler.dynamics.leapfrogs else propose_nothing
        target = problem.target
        own = lazily(target.energy_gradient) if target.stochastic else twin(target.energy_gradient)
        look = lazily(look_nowhere if problem.domain is None else problem.domain.look.py_func)
        parts = (own, twin(sampler.dynamics.move), look, twin(TEMPERS[kind]), twin(leaps))
        # As in the simulator the loop is Python's, and only what it calls is compiled, which takes seconds.
        self._call = functools.partial(interpreted(twin(advance), INTERPRETED), *parts)
        self._numbers = engine_numbers(asked)
        given = target.parameters if target.stochastic else target.parameters.astype(Single)
        self._given = (given, np.array(sampler.dynamics.parameters, Single))
        tables = (np.zeros(0), np.zeros(0, np.int32))
        self._tables = tables if problem.domain is None else (problem.domain.real, problem.domain.whole)
        blocks = make_blocks(problem, sampler, asked.init, Layout(lanes=2**62), 1)
        kept = (*KEPT, *(["scratch"] if problem.target.stochastic else []), *(["foot"] if problem.domain else []))
        self.blocks = [block._replace(state=single(block.state, kept)) for block in blocks]

    def run(self, pool: Any, first: int, factors: Any, slots: Any, trace_slots: Any, outputs: Any) -> None:
        """As ``blocks.Engine.run``."""
        sizes, temperatures = factors.step_size.astype(Single), factors.temperature.astype(Single)
        for block in self.blocks:
            numbers = self._numbers._replace(n_chains=block.last - block.first)
            numbers = numbers._replace(
                gradient_noise=Single(numbers.gradient_noise), energy_noise=Single(numbers.energy_noise),
                penalty=Single(numbers.penalty),
            )  # fmt: skip
            self._call(
                block.state, numbers, *self._given, self._tempering, *self._tables, first, sizes, temperatures, slots,
                trace_slots, outputs.of_chains(block.first, block.last),
            )  # fmt: skip


@functools.cache
def lazily(function: Any) -> Any:
    """``function`` for arguments of any types."""
    from numba import njit

    return njit(error_model="numpy", _nrt=False)(function)


def single(state: Any, kept: tuple[str, ...]) -> Any:
    """``state`` with float32 in place of float64, but in the fields ``kept``."""
    values = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            values[name] = value if name in kept else single(value, kept)
        else:
            with np.errstate(all="ignore"):  # scratch may hold anything
                values[name] = value.astype(Single) if value.dtype == np.float64 and name not in kept else value
    return type(state)(**values)


@contextlib.contextmanager
def twins_on_this_processor() -> Iterator[None]:
    """``sample(..., backend="cuda", dtype="float32")`` runs here meanwhile, in ``TwinEngine``."""
    with mock.patch.object(driver, "make_engine", TwinEngine), mock.patch.object(job, "check_backend"):
        yield
