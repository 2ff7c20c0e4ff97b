"""Thermostats and tempering variables of a run, compared with their theoretical laws."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.run_record import RunRecord, Trace, check_run
from ..errors import check_array, check_count, check_instance, check_room, shown
from ..samplers.sampler import Sampler, coordinate_scales
from ..tempering import ContinuousTempering

__all__ = [
    "NormalLaw",
    "coupling_histogram",
    "coupling_thermostat_law",
    "effective_temperature",
    "running_average",
    "thermostat_law",
]

Array = NDArray[np.float64]


class NormalLaw(NamedTuple):
    """Mean and standard deviation of a normal law."""

    mean: float
    deviation: float


def thermostat_law(sampler: Sampler, dim: int) -> NormalLaw:
    """The stationary law N(c + h s²/(2T), hT/(γD)) of the thermostat z of Nosé–Hoover dynamics in ``dim`` dimensions.

    s: the sampler's gradient_noise; D is 1 for thermostats by coordinate. Under a ``scale`` s² is that noise's square
    times the mean square of the scale. To first order in h; of the first chain and replica. Raises ValueError for other
    dynamics, and where thermostats by coordinate have laws that differ or dim is not the size of the scale.
    Source: TACT-HMC (2018), theorem 1, with z = s Δt.
    """
    check_instance("sampler", sampler, Sampler)
    check_count("dim", dim, at_least=1)
    law = sampler.dynamics.known.thermostat_law
    if law is None:
        raise ValueError(f"sampler must have Nosé–Hoover dynamics for a thermostat, got {sampler.dynamics.name!r}")
    shared = 1 if sampler.dynamics.memory[0].endswith("[]") else dim
    h, temperature = first_value(sampler.step_sizes), first_value(sampler.temperatures)
    scale = coordinate_scales(sampler, 1)
    if sampler.scale is not None and len(scale) != dim:
        raise ValueError(f"dim must be {len(scale)}, the size of the sampler's scale, got {dim}")
    if shared == 1 and sampler.gradient_noise > 0.0 and (scale != scale[0]).any():
        raise ValueError(
            "sampler must have one scale, or no gradient noise, for thermostats by coordinate to have one law; got "
            f"scale {shown(sampler.scale)} and gradient_noise {sampler.gradient_noise}"
        )
    noise = sampler.gradient_noise**2 * float(np.mean(np.square(scale)))
    return NormalLaw(*law(sampler.dynamics, h, temperature, noise, shared))


def coupling_thermostat_law(sampler: Sampler) -> NormalLaw:
    """The stationary law N(c + h v/(2T), hT/γ) of the thermostat of ξ, v the variance of the energy noise.

    To first order in h; of the first chain and replica. Raises ValueError without continuous tempering.
    Source: TACT-HMC (2018), theorem 1.
    """
    tempering = continuous_tempering_of(sampler)
    temperature = first_value(sampler.temperatures)
    h = first_value(sampler.step_sizes) if tempering.step_size is None else tempering.step_size
    mean = tempering.friction + 0.5 * h * sampler.energy_noise**2 / temperature
    return NormalLaw(mean, float(np.sqrt(h * temperature / tempering.inertia)))


def effective_temperature(run: RunRecord) -> Array:
    """T/λ(ξ) at the times of ``run.trace``, (chain, replica, time): the temperature at which the replica moved.

    Raises ValueError for a run without trace or without continuous tempering.
    """
    trace = trace_with_coupling(run)
    temperatures = np.broadcast_to(np.array(run.sampler.temperatures, np.float64), trace.fields["xi"].shape[:2])
    return np.asarray(temperatures[:, :, None] / trace.fields["multiplier"])


def coupling_histogram(run: RunRecord, n_bins: int = 20) -> tuple[Array, Array]:
    """Share of the trace after burn-in that ξ spent in each of ``n_bins`` equal bins of [−1, 1], and the bins' edges.

    Shares (chain, replica, bin) sum to 1 for each replica; where the bias has settled all are 1 / n_bins.
    Raises ValueError for a run without trace or without continuous tempering.
    """
    trace = trace_with_coupling(run)
    check_count("n_bins", n_bins, at_least=1)
    check_room("n_bins", n_bins, 32.0 * n_bins * run.n_chains * run.sampler.n_replicas)
    xi = trace.fields["xi"][:, :, trace.steps >= run.burn_in]
    if xi.shape[2] == 0:
        raise ValueError(f"run must have a trace after its burn-in of {run.burn_in} steps")
    edges = np.linspace(-1.0, 1.0, n_bins + 1)
    counts = np.stack([[np.histogram(replica, edges)[0] for replica in chain] for chain in xi])
    return counts / xi.shape[2], edges


def running_average(values: Any) -> Array:
    """Mean of the first 1, 2, 3, … ``values`` along their last axis; of their shape. Raises ValueError for a number."""
    array = check_array("values", values)
    if array.ndim == 0:
        raise ValueError(f"values must have an axis, got the number {array}")
    return np.asarray(np.cumsum(array, axis=-1) / np.arange(1, array.shape[-1] + 1))


def trace_with_coupling(run: RunRecord) -> Trace:
    """The trace of a run with continuous tempering. Raises TypeError or ValueError where there is none."""
    check_run(run)
    continuous_tempering_of(run.sampler)
    if run.trace is None:
        raise ValueError("run must have a trace, got None; give trace_every to sample")
    return run.trace


def continuous_tempering_of(sampler: Sampler) -> ContinuousTempering:
    """The sampler's continuous tempering. Raises ValueError where it has another, or none."""
    check_instance("sampler", sampler, Sampler)
    if not sampler.tempers.couples:
        raise ValueError(f"sampler must have continuous tempering, got tempering={sampler.tempering}")
    tempering: Any = sampler.tempering
    return tempering  # type: ignore[no-any-return]


def first_value(values: Any) -> float:
    """The value of the first chain and replica."""
    return float(np.ravel(values)[0])
