"""Classes of events by the words that name them, words for events without an outcome, and options of events.

0 and 1, no and yes, false and true are understood in any case, and their second is the positive one. Of two other
names, which one the probabilities are about is never guessed: the user says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite

import numpy as np

from opinionpool.arrays import Index, Mask
from opinionpool.errors import Note
from opinionpool.findings import Remedy, fault, finding
from opinionpool.labels import ALWAYS_VOID, FAMILIES, UNSETTLED, VOID, Options, option_slots
from opinionpool.scales import Scale
from opinionpool.tables.table import Words
from opinionpool.tables.units import MISSING, looks_numeric
from opinionpool.text import meant

# A whole number, whatever zeros stand behind the point, or up to two behind a comma: "1,000" is a thousand.
_WHOLE = re.compile(r"([0-9]+)(?:\.0+|,00?)?\s*(%?)", re.ASCII)
_RESOLVED = re.compile(r"resolve[sd](?: as| to)?[\s:]+(?=\S)", re.IGNORECASE)
_CERTAIN = {"0": "0", "100": "1"}
# Words that say whether something happened.
YES = frozenset(family[1] for family in FAMILIES) | {"pass", "win", "won"}
TRUTH = frozenset(family[0] for family in FAMILIES) | {"fail", "loss", "lose", "lost"} | YES


def bare(word: str) -> str:
    """Return the text of an outcome without "Resolved" or "resolves to" before it.

    >>> bare("Resolved YES"), bare("resolves to: no"), bare("Resolved")
    ('YES', 'no', 'Resolved')
    """
    return _RESOLVED.sub("", word)


def key(word: str) -> str:
    """Return the key by which classes are compared: lower case, ``"1.00"`` as ``"1"``, 0% and 100% as 0 and 1.

    >>> key("Yes"), key("1.00"), key("007"), key("100%"), key("1,000")
    ('yes', '1', '007', '1', '1,000')
    """
    word = bare(word.strip().lower())
    match = _WHOLE.fullmatch(word)
    if match is None:
        return word
    return _CERTAIN.get(match[1], word) if match[2] else match[1]


def says_which(words: Words, events: Index, labels: Words) -> Mask | None:
    """Return the mask of rows whose class happened, by a yes in `words`; None if the words cannot be read so.

    `words` has yes or no for each row: whether the row's class is the outcome of its event. `events` has the event of
    each row and `labels` its class, both below 0 where the row has none. None if there are other words or no yes, or if
    an event has two classes with yes.
    """
    if not {*map(key, words.values)} <= TRUTH - {*map(key, labels.values)}:
        return None
    yes = words.expand(np.array([key(word) in YES for word in words.values], dtype=bool), False)
    yes &= (events >= 0) & (labels.codes >= 0)
    pairs = np.unique(np.stack([events[yes], labels.codes[yes]]), axis=1)[0]
    return yes if len(pairs) == len(np.unique(pairs)) > 0 else None


def _family(words: Collection[str]) -> tuple[str, ...]:
    """Return (negative, positive) if `words` are two opposites, as no and yes, or rain no and rain yes; else ()."""
    heads = {word.rpartition(" ")[0] for word in words}
    head = f"{heads.pop()} ".lstrip() if len(heads) == 1 else ""
    pairs = ((f"{head}{no}", f"{head}{yes}") for no, yes in FAMILIES if not head or len(yes) > 1)
    return next((pair for pair in pairs if {*pair} == {*words}), ())


class Matcher:
    """Search for the class that a word names: by its exact text, else without case, or 0 for no and 1 for yes."""

    def __init__(self, classes: Sequence[object]) -> None:
        self._exact = {str(label): i for i, label in enumerate(classes)}

    @cached_property
    def _folded(self) -> dict[str, int]:
        """Position of each class by its `key`, -1 if several have the same; also by 0 and 1 if they are no and yes."""
        found: dict[str, int] = {}
        for label, i in self._exact.items():
            found[key(label)] = -1 if key(label) in found else i
        return found | {digit: found[word] for digit, word in zip(FAMILIES[0], _family(found), strict=False)}

    def find(self, word: str) -> int | None:
        """Return the position of the class that `word` names, None if it names no class."""
        position = self._exact[word] if word in self._exact else self._folded.get(key(word), -1)
        return None if position < 0 else position


@dataclass(frozen=True)
class ClassOptions:
    """The user's options on classes: the positive one, which a single probability is about, and all in their order."""

    positive: str | None = None  # the class that probabilities are about
    classes: tuple[str, ...] = ()  # all classes in order; empty if not given


def order_classes(
    names: Sequence[str], asked: ClassOptions, first: str | None = None, in_order: bool = False
) -> tuple[object, ...]:
    """Return the K >= 2 classes `names` in the order in `asked`, else sorted; of two, the positive one is last.

    If `asked` does not say which of two is positive, it is a word such as yes, else `first`; without it, an error asks.
    With `in_order`, three or more classes stay as they are, unless they are numbers or the user names a class.

    >>> order_classes(["draw", "home", "away"], ClassOptions())
    ('away', 'draw', 'home')
    >>> order_classes(["low", "medium", "high"], ClassOptions(), in_order=True)
    ('low', 'medium', 'high')
    >>> order_classes(["yes", "no"], ClassOptions()), order_classes(["1", "0"], ClassOptions())
    (('no', 'yes'), (0, 1))
    """
    ordered = sorted(names, key=lambda label: (_number(label), label))
    if in_order and len(names) > 2 and _number(ordered[-1]) == inf:
        ordered = [*names]
    if asked.classes:
        found = [*map(Matcher(names).find, asked.classes)]
        places = [i for i in found if i is not None]
        if sorted(places) != [*range(len(names))] or len(places) < len(found):
            raise fault("other-classes", classes=ordered, asked=asked.classes)
        ordered = [names[i] for i in places]
    if len(ordered) > 2:
        if asked.positive is not None:
            raise fault("positive-of-many", number=len(ordered), classes=ordered)
        return tuple(ordered)
    keys = [*map(key, ordered)]
    positive = (asked.classes or _family(keys) or (first,))[-1] if asked.positive is None else asked.positive
    if positive is None:
        scale = Scale.of_verdicts(ordered, grades=True)
        one, other = ordered if scale is None else scale.levels[::-1]
        ways = [Remedy({"positive": label}) for label in (one, other)]
        raise fault("which-positive", None, ways, outcomes=ordered, one=one, other=other)
    if key(positive) not in keys:
        raise fault("other-positive", outcomes=ordered, about=positive, meant=meant(positive, ordered))
    pair = ordered if key(positive) == keys[1] else ordered[::-1]
    return tuple(int(key(label)) for label in pair) if {*keys} == {*FAMILIES[0]} else tuple(pair)


def _number(label: str) -> float:
    """Return the number that a class is, infinity if it is another word."""
    try:
        number = float(label)
    except ValueError:
        return inf
    return number if isfinite(number) else inf


def two_classes(seen: Mapping[str, str], asked: ClassOptions) -> list[str]:
    """Return the names of two classes, in any order, from the outcomes `seen` and the user's options on classes.

    `seen` has the spelling of each outcome, by its `key`.

    >>> two_classes({"yes": "Yes"}, ClassOptions()), two_classes({}, ClassOptions("rain"))
    (['No', 'Yes'], ['rain', 'not rain'])
    """
    known = {key(label): seen.get(key(label), label) for label in asked.classes} or dict(seen)
    if asked.positive is not None and len(known) < 2:
        known.setdefault(key(asked.positive), asked.positive)
    if len(known) > 2:
        raise fault("too-many-outcomes", number=len(known), outcomes=[*known.values()])
    family = next((family for family in FAMILIES if {*known} <= {*family}), None)
    if family is not None:
        return [known.get(word) or _in_style(word, known) for word in family]
    if len(known) == 1:
        (label,) = known.values()
        if asked.positive is None:
            raise fault("one-ending", None, [Remedy({"positive": label})], label=label)
        known[""] = f"not {label}"
    return [*known.values()]


def _in_style(word: str, known: Mapping[str, str]) -> str:
    """Return `word` capitalized like the other class in `known`: "No" beside "Yes"."""
    other = next(iter(known.values()), "")
    return word.upper() if other.isupper() else word.capitalize() if other[:1].isupper() else word


# Words in files of sites for questions that were annulled, or settled at the market's price.
_VOID = VOID | {"n/a", "cancel", "mkt"}
# What a table of zeros and ones has for "not known".
_CODES = frozenset({"-1", "-1.0"})


@dataclass(frozen=True)
class NoOutcome:
    """Words, in lower case, that say that an event has no outcome: not known ("missing"), or annulled ("void")."""

    missing: frozenset[str] = MISSING  # for "not known"
    void: frozenset[str] = _VOID  # for "void"
    own: frozenset[str] = frozenset()  # words for "void" that the user names

    @classmethod
    def of(cls, missing: Sequence[str], void: Sequence[str], classes: Sequence[str]) -> NoOutcome:
        """Return the usual words and the user's; usual words for void in `missing` or `classes` are left out."""
        unknown, own = (frozenset(bare(word.strip().lower()) for word in words) for words in (missing, void))
        return cls(MISSING | unknown, (_VOID - unknown - frozenset(map(key, classes))) | own, own)

    def beside(self, words: Collection[str], classes: Collection[str] = ()) -> NoOutcome:
        """Return the words for no outcome if `words` are those of the outcomes, and `classes` are named elsewhere.

        Words such as "invalid" may be a class beside a single other word; -1 means missing beside 0, or 0 and 1.

        >>> ["invalid" in USUAL.beside(words).void for words in ({"valid", "invalid"}, {"yes", "invalid"})]
        [False, True]
        >>> ["-1" in USUAL.beside(words).missing for words in ({"0", "1", "-1"}, {"0", "-1"}, {"-1", "1"}, {"yes"})]
        [True, True, False, False]
        """
        seen, others = ({*map(key, some)} - self.every for some in (words, [*words, *classes]))
        if any("0" in each <= {"0", "1"} | _CODES for each in (seen, others)) and "-1" not in classes:
            return replace(self, missing=self.missing | _CODES)
        if len(others) == 1 and not others <= TRUTH:
            return replace(self, void=self.void - (VOID - ALWAYS_VOID - self.own))
        return self

    @property
    def every(self) -> frozenset[str]:
        """All words for no outcome: missing, void, and not resolved yet."""
        return self.missing | self.void | UNSETTLED


USUAL = NoOutcome()


def none_remedies(word: str) -> list[Mapping[str, object]]:
    """Return the options that declare `word` missing or void; none if it says what happened, such as yes or lost."""
    unknown: list[Mapping[str, object]] = [{"missing_values": (word,)}]
    void: list[Mapping[str, object]] = [{"void_values": (word,)}]
    if key(word) in TRUTH:
        return []
    # To declare a number from 0 to 1 missing may remove forecasts too.
    if 0.0 <= _number(word.replace(",", ".")) <= 1.0:
        return void
    return unknown if looks_numeric(word) else [*unknown, *void]


@dataclass(frozen=True)
class EventOptions:
    """Options (answers to choose from) of T events: one set, the classes, that all events share, or a set for each."""

    labels: Sequence[str]  # the L labels of options in the table
    keys: Index | None  # (P,); pairs of event and label that occur, as event * L + label, increasing; None if shared
    slots: Index  # (P,), or (L,) if shared; position of each label among its event's options
    sizes: Index  # (T,); number of options of each event
    common: tuple[object, ...] = ()  # the classes, if events share them

    @classmethod
    def shared(cls, labels: Sequence[str], classes: Sequence[object], events: int) -> EventOptions:
        """Return the options of events that share `classes`; `labels` are the words for the classes in the table."""
        slots = np.array([*map(Matcher(classes).find, labels)], dtype=np.intp)
        return cls(labels, None, slots, np.full(events, len(classes)), tuple(classes))

    @classmethod
    def of(cls, labels: Sequence[str], event: Index, label: Index, events: int) -> EventOptions:
        """Return the options of each event, in the order of its rows; `event`, `label`: (rows,), positions."""
        keys, first = np.unique(event * len(labels) + label, return_index=True)
        owner = keys // max(len(labels), 1)
        sizes = np.bincount(owner, minlength=events)
        order = np.lexsort((first, owner))
        slots = np.empty(len(keys), dtype=np.intp)
        slots[order] = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[owner[order]]
        return cls(labels, keys, slots, sizes)

    @cached_property
    def of_events(self) -> Options:
        """Labels of each event's own options, in order of first appearance; an error if events share classes."""
        assert self.keys is not None
        owner, label = np.divmod(self.keys, max(len(self.labels), 1))
        words = [self.labels[code] for code in label[np.lexsort((self.slots, owner))].tolist()]
        ends = np.cumsum(self.sizes).tolist()
        return tuple(tuple(words[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True))

    @property
    def classes(self) -> tuple[object, ...]:
        """Names of the K positions of options: the classes if events share them, else "option 1" and so on."""
        return self.common if self.keys is None else option_slots(self.of_events)

    def labels_of(self, event: int) -> tuple[object, ...]:
        """Return the labels of the options of one event; `event` is its position."""
        return self.common if self.keys is None else self.of_events[event]

    def slot(self, event: Index, label: Index) -> Index:
        """Return the position of each row's option among those of its event, (M,); `event`, `label`: (M,) positions."""
        return self.slots[label if self.keys is None else np.searchsorted(self.keys, event * len(self.labels) + label)]

    @property
    def note(self) -> Note:
        """Note on how many options events have, and how many different sets of options there are."""
        sizes = np.unique(self.sizes[self.sizes > 0]).tolist()
        many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return finding("options", many=many, count=len({frozenset(labels) for labels in self.of_events if labels}))
