"""The classes that headers of columns name, where columns are forecasts over classes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opinionpool.labels import UNSETTLED, VOID
from opinionpool.tables.cells import MISSING
from opinionpool.tables.contents import Contents

_SAYS_PROBABILITY = re.compile(r"[\W_]+(?:p|prob|probs|proba|probability)$", re.IGNORECASE)


def class_names(headers: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """The classes that columns of probabilities are about, by their headers.

    What all of them begin with is no part of the names where it is an object that holds them, a word for
    probabilities, or where what is left are outcomes.

    >>> class_names(["probs.safe", "probs.unsafe"], []), class_names(["model_yes", "model_no"], ["yes", "NO"])
    (['safe', 'unsafe'], ['yes', 'no'])
    >>> class_names(["model_yes", "model_no"], []), class_names(["prob_a", "b"], [])
    (['model_yes', 'model_no'], ['a', 'b'])
    """
    names = [without_prefix(header) for header in headers]
    first, last = min(headers), max(headers)
    same = [one == other for one, other in zip(first, last, strict=False)]
    common = first[: same.index(False) if False in same else len(same)]
    inner = common[: common.rfind(".") + 1]
    if inner:
        names = [header[len(inner) :] for header in headers]
    words = {word.lower() for word in outcomes}
    left = [header[len(common) :] for header in headers]
    # The common beginning must end where a word does, or "pass" and "past" would be "s" and "t".
    if words and re.search(r"[\W_]$", common) and words & {label.lower() for label in left}:
        names = left
    return names


def without_prefix(header: str) -> str:
    """A header without a word for probabilities before it."""
    for prefix in ("probability_", "prob_", "p_"):
        if header.lower().startswith(prefix) and len(header) > len(prefix):
            return header[len(prefix) :]
    return header


def class_grid(look: Contents, columns: Sequence[int]) -> tuple[tuple[str | None, str | None], ...] | None:
    """Expert and class of each column, where headers have both and each expert's numbers add up to 1 in every row.

    The class is what follows the last separator, such as ``resnet_prob_cat``; headers with a colon are known anyway.
    """
    headers = [look.table.names[i] for i in columns]
    parts = [re.fullmatch(r"(.*[^\W_])[\W_]+([^\W_]+)", header) for header in headers]
    if not headers or any(part is None or ":" in header for part, header in zip(parts, headers, strict=True)):
        return None
    pairs = [(part[1], part[2]) for part in parts if part is not None]
    of_expert: dict[str, list[int]] = {}
    for (expert, _), column in zip(pairs, columns, strict=True):
        of_expert.setdefault(expert, []).append(column)
    classes = dict.fromkeys(label for _, label in pairs)
    if len(classes) < 2 or len(pairs) != len(set(pairs)) or len(pairs) != len(of_expert) * len(classes):
        return None
    if len(of_expert) < 2 or not all(map(look.rows_sum_to_one, of_expert.values())):
        return None
    return tuple((_SAYS_PROBABILITY.sub("", expert) or expert, label) for expert, label in pairs)


def are_classes(look: Contents, columns: Sequence[int], outcome: int | None) -> bool:
    """Whether columns are one forecast over classes, which outcomes name, and no experts."""
    if outcome is None or len(columns) < 2 or not look.rows_sum_to_one(columns):
        return False
    outcomes = look.words(outcome).values
    classes = {label.lower() for label in class_names([look.table.names[i] for i in columns], outcomes)}
    words = {word.lower() for word in outcomes}
    return bool(words & classes) and words <= classes | VOID | UNSETTLED | MISSING


def names_classes(look: Contents, columns: Sequence[int], classes: set[str]) -> int | None:
    """The one column that holds names of classes and words for no outcome, and nothing else."""
    able = []
    for i in columns:
        words = {word.lower() for word in look.words(i).values}
        if words & classes and words <= classes | VOID | UNSETTLED | MISSING:
            able.append(i)
    return able[0] if len(able) == 1 else None
