"""One look for all figures: a dictionary of Matplotlib settings, and colours that survive greyscale.

Colours are Okabe & Ito's (2008) and Tol's wine (2021), told apart by people with any common colour vision, and by their
lightness in grey (L* 0, 46, 71, 61, 32). Where more lines share a picture, their dashes differ too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.rcsetup import cycler

WIDTH = 6.75  # inches: the text width of common two-column layouts
COLUMN = 3.25  # inches: the width of one of their columns

DARK, MEDIUM, LIGHT, FOURTH, FIFTH = "#000000", "#0072B2", "#E69F00", "#CC79A7", "#882255"
COLOURS = (DARK, MEDIUM, LIGHT, FOURTH, FIFTH)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)), (0, (8, 1.2, 2, 1.2)))
# For axes.set_prop_cycle, where up to ten lines share a picture: the second five have the colours with other dashes.
CYCLE = cycler(color=2 * COLOURS) + cycler(linestyle=[*DASHES, *DASHES[1:], DASHES[0]])
TRUTH: dict[str, Any] = {"color": "0.6", "linewidth": 2.0, "linestyle": "-", "zorder": 1.5}  # a line beneath others

STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.06,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),  # no dashes: they would go to lines given a colour alone, too
    "legend.frameon": False,
    "image.cmap": "cividis",
    "image.interpolation": "nearest",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "manymodes",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Matplotlib's defaults with ``STYLE`` inside a ``with`` block, whatever a person's own settings are.

    Text is embedded in PDF and PostScript as TrueType. Widths: ``style.COLUMN`` and ``style.WIDTH``, in inches.
    """
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    with matplotlib.rc_context({**defaults, **STYLE}):
        yield
