"""The tables of `make bench`: their regression file, interleaving, and questions to a peer's process."""

import csv
import json
import subprocess
import sys

import pytest

from benchmarks.peers import host, install, worker
from benchmarks.runner import command_line, suites
from benchmarks.runner.compare import fallen, main
from benchmarks.runner.rounds import interleaved, steps_for
from benchmarks.runner.tables import ratio_cells

HEAD = ("case", "chains", "× JAX", "× ceiling", "spread")


def write(folder, *rows):
    folder.mkdir(exist_ok=True)
    with (folder / "engine.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])


def test_compare_flags_what_fell_and_nothing_else(tmp_path, capsys):
    committed, new = tmp_path / "committed", tmp_path / "new"
    write(committed, ("sgld", "1", "10", "0.8", "9 – 11"), ("sgld", "64", "20", "–", "a"), ("hmc", "1", "5", "1", "b"))
    write(new, ("sgld", "1", "8.6", "0.9", "c"), ("sgld", "64", "16.9", "–", "d"), ("mala", "1", "1", "1", "e"))
    flagged, compared = fallen(new, committed)
    assert flagged == ["engine: sgld, 64: × JAX 20 → 16.9", "engine: hmc, 1: the row is gone"]
    assert compared == 3
    assert main([str(new), str(committed)]) == 1
    assert "2 flagged" in capsys.readouterr().out
    assert main([str(committed), str(committed)]) == 0
    assert main([str(tmp_path / "none"), str(committed)]) == 2


def test_a_ratio_that_is_no_number_any_more_and_a_table_that_is_gone_are_flagged(tmp_path):
    write(tmp_path / "committed", ("sgld", "1", "10", "0.8", "9 – 11"))
    write(tmp_path / "new", ("sgld", "1", "failed", "0.8", ""))
    assert fallen(tmp_path / "new", tmp_path / "committed") == (["engine: sgld, 1: × JAX 10 → nothing"], 2)
    (tmp_path / "new" / "engine.csv").unlink()
    assert fallen(tmp_path / "new", tmp_path / "committed") == (["engine: the table is gone"], 0)


def test_rounds_run_each_once_and_begin_with_each_in_turn():
    order = []

    def timed(name):
        def call():
            order.append(name)
            return float(len(order))

        return call

    seen = interleaved(2, {name: timed(name) for name in "abc"})
    assert "".join(order) == "abcbca"
    assert seen == {"a": [1.0, 6.0], "b": [2.0, 4.0], "c": [3.0, 5.0]}
    assert ratio_cells([2.0, 8.0, 3.0], [1.0, 2.0, 1.0]) == ("3", "2 – 4")


def test_steps_grow_until_a_run_takes_long_enough_or_there_are_no_more():
    assert 0.4 <= steps_for(lambda n: 1e-3 * n, 1.0, 10**9) * 1e-3 <= 1.0
    assert steps_for(lambda n: 1e-9 * n, 1.0, 500) == 500
    assert steps_for(lambda n: 1e-3 * n, 1.0, 10**9, 7, 7) % 7 == 0


def test_the_worker_answers_with_seconds_or_the_error():
    made = []
    cases = {"sum": lambda n: lambda: sum(range(n)), "bad": lambda n: lambda: 1 / n}
    said = worker.answer({"case": "sum", "numbers": {"n": 10}}, cases, made)
    assert (said["index"], said["value"]) == (0, 45)
    assert worker.answer({"run": 0}, cases, made)["value"] == 45
    with pytest.raises(ZeroDivisionError):
        worker.answer({"case": "bad", "numbers": {"n": 0}}, cases, made)


def test_a_peer_is_asked_through_a_process(monkeypatch, tmp_path):
    """The modules of runs that there are import nothing of this project, so any Python can be asked for what is bad."""
    monkeypatch.setattr(host, "PYTHON", tmp_path / "none")
    with pytest.raises(host.PeerError, match="no peers are installed"):
        host.Peer("absent_runs")
    monkeypatch.setattr(host, "PYTHON", install.Path(sys.executable))
    peer = host.Peer("absent_runs")
    with pytest.raises(host.PeerError, match="exit status"):
        peer.make("sgld")
    peer.close()


def test_pins_are_pinned():
    assert set(install.IMPORTED) <= set(install.pinned())
    assert all(version[0].isdigit() for version in install.pinned().values())


def test_the_command_line_names_what_it_knows(capsys):
    assert command_line.parsed(["speed", "engine", "--small"]).tables == ["engine"]
    for wrong, told in (
        (["speeds"], suites.SUITES),
        (["speed", "engines"], suites.SPEED),
        (["bench", "engine"], ["left out"]),
        (["evidence", "laws", "golden"], ["golden is a command"]),
        (["speed", "--rounds", "0"], ["at least 1"]),
    ):
        with pytest.raises(SystemExit):
            command_line.parsed(wrong)
        error = capsys.readouterr().err
        assert all(name in error for name in told), wrong


def test_help_lists_every_suite_and_table_whose_module_is_there(capsys):
    assert command_line.main([]) == 0
    listed = capsys.readouterr().out
    for suite, tables in suites.SUITES.items():
        assert f"{suite}: " in listed
        for name, table in tables.items():
            assert f" {name:<14} {suites.first_line(table.module)}" in listed
            assert "def main(" in suites.file_of(table.module).read_text(encoding="utf-8"), table


# Parts of those tables, in modules of their own.
PARTS = {f"quality.{name}" for name in ("advice", "stopping_rule", "tuned_anchors", "tuned_worth")}


def test_the_committed_tables_are_those_of_the_suites():
    made = {table.module for suite in suites.SUITES.values() for table in suite.values()}
    written = "".join(suites.file_of(module).read_text(encoding="utf-8") for module in made | PARTS)
    for path in (suites.FOLDER / "measured").glob("*.csv"):
        assert f'"{path.stem}"' in written, path


def test_questions_and_answers_are_lines_of_json():
    """What a package prints does not come between."""
    lines = """
import sys, types
from benchmarks.peers import worker
module = types.ModuleType("made_up")
module.CASES = {"sum": lambda n: lambda: (print("a package prints"), sum(range(n)))[1]}
sys.modules["benchmarks.peers.made_up"] = module
worker.main("made_up", -1)
"""
    asked = "".join(json.dumps(one) + "\n" for one in ({"case": "sum", "numbers": {"n": 3}}, {"run": 0}, {"run": 1}))
    told = subprocess.run([sys.executable, "-c", lines], input=asked, capture_output=True, text=True, check=True).stdout
    made, ran, absent = map(json.loads, told.splitlines())
    assert made["index"] == 0
    assert ran["value"] == 3
    assert ran["seconds"] >= 0.0
    assert absent["error"].startswith("IndexError")
