"""Hostile files, each made of a good one, are refused in words that name the path: nothing runs, nothing hangs.

The processes that load them (``files.worker``) have 2 GB of address space more than they need for themselves, and 5 s
for a file. ``python -m tests.hostile.files`` prints the counts.
"""

import dataclasses
import pickle

import numpy as np
import pytest

from tests.hostile.files import attack, worker, zarr_attacks
from tests.hostile.files.attempts import ATTACKS, attempts
from tests.support.saving_cases import FORMATS, NAMED, assert_same_run, run_of
from toolkit import load

FAMILIES = list(dict.fromkeys(attack.family for attack in ATTACKS))
EVERY = 16  # of a family's attacks, one in so many is among the fast tests


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the good files, for attacks, which leave nothing there."""
    made = tmp_path_factory.mktemp("attacks")
    attack.make_base(made / attack.BASE)
    return made


def not_refused(folder, attacks):
    return [f"{o.attack.family}: {o.attack.name}: {o.came}" for o in attempts(folder, attacks) if not o.is_refused]


def test_hostile_files_are_refused(folder):
    """Some of every family, and all whose codecs would run code."""
    chosen = [a for family in FAMILIES for a in [a for a in ATTACKS if a.family == family][::EVERY]]
    chosen += [a for a in ATTACKS if "pickle" in a.name and a not in chosen]
    assert len(chosen) > 60
    assert not not_refused(folder, chosen)


@pytest.mark.slow
def test_all_hostile_files_are_refused(folder):
    assert len(ATTACKS) >= 900
    assert len({(a.family, a.name) for a in ATTACKS}) == len(ATTACKS)
    assert not not_refused(folder, ATTACKS)


@pytest.mark.slow
def test_what_gets_through_is_seen(tmp_path):
    """A good file, one that runs code when it is loaded, and one that waits forever."""
    good = attack.Attack("none", "good", lambda folder: attack.copied(folder, ".npz"))
    (outcome,) = attempts(tmp_path, [good])
    assert outcome.came == "taken"
    assert worker.judged("some file is torn", tmp_path / "run.npz").startswith("does not name the path")
    assert worker.judged("run.npz" + "x" * 5000, tmp_path / "run.npz") == "takes 5007 characters"


def test_the_canary_of_a_zarr_attack_works(folder, tmp_path):
    """The payload writes its file when it is unpickled, as codecs did before numcodecs 0.16.6."""
    files = zarr_attacks.CODECS["pickle filter"](attack.zarr_files(folder / "any"), tmp_path)
    pickle.loads(files["run/header/0"])
    assert (tmp_path / attack.CANARY).exists()


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
@pytest.mark.parametrize("suffix", FORMATS)
def test_arrays_that_shrink_a_thousandfold_are_saved_so_that_they_load(suffix, tmp_path, monkeypatch):
    """Where compressed arrays would be more than a file may hold, the largest are written as they are."""
    monkeypatch.setattr("toolkit._output.storage.limits.FREE", 100_000)
    monkeypatch.setattr("toolkit._output.storage.limits.RATIO", 2)
    run = run_of(NAMED["mala"], n_steps=20_000, burn_in=0, thin=1, keep_energies=True)
    draws, energies = np.zeros_like(run.replica_draws), np.zeros_like(run.energies)
    zeros = dataclasses.replace(run, replica_draws=draws, energies=energies)
    zeros.save(tmp_path / f"run{suffix}")
    assert_same_run(zeros, load(tmp_path / f"run{suffix}"))
