"""In a notebook: functions of its cells travel to workers, also when they are defined anew, and it can be stopped."""

import asyncio
import os
import textwrap
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[3]
START = """
    import numpy as np
    from dask.distributed import Client, LocalCluster
    import toolkit
    from toolkit import from_callable, sample, samplers

    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    client = Client(cluster)
    means = []

    def both(target):
        options = {"n_steps": 40, "n_chains": 6, "seed": 1}
        whole = sample(target, samplers.sgld(0.1), **options)
        spread = sample(target, samplers.sgld(0.1), **options, client=client, chains_per_task=2)
        assert np.array_equal(whole.draws, spread.draws)
        means.append(spread.draws.mean())
"""
TARGETS = """
    stiffness = STIFFNESS

    def called(points):
        return 0.5 * stiffness * (points**2).sum(axis=1), stiffness * points

    @toolkit.target(dim=2)
    def compiled(x):
        return 0.5 * stiffness * (x[0] ** 2 + x[1] ** 2), (stiffness * x[0], stiffness * x[1])

    both(from_callable(called, dim=2))
    both(compiled)
"""
LONG = """
    run = sample(compiled, samplers.sgld(0.1), n_steps=20_000, thin=10_000, n_chains=10**5, seed=1, client=client,
                 chains_per_task=100, checkpoint="folder")
"""
AFTER = """
    assert run.interrupted
    assert 0 < run.n_chains < 10**5
    first = sample(compiled, samplers.sgld(0.1), n_steps=20_000, thin=10_000, n_chains=100, seed=1)
    assert np.array_equal(run.draws[:100], first.draws)
    assert means[0] != means[2] and means[1] != means[3]
    client.close()
    cluster.close()
    print("as on one machine")
"""


@pytest.mark.slow
def test_a_notebook(tmp_path):
    """The stop button sends SIGINT to the kernel and its children, and so ends the workers of a local cluster too."""
    codes = [START, TARGETS.replace("STIFFNESS", "1.0"), TARGETS.replace("STIFFNESS", "2.0"), LONG, AFTER]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(code)) for code in codes])
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    saved = tmp_path / "folder" / "draws"

    async def stop_when_saved():
        while not saved.exists() or saved.stat().st_size < 20_000:
            await asyncio.sleep(0.05)
        await client.km.interrupt_kernel()

    async def execute():
        async with client.async_setup_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}):
            for number, cell in enumerate(notebook.cells):
                pressing = asyncio.ensure_future(stop_when_saved()) if codes[number] is LONG else None
                await client.async_execute_cell(cell, number)
                if pressing is not None:
                    await pressing

    asyncio.run(execute())
    warned, said = ("".join(o.get("text", "") for o in cell.outputs) for cell in notebook.cells[-2:])
    assert "InterruptedWarning: interrupted after" in warned
    assert said.strip().endswith("as on one machine")
