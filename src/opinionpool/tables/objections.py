"""What speaks against a reading of a table: caveats, for which it is asked about, and harms, which are not offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

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
# A reason against a reading, and the headers of the columns that it is about; none if it does not hold.
_Reason: TypeAlias = tuple[str, Sequence[str]]


class Objections(Meanings):
    """Objections to readings of a table: caveats, which the user can overrule, and harms, which rule out a proposal.

    A reading is one way to take columns as event, expert, forecast and so on (roles); a key is the columns that
    identify a row, a verdict a judgement in words, or 0 or 1, in place of a probability.
    """

    def differs(self, column: Column, reading: Reading) -> bool:
        """Whether verdicts in `column` differ between rows of one event, or from the outcome in the same row."""
        event, others = reading.roles.get("event", ()), (c for c in self.free if "outcome" in self.roles(c))
        return self.profile.varies_within(column.place, event) or any(
            column.differs(other) for other in others if other is not column
        )

    def adds_up(self, reading: Reading) -> bool:
        """Whether forecast columns add up to 1 in nearly all rows, more than `FEW` unless headers name all outcomes."""
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
        """Whether an outcome column says, row by row, if the class named in the row is the one that happened."""
        events, labels = self.profile.key(reading.roles["event"]), reading.roles.get("class", ())
        return any(says_which(column.words, events, self.profile.columns[p].words) is not None for p in labels)

    def _outcomes_left(self, reading: Reading) -> list[Column]:
        """Unused columns that may hold outcomes: by header, or with few words that never differ in an event."""
        wide, repeated = reading.shape.numbered, self.profile.repeated(reading.roles.get("event", ()))
        called, classes = self.called("outcome"), "class" in reading.shape.columns

        def may_be(c: Column) -> bool:
            flag = (c.binary or c.mostly_truth) and not {"never", "decision"} & c.hints
            flag |= c.mostly_truth and "unsure" in c.hints
            once = (flag or c.levels or (wide and c.is_grade)) and (wide or bool(repeated))
            return (
                c.may_be_outcome or (once and not self.varies(c.place, reading)) or (classes and self.names_columns(c))
            )

        left, plain = [c for c in self.free if c.place not in reading.used], {*self.plain}
        return [c for c in left if c.place in called or (c in plain and may_be(c))]

    def names_columns(self, column: Column) -> bool:
        """Whether each word in a column is the last word of a header, as an outcome is where columns are classes."""
        return column.kind == "text" and len(column.folded) > 1 and {*map(normal, column.folded)} <= self._last_words

    @cached_property
    def _last_words(self) -> set[str]:
        """Last word of each header of numbers."""
        return {normal(c.name).split("_")[-1] for c in self.numbers}

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
            yield from (f"{shown(c.name)} is no outcome" for c in self._outcomes_left(reading))
        if not (self.given or self._settled_by_names(reading)):
            yield "columns are experts, though no name says so"
        measures = [] if PROBABILITY in self.given else [shown(c.name) for c in self.free if "measure" in c.hints]
        yield from (f"numbers are probabilities, and no amounts in {name}" for name in measures)
        votes = self.votes(reading)
        if self.are_confidences(reading) and votes and "verdict" not in self.given:
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

    def _settled_by_names(self, reading: Reading) -> bool:
        """Whether headers or the user make a reading certain: a header is clear, or all columns are forecasts."""
        columns, given = self.profile.columns, self.given_roles
        named = [
            (role, columns[p]) for role, places in reading.roles.items() for p in places if role in columns[p].roles
        ]
        vague = [c for _, c in named if "other" in c.roles and TEXT not in c.roles and not c.folded <= TRUTH]
        clear = {role for role, c in named if c not in vague} - {PROBABILITY}
        clear |= {"index" for place in reading.roles.get("event", ()) if "index" in columns[place].hints}
        forecasts = [columns[place] for place in reading.forecasts]
        sure = any({PROBABILITY, "sureness"} & c.roles or {"head", "question"} & c.hints for c in forecasts)
        every = not reading.roles.get("event") and len(reading.used) == sum(bool(c.kind) for c in columns)
        known = self.known or self.beside.names or given.include or given.exclude
        return bool(clear or every or known or (sure and not vague))

    def are_confidences(self, reading: Reading) -> bool:
        """Whether forecasts may be confidences in verdicts (choices of a class): headers say so, or verdicts differ."""
        columns = [self.profile.columns[place] for place in reading.forecasts]
        sure = any("sureness" in c.roles for c in columns)
        if reading.shape.columns or sure:
            return sure
        verdicts = [c for c in self.free if {"verdict", "outcome"} & self.roles(c) and c.place not in reading.used]
        if any(PROBABILITY in c.roles for c in columns):
            verdicts = [c for c in verdicts if c.yes_no and not columns[0].agrees(c)]
        return any(self.differs(c, reading) for c in verdicts if c.yes_no or "verdict" in self.roles(c))

    def votes(self, reading: Reading) -> list[Column]:
        """Return the unused columns that may hold verdicts: experts' choices between classes, in words or 0 and 1."""
        event = reading.roles.get("event", ())
        own = [c for c in self.free if "verdict" in self.roles(c) or (c.yes_no and "outcome" in self.roles(c))]
        own += [c for c in self.plain if c.is_vote and event and self.profile.varies_within(c.place, event)]
        return [c for c in own if c.place not in reading.used]

    def harms(self, reading: Reading) -> Iterator[str]:
        """Yield the reasons for which a reading is not proposed: with it, numbers might be lost, merged or mistaken."""
        parts = {
            "outcome": self._outcome_harms,
            "verdict": self._verdict_harms,
            "event": self._key_harms,
            PROBABILITY: self._forecast_harms,
        }
        found = (own(reading) for role, own in parts.items() if role not in self.given)
        yield from (f"{listed(names, 3)} {text}" for each in found for text, names in each if names)

    def _outcome_harms(self, reading: Reading) -> Iterator[_Reason]:
        """Yield reasons against the outcome column: its cells do not fit the forecasts, or another column may be it."""
        columns, outcomes = self.profile.columns, reading.roles.get("outcome", ())
        guessed = self._guessed(reading, "event")
        bad = [place for place in outcomes if not self._admits(reading, columns[place])]
        yield f"may be no outcome of {listed(self.names_of(reading.forecasts), 3)}", self.names_of(bad)
        varying = [p for p in outcomes if self.varies(p, reading) and not self.says_which(reading, columns[p])]
        yield "would differ within events", self.names_of(varying if guessed else ())
        flags = [columns[place].name for place in outcomes if self._is_flag(reading, columns[place])]
        yield "may be no outcome, as no name says so", flags
        if not (outcomes or reading.shape == RESPONDENTS or self.beside.names):
            called, left = self.called("outcome"), self._outcomes_left(reading)
            left = [c for c in left if not self.varies(c.place, reading) or (c.place in called and guessed)]
            yield "may be the outcome", [c.name for c in left]

    def _is_flag(self, reading: Reading, column: Column) -> bool:
        """Whether yes or no may be about anything: no name says outcome, nor is it alone beside named probabilities."""
        hints, flags = {"unsure", "score", "question"}, [c for c in self.plain if c.binary or c.yes_no]
        flags = [c for c in flags if c.may_say_outcome and not hints & c.hints]
        named = all("head" in self.profile.columns[place].hints for place in reading.forecasts)
        return column in flags and not (named and len(flags) == 1)

    def _verdict_harms(self, reading: Reading) -> Iterator[_Reason]:
        """Yield reasons against a column of verdicts: it has none, or numbers are how likely yes is, not a verdict."""
        if reading.shape == SURE:
            sure, verdict = (self.profile.columns[reading.roles[role][0]] for role in (PROBABILITY, "verdict"))
            happened = self.happened(reading) or TRUTH | {"0", "1"}
            words = verdict.folded <= happened and "head" not in sure.hints
            able = self.varies(verdict.place, reading) and ("outcome" in verdict.roles or words)
            able |= "verdict" in verdict.roles
            yield "may be no verdicts", [] if able else [verdict.name]
            below = sure.below and verdict.folded <= TRUTH and sure.agrees(verdict)
            yield f"may be of yes, being below a half where {shown(verdict.name)} is no", [sure.name] if below else []

    def _key_harms(self, reading: Reading) -> Iterator[_Reason]:
        """Yield the reasons why rows that agree in event and expert (the key) may be about several things."""
        event, expert, look = reading.roles.get("event", ()), reading.roles.get("expert", ()), self.profile
        named = self.called("event") if reading.shape.numbered and not event else ()
        yield "may name the events", self.names_of(named)
        unlike = [] if self.differing(reading, every=True) else self.differing(reading)
        ends = [c.place for c in self.free if c.kind == "time" and c.is_key and c.place not in event]
        unlike += [place for place in ends if self.varies(place, reading) and place not in unlike]
        key = listed(self.names_of([place for role in reading.shape.key for place in reading.roles[role]]))
        yield f"would differ in rows that agree in {key}", self.names_of(unlike)
        yield "may say more of the event", self._many_texts(reading)
        if len(event) == 1 and self._guessed(reading, "event"):
            own, texts = (
                look.columns[event[0]].folded,
                [c for c in self.plain if c.kind == "text" and not c.folded <= TRUTH],
            )
            alike = [c.name for c in texts if c.place not in reading.used and 2 * len(c.folded & own) >= len(own)]
            yield "may name the event as well", alike
        if event and expert and self._guessed(reading, "expert"):
            few = 2 * look.count([*event, *expert]) <= look.count(event) * look.count(expert)
            yield "may be no experts, as few come again", self.names_of(expert if few else ())

    def _guessed(self, reading: Reading, role: str) -> bool:
        """Whether the column with `role` has this role neither by its header nor by the user's options."""
        places = reading.roles.get(role, ())
        return role not in self.given and not any(role in self.profile.columns[place].roles for place in places)

    def _forecast_harms(self, reading: Reading) -> Iterator[_Reason]:
        """Yield the reasons why columns of forecasts may hold something else, or others may hold the forecasts."""
        look, wide = self.profile, reading.shape == WIDE
        forecasts = [c for c in (look.columns[place] for place in reading.forecasts) if c.kind]
        names, units = [c.name for c in forecasts], {c.unit for c in forecasts if not c.binary or len(forecasts) == 1}
        named = any({PROBABILITY, "sureness"} & c.roles or "head" in c.hints or c.period for c in forecasts)
        lone = len(forecasts) == 1 and forecasts[0].binary and reading.shape in {ONE, WIDE}
        yield "may be what happened", names if lone else []
        yield f"may be of several kinds: {listed(sorted(units))}", names if len(units) > 1 else []
        yield "may be odds", [c.name for c in forecasts if c.unit == "odds"]
        yield "may be amounts", [c.name for c in forecasts if c.is_amount_by_name]
        summary = all("summary" in c.hints for c in forecasts) and not named and reading.shape != PAIRS
        yield "may sum up others", (names or ["what is left"]) if summary else []
        for each in look.sums:
            yield (
                "add up to 1",
                self.names_of(sorted(each) if len(each) > 2 and not each <= {*reading.forecasts} else ()),
            )
        yield "may say what amounts are measured in", [c.name for c in self.free if "measure" in c.hints]
        yield "may be quantiles of an amount", self.names_of(self.quantiles & {*reading.forecasts})
        yield "may be questions", names if wide and self.asks(reading) and "expert" not in self.given else []
        others = [c.name for c in forecasts if not (PROBABILITY in c.roles or "head" in c.hints or c.levels)]
        yield "may be no probabilities, as others are called", others if wide and len(others) < len(names) else []
        plain = [c for c in forecasts if "summary" not in c.hints]
        yield "may be several forecasts by each", names if wide and sides(plain) else []
        rest = [c for c in self.plain if c.place not in reading.used and c.kind == "number" and not c.binary]
        rest = [c for c in rest if not {"never", "summary"} & c.hints or c.unit == "odds"]
        scored = any("score" in c.hints and c.unit in units - {"fractions"} for c in (*forecasts, *rest))
        yield "may be scores", [c.name for c in forecasts if scored and "score" not in c.hints]
        alike = [c for c in rest if c.unit in units and c.fractions]
        named &= (
            not (reading.shape == ONE and len(alike) > 1 and "head" not in forecasts[0].hints) if forecasts else True
        )
        family = named or len(rest) <= len(forecasts) or (len(forecasts) > 1 and stems(forecasts))
        yield "may be forecasts as well", [] if family else [c.name for c in rest]

    def _admits(self, reading: Reading, column: Column) -> bool:
        """Whether the cells of `column`, read as outcomes, can be outcomes of the forecasts in `reading`."""
        look, happened = self.profile, self.happened(reading)
        words, namesakes = {bare(word) for word in happened}, self._namesakes(column)
        others = (c for c in self.free if c.is_two and c is not column)
        if namesakes and not {*reading.forecasts} <= namesakes:
            return False
        if not namesakes and any({*reading.forecasts} <= self._namesakes(other) for other in others):
            return False
        if (
            column.unit == "scale"
            and not (column.roles or "unsure" in column.hints)
            and stems([column, *(look.columns[p] for p in reading.forecasts)])
        ):
            return False
        places = [p for p in reading.roles.get("event", ()) if not reading.roles.get("class")]
        if len(words) > 1 and not words <= TRUTH and any(words <= look.columns[p].folded for p in places):
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
        # What a name calls the outcome is one in spite of cells that are neither yes nor no, which are asked about.
        named = "outcome" in self.roles(column) and len(words & (TRUTH | {"0", "1"})) == 2
        return len(words) <= 2 or stray or scales or leveled or column.levels or named

    def _namesakes(self, column: Column) -> set[int]:
        """Positions of columns of numbers whose headers share most words with that of `column`; none if all do."""
        own = {*normal(column.name).split("_")}
        able = [c for c in self.free if c.kind in {"number", ""} and not (c.binary or c is column)]
        shared = {c.place: len(own & {*normal(c.name).split("_")}) for c in able}
        most = max(shared.values(), default=0)
        return {place for place, count in shared.items() if count == most and min(shared.values()) < most}

    def _many_texts(self, reading: Reading) -> list[str]:
        """Unused columns of words that vary within events, or all if no header names events; [] unless many."""
        event = [self.profile.columns[place] for place in reading.roles.get("event", ())]
        left = [c for c in self.plain if c.kind == "text" and c.place not in reading.used and "never" not in c.hints]
        named = any("event" in self.roles(c) and c.distinct > 1 for c in event)
        keys = [reading.roles.get(role, ()) for role in ("event", "expert")]
        events, experts, both = map(self.profile.count, [*keys, [*keys[0], *keys[1]]])
        if min(events, experts) > 1 and events * experts == both == self.profile.rows:
            # Every expert is met once on every event.
            return []
        found = [c.name for c in left if not named or self.varies(c.place, reading)]
        return found if len(found) > (_OTHERS if named else _FEW) else []

    def differing(self, reading: Reading, every: bool = False) -> list[int]:
        """Unused columns that vary where the key (event, expert, ...) agrees; if `every`, in any two such rows."""
        look, numbered = self.profile, reading.shape.numbered
        places = [place for role in reading.shape.key for place in reading.roles[role]]
        places += [] if numbered else self.times[:1]
        if not places or not look.repeated(places):
            return []
        able = [c for c in self.free if c.place not in reading.used and c.is_key and c.present == 1]
        able = [c for c in able if c.is_part or c.kind != "number"]
        able = [c for c in able if self.roles(c) or c.kind == "time" or "unsure" not in c.hints]
        return [c.place for c in able if (look.distinguishes if every else look.varies_within)(c.place, places)]

    def _key_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to the key (columns that identify a row): an unused column may name events, or tell more."""
        look, shape, roles = self.profile, reading.shape, reading.roles
        if shape.numbered and not roles["event"]:
            texts = [c.place for c in self.labels if c.kind == "text" and not roles.get("outcome")]
            yield from (f"{shown(look.columns[p].name)} names no event" for p in (*self.called("event"), *texts))
        if crowd := self._many_texts(reading):
            yield f"{listed(crowd, 3)} say nothing of the event"
        places = [place for role in shape.key for place in reading.roles[role]]
        repeated = look.repeated(places) if places else 0
        names = listed([look.columns[place].name for place in places])
        many = look.count(places) == 1 or (2 * repeated > look.rows and not self.times) if repeated else False
        if shape.numbered and many and normal(look.columns[places[0]].name) != "event":
            yield f"{counted(repeated, 'row')} repeat events, by {names}"
            return
        for name in self.names_of(self.differing(reading, every=True)):
            yield f"{shown(name)}, which distinguishes {counted(repeated, 'row')}, says nothing of {names}"

    def _column_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to columns of forecasts that the user has not named: one may be an outcome or summary."""
        shape, look = reading.shape, self.profile
        forecasts = [look.columns[place] for place in reading.forecasts]
        open_ = [c for c in forecasts if not self.given_roles.settles(c.name)]
        unsure = [c for c in open_ if shape in (WIDE, RESPONDENTS) and "unsure" in c.hints and "head" not in c.hints]
        if not reading.roles.get("outcome"):
            unsure += [c for c in open_ if "outcome" in c.roles and "unsure" not in c.hints]
        yield from (f"{shown(c.name)} is a forecast, and not what happened" for c in unsure)
        yield from (f"{shown(c.name)} is a forecast of its own" for c in open_ if "summary" in c.hints)
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
        """Whether all headers of forecast columns are questions, or are events in the table of outcomes."""
        columns = (self.profile.columns[place] for place in reading.forecasts)
        return all("question" in c.hints or c.name in self.beside.events for c in columns)

    def _aside_caveats(self, reading: Reading) -> Iterator[str]:
        """Yield objections to leaving columns unused that hold numbers like the forecasts, or words and numbers."""
        forecasts = [self.profile.columns[place] for place in reading.forecasts]
        one = None if reading.shape.columns else forecasts[0]
        named = one and PROBABILITY in self.roles(one) and (reading.shape == SURE or "sureness" not in one.roles)
        scales = {c.span[1] > 1 for c in forecasts if len(c.known)}
        # The other of two that add up to 1 says the same.
        others = (pair for pair in self.profile.sums if len(pair) == 2 and one and one.place in pair)
        aside, numbers, plain = reading.used.union(*others), {*self.numbers}, {*self.plain}
        for c in self.free:
            if c.place in aside or self.given_roles.settles(c.name) or self.roles(c) & {"prior", *FACTS}:
                continue
            graded = "score" in c.hints and c.spread == "scale"
            none = not c.fractions or ("never" in c.hints and is_never(c.name))
            if ({"never", "score"} & c.hints and not graded and none) or (named and "summary" in c.hints):
                continue
            # Beside the one that is called the forecast, others may be if they are called probabilities.
            if one and named and reading.shape != ONE and (one.named(PROBABILITY) or "head" not in c.hints):
                continue
            alike = "score" in c.hints or (c.forecasts and len(c.known) and not c.binary and {c.span[1] > 1} == scales)
            alike = alike or (c in numbers and bool(c.kind) and not (one and c.binary))
            if alike or (c.kind == "mixed" and c in plain):
                yield f"{shown(c.name)} is no forecast"
