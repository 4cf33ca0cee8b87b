"""Roles of columns: which ones a header stands for, by the lists in ``roles.toml``, and which ones a shape needs."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import TypeAlias

from opinionpool.arguments import expect_type, names_given
from opinionpool.errors import ArgumentError
from opinionpool.findings import Place, fault
from opinionpool.text import listed, meant, shown, suggestion

# Text between the parts of a key of several columns.
BETWEEN = " / "
# From a role to its column, to several that are its key together, or to None if no column plays it.
Columns: TypeAlias = Mapping[str, "str | Sequence[str] | None"]

_DATA = tomllib.loads(files("opinionpool.tables").joinpath("roles.toml").read_text(encoding="utf-8"))
_NAMES: Mapping[str, tuple[str, ...]] = {role: tuple(names.split()) for role, names in _DATA["roles"].items()}
_WORDS: Mapping[str, frozenset[str]] = {kind: frozenset(words.split()) for kind, words in _DATA["words"].items()}
# Words of a deal, which are no answers.
DEAL = _WORDS["deal"]
# Lists of `roles.toml` that say how a column is to be read, and are no roles that a user can give.
_HINTS = ("sureness", "other")
SYNONYMS: Mapping[str, tuple[str, ...]] = {role: names for role, names in _NAMES.items() if role not in _HINTS}
ROLES = tuple(SYNONYMS)
# What an event is called for people, such as the wording of a question: it is shown and otherwise plays no part.
TEXT = "text"
# Roles that several columns can play together, as a key.
KEYED = ("event", "expert", "topic")
# The role of columns of forecasts, of which there may be several.
PROBABILITY = "probability"
# Roles that a value within an object can play by its own name, as in "question.resolution".
_WITHIN = frozenset({"event", "expert", PROBABILITY, "outcome", "time", "closes", "resolved_at", "topic", TEXT})
_QUESTION = re.compile(rf"(?:g\d+_?)?(?:{'|'.join(_WORDS['question'])})_?\d+[a-z]?(?![^\W_])")
_DEADLINE = re.compile(rf"_before_(?=(?:19|20)\d\d|(?:\d+_)?(?:{'|'.join(_WORDS['month'])})(?![^\W_]))")
_RANGE = re.compile(r"\(\s*[01]\s*[-–]\s*(?:[2-9]|10)\s*\)")
_DATE = re.compile(r"(?:19|20)\d\d_\d{1,2}(?:_\d{1,2})?|\d{1,2}_\d{1,2}_(?:19|20)?\d\d")
_SAYS_PROBABILITY = re.compile(r"[\W_]+(?:p|prob|probs|proba|probability)$", re.IGNORECASE)
# Where a word begins within others: userId, HITId.
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z][A-Z])(?=[A-Z][a-z])")
# German writes several words as one.
_COMPOUND = tuple(word for word in _WORDS["head"] if len(word) > 4)


@lru_cache(1 << 14)
def normal(name: str) -> str:
    """Return a header as headers are compared: in lower case, without unit, accents or question mark.

    >>> normal("Question no."), normal("userUuid"), normal("Probability (%)"), normal("Événement"), normal("Happened?")
    ('question_id', 'user_id', 'probability', 'evenement', 'happened')
    """
    name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    spaced = re.sub(_CAPITAL, "_", re.sub(r"[(\[]?%[)\]]?|\?$", "", name.rstrip()))
    plain = re.sub(r"[\s_\-.]+", "_", spaced).strip("_").lower()
    # What is called a number or code of something is its id.
    return re.sub(r"(?:^|(?<=_))[ug]uid$|(?<=[^_]_)(?:nr|no|code)$", "id", plain)


def roles_of(name: str) -> frozenset[str]:
    """Return the roles that a header names, by the synonyms of each role in ``roles.toml``.

    >>> sorted(roles_of("Forecaster")), sorted(roles_of("contract.resolution")), sorted(roles_of("prior:home"))
    (['expert'], ['outcome'], ['prior'])
    """
    parts = name.split(".")
    whole = normal(name)
    # What stands in brackets, as a zone, is no part of the name unless the list has it.
    ways = {whole, normal(re.sub(r"\s*[(\[][^()\[\]]*[)\]]$", "", name))}
    found = frozenset(role for role, names in _NAMES.items() if not ways.isdisjoint(names))
    found |= {"time"} if whole.endswith("_timestamp") else set()
    for level in range(1, len(parts)):
        inner = normal(".".join(parts[level:]))
        found = found or frozenset(role for role in _WITHIN if inner in _NAMES[role])
    stamp = "timestamp" in whole.split("_") and _WORDS["ends"].isdisjoint(whole.split("_"))
    found = found or frozenset({"time"} if stamp else ())
    return found | ({"prior"} if normal(name.partition(":")[0]) == "prior" else set())


def words_of(name: str) -> frozenset[str]:
    """Return the kinds of words in a header, as ``roles.toml`` lists them; for a question only "question".

    >>> [sorted(words_of(name)) for name in ("row_id", "prob_win", "Q1: on time", "Rain before May? (0-100)", "ann")]
    [['index', 'never', 'part'], ['head', 'unsure'], ['question'], ['question'], []]
    >>> [sorted(words_of(name)) for name in ("Storm before July", "Rain before 1 May", "p before talk")]
    [[], [], ['head', 'summary']]
    """
    own = _DEADLINE.sub("_", normal(name.rpartition(".")[2]))
    asks = re.search(r"\?\s*(?:%|[(\[][^?]*[)\]])?\s*$", name) and not any(own in words for words in _WORDS.values())
    if asks or _QUESTION.match(own):
        return frozenset({"question", *(["score"] if _RANGE.search(name) else [])})
    # A word before a number, as in "expert number 3", is part of a name.
    numbered = rf"_(?!(?:{'|'.join(_WORDS['head'] | _WORDS['score'])})_)[^\W\d_]+_(?=\d+$)"
    parts = re.sub(numbered, "_", re.sub(r"(?<=[a-z])(?=\d)", "_", own)).split("_")
    found = {kind for kind, words in _WORDS.items() if own in words or not words.isdisjoint(parts)}
    if {*_NAMES["expert"]} & {*parts} and all(len(part) == 1 for part in parts if part in _WORDS["never"]):
        # A single letter tells experts from each other.
        found -= {"never"} if own not in _WORDS["never"] else set()
    if "never" in found and own not in _WORDS["never"] and not {parts[0], parts[-1]} & _WORDS["never"]:
        # In the middle of a name it says less.
        found = found - {"never"} | {"summary"}
    if says_so := any(part.endswith(_COMPOUND) or (part in _WORDS["head"] and len(part) > 1) for part in parts):
        # A word for probabilities says more than others do: "elo_prob".
        found = found - {"never", "score"} | {"head"}
    found = found | {"score"} if _RANGE.search(name) else found - {"score"} if "%" in name else found
    found |= {"never"} if own in _WORDS["again"] and not says_so else set()
    found |= {"never", "index"} if not own or name.startswith("Unnamed:") else set()
    found -= {"never"} if own[-1:].isdigit() and is_period(name) else set()
    return frozenset(found - {"question", "totals", "key", "period", "month", "deal", "unit"})


def is_never(name: str) -> bool:
    """Return True if a header as a whole is a word for something that is no forecast, such as an index."""
    own = normal(name)
    return not own or own in _WORDS["never"] | _WORDS["score"]


def is_period(name: str) -> bool:
    """Return True if a header is a day, a month or a numbered round.

    >>> [is_period(name) for name in ("2026-01-31", "Jan", "Round 2", "week", "may_b", "538")]
    [True, True, True, True, False, False]
    """
    own = normal(name)
    words = {part for part in re.split(r"[_/]|(?<=[a-z])(?=\d)", own) if not part.isdigit()}
    return bool(_DATE.fullmatch(own.replace("/", "_"))) or bool(words and words <= _WORDS["period"] | _WORDS["month"])


def unnumbered(names: Sequence[str]) -> list[str]:
    """Return headers without the numbers that programs add to repeated headers, as in x, x.1, x.2.

    >>> unnumbered(["id", "x", "x.1", "p.2", "gpt-4", "gpt-4.1"])
    ['id', 'x', 'x', 'p.2', 'gpt-4', 'gpt-4.1']
    """
    plain, given = [re.sub(r"(?<=[^\W\d])\.\d+$", "", name) for name in names], {*names}
    return [one if one in given else name for one, name in zip(plain, names, strict=True)]


def names_unit(name: str) -> bool:
    """Whether the last word of a header is a unit of amounts."""
    return normal(name).split("_")[-1] in _WORDS["unit"]


def names_total(name: str) -> bool:
    """Whether the name of a row or expert says that it is a summary of others, such as "Mean" or "Total".

    >>> names_total("Mean:"), names_total("Column average"), names_total("Mean reversion?")
    (True, True, False)
    """
    return normal(name.rstrip(" :=")) in _WORDS["totals"]


def names_key(name: str) -> bool:
    """Whether the name of a row or expert says that it holds the right answers.

    >>> names_key("Correct answers"), names_key("Key:"), names_key("Keynes")
    (True, True, False)
    """
    return normal(name.rstrip(" :=")) in _WORDS["key"]


def split_names(names: Sequence[str], mark: str) -> tuple[tuple[str, str], ...] | None:
    """Return (expert, class) of each header, split at the last `mark` ("": non-letter); None if a pair does not occur.

    >>> split_names(["a:x:home", "a:x:away"], ":"), split_names(["vit_prob_cat", "vit_prob_dog"], "")
    ((('a:x', 'home'), ('a:x', 'away')), (('vit', 'cat'), ('vit', 'dog')))
    >>> split_names(["openai:a", "other:b"], ":")
    """
    cut = [name.rpartition(mark)[::2] for name in names] if mark else []
    pairs = [(expert.strip(), label.strip()) for expert, label in cut]
    if not mark:
        parts = [re.fullmatch(r"(.*[^\W_])[\W_]+([^\W_]+)", name) for name in names if ":" not in name]
        pairs = [(_SAYS_PROBABILITY.sub("", part[1]) or part[1], part[2]) for part in parts if part is not None]
    experts, classes = dict.fromkeys(one for one, _ in pairs), dict.fromkeys(label for _, label in pairs)
    whole = len(pairs) == len(set(pairs)) == len(names) == len(experts) * len(classes)
    return tuple(pairs) if whole and pairs and "" not in {*experts, *classes} else None


def verdict_pairs(names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the experts who have a column named as verdict and one as confidence, and the positions of both.

    >>> verdict_pairs(["id", "gpt_verdict", "gpt confidence", "answer_b", "confidence_b"])
    [('gpt', 1, 2), ('b', 3, 4)]
    """
    found: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names):
        parts = normal(name).split("_")
        for word, rest in ((parts[-1], name[: -len(parts[-1])]), (parts[0], name[len(parts[0]) :])):
            expert = rest.strip(" _-.:")
            for role in ("verdict", "sureness"):
                if expert and word in _NAMES[role]:
                    found.setdefault(expert, {}).setdefault(role, place)
    return [(expert, own["verdict"], own["sureness"]) for expert, own in found.items() if len(own) == 2]


def class_names(headers: Sequence[str], happened: Collection[str] = ()) -> list[str]:
    """Return the classes that columns of probabilities are about, by their headers.

    A beginning that headers share is left out if it ends in a dot (columns of one JSON object), if it is a word for
    probabilities, or if what remains are outcomes in `happened`.

    >>> class_names(["probs.safe", "probs.unsafe"]), class_names(["model_yes", "model_no"], ["yes", "no"])
    (['safe', 'unsafe'], ['yes', 'no'])
    >>> class_names(["model_yes", "model_no"]), class_names(["prob_a", "b"])
    (['model_yes', 'model_no'], ['a', 'b'])
    """
    first, last = min(headers), max(headers)
    common = first[
        : next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    ]
    inner = common[: common.rfind(".") + 1]
    names = [header[len(inner) :] if inner else _without_prefix(header) for header in headers]
    left = [header[len(common) :] for header in headers]
    # The common beginning must end where a word does, or "pass" and "past" would be "s" and "t".
    return left if re.search(r"[\W_]$", common) and not {word.lower() for word in left}.isdisjoint(happened) else names


def _without_prefix(header: str) -> str:
    """Return a header without a leading word for probabilities and without a trailing per cent sign."""
    return re.sub(r"^(?:probability|prob|p)_(?=.)|(?<=[^\W\d])\s*[(\[]?%[)\]]?$", "", header, flags=re.IGNORECASE)


def check_columns(columns: Columns | None) -> dict[str, str | tuple[str, ...] | None]:
    """Return the columns that the user names, by role, checked; several for a role form a key, or hold forecasts."""
    found: dict[str, str | tuple[str, ...] | None] = {}
    if columns is not None:
        expect_type(columns, Mapping, "columns")
    for role, names in (columns or {}).items():
        if role not in ROLES:
            raise ArgumentError(f"a column can be {', '.join(ROLES)}, and not {shown(role)}{meant(str(role), ROLES)}")
        if names is None or isinstance(names, str):
            found[role] = names
        elif not names_given(names, f"columns, for the {role},"):
            raise ArgumentError(f"columns: no column is named for the {role}; None says that there is none")
        elif role in (*KEYED, PROBABILITY, "verdict") or len(names) == 1:
            found[role] = names[0] if len(names) == 1 else tuple(map(str, names))
        else:
            raise ArgumentError(
                f"{role} is named twice, {listed(list(names))}; one column can be it, and several columns together "
                "only an event or expert"
            )
    return found


def position(table: str, names: Sequence[str], name: str) -> int:
    """Return the position of the column that the user calls `name`; a LayoutError if `names` lacks it."""
    if name in names:
        return list(names).index(name)
    raise fault("column-not-there", Place(table), name=name, near=suggestion(name, names, "its columns are"))


# Roles of facts on events and forecasts, for columns that are left when those of forecasts are chosen.
FACTS = ("time", "expires", "closes", "resolved_at", "prior", "group", "topic", TEXT, "order")


@dataclass(frozen=True)
class Shape:
    """Shape of a table: what a row is, roles (what columns hold) needed or forbidden, what forecast columns are for."""

    name: str
    needs: tuple[str, ...]
    forbids: tuple[str, ...] = ()
    key: tuple[str, ...] = ("event",)  # the roles that distinguish its rows
    columns: str = ""  # what each column of forecasts is for: "expert", "class", "expert and class", "event"

    @property
    def of_classes(self) -> bool:
        """Whether rows, or columns of forecasts, are about one of several classes."""
        return "class" in self.key or "class" in self.columns

    @property
    def numbered(self) -> bool:
        """Whether each row is an event, so that no column needs to name it."""
        return self.key == ("event",)


PAIR = ("event", "expert")
LONG = Shape("a row per forecast", (*PAIR, PROBABILITY), ("class",), PAIR)
SURE = Shape("a row per forecast, sure of a verdict", (*PAIR, PROBABILITY, "verdict"), ("class",), PAIR)
LONG_CLASSES = Shape("a row per forecast and class", (*PAIR, PROBABILITY, "class"), (), (*PAIR, "class"))
MARKET = replace(LONG_CLASSES, name="a row per class, one forecaster", needs=("event", PROBABILITY, "class"))
MARKET = replace(MARKET, forbids=("expert", "verdict"), key=("event", "class"))
CLASSES = Shape("a row per forecast, a column per class", PAIR, (PROBABILITY,), PAIR, "class")
ONE = Shape("a row per event, one forecaster", ("event", PROBABILITY), ("expert", "class", "verdict"))
WIDE = Shape("a row per event, a column per expert", ("event",), ("expert", PROBABILITY, "verdict"), columns="expert")
GRID = replace(WIDE, name="a row per event, a column per expert and class", columns="expert and class")
ONE_CLASSES = replace(WIDE, name="a row per event, a column per class", columns="class")
PAIRS = Shape(
    "a row per event, a verdict and how sure for each", ("event", "verdict"), WIDE.forbids[:2], columns="expert"
)
RESPONDENTS = Shape("a row per expert, a column per event", ("expert",), ("event", PROBABILITY), ("expert",), "event")
SHAPES = (LONG, SURE, LONG_CLASSES, MARKET, CLASSES, ONE, PAIRS, WIDE, GRID, ONE_CLASSES, RESPONDENTS)


@dataclass(frozen=True)
class Beside:
    """What a table of outcomes has: its headers, its events, and its outcomes in lower case."""

    names: Collection[str] = ()
    events: Collection[str] = ()
    happened: Collection[str] = ()


@dataclass(frozen=True)
class UserRoles:
    """What the user says of columns: their roles, parts of keys, and experts who are included, excluded or known."""

    columns: Mapping[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    parts: Collection[str] = ()
    include: Collection[str] = ()
    exclude: Collection[str] = ()
    known: Collection[str] = ()  # experts from whom a saved pool learned, or whose scale is given

    def settles(self, name: str) -> bool:
        """Return True if the user's experts say whether a column called `name` is an expert."""
        return name in self.exclude or name in self.include or name in self.known or bool(self.include)
