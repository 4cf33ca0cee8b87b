"""What experts state about a batch of events, read and checked once, whatever the shape it came in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import blockwise, logodds
from opinionpool.errors import ProbabilityError, ShapeError
from opinionpool.logodds import Array


@dataclass(frozen=True, eq=False)
class Stated:
    """Forecasts on T events.

    Attributes
    ----------
    q : ndarray, shape (T, N), or (T, N, K) when K > 2
        Probabilities, NaN where missing.
    prior : ndarray, shape (T, K)
        Class probabilities of the reference.
    reference : ndarray, shape (T, K - 1)
        Its log-ratios.
    lead : tuple of int
        The shape of the events as they were given.
    """

    q: Array
    prior: Array
    reference: Array
    lead: tuple[int, ...]

    @property
    def classes(self) -> int:
        """K."""
        return int(self.prior.shape[-1])

    def shape_answers(self, p: Array) -> Array:
        """(T, K) answers in the shape of the question: (...) when K = 2, else (..., K)."""
        if self.classes == 2:
            return np.asarray(p[:, 1].reshape(self.lead)[()])
        return p.reshape((*self.lead, self.classes))


def read_stated(probabilities: npt.ArrayLike, prior: npt.ArrayLike, experts: int, classes: int) -> Stated:
    """Check shapes and ranges, and spread the prior over the events.

    Raises
    ------
    ProbabilityError, ShapeError
        If they are not forecasts by that many experts on events of that many classes.
    """
    q = logodds.check_probabilities(probabilities)
    tail = (experts,) if classes == 2 else (experts, classes)
    if q.shape[q.ndim - len(tail) :] != tail:
        wanted = "(..., " + ", ".join(map(str, tail)) + ")"
        raise ShapeError(f"{experts} experts and {classes} classes need forecasts of shape {wanted}, not {q.shape}")
    lead = q.shape[: q.ndim - len(tail)]
    q = q.reshape((-1, *tail))
    if classes > 2:
        q, _ = logodds.normalised(q)
    p = spread_prior(prior, lead, classes)
    if classes > 2 and logodds.no_options(p) is not None:
        _check_options(q, p)
    return Stated(q, p, logodds.prior_log_ratios(p), lead)


def _check_options(q: Array, p: Array) -> None:
    """Raise where a class with prior 0, which is no option of the event, is given something."""
    strange = (q > 0) & (p == 0)[:, None, :]
    if strange.any():
        event, expert, label = (int(i) for i in np.argwhere(strange)[0])
        raise ProbabilityError(
            f"class {label} has prior 0 in event {event}, so it is no option there, and forecast {expert} gives it "
            f"{q[event, expert, label]:.15g}"
        )


def spread_prior(prior: npt.ArrayLike, lead: tuple[int, ...], classes: int, what: str = "prior") -> Array:
    """A prior for one or for all events as class probabilities of every event, (T, K)."""
    p = logodds.class_probabilities(prior, classes, what)
    events = int(np.prod(lead))
    if p.ndim == 1:
        return np.broadcast_to(p, (events, classes))
    if p.shape[:-1] != lead:
        raise ShapeError(f"the {what} must be one value or one per event, {lead}, and its shape is {p.shape[:-1]}")
    return p.reshape((events, classes))


def base_rate_shift(base_rate: npt.ArrayLike | None, stated: Stated) -> Array:
    """logit(base_rate) - L° for every event, (T, K - 1); 0 without a base rate (model.md, section 2.8)."""
    if base_rate is None:
        return np.broadcast_to(0.0, stated.reference.shape)
    wanted = logodds.prior_log_ratios(spread_prior(base_rate, stated.lead, stated.classes, "base rate"))
    return np.asarray(wanted - stated.reference)


def blocks(stated: Stated) -> Iterator[slice]:
    """Slices of events."""
    return blockwise.blocks(len(stated.q), int(np.prod(stated.q.shape[1:])))
