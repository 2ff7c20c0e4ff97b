"""What is checked of a run before it is a job: its parts together, where it is to compute, and where it starts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_array, check_choice
from .exchange import AdaptedCorrection, EstimatedCorrection
from .extras import optional
from .memory import check_room
from .problem import Problem, Spread
from .sampler import Sampler
from .starts import drawn_starts
from .stein import Stein
from .tempering import Contour, ReplicaExchange

Floats = NDArray[np.float64]


def check_cuda() -> None:
    """Raise ImportError without numba-cuda, CudaError without a GPU that can be used."""
    optional("numba_cuda", "cuda")
    from .device import check_available

    check_available()


def check_backend(backend: Any, problem: Problem) -> None:
    """Raise ValueError for a backend unknown, or no good for the problem; ImportError or CudaError without CUDA."""
    check_choice("backend", backend, ["cpu", "cuda"])
    if backend == "cpu":
        return
    if problem.target.callback is not None:
        raise ValueError(
            f"backend must be 'cpu' for {problem.name!r}, a Python function of arrays that no GPU can call; got 'cuda'"
        )
    check_cuda()


def check_dtype(dtype: Any, backend: str, problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError for an unknown dtype, or one in which the backend or a part cannot compute."""
    check_choice("dtype", dtype, ["float64", "float32"])
    if dtype == "float64":
        return
    if backend != "cuda":
        raise ValueError(
            f"dtype must be 'float64' for backend {backend!r}, got {dtype!r}; float32 needs backend='cuda'"
        )
    if sampler.dynamics.needs_curvature:
        raise ValueError(
            f"dtype must be 'float64' for dynamics {sampler.dynamics.name!r} with their drift correction, which is a "
            "difference of two gradients a thousandth of a step apart; got 'float32'"
        )
    from .single import to_singles

    numbers = {
        f"the parameters of {problem.name!r}": () if problem.target.stochastic else problem.target.parameters,
        f"the numbers of {sampler.dynamics.name!r}": sampler.dynamics.parameters,
        "step sizes": sampler.step_sizes,
        "temperatures": sampler.temperatures,
        "noises": (sampler.gradient_noise, sampler.energy_noise),
        "the boundary's coefficient": (sampler.boundary.coefficient,),
    }
    for name, values in numbers.items():
        to_singles(values, name)


def check_lanes(problem: Problem, sampler: Sampler, n_chains: int) -> None:
    """Raise ValueError where the chains' state alone does not fit into memory."""
    dim, tempering = problem.target.dim, sampler.tempering
    lane = 4 * dim + problem.target.scratch_rows + 8  # position, gradient, noise, start, and more beside them
    bins = tempering.partition.n_bins if isinstance(tempering, Contour) and tempering.partition else 0
    check_room("n_chains", n_chains, 8.0 * n_chains * (lane * sampler.n_replicas + 2 * bins))


def check_penalty(problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError for a penalty without a point to pull to, or as printed, from a domain without the origin."""
    kind, domain = sampler.boundary.kind, problem.domain
    if kind == "penalise" and domain is not None and domain.nearest is None:
        raise ValueError(
            f"boundary must not be 'penalise' in {problem.name!r}: of its domain the nearest point, where a penalty "
            "pulls to, is not known; reflect or reject instead"
        )
    if kind == "penalise_as_printed" and not problem.contains(np.zeros((1, problem.target.dim)))[0]:
        raise ValueError(
            f"boundary must not be 'penalise_as_printed' in {problem.name!r}, which does not hold the origin, where it "
            "pulls to; use boundaries.penalise(...)"
        )


def check_minibatches(problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError where a target that draws minibatches meets parts that need its energy itself."""
    tempering = sampler.tempering
    if not problem.target.stochastic:
        return
    if sampler.dynamics.leapfrogs > 0:
        raise ValueError(
            f"dynamics {sampler.dynamics.name!r} need exact energies for their Metropolis test, and {problem.name!r} "
            "draws minibatches"
        )
    if isinstance(tempering, ReplicaExchange):
        if tempering.correction is None or isinstance(tempering.correction, EstimatedCorrection):
            raise ValueError(
                f"correction must be a number, or adapted_correction(...), on {problem.name!r}, which draws "
                "minibatches: half the variance of the difference of two energies leaves swaps unbiased, and only you "
                f"can know it; got {tempering.correction}"
            )
        if tempering.scheme not in ("deo", "seo"):
            raise ValueError(
                f"scheme must be 'deo' or 'seo' on {problem.name!r}, which draws minibatches: one noisy energy must "
                f"not serve two decisions; got {tempering.scheme!r}"
            )


def check_learning(sampler: Sampler, n_steps: int, burn_in: int) -> None:
    """Raise ValueError where what is to be learned during the run has no time to be."""
    tempering = sampler.tempering
    if isinstance(tempering, Contour) and tempering.freezes and burn_in == 0:
        raise ValueError("burn_in must be ≥ 1 for a contour that freezes, which learns during burn-in alone; got 0")
    if isinstance(tempering, ReplicaExchange):
        if isinstance(tempering.correction, AdaptedCorrection) and burn_in == 0:
            raise ValueError("burn_in must be ≥ 1 for an adapted correction, which moves during burn-in alone; got 0")
        if isinstance(tempering.correction, EstimatedCorrection) and tempering.correction.every >= n_steps:
            raise ValueError(
                f"n_steps must be > {tempering.correction.every}, at which the correction is estimated first, got "
                f"{n_steps}"
            )


def check_start(problem: Problem, sampler: Sampler, n_chains: int, init: Any, seed: int) -> Floats:
    """``init`` as (chain, replica, dim), inside the domain and of finite energy and gradient; drawn where not given."""
    if init is None or isinstance(init, Spread):
        return drawn_starts(problem, init, seed, n_chains, sampler.n_replicas)
    shape = (n_chains, sampler.n_replicas, problem.target.dim)
    given = check_array("init", init)
    if given.shape not in (shape[2:], (shape[0], shape[2]), shape):
        raise ValueError(
            f"init must have shape (dim,) = {shape[2:]}, (n_chains, dim) = {(shape[0], shape[2])} or "
            f"(n_chains, n_replicas, dim) = {shape}, got {given.shape}"
        )
    if given.ndim == 2:
        given = given[:, None]
    start = np.array(np.broadcast_to(given, shape))
    points = start.reshape(-1, shape[2])
    inside = problem.contains(points)
    if not inside.all():
        chain, replica = divmod(int(np.argmin(inside)), shape[1])
        raise ValueError(
            f"init must lie inside the domain {problem.name!r}, got {start[chain, replica].tolist()} for chain "
            f"{chain}, replica {replica}"
        )
    energy, gradient = problem.target.evaluate(points)
    if not np.isfinite(energy).all():
        chain, replica = divmod(int(np.argmin(np.isfinite(energy))), shape[1])
        raise ValueError(
            f"init must have a finite energy, got energy {energy[chain * shape[1] + replica]} at "
            f"{start[chain, replica].tolist()} for chain {chain}, replica {replica}"
        )
    steep = np.isfinite(gradient).all(axis=1)
    if not steep.all():
        chain, replica = divmod(int(np.argmin(steep)), shape[1])
        lane = chain * shape[1] + replica
        raise ValueError(
            f"init must have a finite gradient, got gradient {gradient[lane].tolist()} with energy {energy[lane]:.6g} "
            f"at {start[chain, replica].tolist()} for chain {chain}, replica {replica}; an entry that is always nan "
            "is one that the target does not fill"
        )
    together = (start == start[:, :1]).all(axis=(1, 2))
    if isinstance(sampler.tempering, Stein) and shape[1] > 1 and together.any():
        raise ValueError(
            "init must give the particles of a chain different places, which those at one place never leave; got all "
            f"{shape[1]} of chain {int(np.argmax(together))} at {start[int(np.argmax(together)), 0].tolist()}; give "
            f"shape (n_chains, n_replicas, dim) = {shape}"
        )
    return start
