"""Groups on workers of a cluster: the bits of one machine, with workers that die too."""

import dataclasses
import os
import signal
from types import SimpleNamespace

import distributed
import numpy as np
import pytest

from targets import mixtures
from tests.toolkit.distributed.clusters import local_cluster
from toolkit import InterruptedWarning, Target, sample_in_rounds, samplers
from toolkit._distributed import replica_group, round_workers
from toolkit.errors import ClusterError
from toolkit.tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs of some hundred steps are not settled

PLANE = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 0.0]], 1.0)
FOUR = samplers.icsgld(0.02, n_replicas=4, partition=Partition(2.0, 0.4, 20))
ROUNDS = {
    "n_groups": 2, "steps_per_round": 10, "n_steps": 400, "seed": 5, "n_chains": 3, "burn_in": 20, "thin": 3,
    "keep_energies": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process of its own with one thread."""
    with local_cluster() as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def here():
    """The run on threads of this process."""
    return sample_in_rounds(PLANE, FOUR, threads=1, **ROUNDS)


def same(one, other):
    """Whether two runs have the same bits."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("replica_draws", "replica_weights", "energies")]
    pairs += list(zip(one.counts, other.counts, strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def after_rounds(monkeypatch, n_rounds, action):
    """Let ``action`` happen when the client has the results of the round ``n_rounds``; returns the workers made."""
    advance, made = round_workers.ClusterWorkers.advance, []

    def counting(self, *given):
        found = advance(self, *given)
        made.append(self)
        if len(made) == n_rounds:
            action()
        return found

    monkeypatch.setattr(round_workers.ClusterWorkers, "advance", counting)
    return made


@pytest.mark.slow_cases("7")
@pytest.mark.parametrize("home_every", [7, 32])
def test_bits_are_those_of_one_machine(client, here, home_every, monkeypatch):
    monkeypatch.setattr(round_workers, "HOME_EVERY", home_every)
    made = after_rounds(monkeypatch, 0, None)
    run = sample_in_rounds(PLANE, FOUR, client=client, **ROUNDS)
    assert same(run, here)
    moved, bins, n_rounds = made[0].moved, 20, 40
    assert moved.shared == n_rounds * 2 * 3 * 2 * bins * 8
    assert moved.draws == sum(a.nbytes for a in (run.replica_draws, run.replica_weights, run.energies))
    state = sum(array.nbytes for array in made[0].states()[0].values())
    assert moved.states == 2 * 2 * state * -(-n_rounds // home_every)


def test_one_group_on_a_worker_has_its_bits(client):
    alone = {**ROUNDS, "n_groups": 1}
    assert same(sample_in_rounds(PLANE, FOUR, client=client, **alone), sample_in_rounds(PLANE, FOUR, **alone))


def test_a_worker_that_dies_changes_no_bit(client, here, monkeypatch):
    """Its states are computed anew from the last that were brought here."""
    pids = list(client.run(os.getpid).values())
    killed = []

    def kill():
        killed.append(pids[0])
        os.kill(pids[0], signal.SIGKILL)

    made = after_rounds(monkeypatch, 20, kill)
    assert same(sample_in_rounds(PLANE, FOUR, client=client, **ROUNDS), here)
    assert killed
    assert len(made) == 40
    client.wait_for_workers(2)
    assert pids[0] not in client.run(os.getpid).values()


def test_a_target_of_a_script_goes_to_the_workers(client):
    def quartic(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            x = position[0, lane]
            energy[lane] = 0.25 * x * x * x * x
            gradient[0, lane] = x * x * x

    target = Target("quartic", 1, quartic)
    sampler = dataclasses.replace(
        FOUR, tempering=dataclasses.replace(FOUR.tempering, partition=Partition(0.0, 0.5, 12))
    )
    arguments = {**ROUNDS, "n_steps": 60}
    assert same(
        sample_in_rounds(target, sampler, client=client, **arguments), sample_in_rounds(target, sampler, **arguments)
    )


def test_a_run_goes_on_from_its_folder_with_other_workers(client, here, tmp_path, monkeypatch):
    saving = {**ROUNDS, "checkpoint": tmp_path / "run"}
    with monkeypatch.context() as patch:
        after_rounds(patch, 7, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.warns(InterruptedWarning, match="interrupted after 70 of 400 steps"):
            run = sample_in_rounds(PLANE, FOUR, client=client, **saving)
    assert np.array_equal(run.replica_draws, here.replica_draws[:, :, : run.replica_draws.shape[2]])
    made = after_rounds(monkeypatch, 0, None)
    assert same(sample_in_rounds(PLANE, FOUR, client=client, **saving), here)
    assert len(made) == 33
    assert same(sample_in_rounds(PLANE, FOUR, **saving), here)


def test_a_round_that_kills_its_workers_is_told_of(client, monkeypatch):
    killed = distributed.scheduler.KilledWorker("round", SimpleNamespace(address="tcp"), 3)

    def lost(self, futures):
        raise killed

    after_rounds(monkeypatch, 2, lambda: monkeypatch.setattr(type(client), "gather", lost))
    with pytest.raises(ClusterError, match="a round was lost with its workers again and again") as caught:
        sample_in_rounds(PLANE, FOUR, client=client, **ROUNDS)
    assert caught.value.run.n_steps == 20


def test_a_scheduler_that_is_lost_ends_the_run_which_goes_on_from_its_folder(here, tmp_path, monkeypatch):
    saving = {**ROUNDS, "checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client, monkeypatch.context() as patch:
        after_rounds(patch, 8, cluster.close)
        with pytest.raises(ClusterError, match="the connection to the scheduler was lost") as caught:
            sample_in_rounds(PLANE, FOUR, client=client, **saving)
    assert caught.value.run.n_steps == 80
    assert same(sample_in_rounds(PLANE, FOUR, **saving), here)


def test_a_worker_keeps_few_engines():
    assert sum(map(len, replica_group._IDLE.values())) <= replica_group.MOST_IDLE
