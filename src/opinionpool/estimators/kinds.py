"""What an estimator consists of in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opinionpool.errors import SavedPoolError
from opinionpool.estimators.inputs import ExpertColumns
from opinionpool.labels import label_text
from opinionpool.learning.fitted import FittedPanel
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.saving.codec import Kind, Kinds, Label
from opinionpool.saving.kinds import KINDS
from opinionpool.streams.stream import Stream

_FIELDS: Mapping[str, Any] = {
    "parameters": Mapping[str, Any],
    "learned": FittedPanel | FittedPool,
    "stream": Stream | None,
    "classes": tuple[Label, ...],
    "labels": str,
    "layout": ExpertColumns,
    "names": tuple[str, ...] | None,
    "events": float,
    "rounded": int,
}


def _check_layout(layout: ExpertColumns) -> None:
    n, k = len(layout.experts), len(layout.classes)
    if n == 0 or len(set(layout.experts)) < n or layout.width not in {1, k} or (layout.width == 1 and k != 2):
        raise SavedPoolError("there should be experts with different names, with a column each or one for each class")
    if layout.columns is not None and len(set(layout.columns)) != layout.count:
        raise SavedPoolError(f"{layout.count} columns should have different names")


def _maker(kind: type[Any]) -> Callable[..., Any]:
    def make(
        parameters: dict[str, Any], learned: FittedPanel | FittedPool, classes: tuple[object, ...], labels: str,
        layout: ExpertColumns, names: tuple[str, ...] | None, **parts: Any,  # noqa: ANN401 - as `_FIELDS` says
    ) -> object:  # fmt: skip
        rule = learned.rule
        if rule != kind.rule:
            raise SavedPoolError(f"a {kind.__name__} should have learned as the {kind.rule} pool, and this is {rule}")
        if tuple(map(label_text, classes)) != layout.classes or len(learned.classes) != len(classes):
            raise SavedPoolError(f"the classes {classes} do not fit the columns, or what was learned")
        if layout.experts != learned.experts or (names is not None and len(names) != layout.count):
            raise SavedPoolError("the columns do not fit the experts that were learned")
        known = kind().get_params(deep=False)
        # Files of older releases know no scales.
        parameters = {"scale": None} | parameters
        strange = set(parameters) ^ set(known)
        if strange:
            raise SavedPoolError(f"the parameters of a {kind.__name__} do not have {min(strange)!r}, or lack it")
        return kind._restored(
            parameters=parameters,
            learned=learned,
            classes=_labels(classes, labels),
            layout=layout,
            names=names,
            **parts,
        )

    return make


_TYPE = re.compile(r"[<>|=]?(?:[biuf][1-8]?|U\d*|O8?)")


def _labels(classes: tuple[object, ...], kind: str) -> np.ndarray:
    """Labels as an array of the type `kind`; SavedPoolError if they are not of it."""
    try:
        if not _TYPE.fullmatch(kind):
            raise TypeError
        # Text takes as much room as it needs, whatever the file says.
        array = np.array(classes, dtype="U" if "U" in kind else np.dtype(kind))
    except (TypeError, ValueError, OverflowError):
        raise SavedPoolError(f"the classes {classes} are not of type {kind[:20]!r}") from None
    if tuple(array.tolist()) != classes:
        raise SavedPoolError(f"the classes {classes} are not of type {kind[:20]!r}")
    return array


def estimator_kinds(*estimators: type[Any]) -> Kinds:
    """Kinds in the files of these estimators."""
    return Kinds(
        *KINDS,
        Kind.of("columns", ExpertColumns, _check_layout),
        *(
            Kind(f"estimator-{kind.rule}", kind, _FIELDS, lambda pool: pool._saved(), _maker(kind))
            for kind in estimators
        ),
    )
