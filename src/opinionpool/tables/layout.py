"""The shape of a table and the column of each role: what was recognised, as notes and errors tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from opinionpool.errors import LayoutError, Note
from opinionpool.tables.roles import PEOPLE, normal
from opinionpool.text import counted, listed, quoted, shown

LONG, WIDE, CLASSES, RESPONDENTS = "a row per forecast", "a row per event", "a column per class", "a row per expert"


@dataclass(frozen=True)
class Layout:
    """The columns of a table by role, as positions."""

    roles: Mapping[str, int]  # from role to column
    experts: tuple[int, ...] = ()  # the columns that hold forecasts; empty where `roles` has a column of probabilities
    # whose forecasts, and of which class, each of `experts` holds; None where rows say it, or nothing does
    cells: tuple[tuple[str | None, str | None], ...] = ()
    unused: tuple[int, ...] = ()  # columns that play no role
    priors: Mapping[str, int] = field(default_factory=dict)  # columns of priors, by class
    events: tuple[str, ...] = ()  # what each of `experts` is about, where a row is one expert's
    guessed: tuple[str, ...] = ()  # roles that were given by what a column holds, and not by its name

    @property
    def long(self) -> bool:
        """Whether each row is one forecast, or one of a class."""
        return not self.experts

    @property
    def shape(self) -> str:
        """How rows and columns are laid out."""
        if self.long:
            return LONG
        if self.events:
            return RESPONDENTS
        return CLASSES if "expert" in self.roles else WIDE


def split_classes(layout: Layout, outcomes: Sequence[str]) -> Layout:
    """A wide layout with headers of the form ``expert:class`` split in two, if that is what they are.

    They are if every expert has the same classes, two or more, or if what happened is among the classes; else a
    colon is part of the experts' names. Beside a full grid of three classes or more, other columns are left over.

    Parameters
    ----------
    layout : Layout
    outcomes : sequence of str
        The distinct outcomes of resolved events, in lower case.

    Raises
    ------
    LayoutError
        If an expert lacks a class that others have.
    """
    if layout.shape != WIDE:
        return layout
    pairs = [str(name).rpartition(":") for name, _ in layout.cells]
    split = [bool(colon and expert.strip() and label.strip()) for expert, colon, label in pairs]
    kept = [pair for pair, whole in zip(pairs, split, strict=True) if whole]
    if not all(split) and not _full_grid(kept):
        return layout
    pairs = kept
    if not pairs:
        return layout
    cells = tuple((expert.strip(), label.strip()) for expert, _, label in pairs)
    classes = list(dict.fromkeys(label for _, label in cells))
    named = bool(outcomes) and set(outcomes) <= {label.lower() for label in classes}
    experts = dict.fromkeys(expert for expert, _ in cells)
    there = set(cells)
    lacking = [(expert, label) for expert in experts for label in classes if (expert, label) not in there]
    if (outcomes and not named) or (not outcomes and (lacking or len(classes) < 2)):
        return layout
    if lacking:
        expert, label = lacking[0]
        raise LayoutError(
            f"expert {shown(expert)} has no column for class {shown(label)}: there should be one called "
            f"{shown(f'{expert}:{label}')}, since others have one"
        )
    columns = tuple(column for column, whole in zip(layout.experts, split, strict=True) if whole)
    others = set(layout.experts) - set(columns)
    return replace(layout, experts=columns, cells=cells, unused=tuple(sorted({*layout.unused, *others})))


def _full_grid(pairs: Sequence[tuple[str, str, str]]) -> bool:
    """Whether there are three classes or more, and every expert has a column for each."""
    experts, classes = {expert for expert, *_ in pairs}, {label for *_, label in pairs}
    return len(classes) > 2 and len(pairs) == len(experts) * len(classes)


def layout_notes(layout: Layout, names: Sequence[str], times: Sequence[str] = ()) -> list[Note]:
    """What each column was taken for, in one line, and what is not used; `times` are columns of times among that."""
    roles = ", ".join(_played(layout, role, names[column]) for role, column in layout.roles.items())
    classes = list(dict.fromkeys(label for _, label in layout.cells if label is not None))
    text = layout.shape
    if layout.shape == WIDE:
        experts = list(dict.fromkeys(expert for expert, _ in layout.cells))
        text += f", a column per expert: {counted(len(experts), 'expert')} ({listed(experts)})"
    elif layout.shape == RESPONDENTS:
        text += f", a column per event: {counted(len(layout.events), 'event')} ({listed(layout.events)})"
    elif layout.shape == CLASSES:
        text = f"a row per forecast, {layout.shape}"
    text += f" ({listed(classes)})" if layout.shape == CLASSES else f" by class ({listed(classes)})" if classes else ""
    text += f"{': ' if layout.long else '; '}{roles}" if roles else ""
    if layout.shape == WIDE and "event" not in layout.roles:
        text += "; no event column, so rows are numbered"
    notes = [Note("layout", text)]
    if layout.unused:
        unused = f"not used: {listed([names[i] for i in layout.unused])}"
        if times:
            holds, way = ("holds", quoted(times[0])) if len(times) == 1 else ("hold", "NAME")
            unused += f"; {listed(times)} {holds} times: if forecasts were made then, say --column time={way}"
        notes.append(Note("unused-columns", unused, len(layout.unused)))
    return notes


def _played(layout: Layout, role: str, name: str) -> str:
    how = " (by what it holds)" if role in layout.guessed else ""
    if how and role == "event" and layout.shape == WIDE and normal(name) in PEOPLE:
        how = f" (by what it holds; if these are experts, say --column expert={quoted(name)})"
    return f"{role} = {name or 'the first column'}{how}"


def guesses(layout: Layout, names: Sequence[str]) -> str:
    """What was taken by what it holds, for errors that may follow from it."""
    found = [f"{role} = {names[layout.roles[role]]}" for role in layout.guessed if role in layout.roles]
    if not found:
        return ""
    ways = ", ".join(f"--column {role}=NAME" for role in layout.guessed if role in layout.roles)
    return f"; this takes {', '.join(found)} by what the columns hold: if that is wrong, say {ways}"
