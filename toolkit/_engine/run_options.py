"""The options of a run, as ``sample`` is given them: one object from the public functions to the engine."""

from dataclasses import dataclass, replace
from typing import Any, Self

from .state import Layout


@dataclass(frozen=True, kw_only=True, eq=False)
class RunOptions:
    """Arguments of ``sample`` besides the problem and the sampler, documented there; ``make_job`` checks them.

    n_chains, burn_in and thin may be None for those of a tuned sampler, until ``completed`` or a tuning fills them in.
    """

    n_steps: Any = None
    seed: Any
    n_chains: Any = 1
    burn_in: Any = 0
    thin: Any = 1
    init: Any = None
    backend: Any = "cpu"
    dtype: Any = "float64"
    threads: Any = None
    progress: Any = None
    keep_replicas: Any = False
    keep_draws: Any = True
    keep_energies: Any = False
    keep_statistics: Any = True
    trace_every: Any = None
    accumulators: Any = None
    checkpoint: Any = None
    checkpoint_every: Any = 60.0
    layout: Any = Layout()
    until: Any = None
    on_divergence: Any = None

    def completed(self) -> Self:
        """These options with one chain, without burn-in and thinning where nothing is said of them."""
        usual = {"n_chains": 1, "burn_in": 0, "thin": 1}
        return replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})
