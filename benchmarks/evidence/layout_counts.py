"""Counts of the layout: files, lines, largest folders, circles of imports, long lists of arguments, public names.

Also the modules that a run loads, and how often rooms above ask which part there is.

``python -m benchmarks evidence layout`` prints them, to be held beside those of another commit; ``--names FILE`` writes
the public names, one a line, and ``--lost FILE`` says which names in FILE there are no more, and exits with 1 if any
are.
"""

import argparse
import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolkit", "sysid", "targets", "figures")
FOLDERS = (*PACKAGES, "benchmarks", "tests")


def files_of(folder: str) -> list[Path]:
    """Python files below a folder of the checkout, but what runs wrote there."""
    files = (ROOT / folder).rglob("*.py")
    return sorted(file for file in files if not {"__pycache__", "out"} & set(file.parts))


def module_of(file: Path) -> str:
    """The name by which a file is imported."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(file: Path, modules: set[str]) -> set[str]:
    """The modules of ``modules`` that a file imports: at any depth, under TYPE_CHECKING, by ``import_module``."""
    here = module_of(file).split(".")
    package = here if file.name == "__init__.py" else here[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found |= {text.value for text in node.args if isinstance(text, ast.Constant) and text.value in modules}
    return (found & modules) - {module_of(file)}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that reach each other, by Tarjan's algorithm; the largest first."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        waiting.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in waiting:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            start = waiting.index(module)
            group, waiting[start:] = waiting[start:], []
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted(found, key=len, reverse=True)


def arguments_of(file: Path) -> Iterator[int]:
    """The number of arguments of every function in a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)


def public_names() -> list[str]:
    """What the packages and their public modules export: ``__all__``, or what is defined there without underscore."""
    found: set[str] = set()
    seen: set[str] = set()

    def add(path: str, module: ModuleType) -> None:
        seen.add(module.__name__)
        own = [n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            found.add(f"{path}.{name}")
            value = getattr(module, name)
            if isinstance(value, ModuleType) and value.__name__ not in seen:
                add(f"{path}.{name}", value)

    for package in PACKAGES:
        add(package, importlib.import_module(package))
    return sorted(found)


PARTS = ("tempering", "dynamics", "boundaries")  # rooms of parts, which own what is known of them
A_PART = re.compile(r"tempering|dynamics|boundary|ReplicaExchange|Contour|Stein|Continuous|Correction")
A_NAME = re.compile(r"dynamics\.name (?:==|!=|in|not in) ")


def outside_parts() -> Iterator[tuple[Path, str]]:
    """Files of the toolkit outside the rooms of parts, with their code but for comments and docstrings."""
    for file in files_of("toolkit"):
        if file.relative_to(ROOT).parts[1] not in PARTS:
            yield file, ast.unparse(ast.parse(file.read_text(encoding="utf-8")))


def kinds_asked_for() -> int:
    """How often rooms above ask by ``isinstance`` which tempering, dynamics or boundary there is."""
    calls = (node for _, code in outside_parts() for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    return sum(ast.unparse(call.func) == "isinstance" and bool(A_PART.search(ast.unparse(call))) for call in calls)


def names_asked_for() -> int:
    """How often rooms above ask for a dynamics by its name."""
    return sum(len(A_NAME.findall(code)) for _, code in outside_parts())


def files_that_name_contour() -> int:
    """Files of the toolkit in whose code a name or text has the word contour."""
    files = (ast.unparse(without_docstrings(file)) for file in files_of("toolkit"))
    return sum("contour" in code.lower() for code in files)


def without_docstrings(file: Path) -> ast.Module:
    """The tree of a file, its docstrings empty."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Expr(ast.Constant(""))
    return tree


GIVEN_RUN = """
import sys
import toolkit
at_import = {name for name in sys.modules if name.partition(".")[0] == "toolkit"}
from targets import mixtures
toolkit.sample(mixtures.cosine25(), toolkit.samplers.sgld(0.1), n_steps=4, n_chains=2, seed=0, progress=False)
print(*at_import)
print(*{name for name in sys.modules if name.partition(".")[0] == "toolkit"})
"""


def loaded_modules() -> tuple[set[str], set[str]]:
    """The toolkit's modules that ``import toolkit`` loads in a new process, and those after a run of SGLD."""
    done = subprocess.run([sys.executable, "-c", GIVEN_RUN], cwd=ROOT, capture_output=True, text=True, check=True)
    at_import, after_run = done.stdout.splitlines()
    return set(at_import.split()), set(after_run.split())


def lines_in(modules: set[str]) -> int:
    """Lines of the files of modules."""
    files = (file for file in files_of("toolkit") if module_of(file) in modules)
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def main(arguments: list[str]) -> int:
    """Print the counts; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks evidence layout", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--names", type=Path, metavar="FILE")
    parser.add_argument("--lost", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    names = public_names()
    if given.names is not None:
        given.names.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    for folder in FOLDERS:
        files = files_of(folder)
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        largest, entries = Counter(file.parent for file in files).most_common(1)[0]
        counts = [n for file in files for n in arguments_of(file)]
        modules = {module_of(file) for file in files}
        found = circles({module_of(file): imports_of(file, modules) for file in files})
        where = largest.relative_to(ROOT)
        print(
            f"{folder}: {len(files)} files, {lines:,} lines, largest folder {where} with {entries}, "
            f"functions of more than 8 / 12 arguments {sum(n > 8 for n in counts)} / {sum(n > 12 for n in counts)}, "
            f"circles of {[len(group) for group in found]} files"
        )
    print(f"{len(names)} public names")
    for what, loaded in zip(("import toolkit", "a run of a given sampler"), loaded_modules(), strict=True):
        print(f"{what} loads {len(loaded)} modules of the toolkit, {lines_in(loaded):,} lines")
    print(
        f"outside {', '.join(PARTS)}: {kinds_asked_for()} tests of a part's class, {names_asked_for()} of a dynamics' "
        f"name; {files_that_name_contour()} files name contour"
    )
    if given.lost is None:
        return 0
    lost = sorted(set(given.lost.read_text(encoding="utf-8").split()) - set(names))
    print(f"lost since {given.lost}: {', '.join(lost) or 'none'}")
    return int(bool(lost))
