"""Which column holds what, and in which shape a table is.

Four shapes are known: a row per forecast, a row per event with a column per expert, a row per forecast with a column
per class, and a row per expert with a column per event. Columns are recognised by their names, and what they hold has
to go with it; where names say nothing, what columns hold decides, if it can decide in one way only. Where two columns
could play a role the user is asked. A column that plays no role is reported, never silently dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opinionpool.errors import LayoutError, Note
from opinionpool.labels import UNSETTLED, VOID
from opinionpool.tables.cells import MISSING
from opinionpool.tables.contents import Contents
from opinionpool.tables.roles import CONFIDENCE, ROLES, SYNONYMS, find_roles, normal, says_outcome, single
from opinionpool.text import counted, listed, quoted, shown

LONG, WIDE, CLASSES, RESPONDENTS = "a row per forecast", "a row per event", "a column per class", "a row per expert"
_OF_ROWS = {"expert", "probability", "class", "verdict"}
# Headers of columns that number the rows, as programs write them.
_INDEX = frozenset({"", "index", "row", "unnamed:_0", "n", "no", "nr", "id"})
# Headers of columns that are no expert's even where they are blank.
_REMARKS = frozenset(
    {"note", "notes", "comment", "comments", "remark", "remarks", "description", "title", "url", "link"}
)
_TIMES = ("time", "closes", "resolved_at", "expires")


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


def recognise(contents: Contents, columns: Mapping[str, str | None] | None = None, parts: Sequence[str] = ()) -> Layout:
    """The layout of a table of forecasts.

    Parameters
    ----------
    contents : Contents
        Its columns.
    columns : mapping, optional
        Roles to column names, where the user named them; None for "no column plays this role".
    parts : sequence of str
        Columns that are a key together, and play no other role.

    Raises
    ------
    LayoutError
        If the columns do not say what they hold.
    """
    seen = _Seen(contents, dict(columns or {}), parts)
    experts, probabilities = seen.candidates("expert"), seen.candidates("probability")
    if experts and probabilities:
        return _long(seen)
    if seen.given.get("expert") is None and not experts:
        return _wide(seen) if not _has_expert(seen, probabilities) else _long(seen)
    return _without_probability(seen)


class _Seen:
    """A table whose columns are being given roles."""

    def __init__(self, contents: Contents, given: dict[str, str | None], parts: Sequence[str]) -> None:
        self.contents, self.given = contents, given
        self.table, self.names = contents.table.name, contents.table.names
        self.aside = _check_names(self.table, self.names, contents)
        # They are seen in the key, and are neither free nor unused.
        self.aside |= {i for i, name in enumerate(self.names) if name in parts}
        found = find_roles(self.table, self.names, given, ROLES)
        fit = {role: [i for i in hits if i not in self.aside] for role, hits in found.items()}
        self.found = {role: hits for role, hits in fit.items() if hits}
        self.guessed: list[str] = []
        self._prune()

    def candidates(self, role: str) -> list[int]:
        """Columns that could play a role."""
        return self.found.get(role, [])

    def named(self, role: str) -> bool:
        """Whether the user named the column."""
        return self.given.get(role) is not None

    def emptied(self, role: str) -> bool:
        """Whether no column is to play a role."""
        return role in self.given and self.given[role] is None

    def guess(self, role: str, column: int) -> None:
        """Give a role by what a column holds."""
        self.found[role] = [column]
        self.guessed.append(role)

    def keep(self, role: str, columns: Sequence[int]) -> None:
        """Leave these candidates for a role, if there are any."""
        if columns:
            self.found[role] = list(columns)
        else:
            self.found.pop(role, None)

    def free(self) -> list[int]:
        """Columns that no role has, and that are no candidates for one that only one can have."""
        taken = {column for columns in self.found.values() for column in columns}
        return [i for i in range(len(self.names)) if i not in taken and i not in self.aside]

    def _prune(self) -> None:
        """Leave aside candidates that hold what their role cannot be."""
        look = self.contents
        if not self.named("expert"):
            # Where a column holds the probabilities, whole numbers are names of experts.
            forecasts = {"fractions"} if "probability" in self.found else {"binary", "fractions"}
            kept = [
                i
                for i in self.candidates("expert")
                if normal(self.names[i]) == "expert" or look.unit(i) not in forecasts
            ]
            self.keep("expert", kept)
        numbers = [i for i in self.candidates("probability") if look.kind(i) == "numbers"]
        events = [
            i
            for i in self.candidates("event")
            if look.distinct(i) > 1 and look.unit(i) != "fractions" and look.present(i) > 0.5
        ]
        for role, fit in (("probability", numbers), ("event", events)):
            if fit and not self.named(role):
                self.keep(role, fit)

    def ask(self, role: str, columns: Sequence[int], why: str = "") -> LayoutError:
        """The error that asks which column plays a role."""
        return LayoutError(
            f"{self.table}: columns {listed([self.names[i] for i in columns])} could each be the {role}{why}; "
            f"say which with --column {role}=NAME",
            remedies=[{"columns": {role: self.names[i]}} for i in columns],
        )


def _check_names(table: str, names: Sequence[str], contents: Contents) -> set[int]:
    """Raise unless columns have different names; returns those without name and cells, as trailing separators make."""
    nameless = {i for i, name in enumerate(names) if not name and i > 0}
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise LayoutError(f"{table}: two columns are called {shown(twice)}; every column needs its own name")
    full = next((i for i in sorted(nameless) if contents.kind(i)), None)
    if full is not None:
        raise LayoutError(f"{table}: column {full + 1} has no name, and holds something")
    return nameless


def _has_expert(seen: _Seen, probabilities: Sequence[int]) -> bool:
    """Whether what columns hold shows a row per forecast, though no name says who made it; then it is guessed."""
    look = seen.contents
    events = seen.candidates("event")
    if seen.emptied("expert") or len(events) != 1 or not look.repeats(events):
        return False
    free = seen.free()
    numbers = [i for i in free if look.unit(i) in {"fractions", "percentages"}]
    who = [i for i in free if look.kind(i) == "words" and look.present(i) == 1 and not look.repeats([*events, i])]
    who = [i for i in who if look.repeats([i]) or look.distinct(i) < look.table.rows]
    if len(who) != 1 or len([*probabilities, *numbers]) != 1:
        return False
    seen.guess("expert", who[0])
    if not probabilities:
        seen.guess("probability", numbers[0])
    return True


def _without_probability(seen: _Seen) -> Layout:
    """A table that says who made each forecast, and names no column of probabilities."""
    look = seen.contents
    expert = single(seen.table, seen.names, seen.found, ["expert"])["expert"]
    taken = {i for role in ("outcome", "prior", "group", *_TIMES) for i in seen.candidates(role)}
    numbers = [
        i
        for i in range(len(seen.names))
        if i != expert and i not in taken and i not in seen.aside and look.unit(i) and not look.is_index(i)
    ]
    events = [i for i in seen.candidates("event") if i not in numbers]
    fractions = [i for i in numbers if look.unit(i) in {"fractions", "percentages"}]
    if seen.emptied("probability"):
        fractions = []
    if not events and not seen.emptied("event") and len(numbers) > 1 and not look.repeats([expert]):
        return _respondents(seen, expert, numbers)
    if len(fractions) > 1 and look.rows_sum_to_one(fractions):
        return _class_columns(seen, fractions)
    if len(fractions) == 1:
        seen.guess("probability", fractions[0])
        return _long(seen)
    names = listed(seen.names)
    if seen.named("expert"):
        raise LayoutError(
            f"{seen.table}: column {shown(seen.given['expert'])} was named as the expert's, and none of {names} is "
            "known to hold the probabilities; name it with --column probability=NAME, or name no expert if each has a "
            "column",
            remedies=[{"columns": {"probability": seen.names[i]}} for i in fractions],
        )
    raise LayoutError(
        f"{seen.table}: there is an expert column, {shown(seen.names[expert])}, but none for the probability among "
        f"{names}; name it with --column probability=NAME",
        remedies=[{"columns": {"probability": seen.names[i]}} for i in fractions],
    )


def _respondents(seen: _Seen, expert: int, columns: Sequence[int]) -> Layout:
    """A row per expert, a column per event."""
    roles = {"expert": expert}
    if "time" in seen.found:
        roles |= single(seen.table, seen.names, seen.found, ["time"])
    unused = [i for i in range(len(seen.names)) if i not in (*roles.values(), *columns) and i not in seen.aside]
    cells = tuple((None, None) for _ in columns)
    events = tuple(seen.names[i] for i in columns)
    return Layout(roles, tuple(columns), cells, tuple(unused), events=events, guessed=tuple(seen.guessed))


def _class_columns(seen: _Seen, columns: Sequence[int]) -> Layout:
    """A row per forecast, a column per class."""
    seen.found = {
        role: left
        for role, hits in seen.found.items()
        if (left := [i for i in hits if i not in columns]) and role != "class"
    }
    roles = _row_roles(seen, ("event", "expert"))
    unused = [i for i in range(len(seen.names)) if i not in (*roles.values(), *columns) and i not in seen.aside]
    cells = tuple((None, _class_name(seen.names[i])) for i in columns)
    return Layout(roles, tuple(columns), cells, tuple(unused), guessed=tuple(seen.guessed))


def _class_name(header: str) -> str:
    """The class that a column of probabilities is about."""
    for prefix in ("probability_", "prob_", "p_"):
        if header.lower().startswith(prefix) and len(header) > len(prefix):
            return header[len(prefix) :]
    return header


def _long(seen: _Seen) -> Layout:
    roles = _row_roles(seen, ("event", "expert", "probability"))
    unused = tuple(i for i in range(len(seen.names)) if i not in roles.values() and i not in seen.aside)
    return Layout(roles, unused=unused, guessed=tuple(seen.guessed))


def _row_roles(seen: _Seen, wanted: Sequence[str]) -> dict[str, int]:
    """Roles of a table with a row per forecast."""
    for role in ("expert", "probability"):
        if role in wanted:
            _one_of(seen, role)
    expert = single(seen.table, seen.names, seen.found, ["expert"])["expert"]
    if not seen.candidates("event"):
        _guess_event(seen, expert)
    _one_of(seen, "event")
    roles = single(seen.table, seen.names, seen.found, ["event", *(role for role in wanted if role != "event")])
    if "probability" in roles:
        _find_verdict(seen, roles)
    _find_outcome(seen, [roles["event"]])
    for role in _TIMES:
        _one_of(seen, role)
    if "probability" in roles and not seen.candidates("class") and "class" not in seen.given:
        _guess_class(seen, roles)
    return {**single(seen.table, seen.names, seen.found, ROLES)}


def _one_of(seen: _Seen, role: str) -> None:
    """Of columns that say the same in other words, such as an id and a name, leave the first."""
    hits = seen.candidates(role)
    if len(hits) > 1 and role in {"event", "expert"}:
        first, *others = hits
        look = seen.contents
        if not any(look.varies_within(i, [first]) or look.varies_within(first, [i]) for i in others):
            seen.keep(role, [first])


def _guess_event(seen: _Seen, expert: int) -> None:
    """The one column that, with the expert, distinguishes forecasts."""
    look = seen.contents
    if seen.emptied("event"):
        raise LayoutError(
            f"{seen.table}: a table with a row per forecast needs a column that says which event each is about; name "
            "it with --column event=NAME"
        )
    free = [i for i in seen.free() if look.kind(i) == "words" or look.numbers_rows(i)]
    able = [i for i in free if look.present(i) == 1 and look.distinct(i) > 1 and not look.is_index(i)]
    unique = [i for i in able if not look.repeats([i, expert])]
    if len(unique or able) == 1:
        seen.guess("event", (unique or able)[0])
        return
    probability = seen.names[seen.candidates("probability")[0]] if seen.candidates("probability") else None
    has = f", and a probability column, {shown(probability)}," if probability else ""
    raise LayoutError(
        f"{seen.table}: there is an expert column, {shown(seen.names[expert])}{has} but none for the event among "
        f"{listed(seen.names)}; name it with --column event=NAME",
        remedies=[{"columns": {"event": seen.names[i]}} for i in (unique or able)],
    )


def _find_verdict(seen: _Seen, roles: Mapping[str, int]) -> None:
    """The column of verdicts that probabilities say how sure their judges are of, if there is one."""
    look, probability = seen.contents, roles["probability"]
    if seen.named("verdict") or seen.emptied("verdict"):
        return
    outcomes = [] if seen.named("outcome") else seen.candidates("outcome")
    labels = [i for i in outcomes if normal(seen.names[i]) == "label" and len(outcomes) > 1]
    votes = [i for i in outcomes if i in labels or look.varies_within(i, [roles["event"]])]
    votes = [*seen.candidates("verdict"), *votes]
    seen.keep("verdict", [])
    sure = normal(seen.names[probability]) in CONFIDENCE
    votes = [i for i in votes if look.kind(i) == "words" or look.unit(i) == "binary"]
    if not sure or not votes:
        return
    if len(votes) > 1:
        raise seen.ask("verdict", votes, f" that {shown(seen.names[probability])} is about")
    name = seen.names[votes[0]]
    known = look.known(probability)
    least = 50.0 if len(known) and known.max() > 1 and not look.marked(probability) else 0.5
    least = 50.0 if look.marked(probability) else least
    if look.distinct(votes[0]) > 2 or (len(known) and known.min() < least):
        raise LayoutError(
            f"{seen.table}: is {shown(seen.names[probability])} how sure each is of its own {shown(name)}, or the "
            f"probability of one outcome throughout? Say --column verdict={quoted(name)}, or --column verdict= for the "
            "latter",
            remedies=({"columns": {"verdict": name}}, {"columns": {"verdict": None}}),
        )
    seen.keep("outcome", [i for i in seen.candidates("outcome") if i != votes[0]])
    seen.guess("verdict", votes[0])


def _find_outcome(seen: _Seen, events: Sequence[int]) -> None:
    """Leave columns as outcomes that have one value for each event; if none is called so, one that looks like it."""
    look = seen.contents
    if seen.named("outcome") or seen.emptied("outcome"):
        return
    hits = seen.candidates("outcome")
    fixed = [i for i in hits if not events or not look.varies_within(i, events)]
    seen.keep("outcome", fixed or hits)
    if hits:
        return
    taken = {i for role, columns in seen.found.items() if role != "outcome" for i in columns}
    able = [
        i
        for i, name in enumerate(seen.names)
        if i not in taken and says_outcome(name) and (look.unit(i) == "binary" or 0 < look.distinct(i) <= 2)
    ]
    able = [i for i in able if not events or not look.varies_within(i, events)]
    if len(able) == 1:
        seen.guess("outcome", able[0])


def _guess_class(seen: _Seen, roles: Mapping[str, int]) -> None:
    """The column of words over which each forecast adds up to 1, if there is one."""
    look = seen.contents
    base = [roles["event"], roles["expert"], *seen.candidates("time")[:1]]
    if not look.repeats(base) or not look.sums_to_one(roles["probability"], base):
        return
    free = [i for i in seen.free() if look.kind(i) == "words" and look.present(i) == 1]
    able = [i for i in free if not look.repeats([*base, i]) and look.repeats([i])]
    if len(able) > 1:
        raise seen.ask("class", able, ", over which forecasts add up to 1")
    if able:
        seen.guess("class", able[0])


def _wide(seen: _Seen) -> Layout:
    look, names = seen.contents, seen.names
    _refuse_respondents(seen)
    if "outcome" not in seen.found and "class" in seen.found and not seen.emptied("outcome"):
        seen.found["outcome"] = seen.found["class"]
    for role in _OF_ROWS:
        seen.keep(role, [])
    if look.table.rows > 1 and not seen.named("event"):
        odd = [i for i in seen.candidates("event") if look.distinct(i) == 1 or look.present(i) <= 0.5]
        seen.keep("event", [i for i in seen.candidates("event") if i not in odd or normal(names[i]) == "event"])
    for role in ("event", *_TIMES):
        _one_of(seen, role)
    _find_outcome(seen, [])
    roles = single(seen.table, names, seen.found, [role for role in ROLES if role not in _OF_ROWS])
    free = [i for i in range(len(names)) if i not in roles.values() and i not in seen.aside]
    priors = {}
    for i in free:
        head, colon, label = names[i].partition(":")
        if colon and normal(head) == "prior":
            priors[label.strip()] = i
    free = [i for i in free if i not in priors.values()]
    if "event" not in roles and not seen.emptied("event"):
        event = _wide_event(seen, free)
        if event is not None:
            roles["event"] = event
            free.remove(event)
            seen.guessed.append("event")
    experts = _wide_experts(seen, free, roles)
    if not experts:
        raise LayoutError(
            f"{seen.table}: no column holds forecasts. A table has a row per forecast, with columns event, expert and "
            f"probability, or a row per event and a column per expert; this one has {listed(names)}"
        )
    unused = tuple(sorted(set(free) - set(experts)))
    cells: tuple[tuple[str | None, str | None], ...] = tuple((names[i], None) for i in experts)
    if _are_classes(look, experts, roles.get("outcome")):
        cells = tuple(("forecast", _class_name(names[i])) for i in experts)
    return Layout(roles, experts, cells, unused, priors, guessed=tuple(seen.guessed))


def _are_classes(look: Contents, columns: Sequence[int], outcome: int | None) -> bool:
    """Whether columns are one forecast over classes, which outcomes name, and no experts."""
    if outcome is None or len(columns) < 2 or not look.rows_sum_to_one(columns):
        return False
    classes = {_class_name(look.table.names[i]).lower() for i in columns}
    words = {word.lower() for word in look.words(outcome).values}
    return bool(words & classes) and words <= classes | VOID | UNSETTLED | MISSING


def _refuse_respondents(seen: _Seen) -> None:
    """Where a column names respondents and is to play no role, ask what a row is."""
    look = seen.contents
    if not seen.emptied("expert") or seen.candidates("event") or seen.emptied("event"):
        return
    people = find_roles(seen.table, seen.names, {}, ["expert"]).get("expert", [])
    people = [i for i in people if look.kind(i) == "words" and not look.repeats([i])]
    if people:
        name = seen.names[people[0]]
        raise LayoutError(
            f"{seen.table}: each row has a {shown(name)} of its own. If a row is one expert's, with a column per "
            f"event, say --column expert={quoted(name)}; if a row is an event, say --column event={quoted(name)}",
            remedies=({"columns": {"expert": name}}, {"columns": {"expert": None, "event": name}}),
        )


def _wide_event(seen: _Seen, free: Sequence[int]) -> int | None:
    """The column that names the rows of a wide table: without a name, or of words or ids none of which stands twice."""
    look = seen.contents
    for i in free:
        if seen.names[i] == "" and not (look.is_index(i) and any(_names_rows(look, j) for j in free if j != i)):
            return i
    words = [i for i in free if look.kind(i) == "words"]
    unlike = [i for i in words if _names_rows(look, i)]
    ids = [
        i
        for i in free
        if re.search(r"(^|_)id$", normal(seen.names[i])) and look.numbers_rows(i) and look.present(i) == 1
    ]
    return next(iter([*unlike, *ids]), None)


def _names_rows(look: Contents, column: int) -> bool:
    return look.kind(column) == "words" and look.present(column) == 1 and not look.repeats([column])


def _wide_experts(seen: _Seen, free: Sequence[int], roles: Mapping[str, int]) -> tuple[int, ...]:
    """The columns that hold forecasts: numbers, but for those that number or count something."""
    look, names = seen.contents, seen.names
    # What happened must not be taken as a forecast, even where another column plays that role.
    taken = {name for role in ("outcome", "prior") if role in roles for name in SYNONYMS[role] if len(name) > 1}
    able = [i for i in free if look.kind(i) != "words" and normal(names[i]) not in taken]
    counting = [i for i in able if _counts(look, names[i], i)]
    likely = [i for i in able if look.unit(i) and i not in counting]
    if not likely:
        return tuple(able)
    empty = [i for i in able if not look.kind(i) and normal(names[i]) in _REMARKS]
    return tuple(i for i in able if i in likely or i not in (*counting, *empty))


def _counts(look: Contents, name: str, column: int) -> bool:
    """Whether a column of numbers is plainly no forecasts: an index, a year, an amount."""
    known = look.known(column)
    if not len(known):
        return False
    numbered = look.is_index(column) and (len(known) > 2 or normal(name) in _INDEX)
    return numbered or float((np.abs(known) > 100).mean()) > 0.5


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


def layout_notes(layout: Layout, names: Sequence[str]) -> list[Note]:
    """What each column was taken for, in one line."""
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
    text += f" by class ({listed(classes)})" if classes else ""
    text += f"{': ' if layout.long else '; '}{roles}" if roles else ""
    if layout.shape == WIDE and "event" not in layout.roles:
        text += "; no event column, so rows are numbered"
    notes = [Note("layout", text)]
    if layout.unused:
        unused = listed([names[i] for i in layout.unused])
        notes.append(Note("unused-columns", f"not used: {unused}", len(layout.unused)))
    return notes


def _played(layout: Layout, role: str, name: str) -> str:
    how = " (by what it holds)" if role in layout.guessed else ""
    return f"{role} = {name or 'the first column'}{how}"


def guesses(layout: Layout, names: Sequence[str]) -> str:
    """What was taken by what it holds, for errors that may follow from it."""
    found = [f"{role} = {names[layout.roles[role]]}" for role in layout.guessed if role in layout.roles]
    if not found:
        return ""
    ways = ", ".join(f"--column {role}=NAME" for role in layout.guessed if role in layout.roles)
    return f"; this takes {', '.join(found)} by what the columns hold: if that is wrong, say {ways}"
