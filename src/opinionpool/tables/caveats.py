"""What speaks against a reading of a table: vetoes, which rule it out, and caveats, with which the user is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opinionpool.tables.classes import TRUTH, bare
from opinionpool.tables.meanings import are_steps, sides, stems, strangers
from opinionpool.tables.profile import FEW, Column
from opinionpool.tables.reading import Caveat, Reading
from opinionpool.tables.roles import (
    CLASSES,
    FACTS,
    GRID,
    ONE,
    ONE_CLASSES,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    SURE,
    WIDE,
    class_names,
    is_never,
    names_unit,
    normal,
)
from opinionpool.text import counted, listed, shown


def caveats(one: Reading) -> list[Caveat]:
    """Return the caveats about a reading, but those that the user's options answer."""
    given = one.meanings.given
    answered = {role for role, places in given.items() if places or role != "event"}
    subjects = {
        "event": _key_caveats,
        "outcome": _outcome_caveats,
        "verdict": _verdict_caveats,
        PROBABILITY: _forecast_caveats,
    }
    found = [each for role, own in subjects.items() if role not in answered for each in own(one) if each.names]
    if one.guesses or found or not one.settled or (one.roles.get("outcome") and one.guessed("outcome")):
        # Where names leave something open, numbers and words may be anything, and any column may distinguish rows.
        found += [] if "event" in answered else _further_caveats(one)
        found += [] if "outcome" in answered else _misfits(one)
        found += [] if PROBABILITY in given else _open_caveats(one)
    return [*{each.predicate: each for each in found if each.names}.values()]


def _raised(predicate: str, names: Iterable[str]) -> Caveat:
    """Return a caveat about the columns called `names`; about none if there is no reason for it."""
    return Caveat(predicate, tuple(names))


def _grave(predicate: str, names: Iterable[str]) -> Caveat:
    """Return a grave caveat about the columns called `names`; about none if there is no reason for it."""
    return Caveat(predicate, tuple(names), True)


def _key_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield caveats about the key, which identifies rows: another column may name events, or say more of them."""
    look, shape, event = one.profile, one.shape, one.event
    if shape.numbered and not event:
        texts = [c.name for c in one.meanings.labels if c.kind == "text"]
        yield _raised("names/name the event", [] if one.roles.get("outcome") else texts)
    yield _grave("says/say more of the event", one.many_texts())
    repeated = look.repeated(one.key) if one.key else 0
    many = repeated and (look.count(one.key) == 1 or (2 * repeated > look.rows and not one.meanings.times))
    if shape.numbered and many and normal(look.columns[one.key[0]].name) != "event":
        yield _raised(f"is/are only part of the event, as rows repeat events ({repeated:,})", one.names_of(one.key))
        return
    names = listed(one.names_of(one.key))
    yield _raised(f"distinguishes/distinguish rows that agree in {names}", one.names_of(one.distinguishing))
    if event and (expert := one.roles.get("expert", ())) and one.guessed("expert"):
        few = 2 * look.count([*event, *expert]) <= look.count(event) * look.count(expert)
        yield _grave("is/are no expert, as few come again", one.names_of(expert if few else ()))


def _further_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield the grave caveat that a column of names, ids or end times distinguishes some rows that agree in the key."""
    if not one.distinguishing:
        ends = [c.place for c in one.left(one.meanings.free) if c.kind == "time" and c.is_key]
        found = dict.fromkeys([*one.varying, *filter(one.varies, ends)])
        names = listed(one.names_of(one.key))
        yield _grave(f"distinguishes/distinguish some rows that agree in {names}", one.names_of(found))


def _outcome_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield caveats about the outcome: its column differs within events, or another may be it."""
    columns = one.columns("outcome")
    if not columns and one.shape != RESPONDENTS:
        votes = one.votes() if one.are_confidences else []
        yield _raised("is/are the outcome", [c.name for c in one.outcomes_left() if c not in votes[:1]])
    for c in columns:
        differing, events, many = one.profile.differing(c.place, one.event)
        much = many or 2 * differing > events > 1 or (differing and one.event and one.guessed("event"))
        if much and not one.says_which(c):
            yield _raised(f"differs/differ within {counted(differing, 'event')}", [c.name])


def _misfits(one: Reading) -> Iterator[Caveat]:
    """Yield the grave caveat that the outcome column says something else: its cells do not fit the forecasts."""
    bad = [c.name for c in one.columns("outcome") if not _admits(one, c) or _is_flag(one, c)]
    yield _grave("says/say something else than what happened", bad)


def _is_flag(one: Reading, column: Column) -> bool:
    """Whether yes or no may be about anything: no name says outcome, nor is it alone beside named probabilities."""
    hints, flags = {"unsure", "score", "question"}, [c for c in one.meanings.plain if c.binary or c.yes_no]
    flags = [c for c in flags if c.may_say_outcome and not hints & c.hints]
    named = all("head" in c.hints for c in one.forecast_columns)
    return column in flags and not (named and len(flags) == 1)


def _admits(one: Reading, column: Column) -> bool:
    """Whether the cells of `column`, read as outcomes, can be outcomes of the forecasts."""
    words, namesakes = {bare(word) for word in one.happened}, one.namesakes(column)
    others = (c for c in one.meanings.free if c.is_two and c is not column)
    if namesakes and not {*one.forecasts} <= namesakes:
        return False
    if not namesakes and any({*one.forecasts} <= one.namesakes(other) for other in others):
        return False
    unnamed = not (column.roles or "unsure" in column.hints)
    if column.unit == "scale" and unnamed and stems([column, *one.forecast_columns]):
        return False
    keys = [] if one.roles.get("class") else one.columns("event")
    if len(words) > 1 and not words <= TRUTH and any(words <= c.folded for c in keys):
        return False
    if "class" in one.shape.columns:
        labels = class_names(one.names_of(one.forecasts), one.happened)
        return words <= {label.lower() for label in (*labels, *(label for _, label in one.grid or ()))}
    if one.roles.get("class"):
        return one.says_which(column) or words <= {word for c in one.columns("class") for word in c.folded}
    scales = {c.unit for c in one.forecast_columns} == {column.unit} == {"scale"}
    stray = len(words) == 3 and int(column.words.counts.min()) == 1 and not column.span[1] > 1
    leveled = column.levels or all(c.levels for c in one.forecast_columns)
    # What a name calls the outcome is one in spite of cells that are neither yes nor no, which are asked about.
    named = "outcome" in one.meanings.roles(column) and len(words & (TRUTH | {"0", "1"})) == 2
    return len(words) <= 2 or stray or scales or leveled or named


def _verdict_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield caveats about verdicts: numbers may be how sure somebody is of one, or how likely yes is."""
    sure = one.forecast_columns
    if one.shape == SURE:
        verdict = one.columns("verdict")[0]
        agrees = verdict.folded <= TRUTH and sure[0].agrees(verdict)
        below = sure[0].below and ("sureness" in sure[0].roles or agrees)
        raised = _grave if agrees else _raised
        yield raised(f"says/say how likely yes is, whatever {shown(verdict.name)} is", [sure[0].name] if below else [])
        agree = one.profile.repeated(one.event) and not one.differs(verdict)
        yield _raised("is/are no verdict of each", [verdict.name] if agree else [])
    elif one.shape == PAIRS:
        yield _raised("says/say how likely yes is, whatever the verdict is", [c.name for c in sure if c.below])
    elif one.are_confidences and (votes := one.votes()):
        yield _raised(f"says/say how sure each is of {shown(votes[0].name)}", [sure[0].name])


def _forecast_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield caveats about the columns of forecasts: they may hold something else, or others may hold forecasts."""
    settles = one.meanings.given_roles.settles
    forecasts = [c for c in one.forecast_columns if c.kind and one.shape.columns]
    columns = [c for c in forecasts if not settles(c.name)]
    if one.shape != PAIRS:
        unsure = [c for c in columns if one.shape in {WIDE, RESPONDENTS} and {"unsure", "head"} & c.hints == {"unsure"}]
        if not one.roles.get("outcome"):
            unsure += [c for c in columns if "outcome" in c.roles and "unsure" not in c.hints]
        yield _raised("is/are what happened", [c.name for c in unsure])
        yield _raised("sums/sum up others", [c.name for c in columns if "summary" in c.hints])
    experts = one.shape == ONE_CLASSES and not one.names_classes
    yield _raised("is/are experts", [c.name for c in forecasts if experts])
    yield _raised("holds/hold forecasts", [c.name for c in _alike(one)])
    yield from _kind_caveats(one, columns)


def _kind_caveats(one: Reading, columns: Sequence[Column]) -> Iterator[Caveat]:
    """Yield caveats, all but one grave, on forecasts of another kind; `columns`: those that the user leaves open."""
    look, wide, names = one.meanings, one.shape == WIDE, [c.name for c in one.forecast_columns if c.kind]
    yield _grave("says/say what amounts are measured in", look.measures)
    yield _grave("is/are several forecasts by each", names if wide and sides(columns) else [])
    named = "event" in look.given or not {*one.event}.isdisjoint(look.called("event"))
    yield _grave("is/are questions", names if wide and one.asks and len(names) > 1 and not named else [])
    respond = one.shape == RESPONDENTS and not one.asks and "expert" not in look.given
    yield _raised("is/are no events", names if respond else [])
    yield _grave("is/are quantiles of an amount", one.names_of(sorted(look.quantiles & {*one.forecasts})))
    sums = (each for each in one.profile.sums if len(each) > 2 and not each <= {*one.forecasts})
    yield from (_grave("adds/add up to 1", one.names_of(sorted(each))) for each in sums)


def _open_caveats(one: Reading) -> Iterator[Caveat]:
    """Yield grave caveats about numbers that are taken for forecasts in a reading that names do not settle."""
    forecasts = [c for c in one.forecast_columns if c.kind]
    names, units = [c.name for c in forecasts], {c.unit for c in forecasts if not c.binary or len(forecasts) == 1}
    named = any({PROBABILITY, "sureness"} & c.roles or "head" in c.hints or c.period for c in forecasts)
    single = one.shape in {ONE, WIDE} and len(forecasts) == 1
    yield _grave("is/are what happened", names if single and forecasts[0].binary else [])
    # Fractions and percentages may be those of different experts, about whose units more is asked.
    mixed = len(units) > 1 and not units <= {"fractions", "percentages"}
    yield _grave(f"is/are of several kinds: {listed(sorted(units))}", names if mixed else [])
    yield _grave("is/are thresholds or times, and no experts", names if one.shape == WIDE and are_steps(names) else [])
    yield _grave("holds/hold odds", [c.name for c in forecasts if c.unit == "odds"])
    yield _grave("holds/hold amounts", [c.name for c in forecasts if c.is_amount_by_name])
    summary = all("summary" in c.hints for c in forecasts) and not named and one.shape != PAIRS
    yield _grave("sums/sum up others", names if summary else [])
    others = [c.name for c in forecasts if not (PROBABILITY in c.roles or "head" in c.hints or c.levels)]
    yield _grave(
        "is/are called otherwise than others", others if one.shape == WIDE and len(others) < len(names) else []
    )
    rest = one.left(c for c in one.meanings.plain if c.kind == "number" and not c.binary)
    rest = [c for c in rest if not {"never", "summary"} & c.hints or c.unit == "odds"]
    scored = any("score" in c.hints and c.unit in units - {"fractions"} for c in (*forecasts, *rest))
    yield _grave("holds/hold scores", [c.name for c in forecasts if scored and "score" not in c.hints])
    alike = [c for c in rest if c.unit in units and c.fractions]
    named &= not (one.shape == ONE and len(alike) > 1 and "head" not in forecasts[0].hints)
    family = named or len(rest) <= len(forecasts) or (len(forecasts) > 1 and stems(forecasts))
    yield _grave("holds/hold forecasts", [] if family else [c.name for c in rest])


def _alike(one: Reading) -> Iterator[Column]:
    """Yield the unused columns that hold numbers like the forecasts, or words and numbers."""
    meanings, forecasts = one.meanings, one.forecast_columns
    single = None if one.shape.columns else forecasts[0]
    called = all(PROBABILITY in meanings.roles(c) or "head" in c.hints for c in forecasts)
    named = called and (one.shape == SURE or not any("sureness" in c.roles for c in forecasts))
    scales = {c.span[1] > 1 for c in forecasts if len(c.known)}
    # The other of two that add up to 1 says the same.
    others = (pair for pair in one.profile.sums if len(pair) == 2 and single and single.place in pair)
    aside, numbers, plain = one.used.union(*others), {*meanings.numbers}, {*meanings.plain}
    for c in meanings.free:
        if c.place in aside or meanings.given_roles.settles(c.name) or meanings.roles(c) & {"prior", *FACTS}:
            continue
        graded = "score" in c.hints and c.spread == "scale"
        none = not c.fractions or ("never" in c.hints and is_never(c.name))
        if ({"never", "score"} & c.hints and not graded and none) or (single and named and "summary" in c.hints):
            continue
        # Beside the one that is called the forecast, others may be if they are called probabilities.
        if single and named and one.shape != ONE and (single.named(PROBABILITY) or "head" not in c.hints):
            continue
        # Beside several, others may be if they are called so, too, or are on the same scale.
        if named and not {"score", "head"} & c.hints and {c.span[1] > 1} != scales:
            continue
        alike = "score" in c.hints or (c.forecasts and len(c.known) and not c.binary and {c.span[1] > 1} == scales)
        alike = alike or (c in numbers and bool(c.kind) and not (single and c.binary))
        if alike or (c.kind == "mixed" and c in plain):
            yield c


def vetoes(one: Reading) -> Iterator[str]:
    """Yield the reasons that rule out a reading."""
    shape, roles, look, given = one.shape, one.roles, one.profile, one.meanings.given
    unused = [role for role, places in given.items() if places and role not in {*roles, *FACTS}]
    if unused and not (unused == [PROBABILITY] and shape.columns):
        yield f"no column is the {unused[0]}, as the user has it"
    yield from _forecast_vetoes(one)
    yield from _key_vetoes(one)
    outcomes_of = {c.name for c in one.forecast_columns} & {*one.meanings.beside.events}
    if one.meanings.beside.events and bool(outcomes_of) != (shape == RESPONDENTS):
        yield "the table of outcomes has others for events"
    yield from _class_vetoes(one)
    if "verdict" not in given and shape not in {PAIRS, SURE} and one.unlike_votes:
        yield "it is how sure each is of a verdict of its own"
    for c in one.columns("class") if "class" in shape.key and "class" not in given else ():
        rest = [place for role in shape.key if role != "class" for place in roles[role]]
        sure = "class" in c.roles and "other" not in c.roles
        if not sure and not look.varies_within(c.place, [*rest, *one.meanings.times[:1]]):
            yield "the class distinguishes no rows"
    for c in one.columns("outcome") if "outcome" not in given else ():
        yield from _outcome_vetoes(one, c)


def _forecast_vetoes(one: Reading) -> Iterator[str]:
    """Yield reasons against the columns read as forecasts: their cells or headers, or columns that stay unused."""
    shape, look, forecasts = one.shape, one.meanings, one.forecast_columns
    known = PROBABILITY not in look.given and look.known
    if known and (shape == RESPONDENTS or not known <= {*one.forecasts}):
        yield "other columns are those of experts who are known"
    played = {role for role, places in one.roles.items() if places}
    # What each event has one of may be a property of it.
    unique = one.loose and shape == WIDE and not one.profile.repeated(one.event)
    for role in () if known else {*shape.forbids} - ({"expert", "verdict"} if unique else set()):
        yield from (f"{c.name} is called the {role}" for c in one.left(look.free) if look.roles(c) - played == {role})
    several = len(forecasts) > 1 and not shape.columns
    if not forecasts or several or any(not c.forecasts for c in forecasts if c.kind not in {"mixed", "number"}):
        yield "no column of numbers is left"
    if PROBABILITY in look.given:
        return
    flags = [c for c in forecasts if c.binary and not look.given_roles.settles(c.name)]
    if flags and any(c.kind and not c.binary for c in forecasts):
        yield "it is 0 or 1, unlike others"
    elif forecasts and all(c.binary for c in forecasts):
        rest = any(c.fractions for c in one.left(look.plain) if "never" not in c.hints)
        if rest or all("unsure" in c.hints for c in forecasts):
            yield "it may be what happened, and is no forecast"
    differ = len({c.spread for c in forecasts}) > 1
    if shape == WIDE and (odd := strangers(forecasts)) and (differ or any(names_unit(c.name) for c in odd)):
        yield "it holds something else than columns of a family do"


def _key_vetoes(one: Reading) -> Iterator[str]:
    """Yield the reasons against the columns read as event and expert, or against rows that are numbered."""
    look, given = one.profile, one.meanings.given
    if one.shape.numbered and not one.event:
        if "event" not in given and one.meanings.called("event"):
            yield "a column is called the event"
        if len(look.table.pieces) > 1:
            yield "rows are not numbered across files"
    for expert in one.columns("expert") if "expert" not in given else ():
        vague = len(expert.roles) > 1 and one.shape != RESPONDENTS
        if vague and look.rows > FEW and look.repeated([expert.place]) <= look.rows // 4:
            yield "nobody comes again"
    if one.event and "event" not in given:
        yield from _event_vetoes(one, one.columns("event")[0])
    if one.shape == RESPONDENTS:
        yield from _respondent_vetoes(one, one.columns("expert")[0])


def _respondent_vetoes(one: Reading, expert: Column) -> Iterator[str]:
    """Yield the reasons against a reading in which each row is an expert and each column of forecasts an event."""
    given = one.meanings.given
    sure = "expert" in given or ("expert" in expert.roles and "other" not in expert.roles)
    named = sure and (one.asks or PROBABILITY in given)
    if not (named if one.profile.repeated([expert.place]) else sure or one.asks):
        yield "the column is no list of experts"
    if len(one.forecasts) == 1 and not one.asks:
        yield "one column is no list of events"


def _event_vetoes(one: Reading, column: Column) -> Iterator[str]:
    """Yield the reasons against `column` as the event: it numbers rows, or another one fits better."""
    look, meanings, event = one.profile, one.meanings, one.event
    named = one.left(c for c in meanings.free if "event" in meanings.roles(c) and "expert" not in c.roles)
    repeated = [bool(look.repeated([c.place])) for c in named]
    again = look.repeated(event)
    if one.shape.numbered:
        if again and ("event" not in column.roles or not all(repeated)):
            yield "it comes again"
        called = [c for c in meanings.free if "outcome" in meanings.roles(c) and c.kind == "text" and c.present == 1]
        yield from (f"{c.name} is the class" for c in called if again and not look.repeated([*event, c.place]))
        return
    rest, expert = [place for role in one.shape.key[1:] for place in one.roles[role]], one.roles.get("expert", ())
    able = (c for c in one.columns("event") if "class" not in meanings.roles(c))
    guessed = [c.place for c in able if c not in meanings.shared]
    if look.count(event) > FEW and again and any(look.same(event[0], place) for place in expert):
        yield "it is the expert by another name"
    if len(guessed) > 1 and any(not look.repeated([place, *rest]) for place in guessed):
        yield "one of its columns is a key"
    numbers = (normal(column.name) == "id" or "event" not in column.roles) and not again
    if numbers and (any(repeated) or (expert and look.repeated(expert))):
        yield "it numbers the rows"


def _class_vetoes(one: Reading) -> Iterator[str]:
    """Yield reasons against taking forecast columns for classes, or for experts where they seem to be classes."""
    shape, look, places = one.shape, one.profile, [c.place for c in one.forecast_columns if c.kind]
    if shape == GRID and one.grid is None:
        yield "headers are not those of experts and classes"
    elif shape == WIDE and one.grid is not None:
        yield "headers are those of experts and classes"
    elif shape == WIDE and (one.adds_up or any(each <= {*places} for each in look.sums)):
        yield "columns add up to 1 as those of classes do"
    elif (shape == CLASSES and not look.add_up(places)) or (
        shape == ONE_CLASSES and (one.grid is not None or not one.adds_up)
    ):
        yield "columns do not add up to 1 as those of classes do"


def _outcome_vetoes(one: Reading, column: Column) -> Iterator[str]:
    """Yield the reasons against reading `column` as the outcome."""
    look, event, meanings = one.profile, one.event, one.meanings
    called = meanings.called("outcome")
    if called and column.place not in called:
        yield "another column is called the outcome"
    if "other" in column.roles and not one.shape.of_classes and len(one.happened) > 2:
        yield "it holds more than two words"
    if "verdict" in column.roles and not one.shape.numbered and not look.repeated(event):
        yield "it may as well be a verdict of each"
    if one.varies(column.place) and not one.says_which(column):
        differing, events, many = look.differing(column.place, event)
        others = [c.place for c in meanings.free if "outcome" in meanings.roles(c) and c is not column]
        own = called or ("outcome" in column.roles and not many)
        each = many and 2 * differing > events and column.yes_no
        if each or not own or not all(map(one.varies, others)):
            yield "it differs within an event"
    named = "outcome" in meanings.roles(column) and "other" not in meanings.roles(column)
    if column.distinct == 1 < look.count(event) and not named and column.words.values[0].lower() not in TRUTH:
        yield "it holds one word throughout"
