"""``identify``: data, a model, a likelihood, priors and constraints become a problem for ``sample``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targets import constrained
from targets.convex import Convex
from targets.gaussian_truth import GaussianTruth
from toolkit.checks import check_number, check_text
from toolkit.problem import Spread, Target
from toolkit.sampling import check_progress

from . import likelihoods
from .composing import N_HEADER, block_of, quadratic_block
from .constraints import Coordinates, as_list, region_of
from .identification import Gaussian, Identification
from .implicit import implicit_domain
from .model import as_model
from .prepared import Prepared
from .prior_kernels import GAUSSIAN, LAPLACE, LOG_NORMAL
from .priors import Prior, check_priors, prior_table
from .search_progress import TIME_LIMIT, SearchProgress
from .system import System, check_names
from .trajectory import Trajectory

Array = NDArray[np.float64]

FLATTEST = 1e-13  # smallest eigenvalue of the posterior's precision, scaled to a unit diagonal


def identify(
    data: Any,
    model: Any,
    *,
    likelihood: Any = "derivative",
    prior: Any = None,
    constraints: Any = None,
    log: Sequence[str] | None = None,
    name: str = "",
    progress: bool | None = None,
    time_limit: float = TIME_LIMIT,
) -> Identification:
    """The posterior of a model's parameters given time series, as a problem for ``sample``.

    data: a ``Series``, or several where the likelihood takes them. model: a ``System``, a ``Library`` (all coefficients
    free) or a ``Model``. likelihood: "derivative", "weak", "trajectory", or one made by ``sysid.likelihoods`` with
    options. prior: one of ``sysid.priors`` for all parameters, or a mapping from names; others are flat. constraints:
    texts such as "sigma > 1 + beta", linear in the parameters, convex regions of them, or analytic functions of a tuple
    of all parameters, ≥ 0 inside: the problem's domain, at whose walls r2SGLD and r2SGHMC reflect draws; other samplers
    ignore it unless given a ``boundary``: ``reflect()``, or ``reject()`` for MALA and HMC. log: names of parameters
    sampled as logarithms; None: those with log-normal priors, and noise scales.
    progress: a line on stderr while a trajectory likelihood searches for start values; None: only on a terminal.
    time_limit: seconds > 0 of that search, less compilation, after which TimeoutError says how far it has come.
    Law: density ∝ likelihood × prior inside the constraints; at other temperatures T, to the power 1/T.
    Raises TypeError or ValueError before anything runs, naming what is off: also where data and prior together leave a
    direction of parameters undetermined, or a user's function is not analytic at the data.
    """
    chosen = likelihoods.of(likelihood)
    model = model if isinstance(model, System) else as_model(model)
    check_progress(progress)
    time_limit = check_number("time_limit", time_limit, above=0.0)
    if isinstance(chosen, Trajectory):
        prepared = chosen.prepare(data, model, SearchProgress(progress, time_limit))
    else:
        prepared = chosen.prepare(data, model)
    check_names("parameters", prepared.names)
    priors = check_priors(prior, prepared.names)
    logs = check_log(log, prepared, priors)
    label = check_text("name", name) or f"{model.name} by {chosen_name(likelihood)}"
    q = len(prepared.names)
    coordinates = Coordinates(logs, np.zeros(q), np.eye(q))
    draft = Identification(
        placeholder(q, label), names=prepared.names, model=model, data=data, prepared=prepared, priors=priors,
        constraints=constraints, coordinates=coordinates, posterior=closed_form(prepared, priors),
    )  # fmt: skip
    return assembled(draft)


def chosen_name(likelihood: Any) -> str:
    """A likelihood in a word."""
    return likelihood if isinstance(likelihood, str) else type(likelihood).__name__.lower()


def placeholder(q: int, name: str) -> Target:
    """A target that only carries its name and dimension, until ``assembled`` makes the real one."""
    return Target(name, q, quadratic_block)


def must_be_positive(prepared: Prepared, priors: tuple[Prior, ...]) -> NDArray[np.bool_]:
    """Which parameters (q,) are > 0, for the likelihood or for their prior."""
    return np.array([p or law.is_positive for p, law in zip(prepared.positive, priors, strict=True)])


def check_log(log: Any, prepared: Prepared, priors: tuple[Prior, ...]) -> NDArray[np.bool_]:
    """Which parameters are sampled as logarithms (q,). Raises ValueError for names that are none."""
    if log is None:
        return must_be_positive(prepared, priors)
    chosen = check_names("log", log, at_least=0)
    for label in chosen:
        if label not in prepared.names:
            raise ValueError(f"log must name parameters ({', '.join(prepared.names)}), got {label!r}")
    wanted = np.array([label in chosen for label in prepared.names])
    return np.asarray(wanted | np.array(prepared.positive))


def closed_form(prepared: Prepared, priors: tuple[Prior, ...]) -> Gaussian | None:
    """The posterior where it is Gaussian. Raises ValueError where data and priors leave a direction undetermined."""
    if prepared.quadratic is None:
        return None
    mean, precision, _ = prepared.quadratic
    own = np.array([law.scale**-2 if law.kind == GAUSSIAN else 0.0 for law in priors])
    proper = np.array([not law.is_flat for law in priors])
    total = precision + np.diag(np.where(proper & (own == 0.0), np.diag(precision).max() * 1e-6 + 1e-300, own))
    scale = np.sqrt(np.where(np.diag(total) > 0.0, np.diag(total), 1.0))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    if values[0] < FLATTEST:
        strong = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)
        joined = ", ".join(prepared.names[k] for k in strong[:8])
        raise ValueError(
            f"data and prior must determine all parameters, but leave a direction of {joined} free (eigenvalue "
            f"{values[0]:.1e} of the scaled precision, which must be > {FLATTEST:g}): leave out terms that are alike "
            f"or constant, or give them a proper prior"
        )
    if not all(law.is_quadratic for law in priors):
        return None
    total = precision + np.diag(own)
    covariance = np.linalg.inv(total / np.outer(scale, scale)) / np.outer(scale, scale)
    location = np.array([law.location for law in priors])
    centre = mean + covariance @ (own * (location - mean))
    return Gaussian(centre, 0.5 * (covariance + covariance.T))


def assembled(draft: Identification) -> Identification:
    """``draft`` with the target, domain and truth that its parts make in its coordinates."""
    q, prepared, coordinates = draft.dim, draft.prepared, draft.coordinates
    table = prior_table(draft.priors)
    first = N_HEADER + 2 * q + q * q
    header = [
        first,
        first + table.size,
        float(coordinates.is_scaled),
        *coordinates.log.astype(float),
        *coordinates.shift,
    ]
    numbers = np.concatenate([header, coordinates.root.ravel(), table, prepared.numbers])
    target = Target(
        draft.target.name, q, block_of(prepared.kernel), numbers, prepared.work_rows + 2 * q,
        truth_of(draft), stochastic=prepared.stochastic, spread=spread_of(draft),
    )  # fmt: skip
    positive = must_be_positive(prepared, draft.priors)
    region = region_of(draft.constraints, draft.names, coordinates, positive)
    functions = [c for c in as_list(draft.constraints) if callable(c) and not isinstance(c, Convex)]
    if functions:
        walls = (np.zeros((0, q)), np.zeros(0)) if region is None else region.walls
        domain = implicit_domain(functions, draft.names, coordinates, walls)
        return replace(draft, target=target, domain=domain, truth=None)
    if region is None:
        return replace(draft, target=target, domain=None, truth=target.truth)
    problem = constrained(target, region)
    return replace(draft, target=target, domain=problem.domain, truth=problem.truth)


def spread_of(draft: Identification) -> Spread:
    """Where chains start in its positions: two standard deviations about the mode, as far as these are known.

    Scaled: ±2, for the covariance is the identity, about. Else about the Gaussian posterior's mean; or about the
    likelihood's start, half as far as a parameter is large (a logarithm: ½), and at most two of its prior's sds.
    """
    coordinates, truth = draft.coordinates, truth_of(draft)
    if coordinates.is_scaled:
        return Spread(2.0)
    if truth is not None:
        return truth.spread
    usual = draft.usual_start()
    center = coordinates.positions(usual)
    reach = np.where(coordinates.log | (usual == 0.0), 0.5, 0.5 * np.abs(usual))
    for k, law in enumerate(draft.priors):
        if law.kind in ((LOG_NORMAL,) if coordinates.log[k] else (GAUSSIAN, LAPLACE)):
            reach[k] = min(reach[k], 2.0 * law.scale)
    return Spread(reach, center)


def truth_of(draft: Identification) -> GaussianTruth | None:
    """The truth in positions, without constraints, where the posterior is Gaussian."""
    posterior, coordinates = draft.posterior, draft.coordinates
    if posterior is None or coordinates.log.any() or draft.prepared.quadratic is None:
        return None
    mean, precision, lowest = draft.prepared.quadratic
    gap = posterior.mean - mean
    lowest += 0.5 * float(gap @ precision @ gap)
    lowest += sum(
        0.5 * float((m - law.location) / law.scale) ** 2
        for m, law in zip(posterior.mean, draft.priors, strict=True)
        if law.kind == GAUSSIAN
    )
    inverse = np.linalg.inv(coordinates.root)
    covariance = inverse @ posterior.covariance @ inverse.T
    log_determinant = float(np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    covariance = 0.5 * (covariance + covariance.T)
    return GaussianTruth(coordinates.positions(posterior.mean), covariance, 0.5 * log_determinant - lowest, lowest)
