"""Information in dependent events: those in one group, or those that closed or were resolved on the same day.

n events in groups of m count as n / (1 + (m − 1) r) independent ones, r being the correlation within groups of what is
learned from: score residuals for the pool's coefficients, and differences of log losses for comparisons of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.clusters import Clusters, by_date, by_group, by_settlement
from opinionpool.errors import Note
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import (
    COMMON,
    LARGEST,
    LASTING,
    LASTING_PROBABILITIES,
    SHARED,
    SHARED_PROBABILITIES,
)
from opinionpool.learning.duplicates import Duplicates, counted_once
from opinionpool.learning.prior import USUAL_LIMIT, believed_slope
from opinionpool.model.contrasts import Extremes, contrasts
from opinionpool.text import counted

# From this loss on, there is a note; on days of forecasting, which do not count, from this one and so many days on.
WORTH_SAYING, WORTH_ASKING, ENOUGH_DAYS = 0.95, 0.25, 10


def independent_weight(
    forecasts: Forecasts, reference: Array, weight: Array, floor: float
) -> tuple[Array, Array | None, tuple[Note, ...]]:
    """Weights of events, (T,), reduced where events are dependent: for fits, for comparisons of answers; and notes.

    The weights for comparisons are None if no event is dependent. Events depend within groups or, without groups, if
    they closed or were resolved on one day. Events forecast on one day keep their weight, but if their residuals are
    alike, a note asks whether they closed then, too.
    """
    known = by_group(forecasts) or by_settlement(forecasts)
    found = known or by_date(forecasts)
    if found is None:
        return weight, None, ()
    answers = _Answers.of(forecasts, reference, floor)
    used = forecasts.resolved & (weight > 0) & (answers.number > 0)
    labels, member = np.unique(found.member[used], return_inverse=True)
    if len(labels) == 0 or (known is None and not ENOUGH_DAYS <= len(labels) < len(member)):
        return weight, None, ()
    # Events without a date have the last numbers.
    days = int((labels < found.shared).sum()) if found.unit == "date" else 0
    surprises, differences = _residuals(forecasts, reference, answers, used)

    def counted(residuals: list[tuple[Array, int]]) -> Array:
        reduced = weight.copy()
        reduced[used] *= independent_share(residuals, member, weight[used], days)[member]
        return reduced

    reduced = counted(surprises)
    events, worth = float(weight[used].sum()), float(reduced[used].sum())
    if known is None:
        return weight, None, _day_notes(days, events, worth)
    return reduced, counted([(differences, 1)]), _shared_notes(found, len(labels), events, worth)


def independent_share(residuals: Sequence[tuple[Array, int]], member: Index, weight: Array, days: int = 0) -> Array:
    """How many independent events each event of a group counts as, (G,), by the coefficient for which they are fewest.

    Each of n events with a correlation of r counts as 1 / (1 + (n - 1) r), and as less if the first `days` groups,
    which are days, are correlated too. The logarithm is averaged over the posterior of r, so that one event moves it
    little. For each coefficient, `residuals` has score residuals (T, p) and the number of their columns that vary
    freely; `member` (T,) is each event's group.
    """
    size = np.bincount(member, weights=weight)
    grid = [(r, phi) for r in SHARED for phi in (LASTING if days > 1 and r > 0 else (0.0,))]
    r, phi = np.array(grid).T
    prior = np.array([SHARED_PROBABILITIES[SHARED.index(r)] for r, _ in grid])
    if days > 1:
        prior *= [LASTING_PROBABILITIES[LASTING.index(phi)] if r > 0 else 1.0 for r, phi in grid]
    # The variance of a mean of `days` values, each of which lasts so far, against that of independent ones.
    series = max(days, 1)
    longer = (1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi**series) / (series * (1.0 - phi) ** 2)
    repeated = np.where(np.arange(len(size))[:, None] < days, longer, 1.0) * np.maximum(size, 1.0)[:, None]
    each = 1.0 / (1.0 - r + r * repeated)
    shares = []
    for values, free in residuals:
        bound = LARGEST * np.sqrt(weight @ np.square(values).mean(axis=1) / weight.sum())
        evidence = free * _log_evidence(np.clip(values, -bound, bound), member, weight, days, r, phi)
        shares.append(np.exp(np.log(each) @ posterior_probabilities(evidence, prior)))
    return np.asarray(min(shares, key=lambda share: float(size @ share)))


def _log_evidence(values: Array, member: Index, weight: Array, days: int, r: Array, phi: Array) -> Array:
    """Log marginal likelihood of score residuals `values`, correlated by r in a group, r phi^k if k days intervene."""
    size = np.bincount(member, weights=weight)
    means = np.stack([np.bincount(member, weights=weight * column) for column in values.T], axis=-1) / size[:, None]
    inside = float(weight @ np.square(values - means[member]).sum(axis=1))
    if not values.any():
        return np.zeros(len(r))
    ratio, common = r / (1.0 - r), COMMON / (1.0 - r)
    # Means of groups, and a column of ones for what all have in common: how far off, and how far off to be expected.
    observed = np.concatenate([means, np.ones((len(size), 1))], axis=1)[:, :, None]
    error = np.broadcast_to(observed, (*observed.shape[:2], len(r))).copy()
    variance = ratio + 1.0 / size[:, None]
    effect, spread = np.zeros((observed.shape[1], len(r))), ratio
    for day in range(days):
        error[day] -= effect
        variance[day] = spread + 1.0 / size[day]
        gain = spread / variance[day]
        effect = phi * (effect + gain * error[day])
        spread = phi**2 * spread * (1.0 - gain) + (1.0 - phi**2) * ratio
    squares = inside + (np.square(error[:, :-1]) / variance[:, None]).sum(axis=(0, 1))
    together = (error[:, :-1] * error[:, -1:] / variance[:, None]).sum(axis=0)
    total = (np.square(error[:, -1]) / variance).sum(axis=0)
    squares -= np.square(together).sum(axis=0) * common / (1.0 + common * total)
    determinant = np.log(variance).sum(axis=0) + np.log1p(common * total)
    return np.asarray(-0.5 * (size.sum() * np.log(squares) + determinant))


class _Answers(NamedTuple):
    """Number and mean of the forecasts on each event, without duplicates and constant experts."""

    number: Index  # (T,)
    average: Array  # (T, K); mean probabilities
    level: Array  # (T, K); log-ratios beyond the prior, centred

    @classmethod
    def of(cls, forecasts: Forecasts, reference: Array, floor: float) -> _Answers:
        event, events = forecasts.event_index, len(forecasts.events)
        prior, expected = reference[event], logodds.prior_log_ratios(reference)[event]
        beyond = contrasts(forecasts.probabilities, prior, floor, expected)
        source = Duplicates.among_cells(event, forecasts.expert_index, beyond, forecasts.experts).source
        count, _ = counted_once(event, forecasts.expert_index, source)
        believed = Extremes(USUAL_LIMIT).believed(beyond, logodds.no_options(prior))
        number = np.rint(np.bincount(event, count, events)).astype(np.intp)

        def mean(values: Array) -> Array:
            total = np.stack([np.bincount(event, count * column, events) for column in values.T], axis=-1)
            return np.asarray(total / np.maximum(number, 1)[:, None])

        return cls(number, mean(logodds.softmax(beyond + expected)), logodds.centred(mean(believed)))


def _residuals(
    forecasts: Forecasts, reference: Array, answers: _Answers, used: npt.NDArray[np.bool_]
) -> tuple[list[tuple[Array, int]], Array]:
    """Score residuals for intercept and slope, each with its number of free columns; and gains in log score, (T, 1).

    Score residuals are derivatives of the default pool's log-likelihood; of K columns whose sum is 0, K - 1 are free. A
    gain is the log probability of the outcome by the believed pool, less that by the simple average.
    """
    number, level = answers.number[used], answers.level[used]
    slope = believed_slope(number.astype(np.float64))
    answer = logodds.softmax(logodds.prior_log_ratios(reference[used]) + slope[:, None] * logodds.uncentred(level))
    happened = np.eye(len(forecasts.classes))[forecasts.outcomes[used]] - answer
    of_slope = (happened * level).sum(axis=1, keepdims=True)
    slopes = (of_slope, 1)
    surprises = [(happened, len(forecasts.classes) - 1), slopes] if forecasts.options is None else [slopes]
    given = [each[np.arange(len(each)), forecasts.outcomes[used]] for each in (answer, answers.average[used])]
    return surprises, np.log(given[0] / given[1])[:, None]


def _shared_notes(found: Clusters, clusters: int, events: float, worth: float) -> tuple[Note, ...]:
    if worth >= WORTH_SAYING * events:
        return ()
    undo = "--column group= (in Python groups=None)"
    if found.unit == "date":
        undo = "--column closes= --column resolved_at= (in Python settled=None)"
    what = "are in" if found.unit == "group" else "closed or were resolved on"
    text = (
        f"{events:,.6g} resolved events count as {worth:,.3g} independent ones: they {what} "
        f"{counted(clusters, found.unit)}, and outcomes may be dependent; if not, {undo} counts each in full"
    )
    return (Note("shared-events", text),)


def _day_notes(days: int, events: float, worth: float) -> tuple[Note, ...]:
    if worth >= WORTH_ASKING * events:
        return ()
    text = (
        f"{events:,.6g} resolved events were forecast on {counted(days, 'day')}, and outcomes on one day are alike: "
        f"did they close or were they resolved then, too? They would count as {worth:,.3g} independent ones with "
        "--column closes=NAME (in Python settled=), and weights would be more cautious"
    )
    return (Note("shared-days", text),)
