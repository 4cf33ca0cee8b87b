"""What speaks against a reading of a table: caveats, for which it is asked about, and harms, which are not offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opinionpool.tables.classes import TRUTH, bare, says_which
from opinionpool.tables.meanings import Meanings, sides, stems
from opinionpool.tables.profile import FEW, Column
from opinionpool.tables.roles import (
    FACTS,
    ONE,
    ONE_CLASSES,
    PAIRS,
    PROBABILITY,
    RESPONDENTS,
    SURE,
    TEXT,
    WIDE,
    Reading,
    class_names,
    is_never,
    normal,
)
from opinionpool.text import counted, listed, shown

# Most columns of words that may differ within an event, and that are left over beside an event that no name says.
_OTHERS, _FEW = 5, 3


class Objections(Meanings):
    """What speaks against readings of a table: caveats, which users may overrule, and harms, which rule them out."""

    def differs(self, column: Column, reading: Reading) -> bool:
        """Whether verdicts in `column` differ within an event, or from what an outcome column says in the same row."""
        event, others = reading.roles.get("event", ()), (c for c in self.free if "outcome" in self.roles(c))
        return self.profile.varies_within(column.place, event) or any(
            column.differs(other) for other in others if other is not column
        )

    def adds(self, reading: Reading) -> bool:
        """Whether forecast columns add up to 1, in more than `FEW` rows unless their headers name all outcomes."""
        return self.profile.add_up(reading.forecasts, 1 if self.names_classes(reading) else FEW + 1)

    def names_classes(self, reading: Reading) -> bool:
        """Return True if the headers of the forecast columns name every outcome, and so are classes."""
        labels = {label.lower() for label in class_names([self.profile.columns[p].name for p in reading.forecasts])}
        able = [(c.place,) for c in self.free if "outcome" in self.roles(c)]
        for places in (reading.roles.get("outcome", ()), *able):
            happened = self.happened(replace(reading, roles={"outcome": places}))
            if happened and happened <= labels:
                return True
        return False

    def says_which(self, reading: Reading, column: Column) -> bool:
        """Whether an outcome column says, row by row, if the class in the row is the one that happened."""
        events, labels = self.profile.key(reading.roles["event"]), reading.roles.get("class", ())
        return any(says_which(column.words, events, self.profile.columns[p].words) is not None for p in labels)

    def _answers(self, reading: Reading) -> list[Column]:
        """Return unused columns that may be outcomes, by a hint in the header, or yes and no in rows that are events.

        Beside verdicts or scores, a column of levels or grades with one value per event may be an outcome too.
        """
        look, event, wide = self.profile, reading.roles.get("event", ()), reading.shape.numbered
        able = [c for c in self.plain if (wide and c.yes_no) or c.may_be_outcome]
        # What is 0 or 1 for each event may have happened to it.
        flags = [c for c in self.plain if event and c.binary and not {"never", "decision"} & c.says and not wide]
        able += [c for c in flags if look.repeated(event) and not look.varies_within(c.place, event)]
        levels = [c for c in self.plain if (wide and c.is_grade) or (c.levels and not wide and look.repeated(event))]
        able += [c for c in levels if not (event and look.varies_within(c.place, event))]
        able += [c for c in self.plain if "class" in reading.shape.columns and self.names_columns(c)]
        return [c for c in able if c.place not in reading.used]

    def names_columns(self, column: Column) -> bool:
        """Whether the words in a column are the last words of headers, as outcomes are if columns are classes."""
        last = {normal(c.name).split("_")[-1] for c in self.numbers}
        return column.kind == "text" and len(column.folded) > 1 and {*map(normal, column.folded)} <= last

    def caveats(self, reading: Reading) -> Iterator[str]:
        """Yield the objections to a reading, as texts, that the user can overrule."""
        shape, roles, look = reading.shape, reading.roles, self.profile
        if "event" not in self.given or not roles.get("event"):
            yield from self._key_caveats(reading)
        if "outcome" not in self.given and roles.get("outcome"):
            column = look.columns[roles["outcome"][0]]
            differing, events, many = look.differing(column.place, roles.get("event", ()))
            if (many or 2 * differing > events > 1) and not self.says_which(reading, column):
                yield f"{shown(column.name)} is what happened, though it differs within {counted(differing, 'event')}"
        elif "outcome" not in self.given and shape != RESPONDENTS:
            called = [look.columns[place] for place in self.called("outcome") if place not in reading.used]
            yield from (f"{shown(c.name)} is no outcome" for c in (*called, *self._answers(reading)))
        if not (self.given or self._names_say(reading)):
            yield "columns are experts, though no name says so"
        measures = [] if PROBABILITY in self.given else [shown(c.name) for c in self.free if "measure" in c.says]
        yield from (f"numbers are probabilities, and no amounts in {name}" for name in measures)
        votes = self.votes(reading)
        if self.sure(reading) and votes and "verdict" not in self.given:
            yield f"{shown(look.columns[reading.forecasts[0]].name)} is no matter of {shown(votes[0].name)}"
        if shape == SURE and "verdict" not in self.given:
            sure, verdict = look.columns[reading.forecasts[0]], look.columns[roles["verdict"][0]]
            if sure.below and "sureness" in sure.roles:
                yield f"{shown(sure.name)} is how sure each is, though some are below a half"
            if not self.differs(verdict, reading):
                yield f"{shown(verdict.name)} is the verdict of each, though all agree"
        if shape == PAIRS and "verdict" not in self.given:
            paired = [look.columns[place] for place in reading.forecasts]
            yield from (f"{shown(c.name)} is how sure one is, though some are below a half" for c in paired if c.below)
        if not {PROBABILITY, "verdict" if shape == PAIRS else ""} & {*self.given}:
            yield from self._column_caveats(reading) if shape.columns and shape != PAIRS else ()
            yield from self._aside_caveats(reading)

    def _names_say(self, reading: Reading) -> bool:
        """Whether names settle a reading: a header with one meaning, all columns forecasts, or what the user says."""
        columns, given = self.profile.columns, self.given_roles
        named = [
            (role, columns[p]) for role, places in reading.roles.items() for p in places if role in columns[p].roles
        ]
        vague = [c for _, c in named if "other" in c.roles and TEXT not in c.roles and not c.folded <= TRUTH]
        clear = {role for role, c in named if c not in vague} - {PROBABILITY}
        clear |= {"index" for place in reading.roles.get("event", ()) if "index" in columns[place].says}
        forecasts = [columns[place] for place in reading.forecasts]
        sure = any({PROBABILITY, "sureness"} & c.roles or {"head", "question"} & c.says for c in forecasts)
        every = not reading.roles.get("event") and len(reading.used) == sum(bool(c.kind) for c in columns)
        known = self.known or self.beside.names or given.include or given.exclude
        return bool(clear or every or known or (sure and not vague))

    def sure(self, reading: Reading) -> bool:
        """Whether forecasts may be how sure experts are of verdicts: by header, or as verdicts on an event differ."""
        columns = [self.profile.columns[place] for place in reading.forecasts]
        sure = any("sureness" in c.roles for c in columns)
        if reading.shape.columns or sure:
            return sure
        verdicts = [c for c in self.free if {"verdict", "outcome"} & self.roles(c) and c.place not in reading.used]
        if any(PROBABILITY in c.roles for c in columns):
            verdicts = [c for c in verdicts if c.yes_no and not columns[0].agrees(c)]
        return any(self.differs(c, reading) for c in verdicts if c.yes_no or "verdict" in self.roles(c))

    def votes(self, reading: Reading) -> list[Column]:
        """Return the unused columns that may hold verdicts, which are experts' choices between classes."""
        event = reading.roles.get("event", ())
        own = [c for c in self.free if "verdict" in self.roles(c) or (c.yes_no and "outcome" in self.roles(c))]
        own += [c for c in self.plain if c.is_vote and event and self.profile.varies_within(c.place, event)]
        return [c for c in own if c.place not in reading.used]

    def harms(self, reading: Reading) -> Iterator[str]:
        """Yield the reasons for which a reading is not offered: typing it might drop, merge or mistake numbers."""
        if "outcome" not in self.given:
            yield from self._outcome_harms(reading)
        if "verdict" not in self.given and reading.shape == SURE:
            places = (reading.roles[role][0] for role in (PROBABILITY, "verdict"))
            sure, verdict = (self.profile.columns[place] for place in places)
            if not self._are_verdicts(reading):
                yield f"{shown(verdict.name)} holds no verdicts"
            elif sure.below and verdict.folded <= TRUTH and sure.agrees(verdict):
                yield f"{shown(sure.name)} is below a half where {shown(verdict.name)} is no"
        if "event" not in self.given:
            yield from self._key_harms(reading)
        if PROBABILITY not in self.given:
            yield from self._unlike(reading)

    def _outcome_harms(self, reading: Reading) -> Iterator[str]:
        """Yield, as text, outcome columns with cells that are no outcomes; if there is no such column, candidates."""
        columns, outcomes = self.profile.columns, reading.roles.get("outcome", ())
        for c in (columns[place] for place in outcomes if not self._admits(reading, columns[place])):
            yield f"{shown(c.name)} holds no outcomes of {listed(self.names_of(reading.forecasts), 3)}"
        if outcomes or reading.shape == RESPONDENTS or self.beside.names:
            return
        called, answers = self.called("outcome"), self._answers(reading)
        for c in (c for c in self.free if c.place not in reading.used and not self.varies(c.place, reading)):
            flag = c in self.plain and c.binary and not {"never", "decision"} & c.says
            if flag or c.place in called or c in answers:
                yield f"{shown(c.name)} may be the outcome"

    def _key_harms(self, reading: Reading) -> Iterator[str]:
        """Yield the reasons for which rows with equal event and expert (the key) may be about several things."""
        shape, event = reading.shape, reading.roles.get("event", ())
        if shape.numbered and not event:
            yield from (f"{shown(name)} names events" for name in self.names_of(self.called("event")))
        unlike = [] if self.distinguishing(reading) else self.differing(reading)
        ends = [c.place for c in self.free if c.kind == "time" and "ends" in c.says and c.place not in event]
        unlike += [place for place in ends if self.varies(place, reading) and place not in unlike]
        if unlike:
            key = self.names_of([place for role in shape.key for place in reading.roles[role]])
            differ = "differs" if len(unlike) == 1 else "differ"
            yield f"{listed(self.names_of(unlike), 3)} {differ} in rows that agree in {listed(key)}"
        elif self._crowded(reading):
            yield "many columns of words say nothing of the event"

    def _unlike(self, reading: Reading) -> Iterator[str]:
        """Yield the reasons for which columns of forecasts are not of one kind, or others may as well be meant."""
        look, shape = self.profile, reading.shape
        forecasts = [c for c in (look.columns[place] for place in reading.forecasts) if c.kind]
        names = listed([c.name for c in forecasts], 3)
        units = {c.unit for c in forecasts if not c.binary or len(forecasts) == 1}
        named = any({PROBABILITY, "sureness"} & c.roles or "head" in c.says or c.period for c in forecasts)
        if len(forecasts) == 1 and forecasts[0].binary and shape in {ONE, WIDE}:
            yield f"{names} may be what happened"
        if len(units) > 1 or not forecasts or {"odds"} & units:
            yield f"{names} hold{'s' * (len(forecasts) == 1)} {listed(sorted(units))}"
        if all("summary" in c.says for c in forecasts) and not named and shape != PAIRS:
            yield f"{names} may sum up others"
        # Where columns add up to 1, these are the forecasts; what has a unit, or is one of several quantiles, is none.
        for each in look.sums:
            if len(each) > 2 and not each <= {*reading.forecasts}:
                yield f"{listed(self.names_of(sorted(each)), 3)} add up to 1"
        if units_of := [c.name for c in self.free if "measure" in c.says]:
            yield f"{listed(units_of)} is what amounts are measured in"
        if look.quantiles & {*reading.forecasts}:
            yield f"{listed(self.names_of(sorted(look.quantiles)))} are quantiles of an amount"
        if shape == WIDE and sides([c for c in forecasts if "summary" not in c.says]):
            yield f"{names} are several forecasts by each"
        rest = [c for c in self.plain if c.place not in reading.used and c.kind == "number" and not c.binary]
        rest = [c for c in rest if not {"never", "summary"} & c.says or c.unit == "odds"]
        scores = [c.name for c in (*forecasts, *rest) if "score" in c.says and c.unit in units - {"fractions"}]
        if scores and not all("score" in c.says for c in forecasts):
            yield f"{names} may be scores, as {listed(scores, 3)}"
        if not named and len(rest) > len(forecasts) and not (len(forecasts) > 1 and stems(forecasts)):
            yield f"{listed([c.name for c in rest], 3)} may be forecasts as well"

    def _are_verdicts(self, reading: Reading) -> bool:
        """Whether a column may hold each expert's verdict: by its name, or as its words are those of outcomes."""
        column, happened = self.profile.columns[reading.roles["verdict"][0]], self.happened(reading)
        return bool({"verdict", "outcome"} & column.roles or column.folded <= (happened or TRUTH | {"0", "1"}))

    def _admits(self, reading: Reading, column: Column) -> bool:
        """Whether the cells of an outcome column may be outcomes of a reading."""
        look, happened = self.profile, self.happened(reading)
        words, namesakes = {bare(word) for word in happened}, self._namesakes(column)
        if namesakes and not {*reading.forecasts} <= namesakes:
            return False
        if "class" in reading.shape.columns:
            labels = class_names([look.columns[place].name for place in reading.forecasts], happened)
            grid = look.grid(reading.forecasts, happened) or ()
            return words <= {label.lower() for label in (*labels, *(label for _, label in grid))}
        if reading.roles.get("class"):
            labels = [word.lower() for p in reading.roles["class"] for word in look.columns[p].words.values]
            return self.says_which(reading, column) or words <= {*labels}
        scales = {look.columns[place].unit for place in reading.forecasts} == {column.unit} == {"scale"}
        stray = len(words) == 3 and int(column.words.counts.min()) == 1 and not column.span[1] > 1
        leveled = all(look.columns[place].levels for place in reading.forecasts)
        return len(words) <= 2 or stray or scales or leveled or column.levels

    def _namesakes(self, column: Column) -> set[int]:
        """Return the columns of numbers whose headers share most words with that of `column`, unless all do so."""
        own = {*normal(column.name).split("_")}
        able = [c for c in self.free if c.kind in {"number", ""} and not (c.binary or c is column)]
        shared = {c.place: len(own & {*normal(c.name).split("_")}) for c in able}
        most = max(shared.values(), default=0)
        return {place for place, count in shared.items() if count == most and min(shared.values()) < most}

    def _crowded(self, reading: Reading) -> bool:
        """Whether many columns of words vary within events or, if no header says event, are left without a role."""
        event = [self.profile.columns[place] for place in reading.roles.get("event", ())]
        left = [c for c in self.plain if c.kind == "text" and c.place not in reading.used and "never" not in c.says]
        named = any("event" in self.roles(c) and c.distinct > 1 for c in event)
        return len([c for c in left if not named or self.varies(c.place, reading)]) > (_OTHERS if named else _FEW)

    def differing(self, reading: Reading) -> list[int]:
        """Unused columns that vary in rows that agree in the key (event, expert, ...), so may be a part of it."""
        look, numbered = self.profile, reading.shape.numbered
        places = [place for role in reading.shape.key for place in reading.roles[role]]
        places += [] if numbered else self.times[:1]
        if not places or not look.repeated(places):
            return []
        able = [c for c in self.free if c.place not in reading.used and c.is_key and c.present == 1]
        able = [c for c in able if c.is_part or c.kind != "number"]
        able = [c for c in able if self.roles(c) or c.kind == "time" or "unsure" not in c.says]
        return [c.place for c in able if look.varies_within(c.place, places)]

    def distinguishing(self, reading: Reading) -> list[str]:
        """Headers of the unused columns that differ in any two rows that agree in the key (event, expert, ...)."""
        places = [place for role in reading.shape.key for place in reading.roles[role]]
        places += [] if reading.shape.numbered else self.times[:1]
        return self.names_of(p for p in self.differing(reading) if self.profile.distinguishes(p, places))

    def _key_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to the columns that identify a row: an unused column names events, or distinguishes rows."""
        look, shape, roles = self.profile, reading.shape, reading.roles
        if shape.numbered and not roles["event"]:
            texts = [c.place for c in self.labels if c.kind == "text" and not roles.get("outcome")]
            yield from (f"{shown(look.columns[p].name)} names no event" for p in (*self.called("event"), *texts))
        if self._crowded(reading):
            yield "many columns of words say nothing of the event"
        places = [place for role in shape.key for place in reading.roles[role]]
        repeated = look.repeated(places) if places else 0
        names = listed([look.columns[place].name for place in places])
        many = look.count(places) == 1 or (2 * repeated > look.rows and not self.times) if repeated else False
        if shape.numbered and many and normal(look.columns[places[0]].name) != "event":
            yield f"{counted(repeated, 'row')} repeat events, by {names}"
            return
        for name in self.distinguishing(reading):
            yield f"{shown(name)}, which distinguishes {counted(repeated, 'row')}, says nothing of {names}"

    def _column_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to columns of forecasts that the user has not named: one may be an outcome or summary."""
        shape, look = reading.shape, self.profile
        forecasts = [look.columns[place] for place in reading.forecasts]
        open_ = [c for c in forecasts if not self.given_roles.settles(c.name)]
        unsure = [c for c in open_ if shape in (WIDE, RESPONDENTS) and "unsure" in c.says and "head" not in c.says]
        if not reading.roles.get("outcome"):
            unsure += [c for c in open_ if "outcome" in c.roles and "unsure" not in c.says]
        yield from (f"{shown(c.name)} is a forecast, and not what happened" for c in unsure)
        yield from (f"{shown(c.name)} is a forecast of its own" for c in open_ if "summary" in c.says)
        if shape == WIDE and sides(open_):
            yield f"{listed([c.name for c in forecasts], 4)} are an expert each"
        if shape == ONE_CLASSES and not self.names_classes(reading):
            yield "columns that add up to 1 are classes and no experts"
        named = "event" in self.given or not {*reading.roles.get("event", ())}.isdisjoint(self.called("event"))
        if shape == WIDE and self.asks(reading) and len(forecasts) > 1 and not named:
            yield "columns are experts, though they are called as questions"
        if shape == RESPONDENTS and not self.asks(reading) and "expert" not in self.given:
            yield "columns are events, though they are not called as questions"

    def asks(self, reading: Reading) -> bool:
        """Whether all forecast columns are called as questions, or as events in the table of outcomes."""
        columns = (self.profile.columns[place] for place in reading.forecasts)
        return all("question" in c.says or c.name in self.beside.events for c in columns)

    def _aside_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to unused columns: numbers like those of the forecasts, or words mixed with numbers."""
        forecasts = [self.profile.columns[place] for place in reading.forecasts]
        one = None if reading.shape.columns else forecasts[0]
        named = one and PROBABILITY in self.roles(one) and (reading.shape == SURE or "sureness" not in one.roles)
        scales = {c.span[1] > 1 for c in forecasts if len(c.known)}
        # The other of two that add up to 1 says the same.
        others = (pair for pair in self.profile.sums if len(pair) == 2 and one and one.place in pair)
        aside = reading.used.union(*others)
        for c in self.free:
            if c.place in aside or self.given_roles.settles(c.name) or self.roles(c) & {"prior", *FACTS}:
                continue
            graded = "score" in c.says and c.spread == "scale"
            none = not c.fractions or ("never" in c.says and is_never(c.name))
            if ({"never", "score"} & c.says and not graded and none) or (named and "summary" in c.says):
                continue
            # Beside the one that is called the forecast, others may be if they are called probabilities.
            if one and named and reading.shape != ONE and (one.named(PROBABILITY) or "head" not in c.says):
                continue
            alike = "score" in c.says or (c.forecasts and len(c.known) and not c.binary and {c.span[1] > 1} == scales)
            alike = alike or (c in self.numbers and bool(c.kind) and not (one and c.binary))
            if alike or (c.kind == "mixed" and c in self.plain):
                yield f"{shown(c.name)} is no forecast"
