"""Every pool by its name: its options, what a fit learns, and a small state object that pools (model.md, section 6).

The Gaussian pool's state is `opinionpool.learn.LearnedPanel`; the state of every other pool is a `LearnedPool`, the
keyword arguments of a function of `opinionpool.pools`. Both have the attributes and the method of `Learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from opinionpool import logodds, pools
from opinionpool.errors import ArgumentError, ExpertError, Note, ProbabilityError
from opinionpool.forecasts import Forecasts
from opinionpool.learn import event_priors, laplace_prior, learn
from opinionpool.logistic import LogisticFit, logistic_fit
from opinionpool.logodds import FLOOR, POOL_FLOOR, Array
from opinionpool.moments import frequencies
from opinionpool.patterns import Mask
from opinionpool.simplex import simplex_weights
from opinionpool.stated import read_stated

__all__ = ["POOLS", "Learned", "LearnedPool", "Option", "Pool", "fit_pool", "matched_weights"]

# The recalibrated pool is held to the identity as by one event: intercept and slope have prior variance 1.
PENALTY = 1.0

Parameters = dict[str, Any]


class Learned(Protocol):
    """What every fit gives.

    Attributes
    ----------
    experts : tuple of str
        N names.
    prior : ndarray or None, shape (K,)
        The reference used, as class probabilities; None if each event had its own.
    weights : ndarray or None, shape (N,)
        For rules that have weights.
    events : ndarray, shape (K,)
        Weight of the resolved events by outcome.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts on resolved events.
    notes : tuple of Note
    """

    @property
    def experts(self) -> tuple[str, ...]: ...  # noqa: D102 - described above
    @property
    def prior(self) -> Array | None: ...  # noqa: D102
    @property
    def weights(self) -> Array | None: ...  # noqa: D102
    @property
    def events(self) -> Array: ...  # noqa: D102
    @property
    def counts(self) -> Array: ...  # noqa: D102
    @property
    def notes(self) -> tuple[Note, ...]: ...  # noqa: D102
    def pool(
        self, q: npt.ArrayLike, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Pooled probability, (..., N) to (...), or (..., N, K) to (..., K), with the prior of the fit by default."""
        ...


@dataclass(frozen=True, eq=False)
class LearnedPool:
    """What a fit of any pool but the Gaussian learned; see `Learned`.

    Attributes
    ----------
    rule : str
        The pool's name in `POOLS`.
    parameters : mapping
        Keyword arguments of the pool's function, learned or given: ``weights``, ``intercept``, ``slope``, ...
    experts, classes : tuple
    prior, events, counts, notes
        As for `Learned`.
    floor, pool_floor : float
    """

    rule: str
    parameters: Mapping[str, Any]
    experts: tuple[str, ...]
    classes: tuple[object, ...]
    prior: Array | None
    events: Array
    counts: Array
    notes: tuple[Note, ...] = ()
    floor: float = FLOOR
    pool_floor: float = POOL_FLOOR

    @property
    def weights(self) -> Array | None:
        """Weights of the experts, (N,); None if the rule has none of its own."""
        return self.parameters.get("weights")

    def pool(
        self, q: npt.ArrayLike, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Pooled probability, with the prior of the fit unless another is given.

        Raises
        ------
        ProbabilityError, ShapeError
            If each event had its own prior in the fit and none is given now, or if arguments do not fit together.
        """
        function = POOLS[self.rule].function
        if function is None:
            raise ArgumentError(f"the {self.rule} pool is not a function of probabilities")
        if prior is None:
            if self.prior is None:
                raise ProbabilityError("this pool was learned with a prior for each event, so pooling needs one too")
            prior = self.prior if len(self.prior) > 2 else self.prior[1]
        return function(
            q,
            **self.parameters,
            prior=prior,
            base_rate=base_rate,
            classes=len(self.classes),
            floor=self.floor,
            pool_floor=self.pool_floor,
        )


@dataclass(frozen=True, eq=False)
class _Sample:
    """The resolved events that somebody forecast, to learn from.

    Attributes
    ----------
    forecasts : Forecasts
    rows : ndarray of int, shape (T,)
        Their positions among all events.
    weight : ndarray, shape (T,)
        Frequencies, all positive.
    prior : ndarray, shape (K,), or (T, K)
        Class probabilities.
    floor : float
    """

    forecasts: Forecasts
    rows: npt.NDArray[np.intp]
    weight: Array
    prior: Array
    floor: float
    notes: list[Note] = field(default_factory=list)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.forecasts.classes)

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.forecasts.experts

    @property
    def outcomes(self) -> npt.NDArray[np.intp]:
        """What happened, (T,)."""
        return self.forecasts.outcomes[self.rows]

    def collect(self, part: Callable[[pools.Said, npt.NDArray[np.intp]], Array], *shape: int) -> Array:
        """What `part` makes of blocks of events and their outcomes, put together, (T, *shape)."""
        prior = self.prior[..., 1] if self.classes == 2 else self.prior
        stated = read_stated(self.forecasts.X[self.rows], prior, len(self.experts), self.classes)
        result = np.empty((len(self.rows), *shape))
        for rows, said in pools.said_in(stated, self.floor):
            result[rows] = part(said, self.outcomes[rows])
        return result

    @property
    def present(self) -> Mask:
        """Who answered, (T, N)."""
        x = self.forecasts.X[self.rows]
        return np.asarray(~np.isnan(x if self.classes == 2 else x[..., 0]))

    def nothing(self, assumed: str) -> bool:
        """Whether there is nothing to learn from, noting what is assumed; notes a single outcome too."""
        if len(self.rows) == 0:
            what = "resolved event has forecasts" if self.forecasts.resolved.any() else "event is resolved"
            self.notes.append(Note("nothing-learned", f"no {what}, so nothing was learned: {assumed}"))
            return True
        seen = np.unique(self.outcomes)
        if len(seen) == 1:
            label = self.forecasts.classes[seen[0]]
            text = f"every resolved event has outcome {label!r}, which says little about whom to believe"
            self.notes.append(Note("one-outcome", text))
        return False

    def unheard(self, what: str) -> None:
        """Note the experts about whom nothing can be learned."""
        silent = [self.experts[i] for i in np.flatnonzero(~self.present.any(axis=0))]
        if silent:
            more = f" and {len(silent) - 3} more" if len(silent) > 3 else ""
            names = ", ".join(map(repr, silent[:3])) + more
            self.notes.append(
                Note("no-forecasts", f"{names} had no forecast on a resolved event and {what}", len(silent))
            )


class Option(NamedTuple):
    """An option of a pool: its default, and what it means."""

    default: Any
    text: str


@dataclass(frozen=True)
class Pool:
    """A pool: its name, function, options and how it is fitted.

    Attributes
    ----------
    name : str
        As on the command line.
    title : str
        For people.
    fit : callable
        ``fit(sample, **options)`` gives the parameters of `function`; None for the Gaussian pool.
    function : callable or None
        The plain function of `opinionpool.pools`.
    options : mapping of str to Option
    learns : bool
        Whether resolved events matter for more than the prior.
    """

    name: str
    title: str
    function: Callable[..., Array] | None
    fit: Callable[..., Parameters] | None
    options: Mapping[str, Option] = field(default_factory=dict)
    learns: bool = False


def fit_pool(
    name: str,
    forecasts: Forecasts,
    *,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
    **options: Any,  # noqa: ANN401 - each pool has its own
) -> Learned:
    """Fit a pool to the resolved events among some forecasts.

    Parameters
    ----------
    name : str
        One of `POOLS`.
    forecasts : Forecasts
        Its own priors win over `prior`, which fills their blanks.
    prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        The reference that the experts share; Laplace's estimate if not given.
    sample_weight : array_like, shape (T,), optional
        Frequencies.
    floor, pool_floor : float
        Floors (model.md, section 4).
    **options
        Those of the pool, see ``POOLS[name].options``.

    Raises
    ------
    ArgumentError, LearningError, ProbabilityError, ExpertError, ShapeError
        If there is no such pool or option, or the data or arguments do not allow it.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.7, 0.6], [0.2, 0.3], [0.9, None]], [1, 0, 1], experts=["ann", "bob"])
    >>> learned = fit_pool("linear", f, prior=0.5)
    >>> learned.weights.round(5), float(learned.pool([0.8, 0.5]).round(5))
    (array([1., 0.]), 0.8)
    """
    pool = POOLS.get(name)
    if pool is None:
        raise ArgumentError(f"no pool is called {name!r}; there are {', '.join(POOLS)}")
    for option in options:
        if option not in pool.options:
            known = ", ".join(pool.options) or "none"
            raise ArgumentError(f"the {name} pool has no option {option!r}; its options are: {known}")
    if pool.fit is None or pool.function is None:
        return learn(forecasts, prior=prior, sample_weight=sample_weight, floor=floor, pool_floor=pool_floor, **options)
    sample, shared, events, counts = _sample_of(forecasts, prior, sample_weight, floor)
    parameters = pool.fit(sample, **{key: option.default for key, option in pool.options.items()} | options)
    learned = LearnedPool(
        name, MappingProxyType(parameters), forecasts.experts, forecasts.classes, shared, events, counts,
        tuple(sample.notes), floor, pool_floor,
    )  # fmt: skip
    # No events are enough to find out about parameters that no pool takes.
    n, k = len(forecasts.experts), len(forecasts.classes)
    learned.pool(np.empty((0, n) if k == 2 else (0, n, k)), prior=0.5 if k == 2 else np.full(k, 1.0 / k))
    return learned


def _sample_of(
    forecasts: Forecasts, prior: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None, floor: float
) -> tuple[_Sample, Array | None, Array, Array]:
    """What to learn from, the shared prior, and the weight of events by outcome and of forecasts by expert."""
    (t, n), k = forecasts.shape, len(forecasts.classes)
    weight = np.where(forecasts.resolved, frequencies(sample_weight, t), 0.0)
    events = np.bincount(forecasts.outcomes + 1, weights=weight, minlength=k + 1)[1:].astype(np.float64)
    counts = np.bincount(forecasts.expert_index, weights=weight[forecasts.event_index], minlength=n)
    rows = np.flatnonzero(np.where(weight > 0, forecasts.crowd, 0))
    each, shared = event_priors(forecasts, prior), None
    if each is None:
        shared = laplace_prior(events) if prior is None else logodds.class_probabilities(prior, k)
        reference = shared
    else:
        reference = each[rows]
    return _Sample(forecasts, rows, weight[rows], reference, floor), shared, events, counts.astype(np.float64)


def matched_weights(
    weights: Mapping[str, float] | npt.ArrayLike, experts: tuple[str, ...]
) -> tuple[Array, tuple[str, ...]]:
    """Weights that a user gave, in the experts' order, and the names among them that are not used.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,)
        By name; names of experts who are not here are allowed. Or in the order of `experts`.
    experts : tuple of str

    Raises
    ------
    ExpertError
        If an expert has no weight, or a list is not as long as the experts are many.

    Examples
    --------
    >>> matched_weights({"ann": 0.5, "bob": 0.3, "cat": 0.2}, ("cat", "ann"))
    (array([0.2, 0.5]), ('bob',))
    """
    if isinstance(weights, Mapping):
        without = [name for name in experts if name not in weights]
        if without:
            raise ExpertError(f"weights by name need one for each expert, and {without[0]!r} has none; 0 leaves it out")
        unused = tuple(str(name) for name in weights if name not in set(experts))
        return np.array([weights[name] for name in experts], dtype=np.float64), unused
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (len(experts),):
        raise ExpertError(
            f"there are {len(experts)} experts ({', '.join(experts[:10])}), and {array.size} weights; "
            "give one for each, or weights by name"
        )
    return array, ()


def _given_weights(sample: _Sample, weights: Mapping[str, float] | npt.ArrayLike) -> Array:
    matched, unused = matched_weights(weights, sample.experts)
    if unused:
        text = f"weights for {', '.join(map(repr, unused[:3]))} are not used: no such expert is here"
        sample.notes.append(Note("unused-weights", text, len(unused)))
    return matched


def _fit_linear(sample: _Sample, weights: Any) -> Parameters:  # noqa: ANN401
    """Maximum likelihood on the simplex."""
    n = len(sample.experts)
    if weights is not None:
        return {"weights": pools.check_shares(_given_weights(sample, weights))}
    if sample.nothing("the experts count equally"):
        return {"weights": np.full(n, 1.0 / n)}
    happened = sample.collect(lambda said, y: said.probabilities[np.arange(len(y)), :, y], n)
    present = sample.present
    heard = np.flatnonzero(present.any(axis=0))
    fit = simplex_weights(happened[:, heard], sample.weight, present[:, heard])
    sample.unheard("got weight 0")
    if not fit.converged:
        text = f"the weights of the linear pool may fall short of the best log score by {fit.gap:.2g} an event"
        sample.notes.append(Note("not-converged", text, serious=True))
    found = np.zeros(n)
    found[heard] = fit.weights
    return {"weights": found}


def _fit_log(sample: _Sample, weights: Any) -> Parameters:  # noqa: ANN401
    """Maximum likelihood with an intercept: logistic regression on contrasts, offset L°."""
    n, free = len(sample.experts), sample.classes - 1
    if weights is not None:
        return {"weights": pools.check_weights(_given_weights(sample, weights)), "intercept": 0.0}
    if sample.nothing("the experts' log-odds are averaged"):
        return {"weights": np.full(n, 1.0 / n), "intercept": 0.0}
    contrasts = sample.collect(lambda said, _: said.contrasts, n, free)
    fit = logistic_fit(contrasts, sample.outcomes, _offset(sample), sample_weight=sample.weight)
    _check_logistic(sample, fit)
    if fit.separated:
        text = (
            "outcomes perfectly separated; maximum-likelihood weights are infinite, and these are the most probable "
            f"ones instead under normal beliefs: each weight {1 / n:.3g} ± {n**-0.5:.3g}, the intercept 0 ± 1"
        )
        sample.notes.append(Note("separated", text, serious=True))
        sample.unheard("kept the believed weight")
    else:
        sample.unheard("got weight 0")
    return {"weights": fit.weights, "intercept": _intercept(fit)}


def _fit_recalibrated(sample: _Sample, penalty: float) -> Parameters:
    """Logistic recalibration of the mean contrast, held to the identity."""
    if not 0 <= penalty < np.inf:
        raise ArgumentError(f"the recalibration penalty must be a finite number, at least 0, and it is {penalty!r}")
    if sample.nothing("the mean log-odds are taken as they are"):
        return {"intercept": 0.0, "slope": 1.0}
    means = sample.collect(lambda said, _: said.mean_contrast[:, None, :], 1, sample.classes - 1)
    fit = logistic_fit(
        means, sample.outcomes, _offset(sample),
        sample_weight=sample.weight, penalty=penalty, center=1.0, intercept_penalty=penalty,
    )  # fmt: skip
    _check_logistic(sample, fit)
    if fit.separated:
        text = (
            "outcomes perfectly separated; the maximum-likelihood recalibration is infinite, and this is the one with "
            "penalty 1 instead"
        )
        sample.notes.append(Note("separated", text, serious=True))
    return {"intercept": _intercept(fit), "slope": float(fit.weights[0])}


def _offset(sample: _Sample) -> Array:
    return np.broadcast_to(logodds.prior_log_ratios(sample.prior), (len(sample.rows), sample.classes - 1))


def _intercept(fit: LogisticFit) -> float | Array:
    """As the functions of `opinionpool.pools` take it."""
    return float(fit.intercept[0]) if len(fit.intercept) == 1 else logodds.centred(fit.intercept)


def _check_logistic(sample: _Sample, fit: LogisticFit) -> None:
    if not fit.converged:
        text = f"logistic regression stopped after {fit.iterations} passes with a gradient of {fit.gradient_norm:.2g}"
        sample.notes.append(Note("not-converged", text, serious=True))


def _fit_given(sample: _Sample, **options: Any) -> Parameters:  # noqa: ANN401
    """Nothing to learn: the options are the parameters."""
    if options.get("weights") is not None:
        options["weights"] = pools.check_shares(_given_weights(sample, options["weights"]))
    return options


_WEIGHTS = "weights by expert name, or in the experts' order"
_FITTED = Option(None, f"{_WEIGHTS}; learned from the resolved events if not given")

POOLS: Mapping[str, Pool] = MappingProxyType(
    {
        pool.name: pool
        for pool in (
            Pool(
                "gaussian",
                "Gaussian pool",
                None,
                None,
                {
                    "structure": Option("auto", "full, common, exchangeable, independent or auto"),
                    "beliefs": Option("default", 'what is believed beforehand: "default", or None for the data alone'),
                },
                learns=True,
            ),
            Pool("linear", "Linear pool", pools.linear_pool, _fit_linear, {"weights": _FITTED}, learns=True),
            Pool("log", "Logarithmic pool", pools.log_pool, _fit_log, {"weights": _FITTED}, learns=True),
            Pool("independent", "Independent pool", pools.independent_pool, _fit_given),
            Pool("average", "Average", pools.average_pool, _fit_given),
            Pool(
                "geometric",
                "Geometric mean of odds",
                pools.geometric_pool,
                _fit_given,
                {"weights": Option(None, f"{_WEIGHTS}; equal if not given")},
            ),
            Pool("median", "Median", pools.median_pool, _fit_given),
            Pool(
                "trimmed",
                "Trimmed mean",
                pools.trimmed_pool,
                _fit_given,
                {"trim": Option(pools.TRIM, "fraction of the forecasts cut off at each end")},
            ),
            Pool(
                "extremized",
                "Extremised log-odds",
                pools.extremized_pool,
                _fit_given,
                {"factor": Option(pools.FACTOR, "multiplies the mean log-odds beyond the prior's")},
            ),
            Pool(
                "recalibrated",
                "Recalibrated log-odds",
                pools.recalibrated_pool,
                _fit_recalibrated,
                {"penalty": Option(PENALTY, "how firmly intercept 0 and slope 1 are believed, in events")},
                learns=True,
            ),
        )
    }
)
