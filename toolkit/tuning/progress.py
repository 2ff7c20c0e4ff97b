"""A bar of the gradients that a tuning has spent, with the round under way."""

from .._engine.driver import bar_of
from .result import numbers, short
from .study import Round, Study


class Bar:
    """A bar on stderr; nothing where ``progress`` is False, or None and stderr no terminal."""

    def __init__(self, n_gradients: int, progress: bool | None) -> None:
        self._bar = bar_of(progress, total=n_gradients, unit="gradient")

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
