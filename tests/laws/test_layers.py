"""The layout: rooms import downwards, no circles, small folders; kernels are small and call only what CUDA has."""

import ast
import functools
import importlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.evidence.layout_counts import (
    circles,
    files_that_name_contour,
    imports_of,
    kinds_asked_for,
    loaded_modules,
    module_of,
    names_asked_for,
    public_names,
)

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolkit", "targets", "sysid", "figures")
MAY_IMPORT = {
    "toolkit": set(),
    "targets": {"toolkit"},
    "sysid": {"toolkit", "targets"},
    "figures": {"toolkit", "targets", "sysid"},
}
# The rooms and files of each package, lowest first: what stands in one may import from it and from those before it.
ORDER = {
    "toolkit": (
        "errors", "_compiler", "maths", "problem", "schedules", "dynamics", "boundaries", "tempering", "samplers",
        "weighting", "accumulators", "_engine", "diagnostics", "_output", "tuning", "_distributed", "sampling",
        "ladders", "verification", "__init__", "__main__",
    ),
    "targets": (
        "arrays", "truth", "symbolic", "shapes", "domains", "mixtures", "classics", "datasets", "posteriors",
        "catalogue_entries", "__init__",
    ),
    "sysid": (
        "arrays", "systems", "libraries", "model", "solvers", "data", "priors", "constraints", "function_constraints",
        "modes", "likelihoods", "block_function", "estimates", "identification", "sparsity", "forecasts", "discovery",
        "__init__",
    ),
    "figures": ("arrays", "plots", "scripts", "report", "__init__", "papers", "galleries", "__main__"),
}  # fmt: skip
MOST_ENTRIES, MOST_ARGUMENTS = 17, 8
MOST_IN_TOOLKIT = 19  # its rooms
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
CORE = {"numba", "llvmlite", "numpy", "scipy", "matplotlib", "tqdm", "mpl_toolkits"}
EXTRAS = {
    "mlxtend",
    "pandas",
    "pyarrow",
    "shapely",
    "sklearn",
    "svgpathtools",
    "sympy",
    "xarray",
}  # imported inside functions only


FILES = {module_of(path): path for path in MODULES}


@functools.cache
def imports():
    """The modules of ours that each of them imports; not by the workers of pytest that only collect this file."""
    return {name: imports_of(path, set(FILES)) for name, path in FILES.items()}


def room_of(module: str) -> tuple[str, int]:
    """Package of a module, and the place of its room in the order."""
    package, *rest = module.split(".")
    if not rest:
        return package, ORDER[package].index("__init__")
    return package, ORDER[package].index(rest[0])


class Module(NamedTuple):
    """A file of ours, and what it says."""

    path: Path
    tree: ast.Module


@pytest.fixture(scope="module", params=MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def module(request):
    """Each file, parsed once for all tests of it, which pytest runs one after the other; all trees take 130 MB."""
    return Module(request.param, ast.parse(request.param.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_downwards(path):
    package, place = room_of(module_of(path))
    for module in imports()[module_of(path)]:
        other, below = room_of(module)
        if other == package:
            assert below <= place, f"{module} stands above"
        else:
            assert other in MAY_IMPORT[package], module
            rest = module.split(".")[1:]
            private = [part for part in rest if part.startswith("_")]
            assert not private or rest == ["_compiler"], f"{module} is private to {other}"


def test_imports_by_importlib_are_seen(tmp_path):
    file = ROOT / "toolkit" / "not_there.py"
    written = tmp_path / "not_there.py"
    written.write_text('import importlib\nimportlib.import_module("figures").overview\n__import__("sysid.data")\n')

    class Elsewhere(type(file)):
        def read_text(self, **more):
            return written.read_text(**more)

    assert imports_of(Elsewhere(file), {"figures", "sysid.data", "toolkit.errors"}) == {"figures", "sysid.data"}


UPPER = re.compile(r"\b(?:targets|sysid|figures)\.\w")


def texts_of(tree):
    """All texts of a module that are no docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_the_toolkit_names_no_module_of_packages_above_it(module):
    if module.path.relative_to(ROOT).parts[0] == "toolkit":
        assert [text for text in texts_of(module.tree) if UPPER.search(text)] == []


def test_warnings_find_the_users_line_by_themselves(module):
    """By ``warn_user``: a level that a function counts is wrong as soon as another one calls it."""
    if module.path != ROOT / "toolkit" / "errors.py":
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        assert not any(ast.unparse(call.func) == "warnings.warn" for call in calls)
        assert not any(keyword.arg == "stacklevel" for call in calls for keyword in call.keywords)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


MOST_LOADED = 110
WINGS = {"tuning", "_distributed", "verification", "ladders"}
MOST_TESTS_OF_KINDS, MOST_TESTS_OF_NAMES, MOST_THAT_NAME_CONTOUR = 3, 0, 37


def test_a_run_of_a_given_sampler_loads_no_wings():
    at_import, after_run = loaded_modules()
    assert at_import <= after_run
    assert len(after_run) <= MOST_LOADED
    assert {name.split(".")[1] for name in after_run if "." in name} & WINGS == set()
    assert not {name for name in after_run if name.startswith(("toolkit._engine.cuda", "toolkit._output.storage."))}


def test_rooms_above_ask_ever_less_which_part_there_is():
    """Counts that may only fall: what is known of a part stands beside its kernel."""
    assert kinds_asked_for() <= MOST_TESTS_OF_KINDS
    assert names_asked_for() <= MOST_TESTS_OF_NAMES
    assert files_that_name_contour() <= MOST_THAT_NAME_CONTOUR


def test_no_files_import_each_other_in_a_circle():
    assert circles(imports()) == []


FOLDERS = sorted({path.parent for path in MODULES} | {p.parent for p in (ROOT / "tests").rglob("*.py")}
                 | {p.parent for p in (ROOT / "benchmarks").rglob("*.py")})  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_folder_is_a_drawer(folder):
    apart = {"__init__.py", "__main__.py", "__pycache__", "py.typed", "out"}
    entries = [entry.name for entry in folder.iterdir() if entry.name not in apart]
    assert len(entries) <= (
        MOST_IN_TOOLKIT if folder in (ROOT / "toolkit", ROOT / "tests" / "toolkit") else MOST_ENTRIES
    ), entries


@pytest.mark.parametrize("package", PACKAGES)
def test_tests_lie_in_the_rooms_of_the_code(package):
    rooms = {path.parent.name.removeprefix("_") for path in MODULES if path.relative_to(ROOT).parts[0] == package}
    assert {path.parent.name for path in (ROOT / "tests" / package).rglob("test_*.py")} <= rooms


def test_kernels_take_few_arguments(module):
    """Of compiled functions, whose arguments have no annotations or are all Any; more need a named tuple."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            kinds = {"" if a.annotation is None else ast.unparse(a.annotation) for a in arguments}
            if kinds <= {"", "Any"} and (node.returns is None or ast.unparse(node.returns) == "None"):
                assert len(arguments) <= MOST_ARGUMENTS, f"{node.name} takes {len(arguments)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_named_as_a_public_function(package):
    for name, path in FILES.items():
        if not name.startswith(package) or path.name != "__init__.py":
            continue
        face = importlib.import_module(name)
        for public in getattr(face, "__all__", ()):
            value = getattr(face, public)
            assert f"{name}.{public}" not in FILES or isinstance(value, type(re)), f"{name}.{public}"


def test_no_public_name_is_lost():
    """The stored list is written by ``python -m benchmarks evidence layout --names``: a name leaves it on purpose."""
    stored = (ROOT / "benchmarks" / "measured" / "public_names.txt").read_text(encoding="utf-8").split()
    assert public_names() == sorted(stored)


@pytest.mark.parametrize("package", PACKAGES)
def test_tab_completion_shows_what_is_public(package):
    face = importlib.import_module(package)
    assert dir(face) == sorted(face.__all__)


def imported(tree):
    """Top-level packages of all absolute imports, and whether each stands at the top of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.col_offset == 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.col_offset == 0


def test_imports_run_one_way_and_need_the_core_alone(module):
    package = module.path.relative_to(ROOT).parts[0]
    for name, at_top in imported(module.tree):
        if name in PACKAGES:
            assert name == package or name in MAY_IMPORT[package], name
            assert name != package or package == "figures", f"import {name} relatively"
        else:
            import sys

            allowed = name in CORE or name in sys.stdlib_module_names or (name in EXTRAS and not at_top)
            assert allowed, name


def kernels(tree):
    """Functions compiled by Numba: decorated ones, and block functions by their arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            arguments = {a.arg for a in node.args.args}
            is_plain = node.returns is None and not any(a.annotation for a in node.args.args)
            is_block = {"position", "gradient"} <= arguments or "mirror_point" in arguments
            is_phase = is_plain and bool(arguments & {"lanes", "state", "constants"})
            is_for_cpus = "allocating" in decorators  # of targets that are refused on a GPU
            if (is_block or is_phase or decorators & {"kernel", "inlined", "noinline"}) and not is_for_cpus:
                yield node


def test_kernels_use_our_maths_and_nothing_cuda_lacks(module):
    for function in kernels(module.tree):
        for node in ast.walk(function):
            assert not isinstance(node, ast.Raise | ast.Try), f"{function.name}: raise or try"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                assert node.value.id != "np" or node.attr in {"uint64", "int64", "float64", "float32", "nan", "inf"}, (
                    f"{function.name}: {name}"
                )
                assert node.value.id != "math" or node.attr in {"sqrt", "floor", "inf", "nan"}, (
                    f"{function.name}: {name}"
                )


PUBLIC = re.compile(r"numba(\.(types|extending|cuda)|\.core(\.(cgutils|errors))?)?$|llvmlite(\.ir)?$")
PRIVATE = "toolkit/_compiler/numba_private.py"


def names_of_numba(tree):
    """Modules of Numba and llvmlite that are imported, with the member where it may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in ("numba", "llvmlite"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("numba", "llvmlite"):
            at_root = node.module in ("numba.core", "llvmlite")
            yield from (f"{node.module}.{alias.name}" if at_root else node.module for alias in node.names)


def test_private_names_of_numba_come_from_one_file(module):
    if str(module.path.relative_to(ROOT)) != PRIVATE and "cuda" not in module.path.parts:
        assert [name for name in names_of_numba(module.tree) if not PUBLIC.match(name)] == []


def test_a_private_name_is_seen():
    tree = ast.parse(
        "from numba.core import cgutils, ir\nfrom numba.core.caching import X\nimport llvmlite.binding\n"
        "from numba import njit, types\nfrom llvmlite import ir\nfrom numba.core.errors import E"
    )
    found = [name for name in names_of_numba(tree) if not PUBLIC.match(name)]
    assert found == ["numba.core.ir", "numba.core.caching", "llvmlite.binding"]


def test_some_kernels_were_looked_at():
    found = {node.name for path in MODULES for node in kernels(ast.parse(path.read_text(encoding="utf-8")))}
    some = {"exp", "philox4x32", "fill_normals", "move_langevin", "cosine25_block", "locate_polygon", "swap_replicas"}
    assert some <= found


def test_one_module_imports_cuda_and_none_asks_for_fastmath():
    importing = set()
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        assert "fastmath=True" not in source
        if re.search(r"^\s*(from numba import .*\bcuda\b|import numba\.cuda|from numba\.cuda)", source, re.MULTILINE):
            importing.add(str(path.relative_to(ROOT)))
    assert importing == {"toolkit/_engine/cuda/device.py"}


def test_modules_have_docstrings_and_types_are_shipped():
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").exists()
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
