"""Imports run one way; kernels call nothing that is not vectorised or missing on CUDA."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("toolkit", "targets", "sysid", "figures")
MAY_IMPORT = {
    "toolkit": set(),
    "targets": {"toolkit"},
    "sysid": {"toolkit", "targets"},
    "figures": {"toolkit", "targets", "sysid"},
}
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
CORE = {"numba", "llvmlite", "numpy", "scipy", "matplotlib", "tqdm", "mpl_toolkits"}
EXTRAS = {"pyarrow", "shapely", "sklearn", "svgpathtools", "sympy", "xarray"}  # imported inside functions only


def imported(tree):
    """Top-level packages of all absolute imports, and whether each stands at the top of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.col_offset == 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.col_offset == 0


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way_and_need_the_core_alone(path):
    package = path.relative_to(ROOT).parts[0]
    for name, at_top in imported(ast.parse(path.read_text(encoding="utf-8"))):
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
            is_block = {"position", "gradient"} <= arguments or "foot" in arguments
            if is_block or decorators & {"kernel", "inlined", "apart"}:
                yield node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_kernels_use_our_maths_and_nothing_cuda_lacks(path):
    for function in kernels(ast.parse(path.read_text(encoding="utf-8"))):
        for node in ast.walk(function):
            assert not isinstance(node, ast.Raise | ast.Try), f"{function.name}: raise or try"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                assert node.value.id != "np" or node.attr in {"uint64", "int64", "nan", "inf"}, (
                    f"{function.name}: {name}"
                )
                assert node.value.id != "math" or node.attr in {"sqrt", "floor", "inf", "nan"}, (
                    f"{function.name}: {name}"
                )


def test_some_kernels_were_looked_at():
    found = {node.name for path in MODULES for node in kernels(ast.parse(path.read_text(encoding="utf-8")))}
    some = {"exp", "philox4x32", "fill_normals", "move_langevin", "cosine25_block", "look_polygon", "swap_replicas"}
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
