"""A chain's state on a device: which sizes it has, and where its fields lie in its columns of floats and integers."""

from typing import NamedTuple

import numpy as np

from .compiling import inlined


class Shape(NamedTuple):
    """The sizes of one chain's state, which the kernel is compiled for."""

    dim: int
    replicas: int
    momenta: int  # rows: dim, or 0 without a momentum
    memory: int  # rows
    curvature: int  # rows: dim, or 0
    pairs: int
    walkers: int  # replicas, or 0 without replica exchange
    bins: int  # of contour
    coupling: int  # rows of continuous tempering
    coupling_bins: int
    scratch: int  # rows
    distances: int
    scratch_is_local: bool


class Column(NamedTuple):
    """Where a field of a chain's state begins in its column, and how many numbers it has."""

    first: int
    size: int


def float_columns(shape: Shape) -> dict[str, Column]:
    """Floats of a chain, by the names of ``snapshots``, and the two that the sampler gives."""
    replicas = shape.replicas
    return columns(
        {
            "position": shape.dim * replicas,
            "momentum": shape.momenta * replicas,
            "memory": shape.memory * replicas,
            "exchange.correction": shape.pairs,
            "exchange.rests": shape.pairs,
            "contour.scale": 1 if shape.bins else 0,
            "continuous.rows": shape.coupling * replicas,
            "scratch": shape.scratch * replicas if shape.scratch_is_local else 0,
            "base_step_size": replicas,
            "base_temperature": replicas,
        }
    )


def integer_columns(shape: Shape) -> dict[str, Column]:
    """Integers of a chain, by the names of ``snapshots``, and its status."""
    replicas, walkers = shape.replicas, shape.walkers
    return columns(
        {
            "status": replicas,
            "bounces": replicas,
            "fallbacks": replicas,
            "accepted": replicas,
            "exchange.walker": walkers,
            "exchange.last_end": walkers,
            "exchange.attempted": shape.pairs,
            "exchange.accepted": shape.pairs,
            "exchange.round_trips": 1 if shape.walkers else 0,
            "contour.outside": 3 if shape.bins else 0,
            "contour.mark": 1 if shape.bins else 0,
        }
    )


def columns(sizes: dict[str, int]) -> dict[str, Column]:
    """``sizes`` one after the other."""
    firsts = np.cumsum([0, *sizes.values()])
    return {name: Column(int(first), size) for (name, size), first in zip(sizes.items(), firsts, strict=False)}


@inlined
def take(local, source, first, thread):
    """Copy a matrix out of a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            local[i, j] = source[first + i * local.shape[1] + j, thread]


@inlined
def take_row(local, source, first, thread):
    """Copy a row out of a chain's column."""
    for j in range(local.shape[0]):
        local[j] = source[first + j, thread]


@inlined
def put(local, target, first, thread):
    """Copy a matrix into a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            target[first + i * local.shape[1] + j, thread] = local[i, j]


@inlined
def put_row(local, target, first, thread):
    """Copy a row into a chain's column."""
    for j in range(local.shape[0]):
        target[first + j, thread] = local[j]


@inlined
def first_of(a, b):
    """The first of two, where a kernel is compiled for one of them."""
    return a


@inlined
def second_of(a, b):
    """The second of two."""
    return b
