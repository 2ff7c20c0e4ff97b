"""What is measured: five samplers and their problems."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sysid import identify, likelihoods, systems
from sysid.data import simulate
from targets import constrained, mixtures, shapes
from toolkit import Sampler, samplers, tempering

STEP_SIZE = 1e-3
PARTITION = tempering.Partition(-4.0, 0.5, 32)
ORIGIN = np.zeros(2)


class Case(NamedTuple):
    """A problem, its sampler, and where its chains start."""

    name: str
    problem: Any
    sampler: Sampler
    init: Any


def sgld() -> Case:
    """SGLD on cosine25."""
    return Case("sgld", mixtures.cosine25(), samplers.sgld(STEP_SIZE), ORIGIN)


def r2sgld() -> Case:
    """r2SGLD on cosine25 in the flower, two replicas."""
    return Case("r2sgld", constrained(mixtures.cosine25(), shapes.flower()), samplers.r2sgld(), ORIGIN)


def icsgld() -> Case:
    """ICSGLD on cosine25, five replicas, 32 bins."""
    return Case("icsgld", mixtures.cosine25(), samplers.icsgld(STEP_SIZE, partition=PARTITION), ORIGIN)


def tact_hmc() -> Case:
    """TACT-HMC on cosine25."""
    return Case("tact_hmc", mixtures.cosine25(), samplers.tact_hmc(STEP_SIZE), ORIGIN)


def lorenz() -> Case:
    """SGLD for Lorenz's three parameters from 10,001 velocities, minibatches of 4,096 as windows."""
    energy = likelihoods.derivative(noise="mean", batch_size=4096, batches="windows")
    system = systems.lorenz()
    problem = identify(simulate(system, np.arange(10_001) * 0.01, seed=0), system, likelihood=energy)
    return Case("lorenz", problem, samplers.sgld(5e-6), problem.prepared.start)


MAKERS: dict[str, Callable[[], Case]] = {maker.__name__: maker for maker in (sgld, r2sgld, icsgld, tact_hmc, lorenz)}


@functools.cache
def case_of(name: str) -> Case:
    """The case of this name."""
    return MAKERS[name]()
