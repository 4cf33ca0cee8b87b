"""Whether contrasts are as the model takes them to be: normal within an outcome, alike in all, the same over time."""

from __future__ import annotations

import numpy as np

from opinionpool.chance import not_normal, rank_correlation, welch
from opinionpool.findings import Check, Finding, concluded
from opinionpool.logodds import Array
from opinionpool.residuals import Residuals
from opinionpool.wording import counted, shown

# Fewer numbers of an expert say nothing about their distribution, and fewer on one side nothing about differences.
ENOUGH, EACH, DATES = 20, 8, 12
# Departures that matter: skewness, excess kurtosis, a ratio of spreads, a difference of correlations.
SKEWED, TAILED, UNEQUAL, APART = 1.0, 2.0, 1.4, 0.1
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
        text = f"what {shown(name)} says is not normal within an outcome: {shape}"
        findings.append(Finding(name, tail, p, abs(skew) > SKEWED or abs(tail) > TAILED, text))
    fine = f"contrasts look normal within an outcome ({counted(len(findings), 'expert')} tested)"
    idle = f"too few outcomes to say whether contrasts are normal: {ENOUGH} by one expert are needed"
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
        f"contrasts spread alike whatever happens ({counted(len({each.expert for each in findings}), 'expert')} tested)"
    )
    idle = f"too few outcomes of each kind to compare spreads: {EACH} of each by one expert are needed"
    return concluded("spreads", findings, fine, idle)


def _spread(residuals: Residuals, name: str, c: int, one: Array, two: Array) -> Finding:
    ratio = float(np.sqrt(np.mean(one**2) / max(float(np.mean(two**2)), 1e-300)))
    text = (
        f"what {shown(name)} says spreads {ratio:.1f} times as much where {_happens(residuals, c)} "
        "as where not, and the model takes it to spread alike"
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
        apart = float(one.mean() - two.mean())
        text = (
            f"experts are correlated at {one.mean():.2f} where {_happens(residuals, c)} and at {two.mean():.2f} where "
            "not, and the model takes them to be correlated alike"
        )
        findings.append(Finding(None, apart, welch(one, two), abs(apart) > APART, text))
    fine = "experts are correlated alike whatever happens"
    idle = f"too few outcomes of each kind to compare correlations: {EACH} of each by two experts are needed"
    return concluded("correlations", findings, fine, idle)


def drift(residuals: Residuals) -> list[Check]:
    """Whether an expert's bias or score has a trend: rank correlation over dates, the events of one counting as one."""
    times = residuals.forecasts.times
    if times is None:
        return [Check("drift", None, None, None, "without times nobody can say whether an expert changes", False)]
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
    return f"what {shown(name)} says {'rises' if r > 0 else 'falls'} over time, whatever happens ({over})"
