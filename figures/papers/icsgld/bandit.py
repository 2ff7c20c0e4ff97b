"""The mushroom bandit of ICSGLD (2022), section 5.3: its environment, its agents, and their regret."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

import toolkit
from figures.arrays import Array, Bools, Integers
from targets import datasets, posteriors
from toolkit import dynamics, schedules, tempering
from toolkit.samplers import Sampler

# Rewards of eating: an edible mushroom, and a poisonous one in either of two equally likely cases.
EDIBLE, LUCKY, POISONED = 5.0, 5.0, -35.0
PULLS, TRAININGS, BATCH, BUFFER, FIRST_PULLS = 20, 16, 512, 4096, 1024
HIDDEN, WEIGHT_DECAY, MEMBERS = (100, 100), 0.01, 4
# The released code's gradients over the batch size are in its preconditioner: V of (g/512)², with the floor 10⁻³.
FLOOR, DECAY = 1e-3 * BATCH, 0.99
NO_TEMPERATURE = 1e-30  # of descents, which have no noise but their minibatches'
LEAST_WEIGHT = 1e-3  # added to importance weights ("a proper regularizer")


class Mushrooms(NamedTuple):
    """Features (mushroom, inputs), and whether each is poisonous."""

    features: Array
    poisonous: Bools


def mushrooms(inputs: int) -> Mushrooms:
    """Those of the file, with 117 inputs, 0 and 1, as in the released code; or with 22, as in the text.

    The 22 are the codes' places in the alphabet of each attribute, standardised, 0 for the attribute that is constant.
    """
    data = datasets.mushroom()
    if inputs == 117:
        return Mushrooms(data.features, data.labels == 1)
    attributes = [name.partition("=")[0] for name in data.names]
    columns = []
    for attribute in dict.fromkeys(attributes):
        codes = data.features[:, [a == attribute for a in attributes]].argmax(axis=1).astype(float)
        columns.append((codes - codes.mean()) / (codes.std() or 1.0))
    return Mushrooms(np.column_stack(columns), data.labels == 1)


class Agent(NamedTuple):
    """An agent: its sampler (None: dropout), steps a turn, the share of random actions, and how it predicts.

    draws: whether each mushroom is judged by one member drawn at random, and not by their weighted mean.
    """

    sampler: Sampler | None
    trainings: int = TRAININGS
    exploration: float = 0.0
    draws: bool = False


def preconditioned(name: str, step_size: float, temperature: float, **parts: Any) -> Sampler:
    """RMSProp-preconditioned Langevin with the released code's numbers and without the drift correction, as there."""
    members = parts.pop("members", MEMBERS)
    return Sampler(
        name, (step_size * BATCH,) * members, (temperature,) * members,
        dynamics=dynamics.preconditioned_langevin(decay=DECAY, floor=FLOOR, drift_correction=False), **parts,
    )  # fmt: skip


def contour(step: float) -> tempering.Contour:
    """θ with constant steps ω, ζ = 20, 100 subregions of depth 10, weights and field by subregion, all as printed."""
    decay = tempering.step_decay(gain=1e9, exponent=0.0, cap=step)
    return tempering.contour(zeta=20.0, partition=tempering.Partition(0.0, 10.0, 100), decay=decay, interpolated=False)


AGENTS = {
    "EpsGreedy ×P4": Agent(
        preconditioned("rmsprop", 5e-7, NO_TEMPERATURE, schedule=schedules.exponential_decay(0.999, every=TRAININGS)),
        exploration=0.003,
    ),
    "ConstSGD ×P4": Agent(Sampler("sgd", (1e-6,) * MEMBERS, (NO_TEMPERATURE,) * MEMBERS)),
    "Dropout ×P4": Agent(None),
    "pCSGLD ×T4": Agent(
        preconditioned("pcsgld", 5e-8, 0.3, members=1, tempering=contour(0.006)), trainings=MEMBERS * TRAININGS
    ),
    "pSGLD ×P4": Agent(preconditioned("psgld", 3e-7, 0.3)),
    "pICSGLD ×P4": Agent(preconditioned("picsgld", 3e-7, 0.3, tempering=contour(0.03))),
    "pICSGLD ×P4, drawn": Agent(preconditioned("picsgld", 3e-7, 0.3, tempering=contour(0.03)), draws=True),
}


@dataclass
class Buffer:
    """The last observations: which mushroom, whether it was eaten, and the reward; (observation,) each."""

    mushroom: Integers
    eaten: Integers
    reward: Array

    def add(self, mushroom: Integers, eaten: Integers, reward: Array) -> None:
        """Append, and forget the oldest beyond ``BUFFER``."""
        self.mushroom = np.concatenate([self.mushroom, mushroom])[-BUFFER:]
        self.eaten = np.concatenate([self.eaten, eaten])[-BUFFER:]
        self.reward = np.concatenate([self.reward, reward])[-BUFFER:]

    def problem(self, features: Array) -> toolkit.Target:
        """The network's posterior: 4096 times the mean squared error, in minibatches, and the weight decay.

        The output of the action that was not taken is not observed. The factor is 4096 also while there are fewer.
        """
        rewards = np.full((len(self.reward), 2), np.nan)
        rewards[np.arange(len(self.reward)), self.eaten] = self.reward
        noise = (0.5 * len(self.reward) / BUFFER) ** 0.5
        return posteriors.network(
            features[self.mushroom], rewards, hidden=HIDDEN, likelihood="normal", noise=noise,
            prior=WEIGHT_DECAY**-0.5, batch_size=BATCH, precision="float32", name="mushroom bandit",
            normalised=False,  # energies are those of the paper's partition
        )  # fmt: skip


class Learner(Protocol):
    """What predicts the rewards of both actions, and learns from a buffer."""

    def predictions(self, features: Array) -> Array:
        """Rewards (member, mushroom, action)."""

    @property
    def weights(self) -> Array:
        """Weights (member,) of the members' predictions."""

    def learn(self, buffer: Buffer, features: Array, n_steps: int) -> None:
        """Make ``n_steps`` steps on the buffer's data."""


class Chain:
    """Members that are the replicas of one held chain."""

    def __init__(self, sampler: Sampler, first: Buffer, features: Array, seed: int) -> None:
        self._chains = toolkit.chains(first.problem(features), sampler, seed=seed, threads=1)
        self._is_weighted = sampler.is_weighted

    def predictions(self, features: Array) -> Array:
        """Rewards (member, mushroom, action)."""
        return posteriors.predict(self._chains.problem.target, self._chains.positions[0], features)

    @property
    def weights(self) -> Array:
        """Importance weights, with the least weight; all equal without contour and before the first step."""
        members = self._chains.sampler.n_replicas
        if not self._is_weighted or self._chains.steps == 0:
            return np.ones(members)
        return self._chains.weights[0] + LEAST_WEIGHT

    def learn(self, buffer: Buffer, features: Array, n_steps: int) -> None:
        """Go on with the buffer's data."""
        self._chains.replace(buffer.problem(features), checks_energies=False)
        self._chains.advance(n_steps)


MASKS, TILE = 5, 16  # masks in a prediction; rows at a time, few enough that BLAS uses one thread
SGD_STEP, DROPPED = 1e-6, 0.5


class DropoutNetworks:
    """Networks whose last hidden units are dropped at random, predictions being means over masks, and SGD; float32."""

    weights = np.ones(MEMBERS)

    def __init__(self, inputs: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._layers: list[Any] = []
        for n_in, n_out in ((inputs, HIDDEN[0]), HIDDEN, (HIDDEN[1], 2)):
            for shape in ((MEMBERS, n_in, n_out), (MEMBERS, 1, n_out)):
                self._layers.append(self._rng.uniform(-(n_in**-0.5), n_in**-0.5, shape).astype(np.float32))

    def _forward(self, features: Any) -> tuple[Any, ...]:
        """Both hidden layers of ``features`` (member or 1, tile, row, inputs), the factors of the second, the outputs.

        The mean over masks of outputs is the output of the mean mask, as they are linear in the last hidden units.
        """
        first, bias, second, other, last, final = (layer[:, None] for layer in self._layers)
        below = np.maximum(features @ first + bias, 0.0)
        above = np.maximum(below @ second + other, 0.0)
        masks = self._rng.integers(0, 2**MASKS, above.shape, np.uint8)  # a bit for each: dropped or kept
        factors = np.bitwise_count(masks).astype(np.float32) / np.float32(MASKS * (1.0 - DROPPED))
        return below, above, factors, (above * factors) @ last + final

    def predictions(self, features: Array) -> Array:
        """Rewards (member, mushroom, action)."""
        return self._forward(features[None, None].astype(np.float32))[3][:, 0]

    def learn(self, buffer: Buffer, features: Array, n_steps: int) -> None:
        """Steps of SGD on the energy of ``Buffer.problem``, each member with its own minibatches."""
        table, rows = features[buffer.mushroom].astype(np.float32), np.arange(BATCH)
        for _ in range(n_steps):
            picks = self._rng.integers(0, len(table), (MEMBERS, BATCH))
            inputs = table[picks].reshape(MEMBERS, BATCH // TILE, TILE, -1)
            below, above, factors, outputs = self._forward(inputs)
            flat = outputs.reshape(MEMBERS, BATCH, 2)
            slope = np.zeros_like(flat)
            for member in range(MEMBERS):
                taken = buffer.eaten[picks[member]]
                error = flat[member, rows, taken] - buffer.reward[picks[member]]
                slope[member, rows, taken] = 2.0 * BUFFER / BATCH * error
            self._descend(inputs, below, above, factors, slope.reshape(outputs.shape))

    def _descend(self, inputs: Any, below: Any, above: Any, factors: Any, slope: Any) -> None:
        """One step along the gradient, of which ``slope`` is that by the outputs."""
        _, _, second, _, last, _ = (layer[:, None] for layer in self._layers)
        up = (slope @ last.swapaxes(-1, -2)) * factors * (above > 0.0)
        down = (up @ second.swapaxes(-1, -2)) * (below > 0.0)
        gradients = []
        for values, by in ((inputs, down), (below, up), (above * factors, slope)):
            gradients += [(values.swapaxes(-1, -2) @ by).sum(axis=1), by.sum(axis=(1, 2))[:, None]]
        for layer, gradient in zip(self._layers, gradients, strict=True):
            layer -= np.float32(SGD_STEP) * (gradient + np.float32(WEIGHT_DECAY) * layer)


def learner(agent: Agent, first: Buffer, features: Array, seed: int) -> Learner:
    """The agent's learner before its first step."""
    if agent.sampler is None:
        return DropoutNetworks(features.shape[1], seed)
    return Chain(agent.sampler, first, features, seed)


def regrets(agent: Agent, data: Mushrooms, n_turns: int, seed: int) -> Iterator[float]:
    """Cumulative regret after each turn of ``PULLS`` mushrooms, the first ``FIRST_PULLS`` of them with random actions.

    The regret of a pull is that by the reward got, as in the released code: 5 for an edible mushroom that is left,
    −5 or 35 for a poisonous one that is eaten. Mushrooms, random actions and luck are the same for all agents.
    """
    world, own = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    nothing = np.zeros(0, np.int64)
    buffer, mind, total = Buffer(nothing, nothing, np.zeros(0)), None, 0.0
    for turn in range(n_turns):
        met = world.integers(0, len(data.features), PULLS)
        guesses, luck, coins = world.integers(0, 2, PULLS), world.random(PULLS) < 0.5, own.random(PULLS)
        eats = guesses
        if mind is not None:
            chosen = choices(mind, data.features[met], own, draws=agent.draws)
            eats = np.where(coins < agent.exploration, guesses, chosen)
        if_eaten = np.where(data.poisonous[met], np.where(luck, LUCKY, POISONED), EDIBLE)
        reward = np.where(eats == 1, if_eaten, 0.0)
        total += float((np.where(data.poisonous[met], 0.0, EDIBLE) - reward).sum())
        buffer.add(met, eats, reward)
        if PULLS * (turn + 1) > FIRST_PULLS:
            if mind is None:
                mind = learner(agent, buffer, data.features, seed)
            mind.learn(buffer, data.features, agent.trainings)
        yield total


def choices(mind: Learner, features: Array, rng: np.random.Generator, *, draws: bool) -> Integers:
    """The action of the larger predicted reward, for each mushroom: 1, to eat, or 0."""
    predicted, weights = mind.predictions(features), mind.weights / mind.weights.sum()
    if draws:
        member = rng.choice(len(weights), len(features), p=weights)
        return np.asarray(predicted[member, np.arange(len(features))].argmax(axis=1))
    return np.asarray(np.einsum("m,mfa->fa", weights, predicted).argmax(axis=1))
