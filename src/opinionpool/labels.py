"""Outcomes as users of scikit-learn hand them over, y, as positions among classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.errors import OutcomeError
from opinionpool.forecasts import UNRESOLVED

Labels: TypeAlias = npt.NDArray[Any]
Codes: TypeAlias = npt.NDArray[np.intp]

# What a missing outcome looks like after it was turned into text.
_LOST = ("", "nan", "none", "<na>", "nat")


def label_text(label: object) -> str:
    """A class label as a column or a file would spell it: 1.0 is "1"."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)


def is_missing(value: object) -> bool:
    """Whether an outcome says "not resolved": None, NaN, NaT or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def read_labels(y: Labels) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """The labels of resolved events in their own type, and which events are resolved.

    Parameters
    ----------
    y : ndarray, shape (T,)
        Of any type; None or NaN where not resolved.

    Raises
    ------
    OutcomeError
        If the labels are not classes: fractions, infinities, mixed types, or spellings of one another.
    """
    if y.dtype.kind == "O":
        known = np.array([not is_missing(value) for value in y.tolist()], dtype=bool)
        labels = _native(y[known])
    else:
        known = ~np.isnan(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
        labels = y[known]
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (labels == np.round(labels))
        if not whole.all():
            raise OutcomeError(
                f"outcomes must be classes, not continuous values, and one is {float(labels[~whole][0]):.15g}; "
                "an event that settled at a fraction has no class (use NaN to leave it unresolved)"
            )
    elif labels.dtype.kind in "OUS":
        _check_spelling(sorted({str(label) for label in labels.tolist()}))
    elif labels.dtype.kind not in "biu":
        raise OutcomeError(f"outcomes must be numbers, booleans or text, not {labels.dtype}")
    return labels, known


def _native(values: Labels) -> Labels:
    """Objects as booleans or numbers where they are; text stays as it is."""
    found = values.tolist()
    if all(isinstance(value, str) for value in found):
        return values if found else np.array([], dtype=np.int64)
    if all(isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)) for value in found):
        return np.array(found)
    kinds = ", ".join(sorted({type(value).__name__ for value in found}))
    raise OutcomeError(f"outcomes must all be numbers, all booleans or all text, and there are {kinds}")


def _check_spelling(labels: Sequence[str]) -> None:
    """Labels that a person would read as one and the same are an error."""
    seen: dict[str, str] = {}
    for label in labels:
        plain = label.strip().casefold()
        if plain in _LOST:
            raise OutcomeError(
                f"outcome {label!r} looks like a missing one turned into text; use None where unresolved"
            )
        if plain in seen:
            raise OutcomeError(
                f"outcomes {seen[plain]!r} and {label!r} differ only in case or blanks; spell each class in one way"
            )
        seen[plain] = label


def classes_of(labels: Labels) -> Labels:
    """The sorted classes; numbers with one outcome only, or none, are taken to be 0 and 1.

    Raises
    ------
    OutcomeError
        If there is a single label that does not tell what the other class is.
    """
    classes = np.unique(labels)
    if len(classes) >= 2:
        return classes
    if classes.dtype.kind in "biuf" and np.isin(classes, [0, 1]).all():
        return np.array([0, 1], dtype=classes.dtype)
    raise OutcomeError(
        f"there is one class only, {classes.tolist()[0]!r}, which does not tell what else can happen; "
        "use 0 and 1, or op.Forecasts, which names its classes"
    )


def encode(labels: Labels, known: npt.NDArray[np.bool_], classes: Labels) -> Codes:
    """Positions in `classes` of every event's outcome, -1 where not resolved.

    Raises
    ------
    OutcomeError
        Names a label that is not among the classes, and its rows.
    """
    position = {label: i for i, label in enumerate(classes.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    for i, label in enumerate(distinct.tolist()):
        if label not in position:
            rows = np.flatnonzero(known)[inverse == i]
            raise OutcomeError(
                f"outcome {label!r} is not one of the classes {classes.tolist()}; it stands in "
                f"{len(rows)} rows, the first of them {rows[0]}"
            )
    codes = np.full(len(known), UNRESOLVED, dtype=np.intp)
    codes[known] = np.array([position[label] for label in distinct.tolist()], dtype=np.intp)[inverse]
    return codes
