"""The prior of events: given for all events or for each, else Laplace's estimate (model.md, section 2.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, axes
from opinionpool.errors import ArgumentError, Note, ProbabilityError, ShapeError
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import uniform_probabilities


def laplace_prior(events: Array) -> Array:
    """Return Laplace's estimate (t_k + 1)/(t + K) of class probabilities (K,) from numbers of events t_k by outcome.

    >>> import numpy as np
    >>> laplace_prior(np.array([9.0, 1.0])).round(5)
    array([0.83333, 0.16667])
    """
    return np.asarray((events + 1.0) / (events.sum() + len(events)))


def shared_prior(forecasts: Forecasts, prior: npt.ArrayLike | None, weight: Array) -> Array:
    """One prior of all events, (K,): `prior`, or Laplace's estimate from outcomes weighted by `weight` (T,)."""
    if prior is None:
        return laplace_prior(outcome_counts(forecasts, weight))
    return logodds.class_probabilities(prior, len(forecasts.classes))


def spread_prior(prior: npt.ArrayLike, lead: tuple[int, ...], classes: int, what: str = "prior") -> Array:
    """Prior, given once or for each event, as class probabilities of all T events, (T, K); `lead` is their shape."""
    p = logodds.class_probabilities(prior, classes, what)
    events = int(np.prod(lead))
    if p.ndim == 1:
        return np.broadcast_to(p, (events, classes))
    if p.shape[:-1] != lead:
        raise ShapeError(f"the {what} must be one value or one per event, {lead}, and its shape is {p.shape[:-1]}")
    return p.reshape((events, classes))


def prior_or_learned(prior: npt.ArrayLike | None, learned: Array | None) -> npt.ArrayLike:
    """Return the prior for pooling, in the form for users: `prior` if given, else `learned` (K,), the prior of the fit.

    Raises ProbabilityError if each event had its own prior in the fit, and none is given.
    """
    if prior is not None:
        return prior
    if learned is None:
        raise ProbabilityError("this pool was learned with a prior for each event, so pooling needs one too")
    return logodds.public_probabilities(learned)


def event_priors(forecasts: Forecasts, prior: npt.ArrayLike | None) -> Array | None:
    """Return class probabilities of each event's own prior, (T, K); None if no event has a prior of its own.

    `prior` is for events without their own. If events have options of their own, they are equally probable by default.
    """
    t, k = len(forecasts.events), len(forecasts.classes)
    if forecasts.even is not None:
        return _option_priors(forecasts, forecasts.even, prior)
    if forecasts.prior is None or np.isnan(forecasts.prior).all():
        if prior is None or axes(prior, "prior") < (1 if k == 2 else 2):
            return None
        return spread_prior(prior, (t,), k)
    own = forecasts.prior
    blank = np.asarray(np.isnan(own.reshape(t, -1)).any(axis=1))
    if blank.any():
        if prior is None:
            first = forecasts.events[int(np.flatnonzero(blank)[0])]
            raise ProbabilityError(
                f"{int(blank.sum())} of {t} events have no prior while others have one (the first is {first!r}); "
                "give prior= (on the command line --prior) to fill the blanks"
            )
        fill = spread_prior(prior, (t,), k)
        own = np.asarray(np.where(blank, fill[:, 1], own) if k == 2 else np.where(blank[:, None], fill, own))
    return logodds.class_probabilities(own, k)


def with_priors(forecasts: Forecasts, prior: npt.ArrayLike | None) -> tuple[Forecasts, npt.ArrayLike | None]:
    """Return forecasts with the events' own priors, and None; or, if no event has one, both arguments unchanged."""
    own = own_priors(forecasts, prior)
    return (forecasts, prior) if own is None else (replace(forecasts, prior=own), None)


def own_priors(forecasts: Forecasts, prior: npt.ArrayLike | None) -> Array | None:
    """Return each event's own prior, filled from `prior`: (T,), or (T, K) if K > 2; None if no event has one."""
    each = event_priors(forecasts, prior)
    return None if each is None else logodds.public_probabilities(each)


def own_or_learned(forecasts: Forecasts, prior: npt.ArrayLike | None, learned: Array | None) -> npt.ArrayLike | None:
    """Return events' own priors, blanks filled from `prior` or `learned`; `prior` itself if no event has its own."""
    if forecasts.options is None and forecasts.prior is None:
        return prior
    if forecasts.options is None and prior is None and learned is not None:
        prior = logodds.public_probabilities(learned)
    return own_priors(forecasts, prior)


def _option_priors(forecasts: Forecasts, even: Array, prior: npt.ArrayLike | None) -> Array:
    """Return each event's prior over its options, (T, K), 0 elsewhere: its own prior, else `prior`, else `even`."""
    t, k = even.shape
    if prior is not None:
        if axes(prior, "prior") < (1 if k == 2 else 2):
            raise ArgumentError(
                "each event has options of its own, so no prior can be shared by all; without one, the options of an "
                "event are taken as equally likely beforehand"
            )
        even = spread_prior(prior, (t,), k)
    own = even
    if forecasts.prior is not None:
        given = logodds.all_classes(forecasts.prior, k)
        own = np.where(np.isnan(given).any(axis=1, keepdims=True), even, given)
    own = logodds.class_probabilities(own[:, 1] if k == 2 else own, k)
    if ((own > 0) != (uniform_probabilities(forecasts.sizes, k) > 0)).any():
        raise ProbabilityError("a prior must be above 0 for each of the event's options, and 0 for the other positions")
    return own


def outcome_counts(forecasts: Forecasts, weight: Array) -> Array:
    """Return the number of resolved events by outcome, (K,), each event counted `weight` (T,) times."""
    known = forecasts.resolved
    counts = np.bincount(forecasts.outcomes[known], weights=weight[known], minlength=len(forecasts.classes))
    return np.asarray(counts, dtype=np.float64)


def one_outcome_notes(classes: Sequence[object], events: Array) -> tuple[Note, ...]:
    """Return a note if only one class occurs as outcome; `events` (K,) has the number of events by outcome."""
    seen = np.flatnonzero(events)
    if len(seen) != 1:
        return ()
    return (finding("one-outcome", outcome=classes[seen[0]]),)
