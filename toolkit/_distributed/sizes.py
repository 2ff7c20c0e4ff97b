"""How much work a task has: enough that it lasts seconds, and so little that all workers end together."""

WANTED_SECONDS = 2.0
LEAST_SECONDS = 0.1  # towards the end, where each thread gets little
FIRST_WORK = 2e6  # of the first tasks, whose speed is not known
GROWTH = 8  # beyond the largest task that has ended
TASKS_LEFT = 3  # for each thread, towards the end


class TaskSizes:
    """Work of the next task, in gradient evaluations, by the speed of the task that ended last."""

    def __init__(self) -> None:
        self._each = WANTED_SECONDS / FIRST_WORK  # seconds of an evaluation
        self._most = FIRST_WORK

    def next(self, left: float, n_threads: int) -> float:
        """Work of the next task. left: work that no task has yet."""
        least, wanted = LEAST_SECONDS / self._each, WANTED_SECONDS / self._each
        return min(wanted, self._most, max(least, left / (TASKS_LEFT * n_threads)))

    def add(self, work: float, seconds: float) -> None:
        """A task of so much work took so many seconds."""
        self._each = max(seconds, 1e-6) / work
        self._most = max(self._most, GROWTH * work)
