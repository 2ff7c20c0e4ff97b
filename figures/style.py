"""One look for all figures: a dictionary of Matplotlib settings, and colours that survive greyscale.

Colours are Okabe & Ito's (2008), told apart by people with any common colour vision; the first three are dark, medium
and light in grey as well. Where more lines share a picture, their dashes differ too.
"""

from typing import Any

WIDTH = 6.75  # inches: the text width of common two-column layouts

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
    "legend.frameon": False,
    "image.cmap": "cividis",
    "image.interpolation": "nearest",
    "pdf.fonttype": 42,
    "svg.hashsalt": "manymodes",
}

DARK, MEDIUM, LIGHT, FOURTH = "#000000", "#0072B2", "#E69F00", "#CC79A7"
