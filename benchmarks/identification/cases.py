"""What ``gradients`` compares: energies of ours, and the numbers from which peers make the same."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from figures.papers.r2sgld.identification import BATCH, data_of
from sysid import identify, likelihoods, systems
from sysid.data import simulate
from sysid.libraries import polynomial

from . import numpy_energies as by_numpy

SD, STEPS = 0.1, 10  # of a trajectory's data; steps from one datum to the next
ENDS = {"lorenz": 1.0, "lotka_volterra": 10.0}


CHAINS = (1, 64, 1000)


class Case(NamedTuple):
    """An energy of ours, and the same of peers by name, each perhaps several; numpy: of NumPy, its energy and numbers.

    generators: JAX's, and whether normals of many steps are drawn at once; the faster way counts.
    """

    likelihood: str
    system: str
    data: str
    problem: Any
    numpy: tuple[str, dict[str, Any]]
    peers: dict[str, list[tuple[str, dict[str, Any]]]]
    generators: tuple[str, ...] = ("threefry2x32", "unsafe_rbg, ahead")
    chains: tuple[int, ...] = CHAINS


# Of minibatches drawn independently, whose cost is that of their rows, whatever draws the normals.
MANY_DRAWS: dict[str, Any] = {"generators": ("threefry2x32", "unsafe_rbg"), "chains": CHAINS[:2]}


def of_velocities(name: str) -> Iterator[Case]:
    """Exact velocities, as in the r2SGLD paper; peers' equations are written out in ``numpy_energies``."""
    system, data = systems.catalogue()[name], data_of(name)
    problem = identify(data, system, likelihood=likelihoods.derivative(noise="mean"))
    features, known = by_numpy.EQUATIONS[name](data.values)
    assert data.velocities is not None
    numbers: dict[str, Any] = {"features": features, "rest": data.velocities - known}
    rows = by_numpy.normal_rows(**numbers).mean(axis=0)
    q = problem.dim
    whole = {"precision": rows[: q * q].reshape(q, q), "pull": rows[q * q :]}
    yield Case("derivative", name, "all data", problem, ("quadratic", whole), {"JAX": [("quadratic", whole)]})
    numbers["batch_size"] = BATCH
    for batches in ("windows", "independent"):
        energy = likelihoods.derivative(noise="mean", batch_size=BATCH, batches=batches)
        ways = ["windows"] if batches == "windows" else ["independent rows", "independent terms"]
        yield Case(
            "derivative", name, f"{batches}, {BATCH} of {len(data)}", identify(data, system, likelihood=energy),
            (batches, numbers), {"JAX": [(way, numbers) for way in ways]},
            **(MANY_DRAWS if batches == "independent" else {}),
        )  # fmt: skip


def of_noisy_states(name: str) -> Case:
    """The weak form, with all coefficients of all quadratic terms free."""
    system = systems.catalogue()[name]
    data = simulate(system, np.linspace(0.0, 10.0, 1001), noise=0.01, seed=1)
    problem = identify(data, polynomial(system.states, 2), likelihood="weak")
    assert problem.prepared.quadratic is not None
    mean, precision, _ = problem.prepared.quadratic
    numbers = {"precision": precision, "pull": precision @ mean}
    label = f"{name}, all {problem.dim} quadratic coefficients"
    return Case("weak", label, "all data", problem, ("quadratic", numbers), {"JAX": [("quadratic", numbers)]})


def of_trajectories(name: str) -> Iterator[Case]:
    """A solution's 21 data; also of a right-hand side with no derivatives written out."""
    system, times = systems.catalogue()[name], np.linspace(0.0, ENDS[name], 21)
    data = simulate(system, times, noise=0.01, seed=1)
    h = float(times[1]) / STEPS
    energy = likelihoods.trajectory(noise=SD, method="rk5", step=h)
    numbers = {"system": name, "values": data.values, "sd": SD, "h": h, "steps": STEPS, "mode": "forward"}
    numpy = ("trajectory", {"system": name, "times": times, "values": data.values, "sd": SD})
    peers = {"JAX": [("scan", numbers)], "diffrax": [("diffrax", numbers | {"solver": "Dopri5"})]}
    exact = identify(data, system, likelihood=energy)
    yield Case("trajectory", name, "21 states", exact, numpy, peers, generators=("threefry2x32",))
    if name == "lotka_volterra":
        general = identify(data, replace(system, terms=None), likelihood=energy)
        user = f"{name}, as a user's function"
        yield Case("trajectory", user, "21 states", general, numpy, peers, generators=("threefry2x32",))


def cases(names: tuple[str, ...]) -> Iterator[Case]:
    """All energies of these systems; of all but the first with 64 chains alone."""
    for name in names:
        for case in (*of_velocities(name), of_noisy_states(name), *of_trajectories(name)):
            yield case if name == names[0] else case._replace(chains=CHAINS[1:2])
