"""How many chains a task takes: enough that it lasts a second, and so few that memory suffices and all workers end."""

import math

WANTED_SECONDS = 2.0
FIRST_GRADIENTS = 2e6  # of the first tasks, whose speed is not known
GROWTH = 8  # from one task to the next, at most
TASKS_LEFT = 3  # for each thread, towards the end
MOST_BYTES = 128 << 20  # of a task's results


class TaskSizes:
    """Numbers of chains for the next task, from the seconds that earlier ones took.

    each: None, or the chains of every task. multiple: which every number is one of, but the last. gradients, n_bytes:
    evaluations, and bytes of results, of one chain.
    """

    def __init__(self, n_chains: int, *, each: int | None, multiple: int, gradients: float, n_bytes: float) -> None:
        self._each, self._multiple = each, multiple
        self._most = max(1.0, MOST_BYTES / max(1.0, n_bytes))
        self._size = min(max(8.0, FIRST_GRADIENTS / max(1.0, gradients)), self._most, float(n_chains))

    def next(self, n_left: int, n_threads: int) -> int:
        """Chains of the next task. n_left: in all, that no task has yet."""
        if self._each is not None:
            size = float(self._each)
        else:
            size = min(self._size, math.ceil(n_left / max(1, n_threads * TASKS_LEFT)))
            size = max(size, min(8.0, n_left))
        return min(n_left, self._multiple * max(1, round(size / self._multiple)))

    def add(self, n_chains: int, seconds: float) -> None:
        """A task of so many chains sampled for so many seconds."""
        wanted = n_chains * WANTED_SECONDS / max(seconds, 1e-6)
        self._size = max(1.0, min(wanted, GROWTH * max(self._size, 1.0), self._most))
