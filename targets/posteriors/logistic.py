"""Bayesian logistic regression: one mode, features of any scale, minibatches, and a truth computed once and stored."""

from typing import Any

import numpy as np

from toolkit._compiler import inlined, kernel
from toolkit.errors import check_scale, check_text
from toolkit.maths.elementary import exp, fma, log, select
from toolkit.problem import Spread, Target

from .logistic_truth import LogisticTruth
from .minibatch import (
    N_DATA,
    N_DRAWN,
    N_SHARED,
    batch_rows,
    check_batch,
    check_table,
    evaluator,
    move_normal_prior,
    shared_numbers,
    use_normal_prior,
)

# After the numbers that all families share come the features times the labels' signs (data, dim), row by row.
TILE = 4  # data handled together, so that a row of the gradient is read and written once for four
WORK_ROWS = TILE + 1
FACTORS = 1000  # of 1 + e⁻ᵐ ≤ 2, whose product stays below 2¹⁰²³ and needs one logarithm


@kernel
def use_all_data(position, energy, gradient, parameters, work):
    """Energy and gradient from all data: the prior's, then four data at a time."""
    dim, n_data = position.shape[0], int(parameters[N_DATA])
    product = work[TILE]
    use_normal_prior(position, energy, gradient, parameters)
    for lane in range(energy.size):
        product[lane] = 1.0
    n_factors = 0
    for first in range(0, n_data, TILE):
        count = min(TILE, n_data - first)
        rows = parameters[N_SHARED + first * dim : N_SHARED + (first + count) * dim]
        for k in range(count):
            set_margins(position, rows[k * dim : (k + 1) * dim], work[k])
            add_losses(work[k], energy, product)
        add_gradients(gradient, rows, work, count)
        n_factors += count
        if n_factors > FACTORS - TILE or first + count == n_data:
            for lane in range(energy.size):
                energy[lane] += log(product[lane])
                product[lane] = 1.0
            n_factors = 0


@kernel
def set_margins(position, row, margin):
    """margin (lane,) ← row · x, four coordinates at a time."""
    dim = row.size
    for lane in range(margin.size):
        margin[lane] = 0.0
    for d in range(dim % 4):
        factor, x = row[d], position[d]
        for lane in range(margin.size):
            margin[lane] = fma(factor, x[lane], margin[lane])
    for d in range(dim % 4, dim, 4):
        r0, r1, r2, r3 = row[d], row[d + 1], row[d + 2], row[d + 3]
        x0, x1, x2, x3 = position[d], position[d + 1], position[d + 2], position[d + 3]
        for lane in range(margin.size):
            margin[lane] = fma(r0, x0[lane], fma(r1, x1[lane], fma(r2, x2[lane], fma(r3, x3[lane], margin[lane]))))


@kernel
def add_losses(margin, energy, product):
    """margin ← d/dm log(1 + e⁻ᵐ); energy += max(−m, 0) and product *= 1 + e^−|m|, which are its two parts."""
    for lane in range(margin.size):
        m = margin[lane]
        exponential = exp(-abs(m))
        factor = 1.0 + exponential
        energy[lane] -= select(m < 0.0, m, 0.0)
        product[lane] *= factor
        margin[lane] = -select(m < 0.0, 1.0, exponential) / factor


@kernel
def add_gradients(gradient, rows, work, count):
    """gradient += derivative · row for each of ``count`` data."""
    dim = gradient.shape[0]
    if count == TILE:
        p0, p1, p2, p3 = work[0], work[1], work[2], work[3]
        for d in range(dim):
            r0, r1, r2, r3 = rows[d], rows[dim + d], rows[2 * dim + d], rows[3 * dim + d]
            slope = gradient[d]
            for lane in range(slope.size):
                slope[lane] = fma(r0, p0[lane], fma(r1, p1[lane], fma(r2, p2[lane], fma(r3, p3[lane], slope[lane]))))
        return
    for k in range(count):
        derivative = work[k]
        for d in range(dim):
            factor, slope = rows[k * dim + d], gradient[d]
            for lane in range(slope.size):
                slope[lane] = fma(factor, derivative[lane], slope[lane])


@inlined
def loss(margin):
    """log(1 + e⁻ᵐ) and its derivative; nothing overflows."""
    exponential = exp(-abs(margin))
    value = log(1.0 + exponential) - select(margin < 0.0, margin, 0.0)
    return value, -select(margin < 0.0, 1.0, exponential) / (1.0 + exponential)


@kernel
def add_data(position, anchor, energy, gradient, parameters, pick, subtracts):
    """Add N/n times one datum's part in every lane; each lane has its own datum."""
    dim = position.shape[0]
    scale = parameters[N_DATA] / parameters[N_DRAWN]
    for lane in range(energy.size):
        row = parameters[N_SHARED + int(pick[lane]) * dim : N_SHARED + (int(pick[lane]) + 1) * dim]
        margin = 0.0
        for d in range(dim):
            margin = fma(row[d], position[d, lane], margin)
        value, derivative = loss(margin)
        if subtracts:
            margin = 0.0
            for d in range(dim):
                margin = fma(row[d], anchor[d, lane], margin)
            value_at_anchor, derivative_at_anchor = loss(margin)
            value, derivative = value - value_at_anchor, derivative - derivative_at_anchor
        energy[lane] = fma(scale, value, energy[lane])
        for d in range(dim):
            gradient[d, lane] = fma(scale * derivative, row[d], gradient[d, lane])


evaluate_logistic = evaluator(use_all_data, use_normal_prior, move_normal_prior, add_data)


def logistic_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``logistic_regression``."""
    evaluate_logistic(position, energy, gradient, parameters, scratch, scratch[scratch.shape[0] - WORK_ROWS :])


def logistic_regression(
    features: Any,
    labels: Any,
    *,
    prior: float = 10.0**0.5,
    batch_size: int | None = None,
    refresh_every: int | None = None,
    name: str = "",
) -> Target:
    """Posterior of x: U(x) = Σ_i log(1 + e^{−y_i f_i·x}) + ‖x‖²/(2 prior²), y_i = ±1, which has one mode.

    So P(y_i = 1) = 1/(1 + e^{−f_i·x}) and x ~ N(0, prior² I). features: f (data, dim), with a column of ones where
    an intercept is wanted (``datasets`` put one there). labels: (data,), 0 and 1 or −1 and 1. prior: standard deviation
    > 0. ``truth.log_evidence`` is log p(y), with the prior's constant, that exp(−U) leaves out.
    batch_size, refresh_every: as in ``linear.linear_regression``. A datum that is drawn costs some 13 times one of all
    data, which are read in order: of 569 data in 31 dimensions, batches of 64 take 1.5 times as long as all of them,
    and batches of 16 a third. Evaluated without overflow at any margin.
    Truth (``logistic_truth.LogisticTruth``): of all data at temperature 1; stored for the default data sets and prior,
    for others by a long run of HMC when first asked for, some 30 s for 1000 data in 25 dimensions.
    Source: cSG-MCMC (2020), A.2, which does not say its prior; N(0, 10 I) is our choice.
    Raises TypeError or ValueError naming the argument where something is off.
    """
    matrix, marks = check_table(features, "labels", labels)
    found = set(np.unique(marks).tolist())
    if not (found <= {0.0, 1.0} or found <= {-1.0, 1.0}):
        raise ValueError(f"labels must be 0 and 1, or −1 and 1, got {sorted(found)[:6]}")
    deviation = check_scale("prior", prior)
    n_drawn, refresh = check_batch(batch_size, refresh_every)
    n_data, dim = matrix.shape
    signed = matrix * np.where(marks > 0.0, 1.0, -1.0)[:, None]
    name = check_text("name", name) or f"logistic_regression({n_data} data in {dim}-D)"
    all_data, batches = (shared_numbers(n_data, *batch, deviation**-2) for batch in ((0, 0), (n_drawn, refresh)))
    full = Target(name, dim, logistic_block, np.concatenate([all_data, signed.ravel()]), WORK_ROWS)
    truth = LogisticTruth(full, signed, deviation)
    rows = batch_rows(dim, n_drawn, refresh) + WORK_ROWS
    parameters = np.concatenate([batches, signed.ravel()])
    return Target(name, dim, logistic_block, parameters, rows, truth, stochastic=n_drawn > 0, spread=Spread(deviation))
