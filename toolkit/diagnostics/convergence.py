"""Convergence: autocorrelation, effective sample size and R̂."""

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import check_choice, check_count, check_number, check_row
from ..weighting import check_draw_weights, check_draws, rescaled

# Ranks, quantiles and normal scores of values with weights of mean 1; weights None: unweighted.

Array = NDArray[np.float64]


def ranks(values: Array, weights: Array | None) -> Array:
    """Ranks from 1, ties at their mean, of ``values`` with weights (same shape): ½ + the weight of smaller values.

    Half of the weight of a value and its ties counts as smaller.
    """
    flat = values.ravel()
    order = np.argsort(flat)
    arranged = flat[order]
    ends = np.arange(flat.size + 1.0) if weights is None else np.append(0.0, np.cumsum(weights.ravel()[order]))
    edges = np.append(np.flatnonzero(np.append(True, arranged[1:] != arranged[:-1])), flat.size)
    middles = 0.5 * (ends[edges[:-1]] + ends[edges[1:]]) + 0.5
    result = np.empty(flat.size)
    result[order] = middles if middles.size == flat.size else np.repeat(middles, np.diff(edges))
    return result.reshape(values.shape)


def normal_scores(values: Array, weights: Array | None) -> Array:
    """Φ⁻¹((rank − 3/8) / (n + 1/4)). Source: Blom (1958); Vehtari et al. (2021), eq. 14."""
    return np.asarray(scipy.special.ndtri((ranks(values, weights) - 0.375) / (values.size + 0.25)))


def quantile(values: Array, weights: Array | None, probability: float) -> float:
    """The largest value with at most (n − 1) p of the weight below it."""
    position = (values.size - 1) * probability * (1.0 + 1e-14)
    if weights is None:
        return float(np.partition(values, int(position), axis=None)[int(position)])
    order = np.argsort(values, axis=None)
    sorted_weights = weights.ravel()[order]
    last = np.searchsorted(np.cumsum(sorted_weights) - sorted_weights, position, side="right") - 1
    return float(values.ravel()[order[last]])


def median(values: Array, weights: Array | None) -> float:
    """The middle of the two values next to half of the weight."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, axis=None)
    ends = np.cumsum(weights.ravel()[order])
    half = 0.5 * ends[-1]
    positions = [np.searchsorted(ends, half, side="left"), np.searchsorted(ends, half, side="right")]
    low, high = values.ravel()[order[np.minimum(positions, values.size - 1)]]
    return float(0.5 * (low + high))


# Autocorrelation and effective sample sizes.

METHODS = ("bulk", "tail", "mean")
AT_ONCE = 2**22  # numbers transformed at a time


def autocovariance(values: Array) -> Array:
    """Sums over t of x_t x_{t+lag} / n, (chain, draw) → mean over chains, (draw,); centred at each chain's mean."""
    chains, n = values.shape
    size = scipy.fft.next_fast_len(2 * n, real=True)
    power = np.zeros(size // 2 + 1)
    for start in range(0, chains, max(1, AT_ONCE // size)):
        part = values[start : start + max(1, AT_ONCE // size)]
        part = part - part.mean(axis=1, keepdims=True)
        power += power_spectra(part, size).sum(axis=0)
    return np.asarray(scipy.fft.irfft(power, n=size, overwrite_x=True)[:n] / (n * chains))


def autocovariances(values: Array) -> Array:
    """As ``autocovariance``, but of each row by itself and about 0: (row, draw) → (row, draw)."""
    n = values.shape[1]
    size = scipy.fft.next_fast_len(2 * n, real=True)
    power = power_spectra(values, size)
    return np.asarray(scipy.fft.irfft(power, n=size, axis=1, overwrite_x=True)[:, :n] / n)


def power_spectra(values: Array, size: int) -> Array:
    """Squared moduli of the Fourier transform of each row, filled with zeros up to ``size``."""
    spectrum = scipy.fft.rfft(values, n=size, axis=1)
    return np.asarray(spectrum.real**2 + spectrum.imag**2)


def autocorrelation(draws: Any, *, n_lags: int | None = None) -> Array:
    """Autocorrelation of each chain and coordinate about its own mean, (chain, lag, dim), at lags 0 to ``n_lags``.

    draws: (chain, draw, dim). n_lags from 0 to draws − 1 (None: all). Sums over n − lag pairs are divided by n, so the
    sequence is positive definite and its sum over all lags of both signs is 0, whatever the draws: never add them all.
    nan for a coordinate that does not move. Weights do not enter: it is the chain's own, not that of the weighted law.
    Law: independent draws have −1/n at each lag ≥ 1, with a standard deviation of 1/√n; an AR(1) with coefficient φ has
    φ^lag, to order 1/n. Raises TypeError or ValueError where shapes do not fit.
    """
    points = check_draws(draws)
    chains, n, dim = points.shape
    lags = n if n_lags is None else check_count("n_lags", n_lags, at_least=0, below=n) + 1
    result = np.empty((chains, lags, dim))
    for chain in range(chains):
        for d in range(dim):
            values = rescaled(points[chain : chain + 1, :, d])
            if moves(values):
                covariance = autocovariance(values)
                result[chain, :, d] = covariance[:lags] / covariance[0]
            else:
                result[chain, :, d] = np.nan
    return result


def ess(draws: Any, *, weights: Any = None, method: str = "bulk") -> Array:
    """Effective sample size of each coordinate, (dim,): the independent draws that all chains together are worth.

    draws: (chain, draw, dim), as ``run.draws``; weights: (chain, draw), as ``run.weights``, up to a factor of each
    chain. method: 'mean' is for the mean; 'bulk' for that of the normal scores of the ranks, which heavy tails do not
    upset; 'tail' the smaller of those for the shares below the 5 % and the 95 % quantile. Each chain is split in two,
    autocovariances by FFT are averaged with the spread between the halves, and summed as long as sums of two are
    positive, made to decrease; at most n log₁₀ n for n draws, which antithetic chains reach. Where they rise later on,
    as of replicas whose draws are neighbours in ``run.draws``, sums of as many draws are judged instead.
    With weights: of the self-normalised estimate Σ_c Σ w f / Σ w / chains, f the coordinate, score or indicator: the
    variance of f under the weights over that of the estimate, by the autocovariance of w (f − mean) / mean w, to first
    order. It holds the loss by uneven weights and by autocorrelation both; for equal weights it is the number above.
    Law: on an AR(1) with coefficient φ, n (1 − φ) / (1 + φ). Says nothing of modes that no chain has found. nan where a
    coordinate does not move, where half a chain has no weight, or with fewer than 4 draws a chain. Raises TypeError or
    ValueError where shapes do not fit. Source: Vehtari et al. (2021), section 3 and 4; Geyer (1992), section 3.3.
    """
    points = check_draws(draws)
    scale = check_draw_weights(weights, points)
    check_choice("method", method, METHODS)
    if points.shape[1] < 4:
        return np.full(points.shape[2], np.nan)
    return np.array([coordinate_ess(points[..., d], scale, method) for d in range(points.shape[2])])


def coordinate_ess(values: Array, weights: Array | None, method: str) -> float:
    """``ess`` of one coordinate (chain, draw)."""
    if not moves(values, weights):
        return math.nan
    shares = split_weights(weights)
    if method == "tail":
        below = [halves((values <= quantile(values, weights, p)).astype(np.float64)) for p in (0.05, 0.95)]
        return min(mean_ess(b, shares) if moves(b, shares) else float(b.size) for b in below)
    split = halves(values)
    return mean_ess(normal_scores(split, shares) if method == "bulk" else rescaled(split), shares)


def mean_ess(values: Array, weights: Array | None) -> float:
    """Variance of ``values`` over that of their weighted mean, (half chain, draw)."""
    if not moves(values, weights):
        return math.nan
    if weights is None:
        return float(values.size / correlation_time(values, *chain_variances(values)))
    mean = float((values * weights).mean())
    parts = weights * (values - mean)
    within, between = chain_variances(parts)
    total = within * (values.shape[1] - 1) / values.shape[1] + between
    chain_weights = weights.sum(axis=1)
    if (chain_weights == 0.0).any() or total == 0.0:
        return math.nan
    centres = (weights * values).sum(axis=1) / chain_weights
    spread = (weights * (values - centres[:, None]) ** 2).mean() + centres.var(ddof=1)
    return float(spread * values.size / (total * correlation_time(parts, within, between)))


def chain_variances(values: Array) -> tuple[float, float]:
    """Mean of the chains' variances, and the variance of their means."""
    within = float(values.var(axis=1, ddof=1).mean())
    return within, float(values.mean(axis=1).var(ddof=1)) if len(values) > 1 else 0.0


def correlation_time(values: Array, within: float, between: float) -> float:
    """Integrated autocorrelation time by Geyer's initial monotone sequence, at least 1 / log₁₀ of the number."""
    return initial_sequence_time(autocovariance(values), within, between, values.size)


def initial_sequence_time(covariance: Array, within: float, between: float, size: int) -> float:
    """``correlation_time`` from the chains' mean autocovariance at each lag, (draw,). size: draws of all chains.

    Where correlation rises again after it has fallen, as that of replicas whose draws lie next to each other, the sum
    ends far too early. The sequence of sums of as many successive draws is then looked at, and the longer time counts.
    """
    n = len(covariance)
    total = within * (n - 1) / n + between
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    time, pairs, end = monotone_sequence(rho)
    period = rise(rho, pairs, end, size)
    if period:
        sums = covariance_of_sums(covariance, period)
        later = sums + between - sums[0] / max(1, len(sums) - 1)
        time = max(time, monotone_sequence(later / later[0])[0] * period * (sums[0] + between) / total)
    return max(time, 1.0 / math.log10(size))


def monotone_sequence(rho: Array) -> tuple[float, Array, int]:
    """The time by Geyer's initial monotone sequence, the sums of two correlations, and how many of them are positive.

    rho: correlation at each lag, (draw,).
    """
    n = len(rho)
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    nonpositive = np.flatnonzero(pairs <= 0.0)
    end = min(int(nonpositive[0]) if nonpositive.size else n, max(0, -(-(n - 4) // 2)))
    decreasing = np.minimum.accumulate(pairs[:end])
    last = float(rho[2 * end]) if rho[2 * end] > 0.0 or pairs[end] >= 0.0 else 0.0
    return 2.0 * float(decreasing.sum()) - 1.0 + last, pairs, end


LONGEST_PERIOD = 1024  # draws
SIGNIFICANT = 5.0  # standard deviations


def rise(rho: Array, pairs: Array, end: int, size: int) -> int:
    """The first lag at which correlation has risen again by more than chance, up to a quarter of a chain; 0: none.

    Chance: the standard deviation of a correlation beyond those of the initial sequence, by Bartlett (1946). pairs and
    end: as ``monotone_sequence`` returns them. size: draws of all chains.
    """
    chance = math.sqrt((1.0 + 2.0 * float((rho[1 : 2 * end] ** 2).sum())) / size)
    some = pairs[: min(LONGEST_PERIOD, len(rho) // 4) // 2]
    lowest = np.maximum(np.minimum.accumulate(some), 0.0)
    found = np.flatnonzero(some[1:] - lowest[:-1] > 2.0 * SIGNIFICANT * chance)
    if not found.size:
        return 0
    lag = 2 * int(found[0]) + 2
    return lag + int(rho[lag + 1] > rho[lag])


def covariance_of_sums(covariance: Array, period: int) -> Array:
    """Autocovariance of the means of ``period`` successive draws, at each of their lags, from that of the draws."""
    n = len(covariance) // period
    both = np.concatenate([covariance[period - 1 : 0 : -1], covariance, np.zeros(period)])
    found = np.zeros(n)
    for apart in range(1 - period, period):
        first = period - 1 + apart
        found += (period - abs(apart)) * both[first : first + n * period : period]
    return found / period**2


def ess_by_cutoff(draws: Any, *, mean: Any = None, variance: Any = None, cutoff: float = 0.05) -> Array:
    """The papers' effective sample size of each chain and coordinate, n / (1 + 2 Σ (1 − s/n) ρ_s), (chain, dim).

    draws: (chain, draw, dim). mean, variance: (dim,), of the law, from its truth or a long run; None: the chain's own.
    ρ_s is the mean of the n − s products (x_t − mean)(x_{t+s} − mean), over the variance. The sum ends before the first
    ρ_s < ``cutoff``, in (0, 1), and the result is at most n; nan for a coordinate that has its own variance, and does
    not move. The papers do not say where they end the sum: 0.05 is that
    of Hoffman & Gelman (2014). With the law's moments it sees a chain that is at the wrong place, or stays in one mode,
    where ρ stays large, unless that mode is at the law's mean; with the chain's own it sees neither.
    Law: independent draws have about n, less 2 n ρ_1 where that is above the cutoff by chance; an AR(1) with
    coefficient φ has n (1 − φ) / (1 + φ − 2 φ^k), k the first lag with φ^k < cutoff, so more than n (1 − φ) / (1 + φ).
    Raises TypeError or ValueError where shapes do not fit or a variance is not positive. Source: cSG-MCMC (2020),
    appendix, with the median over coordinates; TACT-HMC (2018), whose sum lacks 1 − s/n, to order 1/n the same.
    """
    points = check_draws(draws)
    chains, n, dim = points.shape
    check_number("cutoff", cutoff, above=0.0, below=1.0)
    centres = points.mean(axis=1) if mean is None else np.broadcast_to(check_row("mean", mean, dim), (chains, dim))
    deviations = points - centres[:, None]
    if variance is None:
        does_move = [[moves(chain[:, d]) for d in range(dim)] for chain in points]
        deviations = np.where(np.array(does_move)[:, None], rescaled(deviations), 0.0)
        spreads = (deviations**2).mean(axis=1)
    else:
        spreads = np.broadcast_to(check_row("variance", variance, dim), (chains, dim))
        if (spreads <= 0.0).any():
            raise ValueError(f"variance must be > 0, got {spreads.min()}")
    result = np.full((chains, dim), np.nan)
    shares = 1.0 - np.arange(n) / n
    moving = np.argwhere(spreads > 0.0)
    for start in range(0, len(moving), max(1, AT_ONCE // n)):
        chain, d = moving[start : start + max(1, AT_ONCE // n)].T
        tapered = autocovariances(deviations[chain, :, d]) / spreads[chain, d, None]
        is_small = tapered < cutoff * shares
        ends = np.where(is_small.any(axis=1), np.maximum(1, is_small.argmax(axis=1)), n)
        sums = np.array([row[1:end].sum() for row, end in zip(tapered, ends, strict=True)])
        result[chain, d] = np.minimum(n / (1.0 + 2.0 * sums), n)
    return result


def halves(values: Array) -> Array:
    """Both halves of every chain, (chain, draw) → (2 chain, draw // 2); the middle one of an odd number is omitted."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def split_weights(weights: Array | None) -> Array | None:
    """``halves`` of weights, with mean 1 over both halves of each chain."""
    if weights is None:
        return None
    split = halves(weights)
    means = split.mean(axis=1).reshape(2, -1).mean(axis=0)
    return np.asarray(split / np.tile(np.where(means > 0.0, means, 1.0), 2)[:, None])


def moves(values: Array, weights: Array | None = None) -> bool:
    """Whether the values with weight are not all equal, up to rounding."""
    counted = values if weights is None else values[weights > 0.0]
    if not counted.size:
        return False
    low, high = float(counted.min()), float(counted.max())
    return high - low > 1e-15 * max(abs(low), abs(high))


ROUNDING = 1e-24  # variance of normal scores due to rounding


def r_hat(draws: Any, *, weights: Any = None) -> Array:
    """R̂ of each coordinate, (dim,): the spread of all draws over that within the halves of the chains.

    draws: (chain, draw, dim), as ``run.draws``; weights: (chain, draw), as ``run.weights``, up to a factor of each
    chain; ranks, means and variances are then weighted. Of the normal scores of the ranks, and of those of the distance
    from the median; the larger of the two. One chain is compared with itself, its first half with its second.
    Law: for M halves of n independent draws each, n (R̂² − 1) + 1 is the larger of two F(M − 1, M (n − 1)), which are
    almost independent, so R̂ − 1 is of order 1/n; autocorrelation multiplies it. Above 1.01 chains have not mixed; near
    1 they agree with each other, all in one mode perhaps. inf where a coordinate stands still in every half chain, in
    different places; nan where all its draws are equal, where half a chain has no weight, or with fewer than 4 draws a
    chain. Raises TypeError or ValueError where shapes do not fit.
    Source: Vehtari et al. (2021), eq. 4, 14 and 15.
    """
    points = check_draws(draws)
    chain_weights, result = check_draw_weights(weights, points), np.full(points.shape[2], np.nan)
    if points.shape[1] < 4:
        return result
    scale = split_weights(chain_weights)
    for d in range(points.shape[2]):
        values = halves(points[..., d])
        if moves(values, scale):
            folded = np.abs(values - median(values, scale))
            result[d] = max(spread_ratio(normal_scores(v, scale), scale) for v in (values, folded))
    return result


def spread_ratio(values: Array, weights: Array | None) -> float:
    """R̂ of (half chain, draw); 1 where nothing moves."""
    n = values.shape[1]
    if weights is not None and not weights.any(axis=1).all():
        return math.nan
    shares = np.full(values.shape, 1.0 / n) if weights is None else weights / weights.sum(axis=1, keepdims=True)
    means = (shares * values).sum(axis=1)
    within = float((shares * (values - means[:, None]) ** 2).sum(axis=1).mean()) * n / (n - 1)
    between = float(means.var(ddof=1))
    return float(ratio_of_spreads(within, between, n))


def ratio_of_spreads(within: Any, between: Any, n: int) -> Array:
    """R̂ from the mean variance of half chains of ``n`` draws, and the variance of their means; numbers or arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n - 1) / n + np.divide(between, within))
    return np.where(np.less(within, ROUNDING), np.where(np.greater(between, ROUNDING), np.inf, 1.0), ratio)
