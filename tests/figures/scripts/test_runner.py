"""Verdicts on claims, and the command line that makes figures; on small scripts."""

import dataclasses
import importlib
import math
import sys

import numpy as np
import pytest

import figures.__main__ as command_line
from figures import script
from figures.scripts import output, side_by_side
from figures.scripts.cached_data import read
from figures.scripts.claims import DERIVED, THEORY, VERDICTS, Claim, check_claim
from figures.scripts.study import Study
from targets import mixtures
from toolkit import CudaError, samplers


@pytest.mark.parametrize(
    ("claim", "verdict", "ratio"),
    [
        (Claim("ESS", 100.0, 150.0, 10.0, "higher"), "better", 1.5),
        (Claim("ESS", 100.0, 50.0, 10.0, "higher"), "worse", 0.5),
        (Claim("KL", 0.5, 0.25, 0.01, "lower"), "better", 0.5),
        (Claim("KL", 0.5, 0.75, 0.01, "lower"), "worse", 1.5),
        (Claim("KL", 0.5, 0.519, 0.01, "lower"), "equal within error", 1.038),
        (Claim("KL", 0.5, 0.521, 0.01, "lower"), "worse", 1.042),
        (Claim("KL", 0.5, 0.55, 0.01, "lower", printed_error=0.03), "equal within error", 1.1),
        (Claim("rho", 9.0, 11.0, 0.1, 10.5), "better", 11.0 / 9.0),
        (Claim("rho", 10.0, 12.0, 0.1, 10.5), "worse", 1.2),
        (Claim("rho", 10.0, 12.0, 0.1, 12), "better", 1.2),
        (Claim("KL", math.nan, 0.5, 0.01, "lower"), "not printed", math.nan),
        (Claim("swaps", 0.0, 0.5, 0.01, "higher"), "better", math.nan),
        (Claim("modes", 25.0, 25.0, 0.0, "higher"), "equal within error", 1.0),
        (Claim("ratio", 1.0, 1.5, 0.1, "higher", in_words=True), "as claimed", math.nan),
        (Claim("ratio", 1.0, 0.5, 0.1, "lower", in_words=True), "as claimed", math.nan),
        # A claim in words that is not seen is no agreement, whatever the reason.
        (Claim("ratio", 1.0, 0.5, 0.1, "higher", in_words=True), "contradicted", math.nan),
        (Claim("ratio", 1.0, 1.5, 0.1, "lower", in_words=True), "contradicted", math.nan),
        (Claim("ratio", 1.0, 1.1, 0.1, "higher", in_words=True), "not shown", math.nan),
        (Claim("modes", 0.0, -0.33, 0.36, "higher", in_words=True), "not shown", math.nan),
        (Claim("modes", 0.0, 0.0, 0.0, "higher", in_words=True), "not shown", math.nan),
        (Claim("modes", 0.0, 1.0, 0.0, "higher", in_words=True), "as claimed", math.nan),
        # A law is missed to either side; what is not the same quantity is neither better nor worse.
        (Claim("law", 2.512, 2.86, 0.15, "higher", origin=THEORY), "missed", 2.86 / 2.512),
        (Claim("law", 2.512, 2.10, 0.15, "higher", origin=THEORY), "missed", 2.10 / 2.512),
        (Claim("law", 2.512, 2.49, 0.13, "higher", origin=THEORY), "held", 2.49 / 2.512),
        (Claim("integral", 0.4, 0.4050, 0.0036, 0.4, origin=DERIVED), "held", 0.405 / 0.4),
        (Claim("integral", 0.4, 0.4105, 0.0036, 0.4, origin=DERIVED), "missed", 0.4105 / 0.4),
        (Claim("θ", 0.24, 0.0328, 0.004, "lower", origin=DERIVED), "better", 0.0328 / 0.24),
        (Claim("ESS ratio", 0.602, 1495.0, 97.0, "higher", is_same=False), "another quantity", 1495.0 / 0.602),
        (Claim("ESS ratio", 0.602, 0.2865, 0.008, "higher", is_same=False), "another quantity", 0.2865 / 0.602),
    ],
)
def test_verdicts(claim, verdict, ratio):
    assert check_claim(claim) is claim
    assert claim.verdict == verdict in VERDICTS
    assert claim.ratio == pytest.approx(ratio, nan_ok=True)


def test_a_claim_that_is_not_shown_says_which_effect_would_have_been():
    """Of normal estimates with the error of the claim, centred on that value, four in five exceed two errors."""
    for aim, sign in (("higher", 1.0), ("lower", -1.0)):
        claim = Claim("ratio", 1.0, 1.1, 0.06, aim, printed_error=0.08, in_words=True)
        estimates = np.random.default_rng(0).normal(claim.shown_from, 0.1, 20_000)
        shown = sum(claim._replace(ours=float(x)).verdict == "as claimed" for x in estimates) / 20_000
        assert shown == pytest.approx(0.8, abs=0.01)
        assert sign * (claim.shown_from - 1.0) > 0.0
    assert math.isnan(Claim("modes", 0.0, 0.0, 0.0, "higher", in_words=True).shown_from)  # no spread, no power
    assert math.isnan(Claim("KL", 0.5, 0.25, 0.01, "lower").shown_from)


GOOD = Claim("KL", 0.5, 0.25, 0.01, "lower")


@pytest.mark.parametrize(
    "change",
    [
        {"what": ""},
        {"aim": "more"},
        {"aim": math.nan},
        {"ours": math.nan},
        {"error": math.inf},
        {"error": -0.1},
        {"aim": 0.5, "in_words": True},
        {"origin": "hearsay"},
    ],
)
def test_claims_that_say_nothing_are_refused(change):
    with pytest.raises(ValueError, match="must be"):
        check_claim(GOOD._replace(**change))


SCRIPT = '''"""Small figure {name}.

A caption of
two lines.
"""
import matplotlib.pyplot as plt
from figures import Claim

SEED = 5


def measure(study):
    """Counts how often it is called."""
    with open({log!r}, "a") as file:
        print({name!r}, study.seed, study.quick, study.backend, file=file)
    {body}
    return {{"x": [float(study.seed)]}}


def draw(data):
    return plt.figure(figsize=(0.2, 0.1 * len(data["x"])))


def table(data):
    return [{{"x": float(data["x"][0])}}]


def compare(data):
    {compare}
    return [Claim("x", 1.0, float(data["x"][0]), 0.1, "higher")]
'''


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Three small scripts in a folder of their own, of which the second fails; out, and who was measured so far."""
    here, log, out = tmp_path / "figures", tmp_path / "log", tmp_path / "out"
    here.mkdir()
    log.touch()
    package = importlib.import_module("figures")
    for name, body in (("csgld_fig1", ""), ("csgld_fig2", "1 / 0"), ("csgld_fig10", "")):
        (here / f"{name}.py").write_text(SCRIPT.format(name=name, log=str(log), body=body or "pass", compare="pass"))
        monkeypatch.delitem(sys.modules, f"figures.{name}", raising=False)
        monkeypatch.delattr(package, name, raising=False)
    (here / "csgld_helpers.py").write_text("1 / 0\n")  # no figure
    module = sys.modules[script.__module__]
    monkeypatch.setattr(command_line, "default_jobs", lambda: 1)  # children would not find these scripts
    monkeypatch.setattr(module, "HERE", here)
    monkeypatch.setattr(package, "__path__", [str(here), *package.__path__])
    monkeypatch.setattr(module, "digest", lambda module, function: f"digest of {module}")
    yield out, lambda: log.read_text().splitlines()
    for name in ("csgld_fig1", "csgld_fig2", "csgld_fig10"):
        sys.modules.pop(f"figures.{name}", None)


def run(out, *arguments):
    return command_line.main(["run", *arguments, "--out", str(out)])


def test_list_names_every_script_in_order(scripts, capsys):
    assert command_line.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "csgld_fig1   Small figure csgld_fig1", "csgld_fig2   Small figure csgld_fig2",
        "csgld_fig10  Small figure csgld_fig10",
    ]  # fmt: skip


def test_one_is_run_and_then_read_back(scripts, capsys):
    out, measured = scripts
    assert run(out, "csgld_fig1") == 0
    assert "csgld_fig1: measured and drawn" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["csgld_fig1.csv", "csgld_fig1.pdf", "csgld_fig1.png", "data"]
    first = {path.name: path.read_bytes() for path in out.glob("csgld*")}
    assert run(out, "csgld_fig1") == 0
    assert "csgld_fig1: read back and drawn" in capsys.readouterr().out
    assert first == {path.name: path.read_bytes() for path in out.glob("csgld*")}
    assert measured() == ["csgld_fig1 5 False cpu"]
    assert run(out, "csgld_fig1", "--fresh") == 0
    assert len(measured()) == 2


def test_without_a_gpu_no_figure_is_begun(scripts, monkeypatch, capsys):
    def none_is_found(*arguments, **keywords):
        raise CudaError("none is found")

    out, _ = scripts
    monkeypatch.setattr(command_line, "stream", none_is_found)
    with pytest.raises(SystemExit) as ended:
        run(out, "csgld_fig1", "--backend", "cuda")
    assert ended.value.code == 2
    assert "error: none is found" in capsys.readouterr().err
    assert not out.exists() or not list(out.glob("*.png"))


def test_seed_size_and_backend_reach_the_script(scripts, monkeypatch):
    monkeypatch.setattr(command_line, "stream", lambda *arguments, **keywords: None)
    out, measured = scripts
    assert run(out, "csgld_fig1", "--seed", "77", "--quick") == 0
    assert run(out, "csgld_fig1", "--seed", "0", "--backend", "cuda") == 0
    assert measured() == ["csgld_fig1 77 True cpu", "csgld_fig1 0 False cuda"]
    assert (out / "csgld_fig1.csv").read_text() == "x\n0\n"
    assert run(out, "csgld_fig1") == 0  # other seed, other data
    assert len(measured()) == 3


def test_damaged_data_are_measured_anew(scripts):
    out, measured = scripts
    run(out, "csgld_fig1")
    path = out / "data" / "csgld_fig1.npz"
    path.write_bytes(path.read_bytes()[:-30])
    run(out, "csgld_fig1")
    assert len(measured()) == 2
    assert read(path)[1].data["x"] == [5.0]


def test_one_that_fails_does_not_stop_the_others(scripts, capsys):
    out, measured = scripts
    assert run(out) == 1
    said = capsys.readouterr()
    assert [line.split()[0] for line in measured()] == ["csgld_fig1", "csgld_fig2", "csgld_fig10"]
    assert "csgld_fig2 failed" in said.out
    assert said.out.endswith(f"2 of 3 figures are in {out}\n")
    assert "ZeroDivisionError" in said.out
    assert said.err.rstrip().endswith("csgld_fig2: ZeroDivisionError: division by zero\nfailed: csgld_fig2")
    assert [line for line in said.out.splitlines() if " of 3: " in line] == [
        "1 of 3: csgld_fig1", "2 of 3: csgld_fig2", "3 of 3: csgld_fig10",
    ]  # fmt: skip
    assert (out / "csgld_fig10.png").exists()
    assert not (out / "csgld_fig2.png").exists()
    assert not (out / "data" / "csgld_fig2.npz").exists()


def test_all_and_report_say_at_the_end_what_failed(scripts, capsys, monkeypatch):
    out, _ = scripts
    monkeypatch.setattr(output, "OUT", out)
    assert command_line.main([]) == 1
    assert capsys.readouterr().err.rstrip().endswith("failed: csgld_fig2")
    assert (out / "report.html").exists()
    assert command_line.main(["report", "--out", str(out)]) == 0
    assert command_line.main(["report", "--out", str(out / "nowhere")]) == 1
    assert "no figure has been produced" in capsys.readouterr().err


def test_numbers_that_cannot_be_compared_are_a_failure(scripts, capsys, tmp_path):
    out, _ = scripts
    path = tmp_path / "figures" / "csgld_fig1.py"
    path.write_text(path.read_text().replace('data["x"][0]), 0.1', 'data["x"][0]), float("nan")'))
    assert run(out, "csgld_fig1") == 1
    assert "x: ours and its error must be finite" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["run", "csgld_fig3"], ["run", "csgld_helpers"], ["draw"],
                                       ["run", "--seed", "x"], ["run", "--backend", "tpu"], ["run", "--jobs", "0"],
                                       ["run", "--jobs", "1.5"]])  # fmt: skip
def test_what_is_not_there_is_said_before_anything_runs(scripts, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert arguments[-1] in capsys.readouterr().err
    assert scripts[1]() == []


def test_a_script_by_itself_is_produced(scripts, capsys, monkeypatch, tmp_path):
    out, _ = scripts
    module = sys.modules[script.__module__]
    monkeypatch.setattr(output, "OUT", out)
    module.run_script(str(tmp_path / "figures" / "csgld_fig1.py"))
    assert capsys.readouterr().out.split() == [str(out / f"csgld_fig1.{kind}") for kind in ("png", "pdf", "csv")]
    found = script("csgld_fig1")
    assert (found.title, found.caption, found.paper, found.differs) == (
        "Small figure csgld_fig1", "A caption of two lines.", "csgld", "",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"there is no figure 'x'; there are: csgld_fig1, csgld_fig2, csgld_fig10"):
        script("x")


def test_an_interrupted_run_ends_the_study_and_leaves_no_data():
    """Its draws are fewer than were asked for, and must not be kept as if they were all."""
    study = Study(seed=3)
    run = study.sample("whole", mixtures.unequal_pair(), samplers.sgld(0.1), n_steps=10)
    assert [record.label for record in study.records] == ["whole"]
    with pytest.raises(KeyboardInterrupt):
        study.note("part", dataclasses.replace(run, interrupted=True))
    assert len(study.records) == 1


def test_scripts_in_folders_have_the_names_they_always_had(tmp_path, monkeypatch):
    module = sys.modules[script.__module__]
    monkeypatch.setattr(module, "HERE", tmp_path)
    places = {
        "papers/csgld/fig10.py": "csgld_fig10", "papers/csgld/fig2.py": "csgld_fig2", "papers/csgld/shared.py": None,
        "papers/tact_hmc/table_ess.py": "tact_hmc_table_ess", "papers/icsgld/fig_svgd.py": "icsgld_fig_svgd",
        "papers/csgld/__init__.py": None, "galleries/gallery_domains.py": "gallery_domains",
        "galleries/__init__.py": None, "scripts/study.py": None, "r2sgld_fig1.py": "r2sgld_fig1",
    }  # fmt: skip
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    assert {name: path.relative_to(tmp_path).as_posix() for name, path in module.script_files().items()} == {
        name: place for place, name in places.items() if name
    }
    assert module.names() == [
        "csgld_fig2", "csgld_fig10", "icsgld_fig_svgd", "tact_hmc_table_ess", "r2sgld_fig1", "gallery_domains",
    ]  # fmt: skip


def test_ctrl_c_is_a_word_and_a_status(scripts, capsys, tmp_path):
    path = tmp_path / "figures" / "csgld_fig2.py"
    path.write_text(path.read_text().replace("1 / 0", "raise KeyboardInterrupt"))
    assert run(scripts[0]) == 130
    assert capsys.readouterr().err == "interrupted: figures that were finished are kept, and are not measured again\n"
    assert len(scripts[1]()) == 2


def test_there_are_no_more_jobs_than_memory_allows(monkeypatch):
    for cores, memory, jobs in ((4, 2**40, 4), (4, 5 * 2**30, 2), (4, 2**30, 1)):
        monkeypatch.setattr(side_by_side, "available_threads", lambda cores=cores: cores)
        monkeypatch.setattr(side_by_side, "available_memory", lambda memory=memory: memory)
        assert side_by_side.default_jobs() == jobs
