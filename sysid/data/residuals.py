"""Tests of residuals: whether they are independent of each other, and whether the largest are outliers.

Likelihoods take the errors of the data for independent, all of one law. These tests need no model, only the residuals
of a fit, and the directions in which the fit could follow the errors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Bools, Integers

FALSE_ALARMS = (
    1e-3  # probability of a warning, of each of the two tests, where nothing is wrong; of all states together
)
MIN_VALUES = 20  # of a state; fewer are not tested
CLIPPED = 3.0  # robust standard deviations: larger residuals count as so large in the test of memory
VALUES_OF_A_LAG = 20  # lags go up to one of so many values, beyond which sums over lags have no known law
MOST_LAGS = 256
MOST_SQUARED_LAGS = 20  # of the sum of squares, as is usual for Ljung and Box's
OUTLIER_SHARE = 0.1  # of the values, at most, that are sought as outliers
MOST_OUTLIERS = 100
NORMAL_MAD = 0.6744897501960817  # median of |z| of a standard normal z
NAMED = 3  # outliers that a warning names


class ResidualPart(NamedTuple):
    """Residuals of one series, or of a piece of it that has a path of its own.

    series: its name. times: (n,). values: (n, dim), as measured. scores: (n, dim), residuals that are standard normal
    where the likelihood is right but for a factor, nan where nothing was measured. shared: (n, dim, q), directions in
    which all parts together can follow the errors, orthonormal over all of them. own: (n, dim, p), further ones of this
    part. The fit takes shared sharedᵀ + own ownᵀ of the covariance of the scores.
    """

    series: str
    times: Array
    values: Array
    scores: Array
    shared: Array
    own: Array


class Outlier(NamedTuple):
    """A value far from the fit. deviations: from the fit, in standard deviations of the other residuals."""

    series: str
    state: str
    time: float
    value: float
    deviations: float

    def __str__(self) -> str:
        """Where it is, and how far off."""
        return f"{self.value:.6g} of {self.state!r} at {self.time:.6g} in {self.series!r} ({self.deviations:+.3g} sd)"


class ResidualCheck(NamedTuple):
    """What the residuals of a fit say of its assumptions.

    Attributes
    ----------
    states : tuple of str
        Names of the states.
    correlation : ndarray, shape (dim,)
        Correlation of a residual with the next one; nan for a state with fewer than 20 values.
    memory : ndarray, shape (dim,)
        Probability that independent errors would leave residuals that are as strongly correlated, or more.
    outliers : tuple of Outlier
        Values that are too far from the fit for one of n values of the likelihood's law, the farthest first.
    """

    states: tuple[str, ...]
    correlation: Array
    memory: Array
    outliers: tuple[Outlier, ...]

    @property
    def has_memory(self) -> Bools:
        """Which states' residuals are not independent (dim,), by ``FALSE_ALARMS`` for all states together."""
        return np.asarray(self.memory * len(self.states) < FALSE_ALARMS)

    def memory_in_words(self) -> str:
        """The states whose residuals are not independent, with the correlation of neighbours and its probability."""
        return ", ".join(
            f"{self.states[d]} (correlation of neighbours {self.correlation[d]:.2f}, probability {self.memory[d]:.0e})"
            for d in np.flatnonzero(self.has_memory)
        )

    def doubts(self) -> list[str]:
        """What contradicts the likelihood, in words; none where nothing does."""
        found = []
        if self.has_memory.any():
            found.append(
                f"the residuals contradict independent errors: {self.memory_in_words()}. The errors are correlated in "
                "time, or the equations lack something that the data show. Intervals and probabilities are not to be "
                "trusted: thin the data until neighbours are independent, or give other equations or inputs"
            )
        if self.outliers:
            found.append(
                "values too far from the fit for the law of the errors, outliers: "
                f"{in_brief([str(one) for one in self.outliers])}. Replace mistakes by nan; if large errors belong to "
                "the data, take likelihoods.trajectory(errors='student'), or errors='lognormal' for errors that grow "
                "with the values"
            )
        return found


def in_brief(texts: Sequence[str]) -> str:
    """The first few of some texts, and how many more there are."""
    more = f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return "; ".join(texts[:NAMED]) + more


def residual_check(states: tuple[str, ...], parts: Sequence[ResidualPart]) -> ResidualCheck:
    """Test the residuals of a fit for correlation in time and for outliers.

    Parameters
    ----------
    states
        Names of the states.
    parts
        The residuals of all series or pieces.

    Returns
    -------
    ResidualCheck
        The statistics. Where errors are independent and Gaussian, ``doubts()`` of it names a memory in 1 of 1,000 fits,
        and outliers in 1 of 1,000 fits.

    Notes
    -----
    Memory: of the sums of products of residuals k apart, each over its own standard error, three kinds are compared
    with their laws: the first; the sums of the first 2, 4, 8, …, over their root, for slow departures; and the sum of
    squares, for all others. Standard errors are from the products themselves, so that the law needs no equal variances
    [1]_; residuals beyond 3 robust standard deviations count as 3. What the fit takes from the errors
    makes residuals negatively correlated: that mean is computed and subtracted. Sums are taken for gamma
    distributed, with the skewness of sums over independent errors.
    Outliers: Rosner's generalised test of extreme Studentised deviates [2]_, for up to a tenth of a state's values, of
    the residuals, and of the residuals less the median of the two before and the two after.

    References
    ----------
    .. [1] Lo & MacKinlay (1988), Review of Financial Studies 1, 41, eq. (18).
    .. [2] Rosner (1983), Technometrics 25, 165.
    """
    correlation, memory = np.full(len(states), np.nan), np.ones(len(states))
    outliers: list[Outlier] = []
    for d, state in enumerate(states):
        test = memory_test(parts, d)
        if test is None:
            continue
        shares, probabilities = test.of([part.scores[:, d] for part in parts])
        correlation[d], memory[d] = float(shares), float(probabilities)
        outliers += outliers_of(state, d, parts, FALSE_ALARMS / len(states))
    outliers.sort(key=lambda one: -abs(one.deviations))
    return ResidualCheck(states, correlation, memory, tuple(outliers))


class MemoryTest(NamedTuple):
    """The test of one state's residuals.

    measured: of each part, where there is a value (n,). taken: (lags,), sums of B Bᵀ between values k apart. freedom:
    of the residuals. size: how many values.
    """

    measured: list[Bools]
    taken: Array
    freedom: float
    size: int

    def of(self, scores: Sequence[Array]) -> tuple[Array, Array]:
        """Correlation of neighbours, and the probability of as much memory, of scores (…, n) of each part."""
        known = np.concatenate([s[..., m] for s, m in zip(scores, self.measured, strict=True)], axis=-1)
        scale = np.median(np.abs(known), axis=-1)[..., None] / NORMAL_MAD
        scale = np.where(scale > 0.0, scale, 1.0)
        lags, squares = len(self.taken), np.square(np.clip(known / scale, -CLIPPED, CLIPPED)).sum(axis=-1)[..., None]
        sums = variances = np.zeros(lags)
        for part, measured in zip(scores, self.measured, strict=True):
            clipped = np.where(measured, np.clip(part / scale, -CLIPPED, CLIPPED), 0.0)
            sums = sums + lagged_sums(clipped, lags)
            variances = variances + lagged_sums(clipped**2, lags)
        sums = sums + squares / self.freedom * self.taken
        z = sums / np.sqrt(np.maximum(variances, np.finfo(float).tiny))
        return sums[..., 0] / squares[..., 0], probability_of(z, self.size)


def memory_test(parts: Sequence[ResidualPart], d: int) -> MemoryTest | None:
    """The test of state ``d``; None where it has too few values."""
    measured = [np.isfinite(part.scores[:, d]) for part in parts]
    size = int(sum(m.sum() for m in measured))
    longest = max(m.size for m in measured)
    if size < MIN_VALUES or longest < 2:
        return None
    lags = max(1, min(size // VALUES_OF_A_LAG, longest - 1, MOST_LAGS))
    taken, spent = np.zeros(lags), 0.0
    for part, m in zip(parts, measured, strict=True):
        for directions in (part.shared, part.own):
            followed = np.where(m[:, None], directions[:, d], 0.0).T
            taken += lagged_sums(followed, lags).sum(axis=0)
            spent += float((followed**2).sum())
    return MemoryTest(measured, taken, max(size - spent, 1.0), size)


def lagged_sums(values: Array, lags: int) -> Array:
    """Σ_i values_i values_(i+k) (…, lags) for k = 1 … lags, of values (…, n)."""
    n = scipy.fft.next_fast_len(values.shape[-1] + lags, real=True)
    spectrum = scipy.fft.rfft(values, n)
    return np.asarray(scipy.fft.irfft(np.abs(spectrum) ** 2, n)[..., 1 : lags + 1])


def probability_of(z: Array, size: int) -> Array:
    """The probability of standard normal sums over lags (…, lags) that are as large as ``z`` or larger.

    The smallest of some statistics', times their number (Bonferroni). A sum over m lags, of independent errors, has a
    skewness of 3 √((m − 1)/size): the products of three errors, each two at most m apart.
    """
    found, m = [scipy.special.ndtr(-z[..., 0])], 2
    while m <= z.shape[-1]:
        freedom = 8.0 * size / (9.0 * (m - 1.0))  # of a χ² of this skewness
        level = freedom + np.sqrt(2.0 * freedom / m) * z[..., :m].sum(axis=-1)
        found.append(scipy.special.chdtrc(freedom, np.maximum(level, 0.0)))
        m *= 2
    squared = min(z.shape[-1], MOST_SQUARED_LAGS)
    found.append(scipy.special.chdtrc(squared, np.square(z[..., :squared]).sum(axis=-1)))
    return np.asarray(np.minimum(len(found) * np.min(found, axis=0), 1.0))


def outliers_of(state: str, d: int, parts: Sequence[ResidualPart], probability: float) -> list[Outlier]:
    """The outliers of a state, of which one is found with at most this probability where there are none.

    They are far from the fit, and from the residuals about them: a misfit that lasts for a while is none.
    """
    rows = [np.flatnonzero(np.isfinite(part.scores[:, d])) for part in parts]
    scores = np.concatenate([part.scores[r, d] for part, r in zip(parts, rows, strict=True)])
    found, mean, sd = extreme_deviates(scores, probability)
    departures = [part.scores[r, d] - course(part.scores[r, d]) for part, r in zip(parts, rows, strict=True)]
    alone, _, _ = extreme_deviates(np.concatenate(departures), probability)
    found = found[np.isin(found, alone)]
    part_of = np.repeat(np.arange(len(parts)), [r.size for r in rows])
    row_of = np.concatenate(rows)
    outliers = []
    for k in found:
        part, row = parts[part_of[k]], row_of[k]
        deviations = float(scores[k] - mean) / sd
        outliers.append(Outlier(part.series, state, float(part.times[row]), float(part.values[row, d]), deviations))
    return outliers


def course(values: Array) -> Array:
    """The median (n,) of the two values before each and the two after."""
    if values.size < 2:
        return np.zeros(values.size)
    padded = np.pad(values, 2, constant_values=np.nan)
    return np.asarray(np.nanmedian([padded[:-4], padded[1:-3], padded[3:-1], padded[4:]], axis=0))


def extreme_deviates(values: Array, probability: float) -> tuple[Integers, float, float]:
    """The outliers among ``values`` (n,), as indices, and mean and standard deviation of the others.

    Source: Rosner (1983): the farthest from the mean is taken out, one after the other; those up to the last whose
    distance in standard deviations of the rest is beyond its law are outliers.
    """
    n = values.size
    most = min(max(int(OUTLIER_SHARE * n), 1), MOST_OUTLIERS)
    order = np.argsort(values)
    centre = float(np.median(values))
    centred = (values[order] - centre).tolist()
    first, last = 0, n - 1  # of those left, in order of size
    total, squares = float(np.sum(centred)), float(np.sum(np.square(centred)))
    removed: list[int] = []
    n_outliers, mean, sd = 0, *moments(total, squares, n)
    left = mean, sd
    while len(removed) < most and sd > 0.0:
        k = n - len(removed)
        t = -scipy.special.stdtrit(k - 2, 0.5 * probability / k)
        critical = (k - 1) * t / np.sqrt((k - 2 + t**2) * k)
        is_high = centred[last] - mean >= mean - centred[first]
        farthest = last if is_high else first
        is_far = abs(centred[farthest] - mean) > critical * sd
        first, last = first + (not is_high), last - is_high
        removed.append(int(order[farthest]))
        total, squares = total - centred[farthest], squares - centred[farthest] ** 2
        mean, sd = moments(total, squares, k - 1)
        if is_far:
            n_outliers, left = len(removed), (mean, sd)
    return np.array(removed[:n_outliers], np.int64), centre + left[0], left[1]


def moments(total: float, squares: float, n: int) -> tuple[float, float]:
    """Mean and standard deviation of n values, from their sum and that of their squares."""
    mean = total / n
    return mean, float(np.sqrt(max(squares - n * mean**2, 0.0) / (n - 1)))
