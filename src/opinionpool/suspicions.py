"""Forecasts that are not what they seem: outcomes known beforehand, placeholders, clones and complements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opinionpool.chance import at_least
from opinionpool.findings import Check, Finding, concluded
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import Array
from opinionpool.residuals import Residuals
from opinionpool.wording import shown

# An expert knew the outcomes who gives what happened odds of 49 to 1 beyond the prior nearly always, and is never on
# the other side; from so many outcomes on, so many of them of each of two kinds.
CERTAIN, ALWAYS, OUTCOMES, KINDS = float(np.log(49.0)), 0.95, 10, 3
# Forecasts before anything is said about placeholders, the share of them that matters, and the grids that people use.
SEVERAL, MATTERS, GRIDS = 10, 0.05, (0.25, 0.1, 0.05, 0.01)
# Two experts are one who agree on so large a share of so many events, with so many different statements.
ALIKE, SHARED, DIFFERENT = 0.9, 10, 5
# Comparisons of forecasts, pair by pair, that take seconds.
MOST_COMPARED = 1 << 31
EQUAL = 1e-9


def leakage(residuals: Residuals) -> list[Check]:
    """Experts who are right with extreme confidence nearly everywhere, as if they had known what happened.

    An expert so good by rights has an accuracy of 12 or more, an area under the curve of 0.9997.
    """
    found, looked, most = [], 0, 0.0
    for name, rows in residuals.each(OUTCOMES):
        seen = np.bincount(residuals.outcome[rows], minlength=residuals.classes)
        if (seen >= KINDS).sum() < 2:
            continue
        looked += 1
        beyond = residuals.beyond[rows]
        share = float((beyond >= CERTAIN).mean())
        most = max(most, share)
        if share >= ALWAYS and (beyond > 0).all():
            text = (
                f"{shown(name)} is right with extreme confidence on {share:.0%} of {len(beyond)} events and never "
                "wrong: were these forecasts made before the outcomes were known?"
            )
            found.append(Check("leakage", name, share, None, text, True))
    if found:
        return found
    if not looked:
        text = f"too few outcomes to say whether somebody knew them: {OUTCOMES} by one expert are needed"
        return [Check("leakage", None, None, None, text, False)]
    return [Check("leakage", None, most, None, "nobody is right with extreme confidence everywhere", False)]


def placeholders(forecasts: Forecasts) -> list[Check]:
    """Experts who say exactly 50%, or 1/K of each class, more often than what they say otherwise explains."""
    binary = len(forecasts.classes) == 2
    order = np.argsort(forecasts.expert_index, kind="stable")
    starts = np.searchsorted(forecasts.expert_index[order], np.arange(len(forecasts.experts) + 1))
    findings = []
    what = "50%" if binary else f"1/{len(forecasts.classes)} of each class"
    for i, name in enumerate(forecasts.experts):
        said = forecasts.probabilities[order[starts[i] : starts[i + 1]]]
        if len(said) < SEVERAL:
            continue
        count, p = _halves(said) if binary else _evens(said)
        times = "once" if count == 1 else f"{count} times"
        text = f"{shown(name)} says {what} {times} in {len(said)}: a placeholder?"
        findings.append(Finding(name, count / len(said), p, count >= MATTERS * len(said), text))
    fine = f"nobody says {what} more often than what they say otherwise explains"
    return concluded("placeholders", findings, fine, f"too few forecasts to tell placeholders: {SEVERAL} are needed")


def _halves(said: Array) -> tuple[int, float]:
    """How often an expert says 50%, and how probable that is beside its neighbours on the likeliest grid."""
    count = int((np.abs(said - 0.5) < EQUAL).sum())
    p = 0.0
    for step in GRIDS:
        near = [k for k in (-2, -1, 1, 2) if 0.0 < 0.5 + k * step < 1.0]
        beside = sum(int((np.abs(said - 0.5 - k * step) < EQUAL).sum()) for k in near)
        p = max(p, at_least(count, count + beside, 1.0 / (1 + len(near))))
    return count, p


def _evens(said: Array) -> tuple[int, float]:
    """How often an expert gives all classes the same, up to whole per cents, beside what else is repeated."""
    even = np.abs(said - 1.0 / said.shape[1]).max(axis=1) < 0.0075
    _, repeated = np.unique(said[~even], axis=0, return_counts=True)
    count, beside = int(even.sum()), int(repeated.max(initial=0))
    return count, at_least(count, count + beside, 0.5)


def clones(forecasts: Forecasts) -> list[Check]:
    """Pairs of experts who say the same, or exactly the opposite, on nearly every event that both answer."""
    binary = len(forecasts.classes) == 2
    t, n = forecasts.shape
    if n * n * t * (1 if binary else len(forecasts.classes)) > MOST_COMPARED:
        told = "too many experts to compare pair by pair"
        return [Check(code, None, None, None, told, False) for code in ("clones", "complements")]
    said = forecasts.X.reshape(t, n, 1 if binary else len(forecasts.classes))
    found = concluded(
        "clones",
        [_alike(forecasts, "clones", *pair) for pair in _pairs(said, said)],
        "no two experts say the same",
        "too few events that two experts both answer to tell clones",
    )
    if not binary:
        return found
    opposite = np.where(np.abs(said - 0.5) < EQUAL, np.inf, 1.0 - said)
    return found + concluded(
        "complements",
        [_alike(forecasts, "complements", *pair) for pair in _pairs(said, opposite)],
        "no two experts say the opposite of each other",
        "too few events that two experts both answer to tell complements",
    )


def _pairs(said: Array, other: Array) -> Iterator[tuple[int, int, int, int, float]]:
    """Pairs with enough shared events: who, on how many events they agree, of how many, and the chance of one."""
    n = said.shape[1]
    rows = []
    for i in range(n - 1):
        both = ~np.isnan(said[:, i, :1]) & ~np.isnan(said[:, i + 1 :, 0])
        same = (np.abs(said[:, i, None] - other[:, i + 1 :]) < EQUAL).all(axis=2) & both
        shared, agree = both.sum(axis=0), same.sum(axis=0)
        for j in np.flatnonzero(shared >= SHARED).tolist():
            different = 0
            if agree[j] >= ALIKE * shared[j]:
                different = len(np.unique(said[same[:, j], i], axis=0))
            rows.append((i, i + 1 + j, int(agree[j]) if different >= DIFFERENT else 0, int(shared[j]), int(agree[j])))
    # How often two of them agree by chance: as often as two others do.
    total, agreed = sum(row[3] for row in rows), sum(row[4] for row in rows)
    for i, j, telling, shared_count, agree_count in rows:
        chance = (agreed - agree_count + 1.0) / (total - shared_count + 2.0)
        yield i, j, telling, shared_count, min(max(chance, 0.1), 0.5)


def _alike(forecasts: Forecasts, code: str, i: int, j: int, agree: int, shared: int, chance: float) -> Finding:
    share = agree / shared
    one, two = shown(forecasts.experts[j]), shown(forecasts.experts[i])
    what = "the same as" if code == "clones" else "the opposite of"
    text = f"{one} says {what} {two} on {share:.0%} of {shared} events: one voice, not two"
    return Finding(forecasts.experts[j], share, at_least(agree, shared, chance), share >= ALIKE, text)
