"""TACT-HMC, its two ablations and replica exchange on one target, and how well each finds modes and their widths.

The paper prints none of these settings for its synthetic targets but that noise is unknown to all samplers; c, γ and K
are those of its networks, η_ξ a tenth of η_θ so that one excursion of ξ lasts while θ crosses to another mode.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf

from targets.mixtures.truth import MixtureTruth
from toolkit import Run, dynamics, samplers, tempering
from toolkit.problem import Target
from toolkit.samplers import Sampler

from ...arrays import Array
from ...scripts.claims import THEORY, Claim, said_above
from ...scripts.study import Study

TACT, NO_THERMOSTATS, NO_TEMPERING, EXCHANGE = "TACT-HMC", "no thermostats", "no tempering", "replica exchange"
LABELS = (TACT, NO_THERMOSTATS, NO_TEMPERING, EXCHANGE)
HOT, HOT_STEP, EXCHANGE_INERTIA = 12.0, 2.5, 20.0  # of replica exchange: hot temperature, its share of η, γ
MIN_CHAINS = 8  # chains, below which their spread says little


class Settings(NamedTuple):
    """Numbers of all four samplers. noise: standard deviation of each gradient's coordinates and of each energy."""

    step_size: float = 0.02  # η_θ
    coupling_share: float = 0.1  # η_ξ / η_θ
    friction: float = 0.05  # c of θ and ξ
    inertia: float = 1.0  # γ of θ and ξ
    top: float = 15.0  # g(1), the highest effective temperature
    keep_every: int = 50  # K
    noise: float = 3.0


def tact_sampler(settings: Settings, *, thermostats: bool = True) -> Sampler:
    """TACT-HMC; thermostats=False: the ablation, tempered at constant friction."""
    named = samplers.tact_hmc(
        settings.step_size, friction=settings.friction, inertia=settings.inertia, thermostat=thermostats,
        gradient_noise=settings.noise, energy_noise=settings.noise,
    )  # fmt: skip
    return replace(
        named,
        tempering=tempering.continuous_tempering(
            top_temperature=settings.top, step_size=settings.coupling_share * settings.step_size,
            friction=settings.friction, inertia=settings.inertia, thermostat=thermostats,
            resample_every=settings.keep_every,
        ),
    )  # fmt: skip


def exchange_sampler(settings: Settings) -> Sampler:
    """Two replicas at temperatures 1 and HOT, both thermostatted, that may swap at every step; F estimated as it runs.

    Its inertia is larger, as the thermostat's variance is h T/γ and T is 12.
    """
    h = settings.step_size
    return Sampler(
        "replica_exchange",
        (h, HOT_STEP * h),
        (1.0, HOT),
        dynamics=dynamics.nose_hoover(friction=settings.friction, inertia=EXCHANGE_INERTIA),
        tempering=tempering.replica_exchange(correction=tempering.estimated_correction(every=200, evaluations=10)),
        gradient_noise=settings.noise,
        energy_noise=settings.noise,
    )


def all_samplers(settings: Settings) -> dict[str, Sampler]:
    """The four by LABELS."""
    alone = samplers.sgnht(
        settings.step_size, friction=settings.friction, inertia=settings.inertia, gradient_noise=settings.noise
    )
    four = tact_sampler(settings), tact_sampler(settings, thermostats=False), alone, exchange_sampler(settings)
    return dict(zip(LABELS, four, strict=True))


def equal_cost(sampler: Sampler, n_steps: int, burn_in: int, keep_every: int) -> Mapping[str, Any]:
    """Settings of ``sample`` with n_steps gradient evaluations per chain after burn_in of them."""
    replicas = sampler.n_replicas
    return {"n_steps": (burn_in + n_steps) // replicas, "burn_in": burn_in // replicas, "thin": keep_every}


def runs_at_equal_cost(
    study: Study, target: Target, settings: Settings, *, n_chains: int, n_steps: int, burn_in: int, start: Any,
    suffix: str = "",
) -> Iterator[tuple[Run, Array]]:  # fmt: skip
    """A run of each of the four, and the draws (n, dim) of all its chains that count."""
    for label, sampler in all_samplers(settings).items():
        plan = equal_cost(sampler, n_steps, burn_in, settings.keep_every)
        run = study.sample(label + suffix, target, sampler, n_chains=n_chains, init=start, **plan)
        yield run, run.draws[run.weights > 0.0]


def counted_draws(run: Run) -> Array:
    """The draws of each chain that count, cut to the number of the chain with the fewest: (chain, draw, dim)."""
    counts = run.weights > 0.0
    fewest = int(counts.sum(axis=1).min())
    return np.stack([draws[where][:fewest] for draws, where in zip(run.draws, counts, strict=True)])


def truth_of(target: Target) -> MixtureTruth:
    """The truth of a mixture."""
    assert isinstance(target.truth, MixtureTruth)
    return target.truth


def mode_errors(run: Run, truth: MixtureTruth) -> Array:
    """Weights and variances of the modes over the true ones, (2, mode, 2): each with its standard error over chains.

    A variance is the mean of (x − μ)ᵀ Σ⁻¹ (x − μ) / dim, weighted with the mode's membership. Where fewer than FEW
    chains have been in the mode it is nan, and where as few have been in it, or elsewhere, the error of the weight is
    at least that of one chain more.
    """
    counts = run.weights > 0.0
    points, chain = run.draws[counts], np.repeat(np.arange(run.n_chains), counts.sum(axis=1))
    shares = truth.memberships(points)
    offsets = points[:, None] - truth.means
    squares = np.einsum("nki,kij,nkj->nk", offsets, np.linalg.inv(truth.covariances), offsets, optimize=True)
    found, spread = (
        np.stack([np.bincount(chain, column, run.n_chains) for column in columns.T], axis=1).astype(np.float64)
        for columns in (shares, shares * squares / points.shape[1])
    )
    total = found.sum(axis=1, keepdims=True)
    weights = ratio(found, total)
    inside, outside = ((share > 1.0).sum(axis=0) for share in (found, total - found))
    min_error = np.where(np.minimum(inside, outside) < MIN_CHAINS, 1.0 / len(found), 0.0)
    weights[:, 1] = np.maximum(weights[:, 1], min_error)
    variances = np.where(inside[:, None] < MIN_CHAINS, np.nan, ratio(spread, found))
    return np.stack([weights / truth.weights[:, None], variances])


def ratio(numerator: Array, denominator: Array) -> Array:
    """Σ above / Σ below over chains (chain, mode), with its standard error, (mode, 2)."""
    total = np.maximum(denominator.sum(axis=0), 1e-300)
    value = numerator.sum(axis=0) / total
    spread = ((numerator - value * denominator) ** 2).sum(axis=0) * len(numerator) / (len(numerator) - 1.0)
    return np.stack(np.broadcast_arrays(value, np.sqrt(spread) / total), axis=-1)


def in_standard_errors(table: Array) -> Array:
    """How far each of ``mode_errors`` is from 1, in its standard errors."""
    return np.asarray((table[..., 0] - 1.0) / table[..., 1])


def mode_rows(target: str, label: str, table: Array, n_kept: int, per_draw: float) -> list[dict[str, Any]]:
    """One row per mode and quantity: its ratio to the truth, standard error, and error in standard errors."""
    return [
        {
            "target": target,
            "sampler": label,
            "draws": n_kept,
            "gradient_evaluations_per_draw": per_draw,
            "quantity": quantity,
            "mode": mode + 1,
            "over_truth": float(table[q, mode, 0]),
            "standard_error": float(table[q, mode, 1]),
            "error_in_standard_errors": float(in_standard_errors(table)[q, mode]),
        }
        for q, quantity in enumerate(("weight", "variance"))
        for mode in range(table.shape[1])
    ]


def largest_of(k: int) -> tuple[float, float]:
    """Mean and standard deviation of the largest of the absolute values of ``k`` independent standard normals."""
    x = np.linspace(0.0, 9.0, 9_001)
    above = 1.0 - erf(x / np.sqrt(2.0)) ** k
    mean = np.trapezoid(above, x)
    return float(mean), float(np.sqrt(2.0 * np.trapezoid(x * above, x) - mean**2))


def claims_of_ablations(tables: Array, where: str, text: str) -> list[Claim]:
    """That TACT-HMC alone is right, of ``mode_errors`` of each of LABELS (sampler, 2, mode, 2).

    TACT-HMC's largest error in standard errors is set beside that of exact draws; the excess of each ablation in what
    it lacks is a claim in words.
    """
    quantities = ("weight", "variance")
    n_modes = tables.shape[2]
    exact, spread = largest_of(n_modes)
    worst = {
        label: np.nanmax(np.abs(in_standard_errors(table)), axis=1) for label, table in zip(LABELS, tables, strict=True)
    }
    claims = [
        Claim(f"{where}{TACT}: largest error of the {n_modes} modes' {quantity}s, in standard errors", exact,
              float(worst[TACT][q]), 0.0, exact, spread, f"{text}, “correctly sampling”: as of exact draws",
              origin=THEORY)
        for q, quantity in enumerate(quantities)
    ]  # fmt: skip
    apart = spread * 2.0**0.5  # of two largest ones, independent
    for label, q, words in ((NO_THERMOSTATS, 1, "a spread histogram"), (NO_TEMPERING, 0, "trapped by … barriers")):
        excess = float(worst[label][q] - worst[TACT][q])
        what = f"{where}{label}: largest error of a mode's {quantities[q]}, in standard errors, less {TACT}'s"
        claims.append(said_above(what, 0.0, (excess, apart), f"{text}, “{words}”"))
    return claims + [
        Claim(f"{where}{label}: largest error of a mode's {quantities[q]}, in standard errors", np.nan,
              float(worst[label][q]), 1.0, "lower")
        for label, q in ((NO_THERMOSTATS, 0), (NO_TEMPERING, 1), (EXCHANGE, 0), (EXCHANGE, 1))
    ]  # fmt: skip
