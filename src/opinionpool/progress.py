"""Progress of long work: a function that is called, or a bar or lines on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from opinionpool.arguments import expect_function

if TYPE_CHECKING:
    from rich.progress import Progress as Shown

# Called with the share that is done.
Advance: TypeAlias = Callable[[float], None]
# What users give: a function, True for a bar, or nothing.
Progress: TypeAlias = Advance | bool | None
# Seconds before a bar appears, and before a line does where nobody is watching.
PATIENCE, UNWATCHED = 1.0, 30.0


@contextmanager
def advancing(progress: Progress, what: str) -> Iterator[Advance | None]:
    """Context with a function to call with the share (0 to 1) of the work `what` that is done; None without progress.

    If `progress` is True, a bar is shown on standard error, or in a notebook, if the work takes long. In a log, a line
    is written after half a minute, and then at intervals that double.
    """
    if not isinstance(progress, bool):
        expect_function(progress, "progress")
        yield progress
        return
    if not progress:
        yield None
        return
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield _Lines(what)
        return
    bar = _Bar(what)
    try:
        yield bar
    finally:
        bar.stop()


class _Lines:
    """Callable that writes the share done as a line of a log, each time after twice the interval."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._since = time.monotonic()
        self._next = UNWATCHED

    def __call__(self, share: float) -> None:
        passed = time.monotonic() - self._since
        if share >= 1.0 or passed < self._next:
            return
        self._next = 2.0 * passed
        # Nobody need be listening.
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{self._what}: {share:.0%} done after {_duration(passed)}\n")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    """Return a time in seconds as text in seconds, minutes or hours.

    >>> [_duration(s) for s in (30.2, 125.0, 7384.0)]
    ['30 s', '2 min 5 s', '2 h 3 min']
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


class _Bar:
    """Callable that shows a progress bar once the work has taken longer than `PATIENCE`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._since = time.monotonic()
        self._shown: Shown | None = None

    def __call__(self, share: float) -> None:
        if self._shown is None:
            if share >= 1.0 or time.monotonic() - self._since < PATIENCE:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
            self._shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._shown.add_task(self._what, total=1.0)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=share)

    def stop(self) -> None:
        """Remove the progress bar from the screen."""
        if self._shown is not None:
            self._shown.stop()
