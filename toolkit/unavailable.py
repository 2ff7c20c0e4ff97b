"""A stand-in for a function that a file names but does not hold."""

from typing import Any


class UnavailableError(RuntimeError):
    """Something of a loaded run was called that its file names but does not hold: the code of a user's function."""


class Unavailable:
    """What takes the place of a function; ``description`` is what is known of it, see ``describing``.

    Calling or compiling it raises UnavailableError.
    """

    def __init__(self, what: str, description: dict[str, Any]) -> None:
        self.what = what
        self.description = description

    def __call__(self, *arguments: Any) -> Any:
        """Raise UnavailableError."""
        raise UnavailableError(
            f"the file holds the name of {self.what}, {self.description.get('function')!r}, but not its code: "
            "it was loaded without it and cannot be evaluated"
        )

    def __repr__(self) -> str:
        return f"<unavailable {self.description.get('function')!r}>"
