"""What a sampler could cost at best: hand-fused kernels of the toolkit's own arithmetic, each for one case alone.

``FUSED[sampler, target]`` is (n_chains, n_steps) → last positions (chain, 2), on one core, the sampler being that of
``benchmarks.samplers.cases``. Each begins where ``chain_cases.our_seconds`` does, with seed 1, and ends on the bits of
``sample`` (``tests/test_fused.py``), which shows that it does the same work. It leaves out what a general engine must
do besides: energies that nobody reads, divergence, records, domains, schedules that do not change, parts behind
pointers.
"""

from .fused_contour import contour_runs
from .fused_exchange import exchange_runs
from .fused_metropolis import metropolis_runs
from .fused_overdamped import cyclical_sgld_runs, sgld_runs
from .fused_points import Run
from .fused_preconditioned import preconditioned_runs
from .fused_stein import stein_runs
from .fused_tact import tact_runs
from .fused_underdamped import underdamped_runs
from .fused_underdamped_exchange import underdamped_exchange_runs

CASES: dict[str, dict[str, Run]] = {
    "sgld": sgld_runs(),
    "cyclical_sgld": cyclical_sgld_runs(),
    **underdamped_runs(),
    **preconditioned_runs(),
    **contour_runs(),
    **exchange_runs(),
    **underdamped_exchange_runs(),
    **tact_runs(),
    **metropolis_runs(),
    **stein_runs(),
}

FUSED: dict[tuple[str, str], Run] = {(name, point): run for name, runs in CASES.items() for point, run in runs.items()}
