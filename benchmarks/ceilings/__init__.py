"""What a sampler could cost at best: hand-fused kernels of the toolkit's own arithmetic, each for one case alone.

``CEILINGS[sampler, target]`` is (n_chains, n_steps) → last positions (chain, 2), on one core, the sampler being that of
``speed.chain_cases.SAMPLERS``. Each begins where ``chain_cases.our_seconds`` does, with seed 1, and ends on the bits of
``sample`` (``tests/benchmarks/test_fused.py``), which shows that it does the same work. It leaves out what a general
engine must do besides: energies that nobody reads, divergence, records, domains, schedules that do not change, parts
behind pointers.
"""

from .blocks import Run
from .contour import contour_runs
from .exchange import exchange_runs
from .langevin import langevin_runs
from .stein import stein_runs
from .underdamped import underdamped_runs

RUNS: dict[str, dict[str, Run]] = {
    **langevin_runs(),
    **underdamped_runs(),
    **contour_runs(),
    **exchange_runs(),
    **stein_runs(),
}

CEILINGS: dict[tuple[str, str], Run] = {
    (name, target): run for name, runs in RUNS.items() for target, run in runs.items()
}
