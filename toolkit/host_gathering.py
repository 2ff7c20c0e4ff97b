"""Accumulators that take in a chunk's draws on the host, chains shared out among threads."""

import functools
import itertools
from collections import deque
from concurrent.futures import Executor

from .cpu_engine import all_arrive
from .gathering import State
from .job import Integers, Job, names_on_device
from .result import fold
from .state import Outputs


class HostGathering:
    """What a job's accumulators take in here, and not where a device writes it."""

    def __init__(self, job: Job, states: dict[str, State]) -> None:
        self._job, self._states = job, states
        elsewhere = names_on_device(job)
        self._accumulators = {name: a for name, a in job.accumulators.items() if name not in elsewhere}

    def take_in(self, pool: Executor | None, outputs: Outputs, offset: int, kept: Integers) -> None:
        """Hand over the draws of the steps ``kept``, from ``offset`` on, by the pool's threads or by this one."""
        if not self._accumulators or kept.size == 0:
            return
        chunk, targets = slice(offset, offset + kept.size), self._job.sampler.n_target_replicas
        draws = fold(outputs.draws[:, :targets, chunk])
        weights, energies = (
            fold(values[:, :targets, chunk]) if values.shape[2] else None
            for values in (outputs.weights, outputs.energies)
        )
        threads = min(self._job.threads, len(draws))
        ends = [len(draws) * i // threads for i in range(threads + 1)]
        with all_arrive(deque(), None) as tasks:
            for name, accumulator in self._accumulators.items():
                for first, last in itertools.pairwise(ends):
                    work = functools.partial(
                        accumulator.update,
                        {field: values[first:last] for field, values in self._states[name].items()},
                        draws[first:last],
                        None if weights is None else weights[first:last],
                        None if energies is None else energies[first:last],
                        kept,
                    )
                    if pool is None:
                        work()
                    else:
                        tasks.append(pool.submit(work))
