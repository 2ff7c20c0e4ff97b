"""Sweeps on Dask: the table of one machine, with workers that die, and with functions of a script."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toolkit
from targets import mixtures
from toolkit import InterruptedWarning, samplers
from toolkit._distributed.sweeps import sweep as sweep_module

distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[3]
TWO = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 3.0]], 1.0)
RUN = {"n_steps": 60, "n_chains": 3, "burn_in": 10}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def grid_of(count=12):
    return toolkit.grid(samplers.sghmc, {"step_size": np.geomspace(0.01, 0.1, count), "friction": [0.1, 0.5]})


def test_a_cluster_gives_the_table_of_one_machine(client, tmp_path):
    call = dict(RUN, seeds=[0, 1], measure=lambda run: {"last": run.draws[:, -1]})
    alone = toolkit.sweep(TWO, grid_of(), **call)
    assert toolkit.sweep(TWO, grid_of(), client=client, **call).equals(alone)
    path = tmp_path / "sweep.ckpt"  # begun here, extended there
    call["measure"] = None
    toolkit.sweep(TWO, grid_of(6), checkpoint=path, **call)
    found = toolkit.sweep(TWO, grid_of(), client=client, checkpoint=path, **call)
    assert found.equals(toolkit.sweep(TWO, grid_of(), **call))


def test_problem_and_grid_are_sent_once(client, monkeypatch):
    """A task carries numbers of cells alone."""
    sent = []
    submit = client.submit
    monkeypatch.setattr(
        client, "submit", lambda f, *given, **named: sent.append((f, given)) or submit(f, *given, **named)
    )
    monkeypatch.setattr(sweep_module, "MOST_CELLS", 4)
    toolkit.sweep({"two": TWO}, grid_of(), client=client, seeds=[0], **RUN)
    (_, payload), *tasks = sent
    assert payload[0].digest
    assert len(tasks) >= 6
    assert all(isinstance(cells, list) and len(cells) <= 4 for _, (_, cells) in tasks)


def test_what_a_task_raises_names_the_run(client):
    def fails(run):
        if run.sampler.dynamics.parameters[0] != samplers.sghmc(friction=0.5).dynamics.parameters[0]:
            raise KeyError("what")
        return {}

    with pytest.raises(KeyError, match="what") as caught:
        toolkit.sweep(TWO, grid_of(), client=client, seeds=[5], measure=fails, **RUN)
    assert "friction=0.1 on 'gaussian_mixture(2 in 2-D)', seed=5" in caught.value.__notes__[0]


def test_ctrl_c_returns_what_has_come(client, monkeypatch):
    monkeypatch.setattr(sweep_module, "MOST_CELLS", 2)
    add = sweep_module.Collected._add

    def press(self, items, results):
        add(self, items, results)
        if self.n_done >= 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module.Collected, "_add", press)
    with pytest.warns(InterruptedWarning, match="interrupted after 6 of 24 runs"):
        table = toolkit.sweep(TWO, grid_of(), client=client, seeds=[0], **RUN)
    assert table["mean"].notnull().all("coordinate").sum() == 6


SCRIPT = """
import os, sys, tempfile, numpy as np, toolkit
from toolkit import samplers

@toolkit.target(dim=1)
def bowl(x):
    return 0.5 * x[0] ** 2, (x[0],)

def constructor(step_size, friction):
    return samplers.sghmc(step_size, friction=friction)

def dies_once(run):
    marker = os.path.join(folder, "died")
    if run.seed == 1 and os.getpid() != own_process and not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(1)
    return {"last": run.draws[:, -1]}

if __name__ == "__main__":
    folder, own_process = sys.argv[1], os.getpid()
    from distributed import Client, LocalCluster
    grid = toolkit.grid(constructor, {"step_size": np.geomspace(0.01, 0.1, 5), "friction": [0.1, 0.5]})
    call = dict(n_steps=60, seeds=[0, 1], n_chains=3, measure=dies_once)
    alone = toolkit.sweep(bowl, grid, **call)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
        with Client(cluster) as client:
            found = toolkit.sweep(bowl, grid, client=client, **call)
    assert found.equals(alone)
    assert os.path.exists(os.path.join(folder, "died"))
    print("equal")
"""


@pytest.mark.slow
def test_functions_of_a_script_travel_and_a_worker_may_die(tmp_path):
    """Target, constructor and measure of ``__main__``, on processes of which one exits in the middle."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.stdout.strip().endswith("equal"), ended.stderr[-3000:]
