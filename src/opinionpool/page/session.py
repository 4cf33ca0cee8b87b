"""Assessments of one page with undo and redo, the file that keeps assessments, and scores in the background."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from opinionpool.analysis.explanation import of_class
from opinionpool.arrays import Array
from opinionpool.atomic import replacing
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.page.answer import Answer, PageData, answer, as_given
from opinionpool.page.assessment import (
    UNITS,
    Action,
    Assessment,
    acted,
    example,
    from_dict,
    number,
    one_line,
    to_dict,
    to_toml,
)
from opinionpool.pools.fit import FitOptions
from opinionpool.report.blocks import Html, Section, markup, rendered, sentence
from opinionpool.report.comparison import gains_section
from opinionpool.report.evidence import evidence_sections
from opinionpool.report.findings import find
from opinionpool.report.listing import brief, printable

# Steps that can be undone, and pages whose assessments the file keeps.
DEPTH, PAGES = 500, 20
# Bytes of a file that kept assessments.
LARGEST = 10_000_000
FORMAT = "opinionpool assessments"
VIEWS = {"events": "Events", "panel": "Panel", "what_if": "What if", "evidence": "Evidence", "hand_over": "Hand over"}


@dataclass(frozen=True)
class Look:
    """View options, which do not affect the answer: view, unit of accuracies, class shown, and list of events."""

    view: str = "panel"  # a key of `VIEWS`
    unit: str = "auc"  # the unit of accuracies: a key of `UNITS`
    about: int = 1  # position of the class whose probability is shown
    # search, order, start: of the list of events
    search: str = ""
    order: str = "file"
    start: int = 0


@dataclass(frozen=True, eq=False)
class PageInputs:
    """All that the page is drawn from: assessment, view options, data and answer."""

    a: Assessment
    look: Look
    data: PageData
    found: Answer | None
    trouble: str = ""  # why there is no answer, or why the last action was not done
    # undo, redo: whether there is something to undo, or to redo
    undo: bool = False
    redo: bool = False
    helps: bool = True  # whether terms have buttons that explain them

    @property
    def at(self) -> int:
        """Position of the class whose probability is shown."""
        return min(self.look.about, len(self.a.classes) - 1)

    @property
    def event(self) -> str:
        """Name of the class whose probability is shown; "yes" for class 1 of two."""
        label = self.a.classes[self.at]
        return "yes" if self.a.binary and label in {1, "1"} else printable(str(label))

    @property
    def question(self) -> str:
        """The event's question in the file, or the event's name."""
        f = self.data.forecasts
        return self.a.question if f is None else f.question(f.events.index(self.a.question))

    def probability(self, p: Array) -> float:
        """Probability of the shown class from `p`, which is the second class's if K = 2, else an array (K,)."""
        return of_class(p, self.at)

    @property
    def learns(self) -> bool:
        """Whether the pool on the page was fitted to outcomes, so that the answer rests on more than beliefs."""
        return self.data.trained is None and self.found is not None and bool(self.found.state.counts.any())

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of the shown probability; None if the answer has no interval."""
        if self.found is None or self.found.interval is None:
            return None
        low, high = sorted(self.probability(end) for end in self.found.interval)
        return low, high

    @property
    def shown(self) -> tuple[str, tuple[str, str] | None] | None:
        """The answer, and the ends of its interval if it has one, as texts; None if there is no answer."""
        if self.found is None:
            return None
        ends = None if self.interval is None else (brief(self.interval[0]), brief(self.interval[1]))
        return brief(self.probability(self.found.why.probability)), ends

    @property
    def views(self) -> list[str]:
        """Keys (of `VIEWS`) of the views that the page offers."""
        return [view for view in VIEWS if self.data.forecasts is not None or view not in {"events", "evidence"}]


class Session:
    """Present, past and undone assessments of one browser tab, and the actions that change them."""

    def __init__(self, data: PageData, start: Assessment) -> None:
        self.name = secrets.token_urlsafe(12)
        self.lock = threading.Lock()
        self.used = time.monotonic()
        self.when = datetime.now(UTC).astimezone()
        self._data = data
        self._past: list[Assessment] = []
        self._future: list[Assessment] = []
        self._control: object = None
        self.present = start
        self.look = Look()
        # Why the last action was not done, and the id of the field that holds what is wrong.
        self.trouble, self.wrong = "", ""
        # What the page was sent last, in pieces, and the number of that.
        self.drawn: dict[str, Html] = {}
        self.version = 0
        self._answered: tuple[Assessment, Answer | None, str] | None = None

    def act(self, action: Action) -> None:
        """Do a control's `action`; if it cannot be done, change nothing but `trouble`, which then has the reason."""
        self.trouble, self.wrong, self.used = "", "", time.monotonic()
        try:
            do = action.get("do")
            if do in {"undo", "redo"}:
                self._travel(back=do == "undo")
            elif do in {"view", "unit", "about", "search", "order", "start"}:
                self.look = _looked(self.look, action)
            elif do == "event":
                self._choose(action)
            else:
                self._make(action)
        except OpinionPoolError as error:
            self.trouble, self.wrong = str(error), str(action.get("field") or "")

    def _make(self, action: Action) -> None:
        known = {each.key for each in self.present.experts if each.name in set(self._data.experts)}
        do = action.get("do")
        if do in {"name", "remove"} and action.get("expert") in known:
            raise ArgumentError("this expert is from the file; leave it out of the answer instead")
        if do in {"question", "outcomes", "blank"} and self._data.forecasts is not None:
            raise ArgumentError("the events are those of the file; choose another one")
        new = acted(self.present, action)
        if new == self.present:
            return
        # What cannot be answered for what is assessed, and not for want of forecasts, is not taken over.
        found = _answered(new, self._data)
        if found[1] is None and any(each.forecast is not None for each in new.experts):
            raise ArgumentError(found[2])
        control = (do, action.get("expert"), action.get("class"))
        self._put(new, control, begins=bool(action.get("begins", True)))
        self._answered = found

    def _put(self, new: Assessment, control: object, *, begins: bool) -> None:
        """Make `new` the present assessment, as a new undo step if `begins` or if `control` differs from the last."""
        if begins or self._control != control:
            self._past.append(self.present)
            del self._past[:-DEPTH]
        self._control = control
        self._future.clear()
        self.present, self.when = new, datetime.now(UTC).astimezone()

    def _travel(self, *, back: bool) -> None:
        here, there = (self._past, self._future) if back else (self._future, self._past)
        if here:
            there.append(self.present)
            self.present = here.pop()
            self._control, self.when = None, datetime.now(UTC).astimezone()

    def _choose(self, action: Action) -> None:
        """Switch to the file's event at the position that `action` gives; the beliefs about experts stay."""
        f = self._data.forecasts
        if f is None:
            raise ArgumentError("there is no file to choose an event from")
        t = int(number(action.get("value"), "an event", 0, len(f.events) - 1))
        self._put(self._data.assessment_of(t, self.present), None, begins=True)
        self.look = replace(self.look, view="panel", about=1 if self.present.binary else 0)

    def take(self, kept: Assessment) -> None:
        """Make `kept`, an assessment that the option --keep wrote to a file, the present one; that can be undone."""
        if kept != self.present:
            self._put(kept, None, begins=True)

    def inputs(self) -> PageInputs:
        """Return all that the page is drawn from, with the answer computed if it is not yet."""
        if self._answered is None or self._answered[0] is not self.present:
            self._answered = _answered(self.present, self._data)
        _, found, why = self._answered
        return PageInputs(
            self.present, self.look, self._data, found, self.trouble or why, bool(self._past), bool(self._future)
        )


def _answered(a: Assessment, data: PageData) -> tuple[Assessment, Answer | None, str]:
    try:
        return a, answer(a, data), ""
    except OpinionPoolError as error:
        return a, None, str(error)


def _looked(look: Look, action: Action) -> Look:
    """Return the view options after an `action` that changes only these."""
    do, value = str(action["do"]), action.get("value")
    choices: Mapping[str, Mapping[str, object]] = {"view": VIEWS, "unit": UNITS}
    if value not in choices.get(do, [value]):
        raise ArgumentError("there is no such view")
    first = {"start": 0} if do in {"search", "order"} else {}
    new = int(number(value, "a place", 0, 1e9)) if do in {"about", "start"} else one_line(value, "a search")
    return replace(look, **(first | {do: new}))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Kept:
    """Assessment from a file that the option --keep wrote, with the name of its page and the time when it was saved."""

    page: str  # the page that kept it
    when: str  # as ISO 8601 has it
    assessment: Assessment


class Keeper:
    """Writer of a page's assessment to the file of --keep after each change; assessments of other pages stay."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self.found = () if path is None else read_kept(path)
        self._lock = threading.Lock()
        self.failure = ""

    def keep(self, session: Session) -> None:
        """Write a session's assessment to the file; if that fails, `failure` has the reason."""
        if self._path is None:
            return
        own = Kept(session.name, session.when.isoformat(timespec="milliseconds"), session.present)
        try:
            with self._lock:
                every = {kept.page: kept for kept in reversed(read_kept(self._path))} | {own.page: own}
                last = sorted(every.values(), key=lambda kept: kept.when)[-PAGES:]
                pages = [
                    {"page": each.page, "when": each.when, "assessment": to_dict(each.assessment)} for each in last
                ]
                content = {"format": FORMAT, "version": 1, "pages": pages}
                with replacing(self._path) as file:
                    file.write(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode())
            self.failure = ""
        except OSError as error:
            self.failure = f"{self._path} cannot be written: {error.strerror or error}"
        except ArgumentError as error:
            self.failure = str(error)


def read_kept(path: str) -> tuple[Kept, ...]:
    """Assessments in a file that --keep wrote, the latest first; an ArgumentError for any other file."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path) == 0:
            return ()
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
        try:
            given = json.loads(raw) if len(raw) <= LARGEST else None
            if not isinstance(given, Mapping) or given.get("format") != FORMAT:
                raise ArgumentError("it has another format")
            # Records of earlier releases have no name of a page.
            pages = [
                Kept(str(page.get("page", f"{page['when']} {at}")), str(page["when"]), from_dict(page["assessment"]))
                for at, page in enumerate(given["pages"])
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OpinionPoolError) as error:
            raise ArgumentError(
                f"{path} is no file of assessments that a page has kept ({error}), so it is not written over; "
                "name another one after --keep"
            ) from None
        return tuple(reversed(pages))
    return ()


def start_of(data: PageData, given: Assessment | None) -> Assessment:
    """Return the first assessment of a page: `given`, else the file's first open event, else the example."""
    if given is not None:
        return given
    if data.forecasts is None:
        return example()
    f = data.forecasts
    answered = f.crowd > 0
    opened = [t for t in range(len(f.events)) if answered[t] and not f.resolved[t]]
    return data.assessment_of(opened[0] if opened else 0)


# Ids of the report's sections that the page shows.
SHOWN = ("gains", "calibration", "learning")


class Evidence:
    """Report sections on scores and calibration, which a thread computes for the latest beliefs and prior."""

    def __init__(self, data: PageData) -> None:
        self._data = data
        self._lock = threading.Lock()
        self._key: object = None
        self._thread: threading.Thread | None = None
        self._share, self._html = 0.0, Html("")
        self._ended = False

    def now(self, inputs: PageInputs) -> dict[str, object]:
        """Dict for the page: "html", the sections or the progress so far, and "again", whether to ask again."""
        key = to_toml(inputs.a.beliefs), inputs.a.prior
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and key != self._key:
                self._key, self._html, self._share = key, Html(""), 0.0
                self._thread = threading.Thread(target=self._find, args=(inputs,), name="evidence", daemon=True)
                self._thread.start()
                busy = True
            if self._key == key and self._html:
                return {"html": self._html, "again": False}
            words = f"Computing how well the pool does on events that it has not learned from: {self._share:.0%}"
            return {"html": markup('<p class="quiet">{}</p>', words), "again": busy}

    def _find(self, inputs: PageInputs) -> None:
        a, forecasts = inputs.a, self._data.forecasts
        assert forecasts is not None
        beliefs = None if a.beliefs.any_panel else a.beliefs
        prior = None if self._data.own_priors else as_given(a.prior)
        try:
            found = find(forecasts, "gaussian", fit=FitOptions(prior, beliefs), progress=self._shown)
            sections: list[Section] = [gains_section(found), *evidence_sections(found)]
            html = rendered(each for each in sections if each.anchor in SHOWN)
        except _EndedError:
            return
        except OpinionPoolError as error:
            html = markup('<p class="missing">{}</p>', sentence(str(error)))
        with self._lock:
            self._html = html

    def _shown(self, share: float) -> None:
        if self._ended:
            raise _EndedError
        self._share = share

    def close(self) -> None:
        """Stop the thread that computes the sections."""
        self._ended = True


class _EndedError(Exception):
    """Error that ends the computation of sections that nobody needs any more."""
