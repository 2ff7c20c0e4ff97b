"""Rows of a dynamics' memory change swaps where they are declared to be frictions, whatever they are called."""

import numpy as np
import pytest

from targets import mixtures
from toolkit import Sampler, dynamics, load, sample, tempering
from toolkit._compiler import inlined
from toolkit.dynamics.baoab_splitting import move_baoab

move_rest = inlined(move_baoab)


def move_with_log(lanes, memory, parameters, changes):
    """BAOAB, with a first row of memory that nothing reads."""
    for lane in range(lanes.step_size.size):
        memory[0, lane] = 10.0 * lanes.step_size[lane]
    move_rest(lanes, memory[1:], parameters, changes)


def own(name, friction_rows=0):
    """A sampler of that move, whose first row is called so."""
    base = dynamics.baoab(friction=0.5)
    part = base._replace(
        name="mine", memory=(name, *base.memory), memory_start=(1.0, *base.memory_start), move=move_with_log,
        friction_rows=friction_rows,
    )  # fmt: skip
    return Sampler("mine", (0.02, 0.05), (1.0, 4.0), dynamics=part, tempering=tempering.replica_exchange())


def run_of(sampler):
    """A short run with swaps."""
    return sample(mixtures.cosine25(), sampler, n_steps=400, n_chains=4, seed=1, keep_replicas=True, threads=1)


@pytest.mark.filterwarnings("ignore")
def test_names_of_rows_change_nothing(tmp_path):
    named, other, declared = (run_of(own(*given)) for given in (("thermostat",), ("log",), ("log", 1)))
    assert named.swaps.sum() > 100
    np.testing.assert_array_equal(named.replica_draws, other.replica_draws)
    assert (declared.replica_draws != other.replica_draws).any()
    declared.save(tmp_path / "declared.npz")
    assert load(tmp_path / "declared.npz").sampler.dynamics.friction_rows == 1


def test_frictions_are_declared():
    assert dynamics.nose_hoover().n_friction_rows(3) == 1
    assert dynamics.nose_hoover(by_coordinate=True).n_friction_rows(3) == 3
    assert dynamics.baoab().n_friction_rows(3) == 0
    with pytest.raises(ValueError, match="friction_rows must be"):
        dynamics.baoab()._replace(friction_rows=9).n_friction_rows(3)
