"""Networks that classify digits: data, samplers at one price in gradients, scores, and paired bootstrap intervals.

Small data and a small network in place of the papers' image sets and residual networks: 8 × 8 digits (1797 rows, a
hidden layer of 50 units) and, where the extra ``mnist`` is installed, 5,000 digits of MNIST, each 2 × 2 pixels
averaged. What is compared is ours: the same posterior, starts, data and number of gradients for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from figures import Study
from figures.arrays import Array, Integers
from targets import posteriors
from toolkit import Run, samplers, schedules
from toolkit.errors import optional
from toolkit.samplers import Sampler
from toolkit.tempering import Partition, adapted_correction, continuous_tempering, contour

HIDDEN, PRIOR, TEMPERATURE, BATCH, FRICTION = (50,), 1.0, 0.1, 128, 0.1
MEMBERS = 4  # chains of an ensemble, replicas that interact
DRAWS = 40  # networks whose predictions are averaged
STEPS = (0.03, 0.1, 0.3, 1.0, 3.0)  # N times the step sizes that are tried
BINS = 15  # of the calibration error
METRICS = ("accuracy", "log_loss", "calibration_error", "auroc")


class Split(NamedTuple):
    """Rows to train on and rows to ask; labels count from 0."""

    features: Array
    labels: Integers
    asked: Array
    answers: Integers


def digits() -> tuple[Array, Integers]:
    """The 1797 digits of 8 × 8 grey levels from 0 to 1, and what they are."""
    found = optional("sklearn.datasets", "data").load_digits()
    return np.asarray(found.data, np.float64) / 16.0, np.asarray(found.target, np.int64)


def split(features: Array, labels: Integers, share: float = 0.7) -> Split:
    """The first ``share`` of the rows, in the file's order, to train on and the rest to ask."""
    first = int(share * len(labels))
    return Split(features[:first], labels[:first], features[first:], labels[first:])


def classes(part: Split, below: int) -> Split:
    """The rows of ``part`` of the classes below ``below``."""
    trained, asked = part.labels < below, part.answers < below
    return Split(part.features[trained], part.labels[trained], part.asked[asked], part.answers[asked])


# Samplers. Each is made for step sizes (chain,) and a number of steps; what it costs is ``members`` × replicas × steps.


class Method(NamedTuple):
    """A sampler of the table. members: independent chains of each repeat. is_point: only the last point predicts."""

    make: Callable[[Array, int], Sampler]
    members: int = 1
    replicas: int = 1
    is_point: bool = False


def momentum(step: Array, n_steps: int) -> Sampler:
    """SGD with momentum: SGHMC without noise, its step falling to 0 by a half cosine."""
    place = np.arange(n_steps) / n_steps
    falls = schedules.custom(0.5 * (np.cos(np.pi * place) + 1.0), temperature=np.zeros(n_steps))
    return samplers.sghmc(step, friction=FRICTION, schedule=falls)


def ladder(step: Array, n_steps: int) -> Sampler:
    """Four temperatures a quarter apart, each with a step in proportion; the correction aims at a tenth of swaps."""
    rungs = 1.25 ** np.arange(MEMBERS)
    return samplers.resgld(step[:, None] * rungs, temperatures=TEMPERATURE * rungs, correction=adapted_correction(0.1))


def interacting(step: Array, n_steps: int, friction: float) -> Sampler:
    """Four replicas that learn θ together, its weights and field as printed; friction 1 is ICSGLD."""
    tempering = contour(zeta=ZETA, partition=PARTITION, interpolated=False)
    made = samplers.icsghmc(step, n_replicas=MEMBERS, friction=friction, temperature=np.full(step.size, TEMPERATURE))
    return replace(made, tempering=tempering)


def tempered(step: Array, n_steps: int) -> Sampler:
    """TACT-HMC, with a step of ξ of its own: the energy's noise lets ξ bear no larger one."""
    made = samplers.tact_hmc(step, friction=FRICTION, temperature=TEMPERATURE)
    return replace(made, tempering=continuous_tempering(step_size=XI_STEP, friction=FRICTION))


ZETA, PARTITION, XI_STEP = 1.0, Partition(0.0, 50.0, 100), 1e-5
CYCLES: dict[str, Any] = {"n_cycles": 4, "exploration": 0.8, "temperature": TEMPERATURE}
METHODS = {
    "SGD": Method(momentum, is_point=True),
    "SGD ×4": Method(momentum, MEMBERS, is_point=True),
    "SGLD": Method(lambda step, n: samplers.sgld(step, temperature=TEMPERATURE)),
    "SGHMC": Method(lambda step, n: samplers.sghmc(step, friction=FRICTION, temperature=TEMPERATURE)),
    "SGHMC, T = 1": Method(lambda step, n: samplers.sghmc(step, friction=FRICTION)),
    "SGHMC ×4": Method(lambda step, n: samplers.sghmc(step, friction=FRICTION, temperature=TEMPERATURE), MEMBERS),
    "SGNHT": Method(lambda step, n: samplers.sgnht(step, friction=FRICTION, temperature=TEMPERATURE)),
    "cSGLD": Method(lambda step, n: samplers.cyclical_sgld(step, **CYCLES)),
    "cSGHMC": Method(lambda step, n: samplers.cyclical_sghmc(step, friction=FRICTION, **CYCLES)),
    "reSGLD ×4": Method(ladder, replicas=MEMBERS),
    "ICSGLD ×4": Method(lambda step, n: interacting(step, n, 1.0), replicas=MEMBERS),
    "ICSGHMC ×4": Method(lambda step, n: interacting(step, n, FRICTION), replicas=MEMBERS),
    "TACT-HMC": Method(tempered),
}


def run_method(
    study: Study, label: str, target: Any, method: Method, steps: Array, budget: int
) -> Run:  # fmt: skip
    """One run of ``budget`` gradients for each of ``steps`` (repeat,), its ``members`` being neighbouring chains."""
    n_steps = budget // (method.members * method.replicas)
    sampler = method.make(np.repeat(steps, method.members), n_steps)
    half = 0 if sampler.schedule.name.startswith("cosine") else n_steps // 2
    per_chain = DRAWS // (method.members * method.replicas)
    kept = n_steps - half if half else n_steps // 5
    return study.sample(
        label, target, sampler, n_steps=n_steps, n_chains=steps.size * method.members, on_divergence="keep",
        burn_in=n_steps - 1 if method.is_point else half, thin=1 if method.is_point else max(1, kept // per_chain),
    )  # fmt: skip


def predictions(run: Run, target: Any, members: int, asked: Array) -> Array:
    """Class probabilities (repeat, row, class): means over a repeat's draws, by their weights; nan if one diverged.

    A chain none of whose draws has a weight, which may happen under continuous tempering, gives its last draw.
    """
    weights = np.array(run.weights)
    weights[weights.sum(axis=1) == 0.0, -1] = 1.0
    found = np.einsum("cd,cdrk->crk", weights / weights.sum(axis=1, keepdims=True),
                      posteriors.predict(target, np.nan_to_num(run.draws), asked))  # fmt: skip
    found[run.diverged] = np.nan
    return found.reshape(-1, members, *found.shape[1:]).mean(axis=1)
