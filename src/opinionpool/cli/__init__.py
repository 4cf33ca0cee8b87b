"""The command line, with `main` as entry point; commands end on Ctrl-C, on SIGTERM, and if the terminal closes."""

from __future__ import annotations

import signal
import sys

# Signals are listened to before anything else is imported, typing too.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
# Signals that came, the last one last. What is raised on them may be lost in a library that reads a file.
_CAME: list[int] = []


def listen() -> None:
    """Install handlers that raise KeyboardInterrupt on signals that end a process; ignored signals stay ignored."""
    _CAME.clear()
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _unwind)


def _unwind(number: int, _: FrameType | None) -> None:
    _CAME.append(number)
    raise KeyboardInterrupt


def stopped() -> bool:
    """Return True if a signal that ends the process has come since `listen`."""
    return bool(_CAME)


def status() -> int:
    """Exit status of a command that a signal ended: 128 + the number of the signal."""
    return 128 + (_CAME[-1] if _CAME else signal.SIGINT)


def check() -> None:
    """Raise KeyboardInterrupt if a signal came and other code, such as a library, caught the exception for it."""
    if _CAME:
        raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line on `arguments` (default: those of the process), and exit with its status."""
    try:
        listen()
        from opinionpool.cli.app import main as run

        run(arguments)
    except SystemExit:
        raise
    except BaseException:
        # Compiled modules may turn the interruption into an error of theirs.
        if not stopped():
            raise
        sys.exit(status())
