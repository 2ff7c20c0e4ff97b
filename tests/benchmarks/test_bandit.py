"""The mushroom bandit's runs: kept in files, read back, and not made twice."""

import numpy as np

from benchmarks.learning import bandit
from benchmarks.learning.bandit import Key


def test_runs_are_kept_and_read_back(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    keys = [Key(22, agent, 60, seed) for seed in range(3) for agent in ("pSGLD ×P4", "pICSGLD ×P4, drawn")]
    regret = {key: 5.0 * rng.integers(0, 9, 60).cumsum() for key in keys}
    for key in keys[:4]:
        np.save(bandit.path_of(tmp_path, key), regret[key])
    monkeypatch.setattr(bandit, "KEPT", tmp_path / "bandit_runs.csv")
    bandit.write_runs(tmp_path, {key: regret[key][bandit.EVERY - 1 :: bandit.EVERY] for key in keys[2:]}, 60)
    found = bandit.all_runs(tmp_path, keys)
    assert found.keys() == set(keys)
    for key, curve in found.items():
        np.testing.assert_array_equal(curve, regret[key][[3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59]])
    (row, _) = bandit.rows(found, 22, 60)
    at = np.array([regret[key][51] for key in keys[::2]])
    assert row[:3] == (22, "pSGLD ×P4", 3)
    assert row[3:] == (at.mean(), at.std(ddof=1) / np.sqrt(3))


def test_what_is_kept_is_not_made_again(tmp_path, monkeypatch, capsys):
    kept = [Key(22, agent, 60, 0) for agent in bandit.AGENTS]
    monkeypatch.setattr(bandit, "KEPT", tmp_path / "bandit_runs.csv")
    bandit.write_runs(tmp_path, {key: np.arange(15.0) for key in kept}, 60)
    made = []
    monkeypatch.setattr(bandit, "run", lambda folder, data, key: made.append(key))
    bandit.main(["--inputs", "22", "--turns", "60", "--seeds", "2", "--folder", str(tmp_path), "--out", str(tmp_path)])
    assert made == [Key(22, agent, 60, 1) for agent in bandit.AGENTS]
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(bandit.AGENTS)
