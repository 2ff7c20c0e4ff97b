"""Sparse posteriors: a Gibbs sampler over the parts of mixtures of normals, for quadratic likelihoods."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from numba import types
from numpy.typing import NDArray

from toolkit._compiler import compile_part, kernel
from toolkit.errors import (
    check_count,
    check_integers,
    check_number,
    check_progress,
    check_real_array,
    check_room,
    check_scale,
    shown,
)
from toolkit.maths.elementary import exp, log
from toolkit.maths.seeds import GIBBS, derived_seed

from .arrays import Array, Bools, Integers
from .data.series import with_inputs
from .likelihoods.smoothing import smooth
from .likelihoods.velocity import check_data
from .model import as_model
from .priors import FLAT, GAUSSIAN, MIXTURE, Prior, check_priors, spike_and_slab

__all__ = ["Sparse", "inclusion_probabilities", "natural_scales", "sparse_posterior", "sparse_prior", "term_degrees"]

MIN_FACTOR = 1e-14  # lower limit of 1 + x, which rounding can make 0
ROUNDING = 2.3e-16  # of a float64
MAX_ERROR = 1e-9  # relative, a bound of what rounding may do to a covariance that is only updated
MAX_ERROR_OF_MANY = 1e-5  # the same where computing it anew takes long: found to be 1e-6 and less
SMALLEST_RATE = 1e-12  # of inclusion, and of absence: their logs are finite


class NormalLikelihood(NamedTuple):
    """A likelihood that is normal in the coefficients."""

    precision: Array  # (q, q)
    weighted_mean: Array  # (q,), precision · mean


class GibbsState(NamedTuple):
    """The mixture part of every coefficient, and the normal law of the coefficients given these parts."""

    component: Integers  # (q,)
    present: Bools  # (q,), whether a coefficient's part means presence
    presence: Array  # (q,), the probability of that when the part was last drawn
    mean: Array  # (q,)
    cov: Array  # (q, q)
    root: Array  # (q, q), the inverse Cholesky factor of the precision in units of ``scale``
    scale: Array  # (q,)
    error: Array  # (1,), relative, that rounding may have left in ``cov``


class Mixtures(NamedTuple):
    """Mixtures' parts: log weights and variances (q, parts), which mean presence, and each mixture's number of them.

    A mixture with fewer parts has log weights −∞ at its end.
    """

    log_weights: Array
    variances: Array
    present: Bools
    counts: Integers  # (q,)


class Groups(NamedTuple):
    """Coefficients that share an inclusion rate, and their mixtures' log weights with that rate left out.

    sizes: how many coefficients each group has. mixed: (n,) places of those in any group. group_of: (n,) the group of
    each. rates: (n, parts), 2 × the group, + 1 where a part means presence. log_shares: (n, parts), of each part among
    those of its coefficient that mean the same, presence or absence.
    """

    sizes: list[int]
    mixed: Integers
    group_of: Integers
    rates: Integers
    log_shares: Array


@kernel
def log_evidence_change(change, variance, own_variance, mean):
    """Change of the log evidence, up to a constant, by ``change`` in a coefficient's prior 1/variance."""
    factor = max(1.0 + change * own_variance, MIN_FACTOR)
    return -0.5 * log(variance * factor) - 0.5 * change * mean * mean / factor


@kernel
def rank_one_update(cov, mean, j, change, column):
    """Add ``change`` to 1/variance j: cov (q, q) and mean (q,) of the coefficients, in place."""
    q = mean.shape[0]
    factor = change / max(1.0 + change * cov[j, j], MIN_FACTOR)
    mean_before = mean[j]
    for k in range(q):
        column[k] = cov[k, j]
    for k in range(q):
        step = factor * column[k]
        mean[k] -= step * mean_before
        for i in range(q):
            cov[k, i] -= step * column[i]


@kernel
def update_coefficients(likelihood, variances, state):
    """Recompute mean and covariance of the coefficients given their parts, whose variances are (q, parts).

    By the Cholesky factor of s (Λ + D⁻¹) s, with scales s (q,) that make its diagonal 1. In loops, as starting the
    threads of a BLAS takes longer than inverting matrices of this size.
    """
    precision, weighted_mean, component = likelihood.precision, likelihood.weighted_mean, state.component
    mean, cov, root, scale = state.mean, state.cov, state.root, state.scale
    q = mean.shape[0]
    for k in range(q):
        scale[k] = 1.0 / math.sqrt(precision[k, k] + 1.0 / variances[k, component[k]])
    for j in range(q):  # the Cholesky factor, transposed, in cov's upper triangle
        factor = cov[j]
        for i in range(j, q):
            factor[i] = 1.0 if i == j else precision[i, j] * scale[i] * scale[j]
        for k in range(j):
            step, before = cov[k, j], cov[k]
            for i in range(j, q):
                factor[i] -= step * before[i]
        factor[j] = math.sqrt(max(factor[j], MIN_FACTOR))
        for i in range(j + 1, q):
            factor[i] /= factor[j]
    for i in range(q):  # its inverse
        row = root[i]
        for j in range(q):
            row[j] = 0.0
        for k in range(i):
            step, before = cov[k, i], root[k]
            for j in range(k + 1):
                row[j] -= step * before[j]
        for j in range(i):
            row[j] /= cov[i, i]
        row[i] = 1.0 / cov[i, i]
    for i in range(q):  # its square, the lower triangle and then the upper one
        row = cov[i]
        for j in range(i + 1):
            row[j] = 0.0
        for k in range(i, q):
            step, before = root[k, i], root[k]
            for j in range(i + 1):
                row[j] += step * before[j]
        for j in range(i + 1):
            total = row[j]
            cov[j, i] = total * scale[j] * scale[i]
            cov[i, j] = total * scale[i] * scale[j]
    for i in range(q):
        mean[i] = 0.0
        for j in range(q):
            mean[i] += cov[i, j] * weighted_mean[j]
    state.error[0] = 0.0


@kernel
def sweep(likelihood, mixtures, state, order, uniforms, logs, column, max_error):
    """Draw the parts of the coefficients in ``order``, each given the others'; returns how many.

    Fewer than all where rounding may have added up to ``max_error``, so that mean and covariance must be computed anew.
    logs (parts,) and column (q,): scratch.
    """
    component, cov, mean = state.component, state.cov, state.mean
    log_weights, variances = mixtures.log_weights, mixtures.variances
    for i in range(order.shape[0]):
        j = order[i]
        n = mixtures.counts[j]
        highest = -1e300
        for k in range(n):
            change = 1.0 / variances[j, k] - 1.0 / variances[j, component[j]]
            logs[k] = log_weights[j, k] + log_evidence_change(change, variances[j, k], cov[j, j], mean[j])
            highest = max(highest, logs[k])
        total, presence = 0.0, 0.0
        for k in range(n):
            logs[k] = exp(logs[k] - highest)
            total += logs[k]
            if mixtures.present[j, k]:
                presence += logs[k]
        state.presence[j] = presence / total
        remainder = uniforms[j] * total
        drawn = n - 1
        for k in range(n - 1):
            remainder -= logs[k]
            if remainder < 0.0:
                drawn = k
                break
        if drawn != component[j]:
            change = 1.0 / variances[j, drawn] - 1.0 / variances[j, component[j]]
            state.error[0] += ROUNDING / max(1.0 + change * cov[j, j], MIN_FACTOR) ** 2
            rank_one_update(cov, mean, j, change, column)
            component[j] = drawn
        state.present[j] = mixtures.present[j, drawn]
        if state.error[0] > max_error:
            return i + 1
    return order.shape[0]


@kernel
def sweep_and_update(likelihood, mixtures, state, order, uniforms, logs, column, max_error):
    """``sweep`` over all of ``order``; mean and covariance computed anew where rounding asks for it, and at the end."""
    done = 0
    while done < order.shape[0]:
        done += sweep(likelihood, mixtures, state, order[done:], uniforms, logs, column, max_error)
        update_coefficients(likelihood, mixtures.variances, state)


@kernel
def precision_change(variances, component, k, proposed):
    """Change in 1/variance of coefficient k by the proposed part."""
    return 1.0 / variances[k, proposed] - 1.0 / variances[k, component[k]]


@kernel
def exchange_components(mixtures, state, i, j, uniform):
    """A Metropolis move that exchanges the parts of coefficients i and j; whether it did.

    Mean and covariance are left as they were.
    """
    component, cov, mean = state.component, state.cov, state.mean
    log_weights, variances, counts = mixtures.log_weights, mixtures.variances, mixtures.counts
    a, b = component[i], component[j]
    if a == b or a >= counts[j] or b >= counts[i]:
        return False
    ratio = log_weights[i, b] + log_weights[j, a] - log_weights[i, a] - log_weights[j, b]
    ratio += 0.5 * log(variances[i, a] * variances[j, b])
    first, second = precision_change(variances, component, j, a), precision_change(variances, component, i, b)
    ratio += log_evidence_change(first, variances[j, a], cov[j, j], mean[j])
    step = first / max(1.0 + first * cov[j, j], MIN_FACTOR) * cov[i, j]  # of coefficient i, by the first change
    ratio += log_evidence_change(second, variances[i, b], cov[i, i] - step * cov[i, j], mean[i] - step * mean[j])
    if log(uniform) >= ratio:
        return False
    component[i], component[j] = b, a
    state.present[i], state.present[j] = mixtures.present[i, b], mixtures.present[j, a]
    return True


VECTOR, MATRIX = types.float64[::1], types.float64[:, ::1]
INTEGERS = types.int64[::1]
LIKELIHOOD = types.BaseTuple.from_types((MATRIX, VECTOR), NormalLikelihood)
MIXTURES = types.BaseTuple.from_types((MATRIX, MATRIX, types.boolean[:, ::1], INTEGERS), Mixtures)
STATE = types.BaseTuple.from_types(
    (INTEGERS, types.boolean[::1], VECTOR, VECTOR, MATRIX, MATRIX, VECTOR, VECTOR), GibbsState
)


def compiled_update() -> Any:
    """``update_coefficients`` as machine code."""
    return compile_part(update_coefficients.py_func, types.void(LIKELIHOOD, MATRIX, STATE))


def compiled_sweep(*, updates: bool) -> Any:
    """``sweep_and_update``, or ``sweep`` alone, as machine code."""
    given = (LIKELIHOOD, MIXTURES, STATE, INTEGERS, VECTOR, VECTOR, VECTOR, types.float64)
    if updates:
        return compile_part(sweep_and_update.py_func, types.void(*given))
    return compile_part(sweep.py_func, types.int64(*given))


def compiled_exchange() -> Any:
    """``exchange_components`` as machine code."""
    given = (MIXTURES, STATE, types.int64, types.int64, types.float64)
    return compile_part(exchange_components.py_func, types.boolean(*given))


Quadratic = tuple[Array, Array, float]

SLAB = 3.0  # standard deviation of coefficients that are present, in natural scales
FLAT_SCALE = 1e6  # of a flat prior, in standard deviations that the likelihood leaves
N_SPLIT_SWEEPS = 10  # first sweeps, recomputed after every part: rank-one updates would add up rounding
CHAINS = 4
MAX_LOOPED = 64  # coefficients: of more, LAPACK inverts, when rounding asks for it and not after every sweep


class Sparse(NamedTuple):
    """Draws from the posterior of a quadratic likelihood under priors that are mixtures of normals.

    names: of the parameters (q,). inclusion: (q,), probabilities that terms are present. draws: (n, q), dependent as
    those of a Gibbs sampler are. present: (n, q), each draw's support.
    """

    names: tuple[str, ...]
    inclusion: Array
    draws: Array
    present: Bools

    @property
    def median(self) -> Array:
        """Posterior medians (q,)."""
        return np.asarray(np.median(self.draws, axis=0))

    @property
    def support(self) -> tuple[str, ...]:
        """The median probability model: terms at least as likely present as absent (Barbieri & Berger 2004)."""
        return tuple(name for name, share in zip(self.names, self.inclusion, strict=True) if share >= 0.5)

    def intervals(self, share: float = 0.9) -> Array:
        """Central intervals (2, q) that hold ``share`` of the draws."""
        share = check_number("share", share, above=0.0, below=1.0)
        return np.asarray(np.quantile(self.draws, [0.5 - 0.5 * share, 0.5 + 0.5 * share], axis=0))


def natural_scales(data: Any, model: Any) -> Array:
    """Size (q,) of each parameter at which its terms alone have the RMS of the velocities, those of smoothed data.

    data: a Series or several. model: a System, Library or Model. Infinite for terms that are 0 throughout, which
    ``sparse_prior`` refuses by name: data cannot determine them.
    Raises TypeError or ValueError where data are no Series of the model's states, or the model is none.
    """
    model = as_model(model)
    terms, velocities = [], []
    for series in check_data(data, model):
        path, velocity = smooth(series, series.times)
        terms.append(model.library.evaluate(with_inputs(series, model.library.inputs, series.times, path)))
        velocities.append(velocity)
    speed = np.sqrt(np.mean(np.concatenate(velocities) ** 2, axis=0))
    effect = np.einsum("nt,kte->nek", np.concatenate(terms), model.directions)
    touched = model.directions.any(axis=1).T  # (states, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(touched, np.mean((effect / speed[:, None]) ** 2, axis=0), 0.0)
        return np.asarray(np.sqrt(touched.sum(axis=0) / shares.sum(axis=0)))


def sparse_prior(
    prepared: Any, scales: Any, *, inclusion: float = 0.5, slab: float = SLAB, spike: float = 0.1
) -> dict[str, Prior]:
    """Spike and slab for each parameter of a quadratic likelihood, scaled to data and likelihood.

    prepared: what ``weak().prepare`` gives. scales: (q,), see ``natural_scales``. inclusion: prior probability of a
    term. slab: in scales, 3: a term may move the states 3 times as fast as they do. spike: in standard deviations that
    the likelihood leaves where all other coefficients are known, 0.1: so small that data cannot see it.
    Raises TypeError or ValueError for a likelihood that is not quadratic, and numbers out of range.
    """
    mean, precision, _ = quadratic_of(prepared)
    sizes = check_real_array("scales", scales)
    if sizes.shape != mean.shape:
        raise ValueError(f"scales must have shape {mean.shape}, got {sizes.shape}")
    check_finite_scales(sizes, prepared.names)
    widths = check_scale("slab", slab) * sizes
    narrow = check_scale("spike", spike) / np.sqrt(np.diag(precision))
    return {
        name: spike_and_slab(min(n, 1e-3 * w), w, inclusion=inclusion)
        for name, n, w in zip(prepared.names, narrow.tolist(), widths.tolist(), strict=True)
    }


def check_finite_scales(sizes: Array, names: tuple[str, ...]) -> None:
    """Raise ValueError naming a parameter whose scale is not finite and > 0."""
    bad = np.flatnonzero(~((sizes > 0.0) & np.isfinite(sizes)))
    if bad.size:
        why = ": its terms are 0 throughout the data, leave them out of the model" if sizes[bad[0]] == math.inf else ""
        raise ValueError(f"scales must be finite and > 0, got {sizes[bad[0]]:g} of {names[bad[0]]!r}{why}")


def quadratic_of(prepared: Any) -> Quadratic:
    """The quadratic of a likelihood. Raises ValueError where it has none."""
    quadratic: Quadratic | None = getattr(prepared, "quadratic", None)
    if quadratic is None:
        raise ValueError(
            f"prepared must be a quadratic likelihood, as weak() and derivative() give, got {shown(prepared)}"
        )
    return quadratic


def inclusion_probabilities(
    prepared: Any,
    prior: Any,
    *,
    groups: Any = None,
    sweeps: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> dict[str, float]:
    """Posterior probability that each term is present; arguments and what raises as of ``sparse_posterior``."""
    sparse = sparse_posterior(prepared, prior, groups=groups, sweeps=sweeps, seed=seed, progress=progress)
    return dict(zip(sparse.names, sparse.inclusion.tolist(), strict=True))


def term_degrees(model: Any) -> Integers:
    """Degree (q,) of the terms of each parameter, the highest; −1 where one of them is no monomial.

    model: a System, Library or Model. As ``groups`` of ``sparse_posterior``: terms of one degree share a rate.
    Raises TypeError where it is none of these.
    """
    model = as_model(model)
    touched = model.directions.any(axis=2)  # (q, terms)
    degrees = np.array([math.inf if term.powers is None else sum(term.powers) for term in model.library.terms])
    highest = np.where(touched, degrees, -1.0).max(axis=1)
    return np.where(np.isinf(highest), -1, highest).astype(np.int64)


def check_sweeps(sweeps: Any) -> int:
    """``sweeps``, from 10 on. Raises TypeError or ValueError."""
    return check_count("sweeps", sweeps, at_least=10, below=10**7)


def sparse_posterior(
    prepared: Any,
    prior: Any,
    *,
    groups: Any = None,
    sweeps: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> Sparse:
    """Draws of a quadratic likelihood with normal, mixture or flat priors, by a Gibbs sampler over the mixtures' parts.

    The coefficients are integrated out of every move: with Λ of the likelihood and variances D of the parts, their
    precision is Λ + D⁻¹, which changes by rank one with one part. One more move a sweep exchanges the parts of a
    coefficient that is present and one that is absent, as terms that stand in for each other need. Four chains start
    from all widest or all narrowest parts.
    prior: as ``identify`` takes it: None, a Prior, or a mapping from names. groups: (q,) integers, see
    ``term_degrees``: coefficients of the same number share an inclusion rate, unknown and uniform within (0, 1), in
    place of the one in their mixtures; None: each mixture's own. sweeps: of all coefficients, per chain; the first
    fifth is dropped. seed: 0 to 2⁶⁴ − 1. progress: a bar on stderr; None: only on a terminal.
    Cost of a sweep: O(q²) for each part that changes; up to 64 coefficients O(q³).
    Law: exact as sweeps → ∞. Source: George & McCulloch (1997), section 4; of the rates: Scott & Berger (2010),
    section 3.
    Raises ValueError for a Laplace or log-normal prior, a likelihood that is not quadratic, or groups of another shape.
    """
    mean, precision, _ = quadratic_of(prepared)
    sweeps = check_sweeps(sweeps)
    check_progress(progress)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    laws = check_priors(prior, prepared.names)
    check_room(
        "sweeps", sweeps, CHAINS * sweeps * (40.0 * len(mean) + 400.0)
    )  # draws, once in lists and once in arrays
    mixtures = mixtures_of(laws, prepared.names, 1.0 / np.sqrt(np.diag(precision)))
    grouped = None if groups is None else grouped_by(groups, mixtures)
    centre = np.array([law.location if law.kind == GAUSSIAN else 0.0 for law in laws])
    streams = np.random.default_rng(derived_seed(seed, GIBBS)).spawn(CHAINS)  # the seed's own are of data.simulate
    likelihood = NormalLikelihood(np.ascontiguousarray(precision), precision @ (mean - centre))
    root = precision_root(precision)
    runs = []
    with sweeps_bar(progress, CHAINS * sweeps) as bar:
        for k, stream in enumerate(streams):
            runs.append(run_chain(Chain(likelihood, root, mixtures, grouped, wide=k % 2 == 0), sweeps, bar, stream))
    draws, present, presence = (np.concatenate([run[i] for run in runs]) for i in range(3))
    return Sparse(prepared.names, presence.mean(axis=0), centre + draws, present.astype(bool))


def precision_root(precision: Array) -> Array:
    """A square root (q, q) of a precision, whose negative eigenvalues are rounding."""
    scale = np.sqrt(np.diag(precision))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def sweeps_bar(progress: bool | None, total: int) -> Any:
    """A bar of sweeps on stderr, without output where ``progress`` is False, or None and stderr no terminal."""
    from tqdm import tqdm

    return tqdm(
        total=total,
        desc="sparse posterior",
        unit="sweep",
        leave=False,
        disable=None if progress is None else not progress,
    )


def mixtures_of(laws: tuple[Prior, ...], names: tuple[str, ...], spread: Array) -> Mixtures:
    """Priors as mixtures; a flat one is a normal far wider than ``spread`` (q,)."""
    most = max(max(len(law.weights) for law in laws), 1)
    log_weights, variances = np.full((len(laws), most), -math.inf), np.ones((len(laws), most))
    present = np.ones((len(laws), most), bool)
    for k, law in enumerate(laws):
        if law.kind == MIXTURE:
            n = len(law.weights)
            log_weights[k, :n], variances[k, :n] = np.log(law.weights), np.square(law.scales)
            present[k, : law.spikes] = False
        elif law.kind in (FLAT, GAUSSIAN):
            log_weights[k, 0] = 0.0
            variances[k, 0] = law.scale**2 if law.kind == GAUSSIAN else (FLAT_SCALE * spread[k]) ** 2
        else:
            raise ValueError(f"prior[{shown(names[k])}] must be flat, Gaussian or a mixture of normals, got {law}")
    return Mixtures(log_weights, variances, present, np.isfinite(log_weights).sum(axis=1))


def grouped_by(groups: Any, mixtures: Mixtures) -> Groups:
    """The groups of coefficients whose mixtures have parts of both kinds. Raises where these are not (q,) integers."""
    numbers = check_integers("groups", groups)
    if numbers.shape != mixtures.counts.shape:
        raise ValueError(f"groups must have shape {mixtures.counts.shape}, got {numbers.shape}")
    weights = np.exp(mixtures.log_weights)
    shares = np.where(mixtures.present, weights, 0.0).sum(axis=1), np.where(mixtures.present, 0.0, weights).sum(axis=1)
    is_mixed = (shares[0] > 0.0) & (shares[1] > 0.0)
    total = np.where(mixtures.present, shares[0][:, None], shares[1][:, None])
    log_shares = mixtures.log_weights - np.log(np.where(is_mixed[:, None], total, 1.0))
    mixed = np.flatnonzero(is_mixed)
    _, group_of, sizes = np.unique(numbers[mixed], return_inverse=True, return_counts=True)
    rates = 2 * group_of[:, None] + mixtures.present[mixed]
    return Groups(sizes.tolist(), mixed, group_of, rates, log_shares[mixed])


class Chain:
    """One chain of the Gibbs sampler: its state, and the moves that keep its mean and covariance right.

    root: (q, q), root rootᵀ the likelihood's precision. groups: of coefficients that share an inclusion rate.
    """

    def __init__(
        self,
        likelihood: NormalLikelihood,
        root: Array,
        mixtures: Mixtures,
        groups: Groups | None = None,
        *,
        wide: bool,
    ) -> None:
        self.likelihood, self.root, self.groups = likelihood, root, groups
        self.mixtures = mixtures._replace(log_weights=mixtures.log_weights.copy())  # rates are drawn into it
        q, present = len(mixtures.counts), mixtures.present
        allowed = np.isfinite(mixtures.log_weights)
        widths = np.where(allowed, mixtures.variances, -1.0 if wide else math.inf)
        component = widths.argmax(axis=1) if wide else widths.argmin(axis=1)
        self.state = GibbsState(
            component=component,
            present=present[np.arange(q), component],
            presence=np.ones(q),
            mean=np.empty(q),
            cov=np.empty((q, q)),
            root=np.empty((q, q)),
            scale=np.empty(q),
            error=np.zeros(1),
        )
        self.is_looped = q <= MAX_LOOPED
        self._update_looped, self._exchange = compiled_update(), compiled_exchange()
        self._sweep = compiled_sweep(updates=self.is_looped)
        self._max_error = MAX_ERROR if self.is_looped else MAX_ERROR_OF_MANY
        self._logs, self._column = np.empty(allowed.shape[1]), np.empty(q)
        self.update()

    def update(self) -> None:
        """Mean and covariance of the coefficients given their parts, computed anew."""
        state, variances = self.state, self.mixtures.variances
        if self.is_looped:
            self._update_looped(self.likelihood, variances, state)
            return
        state.error[0] = 0.0
        total = self.likelihood.precision + np.diag(1.0 / variances[np.arange(len(variances)), state.component])
        state.scale[:] = 1.0 / np.sqrt(np.diag(total))
        factor = scipy.linalg.cholesky(total * state.scale * state.scale[:, None], lower=True, check_finite=False)
        inverse = np.tril(scipy.linalg.lapack.dpotri(factor, lower=1)[0]) * state.scale * state.scale[:, None]
        state.cov[:] = inverse + np.tril(inverse, -1).T
        state.mean[:] = state.cov @ self.likelihood.weighted_mean

    def sweep(self, rng: np.random.Generator, *, split: bool) -> None:
        """Draw all parts once, in random order, then try one exchange; split: update after every part."""
        state, q = self.state, len(self.state.mean)
        order = rng.permutation(q)
        for coordinates in np.split(order, q) if split and self.is_looped else [order]:
            self._sweep_over(coordinates, rng.random(q))
        n_present = np.count_nonzero(state.present)
        if 0 < n_present < q:
            inside, outside = state.present.nonzero()[0], (~state.present).nonzero()[0]
            i, j = inside[rng.integers(n_present)], outside[rng.integers(q - n_present)]
            present = self.mixtures.present
            fits = present[j, state.component[i]] and not present[i, state.component[j]]
            if fits and self._exchange(self.mixtures, state, i, j, rng.random()):
                self.update()

    def _sweep_over(self, coordinates: Integers, uniforms: Array) -> None:
        given = self.likelihood, self.mixtures, self.state
        scratch = self._logs, self._column, self._max_error
        if self.is_looped:
            self._sweep(*given, coordinates, uniforms, *scratch)
            return
        done = 0
        while done < len(coordinates):
            done += self._sweep(*given, coordinates[done:], uniforms, *scratch)
            if self.state.error[0] > self._max_error:
                self.update()

    def draw_rates(self, rng: np.random.Generator) -> None:
        """Draw each group's inclusion rate given which of its coefficients are present."""
        if self.groups is None:
            return
        sizes, mixed, group_of, rates, log_shares = self.groups
        counts = np.bincount(group_of[self.state.present[mixed]], minlength=len(sizes)).tolist()
        log_rates: list[float] = []
        for n, n_present in zip(sizes, counts, strict=True):
            rate = min(max(rng.beta(1 + n_present, 1 + n - n_present), SMALLEST_RATE), 1.0 - SMALLEST_RATE)
            log_rates += math.log1p(-rate), math.log(rate)
        self.mixtures.log_weights[mixed] = log_shares + np.array(log_rates)[rates]

    def draw(self, rng: np.random.Generator) -> Array:
        """Coefficients (q,) given their parts."""
        state, q = self.state, len(self.state.mean)
        if self.is_looped:
            return np.asarray(state.mean + state.scale * (rng.standard_normal(q) @ state.root))
        sds = np.sqrt(self.mixtures.variances[np.arange(q), state.component])
        # Normal with the covariance of the precision; times its inverse, with the covariance wanted.
        push = self.root @ rng.standard_normal(q) + rng.standard_normal(q) / sds
        return np.asarray(state.mean + state.cov @ push)


def run_chain(chain: Chain, sweeps: int, bar: Any, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draws, supports and probabilities of presence (n, q) of one chain."""
    kept: tuple[list[NDArray[Any]], ...] = ([], [], [])
    for number in range(sweeps):
        chain.sweep(rng, split=number < N_SPLIT_SWEEPS)
        chain.draw_rates(rng)
        if number >= sweeps // 5:
            kept[0].append(chain.draw(rng))
            kept[1].append(chain.state.present.copy())
            kept[2].append(chain.state.presence.copy())
        bar.update()
    return np.array(kept[0]), np.array(kept[1]), np.array(kept[2])
