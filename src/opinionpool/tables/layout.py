"""Layout of a table: its shape and the column of each role; and the question if headers leave several readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import TypeAlias

from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding, typed_options
from opinionpool.scales import Scale, Spread, shared_scales
from opinionpool.tables.choice import Choice
from opinionpool.tables.profile import WORDS, Profile
from opinionpool.tables.roles import (
    BETWEEN,
    CLASSES,
    FACTS,
    GRID,
    KEYED,
    ONE,
    ONE_CLASSES,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    ROLES,
    SURE,
    SYNONYMS,
    TEXT,
    WIDE,
    Beside,
    Reading,
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
# Most roles that are guessed in a reading that is offered.
_GUESSES = 2


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
    choice = Choice(profile, given_roles, beside, void)
    odds = [c.name for c in choice.free if c.american and not ("never" in c.hints or given_roles.settles(c.name))]
    if odds and PROBABILITY not in choice.given:
        raise fault("american-odds", Place(profile.table.name), columns=odds)
    fit, offered = _readings(choice)
    for c in sorted(choice.free, key=lambda c: len(c.roles)) if fit is None else ():
        if c.kind == "text" and (amounts := profile.amounts(c)):
            others = [Remedy({"where": condition(c.name, "=", word)}) for word in c.words.values if word not in amounts]
            raise fault("quantiles", Place(profile.table.name), others, column=c.name, word=amounts[0])
    if fit is None and not (offered or any(not c.binary for c in choice.numbers)) and (scales := profile.recognised()):
        # No column holds numbers, and some hold levels of scales.
        levels = Choice(profile.with_scales(scales, given_roles.columns), given_roles, beside, void)
        only, several = _readings(levels)
        raise _question(levels, several, scales, only)
    if fit is None:
        raise _question(choice, offered, verdicts=list(_mixed(choice) if offered else _verdicts(choice)))
    return _layout(choice, fit)


def _mixed(choice: Choice) -> Iterator[_Way]:
    """Yield the way to read a table in which some columns hold fractions, and others scores or verdicts on scales."""
    able = [c for c in choice.free if c in choice.numbers or ("score" in c.hints and c.forecasts)]
    scores = [c for c in able if c.unit == "scale" and not c.binary]
    if scores and any(c.fractions for c in able):
        scales = shared_scales({c.name: Spread.of(c.values) for c in scores})
        own = {name: Scale.of(scale) for name, scale in scales.items()}
        yield from _in_levels(choice, {**own, **choice.profile.recognised()})


def _verdicts(choice: Choice) -> Iterator[_Way]:
    """Yield ways to read columns of words, or of 0 and 1, as experts' judgements: all on one scale, else one column."""
    found = choice.profile.recognised(("outcome",))
    alike = {c.name: c.words.values for c in choice.free if c.name in found and not c.roles}
    shared = Scale.of_verdicts([*{*chain(*alike.values())}]) if len(alike) > 1 else None
    ways = [] if shared is None else list(_in_levels(choice, dict.fromkeys(alike, shared), tuple(alike)))
    ways = ways or [way for name, scale in found.items() for way in _in_levels(choice, {name: scale}, name)]
    votes = [c.name for c in choice.free if c.binary and "verdict" in choice.roles(c)]
    ways += [way for name in votes for way in _in_levels(choice, {}, name)]
    # What differs within an event is no outcome of it.
    varies = choice.profile.varies_within
    yield from (
        way for way in ways if (one := way[0]).roles.get("outcome") or varies(one.forecasts[0], one.roles["event"])
    )


def _in_levels(choice: Choice, scales: Mapping[str, Scale], forecasts: Named = None) -> Iterator[_Way]:
    """Yield the reading, and its options, in which columns have `scales` and `forecasts` are forecasts, if it fits."""
    given = choice.given_roles
    columns = {} if forecasts is None else {PROBABILITY: forecasts}
    roles = replace(given, columns={**given.columns, **columns}, known=(*given.known, *scales))
    levels = choice.profile.with_scales(scales, roles.columns)
    again = Choice(levels, roles, choice.beside, choice.void)
    only, _ = _readings(again)
    if only is not None and not only.harms:
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


def _outdone(choice: Choice, one: Reading, other: Reading) -> bool:
    """Return True if `other` differs from `one` only in columns whose headers are exactly the names of their roles."""
    if one.shape != other.shape or not {*other.caveats} <= {*one.caveats} or one.roles.keys() != other.roles.keys():
        return False
    differing = [role for role, places in one.roles.items() if places != other.roles[role]]
    own = [choice.profile.columns[place].named(role) for role in differing for place in other.roles[role][:1]]
    return len(own) == len(differing) > 0 and all(own)


def _guesses(choice: Choice, reading: Reading) -> int:
    """Return the number of roles in `reading` whose columns are named neither by headers nor by the user."""
    columns, found = choice.profile.columns, 0
    for role, places in reading.roles.items():
        named = role in choice.given or (role == PROBABILITY and "head" in columns[places[0]].hints)
        named |= role == "outcome" and all(columns[place].may_be_outcome for place in places)
        found += not named and any(role not in columns[place].roles for place in places)
    return found


def _meaning(choice: Choice, reading: Reading) -> tuple[object, ...]:
    """Return a key that is equal for two readings if they give the same forecasts on the same events."""
    places = [reading.roles.get(role, ()) for role in ("event", "expert", "class", "verdict", "outcome")]
    groups = (choice.profile.key(each).tobytes() if each else b"" for each in places)
    return (reading.shape.key, reading.forecasts, *groups)


def _best(choice: Choice, readings: Iterable[Reading]) -> list[Reading]:
    """Return one reading for each set of forecasts and events, without readings to which another one is preferred."""
    found: dict[object, Reading] = {}
    for reading in readings:
        found.setdefault(_meaning(choice, reading), reading)
    left = list(found.values())
    return [one for one in left if not any(one.within(other) or _outdone(choice, one, other) for other in left)]


def _readings(choice: Choice) -> tuple[Reading | None, list[Reading]]:
    """Return the reading and [] if exactly one reading is acceptable, else None and the readings to propose."""
    judged = list(choice.readings())
    fit = _best(choice, (one for one in judged if not one.caveats))
    known = {_meaning(choice, one) for one in fit}
    questionable = [
        one
        for one in _best(choice, (one for one in judged if one.caveats))
        if _meaning(choice, one) not in known
        and not any(one.within(other) or _outdone(choice, one, other) for other in fit)
    ]
    if any(one.roles.get("outcome") for one in fit):
        questionable = [one for one in questionable if one.roles.get("outcome") or one.shape == RESPONDENTS]
    if len(fit) == 1 and not questionable:
        whole = list(_with_facts(choice, fit[0]))
        return (whole[0], []) if len(whole) == 1 else (None, whole)
    if fit:
        return None, [one for one in (*fit, *questionable) if not one.harms]
    loose = [one for one in choice.loose_readings if _guesses(choice, one) <= _GUESSES]
    safe = [one for one in _best(choice, [*questionable, *loose]) if not one.harms]
    safe = [one for one in safe if not any(_is_part(choice, one, other) for other in safe)]
    sure = [one for one in safe if not one.caveats] or safe
    least = min((_guesses(choice, one) for one in sure), default=0)
    able = [one for one in safe if one in sure or one in questionable or _guesses(choice, one) < least]
    able.sort(
        key=lambda one: (
            not one.roles.get("outcome"),
            one.shape == WIDE and choice.asks(one),
            _guesses(choice, one),
        )
    )
    return None, able


def _rejected(choice: Choice) -> Reading | None:
    """Return, of all readings rejected for their harms, the reading with the fewest guessed roles, or None."""
    able = sorted(choice.loose_readings, key=lambda one: (_guesses(choice, one), len(one.harms)))
    return next((one for one in able if one.harms), None)


def _is_part(choice: Choice, one: Reading, other: Reading) -> bool:
    """Return True if `one` has a single column of forecasts, and `other` has this and others, one for each expert."""
    own, others = {*one.forecasts}, {*other.forecasts}
    columns = choice.profile.columns
    named = any(PROBABILITY in columns[place].roles for place in own)
    named |= all("summary" in columns[place].hints for place in others - own)
    return one.shape == ONE and other.shape == WIDE and own < others and not named


def _with_facts(choice: Choice, reading: Reading) -> Iterator[Reading]:
    """Yield copies of `reading` with columns of facts (times, topics, ...), one for each choice that headers allow."""
    wanted = FACTS[:1] if reading.shape == RESPONDENTS else FACTS
    players = {role: places for role in wanted if (places := _fact_columns(choice, reading, role))}
    for chosen in product(*players.values()):
        facts = {role: (place,) for role, place in zip(players, chosen, strict=True)}
        if len(set(facts.values())) == len(facts):
            yield replace(reading, roles={**reading.roles, **facts})


def _fact_columns(choice: Choice, reading: Reading, role: str) -> list[int]:
    """Positions of columns whose headers name `role`, a fact such as topic, without copies of the first one."""
    look, event = choice.profile, reading.roles.get("event", ())
    if role in choice.given or role == "order":
        return list(choice.given.get(role, ()))
    found = [c for c in choice.free if role in choice.roles(c) and c.place not in reading.used]
    found = [c for c in found if not c.name.lower().startswith("prior:")]
    if role in {"time", "expires"}:
        # What all forecasts on an event have in common is when it begins or ends itself.
        own = [c for c in found if normal(c.name) not in {"start_time", "end_time"}]
        varying = [c for c in found if event and look.varies_within(c.place, event)]
        found = [c for c in found if c in own or c.present < 1 or c in varying]
        found = varying if role == "time" and varying else found
    found.sort(
        key=lambda c: SYNONYMS[role].index(normal(c.name)) if role == TEXT and normal(c.name) in SYNONYMS[role] else 0
    )
    return look.own(found, role)


def _layout(choice: Choice, reading: Reading) -> Layout:
    """Return the layout of the table under `reading`."""
    columns, shape = choice.profile.columns, reading.shape
    roles = {role: places[0] for role, places in reading.roles.items() if places}
    forecasts = reading.forecasts
    priors = {}
    for c in choice.free:
        head, colon, label = c.name.partition(":")
        if colon and normal(head) == "prior" and c.place not in reading.used:
            priors[label.strip()] = c.place
    if shape in {ONE, WIDE} and PROBABILITY not in choice.given:
        # An expert without a forecast yet is one.
        blank_columns = [c.place for c in choice.numbers if not c.kind and not c.hints and c.place not in reading.used]
        forecasts = tuple(sorted({*forecasts, *blank_columns}))
    names = [columns[place].name for place in forecasts]
    cells: tuple[tuple[str | None, str | None], ...] = tuple((name, None) for name in names)
    if shape == GRID:
        cells = choice.profile.grid(reading.forecasts, choice.happened(reading)) or cells
    elif shape in {CLASSES, ONE_CLASSES}:
        expert = None if shape == CLASSES else "forecast"
        cells = tuple((expert, label) for label in class_names(names, choice.happened(reading)))
    elif shape == PAIRS:
        named = {sure: expert for expert, _, sure in choice.profile.pairs}
        cells = tuple((named.get(place, columns[place].name), None) for place in forecasts)
        del roles["verdict"]
    elif shape == RESPONDENTS:
        cells = tuple((None, None) for _ in names)
    if shape == ONE:
        roles.pop(PROBABILITY)
    used = {*reading.used, *forecasts, *priors.values()}
    free = [c.place for c in choice.free if c.place not in used]
    return Layout(
        shape,
        roles,
        forecasts if shape.columns or shape == ONE else (),
        cells if shape.columns or shape == ONE else (),
        tuple(free),
        priors,
        tuple(names) if shape == RESPONDENTS else (),
        tuple(role for role in roles if role not in choice.given and role not in columns[roles[role]].roles),
        reading.roles["verdict"] if shape == PAIRS else (),
    )


def levels_hint(profile: Profile, names: Collection[str], known: bool = False) -> str:
    """Return the text that asks for the levels, in order, of columns `names`; if `known`, only for known scales."""
    able = {name: s for name, s in profile.few_words().items() if s or (not known and "verdict" in roles_of(name))}
    scales = {name: scale for name, scale in able.items() if name in names}
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
    choice: Choice,
    readings: Sequence[Reading],
    scales: Mapping[str, Scale] | None = None,
    only: Reading | None = None,
    verdicts: Sequence[_Way] = (),
) -> OpinionPoolError:
    """Return the error that lists the possible readings, each with the options for it, and what the columns hold.

    `scales` are scales for columns of words, by header; `only` is the single reading with these scales, if there is
    one; `verdicts` are further readings with their options.
    """
    offers = list(verdicts)
    for reading in readings if only is None else [only]:
        remedy = _remedy(choice, reading, readings) if only is None else {}
        if remedy is not None and len(offers) < _OFFERED:
            names = [choice.profile.columns[place].name for place in reading.forecasts]
            levels = {name: str(scales[name]) for name in names if scales and name in scales}
            remedy = {**remedy, "scale": levels} if levels else remedy
            offers += [(reading, remedy)] if remedy else []
    lines = []
    for reading, remedy in offers:
        caveats = f", if {' and '.join(reading.caveats)}" if reading.caveats else ""
        lines.append(f"  {_line(choice, reading)}{caveats}: {' '.join(map(typed, typed_options(remedy)))}")
    if not offers and (rejected := _rejected(choice)):
        lines.append(f"  {_line(choice, rejected)}, but {' and '.join(rejected.harms)}")
    lines += _columns(choice, offers[0][0] if offers else None)
    named, events = PROBABILITY in choice.given, [c for c in choice.free if "event" in choice.roles(c)]
    able = offers or choice.numbers or named or any(PROBABILITY in choice.roles(column) for column in choice.free)
    where, ways = Place(choice.profile.table.name), [Remedy(remedy) for _, remedy in offers]
    used = offers[0][0].used if offers else ()
    hint = levels_hint(choice.profile, [c.name for c in choice.free if c.place not in used], bool(offers))
    if named and not (offers or events or "event" in choice.given):
        hint += "; --column event=NAME says which one is the event"
    params = {
        "readings": "\n".join([f"{hint}{'; it may be' if offers else ''}", *lines, ""]),
        "roles": ", ".join(ROLES),
    }
    if able:
        return fault("unclear-columns", where, ways, **params)
    return fault("no-forecast-column", where, ways, **params)


def _line(choice: Choice, reading: Reading) -> str:
    """Return a line of text on a reading: its shape, and its columns by role, as "event = q, expert = name"."""
    columns = choice.profile.columns
    parts = [
        f"{role} = {' + '.join(shown(columns[p].name) for p in places)}"
        for role, places in reading.roles.items()
        if places
    ]
    parts += ["rows are numbered"] if reading.shape.numbered and not reading.roles.get("event") else []
    parts += [f"forecasts = {listed([columns[p].name for p in reading.forecasts], 6)}"] if reading.shape.columns else []
    return f"{reading.shape.name}: {', '.join(parts)}"


def _columns(choice: Choice, reading: Reading | None) -> list[str]:
    """Return a line of text for each column: name, type, number of values, range or example, role in `reading`."""
    rows = [("column", "holds", "", "range or example", "would be" if reading else "may be")]
    for column in choice.profile.columns[:_SHOWN]:
        played = [] if reading is None else [role for role, places in reading.roles.items() if column.place in places]
        if reading is not None and column.place in reading.forecasts and not played:
            played = ["forecasts"]
        role = ", ".join(played or sorted(choice.roles(column) - {"other", "sureness"}) if reading is None else played)
        nothing = "never forecasts" if "never" in column.hints else "nothing" if reading else "?"
        nothing = "outcome?" if not reading and "unsure" in column.hints and column.distinct == 2 else nothing
        scale = f" ({column.scale})" if column.scale else ""
        rows.append(column.line(f"{role}{scale}" if role == "forecasts" else role or column.scale or nothing))
    widths = [min(40, max(len(row[i]) for row in rows)) for i in range(4)]
    more = len(choice.profile.columns) - _SHOWN
    lines = ["  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows]
    return lines + ([f"  and {counted(more, 'column')} more"] if more > 0 else [])


def _remedy(choice: Choice, reading: Reading, others: Sequence[Reading]) -> Mapping[str, object] | None:
    """Return the shortest option `columns` that selects `reading` over `others`, or None if that is impossible."""
    columns = choice.profile.columns
    named: dict[str, Named] = {}
    for role, places in reading.roles.items():
        names = tuple(columns[place].name for place in places)
        named[role] = None if not names else names[0] if len(names) == 1 else names
    forecasts = tuple(columns[place].name for place in reading.forecasts)
    if reading.shape not in {SURE, PAIRS} and choice.votes(reading):
        named["verdict"] = None
    if "expert" in reading.shape.forbids and choice.called("expert"):
        named["expert"] = None
    if reading.shape.columns:
        named[PROBABILITY] = forecasts[0] if len(forecasts) == 1 else forecasts
    roles = [role for role in named if role not in choice.given]
    differing = [
        role for role in roles if any(other.roles.get(role, ()) != reading.roles.get(role, ()) for other in others)
    ]
    guessed = [
        role
        for role in roles
        if any(role not in columns[p].roles for p in reading.roles.get(role, ())) or role in differing
    ]
    # Without what names say already, if the rest leads to the reading; then without what no column plays.
    for role in sorted(roles, key=lambda role: (role in guessed, role == "event", named[role] is not None)):
        fewer = {other: of for other, of in named.items() if other in roles and other != role}
        if fewer and _leads(choice, fewer, reading):
            roles.remove(role)
    remedy = {role: named[role] for role in roles}
    return {"columns": remedy} if _leads(choice, remedy, reading) else None


def _leads(choice: Choice, remedy: Mapping[str, Named], reading: Reading) -> bool:
    """Return True if the table is read as `reading` once the user names the columns in `remedy`, by role."""
    profile, columns, parts = choice.profile, dict(choice.given_roles.columns), [*choice.given_roles.parts]
    for role, names in remedy.items():
        columns[role] = names
        if isinstance(names, tuple) and role in KEYED:
            columns[role], profile = BETWEEN.join(names), profile.with_key(names)
            parts += names
    again = Choice(profile, replace(choice.given_roles, columns=columns, parts=parts), choice.beside, choice.void)
    found, _ = _readings(again)
    return found is not None and _meaning(again, found) == _meaning(choice, reading)


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
