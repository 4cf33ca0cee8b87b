"""Who repeats whom, who always gives the same forecast, whose were made from outcomes; which events are dependent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index
from opinionpool.blocks import blocks
from opinionpool.errors import Note
from opinionpool.estimation.dense import DenseOutcomes
from opinionpool.estimation.posterior import harmonic_mean, posterior_probabilities
from opinionpool.forecasts import Clusters, Forecasts, by_date, by_group, by_settlement
from opinionpool.learning.prior import CORRELATION, LIMIT_PROBABILITIES, LIMITS, believed_slope
from opinionpool.logodds import expit
from opinionpool.model.contrasts import Extremes, contrasts
from opinionpool.model.correlation import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.model.features import Parts
from opinionpool.model.nested import NestedCorrelation
from opinionpool.text import counted, listed

# So many forecasts, all the same, say nothing; so does a single one that repeats the prior.
CONSTANT = 3
# Experts who agree on at least so many events, with so many different forecasts, are duplicates.
CLONED = 5, 3
SILENT, NEW = -1, -2


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which distinct expert is behind each expert.

    Attributes
    ----------
    source : ndarray of int, shape (N,)
        The distinct expert behind each; `SILENT` for constant experts, `NEW` for those without any forecast,
        who are taken to be like the others on average, but for what is believed of them. If all the others
        are constant, each of these is distinct.
    first : ndarray of int, shape (V,)
        The first expert of each group of duplicates.
    notes : tuple of Note
    """

    source: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]
    notes: tuple[Note, ...]

    @classmethod
    def among(cls, forecast: Array, experts: tuple[str, ...]) -> Duplicates:
        """Find them in (T, N, K - 1) contrasts, NaN where missing."""
        source = np.full(len(experts), SILENT)
        first: list[int] = []
        found: dict[bytes, int] = {}
        for i in range(len(experts)):
            column = np.ascontiguousarray(forecast[:, i])
            given = column[~np.isnan(column[:, 0])]
            if len(given) == 0:
                source[i] = NEW
                continue
            different = _different(given)
            if different == 1 and (len(given) >= CONSTANT or not given[0].any()):
                continue
            telling = len(given) >= CLONED[0] and different >= CLONED[1]
            source[i] = found.setdefault(column.tobytes() if telling else i.to_bytes(8, "big"), len(found))
            if source[i] == len(first):
                first.append(i)
        if not first:
            # Nobody to be like: each of those without forecasts is distinct, as it is believed to be.
            first = np.flatnonzero(source == NEW).tolist()
            source[first] = np.arange(len(first))
        return cls(source, np.array(first, dtype=np.intp), _notes(source, experts))

    @property
    def new(self) -> npt.NDArray[np.bool_]:
        """Experts without any forecast, (N,)."""
        return np.asarray(self.source == NEW)

    def parts(self, parts: Parts) -> Parts:
        """Parts of all experts from those of the distinct ones; clones are perfectly dependent, so they share."""
        n = len(self.source)
        if len(self.first) == n:
            return parts
        if len(self.first) == 0:
            return Parts(np.zeros(n), np.full(n, np.nan), CommonCorrelation(n, 0.0))
        spread = np.where(self.source == SILENT, np.nan, self.rows(parts.spread))
        return Parts(self.rows(parts.contrast), spread, self._dependence(parts.dependence))

    def as_believed(self, values: Array, believed: Array) -> Array:
        """Values (N,) in which new experts differ from the distinct experts' mean as positive ones are believed to."""
        if len(self.first) == 0:
            return values
        return np.asarray(np.where(self.new, values * (believed / believed[self.first].mean()), values))

    def _dependence(self, among: Dependence) -> Dependence:
        n, known, new = len(self.source), self.source >= 0, self.new
        if isinstance(among, CommonCorrelation) and known.sum() == len(self.first):
            # Of one expert there is no correlation to take over.
            return CommonCorrelation(n, among.rho if among.size > 1 else CORRELATION)
        if isinstance(among, NestedCorrelation) and known.sum() == len(self.first):
            return NestedCorrelation(self.rows(among.signal), among.rho)
        r = among.matrix()
        matrix = np.zeros((n, n))
        matrix[np.ix_(known, known)] = r[np.ix_(self.source[known], self.source[known])]
        if new.any():
            # A new expert follows the sum of the others, so far that it has their mean correlation.
            towards = r.sum(axis=1) / np.sqrt(r.sum())
            v = len(r)
            mean = (r.sum() - v) / (v * (v - 1)) if v > 1 else CORRELATION
            follows = float(np.clip(mean / towards.mean(), 0.0, 1.0))
            matrix[np.ix_(new, known)] = follows * towards[self.source[known]]
            matrix[np.ix_(known, new)] = matrix[np.ix_(new, known)].T
            matrix[np.ix_(new, new)] = follows**2
        np.fill_diagonal(matrix, 1.0)
        return MatrixCorrelation(matrix)

    def rows(self, values: Array) -> Array:
        """Rows (N, ...) of all experts from the distinct ones': their mean for new ones, 0 for constant ones."""
        full = np.zeros((len(self.source), *values.shape[1:]))
        if len(self.first):
            full[self.source >= 0] = values[self.source[self.source >= 0]]
            full[self.new] = values.mean(axis=0)
        return full


# Forecasts that are looked at first.
FIRST = 64


def _different(given: Array) -> int:
    """How many forecasts (n, K - 1) differ, or some of them if those are enough of them."""
    # One number each is much faster to compare than a row.
    values, axis = (given[:, 0], None) if given.shape[1] == 1 else (given, 0)
    if len(values) > FIRST:
        found = len(np.unique(values[:FIRST], axis=axis))
        if found >= CLONED[1]:
            return found
    return len(np.unique(values, axis=axis))


def _notes(source: npt.NDArray[np.intp], experts: tuple[str, ...]) -> tuple[Note, ...]:
    notes = []
    silent = [experts[i] for i in np.flatnonzero(source == SILENT)]
    if silent:
        text = f"{listed(silent, 3)} always gave the same forecast and got weight 0"
        notes.append(Note("constant", text, len(silent)))
    for representative in np.flatnonzero(np.bincount(source[source >= 0]) > 1):
        same = [experts[i] for i in np.flatnonzero(source == representative)]
        text = f"{listed(same, 3)} say the same on every event; they share one weight"
        notes.append(Note("clones", text, len(same), serious=True))
    return tuple(notes)


def constant_experts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Who gave several forecasts, on whatever events, and always the same, (N,).

    >>> constant_experts(Forecasts.from_array([[0.2, 0.4, 0.0], [0.2, 0.5, 0.0], [0.3, 0.4, 0.0]])).tolist()
    [False, False, True]
    """
    q = forecasts.probabilities if forecasts.probabilities.ndim > 1 else forecasts.probabilities[:, None]
    expert, n = forecasts.expert_index, len(forecasts.experts)
    one = np.empty((n, q.shape[1]))
    one[expert] = q
    other = np.bincount(expert[(q != one[expert]).any(axis=1)], minlength=n)
    return np.asarray((forecasts.counts >= CONSTANT) & (other == 0))


# An expert who is right and this sure, on each of at least so many events, has perhaps seen them: log-odds of 4.
SURE, SURE_EVENTS = float(expit(np.array(4.0))), 10


def one_outcome_notes(classes: Sequence[object], events: Array) -> tuple[Note, ...]:
    """That there was one kind of outcome only; `events` (K,) is how often each was seen."""
    seen = np.flatnonzero(events)
    if len(seen) != 1:
        return ()
    text = f"every resolved event has outcome {classes[seen[0]]!r}, which says little about whom to believe"
    return (Note("one-outcome", text),)


def leakage_notes(forecasts: Forecasts) -> tuple[Note, ...]:
    """Experts who were never wrong and nearly certain: perhaps their forecasts were made from the outcomes.

    Examples
    --------
    >>> y = [0, 1] * 5
    >>> f = Forecasts.from_array([[0.001 + 0.998 * each, 0.5] for each in y], y, experts=["model", "ann"])
    >>> [note.code for note in leakage_notes(f)]
    ['leakage']
    """
    known = np.flatnonzero(forecasts.resolved[forecasts.event_index])
    outcome, expert = forecasts.outcomes[forecasts.event_index[known]], forecasts.expert_index[known]
    q = forecasts.probabilities
    given = np.where(outcome == 1, q[known], 1.0 - q[known]) if q.ndim == 1 else q[known, outcome]
    count, right = (np.bincount(each, minlength=len(forecasts.experts)) for each in (expert, expert[given > SURE]))
    return leakage_note(forecasts.experts, (count >= SURE_EVENTS) & (right == count))


def dense_leakage_notes(q: Floats, outcomes: DenseOutcomes, experts: Sequence[str]) -> tuple[Note, ...]:
    """The same for an array of forecasts, (T, N) or (T, N, K), read no further than anybody is always right."""
    suspects, count = np.arange(len(experts)), np.zeros(len(experts))
    for rows in blocks(len(q), q[0].size):
        if not len(suspects):
            break
        codes = outcomes.codes(rows)
        known = codes >= 0
        block, happened = q[rows][known][:, suspects], codes[known][:, None]
        if q.ndim == 2:
            given = np.where(happened == 1, block, 1.0 - block)
        else:
            given = np.take_along_axis(block, happened[..., None], axis=2)[..., 0]
        absent = np.isnan(given)
        count[suspects] += (~absent).sum(axis=0)
        suspects = suspects[((given > SURE) | absent).all(axis=0)]
    return leakage_note(experts, np.isin(np.arange(len(experts)), suspects) & (count >= SURE_EVENTS))


def leakage_note(experts: Sequence[str], found: npt.NDArray[np.bool_]) -> tuple[Note, ...]:
    """A note on those of the experts who were found, if any."""
    names = [experts[i] for i in np.flatnonzero(found).tolist()]
    if not names:
        return ()
    text = (
        f"{listed(names, 3)}: right and nearly certain on every resolved event. If a model made these forecasts, were "
        "they about events that it was fitted to? Then they look better than its forecasts of new events will; use "
        "out-of-fold forecasts"
    )
    return (Note("leakage", text, len(names), serious=True),)


# How far surprises of events that share a group, or the day on which they closed or were resolved, are believed to be
# correlated, and how probable each value is.
SHARED, SHARED_PROBABILITIES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6), (0.05, 0.1, 0.2, 0.3, 0.25, 0.1)
# And how far what a day has in common is correlated with what the next one has.
LASTING, LASTING_PROBABILITIES = (0.0, 0.3, 0.6, 0.9), (0.25, 0.25, 0.25, 0.25)
# What all events have in common, such as a bias of all experts, is believed to have this variance, relative to that of
# surprises: it speaks for no group.
COMMON = 0.05
# A surprise larger than so many times their root mean square counts as that.
LARGEST = 2.0
# From this loss on, there is a note; on days of forecasting, which do not count, from this one and so many days on.
WORTH_SAYING, WORTH_ASKING, ENOUGH_DAYS = 0.95, 0.25, 10


def independent_weight(
    forecasts: Forecasts, reference: Array, weight: Array, floor: float
) -> tuple[Array, tuple[Note, ...]]:
    """Frequencies of the events, (T,), those of events that belong together reduced to what they tell; and a note.

    Parameters
    ----------
    forecasts : Forecasts
        Its groups are looked at; without any, the days on which its events closed or were resolved. Days on which
        forecasts were made reduce nothing, but where surprises follow them a note asks whether events closed then, too.
    reference : ndarray, shape (T, K)
        Prior of each event.
    weight : ndarray, shape (T,)
        Frequencies.
    floor : float
        Least probability taken from an expert.
    """
    known = by_group(forecasts) or by_settlement(forecasts)
    found = known or by_date(forecasts)
    if found is None:
        return weight, ()
    used = forecasts.resolved & (weight > 0) & (forecasts.crowd > 0)
    labels, member = np.unique(found.member[used], return_inverse=True)
    if len(labels) == 0 or (known is None and not ENOUGH_DAYS <= len(labels) < len(member)):
        return weight, ()
    # Events without a date have the last numbers.
    days = int((labels < found.shared).sum()) if found.unit == "date" else 0
    share = independent_share(_surprises(forecasts, reference, used, floor), member, weight[used], days)
    reduced = weight.copy()
    reduced[used] *= share[member]
    events, worth = float(weight[used].sum()), float(reduced[used].sum())
    if known is None:
        return weight, _day_notes(days, events, worth)
    return reduced, _shared_notes(found, len(labels), events, worth)


def independent_share(surprises: Sequence[tuple[Array, int]], member: Index, weight: Array, days: int = 0) -> Array:
    """How much of an independent event each event of a group tells, (G,): the least that a coefficient has of it.

    Where n events have a correlation of r, each tells 1 / (1 + (n - 1) r), and less where that lasts. The logarithm of
    this is averaged over what is believed of r and what the surprises say of it, so that one event moves it little.

    Parameters
    ----------
    surprises : sequence of (ndarray, shape (T, p), int)
        Of a coefficient each, and how many of the columns are free.
    member : ndarray of int, shape (T,)
        The group of each event.
    weight : ndarray, shape (T,)
        Frequencies.
    days : int
        So many of the groups, the first, are days in order, and what they have in common may last.
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
    for values, free in surprises:
        bound = LARGEST * np.sqrt(weight @ np.square(values).mean(axis=1) / weight.sum())
        evidence = free * _log_evidence(np.clip(values, -bound, bound), member, weight, days, r, phi)
        shares.append(np.exp(np.log(each) @ posterior_probabilities(evidence, prior)))
    return np.asarray(min(shares, key=lambda share: float(size @ share)))


def _log_evidence(values: Array, member: Index, weight: Array, days: int, r: Array, phi: Array) -> Array:
    """How well correlations r within groups, that last with phi from day to day, predict surprises, for one column.

    A normal model with a random effect of groups, in units of the variance that is not shared, which takes its most
    probable value; over days the effect is an autoregression, and Kalman's filter takes out what came before.
    """
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


def _surprises(
    forecasts: Forecasts, reference: Array, used: npt.NDArray[np.bool_], floor: float
) -> list[tuple[Array, int]]:
    """What each event says about the intercept and the slope of the believed pool: gradients, and their free columns.

    Where events have options of their own, there is no intercept.
    """
    cells = used[forecasts.event_index]
    event = forecasts.event_index[cells]
    expected = logodds.prior_log_ratios(reference)
    beyond = contrasts(forecasts.probabilities[cells], reference[event], floor, expected[event])
    absent = logodds.no_options(reference[event])
    believed = Extremes(harmonic_mean(LIMITS, LIMIT_PROBABILITIES)).believed(beyond, absent)
    number = np.bincount(event, minlength=len(used))[used]
    total = np.stack([np.bincount(event, weights=column, minlength=len(used))[used] for column in believed.T], axis=-1)
    level = logodds.centred(total / number[:, None])
    slope = np.array([believed_slope(n) for n in range(1, number.max() + 1)])[number - 1]
    answer = logodds.softmax(expected[used] + slope[:, None] * logodds.uncentred(level))
    happened = np.eye(len(forecasts.classes))[forecasts.outcomes[used]] - answer
    of_slope = (happened * level).sum(axis=1, keepdims=True)
    slopes = (of_slope, 1)
    return [(happened, len(forecasts.classes) - 1), slopes] if forecasts.options is None else [slopes]


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
