"""Layout of a table: its shape and the column of each role; and the question if headers leave several readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding, typed_options
from opinionpool.scales import Scale, Spread, shared_scales
from opinionpool.tables.choice import Choice, choose
from opinionpool.tables.meanings import Meanings
from opinionpool.tables.profile import WORDS, Profile
from opinionpool.tables.reading import Reading
from opinionpool.tables.roles import (
    BETWEEN,
    CLASSES,
    GRID,
    KEYED,
    ONE,
    ONE_CLASSES,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    ROLES,
    SURE,
    WIDE,
    Beside,
    Shape,
    UserRoles,
    class_names,
    normal,
    position,
    roles_of,
    unnumbered,
)
from opinionpool.tables.units import looks_numeric
from opinionpool.tables.where import condition
from opinionpool.text import counted, listed, quoted, shown, typed

# Most readings that a question offers, and most columns that it shows.
_OFFERED, _SHOWN = 3, 30


# Header, or headers, of the columns to which the user gives a role; None if no column has the role.
Named: TypeAlias = str | tuple[str, ...] | None
# A reading and the options that lead to it.
_Way: TypeAlias = tuple[Reading, Mapping[str, object]]


@dataclass(frozen=True)
class Layout:
    """The reading of a table that was chosen: its shape, and which column (position) holds what, such as the event."""

    shape: Shape
    roles: Mapping[str, int]  # position of the column of each role
    forecasts: tuple[int, ...] = ()  # columns of forecasts; empty if `roles` has a column of probabilities
    cells: tuple[tuple[str | None, str | None], ...] = ()  # expert and class of each; None if no header says it
    unused: tuple[int, ...] = ()  # columns that play no role
    priors: Mapping[str, int] = field(default_factory=dict)  # from class to the column of its priors
    events: tuple[str, ...] = ()  # event of each of `forecasts`, if each row is one expert's
    guessed: tuple[str, ...] = ()  # roles that the header of their column does not name
    verdicts: tuple[int, ...] = ()  # column of verdicts for each of `forecasts`, if there are such

    @property
    def long(self) -> bool:
        """Whether each row is one forecast, or the probability that a forecast gives to one class."""
        return not self.forecasts

    @property
    def wide(self) -> bool:
        """Whether each row is an event."""
        return self.shape.numbered


def find_layout(
    profile: Profile, given_roles: UserRoles, beside: Beside | None = None, void: Collection[str] = ()
) -> Layout:
    """Return the layout of a table of forecasts; an error asks the user if headers and cells allow none, or several.

    `beside` has headers, events and outcomes of a table of outcomes, `void` the words for "void" and "not known".
    """
    check_names(profile)
    for names in given_roles.columns.values():
        for name in (names,) if isinstance(names, str) else names or ():
            position(profile.table.name, profile.table.names, name)
    meanings = Meanings(profile, given_roles, beside, void)
    odds = [c.name for c in meanings.free if c.american and not ("never" in c.hints or given_roles.settles(c.name))]
    if odds and PROBABILITY not in meanings.given:
        raise fault("american-odds", Place(profile.table.name), columns=odds)
    choice = choose(meanings)
    if choice.fit is not None:
        return _layout(choice.fit)
    for c in sorted(meanings.free, key=lambda c: len(c.roles)):
        if c.kind == "text" and (amounts := profile.amounts(c)):
            others = [Remedy({"where": condition(c.name, "=", word)}) for word in c.words.values if word not in amounts]
            raise fault("quantiles", Place(profile.table.name), others, column=c.name, word=amounts[0])
    if not (choice.offered or any(not c.binary for c in meanings.numbers)) and (scales := profile.recognised()):
        # No column holds numbers, and some hold levels of scales.
        levels = choose(Meanings(profile.with_scales(scales, given_roles.columns), given_roles, beside, void))
        raise _question(meanings, levels, scales)
    raise _question(meanings, choice, verdicts=list(_mixed(meanings) if choice.offered else _verdicts(meanings)))


def _mixed(look: Meanings) -> Iterator[_Way]:
    """Yield the way to read a table in which some columns hold fractions, and others scores or verdicts on scales."""
    able = [c for c in look.free if c in look.numbers or ("score" in c.hints and c.forecasts)]
    scores = [c for c in able if c.unit == "scale" and not c.binary]
    if scores and any(c.fractions for c in able):
        scales = shared_scales({c.name: Spread.of(c.values) for c in scores})
        own = {name: Scale.of(scale) for name, scale in scales.items()}
        yield from _in_levels(look, {**own, **look.profile.recognised()})


def _verdicts(look: Meanings) -> Iterator[_Way]:
    """Yield ways to read columns of words, or of 0 and 1, as experts' judgements: all on one scale, else one column."""
    found = look.profile.recognised(("outcome",))
    alike = {c.name: c.words.values for c in look.free if c.name in found and not c.roles}
    shared = Scale.of_verdicts([*{*chain(*alike.values())}]) if len(alike) > 1 else None
    ways = [] if shared is None else list(_in_levels(look, dict.fromkeys(alike, shared), tuple(alike)))
    ways = ways or [way for name, scale in found.items() for way in _in_levels(look, {name: scale}, name)]
    votes = [c.name for c in look.free if c.binary and "verdict" in look.roles(c)]
    ways += [way for name in votes for way in _in_levels(look, {}, name)]
    # What differs within an event is no outcome of it.
    yield from (way for way in ways if (one := way[0]).roles.get("outcome") or one.varies(one.forecasts[0]))


def _in_levels(look: Meanings, scales: Mapping[str, Scale], forecasts: Named = None) -> Iterator[_Way]:
    """Yield the reading, and its options, in which columns have `scales` and `forecasts` are forecasts, if it fits."""
    given = look.given_roles
    columns = {} if forecasts is None else {PROBABILITY: forecasts}
    roles = replace(given, columns={**given.columns, **columns}, known=(*given.known, *scales))
    levels = look.profile.with_scales(scales, roles.columns)
    only = choose(Meanings(levels, roles, look.beside, look.void)).fit
    if only is not None:
        remedy = {"columns": columns, "scale": {name: str(scale) for name, scale in scales.items()}}
        yield only, {option: value for option, value in remedy.items() if value}


def check_names(profile: Profile) -> None:
    """Raise an error unless columns with content have different headers; only the first column may have none."""
    names = unnumbered([column.name for column in profile.columns])
    first = {name: place for place, name in reversed([*enumerate(names)])}
    full = [c for c in profile.columns[1:] if (first[names[c.place]] < c.place if c.name else c.kind)]
    if full:
        table, number, name = Place(profile.table.name), full[0].place + 1, names[full[0].place]
        below = [column.words.values[0] for column in full if not column.words.codes[0]]
        if len(below) == len(full) and not any(map(looks_numeric, below)):
            joined = " ".join([name or next(filter(None, names[number - 2 :: -1]), ""), below[0]]).strip()
            raise fault("two-headers", table, number=number, below=below[0], joined=joined)
        if name:
            raise fault("same-header", table, name=name)
        raise fault("no-header", table, number=number)


def _layout(reading: Reading) -> Layout:
    """Return the layout of the table under `reading`."""
    look, columns, shape = reading.meanings, reading.profile.columns, reading.shape
    roles = {role: places[0] for role, places in reading.roles.items() if places}
    forecasts = reading.forecasts
    priors = {}
    for c in look.free:
        head, colon, label = c.name.partition(":")
        if colon and normal(head) == "prior" and c.place not in reading.used:
            priors[label.strip()] = c.place
    if shape in {ONE, WIDE} and PROBABILITY not in look.given:
        # An expert without a forecast yet is one.
        blank_columns = [c.place for c in look.numbers if not c.kind and not c.hints and c.place not in reading.used]
        forecasts = tuple(sorted({*forecasts, *blank_columns}))
    names = [columns[place].name for place in forecasts]
    cells: tuple[tuple[str | None, str | None], ...] = tuple((name, None) for name in names)
    if shape == GRID:
        cells = reading.grid or cells
    elif shape in {CLASSES, ONE_CLASSES}:
        expert = None if shape == CLASSES else "forecast"
        cells = tuple((expert, label) for label in class_names(names, reading.happened))
    elif shape == PAIRS:
        named = {sure: expert for expert, _, sure in reading.profile.pairs}
        cells = tuple((named.get(place, columns[place].name), None) for place in forecasts)
        del roles["verdict"]
    elif shape == RESPONDENTS:
        cells = tuple((None, None) for _ in names)
    if shape == ONE:
        roles.pop(PROBABILITY)
    used = {*reading.used, *forecasts, *priors.values()}
    free = [c.place for c in look.free if c.place not in used]
    return Layout(
        shape,
        roles,
        forecasts if shape.columns or shape == ONE else (),
        cells if shape.columns or shape == ONE else (),
        tuple(free),
        priors,
        tuple(names) if shape == RESPONDENTS else (),
        tuple(role for role in roles if role not in look.given and role not in columns[roles[role]].roles),
        reading.roles["verdict"] if shape == PAIRS else (),
    )


def levels_hint(profile: Profile, names: Collection[str], known: bool = False) -> str:
    """Return the text that asks for the levels, in order, of columns `names`; if `known`, only for known scales."""
    able = {name: s for name, s in profile.few_words().items() if s or (not known and "verdict" in roles_of(name))}
    # Where nothing is read yet, yes and no may be about anything, unless a name says that they are verdicts.
    flags = {c.name for c in profile.columns if c.yes_no and not (known or "verdict" in c.roles)}
    scales = {name: scale for name, scale in able.items() if name in names and name not in flags}
    if not scales:
        able_names, words = ([], []) if known else _shared_words(profile, names)
        how = f"name them, the lowest first: --scale LOWEST,...,HIGHEST ({listed(words, WORDS)})"
        return f"; if the words in {listed(able_names)} are levels, {how}" if words else ""
    written = {name: "LOWEST,...,HIGHEST" if scale is None else str(scale) for name, scale in scales.items()}
    how, hold = " ".join(map(typed, typed_options({"scale": written}))), "holds" if len(scales) == 1 else "hold"
    return f"; if {listed(list(scales))} {hold} verdicts, name their levels in order: {how}"


def _shared_words(profile: Profile, names: Collection[str]) -> tuple[list[str], list[str]]:
    """Headers in `names` of columns that have words in common, and all their words; both [] if words are many."""
    able = [c for c in profile.columns if c.name in names and c.kind == "text" and not c.roles]
    able = [c for c in able if not {"never", "unsure"} & c.hints]
    times = Counter(chain.from_iterable(c.folded for c in able))
    able = [c for c in able if any(times[word] > 1 for word in c.folded)]
    words = {word.lower(): word for c in able for word in c.words.values}
    few = 2 < len(words) <= WORDS and 2 * len(words) <= len(able) * profile.rows
    return ([c.name for c in able], [*words.values()]) if few else ([], [])


def _question(
    look: Meanings, choice: Choice, scales: Mapping[str, Scale] = MappingProxyType({}), verdicts: Sequence[_Way] = ()
) -> OpinionPoolError:
    """Return the error that lists the readings in `choice`, each with the options for it, and what the columns hold.

    `scales` are scales for columns of words, by header, with which `choice` was made; `verdicts` are further readings
    with their options.
    """
    offers = list(verdicts)
    for reading in choice.offered if choice.fit is None else [choice.fit]:
        remedy = _remedy(reading, choice.offered) if choice.fit is None else {}
        if remedy is not None and len(offers) < _OFFERED:
            levels = {name: str(scales[name]) for name in reading.names_of(reading.forecasts) if name in scales}
            remedy = {**remedy, "scale": levels} if levels else remedy
            offers += [(reading, remedy)] if remedy else []
    lines = []
    for reading, remedy in offers:
        caveat = f", unless {reading.caveats[0]}" if reading.caveats else ""
        lines.append(f"  {_line(reading)}{caveat}: {' '.join(map(typed, typed_options(remedy)))}")
    if not offers and choice.rejected is not None:
        lines.append(f"  {_line(choice.rejected)}, but perhaps {' and '.join(map(str, choice.rejected.caveats))}")
    lines += _columns(look, offers[0][0] if offers else None)
    named, events = PROBABILITY in look.given, [c for c in look.free if "event" in look.roles(c)]
    able = offers or look.numbers or named or any(PROBABILITY in look.roles(column) for column in look.free)
    where, ways = Place(look.profile.table.name), [Remedy(remedy) for _, remedy in offers]
    used = offers[0][0].used if offers else ()
    hint = levels_hint(look.profile, [c.name for c in look.free if c.place not in used], bool(offers))
    if named and not (offers or events or "event" in look.given):
        hint += "; --column event=NAME says which one is the event"
    params = {
        "readings": "\n".join([f"{hint}{'; it may be' if offers else ''}", *lines, ""]),
        "roles": ", ".join(ROLES),
    }
    return fault("unclear-columns" if able else "no-forecast-column", where, ways, **params)


def _line(reading: Reading) -> str:
    """Return a line of text on a reading: its shape, and its columns by role, as "event = q, expert = name"."""
    parts = [
        f"{role} = {' + '.join(map(shown, reading.names_of(places)))}"
        for role, places in reading.roles.items()
        if places
    ]
    parts += ["rows are numbered"] if reading.shape.numbered and not reading.event else []
    parts += [f"forecasts = {listed(reading.names_of(reading.forecasts), 6)}"] if reading.shape.columns else []
    return f"{reading.shape.name}: {', '.join(parts)}"


def _columns(look: Meanings, reading: Reading | None) -> list[str]:
    """Return a line of text for each column: name, type, number of values, range or example, role in `reading`."""
    rows = [("column", "holds", "", "range or example", "would be" if reading else "may be")]
    for column in look.profile.columns[:_SHOWN]:
        played = [] if reading is None else [role for role, places in reading.roles.items() if column.place in places]
        if reading is not None and column.place in reading.forecasts and not played:
            played = ["forecasts"]
        role = ", ".join(played or sorted(look.roles(column) - {"other", "sureness"}) if reading is None else played)
        nothing = "never forecasts" if "never" in column.hints else "nothing" if reading else "?"
        nothing = "outcome?" if not reading and "unsure" in column.hints and column.distinct == 2 else nothing
        scale = f" ({column.scale})" if column.scale else ""
        rows.append(column.line(f"{role}{scale}" if role == "forecasts" else role or column.scale or nothing))
    widths = [min(40, max(len(row[i]) for row in rows)) for i in range(4)]
    more = len(look.profile.columns) - _SHOWN
    lines = ["  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows]
    return lines + ([f"  and {counted(more, 'column')} more"] if more > 0 else [])


def _remedy(reading: Reading, others: Sequence[Reading]) -> Mapping[str, object] | None:
    """Return the shortest option `columns` that selects `reading` over `others`, or None if that is impossible."""
    look, named = reading.meanings, dict[str, Named]()
    for role, places in (
        *reading.roles.items(),
        *([(PROBABILITY, reading.forecasts)] if reading.shape.columns else []),
    ):
        names = tuple(reading.names_of(places))
        named[role] = None if not names else names[0] if len(names) == 1 else names
    if reading.shape not in {SURE, PAIRS} and reading.votes():
        named["verdict"] = None
    if "expert" in reading.shape.forbids and look.called("expert"):
        named["expert"] = None
    roles = [role for role in named if role not in look.given]
    guessed = [
        role
        for role in roles
        if any(role not in c.roles for c in reading.columns(role))
        or any(reading.differs_in(role, other) for other in others)
    ]
    # Without what names say already, if the rest leads to the reading; then without what no column plays.
    for role in sorted(roles, key=lambda role: (role in guessed, role == "event", named[role] is not None)):
        fewer = {other: of for other, of in named.items() if other in roles and other != role}
        if fewer and _leads(fewer, reading):
            roles.remove(role)
    remedy = {role: named[role] for role in roles}
    return {"columns": remedy} if _leads(remedy, reading) else None


def _leads(remedy: Mapping[str, Named], reading: Reading) -> bool:
    """Return True if the table is read as `reading` once the user names the columns in `remedy`, by role."""
    look = reading.meanings
    profile, columns, parts = look.profile, dict(look.given_roles.columns), [*look.given_roles.parts]
    for role, names in remedy.items():
        columns[role] = names
        if isinstance(names, tuple) and role in KEYED:
            columns[role], profile = BETWEEN.join(names), profile.with_key(names)
            parts += names
    given = replace(look.given_roles, columns=columns, parts=parts)
    found = choose(Meanings(profile, given, look.beside, look.void)).fit
    return found is not None and found.meaning == reading.meaning


def layout_notes(layout: Layout, names: Sequence[str], times: Sequence[str] = (), hint: str = "") -> list[Note]:
    """Notes on each column's role, and on unused columns, some of which (`times`) hold times; `hint` ends the text."""
    experts = list(dict.fromkeys(expert for expert, _ in layout.cells if expert is not None))
    classes = list(dict.fromkeys(label for _, label in layout.cells if label is not None))
    text = layout.shape.name
    text += f": {counted(len(experts), 'expert')} ({listed(experts)})" if experts else ""
    text += f": {counted(len(layout.events), 'event')} ({listed(layout.events)})" if layout.events else ""
    text += f", by class ({listed(classes)})" if classes else ""
    roles = ", ".join(_played(layout, role, names[column]) for role, column in layout.roles.items())
    text += f"{': ' if layout.long else '; '}{roles}" if roles else ""
    text += "; no event column, so rows are numbered" if layout.wide and "event" not in layout.roles else ""
    notes: list[Note] = [finding("layout", layout=text)]
    if layout.unused:
        unused = [names[i] for i in layout.unused]
        notes.append(unused_note(unused, times, "time", "forecasts were made", hint=hint))
    return notes


def unused_note(
    names: Sequence[str], times: Sequence[str], role: str, event: str, what: str = "", hint: str = ""
) -> Note:
    """Note on unused columns `names`; those in `times` may have `role`, if they say when `event` takes place."""
    way = quoted(times[0]) if len(times) == 1 else "NAME"
    then = (
        f"; {listed(times)} {'holds' if len(times) == 1 else 'hold'} times: if {event} then, say --column {role}={way}"
    )
    return finding("unused-columns", what=what, names=names, times=(then if times else "") + hint)


def _played(layout: Layout, role: str, name: str) -> str:
    """Return a role and its column as text, as "event = question", and whether the role is guessed from the cells."""
    how = " (the column left that names each row)" if role in layout.guessed else ""
    return f"{role} = {name or 'the first column'}{how}"
