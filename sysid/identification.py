"""A problem of identification: what ``sample`` draws from, and the way back from its draws to named parameters."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit import Run
from toolkit.checks import check_array, check_count, check_instance, check_number, check_real_array
from toolkit.problem import Problem
from toolkit.seeds import STARTS, derived_seed
from toolkit.weighting import shares_of

from .composing import N_HEADER, SCALED
from .constraints import Coordinates
from .estimates import Estimates, estimate, inclusion_of
from .initial import initial_of
from .model import Model
from .prepared import Prepared
from .priors import Prior
from .system import System

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, covariance) of the parameters."""

    mean: Array  # (q,)
    covariance: Array  # (q, q)

    @property
    def sd(self) -> Array:
        """Standard deviations (q,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


@dataclass(frozen=True, eq=False)
class Identification(Problem):
    """The posterior of a model's parameters, for ``sample``; made by ``identify``.

    Draws are positions u (q,), from which ``parameters`` makes what they stand for. names: of the parameters.
    posterior: their law in closed form, without constraints, where it is Gaussian; else None.
    """

    names: tuple[str, ...] = field(kw_only=True)
    model: Model | System = field(kw_only=True)
    data: Any = field(kw_only=True)
    prepared: Prepared = field(kw_only=True)
    priors: tuple[Prior, ...] = field(kw_only=True)
    constraints: Any = field(kw_only=True)
    coordinates: Coordinates = field(kw_only=True)
    posterior: Gaussian | None = field(kw_only=True)

    def __repr__(self) -> str:
        """Its name and parameters."""
        shown = ", ".join(self.names[:8]) + (", …" if len(self.names) > 8 else "")
        return f"<Identification {self.name!r} of {len(self.names)} parameters: {shown}>"

    @property
    def dim(self) -> int:
        """Number of parameters q."""
        return len(self.names)

    def parameters(self, draws: Any) -> Array:
        """Parameters (…, q) of a run's draws (chain, draw, q), or of positions (…, q).

        Raises ValueError for another last axis, or a run whose positions are others, as of a problem scaled or not.
        """
        self._check_run(draws)
        return self.coordinates.parameters(positions_of(draws, self.dim))

    def _check_run(self, run: Any) -> None:
        """Raise ValueError where ``run`` is one of other positions."""
        chart = slice(SCALED, N_HEADER + (2 + self.dim) * self.dim)
        if isinstance(run, Run) and not np.array_equal(
            run.problem.target.parameters[chart], self.target.parameters[chart]
        ):
            raise ValueError(
                f"run must be one of this problem, {self.name!r}, but is of {run.problem.name!r} in other positions: "
                "ask the problem that was sampled, as what scaled() gave"
            )

    def positions(self, parameters: Any) -> Array:
        """Positions (…, q) of parameters (…, q). Raises ValueError for another last axis, or log of what is not > 0."""
        theta = check_array("parameters", parameters)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ValueError(f"parameters must have shape (…, {self.dim}), got {theta.shape}")
        bad = (theta <= 0.0) & self.coordinates.log
        if bad.any():
            k = int(np.argwhere(bad)[0][-1])
            raise ValueError(f"parameters must be > 0 for {self.names[k]}, got {theta[bad][0]:g}")
        return self.coordinates.positions(theta)

    @cached_property
    def system(self) -> System:
        """The system to solve."""
        return self.model.system if isinstance(self.model, Model) else self.model

    def system_parameters_of(self, parameters: Any) -> Array:
        """The system's own parameters (n, n_parameters) of parameters (n, q); usual ones for those not sampled."""
        theta = np.atleast_2d(check_real_array("parameters", parameters))
        columns = [
            theta[:, self.names.index(name)] if name in self.names else np.full(len(theta), usual)
            for name, usual in zip(self.system.parameters, self.system.usual, strict=True)
        ]
        return np.stack(columns, axis=1)

    def start_of(self, parameters: Any) -> Array:
        """Initial states (n, dim) of parameters (n, q): those sampled, else as fixed, or the data's first whole row.

        Raises ValueError where no row of the data is whole.
        """
        return initial_of(self, parameters).states

    def scaled(self, mode: Any = None, root: Any = None) -> "Identification":
        """The same posterior in other positions: parameters at ``mode`` for u = 0, with unit covariance, about, there.

        Samplers whose step suits all parameters alike need it where these have different sizes or are correlated. mode:
        parameters (q,); root: (q, q), whose square root·rootᵀ is a covariance of them, or of their logarithms where
        these are sampled. None: the posterior in closed form, or else by Laplace's approximation at its mode.
        Raises TypeError or ValueError where one is given alone, has another shape or is not finite, a mode is not > 0
        whose logarithm is sampled, a root is singular, or the energy is infinite where Laplace's approximation starts.
        """
        from .identify import assembled
        from .scaling import scaled_coordinates

        return assembled(replace(self, coordinates=scaled_coordinates(self, mode, root)))

    def usual_start(self) -> Array:
        """The likelihood's start (q,), but where that is not > 0 and must be: the prior's median, or its size."""
        theta = np.array(self.prepared.start)
        for k, law in enumerate(self.priors):
            if theta[k] <= 0.0 and (self.coordinates.log[k] or law.is_positive):
                theta[k] = np.exp(law.location) if law.is_positive else abs(theta[k]) or 1.0
        return theta

    def starts(self, n_chains: int, *, seed: int, spread: float = 1.0) -> Array:
        """Positions (n_chains, q) to start from: about the likelihood's best parameters, inside all constraints.

        Scaled problems: normal with standard deviation ``spread``; others: all at the same place. Points outside the
        constraints are moved halfway to one inside until they obey. seed: 0 to 2⁶⁴ − 1.
        Raises TypeError or ValueError for numbers out of range, or where no point inside is known.
        """
        n_chains = check_count("n_chains", n_chains, at_least=1)
        spread = check_number("spread", spread, at_least=0.0)
        rng = np.random.default_rng(derived_seed(seed, STARTS))  # other normals than those of exact draws
        is_scaled = self.coordinates.is_scaled
        centre = np.zeros(self.dim) if is_scaled else self.coordinates.positions(self.usual_start())
        points = centre + (spread if is_scaled else 0.0) * rng.standard_normal((n_chains, self.dim))
        if self.domain is None:
            return np.asarray(points)
        region = getattr(self.truth, "region", None)
        inner = centre if region is None else np.asarray(region.interior)
        if not self.contains(inner[None])[0]:
            raise ValueError(f"starts needs a point inside, and {self.parameters(inner)} is not: give init to sample")
        for _ in range(60):
            outside = ~self.contains(points)
            if not outside.any():
                break
            points[outside] = 0.5 * (points[outside] + inner)
        return np.asarray(points)

    def estimates(self, run: Run, *, level: float = 0.9) -> Estimates:
        """Mean, sd, median, central interval, mode and inclusion probability of every parameter, from a run of it.

        level: of the interval, within (0, 1). Contour's chains count equally, as their weights hold up to a factor.
        Raises ValueError for a run of other positions, without draws, with chains of different temperatures, with
        weights that are all 0 or lie on one draw, and for a level out of range; TypeError for what is no run.
        """
        return estimate(self.names, *self._weighted(run), self.priors, level=level)

    def _weighted(self, run: Run) -> tuple[Array, Array | None]:
        """Parameters (n, q) of all draws, and their weights (n,), where there are any."""
        theta = self.parameters(run).reshape(-1, self.dim)
        check_instance("run", run, Run)
        cold = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
        if (cold != cold.flat[0]).any():
            raise ValueError(
                f"run must have one temperature for all chains, got {cold.min():g} to {cold.max():g}: their draws have "
                "different laws"
            )
        return theta, shares_of(run)

    def to_datatree(self, run: Run) -> Any:
        """A run of it as ``run.to_datatree``, with its draws as parameters by name. Needs the extra ``io``."""
        self._check_run(run)
        named = replace(run, replica_draws=self.coordinates.parameters(run.replica_draws))
        return named.to_datatree(self.names)

    def inclusion(self, run: Run) -> Array:
        """Probability (q,) that each term is present, from a run of it: of priors with a spike; 1 for the others.

        Weights as in ``estimates``. Raises ValueError for a run of other positions, without draws, or whose weights are
        all 0; TypeError for what is no run.
        """
        return inclusion_of(*self._weighted(run), self.priors)


def positions_of(draws: Any, q: int) -> Array:
    """Positions (…, q) of a run or an array."""
    positions = check_real_array("draws", draws.draws if isinstance(draws, Run) else draws)
    if positions.ndim == 0 or positions.shape[-1] != q:
        raise ValueError(f"draws must have shape (…, {q}), got {positions.shape}")
    return positions
