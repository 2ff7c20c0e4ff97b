"""Hostile texts are refused as documented: the error's class, the argument or file, the place; none runs, none stalls.

``python -m tests.hostile.text_attacks`` prints counts, times and memory.
"""

import ast
from pathlib import Path

import pytest

from tests.hostile.text_attacks import run_all
from tests.hostile.texts.worker import ALL

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("toolkit", "targets", "sysid", "figures")

# What reads text as code or unpickles it, where it may, and why.
ALLOWED = {
    ("toolkit/_distributed/tasks.py", "loads"): "a request that the client of the same cluster has pickled",
    ("targets/symbolic/source.py", "exec"): "text printed by us, of checked expressions",
    ("targets/symbolic/source.py", "compile"): "the same",
    ("sysid/libraries.py", "eval"): "terms that check_expression has parsed, and found to be arithmetic",
    ("sysid/model.py", "eval"): "the same terms, with SymPy's symbols",
    ("sysid/solvers/runge_kutta.py", "exec"): "text of counts, and of terms that are checked",
    ("sysid/solvers/runge_kutta.py", "compile"): "the same",
    ("sysid/solvers/right_hand_side.py", "exec"): "text of two counts",
    ("sysid/solvers/right_hand_side.py", "compile"): "the same",
    ("toolkit/maths/powers.py", "compile"): "two constants, of which the bytecode is looked at",
    ("toolkit/_compiler/pickling.py", "loads"): "functions that the user's own process pickled",
    ("toolkit/_compiler/disk_cache.py", "loads"): "machine code from the user's own cache folder, as Numba does",
    ("toolkit/_engine/tiers.py", "loads"): "machine code of a process that this one has started",
    ("toolkit/verification/subprocess_run.py", "loads"): "what the parent process pickled",
    ("toolkit/_compiler/lowering.py", "import_module"): "the module of a function that the user's own process pickled",
    ("toolkit/errors.py", "import_module"): "names of packages that callers write as constants",
    ("figures/scripts/runner.py", "import_module"): "names of the files of this package",
    ("toolkit/__main__.py", "exec_module"): "the script that the user wants to be run",
}
RUNS = {"eval", "exec", "compile", "__import__", "execfile"}  # built in
METHODS = {
    "sympify", "parse_expr", "parse_latex", "lambdify", "S", "loads", "Unpickler", "import_module", "exec_module",
    "run_path", "run_module", "read_pickle", "unsafe_load", "full_load", "fromstring", "parseString", "literal_eval",
    "system", "popen", "Document", "svg2paths", "iterparse",
}  # fmt: skip
OF_SAFE = {("json", "loads"), ("platform", "system")}


def calls(tree):
    """(name, module or object it is called on, call) of the calls in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, "", node
            elif isinstance(node.func, ast.Attribute):
                on = node.func.value.id if isinstance(node.func.value, ast.Name) else "?"
                yield node.func.attr, on, node


def found_in(source):
    """Names of what runs text or unpickles it."""
    found = set()
    for name, on, call in calls(ast.parse(source)):
        runs = name in RUNS if not on else name in METHODS and (on, name) not in OF_SAFE
        pickles = [k for k in call.keywords if k.arg == "allow_pickle" and not (
            isinstance(k.value, ast.Constant) and k.value.value is False)]  # fmt: skip
        shells = [k for k in call.keywords if k.arg == "shell"]
        if runs or (not on and name in METHODS - {"Document"}) or pickles or shells:
            found.add(name)
    return found


def test_nothing_but_what_is_listed_runs_text_or_unpickles():
    found = {
        (str(path.relative_to(ROOT)), name)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in found_in(path.read_text(encoding="utf-8"))
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize("text", [
    "sympy.sympify(x)", "eval(x)", "sp.S(x)", "pickle.loads(x)", "np.load(x, allow_pickle=True)", "sympify(x)",
    "np.load(x, allow_pickle=y)", "subprocess.run(x, shell=True)", "svg.Document(x)", "yaml.unsafe_load(x)",
])  # fmt: skip
def test_what_runs_text_is_found(text):
    assert found_in(text)


@pytest.fixture(scope="module")
def told():
    """What the workers tell, by the case's name."""
    return {row["name"]: row["fault"] for row in run_all()}


def test_there_are_many_and_each_has_a_name():
    names = [case.name for _, case in ALL]
    assert len(set(names)) == len(names) >= 400


@pytest.mark.parametrize("name", [case.name for _, case in ALL])
def test_it_is_refused_as_documented(told, name):
    assert told[name] == ""
