"""ICSGLD's mushroom bandit: its rewards, what the captions state of the agents, and dropout's gradient."""

import numpy as np
import pytest

from figures.papers.icsgld import bandit, fig4
from figures.papers.icsgld.bandit import AGENTS, BUFFER, Agent, Buffer, DropoutNetworks, Mushrooms, mushrooms, regrets
from toolkit.tempering import Contour

RNG = np.random.default_rng(0)


class Fixed:
    """A learner that eats what its first feature says, and counts what it is taught."""

    weights = np.ones(1)

    def __init__(self):
        self.taught = []

    def predictions(self, features):
        return np.stack([np.full(len(features), 0.5), features[:, 0]], axis=1)[None]

    def learn(self, buffer, features, n_steps):
        self.taught.append((len(buffer.reward), n_steps))


def test_regret_is_that_of_the_rewards(monkeypatch):
    """With right choices it stays; random ones cost 5/2 per edible mushroom and 15/2 per poisonous one on average."""
    poisonous = np.arange(1000) % 2 == 0
    data, mind = Mushrooms(np.where(poisonous, 0.0, 1.0)[:, None], poisonous), Fixed()
    monkeypatch.setattr(bandit, "learner", lambda *given: mind)
    curve = np.array(list(regrets(Agent(None), data, 300, 1)))
    assert (curve[fig4.FIRST_TURN - 1 :] == curve[fig4.FIRST_TURN - 1]).all()
    assert mind.taught[0] == (1040, 16)
    assert mind.taught[-1] == (BUFFER, 16)
    n = 20 * fig4.FIRST_TURN
    expected, deviation = n * (0.5 * 2.5 + 0.5 * 7.5), 12.0 * n**0.5  # the sd of one pull is 12.2
    assert abs(curve[fig4.FIRST_TURN - 1] - expected) < 4.0 * deviation
    wrong = Mushrooms(1.0 - data.features, poisonous)
    assert list(regrets(Agent(None), wrong, 100, 1))[-1] > curve[99] + 5_000


def test_the_agents_are_those_of_table_2():
    numbers = {name: agent.sampler for name, agent in AGENTS.items() if agent.sampler is not None}
    per_batch = {"EpsGreedy ×P4": 5e-7, "pCSGLD ×T4": 5e-8, "pSGLD ×P4": 3e-7, "pICSGLD ×P4": 3e-7}
    for name, step in per_batch.items():
        np.testing.assert_allclose(numbers[name].step_sizes, step * 512)
        assert numbers[name].dynamics.parameters == (0.99, pytest.approx(1e-3 * 512))
    assert numbers["ConstSGD ×P4"].step_sizes == (1e-6,) * 4
    assert [numbers[name].temperatures[0] for name in ("pCSGLD ×T4", "pSGLD ×P4", "pICSGLD ×P4")] == [0.3] * 3
    for name, step in {"pCSGLD ×T4": 0.006, "pICSGLD ×P4": 0.03}.items():
        tempering = numbers[name].tempering
        assert isinstance(tempering, Contour)
        assert (tempering.zeta, tempering.partition.n_bins, tempering.partition.width) == (20.0, 100, 10.0)
        assert tempering.decay.cap == step
        assert tempering.decay.gain / (1e12**tempering.decay.exponent + tempering.decay.offset) > step
    assert AGENTS["pCSGLD ×T4"].trainings == 64
    assert AGENTS["EpsGreedy ×P4"].exploration == 0.003


@pytest.mark.parametrize("inputs", [22, 117])
def test_inputs(inputs):
    features, poisonous = mushrooms(inputs)
    assert features.shape == (8124, inputs)
    assert poisonous.sum() == 3916
    if inputs == 22:
        assert np.linalg.matrix_rank(features) == 21  # the constant attribute is 0
        np.testing.assert_allclose(features.std(axis=0).round(12), np.where(features.any(axis=0), 1.0, 0.0))


def test_dropout_descends_the_energy_of_the_network(monkeypatch):
    """Without masks its step is −10⁻⁶ times the gradient of the buffer's posterior, on the same minibatch."""
    features = RNG.standard_normal((512, 22))
    buffer = Buffer(np.arange(512), RNG.integers(0, 2, 512), RNG.standard_normal(512))
    nets = DropoutNetworks(22, 3)

    class EveryUnit:
        def integers(self, low, high, shape, kind=np.int64):
            return np.full(shape, 31, kind) if high == 32 else np.tile(np.arange(512), (4, 1))

    nets._rng = EveryUnit()
    monkeypatch.setattr(bandit, "DROPPED", 0.0)
    before = [layer[0].ravel().copy() for layer in nets._layers]
    nets.learn(buffer, features, 1)
    moved = np.concatenate([layer[0].ravel() for layer in nets._layers]) - np.concatenate(before)
    slope = buffer.problem(features).evaluate(np.concatenate(before)[None])[1][0]
    np.testing.assert_allclose(moved, -1e-6 * slope, rtol=2e-2, atol=1e-6 * 1e-3 * np.abs(slope).max())


def test_a_held_chain_learns_the_rewards():
    """After some turns of pSGLD the mean squared error has fallen to a fraction."""
    features, poisonous = mushrooms(22)
    met, eaten = RNG.integers(0, 8124, 1024), RNG.integers(0, 2, 1024)
    buffer = Buffer(met, eaten, np.where(eaten == 1, np.where(poisonous[met], -15.0, 5.0), 0.0))
    mind = bandit.Chain(AGENTS["pSGLD ×P4"].sampler, buffer, features, 0)

    def error():
        predicted = mind.predictions(features[met])[:, np.arange(1024), eaten]
        return ((predicted - buffer.reward) ** 2).mean()

    first = error()
    mind.learn(buffer, features, 320)
    assert error() < 0.6 * first
    np.testing.assert_array_equal(mind.weights, np.ones(4))
