"""Step sizes by the law of the moves: how much too wide gradient noise and the step's own length make a coordinate."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._compiler.block_rows import CHAIN, MODE, REPLICA, SEED_HIGH, SEED_LOW, STEP
from ..dynamics import Dynamics, hmc
from ..samplers.sampler import Sampler, coordinate_scales, scale_matrix
from .exploration import Explored
from .study import LANES, Floats, Study, mean_outer_product, rounded, study_seed

BIAS = 0.02  # of a standard deviation, so twice that of a variance
EXACT_STEPS = 32  # of HMC, half of which are left out
MINIMA, DIFFERENCE, FLATTEST = 4, 1e-5, 1e-8  # points; of their size; of the largest curvature
NEWTON_STEPS, AT_MINIMUM = 8, 1e-4  # at most; g · K⁻¹ g over T for each coordinate, about (offset / width)²
LANGEVIN_WIDTH = 0.25  # of dynamics whose own width is unknown
BATCHES = 16  # minibatches of a point, whose gradients differ by their noise


class StepSize(NamedTuple):
    """Found: the step size, its bias in standard deviations with what is uncertain of it, and states (chain, dim).

    is_measured: the bias is that of chains; else it is by a law, or nothing was found.
    """

    step_size: float
    bias: float
    uncertainty: float
    states: Floats
    is_measured: bool


def noise_covariance(study: Study, sampler: Sampler, points: Floats) -> Floats:
    """Covariance of the gradient noise, (dim, dim): of minibatches, the mean over ``points`` (n, dim), and given.

    Control variates have another of the points as their anchor, which is the most noise that they ever have.
    """
    given = sampler.gradient_noise**2 * np.eye(study.dim)
    target = study.problem.target
    if not target.stochastic:
        return given
    exact = study.evaluate(points)[1]
    position = np.array(points.T, order="C")
    anchors = np.roll(position, 1, axis=1)
    energy, gradient = np.empty(len(points)), np.empty_like(position)
    scratch, total = np.zeros((target.scratch_rows, len(points))), np.zeros((study.dim, study.dim))
    for batch in range(1, BATCHES + 1):
        for step, places in ((0, anchors), (batch, position)):
            scratch[[MODE, STEP, CHAIN, REPLICA, SEED_HIGH, SEED_LOW]] = 0.0
            scratch[MODE], scratch[STEP], scratch[CHAIN] = 1.0, float(step), np.arange(float(len(points)))
            scratch[SEED_LOW] = float(study.seed % 2**32)
            target.compiled()(places, energy, gradient, target.parameters, scratch)
        noise = gradient.T - exact
        total += noise.T @ noise / len(points)
    study.spent += 2 * BATCHES * len(points)
    return np.asarray(given + total / BATCHES)


def most_for_noise(study: Study, sampler: Sampler, states: Floats) -> float:
    """The step size at which gradient noise alone makes the widest coordinate too wide by ``BIAS``; inf without noise.

    With s² the variance of the noise, that is h s²/(4 T) for Langevin dynamics; others know their own heating.
    """
    variances = np.diagonal(noise_covariance(study, sampler, states[:LANES]))
    if study.scale is not None:
        variances = variances * np.array(study.scale) ** 2
    dynamics, quarter = sampler.dynamics, 4.0 * study.temperature
    heating = float(variances.max()) / quarter
    if dynamics.known.heating is not None:
        factor, compensated = dynamics.known.heating(dynamics.parameters)
        heating = max(0.0, heating - compensated / quarter) * factor
    elif dynamics.known.noise_in_thermostat is not None:
        heating = dynamics.known.noise_in_thermostat(dynamics, variances / quarter, BIAS)
    return BIAS / heating if heating > 0.0 else math.inf


class Normal(NamedTuple):
    """Normal laws around minima of the energy of all data, as the curvature there says.

    minima: (n, dim). values, directions: eigenvalues (n, dim) and vectors (n, dim, dim) of the curvature there; widths:
    √(T / values), (n, dim). draws: (chain, dim); where curvatures are not finite the points given, and n is 0.
    """

    minima: Floats
    values: Floats
    directions: Floats
    widths: Floats
    draws: Floats


def around_minima(study: Study, points: Floats) -> Normal:
    """The normal laws around the minima that Newton's method finds from ``MINIMA`` of ``points`` (chain, dim).

    points: where descent ended. It leaves flat directions far from their minimum where curvatures differ by 10⁴.
    """
    picked = points[np.linspace(0, len(points) - 1, MINIMA).astype(np.int64)]
    found = newton_minima(study, picked)
    if found is None:
        none = np.zeros((0, study.dim))
        return Normal(none, none, np.zeros((0, study.dim, study.dim)), none, points)
    minima, values, directions = found
    widths = np.sqrt(study.temperature / values)
    of_each = np.arange(len(points)) % MINIMA
    normals = np.random.default_rng([study_seed(study.seed, 0), 2]).standard_normal(points.shape)
    draws = minima[of_each] + np.einsum("nij,nj,nj->ni", directions[of_each], widths[of_each], normals)
    draws = np.where(study.problem.contains(draws)[:, None], draws, points)
    return Normal(minima, values, directions, widths, draws)


def newton_minima(study: Study, points: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Minima (n, dim) near ``points``, with eigenvalues and vectors of the curvature there; None where not finite.

    Newton's steps with the absolute values of the eigenvalues, in the domain, halved where neither the energy falls nor
    g · K⁻¹ g, twice the energy that such a step promises.
    """
    points = np.array(points)
    energy, gradient = study.evaluate(points)
    shares, active = np.ones(len(points)), np.ones(len(points), np.bool_)
    values, directions = np.zeros_like(points), np.zeros((*points.shape, study.dim))
    enough = AT_MINIMUM * study.dim * study.temperature
    for step in range(NEWTON_STEPS + 1):
        curved = active & (shares == 1.0)  # the others have not moved
        curvature = curvature_at(study, points[curved])
        if not np.isfinite(curvature).all() or (len(curvature) and not curvature.any()):
            return None
        values[curved], directions[curved] = eigenvalues_of(curvature)
        newton, promised = newton_step(values, directions, gradient)
        active &= promised > enough
        if step == NEWTON_STEPS or not active.any():
            break
        trial = points - shares[:, None] * newton
        moves = active & study.problem.contains(trial)
        new_energy, new_gradient = study.evaluate(np.where(moves[:, None], trial, points)[active])
        falls = moves[active] & (
            (new_energy < energy[active])
            | (newton_step(values[active], directions[active], new_gradient)[1] < promised[active])
        )
        moved = np.flatnonzero(active)[falls]
        points[moved], energy[moved], gradient[moved] = trial[moved], new_energy[falls], new_gradient[falls]
        shares[active] *= 0.5
        shares[moved] = 1.0
    return points, values, directions


def curvature_at(study: Study, points: Floats) -> Floats:
    """The curvature of the energy of all data at ``points`` (n, dim), by differences of gradients, (n, dim, dim)."""
    steps = DIFFERENCE * np.maximum(np.abs(points), 1.0)[:, :, None] * np.eye(study.dim)  # (point, direction, dim)
    ends = (points[:, None] + steps, points[:, None] - steps)
    slopes = [study.evaluate(end.reshape(-1, study.dim))[1].reshape(steps.shape) for end in ends]
    curvature = (slopes[0] - slopes[1]) / (2.0 * steps.max(axis=2, keepdims=True))
    return np.asarray(0.5 * (curvature + curvature.transpose(0, 2, 1)))


def eigenvalues_of(curvature: Floats) -> tuple[Floats, Floats]:
    """Absolute eigenvalues of ``curvature`` (n, dim, dim), at least ``FLATTEST`` of the largest of all, and vectors."""
    values, directions = np.linalg.eigh(curvature)
    return np.maximum(np.abs(values), FLATTEST * np.abs(values).max(initial=0.0)), directions


def newton_step(values: Floats, directions: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """K⁻¹ g (n, dim) and g · K⁻¹ g (n,)."""
    along = np.einsum("nij,ni->nj", directions, gradient)
    return np.einsum("nij,nj->ni", directions, along / values), (along**2 / values).sum(axis=1)


def widening(noise: Floats, laws: Normal) -> float:
    """The share, for each unit of h, by which ``noise`` (dim, dim) makes the widest coordinate too wide."""
    inside = laws.directions.transpose(0, 2, 1) @ noise @ laws.directions
    added = inside / (laws.values[:, :, None] + laws.values[:, None, :])
    variances = ((laws.directions * laws.widths[:, None, :]) ** 2).sum(axis=2)
    excess = np.einsum("nij,njk,nik->ni", laws.directions, added, laws.directions)
    return float(0.5 * np.maximum(excess / variances, 0.0).max())


def widened(laws: Normal, ratio: float) -> Normal:
    """``laws`` at ``ratio`` times their temperature."""
    centres = np.resize(laws.minima, laws.draws.shape)
    return laws._replace(
        widths=math.sqrt(ratio) * laws.widths, draws=centres + math.sqrt(ratio) * (laws.draws - centres)
    )


def step_by_law(study: Study, sampler: Sampler, laws: Normal, temperature: float | None = None) -> StepSize:
    """The step size at which noise of minibatches and the step's own length make no coordinate too wide by ``BIAS``.

    Of moves whose heating is known. Near a minimum of curvature K a Langevin step of length h has the covariance
    T K⁻¹ + h Δ with K Δ + Δ K = V, V the covariance of the noise; by the step's own length a direction of curvature k
    is too wide by the share h k/4. Energies would show it only to the noise of chains that have not forgotten their
    starts, which at such step sizes takes more steps than a tuning has.
    """
    known, parameters = sampler.dynamics.known, sampler.dynamics.parameters
    heating = 1.0 if known.heating is None else known.heating(parameters).factor
    noise = noise_covariance(study, sampler, laws.draws[:LANES])
    by_noise = heating * widening(noise, laws)
    by_step = discretisation_bias(sampler.dynamics) * float(laws.values.max())
    return balanced(study, by_noise, by_step, laws.draws, temperature)


def discretisation_bias(dynamics: Dynamics) -> float:
    """The share, for each unit of h and of curvature, by which a step's own length makes a direction too wide.

    Of Langevin's 1/4, of SGHMC with friction η 1/(8 − 4 η), on a normal law and to first order; of BAOAB's less. Of
    thermostats' as of SGHMC's with the friction that they begin with.
    """
    return LANGEVIN_WIDTH if dynamics.known.own_width is None else dynamics.known.own_width(dynamics.parameters)


def step_at_exact_draws(study: Study, sampler: Sampler, levels: Explored) -> StepSize:
    """As ``step_by_law``, where gradients are exact, or have noise that is given.

    The curvature is the mean of ∂U ∂Uᵀ over T at draws of a short run of HMC, whose ends are the states.
    """
    exact = Sampler(
        "exact draws", levels.step_sizes[:1], (study.temperature,), dynamics=hmc(n_leapfrogs=levels.leapfrogs),
        boundary=study.boundary, scale=study.scale,
    )  # fmt: skip
    run = study.run(exact, EXACT_STEPS, np.resize(levels.positions[0], (LANES, 1, study.dim)))
    gradients = study.evaluate(run.draws.reshape(-1, study.dim))[1]
    gradients = gradients[np.isfinite(gradients).all(axis=1)]
    curvature = mean_outer_product(gradients, scale_matrix(exact, study.dim), study.temperature)
    states = run.draws[:, -1]
    by_noise = BIAS / most_for_noise(study, replace(sampler, scale=study.scale), states)
    narrowest = (run.draws.reshape(-1, study.dim).std(axis=0) / coordinate_scales(exact, study.dim)).min()
    largest = float(np.linalg.eigvalsh(curvature)[-1])
    if narrowest > 0.0:  # between walls, where a flat energy says nothing of the width
        largest = max(largest, study.temperature / float(narrowest) ** 2)
    return balanced(study, by_noise, discretisation_bias(sampler.dynamics) * max(largest, 1e-100), states)


def balanced(
    study: Study, by_noise: float, by_step: float, states: Floats, temperature: float | None = None
) -> StepSize:
    """The step size whose widenings by noise and by its own length, for each unit of it, come to ``BIAS`` together."""
    step_size = float(rounded(BIAS / (by_noise + by_step)))
    where = "" if temperature is None else f" at temperature {temperature:.4g}"
    study.note(
        f"Step size {step_size:.4g}{where}: by the law of the moves, noise of gradients makes a coordinate too wide by "
        f"{by_noise * step_size:.1%} of a standard deviation, and the length of the step by {by_step * step_size:.1%}."
    )
    return StepSize(step_size, BIAS, math.nan, states, False)
