"""Names of dynamics change no draw, and files tell apart what they do not change."""

import numpy as np
import pytest

from targets import mixtures
from toolkit import Sampler, dynamics, load, sample, samplers
from toolkit.diagnostics import thermostats
from toolkit.dynamics.interface import FRICTION

EVERY = [
    dynamics.baoab(), dynamics.hmc(n_leapfrogs=3), dynamics.langevin(), dynamics.mala(),
    dynamics.nose_hoover(), dynamics.preconditioned_langevin(), dynamics.underdamped_langevin(),
]  # fmt: skip


def run_of(part, name="mine"):
    return sample(mixtures.cosine25(), Sampler(name, (0.02,), (1.0,), dynamics=part), n_steps=40, n_chains=3, seed=1)


@pytest.mark.parametrize("part", EVERY, ids=lambda part: part.name)
def test_draws_do_not_depend_on_the_name(part):
    expected = run_of(part).draws
    for name in ("mala", "hmc", "langevin", "mine"):
        np.testing.assert_array_equal(run_of(part._replace(name=name)).draws, expected)


def test_step_sizes_of_trajectories_are_those_of_langevin_where_that_is_declared():
    leapfrog = dynamics.hmc(n_leapfrogs=1, random_length=False)
    declared = leapfrog._replace(langevin_step=True)
    np.testing.assert_array_equal(run_of(declared).draws, run_of(dynamics.mala()).draws)
    assert (run_of(leapfrog).draws != run_of(dynamics.mala()).draws).any()


@pytest.mark.parametrize("name", ["mala", "mine"])
@pytest.mark.parametrize("part", EVERY, ids=lambda part: part.name)
def test_files_keep_them(part, name, tmp_path):
    run = run_of(part._replace(name=name))
    run.save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").sampler.dynamics == run.sampler.dynamics


def test_a_number_that_is_tuned_is_that_of_the_constructor():
    for make in (dynamics.baoab, dynamics.underdamped_langevin, dynamics.nose_hoover):
        (knob,) = make().known.knobs
        assert make(friction=0.3) == make(friction=0.1).with_knob(knob, 0.3)
        assert knob.name == FRICTION.name
    (knob,) = dynamics.preconditioned_langevin().known.knobs
    assert dynamics.preconditioned_langevin(floor=0.5) == dynamics.preconditioned_langevin().with_knob(knob, 0.5)
    assert dynamics.hmc(n_leapfrogs=3).with_leapfrogs(7) == dynamics.hmc(n_leapfrogs=7)


def test_a_thermostat_under_another_name_has_its_law():
    sampler = samplers.sgnht(0.01)
    for name in ("thermostat", "friction"):
        memory = (name, *sampler.dynamics.memory[1:])
        renamed = Sampler("mine", (0.01,), (1.0,), dynamics=sampler.dynamics._replace(name="mine", memory=memory))
        assert thermostats.thermostat_law(renamed, 4) == thermostats.thermostat_law(sampler, 4)
