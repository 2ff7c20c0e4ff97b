"""What is lost on a cluster costs time and no bit: workers, tasks too large, the scheduler, an interruption."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from targets import mixtures
from tests.toolkit.distributed.clusters import local_cluster, worker_processes
from toolkit import (
    CheckpointError,
    CheckpointWarning,
    ClusterError,
    InterruptedWarning,
    accumulators,
    from_callable,
    sample,
    samplers,
)
from toolkit._distributed import distributed_run, tasks
from toolkit._distributed.tasks import TaskQueue, opened, payload_of

ROOT = Path(__file__).resolve().parents[3]
COSINE = mixtures.cosine25()
SGLD = samplers.sgld(0.02)


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


def assert_same(run, other):
    np.testing.assert_array_equal(run.replica_draws, other.replica_draws)
    np.testing.assert_array_equal(run.counts.bounces, other.counts.bounces)


def test_a_worker_that_is_killed_costs_no_bit(client):
    """As an operating system kills a process, while tasks run on it."""
    options = {"n_steps": 10_000, "thin": 5000, "n_chains": 3000, "seed": 5}
    killed = []

    def kill():
        time.sleep(0.4)
        killed.extend(worker_processes(client)[:1])
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    spread = sample(COSINE, SGLD, **options, client=client, chains_per_task=200)
    thread.join()
    assert killed
    assert_same(sample(COSINE, SGLD, **options), spread)


def greedy(points):
    """A normal law whose worker dies where more than two points come at once, as where memory ends."""
    if len(points) > 2 and "distributed.nanny" in sys.modules and os.environ.get("GREEDY"):
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.5 * points[:, 0] ** 2, points


GREEDY = from_callable(greedy, dim=1)


@pytest.mark.slow
def test_tasks_that_kill_their_workers_are_made_smaller(monkeypatch):
    import dask

    options = {"n_steps": 5, "n_chains": 6, "seed": 5}
    whole = sample(GREEDY, samplers.sgld(0.1), **options)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.nanny.environ": {"GREEDY": "1"}}),
        local_cluster(n_workers=1) as client,
    ):
        spread = sample(GREEDY, samplers.sgld(0.1), **options, client=client, chains_per_task=4)
    assert_same(whole, spread)


class Losing(TaskQueue):
    """A queue whose tasks all get lost."""

    def next(self):
        item, _ = super().next()
        return item, tasks.Lost("its worker died")


def test_a_task_of_one_chain_that_is_lost_ends_the_run(client, monkeypatch):
    monkeypatch.setattr(distributed_run, "TaskQueue", Losing)
    with pytest.raises(ClusterError, match="a task of 1 chains was lost with its workers again and again"):
        sample(COSINE, SGLD, n_steps=10, n_chains=4, seed=1, client=client, chains_per_task=2)


def test_workers_of_another_version_are_refused(client, monkeypatch):
    """Also where the scheduler still holds the same request of a client of theirs."""
    kept = TaskQueue(client, tasks.Lost("the same request"))
    assert opened(kept._payload.result())
    monkeypatch.setattr(tasks, "versions", lambda: {"python": "3.11", "manymodes": "0.0.1", "sources": "other"})
    with pytest.raises(ClusterError, match=r"workers must have the toolkit and Python of the client.*0\.0\.1 here"):
        sample(COSINE, SGLD, n_steps=10, n_chains=4, seed=1, client=client)
    with pytest.raises(ClusterError, match="workers must have the toolkit"):
        client.submit(opened, TaskQueue(client, tasks.Lost("the same request"))._payload, pure=False).result()


def test_requests_are_unpickled_once_in_a_process():
    payload = payload_of({"a": 1})
    assert opened(payload) is opened(payload)
    for i in range(2 * tasks.MOST_OPENED):
        opened(payload_of({"a": i}))
    assert len(tasks._OPENED) <= tasks.MOST_OPENED


def test_a_scheduler_that_is_lost_keeps_what_was_done(monkeypatch):
    options = {"n_steps": 20_000, "thin": 10_000, "seed": 1}
    with local_cluster(n_workers=1) as client:
        after, n_done = distributed_run.PartsFolder.after, []

        def close(self, part, collection):
            after(self, part, collection)
            n_done.append(part.last - part.first)
            if len(n_done) == 2:
                client.cluster.close(timeout=5)

        monkeypatch.setattr(distributed_run.PartsFolder, "after", close)
        with pytest.raises(ClusterError, match="the connection to the scheduler was lost") as caught:
            sample(COSINE, SGLD, **options, n_chains=10**5, client=client, chains_per_task=100)
    run = caught.value.run
    assert run.n_chains == sum(n_done) == 200
    np.testing.assert_array_equal(run.draws[:100], sample(COSINE, SGLD, **options, n_chains=100).draws)


def after_tasks(monkeypatch, n, action):
    """Have ``action`` happen when ``n`` tasks have ended."""
    after, left = distributed_run.PartsFolder.after, [n]

    def counting(self, part, collection):
        after(self, part, collection)
        left[0] -= 1
        if left[0] == 0:
            action()

    monkeypatch.setattr(distributed_run.PartsFolder, "after", counting)


def interrupted(client, monkeypatch, **options):
    """A run in which Ctrl-C is pressed while it waits for its third task."""
    press = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    after_tasks(monkeypatch, 2, press.start)
    with pytest.warns(InterruptedWarning, match="of 60,000 chains; the run holds these, in order"):
        run = sample(COSINE, SGLD, n_steps=20_000, n_chains=60_000, seed=4, client=client, **options)
    press.join()
    return run


def test_ctrl_c_keeps_the_chains_that_are_done(client, monkeypatch):
    run = interrupted(client, monkeypatch, thin=4000, chains_per_task=300)
    assert run.interrupted
    assert 0 < run.n_chains < 60_000
    first = sample(COSINE, SGLD, n_steps=20_000, n_chains=1800, thin=4000, seed=4).draws
    for done in np.split(run.draws, run.n_chains // 300):
        assert any(np.array_equal(done, own) for own in np.split(first, 6))


def test_ctrl_c_keeps_pooled_results(client, monkeypatch):
    pools = {"moments": accumulators.pooled(accumulators.moments())}
    run = interrupted(client, monkeypatch, chains_per_task=300, keep_draws=False, accumulators=pools)
    assert run.warnings[0].startswith("The run was interrupted, and has the results of")
    assert run.accumulated["moments"].chains == run.n_chains < 60_000


# Checkpoints: a folder.


def counted(monkeypatch):
    """The chains of each task that is submitted."""
    seen = []
    submit = TaskQueue.submit

    def noted(self, function, item, *arguments):
        seen.append(item)
        submit(self, function, item, *arguments)

    monkeypatch.setattr(TaskQueue, "submit", noted)
    return seen


FEW = {"n_steps": 50, "n_chains": 20, "seed": 6, "chains_per_task": 4}


def fail():
    raise RuntimeError("the power failed")


@pytest.mark.parametrize("pooled", [False, True])
def test_a_run_goes_on_from_its_folder(client, monkeypatch, tmp_path, pooled):
    options = {**FEW, "checkpoint": tmp_path / "folder"}
    if pooled:
        pools = {"moments": accumulators.pooled(accumulators.moments())}
        options |= {"keep_draws": False, "accumulators": pools, "checkpoint_every": 1e-6}
    plain = {name: value for name, value in options.items() if name not in ("checkpoint", "checkpoint_every")}
    whole = sample(COSINE, SGLD, **plain, client=client)
    with monkeypatch.context() as broken:
        after_tasks(broken, 2, fail)
        with pytest.raises(RuntimeError, match="the power failed") as caught:
            sample(COSINE, SGLD, **options, client=client)
    assert caught.value.run.n_chains == 8
    seen = counted(monkeypatch)
    run = sample(COSINE, SGLD, **options, client=client)
    assert len(seen) == 3
    again = sample(COSINE, SGLD, **options, client=client)
    assert len(seen) == 3
    for one in (run, again):
        assert one.gradient_evaluations == whole.gradient_evaluations
        if pooled:
            np.testing.assert_array_equal(one.accumulated["moments"].mean, whole.accumulated["moments"].mean)
        else:
            assert_same(whole, one)


def test_what_is_damaged_is_computed_again(client, monkeypatch, tmp_path):
    """Of five parts the third was edited; then a kill has torn the last."""
    folder = tmp_path / "folder"
    whole = sample(COSINE, SGLD, **FEW, client=client, checkpoint=folder)
    file = folder / "draws"
    content = file.read_bytes()
    places = [match.start() for match in re.finditer(b"manymode\x01", content)]
    assert len(places) == 6
    edited = bytearray(content)
    edited[places[4] - 100] ^= 255
    file.write_bytes(edited)
    with pytest.warns(CheckpointWarning, match=r"is torn or was edited.* 8 chains before that place are used"):
        assert_same(whole, sample(COSINE, SGLD, **FEW, client=client, checkpoint=folder))
    assert len(file.read_bytes()) == len(content)
    file.write_bytes(content[:-7])
    seen = counted(monkeypatch)
    assert_same(whole, sample(COSINE, SGLD, **FEW, client=client, checkpoint=folder))
    assert len(seen) == 1


def test_damaged_pooled_results_give_way_to_those_before(client, tmp_path):
    folder, pools = tmp_path / "folder", {"moments": accumulators.pooled(accumulators.moments())}
    options = {**FEW, "keep_draws": False, "accumulators": pools, "checkpoint": folder, "checkpoint_every": 1e-6}
    whole = sample(COSINE, SGLD, **options, client=client).accumulated["moments"].mean
    (folder / "state").write_bytes((folder / "state").read_bytes()[:-1])
    with pytest.warns(CheckpointWarning, match=r"is torn.*the run goes on from .*previous', saved with \d+ chains"):
        assert np.array_equal(sample(COSINE, SGLD, **options, client=client).accumulated["moments"].mean, whole)
    for name in ("state", "state.previous"):
        (folder / name).write_bytes(b"manymode and nothing")
    with pytest.raises(CheckpointError, match="remove the folder to begin anew"):
        sample(COSINE, SGLD, **options, client=client)


def test_a_file_of_a_folder_that_is_not_ours_is_left_alone(client, tmp_path):
    (tmp_path / "state").write_text("mine")
    with pytest.raises(CheckpointError, match="state' is no checkpoint of this toolkit, and is left alone"):
        sample(COSINE, SGLD, **FEW, client=client, checkpoint=tmp_path)
    assert (tmp_path / "state").read_text() == "mine"


class Names:
    """An accumulator of texts, which no checkpoint holds."""

    needs_energies = False

    def start(self, problem, n_chains):
        return {"name": np.full(n_chains, "none")}

    def update(self, state, draws, weights, energies, steps):
        pass

    def result(self, state):
        return state["name"].copy()


def test_a_folder_holds_one_kind_of_results_and_is_no_store(client, tmp_path):
    pools = {"moments": accumulators.pooled(accumulators.moments())}
    options = {**FEW, "accumulators": pools, "client": client}
    sample(COSINE, SGLD, **options, keep_draws=False, checkpoint=tmp_path / "folder")
    for changes in ({}, {"save": tmp_path / "run.zarr"}):
        with pytest.raises(CheckpointError, match="it holds pooled results, and this call wants"):
            sample(COSINE, SGLD, **options, **changes, checkpoint=tmp_path / "folder")
    with pytest.raises(ValueError, match=r"checkpoint must not end in .*give '.*run.ckpt'"):
        sample(COSINE, SGLD, **options, save=tmp_path / "run.zarr", checkpoint=tmp_path / "run.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_folder_cannot_hold_is_refused(client, tmp_path):
    with pytest.raises(TypeError, match="accumulators must hold arrays of numbers to be saved, got <U4"):
        sample(COSINE, SGLD, **FEW, client=client, checkpoint=tmp_path / "folder", accumulators={"names": Names()})


def test_a_folder_of_another_run_is_refused(client, tmp_path):
    folder = tmp_path / "folder"
    sample(COSINE, SGLD, **FEW, client=client, checkpoint=folder)
    with pytest.raises(CheckpointError, match=r"is of another run: seed: 6 there, 7 here"):
        sample(COSINE, SGLD, **{**FEW, "seed": 7}, client=client, checkpoint=folder)
    with pytest.raises(CheckpointError, match=r"n_steps: 50 there, 51 here"):
        sample(COSINE, SGLD, **{**FEW, "n_steps": 51}, client=client, checkpoint=folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="checkpoint must be an empty folder or that of a run"):
        sample(COSINE, SGLD, **FEW, client=client, checkpoint=tmp_path / "mine")
    with pytest.raises(ValueError, match="checkpoint must be the path of a folder"):
        sample(COSINE, SGLD, **FEW, client=client, checkpoint=tmp_path / "mine" / "letter.txt")
    with pytest.raises(ValueError, match="checkpoint must lie in a folder that exists"):
        sample(COSINE, SGLD, **FEW, client=client, checkpoint=tmp_path / "none" / "folder")


SCRIPT = """
    import numpy as np
    import toolkit
    from toolkit import sample, samplers
    from tests.toolkit.distributed.clusters import local_cluster

    class Farthest:
        needs_energies = False

        def start(self, problem, n_chains):
            return {"farthest": np.zeros(n_chains)}

        def update(self, state, draws, weights, energies, steps):
            np.maximum(state["farthest"], np.abs(draws).max(axis=(1, 2)), out=state["farthest"])

        def result(self, state):
            return state["farthest"].copy()

    if __name__ == "__main__":
        options = {"n_steps": 30, "n_chains": 6, "seed": 1, "accumulators": {"far": Farthest()}}
        means = []
        with local_cluster() as client:
            for stiffness in (2.0, 3.0):

                @toolkit.target(dim=2)
                def mine(x):
                    return 0.5 * (x[0] ** 2 + stiffness * x[1] ** 2), (x[0], stiffness * x[1])

                whole = sample(mine, samplers.sgld(0.1), **options)
                spread = sample(mine, samplers.sgld(0.1), **options, client=client, chains_per_task=2)
                assert (whole.draws == spread.draws).all()
                assert (whole.accumulated["far"] == spread.accumulated["far"]).all()
                means.append(spread.draws.mean())
        assert means[0] != means[1]
        print("the same")
"""


@pytest.mark.slow
def test_functions_and_classes_of_a_script_travel(tmp_path):
    """Of ``__main__``, as in a notebook: also a function that has been defined anew with another value."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(path)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the same\n"
