"""Warnings that point at the user's line, however deep in this package they are issued."""

import contextlib
import os
import sys
import warnings

from toolkit.errors import package_root

PACKAGE = f"{package_root(__name__)}{os.sep}"


def warn_user(message: str) -> None:
    """Issue a ``UserWarning`` at the line by which this package was called.

    A fixed ``stacklevel`` is wrong as soon as one public function calls another. Frames of ``contextlib`` are passed
    over as well: they stand between a context manager and what uses it.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_inside(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def is_inside(file: str) -> bool:
    """Whether code of a file belongs to this package or to ``contextlib``."""
    return file.startswith(PACKAGE) or file == contextlib.__file__
