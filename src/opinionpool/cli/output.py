"""Output of results to standard output, which may be closed early, or to a file, which is never incomplete."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from opinionpool.atomic import replacing
from opinionpool.cli import check
from opinionpool.progress import advancing
from opinionpool.report.listing import folded, printable

if TYPE_CHECKING:
    from opinionpool.cli.options import Writing
    from opinionpool.report.view import View


def speak_utf8() -> None:
    """Make the standard streams write UTF-8 in any locale, with lone surrogates as backslash escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


# Names of the standard streams that were closed when the program began.
_CLOSED: set[str] = set()


def open_closed_streams() -> None:
    """Open the null device in place of each closed standard stream, so that no file gets the stream's number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            _CLOSED.add(name)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - stays open


def hush(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that flushing it at exit cannot fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Context with the stream for results: the file at `path`, or standard output if `path` is None.

    A file appears only once it is complete, and an error leaves the old file (`opinionpool.atomic.replacing`). Links
    are followed; devices and pipes are written to directly.
    """
    if path is None:
        with _standard_output() as stream:
            yield stream
        return
    with replacing(path) as raw:
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="")
        try:
            yield stream
            check()
        finally:
            stream.detach()


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    """Context with standard output; an OSError if it was closed from the start, not if a reader closes its pipe."""
    if "stdout" in _CLOSED:
        raise OSError(errno.EBADF, "standard output is closed, so nobody gets the results; --output FILE writes a file")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        hush(sys.stdout)


def tell(*lines: str) -> None:
    """Write lines to standard error, folded to a terminal's width; a closed stream is no error."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    try:
        for line in lines:
            for number, part in enumerate(folded(line, room - 2) if room else [line]):
                sys.stderr.write(f"{'  ' if number else ''}{part}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        hush(sys.stderr)


@contextmanager
def progress(what: str, *, log: bool = False) -> Iterator[Callable[[float], None] | None]:
    """Context with a function to call with the share of the work `what` that is done; None if nobody is to see it."""
    with advancing(log or sys.stderr.isatty(), printable(what)) as advance:
        yield advance


def present(view: View, writing: Writing) -> None:
    """Write a view to the output, in the format that `writing` has, and its sentences and notes to standard error."""
    from opinionpool.report.view import note_lines, write_view

    with destination(writing.output) as out:
        write_view(view, writing.kind(), out)
    conclude(writing.kind(), *view.lines, *note_lines(view.notes, view.forecasts, writing.most_notes))


def conclude(kind: str, *lines: str) -> None:
    """Write lines to standard error, after an empty line if a table (`kind`) was written to the same terminal."""
    blank = kind == "table" and sys.stdout.isatty() and sys.stderr.isatty()
    tell(*[""] * blank, *lines)


def error_line(message: str) -> str:
    """Return an error message as a line for standard error."""
    return "opinionpool: error: " + "\n".join(map(printable, message.split("\n")))
