"""The engine against plain Python: one chain, written out step by step from the docstrings, with everything on.

Random numbers come from the published generator by the counter layout in ``toolkit.maths.philox``; the rest is floats
and loops. Agreement is to rounding, since plain Python has no fused multiply-add, and exact for all counts.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types

from tests.support.plain_chain import (
    CHAIN,
    ENERGY_NOISE,
    GRADIENT_NOISE,
    MOVE,
    PROBLEM,
    SEED,
    SWAP,
    cosine25,
    factors,
    random,
)
from toolkit import Sampler, boundaries, dynamics, sample, samplers, schedules, tempering
from toolkit._engine import cpu
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit.boundaries import rules


def plain_python(sampler, n_steps, burn_in):
    """(draws, energies, swaps, reflections) of all replicas of the chain."""
    replicas, tempered = len(sampler.temperatures), sampler.tempering
    boundary = sampler.boundary
    positions = [[0.0, 0.0] for _ in range(replicas)]
    swaps, reflections = [0] * (replicas - 1), [0] * replicas
    kept, energies = [], []
    table = factors(np.arange(n_steps), n_steps)
    for step in range(n_steps):
        temperatures = [t * table.temperature[step] for t in sampler.temperatures]
        energy, gradient = zip(*(cosine25(*p) for p in positions), strict=True)
        energy, gradient = list(energy), [list(g) for g in gradient]
        for r, p in enumerate(positions):
            if boundary.kind in rules.PENALTIES and max(abs(v) for v in p) > 0.7:
                away = [v if "printed" in boundary.kind else v - min(max(v, -0.7), 0.7) for v in p]
                energy[r] += 0.5 * boundary.coefficient * (away[0] ** 2 + away[1] ** 2)
                gradient[r] = [g + boundary.coefficient * v for g, v in zip(gradient[r], away, strict=True)]
        if kept and len(energies) < len(kept):
            energies.append(list(energy))
        for r in range(replicas):
            noise = random(r, step, GRADIENT_NOISE)[1]
            gradient[r] = [g + sampler.gradient_noise * z for g, z in zip(gradient[r], noise, strict=True)]
        if tempered and step > 0 and step % tempered.swap_every == 0:
            parity = (step // tempered.swap_every) % 2
            for pair in range(parity, replicas - 1, 2):
                slope = 1 / temperatures[pair] - 1 / temperatures[pair + 1]
                noise = random(pair, step, ENERGY_NOISE)[1]
                difference = energy[pair] - energy[pair + 1] + sampler.energy_noise * (noise[0] - noise[1])
                chance = math.exp(slope * (difference - slope * sampler.correction))
                u = random(pair, step, SWAP)[0][0]
                if chance >= (tempered.swap_threshold or u):
                    for values in (positions, gradient, energy):
                        values[pair], values[pair + 1] = values[pair + 1], values[pair]
                    swaps[pair] += step >= burn_in
        for r in range(replicas):
            h = sampler.step_sizes[r] * table.step_size[step]
            kick = math.sqrt(2.0 * h * temperatures[r])
            noise = random(r, step, MOVE)[1]
            new = [p - h * g + kick * z for p, g, z in zip(positions[r], gradient[r], noise, strict=True)]
            while boundary.kind == "reflect" and max(abs(v) for v in new) > 0.7:
                new = [2.0 * min(max(v, -0.7), 0.7) - v for v in new]  # across the nearest point of the square
                reflections[r] += 1
            positions[r] = new
        if step >= burn_in and table.keep[step]:
            kept.append([list(p) for p in positions])
    return np.array(kept), np.array(energies), swaps, reflections


@pytest.mark.parametrize(
    "boundary",
    [boundaries.reflect(), boundaries.penalise(3.0), boundaries.penalise_as_printed(3.0), boundaries.ignore()],
)
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_four_noisy_replicas_step_by_step(boundary, threshold):
    sampler = Sampler(
        "everything",
        step_sizes=(2e-3, 4e-3, 6e-3, 1e-2),
        temperatures=(1.0, 1.5, 2.5, 4.0),
        dynamics=dynamics.langevin(),
        schedule=schedules.Schedule("mine", factors),
        tempering=tempering.replica_exchange(swap_every=2, swap_threshold=threshold),
        boundary=boundary,
        gradient_noise=0.3,
        energy_noise=0.4,
    )
    run = sample(
        PROBLEM,
        sampler,
        n_steps=90,
        burn_in=21,
        n_chains=CHAIN + 1,
        seed=SEED,
        keep_replicas=True,
        keep_energies=True,
        init=[0.0, 0.0],
    )
    kept, energies, swaps, reflections = plain_python(sampler, 90, 21)
    np.testing.assert_allclose(run.replica_draws[CHAIN].transpose(1, 0, 2), kept, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.energies[CHAIN].T[: len(energies)], energies, rtol=0, atol=1e-7)
    assert run.swaps[CHAIN].tolist() == swaps
    assert min(swaps) > 0
    assert run.reflections[CHAIN].tolist() == reflections
    assert (max(reflections) > 5) == (boundary.kind == "reflect")


def test_parts_that_were_compiled_for_another_kind_are_refused(monkeypatch):
    """The engine gets their addresses alone."""
    job = make_job(PROBLEM, samplers.sgld(1e-3), RunOptions(n_steps=1, init=np.zeros(2), seed=0))
    assert cpu.general_engine(job).pointers
    of_another = SimpleNamespace(type=types.FunctionType(types.void(types.int64)), address=0)
    monkeypatch.setattr(cpu, "part_pointer", lambda compiled: of_another)
    with pytest.raises(TypeError, match="must be compiled as FunctionType"):
        cpu.general_engine(job)
