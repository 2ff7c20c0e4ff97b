"""The parts, sizes and code of a run's kernel for CUDA; no device is needed."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..job import names_on_device
from ..settings import compile_time_constants, engine_numbers, parts_of
from ..state import Block, Layout, Numbers, Parts, make_blocks
from . import compiling
from .compiling import Code
from .kernel import Kinds, Shape, argument_types, chain_kernel

if TYPE_CHECKING:
    from ..job import Job

LOCAL_SCRATCH = 64  # most floats of a target's scratch in a thread's local memory


def local_shape(block: Block, n_replicas: int) -> Shape:
    """The sizes of one chain's state, from the host's block of all chains."""
    state = block.state
    scratch = state.scratch.shape[0]
    return Shape(
        dim=state.position.shape[0],
        replicas=n_replicas,
        momenta=state.momentum.shape[0],
        memory=state.memory.shape[0],
        curvature=state.curvature.shape[0],
        pairs=state.exchange.attempted.shape[0],
        walkers=n_replicas if state.exchange.walker.size else 0,
        bins=state.contour.table.shape[1] // 2,
        coupling=state.continuous.rows.shape[0],
        coupling_bins=state.continuous.bias.shape[0],
        scratch=scratch,
        distances=state.distances.size,
        scratch_is_local=scratch * n_replicas <= LOCAL_SCRATCH,
        scale_is_local=state.scale.size == state.position.shape[0],
    )


def kinds_of(job: "Job") -> Kinds:
    """The number types of a run's kernel; targets that draw minibatches, and draws for accumulators, are float64."""
    real: Any = np.dtype(job.dtype).type
    return Kinds(
        real, np.float64 if job.problem.target.stochastic else real, np.float64 if names_on_device(job) else real
    )


def one_block(job: "Job", n_chains: int) -> Block:
    """The host's state of the first ``n_chains`` chains."""
    (block,) = make_blocks(job.problem, job.sampler, job.init[:n_chains], Layout(lanes=2**62), 1, job.keys)
    return block


def kernel_inputs(job: "Job", block: Block) -> tuple[Parts, Shape, Numbers, Kinds]:
    """The parts, sizes, numbers and types of a run's kernel, for any number of chains."""
    return parts_of(job), local_shape(block, job.sampler.n_replicas), engine_numbers(job), kinds_of(job)


def kernel_of(job: "Job", real: Any = None) -> tuple[Parts, Shape, Numbers, Kinds]:
    """What a run's kernel is compiled for; runs with equal values share the kernel. real: as in ``chain_codes``."""
    job = job if real is None else replace(job, dtype=np.dtype(real).name)
    parts, shape, numbers, kinds = kernel_inputs(job, one_block(job, 1))
    return parts, shape, compile_time_constants(numbers), kinds


def chain_codes(job: "Job", capabilities: tuple[tuple[int, int], ...], real: Any = None) -> tuple[Code, ...]:
    """The kernel of a run as code for devices of ``capabilities``, such as (9, 0); no device is needed.

    real: float32 or float64; None: the job's ``dtype``.
    """
    made_for = kernel_of(job, real)
    return compiling.codes_of(chain_kernel(*made_for), argument_types(made_for[-1]), capabilities)


def chain_ptx(job: "Job", capability: tuple[int, int], real: Any = None) -> str:
    """The kernel of a run as PTX for devices of ``capability``; real: as in ``chain_codes``."""
    (code,) = chain_codes(job, (capability,), real)
    return code.ptx
