"""Duplicates and constant experts: who repeats whom, and who always gives the same forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats
from opinionpool.blocks import blocks
from opinionpool.errors import Note
from opinionpool.estimation.moments import BinaryOutcomes
from opinionpool.estimation.posterior import harmonic_mean
from opinionpool.forecasts import Clusters, Forecasts, by_date, by_group
from opinionpool.learning.prior import CORRELATION, LIMIT_PROBABILITIES, LIMITS, believed_slope
from opinionpool.logodds import expit
from opinionpool.model.contrasts import Extremes, contrasts
from opinionpool.model.correlation import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.model.features import Parts
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
            different = len(np.unique(given, axis=0))
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
    q = forecasts.probabilities.reshape(len(forecasts.expert_index), -1)
    low, high = (np.full((len(forecasts.experts), q.shape[1]), end) for end in (np.inf, -np.inf))
    np.minimum.at(low, forecasts.expert_index, q)
    np.maximum.at(high, forecasts.expert_index, q)
    return np.asarray((forecasts.counts >= CONSTANT) & (low == high).all(axis=1))


# An expert who is right and this sure, on each of at least so many events, has perhaps seen them: log-odds of 4.
SURE, SURE_EVENTS = float(expit(np.array(4.0))), 10


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


def dense_leakage_notes(q: Floats, outcomes: BinaryOutcomes, experts: Sequence[str]) -> tuple[Note, ...]:
    """The same for an array of complete binary forecasts, (T, N), read no further than anybody is always right."""
    suspects = np.arange(q.shape[1] if outcomes.counts[:2].sum() >= SURE_EVENTS else 0)
    for rows in blocks(len(q), q.shape[1]):
        if not len(suspects):
            break
        codes = outcomes.codes(rows)
        block = q[rows][:, suspects]
        right = np.where(codes[:, None] == 1, block > SURE, block < 1.0 - SURE) | (codes < 0)[:, None]
        suspects = suspects[right.all(axis=0)]
    return leakage_note(experts, np.isin(np.arange(q.shape[1]), suspects))


def leakage_note(experts: Sequence[str], found: npt.NDArray[np.bool_]) -> tuple[Note, ...]:
    """A note on those of the experts who were found, if any."""
    names = [experts[i] for i in np.flatnonzero(found).tolist()]
    if not names:
        return ()
    text = (
        f"{listed(names, 3)}: right and nearly certain on every resolved event. If a model made these forecasts, were "
        "they about events that it was fitted to? Then they and all that is learned from them look better than new "
        "events will"
    )
    return (Note("leakage", text, len(names), serious=True),)


# Events that share a group or date are believed to be correlated so far, which is worth so many groups or dates.
SHARED, SHARED_WORTH = 0.2, 3.0
# And what surprised at one date to last until the next one so far, which is worth so many dates.
LASTING, LASTING_WORTH, MOST_LASTING = 0.3, 5.0, 0.9
# From this loss on, there is a note.
WORTH_SAYING = 0.95


class _Shared(NamedTuple):
    """What events that belong together have in common: their correlation, and what of it lasts from date to date."""

    correlation: float
    lasting: float

    def effect(self, size: npt.ArrayLike) -> Array:
        """How many events are worth one independent event, where `size` of them belong together."""
        serial = (1.0 + self.lasting) / (1.0 - self.lasting)
        return np.asarray((1.0 + (np.asarray(size) - 1.0) * self.correlation) * serial)


def independent_weight(
    forecasts: Forecasts, reference: Array, weight: Array, floor: float
) -> tuple[Array, tuple[Note, ...]]:
    """Frequencies of the events, (T,), those of events that belong together reduced to what they tell; and a note.

    Parameters
    ----------
    forecasts : Forecasts
        Its groups are looked at; without any, its dates.
    reference : ndarray, shape (T, K)
        Prior of each event.
    weight : ndarray, shape (T,)
        Frequencies.
    floor : float
        Least probability taken from an expert.
    """
    found = by_group(forecasts) or by_date(forecasts)
    if found is None:
        return weight, ()
    used = forecasts.resolved & (weight > 0) & (forecasts.crowd > 0)
    labels, member = np.unique(found.member[used], return_inverse=True)
    if len(labels) == 0:
        return weight, ()
    surprise = _surprises(forecasts, reference, used, floor)
    size = np.bincount(member, weights=weight[used])
    shared = _shared(surprise, member, weight[used], in_order=found.unit == "date")
    reduced = weight.copy()
    reduced[used] /= shared.effect(np.maximum(size, 1.0))[member]
    return reduced, _shared_notes(found, shared, len(labels), float(weight[used].sum()), float(reduced[used].sum()))


def _surprises(forecasts: Forecasts, reference: Array, used: npt.NDArray[np.bool_], floor: float) -> tuple[Array, ...]:
    """What each event says about the intercept and the slope of the believed pool: gradients, (T, K) and (T, 1).

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
    return (happened, of_slope) if forecasts.options is None else (of_slope,)


def _shared(surprises: tuple[Array, ...], member: npt.NDArray[np.intp], weight: Array, *, in_order: bool) -> _Shared:
    """What costs most, of what is shared about one or the other coefficient."""
    size = np.bincount(member, weights=weight)
    typical = float((size @ size) / size.sum())
    return max(
        (_of_one(each, member, weight, in_order) for each in surprises), key=lambda one: float(one.effect(typical))
    )


def _of_one(values: Array, member: npt.NDArray[np.intp], weight: Array, in_order: bool) -> _Shared:
    """Correlation within clusters by the analysis of variance, and between the means of one cluster and the next."""
    size = np.bincount(member, weights=weight)
    groups, total = len(size), float(size.sum())
    means = np.stack([np.bincount(member, weights=weight * column) for column in values.T], axis=-1) / size[:, None]
    deviation = means - (size / total) @ means
    between = float(size @ np.square(deviation).sum(axis=1)) / max(groups - 1, 1)
    inside = float(weight @ np.square(values - means[member]).sum(axis=1))
    correlation = 0.0
    if 1 < groups < total and inside + between > 0:
        inside /= total - groups
        typical = (total - float(size @ size) / total) / (groups - 1)
        correlation = min(max((between - inside) / (between + (typical - 1.0) * inside), 0.0), 1.0)
    lasting = _lasting(deviation) if in_order else 0.0
    shrunken = (SHARED_WORTH * SHARED + (groups - 1) * correlation) / (SHARED_WORTH + groups - 1)
    return _Shared(shrunken, lasting)


def _lasting(deviation: Array) -> float:
    """Correlation of deviations from the mean, (G, p), with the next ones, shrunken towards what is believed of it."""
    dates, square = len(deviation), float(np.square(deviation).sum())
    found = float((deviation[1:] * deviation[:-1]).sum()) / square if square > 0 else 0.0
    # In short series it comes out too small: by about (1 + 3 r)/G because the mean is estimated (Kendall, Biometrika
    # 41, 1954), and by r/G because there is one product less than there are squares.
    found = min(max((found + 1.0 / dates) / (1.0 - 4.0 / dates), 0.0), MOST_LASTING) if dates > 4 else LASTING
    return (dates * found + LASTING_WORTH * LASTING) / (dates + LASTING_WORTH)


def _shared_notes(found: Clusters, shared: _Shared, clusters: int, events: float, worth: float) -> tuple[Note, ...]:
    if worth >= WORTH_SAYING * events:
        return ()
    phrase = []
    if clusters < round(events):
        phrase.append(f"surprises in common (correlation {shared.correlation:.2f})")
    if shared.lasting > 0:
        phrase.append(f"surprises that last from one date to the next (correlation {shared.lasting:.2f})")
    text = (
        f"{events:,.6g} resolved events fall on {counted(clusters, found.unit)} and have {' and '.join(phrase)}, so in "
        f"learning they count as {worth:,.3g} independent events"
    )
    return (Note("shared-events", text),)
