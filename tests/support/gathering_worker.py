"""What ``tests/cuda/test_accumulators.py`` runs in the simulator, which Python must be started with, and its cases.

python -m tests.support.gathering_worker FOLDER RUN …: states of ``gathered`` and results of runs, as FOLDER/*.npz.
"""

import itertools
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from targets import mixtures
from tests.support.simulator_worker import mend
from toolkit import Layout, Target, accumulators, sample, samplers, stream
from toolkit.problem.definition import Problem
from toolkit.tempering.contour_tempering import Partition

EDGES, UNEVEN = np.linspace(-2.0, 2.5, 16), np.array([-3.0, -1.1, -1.0, 0.25, 0.3, 2.0])
COSINE = mixtures.cosine25()
SAMPLERS = {
    "sgld": samplers.sgld(0.01),
    "icsgld": samplers.icsgld(1e-3, n_replicas=2, partition=Partition(-4.5, 0.5, 40)),
    "resgld": samplers.resgld((1e-3, 3e-3, 1e-2), temperatures=(1.0, 3.0, 9.0)),
    "tact": samplers.tact_hmc(1e-3),
}
SHORT, LONG = 25, 41
CHAINS, STEPS, CUTS = 3, np.arange(9, 41, 2), (5, 9)


class Case(NamedTuple):
    """Draws as a device would hold them, (field, draw, replica, chain), of ``targets`` replicas of the target."""

    dim: int
    replicas: int
    targets: int
    is_weighted: bool


CASES = {"weighted pairs": Case(2, 2, 2, True), "coldest of three": Case(3, 3, 1, False)}
MORE = {"a line": Case(1, 1, 1, False), "weighted space": Case(4, 2, 2, True), "a plane": Case(2, 1, 1, False)}


class Spans:
    """An accumulator of a user's: the largest step of a chain between two draws, and how many calls there were."""

    needs_energies = False

    def start(self, problem, n_chains):
        return {"last": np.full((n_chains, problem.target.dim), np.nan), "span": np.zeros(n_chains)}

    def update(self, state, draws, weights, energies, steps):
        path = np.concatenate([state["last"][:, None], draws], axis=1)
        leaps = np.nan_to_num(np.abs(np.diff(path, axis=1)).max(axis=2))
        state["span"][:] = np.maximum(state["span"], leaps.max(axis=1))
        state["last"][:] = draws[:, -1]

    def result(self, state):
        return SimpleNamespace(_fields=("span",), span=state["span"].copy())


def every(dim=2):
    """All accumulators there are."""
    line = dim == 1
    masses = np.full(15 if line else (15, 15), 1.0 / 240)
    return {
        "moments": accumulators.moments(),
        "plane": accumulators.histogram(EDGES, None if line else UNEVEN),
        "line": accumulators.histogram(UNEVEN, coordinates=(0 if line else 1, 0)),
        "kl": accumulators.kl(masses, EDGES, None if line else EDGES, at=[5, 15, 26, 41, 60]),
        "energies": accumulators.energy_histogram(np.linspace(-1.0, 1.0, 25)),
        "best": accumulators.best_point(),
        "batches": accumulators.batch_means(4),
        "pooled moments": accumulators.pooled(accumulators.moments()),
        "pooled kl": accumulators.pooled(accumulators.kl(masses, EDGES, None if line else EDGES, at=[5, 15, 26, 41])),
    }


def raws_of(case):
    """Draws, energies and weights of a case, with a flaw; the first draw of the buffer's room for one more is taken."""
    rng = np.random.default_rng(case.dim)
    shape = (STEPS.size, case.replicas, CHAINS)
    draws, energies = rng.standard_normal((case.dim, *shape)), rng.standard_normal((1, *shape))
    weights = rng.random((1, *shape)) if case.is_weighted else np.zeros((1, 1, *shape[1:]))
    draws[0, 3, 0, 1] = energies[0, 4, 0, 2] = np.nan
    energies[0, 6:8] = -9.0
    return draws, energies, weights


def job_of(case):
    """As much of a job as gathering needs."""
    problem = Problem(Target("any", case.dim, lambda position, energy, gradient, parameters, scratch: None))
    sampler = SimpleNamespace(n_target_replicas=case.targets, is_weighted=case.is_weighted)
    chosen = every(case.dim)
    return SimpleNamespace(
        problem=problem, sampler=sampler, n_kept=case.replicas, accumulators=chosen, backend="cuda",
        init=np.zeros((CHAINS, case.replicas, case.dim)),
    )  # fmt: skip


def gathered(case):
    """States after the draws have come in three pieces; before the last they have been home, and been sent again."""
    from toolkit._engine.cuda import device
    from toolkit._engine.cuda.accumulators import DeviceAccumulation

    job = job_of(case)
    states = {name: a.start(job.problem, CHAINS) for name, a in job.accumulators.items()}
    raws, flow = raws_of(case), device.stream()
    ends = [0, *CUTS, STEPS.size]
    for first, last in itertools.pairwise(ends):
        if first in (0, CUTS[-1]):
            accumulation = DeviceAccumulation(job, states, np.float64)
        room = [device.to_device(raw[:, first : last + 1]) for raw in raws]  # of one draw more than there are
        steps = STEPS[first:last]
        accumulation.add_draws(tuple(room), steps, device.to_device(steps), flow)
        if last >= CUTS[-1]:
            accumulation.fetch(flow)
    return {f"{name}.{key}": array for name, state in states.items() for key, array in state.items()}


def flat(run):
    """Results of a run's accumulators, by names."""
    results = run.accumulated.items()
    fields = {f"{name}.{field}": getattr(result, field) for name, result in results for field in result._fields}
    return {name: np.asarray(value) for name, value in fields.items() if value is not None}


def asked(n_steps=LONG):
    """What runs have in common."""
    return {"n_steps": n_steps, "n_chains": CHAINS, "seed": 7, "burn_in": 6, "accumulators": every()}


def runs_of(name, checkpoint):
    """Runs on the device by what is special with them; checkpoint: of the CPU's, after ``SHORT`` steps."""
    sampler, on = SAMPLERS[name], {"backend": "cuda"}
    yield "chunks", sample(COSINE, sampler, keep_draws=False, layout=Layout(chunk_steps=12), **on, **asked())
    yield "resumed", sample(COSINE, sampler, keep_draws=False, checkpoint=checkpoint, **on, **asked())
    *_, last = stream(COSINE, sampler, layout=Layout(chunk_steps=17), **on, **asked())
    yield "streamed", last
    yield "kept", sample(COSINE, sampler, keep_replicas=True, **on, **asked())
    own = {**asked(), "accumulators": {**every(), "own": Spans()}}
    yield "own", sample(COSINE, sampler, keep_draws=False, layout=Layout(chunk_steps=11), **on, **own)
    saved = f"{checkpoint}.device"
    sample(COSINE, sampler, keep_draws=False, checkpoint=saved, **on, **asked(SHORT))


def what_travels(name):
    """Bytes of draws that a run sends home, and the message where accumulators do not fit."""
    from toolkit._engine.cuda import device, transfers

    sent, plain = [], transfers.Export.copy_to_host

    def travel(export, turn, n, stream):
        sent.append(n * export.moment_bytes)
        plain(export, turn, n, stream)

    transfers.Export.copy_to_host = travel
    try:
        sample(COSINE, SAMPLERS[name], keep_draws=False, backend="cuda", **asked())
    finally:
        transfers.Export.copy_to_host = plain
    device.free_memory = lambda: 5_000
    try:
        sample(COSINE, SAMPLERS[name], keep_draws=False, backend="cuda", **asked())
    except ValueError as error:
        return np.array([str(sum(sent)), str(error)])
    return np.array([str(sum(sent)), "it fits"])


def watch_types():
    """Let a launch fail whose arguments are not of the types compiled for: a device would compile anew, and fuse."""
    from numba import typeof

    from toolkit._engine.cuda import accumulators

    compiled, launch, kinds_of = accumulators.compiled_accumulator, accumulators.launch, {}

    def noted(form, kinds):
        kernel = compiled(form, kinds)
        kinds_of[id(kernel)] = kinds
        return kernel

    def watched(kernel, blocks, threads, stream, arguments):
        assert tuple(map(typeof, arguments)) == kinds_of[id(kernel)]
        launch(kernel, blocks, threads, stream, arguments)

    accumulators.compiled_accumulator, accumulators.launch = noted, watched


if __name__ == "__main__":
    assert os.environ["NUMBA_ENABLE_CUDASIM"] == "1"
    mend()
    watch_types()
    folder = Path(sys.argv[1])
    for title in sys.argv[2:]:
        if title in SAMPLERS:
            for special, run in runs_of(title, folder / f"{title}.ckpt"):
                np.savez(folder / f"{title} {special}.npz", **flat(run))
        else:
            np.savez(folder / f"{title}.npz", **gathered({**CASES, **MORE}[title]))
    np.save(folder / "travels.npy", what_travels(sys.argv[-1]))
