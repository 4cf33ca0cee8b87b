"""Classes of events by the words that name them, and words for events without an outcome.

0 and 1, no and yes, false and true are understood in any case, and their second is the positive one. Of two other
names, which one the probabilities are about is never guessed: the user says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from opinionpool.arrays import Index, Mask
from opinionpool.errors import Note
from opinionpool.findings import Remedy, fault, finding
from opinionpool.labels import ALWAYS_VOID, FAMILIES, UNSETTLED, VOID, Options
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


@dataclass(frozen=True)
class ClassOptions:
    """The user's options on classes: the positive one, which a single probability is about, and all in their order."""

    positive: str | None = None  # the class that probabilities are about
    classes: tuple[str, ...] = ()  # all classes in order; empty if not given

    def about(self, written: str) -> ClassOptions:
        """Return a copy with `written` as the positive class; raise an error if the user named another one."""
        if self.positive is not None and key(self.positive) != key(written):
            raise fault("positive-of-one", written=written, positive=self.positive)
        return replace(self, positive=written)


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


def _family(words: Collection[str]) -> tuple[str, str] | None:
    """Return (negative, positive) if `words` are two opposites, as no and yes, or rain no and rain yes; else None."""
    heads = {word.rpartition(" ")[0] for word in words}
    head = f"{heads.pop()} ".lstrip() if len(heads) == 1 else ""
    pairs = ((f"{head}{no}", f"{head}{yes}") for no, yes in FAMILIES if not head or len(yes) > 1)
    return next((pair for pair in pairs if {*pair} == {*words}), None)


class Matcher:
    """Search for the class that a word names: by its exact text, else without case, or 0 for no and 1 for yes."""

    def __init__(self, classes: Sequence[object]) -> None:
        self._exact = {str(label): i for i, label in enumerate(classes)}
        self._folded: dict[str, int] = {}
        for i, label in enumerate(classes):
            self._folded[key(str(label))] = i if key(str(label)) not in self._folded else -1
        for digit, word in zip(FAMILIES[0], _family(self._folded) or (), strict=False):
            self._folded[digit] = self._folded[word]

    def find(self, word: str) -> int | None:
        """Return the position of the class that `word` names, None if it names no class."""
        position = self._exact.get(word, self._folded.get(key(word), -1))
        return None if position < 0 else position


def order_classes(written: Sequence[str], asked: ClassOptions) -> tuple[object, ...]:
    """K >= 2 classes `written` in a table, in the order in `asked`, else sorted; of two, the positive one is last.

    >>> order_classes(["draw", "home", "away"], ClassOptions())
    ('away', 'draw', 'home')
    >>> order_classes(["yes", "no"], ClassOptions()), order_classes(["1", "0"], ClassOptions())
    (('no', 'yes'), (0, 1))
    """
    ordered = sorted(written, key=_place)
    if asked.classes:
        matcher = Matcher(written)
        found = [matcher.find(label) for label in asked.classes]
        if sorted(-1 if i is None else i for i in found) != list(range(len(written))):
            raise fault("other-classes", classes=ordered, asked=asked.classes)
        ordered = [written[i] for i in found if i is not None]
    if len(ordered) > 2:
        if asked.positive is not None:
            raise fault("positive-of-many", number=len(ordered), classes=ordered)
        return tuple(ordered)
    return _with_positive(ordered, asked, written[0])


def _place(label: str) -> tuple[float, str]:
    """Return the sort key of a class: numbers by value, then words in alphabetical order."""
    number = _number(label)
    return (float("inf") if number is None else number), label


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None


def as_listed(asked: ClassOptions, written: Sequence[str], *, long: bool) -> ClassOptions:
    """Return `asked` with all classes as the headers of a wide table list them, if the user names no class.

    `written` are these classes; unless they are three or more, and not all numbers, `asked` is returned unchanged, as
    it is for a `long` table.

    >>> as_listed(ClassOptions(), ["low", "medium", "high"], long=False).classes
    ('low', 'medium', 'high')
    """
    if long or asked.classes or asked.positive is not None or len(written) < 3 or None not in map(_number, written):
        return asked
    return replace(asked, classes=tuple(written))


def two_classes(seen: Mapping[str, str], asked: ClassOptions) -> tuple[object, ...]:
    """Return the negative and the positive class from the outcomes `seen` and the user's options on classes.

    `seen` has the spelling of each outcome, by its `key`.

    >>> two_classes({"yes": "Yes"}, ClassOptions()), two_classes({}, ClassOptions("rain"))
    (('No', 'Yes'), ('not rain', 'rain'))
    """
    known = dict(seen)
    wanted = [*asked.classes, asked.positive] if asked.classes or len(seen) < 2 else []
    for label in wanted:
        if label is not None:
            known.setdefault(key(label), label)
    strange = [label for word, label in known.items() if word not in {key(each) for each in asked.classes}]
    if strange and len(asked.classes) == 2:
        raise fault("strange-class", classes=asked.classes, strange=strange[0], way=_way(strange[0]))
    if len(known) > 2 or len(asked.classes) > 2:
        raise fault("too-many-outcomes", number=len(known), outcomes=[*known.values()])
    family = next((family for family in FAMILIES if set(known) <= set(family)), None)
    if family is not None:
        return _with_positive([known.get(word) or _in_style(word, known) for word in family], asked)
    labels = list(known.values())
    if len(labels) == 1:
        if asked.positive is None:
            raise fault("one-ending", None, [Remedy({"positive": labels[0]})], label=labels[0])
        labels.append(f"not {labels[0]}")
    return _with_positive(sorted(labels), asked)


def _way(word: str) -> str:
    """Return the advice to the user on `word`, an outcome that is not one of the classes."""
    if any(key(word) in family for family in FAMILIES):
        return "Outcomes need the names of the classes: write them so, or name the classes as the outcomes do"
    return "If it means that an event is not resolved, say --missing-value, if void, --void-value"


def _with_positive(labels: Sequence[str], asked: ClassOptions, first: str | None = None) -> tuple[object, ...]:
    """Return the two classes, the positive one last: the user's choice, else a word such as yes, else `first`."""
    keys = [key(label) for label in labels]
    family = _family(keys)
    if asked.positive is not None:
        positive = key(asked.positive)
    elif asked.classes:
        positive = key(asked.classes[-1])
    elif family:
        positive = family[1]
    elif first is not None:
        positive = key(first)
    else:
        scale = Scale.of_verdicts(labels, grades=True)
        one, other = labels if scale is None else scale.levels[::-1]
        ways = [Remedy({"positive": label}) for label in (one, other)]
        raise fault("which-positive", None, ways, outcomes=labels, one=one, other=other)
    if positive not in keys:
        about = str(asked.positive)
        raise fault("other-positive", outcomes=labels, about=about, meant=meant(about, labels))
    pair = (labels[1 - keys.index(positive)], labels[keys.index(positive)])
    return tuple(int(key(label)) for label in pair) if family == FAMILIES[0] else pair


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

    def beside(self, words: Collection[str]) -> NoOutcome:
        """Return a copy in which words such as "invalid" may be a class, if `words` has a single other word.

        >>> ["invalid" in USUAL.beside(words).void for words in ({"valid", "invalid"}, {"yes", "invalid"})]
        [False, True]
        """
        others = {key(word) for word in words} - self.every
        if len(others) != 1 or any(others <= set(family) for family in FAMILIES):
            return self
        return replace(self, void=self.void - (VOID - ALWAYS_VOID - self.own))

    def coded(self, words: Collection[str], classes: Collection[str] = ()) -> NoOutcome:
        """Return a copy in which -1 means missing, if the other `words` are 0, or 0 and 1, and no class is -1.

        >>> ["-1" in USUAL.coded(words).missing for words in ({"0", "1", "-1"}, {"0", "-1"}, {"-1", "1"}, {"yes"})]
        [True, True, False, False]
        """
        others = {key(word) for word in words} - self.every - _CODES
        coded = "-1" not in classes and FAMILIES[0][0] in others <= {*FAMILIES[0]}
        return replace(self, missing=self.missing | _CODES) if coded else self

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
    if _may_be_forecast(word):
        return void
    return unknown if looks_numeric(word) else [*unknown, *void]


def _may_be_forecast(word: str) -> bool:
    """Whether `word` is a number from 0 to 1, so that to declare it missing may remove forecasts too."""
    try:
        return 0.0 <= float(word.replace(",", ".")) <= 1.0
    except ValueError:
        return False


@dataclass(frozen=True)
class EventOptions:
    """Options (answers to choose from) of T events: the classes, if all events share them, or a list for each."""

    labels: Sequence[str]  # the L labels that options of all events have
    keys: Index | None  # (P,); pairs of event and label that occur, as event * L + label, increasing; None if shared
    slots: Index  # (P,), or (L,) if shared; position of each label among its event's options
    sizes: Index  # (T,); number of options of each event

    @classmethod
    def shared(cls, labels: Sequence[str], classes: Sequence[object], events: int) -> EventOptions:
        """Options of events that share `classes`; `labels` are the words for the classes in the table."""
        matcher = Matcher(classes)
        slots = np.array([matcher.find(label) for label in labels], dtype=np.intp)
        return cls(labels, None, slots, np.full(events, len(classes)))

    @classmethod
    def of(cls, labels: Sequence[str], event: Index, label: Index, events: int) -> EventOptions:
        """Options of each event, in the order of its rows; `event` and `label` are positions, one for each row."""
        keys, first = np.unique(event * len(labels) + label, return_index=True)
        owner = keys // max(len(labels), 1)
        sizes = np.bincount(owner, minlength=events)
        order = np.lexsort((first, owner))
        slots = np.empty(len(keys), dtype=np.intp)
        slots[order] = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[owner[order]]
        return cls(labels, keys, slots, sizes)

    @property
    def of_events(self) -> Options:
        """Labels of each event's own options, in order of first appearance; an error if events share classes."""
        assert self.keys is not None
        owner = self.keys // max(len(self.labels), 1)
        order = np.lexsort((self.slots, owner))
        words = [self.labels[code] for code in (self.keys[order] % max(len(self.labels), 1)).tolist()]
        ends = np.cumsum(self.sizes).tolist()
        return tuple(tuple(words[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True))

    def slot(self, event: Index, label: Index) -> Index:
        """Position of each row's option among the options of its event, (M,); `event`, `label`: (M,) positions."""
        return self.slots[label if self.keys is None else np.searchsorted(self.keys, event * len(self.labels) + label)]

    @property
    def note(self) -> Note:
        """Note on how many options events have, and how many different sets of options there are."""
        sets = list(dict.fromkeys(frozenset(labels) for labels in self.of_events if labels))
        used = self.sizes[self.sizes > 0]
        least, most = int(used.min()), int(used.max())
        many = f"{least}" if least == most else f"{least} to {most}"
        return finding("options", many=many, count=len(sets))
