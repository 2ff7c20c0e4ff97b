"""The settings with which a script measures, and a record of every run it makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from toolkit import Run, sample
from toolkit.samplers import Sampler

Data = Mapping[str, NDArray[Any]]
T = TypeVar("T")


class Record(NamedTuple):
    """One run in the report: what was run, how long, and what it cost."""

    label: str
    sampler: str
    problem: str
    chains: int
    replicas: int
    steps: int
    burn_in: int
    thin: int
    seed: int
    gradient_evaluations: int
    seconds: float


@dataclass
class Study:
    """Given to a script's ``measure``.

    quick: small sizes. seed, backend: of all runs. records: a note of every run so far.
    """

    quick: bool = False
    seed: int = 0
    backend: str = "cpu"
    records: list[Record] = field(default_factory=list)

    def size(self, full: T, quick: T) -> T:
        """The first of a full study, the second of a quick one."""
        return quick if self.quick else full

    def sample(self, label: str, problem: Any, sampler: Sampler, **settings: Any) -> Run:
        """``toolkit.sample`` with the study's seed and backend, noted under ``label``."""
        run = sample(problem, sampler, **{"seed": self.seed, "backend": self.backend, **settings})
        self.note(label, run)
        return run

    def note(self, label: str, run: Run) -> None:
        """Note a run made otherwise, the last chunk of a stream say. Ctrl-C, which ends a run early, ends the study."""
        if run.interrupted:
            raise KeyboardInterrupt
        self.records.append(
            Record(label, run.sampler.name, run.problem.name, len(run.init), run.sampler.n_replicas, run.n_steps,
                   run.burn_in, run.thin, run.seed, run.gradient_evaluations, run.elapsed)
        )  # fmt: skip
