"""Forecasts that are not what they seem: outcomes known beforehand, placeholders, clones and complements."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.chance import at_least
from opinionpool.findings import Check, Finding, concluded
from opinionpool.forecasts import Forecasts, Index
from opinionpool.logodds import Array
from opinionpool.optionsets import even_chances
from opinionpool.residuals import Residuals
from opinionpool.wording import shown

Codes: TypeAlias = npt.NDArray[np.int32]

# An expert knew the outcomes who gives what happened odds of 49 to 1 beyond the prior nearly always, and is never on
# the other side; from so many outcomes on, so many of them of each of two kinds.
CERTAIN, ALWAYS, OUTCOMES, KINDS = float(np.log(49.0)), 0.95, 10, 3
# Forecasts before anything is said about placeholders, the share of them that matters, and the grids that people use.
SEVERAL, MATTERS, GRIDS = 10, 0.05, (0.25, 0.1, 0.05, 0.01)
# Two experts are one who agree on so large a share of so many events, with so many different statements.
ALIKE, SHARED, DIFFERENT = 0.9, 10, 5
# Comparisons of forecasts, pair by pair, that take seconds.
MOST_COMPARED = 1 << 32
EQUAL = 1e-9


def leakage(residuals: Residuals) -> list[Check]:
    """Experts who are right with extreme confidence nearly everywhere, as if they had known what happened.

    An expert so good by rights has an accuracy of 12 or more, an area under the curve of 0.9997.
    """
    found, looked, most = [], 0, 0.0
    for name, rows in residuals.each(OUTCOMES):
        seen = np.bincount(residuals.outcome[rows], minlength=residuals.classes)
        if (seen >= KINDS).sum() < 2 and residuals.forecasts.options is None:
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
    binary, own = len(forecasts.classes) == 2, forecasts.options is not None
    order = np.argsort(forecasts.expert_index, kind="stable")
    sizes = forecasts.sizes[forecasts.event_index[order]]
    starts = np.searchsorted(forecasts.expert_index[order], np.arange(len(forecasts.experts) + 1))
    findings = []
    what = "50%" if binary else "the same of each option" if own else f"1/{len(forecasts.classes)} of each class"
    for i, name in enumerate(forecasts.experts):
        said = forecasts.probabilities[order[starts[i] : starts[i + 1]]]
        if len(said) < SEVERAL:
            continue
        count, p = _halves(said) if binary else _evens(said, sizes[starts[i] : starts[i + 1]])
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


def _evens(said: Array, sizes: npt.NDArray[np.intp]) -> tuple[int, float]:
    """How often an expert gives all classes the same, up to whole per cents, beside what else is repeated."""
    even = np.abs(said - even_chances(sizes, said.shape[1])).max(axis=1) < 0.0075
    _, repeated = np.unique(said[~even], axis=0, return_counts=True)
    count, beside = int(even.sum()), int(repeated.max(initial=0))
    return count, at_least(count, count + beside, 0.5)


def clones(forecasts: Forecasts) -> list[Check]:
    """Pairs of experts who say the same, or exactly the opposite, on nearly every event that both answer."""
    binary = len(forecasts.classes) == 2
    t, n = forecasts.shape
    kinds = ("clones", "complements") if binary else ("clones",)
    if n * n * t > MOST_COMPARED:
        return [Check(code, None, None, None, "too many experts to compare pair by pair", False) for code in kinds]
    said, same, opposite = _codes(forecasts)
    there = (said >= 0).astype(np.float32)
    shared = np.triu((there @ there.T).round().astype(np.intp), 1)
    others = {"clones": same, "complements": opposite}
    return [check for code in kinds for check in _alike(forecasts, code, said, others[code], shared)]


def _codes(forecasts: Forecasts) -> tuple[Codes, Codes, Codes]:
    """A number for each statement, the same to compare it with, and that of its opposite, (N, T); below 0 for none.

    What is its own opposite is nobody's.
    """
    t, n = forecasts.shape
    p = forecasts.probabilities
    p = p[:, None] if p.ndim == 1 else p
    both = np.concatenate([p, 1.0 - p]).round(9)
    code = np.zeros(len(both), dtype=np.intp)
    for column in both.T:
        # Column by column, because rows are slow to sort.
        levels = np.unique(column, return_inverse=True)[1]
        code = np.unique(code * (levels.max(initial=0) + 1) + levels, return_inverse=True)[1]
    said, opposite = code.reshape(2, -1)
    found = np.full((3, n, t), [[[-1]], [[-2]], [[-2]]], dtype=np.int32)
    where = forecasts.expert_index, forecasts.event_index
    for array, values in zip(found, (said, said, np.where(said == opposite, -2, opposite)), strict=True):
        array[where] = values
    return found[0], found[1], found[2]


def _alike(forecasts: Forecasts, code: str, said: Codes, other: Codes, shared: Index) -> list[Check]:
    agree = np.zeros_like(shared)
    for i in range(len(said) - 1):
        agree[i, i + 1 :] = np.count_nonzero(other[i + 1 :] == said[i], axis=1)
    pairs = shared >= SHARED
    total, agreed, tests = int(shared[pairs].sum()), int(agree[pairs].sum()), int(pairs.sum())
    findings, untold = [], False
    for i, j in np.argwhere(pairs & (agree >= ALIKE * shared)).tolist():
        same, of = int(agree[i, j]), int(shared[i, j])
        if len(np.unique(said[i][other[j] == said[i]])) < DIFFERENT:
            untold = True
            continue
        # How often two of them agree by chance: as often as two others do, within limits.
        chance = min(max((agreed - same + 1.0) / (total - of + 2.0), 0.1), 0.5)
        what = "the same as" if code == "clones" else "the opposite of"
        one, two = forecasts.experts[j], forecasts.experts[i]
        text = f"{shown(one)} says {what} {shown(two)} on {same / of:.0%} of {of} events: one voice, not two"
        findings.append(Finding(one, same / of, at_least(same, of, chance), True, text))
    if tests and not findings and not untold:
        share = float((agree[pairs] / shared[pairs]).max())
        findings.append(Finding(None, share, 1.0, False, ""))
    said_how = "the same" if code == "clones" else "the opposite of each other"
    fine, idle = f"no two experts say {said_how}", f"too few events that two experts both answer to tell {code}"
    if untold:
        idle = f"experts say {said_how}, but too few different things to tell {code}"
    return concluded(code, findings, fine, idle, tests)
