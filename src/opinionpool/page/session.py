"""One page's assessments: the present one, those before it and those undone; and the file that keeps them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from opinionpool.atomic import replacing
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.page.answer import Answer, Material, answer
from opinionpool.page.assessment import Assessment, example, from_dict, number, one_line, to_dict
from opinionpool.page.moves import UNITS, Move, moved
from opinionpool.page.scene import VIEWS, Look, Scene
from opinionpool.report.html import Html

# Steps that can be undone, and pages whose assessments the file keeps.
DEPTH, PAGES = 500, 20
# Bytes of a file that kept assessments.
LARGEST = 10_000_000
FORMAT = "opinionpool assessments"


class Session:
    """What one page shows.

    Parameters
    ----------
    material : Material
    start : Assessment
    changed : callable
        Called after every change of the assessment.
    """

    def __init__(self, material: Material, start: Assessment, changed: Callable[[Session], None]) -> None:
        self.name = secrets.token_urlsafe(12)
        self.lock = threading.Lock()
        self.used = time.monotonic()
        self.when = datetime.now(UTC).astimezone()
        self._material = material
        self._changed = changed
        self._past: list[Assessment] = []
        self._future: list[Assessment] = []
        self._control: object = None
        self.present = start
        self.look = Look()
        self.trouble = ""
        # What the page was sent last, in pieces, and the number of that.
        self.drawn: dict[str, Html] = {}
        self.version = 0
        self._answered: tuple[Assessment, Answer | None, str] | None = None

    def move(self, move: Move) -> None:
        """Make a move; one that cannot be made changes nothing, and leaves its reason in `trouble`."""
        self.trouble, self.used = "", time.monotonic()
        try:
            do = move.get("do")
            if do in {"undo", "redo"}:
                self._travel(back=do == "undo")
            elif do in {"view", "unit", "about", "search", "order", "start"}:
                self.look = _looked(self.look, move)
            elif do == "event":
                self._choose(move)
            else:
                self._make(move)
        except OpinionPoolError as error:
            self.trouble = str(error)

    def _make(self, move: Move) -> None:
        known = {each.key for each in self.present.experts if each.name in set(self._material.experts)}
        do = move.get("do")
        if do in {"name", "remove"} and move.get("expert") in known:
            raise ArgumentError("this expert is from the file; leave it out of the answer instead")
        if do in {"question", "outcomes"} and self._material.forecasts is not None:
            raise ArgumentError("the events are those of the file; choose another one")
        new = moved(self.present, move)
        if new == self.present:
            return
        # What cannot be answered for what is assessed, and not for want of forecasts, is not taken over.
        found = _answered(new, self._material)
        if found[1] is None and any(each.forecast is not None for each in new.experts):
            raise ArgumentError(found[2])
        self._put(new, (do, move.get("expert"), move.get("class")), final=bool(move.get("final", True)))
        self._answered = found

    def _put(self, new: Assessment, control: object, *, final: bool) -> None:
        """Take over an assessment; what one drag of a control made is undone at once."""
        if self._control is None or self._control != control:
            self._past.append(self.present)
            del self._past[:-DEPTH]
        self._control = None if final else control
        self._future.clear()
        self.present, self.when = new, datetime.now(UTC).astimezone()
        self._changed(self)

    def _travel(self, *, back: bool) -> None:
        here, there = (self._past, self._future) if back else (self._future, self._past)
        if here:
            there.append(self.present)
            self.present = here.pop()
            self._control, self.when = None, datetime.now(UTC).astimezone()
            self._changed(self)

    def _choose(self, move: Move) -> None:
        """Another event of the file; what is assessed of the experts stays."""
        f = self._material.forecasts
        if f is None:
            raise ArgumentError("there is no file to choose an event from")
        t = int(number(move.get("value"), "an event", 0, len(f.events) - 1))
        self._put(self._material.assessment_of(t, self.present), None, final=True)
        self.look = replace(self.look, view="panel", about=1 if self.present.binary else 0)

    def take(self, kept: Assessment) -> None:
        """Go on with an assessment that was kept."""
        if kept != self.present:
            self._put(kept, None, final=True)

    def scene(self) -> Scene:
        """What is to be drawn."""
        if self._answered is None or self._answered[0] is not self.present:
            self._answered = _answered(self.present, self._material)
        _, found, why = self._answered
        return Scene(
            self.present, self.look, self._material, found, self.trouble or why, bool(self._past), bool(self._future)
        )


def _answered(a: Assessment, material: Material) -> tuple[Assessment, Answer | None, str]:
    try:
        return a, answer(a, material), ""
    except OpinionPoolError as error:
        return a, None, str(error)


def _looked(look: Look, move: Move) -> Look:
    """Another view, or another way to look at it."""
    do, value = str(move["do"]), move.get("value")
    if do == "view" and value in VIEWS:
        return replace(look, view=str(value))
    if do == "unit" and value in UNITS:
        return replace(look, unit=str(value))
    if do == "about":
        return replace(look, about=int(number(value, "an outcome", 0, 1e3)))
    if do == "search":
        return replace(look, search=one_line(value, "a search"), start=0)
    if do == "order":
        return replace(look, order=str(value), start=0)
    if do == "start":
        return replace(look, start=int(number(value, "a place in the list", 0, 1e9)))
    raise ArgumentError("there is no such view")


@dataclass(frozen=True)
class Kept:
    """An assessment from the file of an earlier start."""

    when: str  # as ISO 8601 has it
    assessment: Assessment


class Keeper:
    """Writes the assessments of all pages to one file, whole or not at all, soon after each change.

    Parameters
    ----------
    path : str or None
        None keeps nothing.
    """

    # Seconds between a change and writing it, so that dragging a control does not write at each step.
    DELAY = 0.3

    def __init__(self, path: str | None) -> None:
        self._path = path
        self.found = () if path is None else read_kept(path)
        self._pages: dict[str, dict[str, Any]] = {
            f"before-{i}": {"when": kept.when, "assessment": to_dict(kept.assessment)}
            for i, kept in enumerate(self.found)
        }
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._ended = False
        self.failure = ""
        self._thread: threading.Thread | None = None

    def changed(self, session: Session) -> None:
        """Remember a page's assessment, and write it before long."""
        if self._path is None:
            return
        with self._lock:
            self._pages.pop(session.name, None)
            self._pages[session.name] = {
                "when": session.when.isoformat(timespec="seconds"),
                "assessment": to_dict(session.present),
            }
            while len(self._pages) > PAGES:
                self._pages.pop(next(iter(self._pages)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
                self._thread.start()
        self._due.set()

    def _run(self) -> None:
        while True:
            self._due.wait()
            time.sleep(0.0 if self._ended else self.DELAY)
            self._due.clear()
            self._write()
            if self._ended:
                return

    def _write(self) -> None:
        with self._lock:
            content = {"format": FORMAT, "version": 1, "pages": list(self._pages.values())}
        assert self._path is not None
        try:
            with replacing(self._path) as file:
                file.write(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode())
            self.failure = ""
        except OSError as error:
            self.failure = f"{self._path} cannot be written: {error.strerror or error}"

    def close(self) -> None:
        """Write what is still to be written."""
        self._ended = True
        if self._thread is not None:
            self._due.set()
            self._thread.join(10.0)


def read_kept(path: str) -> tuple[Kept, ...]:
    """The assessments in a file of --keep, the last one first; none if there is no such file.

    Raises
    ------
    ArgumentError
        If the file is something else, which is not to be overwritten.
    """
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path) == 0:
            return ()
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
        try:
            given = json.loads(raw) if len(raw) <= LARGEST else None
            if not isinstance(given, Mapping) or given.get("format") != FORMAT:
                raise ArgumentError("it has another format")
            pages = [Kept(str(page["when"]), from_dict(page["assessment"])) for page in given["pages"]]
        except (ValueError, KeyError, TypeError, RecursionError, OpinionPoolError) as error:
            raise ArgumentError(
                f"{path} is no file of assessments that a page has kept ({error}), so it is not written over; "
                "name another one after --keep"
            ) from None
        return tuple(reversed(pages))
    return ()


def start_of(material: Material, given: Assessment | None) -> Assessment:
    """What a new page begins with."""
    if given is not None:
        return given
    if material.forecasts is None:
        return example()
    f = material.forecasts
    answered = f.crowd > 0
    opened = [t for t in range(len(f.events)) if answered[t] and not f.resolved[t]]
    return material.assessment_of(opened[0] if opened else 0)
