"""Whether forecasts are as the model takes them to be: checks, in words with a number each.

Each check is a family of tests, by expert or by pair, corrected for how many there are (Holm) and made at a level of
1%, so that where the model holds one of them alarms in about 1 of 20 files. What is too small to matter is in order,
however significant it is. Leakage is a rule and no test. `benchmarks/checks.py` measures false alarms and detection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.residuals import Residuals
from opinionpool.analysis.significance import at_least, holm, not_normal, rank_correlation, welch
from opinionpool.arguments import expect_type
from opinionpool.arrays import Array, Index
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.option_sets import uniform_probabilities
from opinionpool.text import counted, shown

# Of each family of tests.
LEVEL = 0.01
CODES = ("normality", "spreads", "correlations", "drift", "leakage", "placeholders", "clones", "complements")


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes
    ----------
    code : str
        One of `CODES`.
    expert : str or None
        Whom it is about; None for all.
    statistic : float or None
        What was measured; the text says what it is.
    p : float or None
        The p-value, corrected for looking at all experts; None where it is no test.
    text : str
        One sentence, for people.
    serious : bool
        Whether it departs from the model by more than chance explains, and so far that it matters. False: looked at and
        found in order, or too little to look at.
    """

    code: str
    expert: str | None
    statistic: float | None
    p: float | None
    text: str
    serious: bool


@dataclass(frozen=True)
class Finding:
    """One test of one expert, before it is known how many there are."""

    expert: str | None
    statistic: float
    p: float
    matters: bool
    text: str


def concluded(code: str, findings: Sequence[Finding], fine: str, idle: str, tests: int = 0) -> list[Check]:
    """The checks of a family: those that alarm, the least probable first, else that all is in order.

    `tests` is how many there were, if more than are given because the others are in order by far.
    """
    if not findings:
        return [Check(code, None, None, None, idle, False)]
    adjusted = holm([each.p for each in findings], tests)
    order = sorted(range(len(findings)), key=lambda i: adjusted[i])
    alarms = [
        Check(code, each.expert, each.statistic, adjusted[i], each.text, True)
        for i in order
        if (each := findings[i]).matters and adjusted[i] < LEVEL
    ]
    if alarms:
        return alarms
    least = findings[order[0]]
    return [Check(code, None, least.statistic, adjusted[order[0]], fine, False)]


# Fewer numbers of an expert say nothing about their distribution, and fewer on one side nothing about differences.
ENOUGH, EACH, DATES = 20, 8, 12
# Departures that matter: skewness, excess kurtosis, a ratio of spreads, a difference of correlations.
SKEWED, TAILED, UNEQUAL, DIFFERENCE = 1.0, 2.0, 1.4, 0.1
# Forecasts that vary less, in log-odds, do not vary.
STILL = 1e-9


def normality(residuals: Residuals) -> list[Check]:
    """Contrasts within an outcome, beside a normal distribution, by their skewness and kurtosis."""
    findings = []
    for name, rows in residuals.each(ENOUGH):
        values = residuals.values[rows].ravel()
        if float(values.std()) < STILL:
            continue
        skew, tail, p = not_normal(values)
        kind = "a long tail on one side" if abs(skew) > SKEWED else "long tails" if tail > 0 else "a flat middle"
        shape = f"{kind} (skewness {skew:+.1f}, excess kurtosis {tail:+.1f})"
        text = f"the log-odds of {shown(name)} are not normally distributed given the outcome: {shape}"
        findings.append(Finding(name, tail, p, abs(skew) > SKEWED or abs(tail) > TAILED, text))
    fine = f"log-odds are normally distributed given the outcome ({counted(len(findings), 'expert')} tested)"
    idle = f"too few outcomes to say whether log-odds are normally distributed: {ENOUGH} by one expert are needed"
    return concluded("normality", findings, fine, idle)


def spreads(residuals: Residuals) -> list[Check]:
    """The spread of each expert's contrasts where a class happens and where not: Brown and Forsythe's test."""
    findings = []
    for name, rows in residuals.each(2 * EACH):
        outcome, values = residuals.outcome[rows], residuals.values[rows]
        size = np.empty(len(values))
        for c in np.unique(outcome):
            inside = values[outcome == c]
            size[outcome == c] = np.linalg.norm(inside - np.median(inside, axis=0), axis=1)
        findings += [
            _spread(residuals, name, c, size[outcome == c], size[outcome != c])
            for c in _sides(residuals)
            if EACH <= np.count_nonzero(outcome == c) <= len(outcome) - EACH
        ]
    fine = (
        "log-odds have the same variance given either outcome "
        f"({counted(len({each.expert for each in findings}), 'expert')} tested)"
    )
    idle = f"too few outcomes of each kind to compare spreads: {EACH} of each by one expert are needed"
    return concluded("spreads", findings, fine, idle)


def _spread(residuals: Residuals, name: str, c: int, one: Array, two: Array) -> Finding:
    ratio = float(np.sqrt(np.mean(one**2) / max(float(np.mean(two**2)), 1e-300)))
    text = (
        f"the log-odds of {shown(name)} spread {ratio:.1f} times as much where {_happens(residuals, c)} as where not, "
        "and the model assumes that they spread alike"
    )
    return Finding(name, ratio, welch(one, two), not 1.0 / UNEQUAL < ratio < UNEQUAL, text)


def _sides(residuals: Residuals) -> list[int]:
    """Classes that are compared with the others: one of two; none where each event has options of its own."""
    if residuals.forecasts.options is not None:
        return []
    return [1] if residuals.classes == 2 else list(range(residuals.classes))


def _happens(residuals: Residuals, c: int) -> str:
    label = residuals.forecasts.classes[c]
    return "it happens" if residuals.classes == 2 and label in (1, True, "1") else f"the outcome is {shown(label)}"


def correlations(residuals: Residuals) -> list[Check]:
    """How correlated experts are on the same event, where one class happens and where it does not."""
    k, t = residuals.classes, len(residuals.forecasts.events)
    cell = residuals.expert * k + residuals.outcome
    square = np.bincount(cell, np.einsum("md,md->m", residuals.values, residuals.values), residuals.starts[-1] + k)
    count = np.bincount(cell, minlength=len(square))
    free = np.maximum(count - 1, 1) * (k - 1)
    scale = np.sqrt(square / free)[cell]
    kept = (scale > STILL) & (count[cell] >= EACH)
    z = residuals.values[kept] / scale[kept][:, None]
    event = residuals.event[kept]
    summed = np.stack([np.bincount(event, column, t) for column in z.T], axis=-1)
    each, present = np.bincount(event, np.einsum("md,md->m", z, z), t), np.bincount(event, minlength=t)
    used = present >= 2
    pairs = present[used] * (present[used] - 1.0)
    # The mean correlation between those present on each event.
    mean = (np.einsum("td,td->t", summed, summed) - each)[used] / pairs / (k - 1)
    outcome = residuals.forecasts.outcomes[used]
    findings = []
    for c in _sides(residuals):
        one, two = mean[outcome == c], mean[outcome != c]
        if min(len(one), len(two)) < EACH:
            continue
        difference = float(one.mean() - two.mean())
        text = (
            f"experts are correlated at {one.mean():.2f} where {_happens(residuals, c)} and at {two.mean():.2f} where "
            "not, and the model assumes one correlation"
        )
        findings.append(Finding(None, difference, welch(one, two), abs(difference) > DIFFERENCE, text))
    fine = "the correlations of experts are the same given either outcome"
    idle = f"too few outcomes of each kind to compare correlations: {EACH} of each by two experts are needed"
    return concluded("correlations", findings, fine, idle)


def drift(residuals: Residuals) -> list[Check]:
    """Whether an expert's bias or score has a trend: rank correlation over dates, the events of one counting as one."""
    times = residuals.forecasts.times
    if times is None:
        return [
            Check("drift", None, None, None, "whether experts change over time: the forecasts have no times", False)
        ]
    day = times.astype("datetime64[D]")[residuals.event]
    score = -np.logaddexp(0.0, -residuals.confidence)
    findings: list[Finding] = []
    for name, rows in residuals.each(ENOUGH):
        known = ~np.isnat(day[rows])
        dates, index = np.unique(day[rows][known], return_inverse=True)
        if len(dates) < DATES:
            continue
        number = np.bincount(index)
        series = [("score", score[rows][known])]
        if residuals.classes == 2 and residuals.forecasts.options is None:
            series.append(("bias", residuals.values[rows][known, 0]))
        for what, values in series:
            by_date = np.bincount(index, values) / number
            r, p = rank_correlation(np.arange(len(dates)), by_date)
            findings.append(Finding(name, r, p, True, _trend(name, what, r, len(dates))))
    tested = counted(len({each.expert for each in findings}), "expert")
    idle = f"too few dates to say whether an expert changes: {DATES} are needed, and {ENOUGH} outcomes by one expert"
    return concluded("drift", findings, f"no expert changes over time ({tested} tested)", idle)


def _trend(name: str, what: str, r: float, dates: int) -> str:
    over = f"rank correlation with time {r:+.2f}, over {counted(dates, 'date')}"
    if what == "score":
        return f"{shown(name)} gets {'better' if r > 0 else 'worse'} over time ({over})"
    return f"the forecasts of {shown(name)} {'rise' if r > 0 else 'fall'} over time, with either outcome ({over})"


Codes: TypeAlias = npt.NDArray[np.int32]

# An expert knew the outcomes who gives what happened odds of 49 to 1 beyond the prior nearly always, and is never on
# the other side; from so many outcomes on, so many of them of each of two kinds.
CERTAIN, ALWAYS, OUTCOMES, KINDS = float(np.log(49.0)), 0.95, 10, 3
# Forecasts before placeholders are reported, the share of them that matters, so many times more than there are of what
# is as likely, and the grids that people use.
SEVERAL, MATTERS, EXCESS, GRIDS = 10, 0.05, 1.5, (0.25, 0.1, 0.05, 0.01)
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
    return [
        Check(
            "leakage",
            None,
            most,
            None,
            "no expert is right with extreme confidence on nearly every event, as if the outcomes had been known",
            False,
        )
    ]


def placeholders(forecasts: Forecasts) -> list[Check]:
    """Experts who say exactly 50%, or 1/K of each class, more often than what they say otherwise explains."""
    binary, own = len(forecasts.classes) == 2, forecasts.options is not None
    order = np.argsort(forecasts.expert_index, kind="stable")
    sizes = forecasts.sizes[forecasts.event_index[order]]
    starts = np.searchsorted(forecasts.expert_index[order], np.arange(len(forecasts.experts) + 1))
    findings = []
    what = "50%" if binary else "the same of each option" if own else f"1/{len(forecasts.classes)} of each class"
    for i, name in enumerate(forecasts.experts):
        forecast = forecasts.probabilities[order[starts[i] : starts[i + 1]]]
        if len(forecast) < SEVERAL:
            continue
        count, p, usual = _halves(forecast) if binary else _evens(forecast, sizes[starts[i] : starts[i + 1]])
        times = "once" if count == 1 else f"{count} times"
        text = f"{shown(name)} says {what} {times} in {len(forecast)}: a placeholder?"
        matters = count >= max(MATTERS * len(forecast), EXCESS * usual)
        findings.append(Finding(name, count / len(forecast), p, matters, text))
    fine = f"no expert answers {what} suspiciously often, as a way of giving no forecast"
    return concluded("placeholders", findings, fine, f"too few forecasts to tell placeholders: {SEVERAL} are needed")


def _halves(forecast: Array) -> tuple[int, float, float]:
    """How often an expert says 50%, its probability beside neighbours on the likeliest grid, and the mean of these."""
    count = int((np.abs(forecast - 0.5) < EQUAL).sum())
    found = []
    for step in GRIDS:
        near = [k for k in (-2, -1, 1, 2) if 0.0 < 0.5 + k * step < 1.0]
        beside = sum(int((np.abs(forecast - 0.5 - k * step) < EQUAL).sum()) for k in near)
        found.append((at_least(count, count + beside, 1.0 / (1 + len(near))), beside / len(near)))
    return count, *max(found)


def _evens(forecast: Array, sizes: npt.NDArray[np.intp]) -> tuple[int, float, float]:
    """How often an expert gives all classes the same, up to whole per cents, beside what else is repeated, and that."""
    even = np.abs(forecast - uniform_probabilities(sizes, forecast.shape[1])).max(axis=1) < 0.0075
    _, repeated = np.unique(forecast[~even], axis=0, return_counts=True)
    count, beside = int(even.sum()), int(repeated.max(initial=0))
    return count, at_least(count, count + beside, 0.5), beside


def duplicates(forecasts: Forecasts) -> list[Check]:
    """Pairs of experts who say the same, or exactly the opposite, on nearly every event that both answer."""
    binary = len(forecasts.classes) == 2
    t, n = forecasts.shape
    kinds = ("clones", "complements") if binary else ("clones",)
    if n * n * t > MOST_COMPARED:
        return [Check(code, None, None, None, "too many experts to compare pair by pair", False) for code in kinds]
    forecast, same, opposite = _codes(forecasts)
    there = (forecast >= 0).astype(np.float32)
    shared = np.triu((there @ there.T).round().astype(np.intp), 1)
    others = {"clones": same, "complements": opposite}
    return [check for code in kinds for check in _alike(forecasts, code, forecast, others[code], shared)]


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
    forecast, opposite = code.reshape(2, -1)
    found = np.full((3, n, t), [[[-1]], [[-2]], [[-2]]], dtype=np.int32)
    where = forecasts.expert_index, forecasts.event_index
    for array, values in zip(found, (forecast, forecast, np.where(forecast == opposite, -2, opposite)), strict=True):
        array[where] = values
    return found[0], found[1], found[2]


def _alike(forecasts: Forecasts, code: str, forecast: Codes, other: Codes, shared: Index) -> list[Check]:
    agree = np.zeros_like(shared)
    for i in range(len(forecast) - 1):
        agree[i, i + 1 :] = np.count_nonzero(other[i + 1 :] == forecast[i], axis=1)
    pairs = shared >= SHARED
    total, agreed, tests = int(shared[pairs].sum()), int(agree[pairs].sum()), int(pairs.sum())
    findings, too_few = [], False
    for i, j in np.argwhere(pairs & (agree >= ALIKE * shared)).tolist():
        same, of = int(agree[i, j]), int(shared[i, j])
        if len(np.unique(forecast[i][other[j] == forecast[i]])) < DIFFERENT:
            too_few = True
            continue
        # How often two of them agree by chance: as often as two others do, within limits.
        probability = min(max((agreed - same + 1.0) / (total - of + 2.0), 0.1), 0.5)
        what = "the same as" if code == "clones" else "the opposite of"
        one, two = forecasts.experts[j], forecasts.experts[i]
        text = f"{shown(one)} says {what} {shown(two)} on {same / of:.0%} of {of} events: one expert, not two"
        findings.append(Finding(one, same / of, at_least(same, of, probability), True, text))
    if tests and not findings and not too_few:
        share = float((agree[pairs] / shared[pairs]).max())
        findings.append(Finding(None, share, 1.0, False, ""))
    how = "the same" if code == "clones" else "the opposite of each other"
    fine, idle = f"no two experts say {how}", f"too few events that two experts both answer to tell {code}"
    if too_few:
        idle = f"experts say {how}, but too few different things to tell {code}"
    return concluded(code, findings, fine, idle, tests)


def check_model(
    forecasts: Forecasts, state: FittedPanel | None = None, prior: npt.ArrayLike | None = None
) -> list[Check]:
    """Check whether forecasts are as the model takes them to be: at least one finding of each of `CODES`.

    Parameters
    ----------
    forecasts : Forecasts
    state : FittedPanel, optional
        Its prior and its floor are used; else Laplace's estimate, and the usual floor.
    prior : optional
        As it was given to the fit, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> f = Forecasts.from_array(np.tile([[0.1, 0.5], [0.9, 0.5]], (20, 1)), [0, 1] * 20)
    >>> [check.text for check in check_model(f) if check.serious and check.code == "placeholders"]
    ["'expert_2' says 50% 40 times in 40: a placeholder?"]
    """
    expect_type(forecasts, Forecasts, "forecasts")
    if state is not None:
        expect_type(state, FittedPanel, "state")
    residuals = Residuals.of(forecasts, state, prior)
    return [
        *normality(residuals),
        *spreads(residuals),
        *correlations(residuals),
        *drift(residuals),
        *leakage(residuals),
        *placeholders(forecasts),
        *duplicates(forecasts),
    ]
