"""The few lines that end every command on standard error, and the same facts for JSON."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.answers import about, plain
from opinionpool.report.listing import printable
from opinionpool.report.numbers import percent, whole
from opinionpool.text import counted

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.learning.beliefs import Beliefs


@dataclass(frozen=True)
class Totals:
    """Counts of some forecasts.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.9, 0.7], [0.2, float("nan")]], [1, None])
    >>> Totals.of(f) + Totals.of(f)
    Totals(classes=(0, 1), events=4, experts=2, cells=6, outcomes=(0, 2))
    """

    classes: tuple[object, ...]
    events: int
    experts: int
    cells: int
    outcomes: tuple[int, ...]  # resolved events by class

    @classmethod
    def of(cls, forecasts: Forecasts | Totals) -> Totals:
        """Return the totals of forecasts in memory; totals are returned unchanged."""
        if isinstance(forecasts, Totals):
            return forecasts
        t, n = forecasts.shape
        known = forecasts.outcomes[forecasts.resolved]
        counts = np.bincount(known, minlength=len(forecasts.classes)).tolist()
        return cls(forecasts.classes, t, n, len(forecasts.event_index), tuple(counts))

    def __add__(self, other: Totals) -> Totals:
        """Return the sums of two totals, by the same experts on different events."""
        counts = tuple(a + b for a, b in zip(self.outcomes, other.outcomes, strict=True))
        return Totals(self.classes, self.events + other.events, self.experts, self.cells + other.cells, counts)

    @property
    def resolved(self) -> int:
        """Resolved events."""
        return sum(self.outcomes)


def facts(forecasts: Forecasts | Totals) -> dict[str, object]:
    """Counts of events, outcomes, experts and forecasts, and the share missing, for JSON."""
    size = Totals.of(forecasts)
    most = size.events * size.experts
    return {
        "events": size.events,
        "resolved": size.resolved,
        **_class_facts(forecasts),
        "experts": size.experts,
        "forecasts": size.cells,
        "missing": 1.0 - size.cells / most if most else None,
    }


def _class_facts(forecasts: Forecasts | Totals) -> dict[str, object]:
    """Number of events of each class; with options by event, number of events by number of options."""
    if isinstance(forecasts, Forecasts) and forecasts.options is not None:
        return {"options": {str(size): count for size, count in option_counts(forecasts)}}
    positive = {"positive": plain(forecasts.classes[1])} if len(forecasts.classes) == 2 else {}
    return {
        "outcomes": dict(zip(map(str, forecasts.classes), outcome_totals(forecasts), strict=True)),
        "classes": [plain(label) for label in forecasts.classes],
        **positive,
    }


def option_counts(forecasts: Forecasts) -> list[tuple[int, int]]:
    """Pairs of a number of options and the number of events with it."""
    counts = Counter(forecasts.sizes.tolist())
    return sorted(counts.items())


def pool_facts(forecasts: Forecasts, pool: str, state: Fitted, base_rate: float | Array | None) -> dict[str, object]:
    """Counts of the forecasts with the pool's name, prior and base rate, for JSON."""
    labels = [str(label) for label in forecasts.classes]

    def by_class(p: float | Array | None) -> object:
        if p is None or isinstance(p, float):
            return p
        return dict(zip(labels, map(float, p), strict=True))

    prior = state.prior if state.prior is None or len(state.prior) > 2 else float(state.prior[1])
    return {
        **facts(forecasts),
        "pool": pool,
        "prior": by_class(prior),
        "base_rate": by_class(base_rate),
    }


def outcome_totals(forecasts: Forecasts | Totals) -> list[int]:
    """Resolved events by outcome, K numbers."""
    return list(Totals.of(forecasts).outcomes)


def missing(forecasts: Forecasts | Totals) -> str:
    """Share of possible forecasts that are missing, as text."""
    size = Totals.of(forecasts)
    most = size.events * size.experts
    return "none missing" if size.cells == most else f"{percent((most - size.cells) / most)} missing"


def size_line(forecasts: Forecasts | Totals) -> str:
    """Events, experts, resolved, missing."""
    size = Totals.of(forecasts)
    events = f"{counted(size.events, 'event')}, {whole(size.resolved)} resolved"
    return f"{events}; {counted(size.experts, 'expert')}, {counted(size.cells, 'forecast')}, {missing(size)}"


def pool_line(forecasts: Forecasts, pool: str, state: Fitted, given: bool, base_rate: float | Array | None) -> str:
    """Pool, prior and base rate used."""
    event = about(forecasts)
    labels = [printable(str(label)) for label in forecasts.classes]

    def show(p: float | Array) -> str:
        if isinstance(p, float):
            return percent(p) + (f" for {event}" if event else "")
        return ", ".join(f"{label} {percent(float(x))}" for label, x in zip(labels, p, strict=True))

    if state.prior is None:
        own = forecasts.options is not None and forecasts.prior is None
        prior = "prior: all options of an event equally probable" if own else "prior: each event's own"
    else:
        value = float(state.prior[1]) if len(labels) == 2 else state.prior
        source = "as given" if given else "estimated from the resolved events"
        if assumed_prior(state, given):
            source = "assumed, as no event is resolved; give --prior"
        prior = f"prior {show(value)} ({source})"
    rate = "" if base_rate is None else f"; base rate {show(base_rate)}"
    return f"{pool} pool; {prior}{rate}"


def belief_lines(file: str | None, beliefs: Beliefs | None) -> list[str]:
    """Line with the beliefs in a file; an empty list without beliefs."""
    return [] if beliefs is None else [f"beliefs in {printable(str(file))}: {printable(str(beliefs) or 'none')}"]


def belief_facts(beliefs: Beliefs | None) -> dict[str, object]:
    """Beliefs for JSON, with "inf" as text for a belief that is certain."""
    if beliefs is None:
        return {}

    def plain_values(values: dict[str, Any]) -> dict[str, Any]:
        return {
            key: plain_values(value) if isinstance(value, dict) else "inf" if math.isinf(value) else value
            for key, value in values.items()
        }

    return {"beliefs": plain_values(beliefs.to_dict())}


def assumed_prior(state: Fitted, given: bool) -> bool:
    """Whether the prior is uniform for want of anything that it could be estimated from."""
    return state.prior is not None and not given and not state.events.any()


def base_rate_notes(state: Fitted, given: bool, base_rate: float | Array | None) -> list[Note]:
    """Note on the uniform prior assumed of the experts, where a base rate is given and no outcome gives a prior."""
    if base_rate is None or not assumed_prior(state, given):
        return []
    prior = percent(1.0 / len(state.events))
    text = (
        f"the experts are taken to share a prior of {prior}, and the base rate moves the answers from there; if they "
        "had the base rate in mind, use --prior instead"
    )
    return [Note("assumed-prior", text)]
