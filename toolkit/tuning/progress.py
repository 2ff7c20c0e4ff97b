"""A bar of the gradients that a tuning has spent, with the round under way."""

import sys
from typing import Any

from .result import numbers, short
from .study import Round, Study


class Bar:
    """A bar on stderr; nothing where ``progress`` is False, or None and stderr no terminal."""

    def __init__(self, n_gradients: int, progress: bool | None) -> None:
        self._bar: Any = None
        if progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
            from tqdm import tqdm

            self._bar = tqdm(total=n_gradients, unit="gradient", unit_scale=True, leave=False)

    def show(self, study: Study, each: Round) -> None:
        """Show the round that has ended."""
        if self._bar is None:
            return
        self._bar.set_description(f"tuning: {each.stage}")
        ladder = f"T {numbers(each.temperatures)}" if len(each.temperatures) > 1 else ""
        self._bar.set_postfix_str("  ".join(filter(None, (ladder, short(each.rejection)))))
        self._bar.update(min(study.spent, self._bar.total) - self._bar.n)

    def close(self) -> None:
        """Remove it."""
        if self._bar is not None:
            self._bar.close()
