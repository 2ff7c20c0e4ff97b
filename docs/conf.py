"""The site: the pages of this folder, and a reference of every public name, made of the docstrings when it is built."""

import importlib
import inspect
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REFERENCE = HERE / "reference"  # written anew by every build
PACKAGES = ("toolkit", "targets", "sysid", "figures")

project = "manymodes"
author = "the maintainers of manymodes"
sys.path.append(str(HERE / "_extensions"))
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "figure_pages"]
exclude_patterns = ["build", "jupyter_execute"]
source_suffix = {".md": "myst-nb"}
root_doc = "index"
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline"]  # widths of pictures
nb_execution_mode = "force"  # of the pages of tutorials/, which are notebooks
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_timeout = 300  # seconds of a cell, the first of which compiles
suppress_warnings = ["myst.header"]
nitpicky = False
autodoc_typehints_format = "short"
autodoc_member_order = "alphabetical"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
html_theme = "pydata_sphinx_theme"
html_title = "manymodes"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "show_prev_next": False}
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # without it the theme complains on the console
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True


def public_modules() -> dict[str, types.ModuleType]:
    """The packages, and the modules that they name as public, by the names by which users reach them."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        found[package] = module
        inner = {name: getattr(module, name) for name in module.__all__}
        found |= {f"{package}.{name}": one for name, one in inner.items() if isinstance(one, types.ModuleType)}
    return found


def members_of(module: types.ModuleType) -> list[str]:
    """A module's public names, but for modules."""
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)]
    return sorted(names, key=str.lower)


def is_elsewhere(name: str, module: types.ModuleType) -> bool:
    """Whether a member of a module is documented with its package."""
    package = importlib.import_module(module.__name__.partition(".")[0])
    return package is not module and name in package.__all__ and getattr(package, name) is getattr(module, name)


def kind_of(value: object) -> str:
    """The directive that documents a member."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if callable(value) else "autodata"


def page_of(name: str, module: types.ModuleType) -> str:
    """The page of a module: its docstring, and each public name with its signature and docstring."""
    parts = [f"# {name}", "```{eval-rst}", f".. automodule:: {name}", "   :no-members:", ""]
    for member in members_of(module):
        if is_elsewhere(member, module):
            continue
        kind = kind_of(getattr(module, member))
        parts.append(f".. {kind}:: {name}.{member}")
        parts += ["   :members:", ""] if kind in ("autoclass", "autoexception") else [""]
    return "\n".join([*parts, "```", ""])


def escape_signs(_app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Let signs of formulas stand in docstrings, which reStructuredText would read as markup."""
    if what == "data":  # of a builtin kind: the docstring of its class
        lines[:] = []
    for k, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):  # code of an example
            continue
        parts = re.split(r"(``.*?``)", line)
        parts[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in parts[::2]]
        lines[k] = "".join(parts)


def write_reference(_app: Any) -> None:
    """Write a page for each public module, and their list."""
    REFERENCE.mkdir(exist_ok=True)
    for old in REFERENCE.glob("*.md"):
        old.unlink()
    modules = public_modules()
    for name, module in modules.items():
        (REFERENCE / f"{name}.md").write_text(page_of(name, module), encoding="utf-8")
    rows = [
        f"| [{name}]({name}.md) | {(inspect.getdoc(module) or '').splitlines()[0]} |"
        for name, module in modules.items()
    ]
    tree = ["```{toctree}", ":hidden:", "", *modules, "```", ""]
    text = ["# Reference", "", "Every public name.", "", "| module | |", "| --- | --- |", *rows, "", *tree]
    (REFERENCE / "index.md").write_text("\n".join(text), encoding="utf-8")


def setup(app: Any) -> None:
    """What the build does besides."""
    os.environ["TQDM_DISABLE"] = "1"  # tutorials show no bars, whose seconds differ
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", escape_signs)
