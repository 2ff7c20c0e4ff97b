"""Ctrl-C at a place of our choosing."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held(firmly: bool = False) -> Iterator[None]:
    """Let what is inside come to its end where Ctrl-C is pressed, and only then raise KeyboardInterrupt.

    A second Ctrl-C raises at once, unless it is held ``firmly``. Elsewhere than in the main thread, or under another
    handler of SIGINT, nothing is held.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and not firmly:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
