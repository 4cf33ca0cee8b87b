"""Shares of events that happen, by group, of a table that is too large for one machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.rates import LABELS, Likelihoods, Rates, learned_panel, rates_of, with_fit
from opinionpool.analysis.shares import Binned, dependence, posterior
from opinionpool.arguments import number, one_of
from opinionpool.arrays import Index
from opinionpool.errors import ArgumentError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.names import places
from opinionpool.spark import need_pyspark
from opinionpool.spark.layout import Asked, lay_out
from opinionpool.streams.trained import TrainedPool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from opinionpool.spark.blocks import Block


class Tally:
    """Counts of events by group and score, from which rates are estimated."""

    def __init__(self, state: FittedPanel, prior: npt.ArrayLike | None) -> None:
        self.state, self.prior = state, prior
        self.names: list[str] = []
        self.parts: list[tuple[Binned, Index]] = []

    def add(self, block: Block) -> None:
        """Add the events of a block."""
        q, y, classes = block.probabilities, block.facts.outcomes, self.state.classes
        wide = np.full((len(q), len(self.state.experts)), np.nan)
        wide[:, places(block.experts, self.state.experts)] = q
        outcomes = [None if each < 0 else classes[each] for each in y.tolist()]
        events = Likelihoods.of(
            self.state,
            Forecasts.from_array(wide, outcomes, experts=self.state.experts, classes=classes),
            self.prior,
        )
        labels = (
            [each or "(none)" for each in block.facts.groups.tolist()]
            if block.facts.groups is not None
            else ["all"] * len(q)
        )
        names = sorted(set(labels))
        group = np.array([names.index(each) for each in labels], dtype=np.intp)
        data = Binned.of(events.ratios[:, 1], group, y, len(names), answered=events.answered)
        self._join(names, [(data, np.arange(len(names)))])

    def _join(self, names: Sequence[str], parts: list[tuple[Binned, Index]]) -> None:
        self.names += [each for each in names if each not in set(self.names)]
        place = np.array([self.names.index(each) for each in names], dtype=np.intp)
        together = [*self.parts, *((data, place[rows]) for data, rows in parts)]
        self.parts = [(Binned.joined(together, len(self.names)), np.arange(len(self.names)))]

    def merge(self, other: Tally) -> None:
        """Merge another tally into this one."""
        self._join(other.names, other.parts)

    def rates(self, labels: str, level: float) -> Rates:
        """Share of events that happen in each group, by name, with intervals of probability `level`."""
        order = np.argsort(self.names)
        data = self.parts[0][0]
        data = data._replace(counts=data.counts[:, order])
        one = np.ones(len(order))
        design, together = dependence(one, order, None, len(order))
        size = data.counts.sum(axis=2).round().astype(np.intp)
        data, believed = with_fit(data, self.state.left_out, np.full(2, 0.5), 1)
        found = posterior(data, believed, design, one, together, random=labels == "random")
        names = tuple(self.names[g] for g in order)
        return rates_of(names, self.state.classes, [found], (size.sum(axis=0), size[1:].sum(axis=0)), {}, level)


def rates(
    df: DataFrame,
    pool: object,
    by: str,
    *,
    outcome: str | None = None,
    experts: Sequence[str] | str | None = None,
    event: str | None = None,
    probability: str | None = None,
    prior: float | None = None,
    labels: str = "random",
    level: float = 0.9,
) -> Rates:
    """Shares of events that happen, by group, as by `opinionpool.rates`, without the other estimators.

    Parameters
    ----------
    df : DataFrame
        Wide or long, as for `summarize`.
    pool : fitted pool of two classes that says how sure it is
    by : str
        The column of groups.
    outcome : str, optional
        The column of outcomes, null where not resolved; all events are open without it.
    experts, event, probability
        As for `opinionpool.spark.pool`.
    prior : float, optional
        That of the fit if not given.
    labels, level
        As for `opinionpool.rates`.

    Raises
    ------
    ArgumentError, LearningError
        If the pool has more than two classes, or does not say how sure it is.
    """
    need_pyspark()
    one_of(labels, "labels", LABELS)
    level, trained = number(level, "level", 0, 1, between=True), TrainedPool.of(pool)
    state = learned_panel(trained.learned)
    if len(state.classes) > 2:
        raise ArgumentError(f"rates of tables of Spark are of two classes, and the pool has {len(state.classes)}")
    names = trained.experts if experts is None else experts
    asked = Asked(names, outcome, event, probability, group=by, scale=trained.scales)
    table, layout = lay_out(df, asked, trained.classes)
    from opinionpool.spark.summary import merged_over

    return merged_over(table, layout, partial(Tally, state, prior)).rates(labels, level)
