"""How far something long has come: a function that is called, or a bar on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from opinionpool.arguments import expect_function

if TYPE_CHECKING:
    from rich.progress import Progress as Shown

# Called with the share that is done.
Advance: TypeAlias = Callable[[float], None]
# What users give: a function, True for a bar, or nothing.
Progress: TypeAlias = Advance | bool | None
# Seconds before a bar appears.
PATIENCE = 1.0


@contextmanager
def advancing(progress: Progress, what: str) -> Iterator[Advance | None]:
    """What to call with the share that is done, None if nobody wants to know.

    Parameters
    ----------
    progress : callable, bool or None
        True shows a bar on standard error, or in a notebook, once there is something to wait for.
    what : str
        What is being done.
    """
    if not isinstance(progress, bool):
        expect_function(progress, "progress")
        yield progress
        return
    if not progress:
        yield None
        return
    bar = _Bar(what)
    try:
        yield bar
    finally:
        bar.stop()


class _Bar:
    """A progress bar that appears once it is clear that it is needed."""

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
        """Remove the bar."""
        if self._shown is not None:
            self._shown.stop()
