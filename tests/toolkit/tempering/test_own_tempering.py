"""A tempering of the user's own: it runs, is told apart by its step, is saved, and refused where it is incomplete."""

from dataclasses import dataclass

import numpy as np
import pytest

from targets import mixtures
from toolkit import CheckpointError, Sampler, UnavailableError, load, sample
from toolkit.tempering import Tempering

PROBLEM = mixtures.gaussian_mixture([[0.0]], 1.0)
RUN = {"n_chains": 200, "seed": 3, "init": np.zeros(1)}


def halve(state, numbers, parameters, step, samples, changes):
    for d in range(state.gradient.shape[0]):
        for lane in range(state.gradient.shape[1]):
            state.gradient[d, lane] *= parameters[0]


def leave(state, numbers, parameters, step, samples, changes):
    """The gradient as it is."""


def tempering(function):
    @dataclass(frozen=True)
    class Flatter(Tempering):
        factor: float = 0.5

        @property
        def step(self):
            return function

        def parameters(self, burn_in=0, energy_noise=0.0):
            return np.array([self.factor])

    return Flatter


def sampler(part):
    return Sampler("flatter", (0.5,), tempering=part)


def test_it_runs_and_has_its_law():
    """Gradients halved: SGLD of N(0, 2) at h/2, whose variance is 2 / (1 − h/4)."""
    run = sample(PROBLEM, sampler(tempering(halve)()), n_steps=400, burn_in=200, **RUN)
    assert run.draws.var() == pytest.approx(2.0 / (1.0 - 0.125), rel=0.05)
    assert run.draws.var() != pytest.approx(1.0 / (1.0 - 0.25), rel=0.05)


def test_a_checkpoint_does_not_go_on_with_another_step(tmp_path):
    path = tmp_path / "run.ckpt"
    sample(PROBLEM, sampler(tempering(halve)()), n_steps=20, checkpoint=path, **RUN)
    with pytest.raises(CheckpointError, match=r"sampler.tempering.step"):
        sample(PROBLEM, sampler(tempering(leave)()), n_steps=40, checkpoint=path, **RUN)
    with pytest.raises(CheckpointError, match=r"sampler.tempering.fields.factor: 0.5 there, 0.25 here"):
        sample(PROBLEM, sampler(tempering(halve)(0.25)), n_steps=40, checkpoint=path, **RUN)
    whole = sample(PROBLEM, sampler(tempering(halve)()), n_steps=40, **RUN)
    again = sample(PROBLEM, sampler(tempering(halve)()), n_steps=40, checkpoint=path, **RUN)
    np.testing.assert_array_equal(again.draws, whole.draws)


def test_it_is_saved_by_name_alone(tmp_path):
    run = sample(PROBLEM, sampler(tempering(halve)()), n_steps=20, **RUN)
    back = load(run.save(tmp_path / "run.npz") or tmp_path / "run.npz", PROBLEM)
    np.testing.assert_array_equal(back.draws, run.draws)
    with pytest.raises(UnavailableError, match=r"the step of tempering '.*Flatter'"):
        sample(PROBLEM, back.sampler, n_steps=20, **RUN)
    back.save(tmp_path / "again.npz")
    assert load(tmp_path / "again.npz", PROBLEM).sampler == back.sampler


@dataclass(frozen=True)
class Noisy(Tempering):
    reads_energies = True

    @property
    def step(self):
        return leave

    def parameters(self, burn_in=0, energy_noise=0.0):
        return np.array([1.0, 2.0, energy_noise])


def test_one_that_reads_noisy_energies_comes_back(tmp_path):
    noisy = Sampler("noisy", (0.5,), tempering=Noisy(), energy_noise=0.1)
    run = sample(PROBLEM, noisy, n_steps=20, **RUN)
    run.save(tmp_path / "run.npz")
    first, second = (load(tmp_path / "run.npz", PROBLEM).sampler for _ in range(2))
    assert first == second
    assert (first.energy_noise, first.tempering.reads_energies, first.is_weighted) == (0.1, True, False)


class NoDataclass(Tempering):
    step = property(lambda self: halve)


@dataclass(frozen=True)
class NoStep(Tempering):
    pass


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (NoDataclass(), "tempering must be a dataclass, so that its numbers can be saved; NoDataclass is none"),
        (NoStep(), "tempering: NoStep must have a property `step`"),
        (tempering(lambda state, numbers: None)(), "must be a function of 6 arguments .* got a function of 2"),
    ],
)
def test_an_incomplete_one_is_refused(part, message):
    with pytest.raises(TypeError, match=message):
        sampler(part)
