"""The gallery: a page for each script of ``figures``, with its picture where there is one, its command and its source.

Nothing is measured or drawn here. Pictures are those of this folder, or those that `make figures` has left.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from figures.scripts.runner import PAPERS, Script, names, script

DOCS = Path(__file__).parents[1]
FIGURES = DOCS.parent / "figures"
GALLERY = DOCS / "gallery"  # written anew by every build
NAMED_OTHERWISE = {"gallery_plots": "plots", "gallery_tuning": "tuning", "gallery_discovery": "discovery"}
LATER = "The picture appears here after `make figures`."


def plain(text: str) -> str:
    """The text with the signs escaped that Markdown would read as markup, but for code."""
    parts = re.split(r"(`+.*?`+)", text)
    parts[::2] = [re.sub(r"([*_|<])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def picture_of(name: str) -> str:
    """The path of a script's picture, from the gallery's folder; empty where there is none."""
    kept, made = DOCS / f"{NAMED_OTHERWISE.get(name, name)}.png", FIGURES / "out" / f"{name}.png"
    if made.exists():
        shutil.copyfile(made, GALLERY / made.name)
        return made.name
    return f"../{kept.name}" if kept.exists() else ""


def page_of(found: Script, picture: str) -> str:
    """The page of a script."""
    source = Path(str(found.module.__file__)).relative_to(FIGURES.parent)
    shown = f"![{plain(found.title)}]({picture})" if picture else LATER
    parts = [f"# {found.name}", f"{plain(found.title)}.", shown, plain(found.caption)]
    parts += [f"**Where we differ.** {plain(found.differs)}"] if found.differs else []
    parts += ["It is made, with its table, by", f"    .venv/bin/python -m figures run {found.name}"]
    parts += [f"<details><summary>Source: {source.as_posix()}</summary>"]
    parts += [f"```{{literalinclude}} ../../{source.as_posix()}\n:language: python\n```", "</details>", ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_gallery(_app: Any) -> None:
    """Write a page for each script, and their list."""
    shutil.rmtree(GALLERY, ignore_errors=True)
    GALLERY.mkdir()
    first = "Every figure and table that the package makes: what it shows, and its page with command and source. "
    parts = ["# Gallery", first + "Pictures that are not here appear after `make figures`."]
    scripts = [script(name) for name in names()]
    for paper, title in PAPERS.items():
        rows = ["| | |", "| --- | --- |"]
        for found in (one for one in scripts if one.paper == paper):
            picture = picture_of(found.name)
            (GALLERY / f"{found.name}.md").write_text(page_of(found, picture), encoding="utf-8")
            shown = f"![{plain(found.title)}]({picture}){{width=240px}}" if picture else "after `make figures`"
            rows.append(f"| {shown} | [{found.name}]({found.name}.md): {plain(found.title)} |")
        parts += [f"## {title}", "\n".join(rows)]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *(one.name for one in scripts), "```", ""])
    (GALLERY / "index.md").write_text("\n\n".join([*parts, tree]), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """What the build does besides."""
    app.connect("builder-inited", write_gallery)
    return {"parallel_read_safe": True}
