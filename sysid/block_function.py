"""Likelihood, priors and coordinates put together as one block function of the engine.

A position u gives the parameters: v = shift + root u, and θ_k = exp(v_k) for those sampled as logarithms, else v_k.
The energy is −log of the density of u: that of θ, less Σ v_k over the logarithms, which is the log of the Jacobian.
"""

import functools
from typing import Any

from targets.posteriors.quadratic import use_quadratic
from toolkit._compiler import SharedCode, call_part, kernel, pack_arguments, set_recipe
from toolkit.maths.elementary import exp, fma, log, select

from .likelihoods.interface import WITH_KERNEL, link_with_kernel
from .likelihoods.velocity import batch_energy
from .priors import add_priors

# The target's parameters: index of the table of priors, index of the likelihood's numbers, whether positions are
# scaled; then (q,) which parameters are sampled as logarithms, shift (q,) and root (q, q); then table and numbers.
PRIORS, LIKELIHOOD, SCALED, N_HEADER = range(4)
MAX_LOGARITHM = 700.0  # exp overflows beyond it


@kernel
def unpack_position(position, parameters, scratch):
    """θ (q, lane) from the position; rows for dU/dθ; the likelihood's numbers and work rows."""
    q, lanes = position.shape
    rows = scratch.shape[0] - 2 * q
    theta = scratch[rows : rows + q]
    if parameters[SCALED] == 0.0:
        for k in range(q):
            for lane in range(lanes):
                theta[k, lane] = position[k, lane]
    else:
        for k in range(q):
            row = parameters[N_HEADER + (2 + k) * q : N_HEADER + (3 + k) * q]
            shift, out = parameters[N_HEADER + q + k], theta[k]
            for lane in range(lanes):
                out[lane] = shift
            for j in range(q):
                factor, u = row[j], position[j]
                if factor != 0.0:
                    for lane in range(lanes):
                        out[lane] = fma(factor, u[lane], out[lane])
    for k in range(q):
        if parameters[N_HEADER + k] != 0.0:
            out = theta[k]
            for lane in range(lanes):
                out[lane] = exp(select(out[lane] > MAX_LOGARITHM, MAX_LOGARITHM, out[lane]))
    return theta, scratch[rows + q :], parameters[int(parameters[LIKELIHOOD]) :], scratch[:rows]


@kernel
def finish_energy(energy, gradient, theta, slope, parameters):
    """Add the priors, then transform the energy and its gradient ``slope`` in θ to those of positions."""
    q, lanes = theta.shape
    add_priors(theta, energy, slope, parameters[int(parameters[PRIORS]) :])
    for k in range(q):
        if parameters[N_HEADER + k] != 0.0:
            log_chain_rule(theta[k], energy, slope[k])
    for k in range(q):
        out = gradient[k]
        if parameters[SCALED] == 0.0:
            for lane in range(lanes):
                out[lane] = slope[k, lane]
        else:
            for lane in range(lanes):
                out[lane] = 0.0
            for j in range(q):
                factor, theta_slope = parameters[N_HEADER + (2 + j) * q + k], slope[j]
                if factor != 0.0:
                    for lane in range(lanes):
                        out[lane] = fma(factor, theta_slope[lane], out[lane])


@kernel
def log_chain_rule(theta, energy, slope):
    """From θ to v = log θ: dU/dv = θ dU/dθ − 1, and U less v."""
    for lane in range(theta.size):
        slope[lane] = fma(theta[lane], slope[lane], -1.0)
        energy[lane] -= log(theta[lane])


# These two are not made by ``block_of``, because the machine code of nested functions is not cached on disk.
def quadratic_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient where the likelihood is quadratic in θ."""
    theta, slope, numbers, work = unpack_position(position, parameters, scratch)
    use_quadratic(theta, energy, slope, numbers, work)
    finish_energy(energy, gradient, theta, slope, parameters)


def batch_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient from minibatches, where the likelihood is quadratic in θ."""
    theta, slope, numbers, work = unpack_position(position, parameters, scratch)
    batch_energy(theta, energy, slope, numbers, work)
    finish_energy(energy, gradient, theta, slope, parameters)


@kernel
def use_likelihood(position, energy, gradient, parameters, scratch, likelihood):
    """Energy and gradient by the kernel of a likelihood, of which there is a pointer."""
    theta, slope, numbers, work = unpack_position(position, parameters, scratch)
    call_part(likelihood, pack_arguments(likelihood, (theta, energy, slope, numbers, work)))
    finish_energy(energy, gradient, theta, slope, parameters)


USE_LIKELIHOOD = SharedCode(use_likelihood, WITH_KERNEL)


@functools.cache
def block_of(likelihood: Any) -> Any:
    """The block function with the kernel ``likelihood`` of a ``Prepared``; the same object for the same kernel."""
    if likelihood in (use_quadratic, batch_energy):
        return quadratic_block if likelihood is use_quadratic else batch_block

    def block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
        theta, slope, numbers, work = unpack_position(position, parameters, scratch)
        likelihood(theta, energy, slope, numbers, work)
        finish_energy(energy, gradient, theta, slope, parameters)

    link_with_kernel(block, USE_LIKELIHOOD, likelihood)
    set_recipe(block, block_of, likelihood)
    return block
