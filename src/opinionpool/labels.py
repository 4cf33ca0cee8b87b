"""Labels: outcomes as positions among classes, or among an event's own options, and labels of events."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import brief
from opinionpool.arrays import Array, Index, is_blank
from opinionpool.errors import OutcomeError, ProbabilityError, ShapeError
from opinionpool.text import counted, listed, shown

UNRESOLVED = -1


Labels: TypeAlias = npt.NDArray[Any]
Codes: TypeAlias = npt.NDArray[np.intp]
Options: TypeAlias = tuple[tuple[object, ...], ...]  # labels of each event's own options

# Pairs of classes that need no explanation: the second is the positive one.
FAMILIES = (
    *(("0", "1"), ("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("nein", "ja"), ("non", "oui")),
    *(("no", "sí"), ("no", "si"), ("falsch", "wahr"), ("faux", "vrai"), ("falso", "verdadero")),
    ("negative", "positive"),
)

# Texts of missing values that were converted to text.
_LOST = ("", "nan", "none", "<na>", "nat", "na", "n/a", "null", "-", ".")
# Words that mean that an event has no outcome.
ALWAYS_VOID = frozenset(
    {"void", "voided", "annulled", "annul", "cancelled", "canceled", "ambiguous", "annulliert", "annulé", "anulado"}
)
_MAYBE_VOID = frozenset(
    {
        *("withdrawn", "retracted", "invalid", "invalidated", "nullified"),
        *("zurückgezogen", "zurueckgezogen", "storniert", "ungültig", "ungueltig", "entfällt", "abgesagt"),
        *("entfaellt", "entfallen", "nichtig"),
        *("annulée", "annule", "annulee", "retiré", "retirée", "invalide"),
        *("anulada", "cancelado", "cancelada", "retirado", "retirada", "inválido", "inválida"),
    }
)
# Some files have letters and accents as two characters.
ALWAYS_VOID, _MAYBE_VOID = (
    words | {unicodedata.normalize("NFD", word) for word in words} for words in (ALWAYS_VOID, _MAYBE_VOID)
)
# Some of these may be a class beside its opposite.
VOID = ALWAYS_VOID | _MAYBE_VOID
UNSETTLED = frozenset(
    {
        *("unresolved", "open", "pending", "tbd", "unknown", "undetermined", "?"),
        *("offen", "ausstehend", "en cours", "pendiente"),
    }
)


def label_text(label: object) -> str:
    """Return a class label as text, spelt as in a file: 1.0 becomes "1"."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)


def read_labels(y: Labels, classes: Collection[object] = ()) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """Return the labels of resolved events in `y` (T,), all of one type, and the mask (T,) of resolved events.

    Raises OutcomeError if the labels are not classes: fractions, infinities, mixed types, or spellings of one another.
    Labels in `classes` are accepted, however they are spelt.
    """
    if y.dtype.kind == "O":
        known = np.array([not is_blank(value) for value in y.tolist()], dtype=bool)
        labels = _native(y[known])
    elif y.dtype.kind == "f":
        known = ~np.isnan(y)
        labels = y[known]
    else:
        known, labels = np.ones(len(y), dtype=bool), y
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (labels == np.round(labels))
        if not whole.all():
            raise OutcomeError(
                f"outcomes must be classes, not continuous values, and one is {float(labels[~whole][0]):.15g}; "
                "an event that settled at a fraction has no class (use NaN to leave it unresolved)"
            )
    elif labels.dtype.kind in "OUS":
        _check_spelling(sorted({str(label) for label in labels.tolist()}), set(map(str, classes)))
    elif labels.dtype.kind not in "biu":
        raise OutcomeError(f"outcomes must be numbers, booleans or text, not {labels.dtype}")
    return labels, known


def _native(values: Labels) -> Labels:
    """Return labels, all text, all numbers or all booleans, as an array of the type that they share."""
    found = values.tolist()
    if all(isinstance(value, str) for value in found):
        return values if found else np.array([], dtype=np.int64)
    if all(isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)) for value in found):
        return np.array(found)
    kinds = ", ".join(sorted({type(value).__name__ for value in found}))
    raise OutcomeError(f"outcomes must all be numbers, all booleans or all text, and there are {kinds}")


def _check_spelling(labels: Sequence[str], classes: Collection[str]) -> None:
    """Raise an OutcomeError for labels that differ only in spelling, or that mean that there is no outcome."""
    seen: dict[str, str] = {}
    for label in labels:
        plain = label.strip().casefold()
        if label in classes:
            seen[plain] = label
            continue
        if plain in ALWAYS_VOID | UNSETTLED:
            raise OutcomeError(
                f"outcome {label!r} says that an event has none: use None for it; if it is a class, say which classes "
                "there are, fit(..., classes=[...])"
            )
        if plain in _LOST:
            raise OutcomeError(
                f"outcome {label!r} looks like a missing one turned into text; use None where unresolved"
            )
        if plain in seen:
            raise OutcomeError(
                f"outcomes {seen[plain]!r} and {label!r} differ only in case or blanks; spell each class in one way"
            )
        seen[plain] = label


def says_open(label: object, classes: Collection[object]) -> bool:
    """Return True if `label` is -1 and means "unresolved": 0 is among `classes`, or none of them is a number."""
    number = isinstance(label, int | float | np.integer | np.floating) and not isinstance(label, bool)
    if not number or label != UNRESOLVED or label in classes:
        return False
    return 0 in classes or not any(isinstance(each, int | float | np.number) for each in classes)


def classes_of(labels: Labels, coded: bool = True) -> Labels:
    """Return the sorted distinct labels as classes; if only 0, only 1 or none occurs, the classes are 0 and 1.

    Raises OutcomeError if there is a single label that does not determine the other class. If `coded`, -1 beside 0
    marks an unresolved event and is not a class.
    """
    classes = np.unique(labels)
    if coded and classes.dtype.kind in "if" and UNRESOLVED in classes and 0 in classes:
        classes = classes[classes != UNRESOLVED]
    if len(classes) >= 2:
        return classes
    if classes.dtype.kind in "biuf" and np.isin(classes, [0, 1]).all():
        return np.array([0, 1], dtype=classes.dtype)
    raise OutcomeError(
        f"there is one class only, {classes.tolist()[0]!r}, which does not tell what else can happen; "
        "use 0 and 1, or say which classes there are, classes=[...]"
    )


def encode(labels: Labels, known: npt.NDArray[np.bool_], classes: Labels) -> Codes:
    """Return the position of each event's outcome in `classes`, (T,), -1 where not `known`; open events have no label.

    An OutcomeError names a label that is not among the classes, and its rows.
    """
    whole = labels.dtype.kind in "iu" and classes.dtype.kind in "iu" and len(labels)
    if whole and classes.tolist() == [*range(len(classes))] and labels.min() >= 0 and labels.max() < len(classes):
        # They are positions.
        if len(labels) == len(known):
            return labels.astype(np.intp)
        codes = np.full(len(known), UNRESOLVED, dtype=np.intp)
        codes[known] = labels
        return codes
    position = {label: i for i, label in enumerate(classes.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    for i, label in enumerate(distinct.tolist()):
        if says_open(label, position):
            position[label] = UNRESOLVED
        elif label not in position:
            rows = np.flatnonzero(known)[inverse == i]
            raise OutcomeError(
                f"outcome {label!r} is not one of the classes {classes.tolist()}; it stands in "
                f"{len(rows)} rows, the first of them {rows[0]}"
            )
    codes = np.full(len(known), UNRESOLVED, dtype=np.intp)
    codes[known] = np.array([position[label] for label in distinct.tolist()], dtype=np.intp)[inverse]
    return codes


def encode_outcomes(
    outcomes: Sequence[object] | npt.ArrayLike | None, options: Iterable[Sequence[object]], events: Sequence[str]
) -> Codes:
    """Return the position of each outcome among its event's options, (T,); -1 for None, NaN, or a -1 that is no option.

    An OutcomeError names an event whose outcome is not among its options. Raises ShapeError if there is not one outcome
    for each event.
    """
    encoded = np.full(len(events), UNRESOLVED)
    if outcomes is None:
        return encoded
    try:
        count = len(outcomes)  # type: ignore[arg-type]
    except TypeError:
        count = -1
    if count < 0 or isinstance(outcomes, (str, bytes)) or hasattr(outcomes, "columns"):
        raise OutcomeError(f"outcomes must be a sequence, one for each event, and it is {brief(outcomes)}")
    if count != len(events):
        raise ShapeError(f"{len(events)} events need as many outcomes, not {count}")
    for i, (outcome, labels) in enumerate(zip(outcomes, options, strict=False)):  # type: ignore[arg-type]
        if is_blank(outcome) or says_open(outcome, labels):
            continue
        try:
            encoded[i] = labels.index(outcome)
        except (TypeError, ValueError):
            raise OutcomeError(
                f"the outcome of event {shown(events[i])} is {brief(outcome)}, and its options are {listed(labels, 10)}"
            ) from None
    return encoded


def halves(outcomes: Codes, tied: npt.NDArray[np.bool_]) -> tuple[Codes, Codes, npt.NDArray[np.float64]]:
    """Return positions of events, (S,), with each tied event twice; outcomes; and weights, ½ for each half of a tie.

    >>> [each.tolist() for each in halves(np.array([1, -1, -1]), np.array([False, True, False]))]
    [[0, 1, 1, 2], [1, 0, 1, -1], [1.0, 0.5, 0.5, 1.0]]
    """
    event = np.repeat(np.arange(len(outcomes)), 1 + tied)
    second = np.append(False, event[1:] == event[:-1])[: len(event)]
    return event, np.where(tied[event], second, outcomes[event]), np.where(tied[event], 0.5, 1.0)


def event_labels(given: object, events: int, what: str) -> npt.NDArray[np.str_]:
    """Return each event's label as text, from one for all events or one for each; "" for None and NaN.

    Raises ShapeError if `given` has neither one label nor one for each event.

    >>> event_labels(["sport", None, 3], 3, "topics").tolist()
    ['sport', '', '3']
    """
    labels = np.asarray(given, dtype=object)
    if labels.ndim > 1 or (labels.ndim == 1 and len(labels) != events):
        raise ShapeError(f"{events} events need one of the {what} each, and the shape of these is {labels.shape}")
    return np.array(["" if is_blank(each) else label_text(each) for each in np.broadcast_to(labels, events).tolist()])


def option_slots(options: Options) -> tuple[str, ...]:
    """Return "option 1", "option 2", ...: a name for each position in the longest of `options`, at least two.

    >>> option_slots((("yes", "no"), ("red", "blue", "green")))
    ('option 1', 'option 2', 'option 3')
    """
    return tuple(f"option {i + 1}" for i in range(max([2, *map(len, options)])))


def check_options(options: Options, events: Sequence[str]) -> None:
    """Raise a ShapeError unless `options` has two or more different labels for each of `events`."""
    if len(options) != len(events):
        raise ShapeError(f"{len(events)} events need as many sets of options, not {len(options)}")
    for event, labels in zip(events, options, strict=True):
        if len(labels) < 2:
            one = f" only, {shown(labels[0])}," if labels else ""
            raise ShapeError(f"event {shown(event)} has {counted(len(labels), 'option')}{one} and needs two or more")
        if len(set(labels)) < len(labels):
            raise ShapeError(f"event {shown(event)} has an option twice among {listed(labels)}")


def uniform_probabilities(sizes: Index, classes: int) -> Array:
    """Return equal probabilities of the first `sizes` positions of each event, and 0 for the others, (T, K).

    >>> uniform_probabilities(np.array([2, 3]), 3).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.333, 0.333, 0.333]])
    """
    return np.where(np.arange(classes) < sizes[:, None], 1.0 / sizes[:, None], 0.0)


def padded(q: Array, sizes: Index, events: Sequence[str]) -> Array:
    """Return forecasts (T, N, K) with 0 beyond the `sizes` (T,) options of an event, where NaN is accepted too.

    Raises ProbabilityError if such a position has a positive probability.
    """
    beyond = (np.arange(q.shape[2]) >= sizes[:, None])[:, None, :]
    strange = beyond & (q > 0)
    if strange.any():
        event, _, slot = (int(i) for i in np.argwhere(strange)[0])
        raise ProbabilityError(
            f"event {shown(events[event])} has {sizes[event]} options, and a forecast gives something to a {slot + 1}th"
        )
    missing = np.isnan(np.where(beyond, np.nan, q)).all(axis=2, keepdims=True)
    return np.where(beyond, np.where(missing, np.nan, 0.0), q)
