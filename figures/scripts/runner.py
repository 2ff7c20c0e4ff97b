"""A figure's script: found by its name, measured or read back, drawn, and written."""

import importlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from toolkit._compiler import PYTHON
from toolkit.errors import package_root

from ..plots.style import paper_style
from . import cached_data
from .cached_data import Measured, as_data
from .claims import Claim, check_claim
from .output import QUICK, folder_of, save
from .source_digest import digest
from .study import Data, Study

HERE = package_root(__name__)
PAPERS = {
    "csgld": "Contour SGLD (2020)",
    "icsgld": "Interacting contour SGLD (2022)",
    "tact_hmc": "Thermostat-assisted continuously-tempered HMC (2018)",
    "csgmcmc": "Cyclical SG-MCMC (2020)",
    "r2sgld": "Reflected replica exchange SGLD (2024)",
    "gallery": "What the toolkit has",
}

KINDS = ("fig", "table")
PATTERNS = ("*.py", "papers/*/*.py", "galleries/*.py")  # of scripts, below HERE


class Script(NamedTuple):
    """A figure's module, with SEED, ``measure(study)``, ``draw(data)``, ``table(data)``; name: by ``name_of``.

    Optional: ``compare(data)``, the paper's numbers beside ours; DIFFERS, one sentence on where we differ and why; and
    ALONE = True where seconds are shown, so that no other script runs beside it.
    """

    name: str
    module: ModuleType

    @property
    def paper(self) -> str:
        """Its key in PAPERS."""
        return next(paper for paper in PAPERS if self.name.startswith(f"{paper}_"))

    @property
    def title(self) -> str:
        """The first line of its docstring, without the full stop."""
        return (self.module.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    @property
    def caption(self) -> str:
        """The rest of its docstring, paragraphs kept."""
        rest = (self.module.__doc__ or "").strip().partition("\n")[2].strip()
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in rest.split("\n\n") if paragraph.strip())

    @property
    def differs(self) -> str:
        """Where we differ, and why."""
        return str(getattr(self.module, "DIFFERS", ""))

    @property
    def runs_alone(self) -> bool:
        """Whether no other script may run beside it."""
        return bool(getattr(self.module, "ALONE", False))

    def compare(self, data: Data) -> list[Claim]:
        """The paper's numbers beside ours."""
        compare = getattr(self.module, "compare", None)
        return [check_claim(claim) for claim in compare(data)] if compare else []

    @property
    def digest(self) -> str:
        """Digest of the source that its data depend on."""
        return digest(self.module.__name__, "measure")

    def key(self, study: Study) -> str:
        """The key of its data: a digest of sources, and settings."""
        return f"{self.digest} quick={study.quick} seed={study.seed} backend={study.backend} python={PYTHON}"


@dataclass(frozen=True)
class Product:
    """What producing a script gave. reused: its data were read back, and nothing was run."""

    script: Script
    measured: Measured
    paths: list[Path]
    reused: bool


def name_of(path: Path) -> str:
    """The name of a script's file: that of the file, behind its paper where it lies in ``papers/<paper>``."""
    *folders, file = path.relative_to(HERE).with_suffix("").parts
    return f"{folders[1]}_{file}" if folders[:1] == ["papers"] else file


def script_files() -> dict[str, Path]:
    """The files of all scripts, by their names, in the papers' order."""
    found = {name_of(path): path for place in PATTERNS for path in HERE.glob(place)}
    beginnings = [f"{paper}_{kind}" for paper in PAPERS for kind in (("",) if paper == "gallery" else KINDS)]
    order = sorted(found, key=natural_key)
    return {name: found[name] for beginning in beginnings for name in order if name.startswith(beginning)}


def names() -> list[str]:
    """The names of all scripts, by paper, in the papers' order."""
    return list(script_files())


def natural_key(name: str) -> list[int | str]:
    """A key that sorts fig2 before fig10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def script(name: str) -> Script:
    """The script ``name``. Raises ValueError where there is none."""
    files = script_files()
    if name not in files:
        raise ValueError(f"there is no figure {name!r}; there are: {', '.join(files)}")
    return Script(
        name, importlib.import_module(".".join(["figures", *files[name].relative_to(HERE).with_suffix("").parts]))
    )


def produce(
    found: Script,
    *,
    out: Path | None = None,
    quick: bool = QUICK,
    seed: int | None = None,
    backend: str = "cpu",
    fresh: bool = False,
) -> Product:
    """Measure ``found``, or read its data where they are still valid, then draw it and write its files.

    out: a folder, or None as in ``folder_of``. A quick version has no PDF. seed: None for the script's own. fresh:
    measure in any case.
    """
    out = folder_of(out, quick)
    study = Study(quick=quick, seed=found.module.SEED if seed is None else seed, backend=backend)
    measured, reused = measure_or_read(found, study, out, fresh=fresh)
    return Product(found, measured, draw_and_save(found, measured.data, out, quick=quick), reused)


def measure_or_read(found: Script, study: Study, out: Path, *, fresh: bool = False) -> tuple[Measured, bool]:
    """What ``found`` measures, kept in ``out``, and whether it was read back from there. fresh: measure in any case."""
    path, key = out / "data" / f"{found.name}.npz", found.key(study)
    measured = None if fresh else cached_data.load(path, key)
    if measured is not None:
        return measured, True
    started = time.perf_counter()
    data = as_data(found.module.measure(study))
    measured = Measured(data, study.records, time.perf_counter() - started)
    cached_data.store(path, key, measured)
    return measured, False


def produce_in_words(name: str, **asked: Any) -> str:
    """Produce the figure of this name as ``produce`` does, and compare it with the paper; what was done, in a line."""
    started = time.perf_counter()
    product = produce(script(name), **asked)
    product.script.compare(product.measured.data)
    action = "read back and drawn" if product.reused else "measured and drawn"
    kinds = ",".join(path.suffix[1:] for path in product.paths)
    seconds = time.perf_counter() - started
    return f"{name}: {action} in {seconds:.1f} s → {product.paths[0].with_suffix('')}.{{{kinds}}}"


def draw_and_save(found: Script, data: Data, out: Path, *, quick: bool = False) -> list[Path]:
    """Draw without a screen, in the project's style; the paths of the picture and the table.

    quick: write that word across the picture, and make no PDF.
    """
    matplotlib.use("Agg")
    with paper_style():
        figure: Figure = found.module.draw(data)
        table: Sequence[dict[str, Any]] = found.module.table(data)
        if quick:
            figure.text(0.5, 0.5, "QUICK", fontsize=60, color="0.4", alpha=0.25, rotation=20, ha="center", va="center")
        return save(figure, table, out, found.name, pdf=not quick)


def run_script(file: str) -> None:
    """What a script does when run by itself: produce its figure and say where it is."""
    product = produce(script(name_of(Path(file).resolve())))
    print(*product.paths, sep="\n")
