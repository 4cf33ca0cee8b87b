"""Checks of the forecasts and of the model's assumptions, each with a number and a text.

Each check is a family of tests, by expert or by pair, corrected for their number (Holm), at a level of 1%, so that if
the model holds there is an alarm in about 1 of 20 files. A departure that is too small to matter is in order, however
significant it is. Leakage is a rule and no test. `benchmarks/checks.py` measures false alarms and detection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.residuals import Residuals
from opinionpool.arguments import expect_type
from opinionpool.arrays import Array, Index
from opinionpool.estimation.rows import pair_products
from opinionpool.forecasts import Forecasts
from opinionpool.labels import uniform_probabilities
from opinionpool.learning.fitted import FittedPanel
from opinionpool.text import counted, shown

# Of each family of tests.
LEVEL = 0.01
CODES = ("normality", "spreads", "correlations", "drift", "leakage", "placeholders", "clones", "complements")
# Least numbers to test: forecasts of an expert, forecasts with an outcome of one kind, dates.
ENOUGH, EACH, DATES = 20, 8, 12
# Departures that matter: skewness, excess kurtosis, a ratio of spreads, a difference of correlations.
SKEWED, TAILED, UNEQUAL, DIFFERENCE = 1.0, 2.0, 1.4, 0.1
# Standard deviation of an expert's log-odds that counts as 0.
ZERO_SPREAD = 1e-9
# Leakage: log-odds beyond the prior given to what happened, the share of events with so much, and at least so many
# events, of which so many have each of two outcomes.
CERTAIN, ALWAYS, OUTCOMES, KINDS = float(np.log(49.0)), 0.95, 10, 3
# Placeholders: at least so many forecasts, the share of them that matters, the ratio to neighbouring values that
# matters, the grids that people round to, and differences that are rounding.
SEVERAL, MATTERS, EXCESS, GRIDS, EQUAL = 10, 0.05, 1.5, (0.25, 0.1, 0.05, 0.01), 1e-9
# Two experts are one who agree on this share of at least so many events, with so many different statements.
ALIKE, SHARED, DIFFERENT = 0.9, 10, 5
# Comparisons of forecasts, pair by pair, that take seconds.
MOST_COMPARED = 1 << 32


@dataclass(frozen=True)
class Check:
    """Finding of one check: what was measured, in numbers and words, and whether the model's assumption fails.

    Attributes
    ----------
    code : str
        One of `CODES`.
    expert : str or None
        The expert whom it is about; None for all experts.
    statistic : float or None
        The measured number, which the text explains.
    p : float or None
        P-value, corrected for tests of all experts; None if nothing is tested.
    text : str
        One sentence, for people.
    serious : bool
        Whether there is a departure from the model that is significant and large enough to matter. False if all is in
        order, or there are too few data.
    """

    code: str
    expert: str | None
    statistic: float | None
    p: float | None
    text: str
    serious: bool


def family(code: str, tested: Sequence[Check], fine: str, idle: str, tests: int = 0) -> list[Check]:
    """Checks in `tested` that are serious and, corrected for `tests` tests (Holm), significant; else one check.

    The text of this check is `fine`, or `idle` if nothing could be tested.
    """
    if not tested:
        return [_in_order(code, idle)]
    adjusted = holm(np.array([each.p for each in tested]), tests)
    order = np.argsort(adjusted, kind="stable").tolist()
    found = [replace(tested[i], p=float(adjusted[i])) for i in order]
    alarms = [each for i, each in zip(order, found, strict=True) if each.serious and adjusted[i] < LEVEL]
    return alarms or [_in_order(code, fine, found[0].statistic, found[0].p)]


def _in_order(code: str, text: str, statistic: float | None = None, p: float | None = None) -> Check:
    return Check(code, None, statistic, p, text, False)


def holm(p: Array, tests: int = 0) -> Array:
    """P-values `p` (M,) corrected for `tests` tests (Holm 1979); p-values of further tests, if any, are larger."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate((max(tests, len(p)) - np.arange(len(p))) * p[order])
    return np.minimum(adjusted, 1.0)


def welch(one: Array, two: Array) -> float:
    """Two-sided p-value of Welch's t test of equal means of two samples; 1 if neither sample varies."""
    if np.ptp(one) == np.ptp(two) == 0:
        return 1.0
    a, b = (float(x.var(ddof=1)) / len(x) for x in (one, two))
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(two) - 1))
    return two_sided(float(one.mean() - two.mean()) / sqrt(a + b), freedom)


def two_sided(t: float, freedom: float) -> float:
    """Two-sided p-value of the t statistic `t` under Student's t distribution with `freedom` degrees."""
    from scipy.special import stdtr

    return 2.0 * float(stdtr(freedom, -abs(t)))


def spearman(values: Array) -> tuple[float, float]:
    """Spearman correlation of `values` with their order (0 if all are equal), and its two-sided p-value."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) == 1:
        return 0.0, 1.0
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    r = float(np.corrcoef(np.arange(len(values)), ranks)[0, 1])
    freedom = len(values) - 2
    return r, two_sided(r * sqrt(freedom / max((1.0 + r) * (1.0 - r), 1e-300)), freedom)


def at_least(successes: int, trials: int, probability: float) -> float:
    """Binomial probability of `successes` or more in `trials` trials, each successful with `probability`."""
    from scipy.special import bdtrc

    return float(bdtrc(successes - 1, trials, probability))


def not_normal(values: Array) -> float:
    """P-value of Anderson and Darling's test that `values` are normal (D'Agostino and Stephens 1986, table 4.9)."""
    from scipy.special import log_ndtr

    n, z = len(values), np.sort(values - values.mean()) / values.std(ddof=1)
    a = -n - float(((2.0 * np.arange(1, n + 1) - 1.0) / n) @ (log_ndtr(z) + log_ndtr(-z[::-1])))
    a = min(a * (1.0 + 0.75 / n + 2.25 / n**2), 13.0)
    if a >= 0.34:
        one, linear, square = (1.2937, -5.709, 0.0186) if a >= 0.6 else (0.9177, -4.279, -1.38)
        return exp(one + linear * a + square * a * a)
    one, linear, square = (-8.318, 42.796, -59.938) if a >= 0.2 else (-13.436, 101.14, -223.73)
    return 1.0 - exp(one + linear * a + square * a * a)


def normality(residuals: Residuals) -> list[Check]:
    """Test whether each expert's log-odds are normally distributed given the outcome: Anderson-Darling test."""
    tested = []
    for name, rows in residuals.each(ENOUGH):
        values = residuals.values[rows].ravel()
        if values.std() < ZERO_SPREAD:
            continue
        z = (values - values.mean()) / values.std()
        skew, tail = float(np.mean(z**3)), float(np.mean(z**4)) - 3.0
        kind = "a long tail on one side" if abs(skew) > SKEWED else "long tails" if tail > 0 else "a flat middle"
        shape = f"{kind} (skewness {skew:+.1f}, excess kurtosis {tail:+.1f})"
        text = f"the log-odds of {shown(name)} are not normally distributed given the outcome: {shape}"
        tested.append(
            Check("normality", name, tail, not_normal(values), text, abs(skew) > SKEWED or abs(tail) > TAILED)
        )
    fine = f"log-odds are normally distributed given the outcome ({counted(len(tested), 'expert')} tested)"
    idle = f"too few outcomes to say whether log-odds are normally distributed: {ENOUGH} by one expert are needed"
    return family("normality", tested, fine, idle)


def spreads(residuals: Residuals) -> list[Check]:
    """Test whether the variance of each expert's log-odds differs by outcome: Brown-Forsythe test with Welch's t."""
    tested = []
    for name, rows in residuals.each(2 * EACH):
        outcome, values = residuals.outcome[rows], residuals.values[rows]
        size = np.empty(len(values))
        for c in np.unique(outcome):
            inside = values[outcome == c]
            size[outcome == c] = np.linalg.norm(inside - np.median(inside, axis=0), axis=1)
        for c, one, two in _sides(residuals, size, outcome):
            ratio = float(np.sqrt(np.mean(one**2) / max(float(np.mean(two**2)), 1e-300)))
            text = (
                f"the log-odds of {shown(name)} spread {ratio:.1f} times as much where {_happens(residuals, c)} as "
                "where not, and the model assumes that they spread alike"
            )
            tested.append(Check("spreads", name, ratio, welch(one, two), text, not 1.0 / UNEQUAL < ratio < UNEQUAL))
    count = counted(len({each.expert for each in tested}), "expert")
    idle = f"too few outcomes of each kind to compare spreads: {EACH} of each by one expert are needed"
    return family("spreads", tested, f"log-odds have the same variance given either outcome ({count} tested)", idle)


def _sides(residuals: Residuals, values: Array, outcome: Index) -> list[tuple[int, Array, Array]]:
    """For each class with enough events of both kinds: its index, `values` where it happened, and where it did not."""
    classes = [1] if residuals.classes == 2 else range(residuals.classes)
    if residuals.forecasts.options is not None:
        classes = []
    sides = [(c, values[outcome == c], values[outcome != c]) for c in classes]
    return [(c, one, two) for c, one, two in sides if min(len(one), len(two)) >= EACH]


def _happens(residuals: Residuals, c: int) -> str:
    label = residuals.forecasts.classes[c]
    return "it happens" if residuals.classes == 2 and label in (1, True, "1") else f"the outcome is {shown(label)}"


def correlations(residuals: Residuals) -> list[Check]:
    """Test whether the correlation of experts' errors differs by outcome: Welch's t test of mean products of errors."""
    k, t = residuals.classes, len(residuals.forecasts.events)
    cell = residuals.expert * k + residuals.outcome
    squares = (residuals.values**2).sum(axis=1)
    count = np.bincount(cell)
    spread = np.sqrt(np.bincount(cell, squares) / np.maximum(count - 1, 1) / (k - 1))
    kept = (spread[cell] > ZERO_SPREAD) & (count[cell] >= EACH)
    z, event = residuals.values[kept] / spread[cell[kept]][:, None], residuals.event[kept]
    products, pairs = pair_products(event, z, t)
    used = pairs > 0
    mean = products[used] / pairs[used] / (k - 1)
    tested = []
    for c, one, two in _sides(residuals, mean, residuals.forecasts.outcomes[used]):
        difference = float(one.mean() - two.mean())
        text = (
            f"experts are correlated at {one.mean():.2f} where {_happens(residuals, c)} and at {two.mean():.2f} where "
            "not, and the model assumes one correlation"
        )
        tested.append(Check("correlations", None, difference, welch(one, two), text, abs(difference) > DIFFERENCE))
    idle = f"too few outcomes of each kind to compare correlations: {EACH} of each by two experts are needed"
    return family("correlations", tested, "the correlations of experts are the same given either outcome", idle)


def drift(residuals: Residuals) -> list[Check]:
    """Test for a trend in each expert's bias and log score: Spearman correlation of their daily means with the date."""
    times = residuals.forecasts.times
    if times is None:
        return [_in_order("drift", "whether experts change over time: the forecasts have no times")]
    day = times.astype("datetime64[D]")[residuals.event]
    series = {"score": -np.logaddexp(0.0, -residuals.confidence)}
    if residuals.classes == 2 and residuals.forecasts.options is None:
        series["bias"] = residuals.values[:, 0]
    tested: list[Check] = []
    for name, rows in residuals.each(ENOUGH):
        known = ~np.isnat(day[rows])
        dates, index = np.unique(day[rows][known], return_inverse=True)
        if len(dates) < DATES:
            continue
        for what, values in series.items():
            by_date = np.bincount(index, values[rows][known]) / np.bincount(index)
            r, p = spearman(by_date)
            tested.append(Check("drift", name, r, p, _trend(name, what, r, len(dates)), True))
    count = counted(len({each.expert for each in tested}), "expert")
    idle = f"too few dates to say whether an expert changes: {DATES} are needed, and {ENOUGH} outcomes by one expert"
    return family("drift", tested, f"no expert changes over time ({count} tested)", idle)


def _trend(name: str, what: str, r: float, dates: int) -> str:
    over = f"rank correlation with time {r:+.2f}, over {counted(dates, 'date')}"
    if what == "score":
        return f"{shown(name)} gets {'better' if r > 0 else 'worse'} over time ({over})"
    return f"the forecasts of {shown(name)} {'rise' if r > 0 else 'fall'} over time, with either outcome ({over})"


def leakage(residuals: Residuals) -> list[Check]:
    """Find experts who are right with extreme confidence on nearly all events, as if they had known the outcomes."""
    found, shares = [], []
    for name, rows in residuals.each(OUTCOMES):
        seen = np.bincount(residuals.outcome[rows], minlength=residuals.classes)
        if (seen >= KINDS).sum() < 2 and residuals.forecasts.options is None:
            continue
        beyond = residuals.beyond[rows]
        shares.append(share := float((beyond >= CERTAIN).mean()))
        if share >= ALWAYS and (beyond > 0).all():
            text = (
                f"{shown(name)} is right with extreme confidence on {share:.0%} of {len(beyond)} events and never "
                "wrong: were these forecasts made before the outcomes were known?"
            )
            found.append(Check("leakage", name, share, None, text, True))
    fine = "no expert is right with extreme confidence on nearly every event, as if the outcomes had been known"
    idle = f"too few outcomes to say whether somebody knew them: {OUTCOMES} by one expert are needed"
    return found or [_in_order("leakage", fine, max(shares)) if shares else _in_order("leakage", idle)]


def placeholders(forecasts: Forecasts) -> list[Check]:
    """Test whether an expert forecasts exactly 50%, or 1/K of each class, too often for it to be an opinion."""
    binary, own = len(forecasts.classes) == 2, forecasts.options is not None
    order = np.argsort(forecasts.expert_index, kind="stable")
    sizes = forecasts.sizes[forecasts.event_index[order]]
    starts = np.searchsorted(forecasts.expert_index[order], np.arange(len(forecasts.experts) + 1))
    what = "50%" if binary else "the same of each option" if own else f"1/{len(forecasts.classes)} of each class"
    tested = []
    for name, start, end in zip(forecasts.experts, starts[:-1], starts[1:], strict=True):
        forecast, total = forecasts.probabilities[order[start:end]], int(end - start)
        # The middle of a scale is a level of its own.
        if total < SEVERAL or name in forecasts.scales:
            continue
        count, p, usual = _halves(forecast) if binary else _evens(forecast, sizes[start:end])
        text = f"{shown(name)} says {what} {'once' if count == 1 else f'{count} times'} in {total}: a placeholder?"
        tested.append(
            Check("placeholders", name, count / total, p, text, count >= max(MATTERS * total, EXCESS * usual))
        )
    fine = f"no expert answers {what} suspiciously often, as a way of giving no forecast"
    return family("placeholders", tested, fine, f"too few forecasts to tell placeholders: {SEVERAL} are needed")


def _halves(forecast: Array) -> tuple[int, float, float]:
    """Number of forecasts of 50%, probability of as many by chance, and mean number at round values next to 50%."""

    def times(value: float) -> int:
        return int((np.abs(forecast - value) < EQUAL).sum())

    count, found = times(0.5), []
    for step in GRIDS:
        near = [0.5 + k * step for k in (-2, -1, 1, 2) if 0.0 < 0.5 + k * step < 1.0]
        beside = sum(map(times, near))
        found.append((at_least(count, count + beside, 1.0 / (1 + len(near))), beside / len(near)))
    return count, *max(found)


def _evens(forecast: Array, sizes: Index) -> tuple[int, float, float]:
    """Number of forecasts of 1/K each, probability of as many by chance, and number of the commonest other forecast."""
    even = np.abs(forecast - uniform_probabilities(sizes, forecast.shape[1])).max(axis=1) < 0.0075
    _, repeated = np.unique(forecast[~even], axis=0, return_counts=True)
    count, beside = int(even.sum()), int(repeated.max(initial=0))
    return count, at_least(count, count + beside, 0.5), beside


Codes: TypeAlias = npt.NDArray[np.int32]


def duplicates(forecasts: Forecasts) -> list[Check]:
    """Test pairs of experts for identical, or exactly opposite, forecasts on nearly all events that both answer."""
    t, n = forecasts.shape
    kinds = ("clones", "complements") if len(forecasts.classes) == 2 else ("clones",)
    if n * n * t > MOST_COMPARED:
        return [_in_order(code, "too many experts to compare pair by pair") for code in kinds]
    forecast, *others = _codes(forecasts)
    there = (forecast >= 0).astype(np.float32)
    shared = np.triu((there @ there.T).round().astype(np.intp), 1)
    pairs = zip(kinds, others, strict=False)
    return [check for code, other in pairs for check in _alike(forecasts, code, forecast, other, shared)]


def _codes(forecasts: Forecasts) -> Codes:
    """Integers that are equal where forecasts are, (3, N, T): forecasts, the same again, and opposites; missing < 0."""
    t, n = forecasts.shape
    p = forecasts.probabilities if forecasts.probabilities.ndim > 1 else forecasts.probabilities[:, None]
    both = np.concatenate([p, 1.0 - p]).round(9)
    code = np.zeros(len(both), dtype=np.intp)
    for column in both.T:
        # Column by column, because rows are slow to sort.
        levels = np.unique(column, return_inverse=True)[1]
        code = np.unique(code * (levels.max(initial=0) + 1) + levels, return_inverse=True)[1]
    forecast, opposite = code.reshape(2, -1)
    found = np.full((3, n, t), [[[-1]], [[-2]], [[-2]]], dtype=np.int32)
    # What is its own opposite is nobody's.
    found[:, forecasts.expert_index, forecasts.event_index] = (
        forecast,
        forecast,
        np.where(forecast == opposite, -2, opposite),
    )
    return found


def _alike(forecasts: Forecasts, code: str, forecast: Codes, other: Codes, shared: Index) -> list[Check]:
    agree = np.zeros_like(shared)
    for i in range(len(forecast) - 1):
        agree[i, i + 1 :] = np.count_nonzero(other[i + 1 :] == forecast[i], axis=1)
    pairs = shared >= SHARED
    total, agreed, tests = int(shared[pairs].sum()), int(agree[pairs].sum()), int(pairs.sum())
    clones = code == "clones"
    each_other = "the same" if clones else "the opposite of each other"
    tested, too_few = [], False
    for i, j in np.argwhere(pairs & (agree >= ALIKE * shared)).tolist():
        same, of = int(agree[i, j]), int(shared[i, j])
        if len(np.unique(forecast[i][other[j] == forecast[i]])) < DIFFERENT:
            too_few = True
            continue
        # How often two of them agree by chance: as often as two others do, within limits.
        probability = min(max((agreed - same + 1.0) / (total - of + 2.0), 0.1), 0.5)
        one, two = forecasts.experts[j], forecasts.experts[i]
        how = f"{'the same as' if clones else 'the opposite of'} {shown(two)} on {same / of:.0%} of {of} events"
        text = f"{shown(one)} says {how}: one expert, not two"
        tested.append(Check(code, one, same / of, at_least(same, of, probability), text, True))
    idle = f"too few events that two experts both answer to tell {code}"
    if too_few:
        idle = f"experts say {each_other}, but too few different things to tell {code}"
    elif tests and not tested:
        tested.append(Check(code, None, float((agree[pairs] / shared[pairs]).max()), 1.0, "", False))
    return family(code, tested, f"no two experts say {each_other}", idle, tests)


def check_model(
    forecasts: Forecasts, state: FittedPanel | None = None, prior: npt.ArrayLike | None = None
) -> list[Check]:
    """Check the forecasts and the model's assumptions: at least one finding for each of `CODES`.

    Parameters
    ----------
    forecasts : Forecasts
    state : FittedPanel, optional
        Fit whose prior and floor are used; without it, Laplace's estimate and the default floor.
    prior : optional
        The prior that was given to the fit, if any.

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
    by_residuals = (normality, spreads, correlations, drift, leakage)
    checks = [check for each in by_residuals for check in each(residuals)]
    return [*checks, *placeholders(forecasts), *duplicates(forecasts)]
