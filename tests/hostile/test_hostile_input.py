"""Malformed calls, made up by Hypothesis, at everything public: each is refused in words, in time, leaving nothing.

Every argument of every public function is given values that are wrong for it, by its kind; a refusal is a documented
exception that one of the project's own ``raise`` statements raised, with the argument's name and a value. Values that
are odd but may be right must give numbers, or such a refusal. The calls are made by processes of their own
(``worker``), so that a call that hangs, or takes Python with it, is told by its name.
"""

import importlib
import os

import pytest

from tests.hostile.calls import EXCUSED, name_of, surface
from tests.hostile.fuzz import outcome, reports, start


def table(name):
    """A table of calls, whose shapes and systems take a second to make: not in workers that only collect this file."""
    return importlib.import_module(f"tests.hostile.tables.{name}")


def test_calls_that_write_leave_the_folder_they_run_in_as_it_is(tmp_path, monkeypatch):
    """Files and folders of the names that they use stay as they are."""
    names = ("figures", "saved", "damaged", "run.npz")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kept").write_text("kept")
    monkeypatch.chdir(tmp_path)
    result_calls = table("result_calls")
    result_calls.save_figure()
    result_calls.save_and_clear()
    result_calls.load_run()
    result_calls.load_damaged(".npz", (0.0, "none", 0.0))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == sorted(
        path for name in names for path in (name, f"{name}/kept")
    )


def test_everything_public_is_called():
    """A function that is new and public must be given its kinds, or an excuse."""
    calls = [call for part in ("toolkit", "target", "result", "sysid") for call in table(f"{part}_calls").CALLS]
    called = {name_of(call.function) for call in calls} | {call.name.partition(" of ")[0] for call in calls}
    public = dict(surface())
    assert len(public) > 100
    forgotten = public.keys() - called
    assert not {name for name in forgotten if EXCUSED.isdisjoint([name.split(".")[-1], ".".join(name.split(".")[-2:])])}
    for call in calls:
        call.arguments()


@pytest.mark.parametrize(
    ("refused", "processes", "of"), [(60, 1, 18), pytest.param(1_000, 2, 2, marks=pytest.mark.slow)]
)
def test_malformed_calls_are_refused_in_words(tmp_path, refused, processes, of):
    """One call in eighteen, and behind the marker every one."""
    found = reports(tmp_path, 1, 0, processes, of)
    assert not [fault for report in found for fault in report["found"]]
    assert sum(report["refused"] for report in found) >= refused


@pytest.mark.slow
def test_20000_malformed_calls_of_another_day_are_refused_in_words(tmp_path):
    found = reports(tmp_path, 25, int.from_bytes(os.urandom(3)))
    assert not [fault for report in found for fault in report["found"]]
    assert sum(report["refused"] for report in found) >= 20_000


FAULTS = {
    "indexes": "ended in IndexError", "is_vague": "does not name number", "takes_all": "is taken",
    "borrows": "none of our checks raised", "says_nothing": "says no value",
    "names_in_passing": "does not name number", "gives_nan": "gives nan",
    "writes": "left", "hangs": "ended by", "crashes": "ended by",
}  # fmt: skip


def test_bad_functions_are_found_out(tmp_path):
    """The net holds: functions with one fault each, of which two end their process."""
    groups = ("^(?!hangs|crashes)", "hangs", "crashes")
    folders = [tmp_path / str(place) for place in range(3)]
    running = [start(place, f"examples:{group}", 0, 1, 20, 0) for place, group in zip(folders, groups, strict=True)]
    found = [fault for each in zip(folders, running, strict=True) for fault in outcome(*each)["found"]]
    for name, fault in FAULTS.items():
        assert any(name in one and fault in one for one in found), name
