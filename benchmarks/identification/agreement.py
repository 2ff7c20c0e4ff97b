"""Whether peers compute our gradients, asked before they are timed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.host import Peer, PeerError

from . import numpy_energies as by_numpy
from .cases import Case

Array = NDArray[np.float64]

AGREEMENT = 1e-6  # of gradients, in units of the largest entry
FEWEST, MOST_ERRORS = 500, 5.0  # chains whose squares are compared with their law, and by how much they may be off
N_POINTS, AROUND = 5, 1e-3  # points, and how far about the start they are, in units of it


class Checked(NamedTuple):
    """A case, a step size, and the peers whose gradients are ours; largest: difference; remarks: on the others."""

    case: Case
    step_size: float
    allowed: list[str]
    largest: float
    remarks: list[str]


def safe_step(problem: Any) -> float:
    """A step size of SGLD from the largest curvature about the start."""
    start = problem.prepared.start
    moves = np.diag(1e-6 * np.maximum(np.abs(start), 1e-3))
    slopes = problem.target.evaluate(start + moves)[1] - problem.target.evaluate(start - moves)[1]
    hessian = slopes / (2.0 * moves.diagonal()[:, None])
    return 0.1 / float(np.abs(np.linalg.eigvalsh(0.5 * (hessian + hessian.T))).max())


def plain(numbers: dict[str, Any]) -> dict[str, Any]:
    """``numbers`` as JSON can say them."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in numbers.items()}


def off(ours: Array, theirs: Any) -> float:
    """The largest difference of gradients, in units of the largest entry."""
    return float(np.abs(ours - np.asarray(theirs)).max() / np.abs(ours).max())


def checked(case: Case, peer: Peer | None) -> Checked:
    """Compare all peers' gradients of all data with ours, about the start."""
    start = case.problem.prepared.start
    points = start * (1.0 + AROUND * np.random.default_rng(0).standard_normal((N_POINTS, start.size)))
    ours = case.problem.target.evaluate(points)[1]
    kind, numbers = case.numpy
    told: dict[str, list[Callable[[], Any]]] = {"NumPy": [lambda: by_numpy.ENERGIES[kind](**numbers)[1](points)]}
    for name, ways in case.peers.items() if peer else ():
        told[name] = [lambda way=way: peer_gradient(peer, way, points) for way in ways]  # type: ignore[misc]
    allowed, worst, remarks = [], 0.0, []
    for name, gradients in told.items():
        try:
            difference = max(off(ours, gradient()) for gradient in gradients)
        except PeerError as error:
            remarks.append(f"{name}: {error}")
            continue
        if difference <= AGREEMENT:
            allowed.append(name)
            worst = max(worst, difference)
        else:
            remarks.append(f"{name}'s gradient is off by {difference:.1e}")
    return Checked(case, safe_step(case.problem), allowed, worst, remarks)


def peer_gradient(peer: Any, way: tuple[str, dict[str, Any]], points: Array) -> Any:
    """A peer's gradients at ``points``."""
    run = peer.make("gradient", energy=way[0], numbers=plain(way[1]), points=points.tolist())
    return run.value


def check_squares(case: Case, step_size: float, n_chains: int, told: dict[str, Any]) -> None:
    """Raise PeerError where chains have not spread as SGLD's do from the minimum of a quadratic.

    told: steps, and mean squares (q,) over chains of their distances. With Λ = V diag(λ) Vᵀ and r = 1 − h λ, they have
    the variances of V diag(2h (1 − r²ⁿ) / (1 − r²)) Vᵀ after n steps of size h.
    """
    if case.numpy[0] != "quadratic" or n_chains < FEWEST:
        return
    curvatures, vectors = np.linalg.eigh(case.numpy[1]["precision"])
    kept = (1.0 - step_size * curvatures) ** 2
    along = 2.0 * step_size * (1.0 - kept ** told["steps"]) / (1.0 - kept)
    expected = vectors**2 @ along
    errors = (np.array(told["squares"]) / expected - 1.0) / np.sqrt(2.0 / n_chains)
    if np.abs(errors).max() > MOST_ERRORS:
        raise PeerError(f"its draws are {np.abs(errors).max():.1f} standard errors off")
