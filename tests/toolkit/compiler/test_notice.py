"""Who waits for the compiler is told so, once, and nobody else is."""

import asyncio
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from toolkit._compiler import notice

ROOT = Path(__file__).resolve().parents[3]


def test_it_is_said_once_after_two_seconds_in_all(monkeypatch, capsys):
    monkeypatch.setattr(notice, "AFTER", 0.3)
    told = notice.CompileNotice()
    for seconds in (0.2, 0.0):  # the second is a short one
        told.on_start(None)
        told.on_start(None)  # inside the first
        told.on_end(None)
        time.sleep(seconds)
        told.on_end(None)
    assert capsys.readouterr().err == ""
    told.on_start(None)
    time.sleep(0.5)
    told.on_end(None)
    assert told.has_said
    told.on_start(None)
    time.sleep(0.4)
    told.on_end(None)
    assert capsys.readouterr().err.splitlines() == [notice.WORDS]


def test_where_nobody_watches_nothing_is_said(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    assert not notice.is_watched()  # pytest takes what is written
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert notice.is_watched()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert not notice.is_watched()
    monkeypatch.delenv("TQDM_DISABLE")
    monkeypatch.setattr(sys, "stderr", None)
    assert not notice.is_watched()


def test_the_process_of_a_script_has_no_listener():
    script = "import toolkit; from numba.core import event; print(len(event._registered['numba:compile']))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


CELLS = [
    """
    import warnings
    import numpy as np
    import toolkit
    from toolkit import sample, samplers, target
    from toolkit._compiler import notice
    from numba.core import event

    assert notice.is_notebook()
    assert len(event._registered["numba:compile"]) == 1
    stiffness = 1.0

    @target(dim=2)
    def own(x):
        return 0.5 * stiffness * (x[0] ** 2 + x[1] ** 2), (stiffness * x[0], stiffness * x[1])

    first = sample(own, samplers.hmc(0.3), n_steps=2_000, n_chains=4, seed=0)
    own
    """,
    """
    stiffness = 100.0

    @target(dim=2)  # the same name, written anew
    def own(x):
        return 0.5 * stiffness * (x[0] ** 2 + x[1] ** 2), (stiffness * x[0], stiffness * x[1])

    second = sample(own, samplers.hmc(0.03), n_steps=2_000, n_chains=4, seed=0)
    print("sd", first.draws.std().round(1), second.draws.std().round(1))
    """,
    "long = sample(own, samplers.sgld(1e-4), n_steps=10**9, keep_draws=False, n_chains=64, seed=0)",
    "print('steps', 0 < long.n_steps < 10**9, long.interrupted)",
]


@pytest.mark.slow
def test_a_notebook_shows_a_bar_a_picture_and_new_functions_and_stops(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(c)) for c in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})

    async def execute():
        async with client.async_setup_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}):
            for number, cell in enumerate(notebook.cells):
                pressing = None
                if number == 2:
                    pressing = asyncio.ensure_future(asyncio.sleep(8.0))
                    pressing.add_done_callback(lambda _: asyncio.ensure_future(client.km.interrupt_kernel()))
                await client.async_execute_cell(cell, number)

    asyncio.run(execute())
    shown, said, long, after = (cell.outputs for cell in notebook.cells)
    assert any("data:image/png" in output.get("data", {}).get("text/html", "") for output in shown)
    assert "sd 1.0 0.1" in "".join(output.get("text", "") for output in said)
    text = "".join(output.get("text", "") for output in long)
    assert re.search("sgld.*step/s", text), text  # the bar
    assert "InterruptedWarning: interrupted after" in text
    assert "steps True True" in "".join(output.get("text", "") for output in after)
