"""The hand-fused kernels of the benchmarks do the samplers' own work: they end on the same bits."""

import warnings

import numpy as np
import pytest

from benchmarks.ceilings import CEILINGS
from benchmarks.speed.chain_cases import EVERY_SAMPLER
from targets import mixtures
from toolkit import ContourWarning, sample

IN_CI = {("sgld", "cosine25", 1), ("sgld", "cosine25", 67)}
CASES = [(*case, n_chains) for case in CEILINGS for n_chains in (1, 67)]


def last_positions(name: str, target: str, n_chains: int, n_steps: int) -> np.ndarray:
    """Where ``sample`` ends from the origin, of the coldest replica, (chain, 2); particles begin spread out."""
    sampler, init = EVERY_SAMPLER[name], np.zeros(2)
    if sampler.name == "svgd":
        init = np.random.default_rng(1).uniform(-2.0, 2.0, (n_chains, sampler.n_replicas, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        run = sample(
            getattr(mixtures, target)(), sampler, n_steps=n_steps, thin=n_steps, n_chains=n_chains, seed=1, init=init
        )
    return run.replica_draws[:, 0, -1]


@pytest.mark.parametrize("case", [c if c in IN_CI else pytest.param(c, marks=pytest.mark.slow) for c in CASES])
def test_a_fused_kernel_ends_on_the_bits_of_sample(case: tuple[str, str, int]) -> None:
    name, target, n_chains = case
    fused = CEILINGS[name, target](n_chains, 150)
    assert np.array_equal(fused, last_positions(name, target, n_chains, 150))
    assert not np.array_equal(fused, last_positions(name, target, n_chains, 149))
