"""Contour whose replicas are in groups, on threads or on workers, that share θ after every round of K steps."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import available_threads, environment
from .._engine.driver import defer_interrupt, progress_bar
from .._engine.job import Job, check_footprint, make_job
from .._engine.run_options import RunOptions
from .._engine.run_record import Counts, Statistics
from .._output.report.warnings import warn_about
from .._output.run import Run
from ..dynamics.metropolis import total_leapfrogs
from ..errors import (
    ClusterError,
    DivergenceError,
    InterruptedWarning,
    check_count,
    check_number,
    check_progress,
    listed,
    shown,
    warn_user,
)
from ..maths.philox import MAX_STEPS
from ..problem.definition import Problem, Target
from ..tempering.contour_groups import SharedTheta, averaged, no_theta, weights_at
from .replica_group import GroupsRequest, sampler_of_replicas
from .round_workers import ClusterWorkers, LocalWorkers, Workers
from .rounds_folder import Progress, RoundsFolder
from .tasks import check_client

Floats = NDArray[np.float64]


def sample_in_rounds(
    problem: Problem | Target,
    sampler: Any,
    *,
    n_groups: int,
    steps_per_round: int,
    n_steps: int,
    seed: int,
    n_chains: int = 1,
    burn_in: int = 0,
    thin: int = 1,
    init: Any = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
    keep_energies: bool = False,
    on_divergence: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Run:
    """Run a contour sampler whose replicas are in ``n_groups`` groups, which share θ every ``steps_per_round`` steps.

    Each group advances its R/n_groups replicas of every chain from the shared θ by ``steps_per_round`` = K steps of
    ``sample``, learning a θ of its own; then θ becomes θ + the mean over groups of θ_group − θ, and positions, momenta
    and what the dynamics remember stay with their group. Only θ, the visits of its bins and a few counts go between
    the groups: 32 bytes a bin, chain, group and round, whatever the dimension. Draws come with ``run.weights``, as of
    ``sample``; ``run.theta``, ``run.counts`` and ``run.warnings`` are those of all replicas.

    sampler: with tempering by ``contour``, and replicas that n_groups divides, such as
    ``samplers.icsgld(n_replicas=8)``; any dynamics, schedule and boundary. client: a ``dask.distributed.Client``, on
    whose workers each group's round is a task (docs/cluster.md; extra ``cluster``); None: threads of this process. The
    bits are the same, whatever the workers, their number and their losses. threads: None for all processors; with a
    client those of each task, None for 1. checkpoint: a folder in which the run is saved every ``checkpoint_every`` > 0
    seconds and at its end; called again the run goes on from there, with the bits of one that was never stopped.
    Others as in ``sample``.

    Law: that of the sampler for any K; as in ``sample`` draws are weighed at the θ that the next step begins with. With
    one group and any K the bits of ``sample``. With K = 1 the run of ``sample`` to rounding, which grows as chaotic
    paths part, if there is no Metropolis test; under a test the flattened energy of a step is that of the group's own
    θ. With K > 1 a group does not know for up to K steps what the others learn; where replicas reach all modes by
    themselves, errors do not grow up to K = 10,000 (docs/cluster.md has them beside the bytes). A contour that
    ``freezes`` shares θ at the end of burn-in for the last time.

    Ctrl-C ends the run after the round under way and returns the draws so far, with an InterruptedWarning. Raises
    TypeError or ValueError before anything runs; ClusterError where the cluster is lost, and DivergenceError, with the
    run so far attached; CheckpointError where a folder is another run's, in use or damaged beyond use.
    Source: ICSGLD (2022), algorithm 1 and B.1.2, where K = 1 and each replica is a group.
    """
    n_groups = check_count("n_groups", n_groups, at_least=1)
    length = check_count("steps_per_round", steps_per_round, at_least=1, below=MAX_STEPS)
    check_progress(progress)
    every = check_number("checkpoint_every", checkpoint_every, above=0.0)
    if client is not None:
        check_client(client)
    options = RunOptions(
        n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init, threads=threads,
        keep_energies=keep_energies, on_divergence=on_divergence,
    )  # fmt: skip
    job = make_job(problem, sampler, options)
    contour: Any = job.sampler.tempering
    if not job.sampler.tempers.weighs_by_chain:
        raise ValueError(
            "sampler must have tempering by contour, whose replicas share θ and nothing else, such as "
            f"samplers.icsgld(n_replicas=8); got {job.sampler.name!r} with tempering={shown(contour)}"
        )
    n_replicas = job.sampler.n_replicas
    if n_replicas % n_groups:
        raise ValueError(
            f"n_groups must divide the {n_replicas} replicas of a chain of {job.sampler.name!r}, got {n_groups}"
        )
    check_footprint(job, keep_draws=True, keep_trace=False)
    next(job.kept_pieces())  # raises where there are none
    options = dataclasses.replace(options, on_divergence=job.on_divergence)
    with RoundsFolder(checkpoint, job, n_groups, length, every) as saved:
        job = saved.complete(job)
        request = GroupsRequest(job.problem, job.sampler, job.init, n_groups, options)
        workers: LocalWorkers | ClusterWorkers
        if client is None:
            workers = LocalWorkers(request, threads or available_threads())
        else:
            workers = ClusterWorkers(client, request, threads or 1)
        with workers:
            return Rounds(job, request, workers, saved, length).run(progress)


class Rounds:
    """A run in rounds of ``length`` steps."""

    def __init__(self, job: Job, request: GroupsRequest, workers: Workers, saved: RoundsFolder, length: int) -> None:
        self._job, self._workers, self._saved, self._length = job, workers, saved, length
        contour: Any = job.sampler.tempering
        self._contour, self._shares = contour, request.n_groups > 1
        self._steps = job.kept_steps()
        replicas = slice(0, request.group_size)
        of_a_group = dataclasses.replace(
            job, init=job.init[:, replicas], sampler=sampler_of_replicas(job.sampler, replicas)
        )
        self._outputs = [of_a_group.empty_outputs(self._steps.size, 0) for _ in range(request.n_groups)]
        self._at = Progress(0, 0, no_theta(len(job.init), contour.partition.n_bins), (), 0.0)
        self._is_whole = True  # the workers' states are those after the last complete round
        self._earlier_theta = np.zeros_like(self._at.shared.theta)

    def run(self, progress: bool | None) -> Run:
        """Do all rounds, or those up to Ctrl-C."""
        self._resume()
        bar = progress_bar(self._job, progress)
        interrupted = False
        try:
            if bar is not None:
                bar.initial = self._at.steps
                bar.update(self._at.steps - bar.n)
            for end in self._round_ends():
                with defer_interrupt():
                    self._round(end)
                if bar is not None:
                    bar.update(end - bar.n)
                self._raise_where_diverged()
        except KeyboardInterrupt:
            if not self._at.steps:
                raise
            self._raise_where_diverged()
            interrupted = True
            self._save_what_there_is()
        except DivergenceError:
            raise
        except Exception as error:
            self._save_what_there_is()
            with contextlib.suppress(Exception):  # an exception without attributes is raised unchanged
                error.run = self._result(interrupted=True) if self._at.steps else None  # type: ignore[attr-defined]
            raise
        finally:
            if bar is not None:
                bar.close()
        if interrupted:
            warn_user(
                f"interrupted after {self._at.steps} of {self._job.n_steps} steps; the run holds {self._at.draws} of "
                f"{self._steps.size} draws",
                InterruptedWarning,
            )
        run = self._result(interrupted=interrupted)
        if not interrupted:
            warn_about(run)
        return run

    def _resume(self) -> None:
        """Begin at the start, or at what was saved last."""
        states = None
        found = self._saved.restore(self._job, self._outputs)
        if found is not None:
            self._at, states = found
            self._earlier_theta = mean_of([state["contour.early"] for state in states])
        self._workers.begin(self._at.steps, states)

    def _round_ends(self) -> Iterator[int]:
        """The steps at which rounds end: multiples of their length, the end, and that of burn-in if θ rests then."""
        job, done = self._job, self._at.steps
        while done < job.n_steps:
            end = min((done // self._length + 1) * self._length, job.n_steps)
            if self._contour.freezes and done < job.burn_in:
                end = min(end, job.burn_in)
            yield end
            done = end

    def _round(self, end: int) -> None:
        """One round of all groups, and what they then share."""
        started = time.perf_counter()
        first, draws, shared, _, seconds = self._at
        is_last = end == self._job.n_steps
        saves = is_last or self._saved.is_due()
        if saves:
            self._workers.want_states()
        self._is_whole = False
        reports = self._workers.advance(first, end, shared if self._shares else None, self._outputs, draws)
        n_draws = int(np.searchsorted(self._steps, end))
        rests = self._contour.freezes and first >= self._job.burn_in
        if not self._shares:
            shared = SharedTheta(*reports[0].learned[:2])
        elif not rests:
            shared = averaged(shared, [report.learned for report in reports])
            if n_draws > draws and self._steps[n_draws - 1] == end - 1:
                self._weigh_again(shared, [report.last_energies for report in reports], n_draws - 1)
        seconds += time.perf_counter() - started
        self._at = Progress(end, n_draws, shared, tuple(report.counts for report in reports), seconds)
        self._is_whole = True
        if saves and self._diverged_status() is None:
            self._save()

    def _weigh_again(self, shared: SharedTheta, energies: list[Floats], slot: int) -> None:
        """Weigh the draws of the last step, which the groups have weighed at θ of their own, at what they share."""
        weights = weights_at(np.concatenate(energies, axis=1), shared, self._contour)
        size = energies[0].shape[1]
        for number, outputs in enumerate(self._outputs):
            own = outputs.weights[:, :, slot]
            own[...] = np.where(np.isfinite(own), weights[:, number * size : (number + 1) * size], np.nan)

    def _save(self) -> None:
        """Save the run after the last round."""
        states = self._workers.states()
        self._earlier_theta = mean_of([state["contour.early"] for state in states])
        self._saved.save(self._at, states, self._outputs)

    def _save_what_there_is(self) -> None:
        """Save the run after the last round, where its state can still be had."""
        if self._is_whole or self._workers.keeps_states:
            with contextlib.suppress(ClusterError, KeyboardInterrupt):
                self._save()

    def _diverged_status(self) -> NDArray[np.int64] | None:
        """The status (chain, replica) where the run must end: a replica has diverged; with "keep" one of each chain."""
        status = np.concatenate([counts.status for counts in self._at.counts], axis=1)
        chains = (status > 0).any(axis=1)
        return status if (chains.all() if self._job.on_divergence == "keep" else chains.any()) else None

    def _raise_where_diverged(self) -> None:
        """Raise DivergenceError where the run must end."""
        status = self._diverged_status()
        if status is None:
            return
        step = int(status[status > 0].min()) - 1
        chain, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
        group, place = divmod(replica, self._outputs[0].draws.shape[1])
        position = self._workers.states()[group]["position"][chain, :, place].copy()
        step_size = float(self._job.sampler.per_chain("step_sizes", np.array([chain]), np.array([replica]))[0])
        others = "" if self._job.on_divergence == "keep" else " With on_divergence='keep' other chains go on."
        raise DivergenceError(
            f"chain {chain}, replica {replica} diverged at step {step}: its last finite position is "
            f"{listed(position)}, its step size {step_size:g}. Step size times gradient overshoots: make the step "
            f"size smaller. {int((status > 0).sum())} of {status.size} replicas diverged; this error's `run` holds the "
            f"draws so far.{others}",
            chain=chain, replica=replica, step=step, state=position, run=self._result(interrupted=True),
        )  # fmt: skip

    def _result(self, *, interrupted: bool) -> Run:
        """The run so far."""
        job, at = self._job, self._at
        steps, leapfrogs = at.steps, job.sampler.dynamics.leapfrogs
        total = total_leapfrogs(leapfrogs, job.seed, 0, steps) if job.sampler.dynamics.random_length else 0

        def joined(name: str) -> Any:
            return np.concatenate([getattr(outputs, name)[:, :, : at.draws] for outputs in self._outputs], axis=1)

        return Run(
            problem=job.problem, sampler=job.sampler, seed=job.seed, n_steps=steps, total_steps=job.n_steps,
            burn_in=job.burn_in, thin=job.thin, init=job.init, replica_draws=joined("draws"),
            steps=self._steps[: at.draws], energies=joined("energies") if job.keep_energies else None,
            replica_weights=joined("weights"),
            statistics=Statistics(*np.moveaxis(joined("statistics"), 3, 0)) if job.keep_statistics else None,
            counts=counts_of_all(at, self._earlier_theta), sampling_steps=max(0, steps - job.burn_in), trace=None,
            gradient_evaluations=job.gradients(steps, total), elapsed=at.elapsed, interrupted=interrupted,
            made_with=environment(),
        )  # fmt: skip


def mean_of(arrays: list[Floats]) -> Floats:
    """The mean of arrays, in their order."""
    return np.asarray(sum(arrays[1:], arrays[0].copy()) / len(arrays))


def counts_of_all(at: Progress, earlier_theta: Floats) -> Counts:
    """The counts of all groups together. earlier_theta: (chain, bin), the mean of theirs."""
    first = at.counts[0]
    by_replica = ("status", "bounces", "fallbacks", "accepted_moves")
    return first._replace(
        **{name: np.concatenate([getattr(counts, name) for counts in at.counts], axis=1) for name in by_replica},
        outside=np.sum([counts.outside for counts in at.counts], axis=0),
        theta=at.shared.theta,
        earlier_theta=earlier_theta,
        visits=at.shared.visits.astype(np.int64),
    )
