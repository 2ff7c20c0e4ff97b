"""A digest of all source on which a function's numbers depend, which edits of other functions leave unchanged.

Of this package, the function's own text counts and that of every function, class and constant it names, at any depth,
without docstrings, comments and layout; of toolkit, targets and sysid every line and table does, of other packages the
version.
"""

import ast
import hashlib
import importlib.util
from functools import cache
from importlib.metadata import version
from pathlib import Path

from toolkit._compiler import source_stamp
from toolkit.errors import package_root

from .study import Study

HERE = package_root(__name__)
PACKAGES_BELOW = {"toolkit": ("toolkit",), "targets": ("toolkit", "targets"), "sysid": ("toolkit", "targets", "sysid")}


def digest(module: str, name: str) -> str:
    """Digest of all source that the function ``name`` of ``module``, a module of this package, depends on."""
    parts: dict[str, str] = {package: version(package) for package in ("numba", "numpy", "scipy")}
    follow(Study.__module__, "Study", parts)  # by which it runs everything
    follow(module, name, parts)
    return hashlib.sha256("\0".join(f"{key}={value}" for key, value in sorted(parts.items())).encode()).hexdigest()


def follow(module: str, name: str, parts: dict[str, str]) -> None:
    """Add the text of ``name`` in ``module``, and of all that it refers to, to ``parts``."""
    key = f"{module}.{name}"
    if key in parts:
        return
    nodes = top_level(module).get(name, [])
    parts[key] = "\n".join(text_of(node, name) for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            follow_import(module, name, node, parts)
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                for bound in names_bound(inner):
                    follow_import(module, bound, inner, parts)
            elif isinstance(inner, ast.Name) and inner.id in top_level(module):
                follow(module, inner.id, parts)


def text_of(node: ast.stmt, name: str) -> str:
    """A statement that binds ``name``, as text; of an import what concerns ``name``, and not what else it binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        source = f"{'.' * node.level}{node.module or ''}" if isinstance(node, ast.ImportFrom) else ""
        return f"{source} {alias_of(node, name).name}"
    return ast.dump(node)


def alias_of(node: ast.Import | ast.ImportFrom, name: str) -> ast.alias:
    """The part of an import that binds ``name``."""
    return next(alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) == name)


def follow_import(module: str, name: str, node: ast.Import | ast.ImportFrom, parts: dict[str, str]) -> None:
    """Add what an import of ``name`` refers to: text of this package, or a stamp of another of this distribution."""
    alias = alias_of(node, name)
    if isinstance(node, ast.ImportFrom):
        source = importlib.util.resolve_name("." * node.level + (node.module or ""), package_of(module))
    else:
        source = alias.name
    package = source.partition(".")[0]
    for below in PACKAGES_BELOW.get(package, ()):
        parts[below] = stamp(below)
    if package == "figures":
        full_name = source if isinstance(node, ast.Import) else f"{source}.{alias.name}"
        if file_of(full_name) is None:
            follow(source, alias.name, parts)
        else:
            for inner in top_level(full_name):
                follow(full_name, inner, parts)


def package_of(module: str) -> str:
    """The package a relative import in ``module`` starts from."""
    path = file_of(module)
    return module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]


def file_of(module: str) -> Path | None:
    """The file of a module of this package; None where there is none."""
    place = HERE.joinpath(*module.split(".")[1:])
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


@cache
def stamp(package: str) -> str:
    """Digest of all sources and tables of one of the other packages."""
    folder = HERE.parent / package
    tables = [path.read_bytes() for kind in ("*.csv", "*.npz") for path in sorted(folder.rglob(kind))]
    return " ".join([source_stamp(folder), *(hashlib.sha256(table).hexdigest() for table in tables)])


@cache
def top_level(module: str) -> dict[str, list[ast.stmt]]:
    """Names bound at the top of a module of this package, each with the statements that bind it."""
    path = file_of(module)
    assert path is not None, module
    bound: dict[str, list[ast.stmt]] = {}
    for node in without_docstrings(ast.parse(path.read_text(encoding="utf-8"))).body:
        for name in names_bound(node):
            bound.setdefault(name, []).append(node)
    return bound


def names_bound(node: ast.AST) -> set[str]:
    """The names a statement binds, or changes the value of: by ``name[…] = …``, or by a method such as append."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return {inner.id for inner in ast.walk(node.value.func) if isinstance(inner, ast.Name)}
    return set().union(*map(names_bound, ast.iter_child_nodes(node)))


def without_docstrings(tree: ast.Module) -> ast.Module:
    """``tree``, its docstrings taken out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
