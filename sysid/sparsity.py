"""Which terms are there: supports under mixtures of normals, exactly sampled where the likelihood is quadratic."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_count, check_number, check_real_array, check_scale
from toolkit.seeds import GIBBS, derived_seed

from .derivative import check_data
from .model import as_model
from .prior_kernels import FLAT, GAUSSIAN, MIXTURE
from .priors import Prior, check_priors, spike_and_slab
from .supports import GibbsState, Mixtures, NormalLikelihood, compiled_moves
from .windows import smooth

__all__ = ["Sparse", "inclusion_probabilities", "natural_scales", "sparse_posterior", "sparse_prior"]

Array = NDArray[np.float64]
Quadratic = tuple[Array, Array, float]

FLAT_WIDTH = 1e6  # of a flat prior, in standard deviations that the likelihood leaves
SETTLING = 10  # first sweeps, in which parts change by so much that rank-one changes must not pile up
CHAINS = 4


class Sparse(NamedTuple):
    """Draws from the posterior of a quadratic likelihood under priors that are mixtures of normals.

    names: of the parameters (q,). inclusion: (q,), probabilities that terms are present. draws: (n, q), dependent as
    those of a Gibbs sampler are. present: (n, q), each draw's support.
    """

    names: tuple[str, ...]
    inclusion: Array
    draws: Array
    present: NDArray[np.bool_]

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
    ``sparse_prior`` refuses by name: no data speak of them.
    Raises TypeError or ValueError where data are no Series of the model's states, or the model is none.
    """
    model = as_model(model)
    terms, velocities = [], []
    for series in check_data(data, model):
        path, velocity = smooth(series, series.times)
        terms.append(model.library.evaluate(path))
        velocities.append(velocity)
    speed = np.sqrt(np.mean(np.concatenate(velocities) ** 2, axis=0))
    effect = np.einsum("nt,kte->nek", np.concatenate(terms), model.directions)
    touched = model.directions.any(axis=1).T  # (states, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(touched, np.mean((effect / speed[:, None]) ** 2, axis=0), 0.0)
        return np.asarray(np.sqrt(touched.sum(axis=0) / shares.sum(axis=0)))


def sparse_prior(
    prepared: Any, scales: Any, *, inclusion: float = 0.5, slab: float = 3.0, spike: float = 0.1
) -> dict[str, Prior]:
    """Spike and slab for each parameter of a quadratic likelihood, in units that data and likelihood give.

    prepared: what ``weak().prepare`` gives. scales: (q,), see ``natural_scales``. inclusion: prior probability of a
    term. slab: in scales, 3: a term may move the states 3 times as fast as they do. spike: in standard deviations that
    the likelihood leaves where all other coefficients are known, 0.1: so small that data cannot see it.
    Raises TypeError or ValueError for a likelihood that is not quadratic, and numbers out of range.
    """
    mean, precision, _ = quadratic_of(prepared)
    sizes = check_real_array("scales", scales)
    if sizes.shape != mean.shape:
        raise ValueError(f"scales must have shape {mean.shape}, got {sizes.shape}")
    bad = np.flatnonzero(~((sizes > 0.0) & np.isfinite(sizes)))
    if bad.size:
        why = ": its terms are 0 throughout the data, leave them out of the model" if sizes[bad[0]] == math.inf else ""
        raise ValueError(f"scales must be finite and > 0, got {sizes[bad[0]]:g} of {prepared.names[bad[0]]!r}{why}")
    widths = check_scale("slab", slab) * sizes
    narrow = check_scale("spike", spike) / np.sqrt(np.diag(precision))
    return {
        name: spike_and_slab(min(n, 1e-3 * w), w, inclusion=inclusion)
        for name, n, w in zip(prepared.names, narrow.tolist(), widths.tolist(), strict=True)
    }


def quadratic_of(prepared: Any) -> Quadratic:
    """The quadratic of a likelihood. Raises ValueError where it has none."""
    quadratic: Quadratic | None = getattr(prepared, "quadratic", None)
    if quadratic is None:
        raise ValueError(
            f"prepared must be a quadratic likelihood, as weak() and derivative() give, got {prepared!r:.80}"
        )
    return quadratic


def inclusion_probabilities(prepared: Any, prior: Any, *, sweeps: int = 1000, seed: int = 0) -> dict[str, float]:
    """Posterior probability that each term is present; arguments and what raises as of ``sparse_posterior``."""
    sparse = sparse_posterior(prepared, prior, sweeps=sweeps, seed=seed)
    return dict(zip(sparse.names, sparse.inclusion.tolist(), strict=True))


def sparse_posterior(prepared: Any, prior: Any, *, sweeps: int = 1000, seed: int = 0) -> Sparse:
    """Draws of a quadratic likelihood with normal, mixture or flat priors, by a Gibbs sampler over the mixtures' parts.

    The coefficients are integrated out of every move: with Λ of the likelihood and variances D of the parts, their
    precision is Λ + D⁻¹, which changes by rank one with one part. One more move a sweep exchanges the parts of a
    coefficient that is present and one that is absent, as terms that stand in for each other need. Four chains start
    from all widest or all narrowest parts.
    prior: as ``identify`` takes it: None, a Prior, or a mapping from names. sweeps: of all coefficients, per chain; the
    first fifth is dropped. seed: 0 to 2⁶⁴ − 1.
    Law: exact as sweeps → ∞. Source: George & McCulloch (1997), section 4.
    Raises ValueError for a Laplace or log-normal prior, or a likelihood that is not quadratic.
    """
    mean, precision, _ = quadratic_of(prepared)
    sweeps = check_count("sweeps", sweeps, at_least=10, below=10**7)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    laws = check_priors(prior, prepared.names)
    mixtures = parts_of(laws, prepared.names, 1.0 / np.sqrt(np.diag(precision)))
    centre = np.array([law.location if law.kind == GAUSSIAN else 0.0 for law in laws])
    streams = np.random.default_rng(derived_seed(seed, GIBBS)).spawn(CHAINS)  # the seed's own are of data.simulate
    runs = [chain(mean - centre, precision, mixtures, sweeps, k % 2 == 0, stream) for k, stream in enumerate(streams)]
    draws, present, chances = (np.concatenate([run[i] for run in runs]) for i in range(3))
    return Sparse(prepared.names, chances.mean(axis=0), centre + draws, present.astype(bool))


def parts_of(laws: tuple[Prior, ...], names: tuple[str, ...], spread: Array) -> Mixtures:
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
            variances[k, 0] = law.scale**2 if law.kind == GAUSSIAN else (FLAT_WIDTH * spread[k]) ** 2
        else:
            raise ValueError(f"prior[{names[k]!r}] must be flat, Gaussian or a mixture of normals, got {law}")
    return Mixtures(log_weights, variances, present, np.isfinite(log_weights).sum(axis=1))


def chain(
    mean: Array, precision: Array, mixtures: Mixtures, sweeps: int, wide: bool, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Draws, supports and probabilities of presence (n, q) of one chain."""
    settle, sweep, exchange = compiled_moves()
    q, present = len(mean), mixtures.present
    allowed = np.isfinite(mixtures.log_weights)
    widths = np.where(allowed, mixtures.variances, -1.0 if wide else math.inf)
    which = widths.argmax(axis=1) if wide else widths.argmin(axis=1)
    state = GibbsState(
        which=which,
        present=present[np.arange(q), which],
        presence=np.ones(q),
        mean=np.empty(q),
        cov=np.empty((q, q)),
        root=np.empty((q, q)),
        scale=np.empty(q),
    )
    likelihood = NormalLikelihood(np.ascontiguousarray(precision), precision @ mean)
    logs, column = np.empty(allowed.shape[1]), np.empty(q)
    kept: tuple[list[NDArray[Any]], ...] = ([], [], [])
    settle(likelihood, mixtures.variances, state)
    for number in range(sweeps):
        order = rng.permutation(q)
        for some in np.split(order, q) if number < SETTLING else [order]:
            sweep(likelihood, mixtures, state, some, rng.random(q), logs, column)
        if state.present.any() and not state.present.all():
            inside, outside = np.flatnonzero(state.present), np.flatnonzero(~state.present)
            i, j = inside[rng.integers(inside.size)], outside[rng.integers(outside.size)]
            if present[j, which[i]] and not present[i, which[j]]:
                exchange(likelihood, mixtures, state, i, j, rng.random(), column)
        if number >= sweeps // 5:
            kept[0].append(state.mean + state.scale * (rng.standard_normal(q) @ state.root))
            kept[1].append(state.present.copy())
            kept[2].append(state.presence.copy())
    return np.array(kept[0]), np.array(kept[1]), np.array(kept[2])
