"""Kinds of panels, fitted pools and streams in files, with their checks on reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.errors import Note, SavedPoolError
from opinionpool.estimation.regression import intercept_root
from opinionpool.findings import Finding, finding
from opinionpool.learning.beliefs import Beliefs, beliefs_of_mapping
from opinionpool.learning.class_model import ClassPosterior, ClassWeights
from opinionpool.learning.constants import TOPICS
from opinionpool.learning.crowd_posterior import CrowdPosterior
from opinionpool.learning.fitted import FittedPanel, LeftOut
from opinionpool.learning.hierarchy import MarginalFeatures
from opinionpool.learning.levels import Coding
from opinionpool.learning.members import Members
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.recency import Recency
from opinionpool.learning.topics import TopicEffects
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import (
    CommonCorrelation,
    Dependence,
    MatrixCorrelation,
    MixedCorrelation,
    matrix_correlation,
)
from opinionpool.model.features import LARGEST, Parts
from opinionpool.model.full_panel import Discriminant, FullPanel
from opinionpool.model.nested import NestedCorrelation
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.pools.registry import POOLS
from opinionpool.saving.codec import Kind, Label, demand, shaped, sized
from opinionpool.saving.streams import STREAMS
from opinionpool.streams.trained import TrainedPool

# How far a covariance may be from positive, relative to its variances, by rounding.
ROUNDING = 1e-8
# Spreads below this would overflow where weights are divided by them.
SMALLEST = 1e-150


def _check_dependence(dependence: MatrixCorrelation) -> None:
    matrix_correlation(dependence.array)
    demand(0 < dependence.least < 1, f"the least eigenvalue should lie between 0 and 1, and is {dependence.least:g}")


def _check_common(common: CommonCorrelation) -> None:
    right = common.size >= 1 and np.isfinite(common.rho)
    demand(right, f"there is no common correlation of {common.rho} among {common.size} experts")


def _check_parts(parts: Parts) -> None:
    n = sized(parts, "contrast n")["n"]
    shaped(np.nan_to_num(parts.spread, nan=0.0, posinf=np.inf), (n,), "the spreads", least=0.0)
    largest = max(np.abs(parts.contrast).max(initial=0.0), np.nanmax(parts.spread, initial=0.0))
    least = np.min(parts.spread, where=parts.spread > 0, initial=np.inf)
    demand(
        largest <= LARGEST and least >= SMALLEST, f"features should be at most {LARGEST:g}, and spreads not so small"
    )
    right = parts.source is not None or parts.dependence.size == n
    demand(right, f"{n} contrasts do not fit the correlation of {parts.dependence.size} experts")


class Copies(NamedTuple):
    """Correlation of distinct experts, and which experts duplicate them; in files of release 0.1."""

    distinct: Dependence  # of the distinct experts
    source: Index  # (N,); position of each expert among the distinct ones


class OtherSums(NamedTuple):
    """Possible sum of weights, in files of release 0.1: probability, shift of the mean weights, and covariance."""

    probability: float
    moves: Array
    covariance: Array


class OtherLimits(NamedTuple):
    """Possible limits of extreme forecasts, with probabilities and coefficients, in files of release 0.1."""

    limits: Array
    probability: Array
    coefficients: Array


class OldPosterior(Posterior):
    """Posterior as release 0.1 saved it: a covariance, and several possible sums of weights and limits of forecasts."""


class OldClassPosterior(ClassPosterior):
    """Posterior as release 0.1 saved it for panels whose weights differ between classes."""


def _old_posterior(covariance: Array, sums: tuple[tuple[OtherSums, ...], ...] | None, **more: Any) -> Posterior:  # noqa: ANN401
    """Normal posterior with release 0.1's `covariance`, plus the variance between the possible `sums` of weights."""
    for each in (some[0] for some in sums or () if some):
        covariance = covariance + each.probability * (each.covariance + each.moves.T @ each.moves - covariance)
    normal = np.ones(1), np.zeros((1, len(covariance))), covariance[None]
    _check_posterior(Posterior(*normal))
    if "weights" not in more:
        return Posterior(*normal)
    weights, differences, turn = more["weights"], more["differences"], _from_features(more["weights"])
    shaped(differences, (len(turn), len(turn)), "the covariance of differences between classes")
    return ClassPosterior(*normal, weights=weights, differences=turn.T @ differences @ turn)


def _from_features(weights: ClassWeights) -> Array:
    """Matrix that turns `weights` into release 0.1's coefficients: of the crowd, of each expert, and intercepts."""
    d, n = weights.free, len(weights.first)
    even = np.linalg.qr(np.concatenate([np.eye(d).reshape(1, -1), np.eye(d * d)]).T)[0].T
    found = np.zeros((d * d * (1 + n * (n > 1)) + d, weights.size))
    found[: d * d, d : d + d * d] = even
    found[-d:, :d] = np.linalg.solve(intercept_root(1.0, d), weights.turn.T)
    if n > 1:
        found[d * d : -d, d + d * d :] = np.kron(weights.between, even)
    return found


def _old(name: str, kind: type[Posterior], more: dict[str, Any]) -> Kind:
    """Return the saved kind `name` of a posterior of release 0.1, which is read and never written."""
    of_sums = {"sums": tuple[tuple[OtherSums, ...], ...] | None, "limits": tuple[OtherLimits, ...] | None}
    return Kind(name, kind, {"covariance": Array, **of_sums, **more}, vars, _old_posterior, ("sums", "limits"))


def _parts(**saved: Any) -> Parts:  # noqa: ANN401 - what a file may hold
    among = saved["dependence"]
    if isinstance(among, Copies):
        saved |= among._asdict() | {"dependence": among.distinct}
        del saved["distinct"]
    parts = Parts(**saved)
    _check_parts(parts)
    return parts


def _check_settings(settings: Settings) -> None:
    for floor in (settings.floor, settings.pool_floor):
        logodds.class_floors(floor, np.array([0.5, 0.5]), 100.0)


def _check_means(parts: Discriminant) -> None:
    right = parts.means.ndim == 3 and 2 <= len(parts.means) == parts.means.shape[2] + 1
    demand(right, f"means should have the shape (K, N, K - 1), and have {parts.means.shape}")
    FullPanel(parts.means, parts.covariance)


def _check_posterior(posterior: Posterior) -> None:
    size = sized(posterior, "probability m +, mean m s, covariance m s s, prior h, posterior h")
    total = abs(float(posterior.probability.sum()) - 1.0)
    demand(size["m"] and total <= ROUNDING, "the probabilities of normals should sum to 1")
    for covariance in posterior.covariance:
        _check_positive(covariance, "the covariance of the weights")
    right = len(posterior.value) == len(posterior.hyperparameter) == size["h"]
    demand(right, "each hyperparameter should have a value, and probabilities before and after")


def _check_class_posterior(posterior: ClassPosterior) -> None:
    _check_posterior(posterior)
    sized(posterior, "differences p p", p=posterior.weights.size)
    _check_positive(posterior.differences, "the covariance of differences between classes")


def _check_crowd_posterior(posterior: CrowdPosterior) -> None:
    _check_posterior(posterior)
    b, n = posterior.contrast.shape
    sized(posterior, "contrast b n, variance 3 n +, shift d, turn d d", d=posterior.mean.shape[1] - b)
    right = posterior.nested.shape == (b,) and [len(part.contrast) for part in posterior.parts] == [n, n]
    demand(right, f"{b} panels of {n} experts should have one of two dependences each")


def _check_positive(covariance: Array, what: str) -> None:
    variance = np.diag(covariance)
    demand((variance >= 0).all(), f"{what} should be positive semi-definite, and has a variance below 0")
    size = np.sqrt(np.where(variance > 0, variance, 1.0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = covariance / np.outer(size, size)
    demand(
        np.isfinite(scaled).all(), f"{what} should have variances of usual size, and one is {variance.min(initial=0)}"
    )
    demand(np.abs(scaled - scaled.T).max(initial=0.0) <= ROUNDING, f"{what} should be symmetric")
    least = float(np.linalg.eigvalsh(scaled)[0]) if len(scaled) else 0.0
    right = least >= -ROUNDING * max(1, len(scaled))
    demand(right, f"{what} should be positive semi-definite, and its smallest eigenvalue is {least:.3g}")


def _check_marginal(marginal: MarginalFeatures) -> None:
    sized(marginal, "contrast n, spread n +, bias n d")
    demand(-1 <= marginal.correlation <= 1, "the correlation should lie between -1 and 1")


def _check_coding(coding: Coding) -> None:
    n = len(coding.experts)
    sized(coding, f"levels n +, votes n, scale n, shift n, leniency n, zero n {'1 ' * (coding.zero.ndim - 1)}+", n=n)
    right = ((coding.scale >= 0) == (coding.levels > 0)).all() and (coding.scale < n).all()
    demand(right, "who gives levels should have a scale, and nobody else")


def _check_recency(recency: Recency) -> None:
    sized(recency, "absolute c, correlations r +, probabilities c r +", c=len(recency.half_lives))
    demand((recency.half_lives > 0).all() and recency.half_lives.ndim == 1, "half-lives should be above 0")
    demand((recency.correlations <= 1).all(), "correlations should lie between 0 and 1")
    n, source = len(recency.experts or ()), recency.source
    right = (recency.experts is None) == (source is None)
    right &= source is None or (source.shape == (n,) and bool(((source >= -2) & (source < n)).all()))
    demand(right, "each expert should have a distinct one behind it")


def _check_topics(effects: TopicEffects) -> None:
    fixed = {"g": len(effects.topics), "l": len(TOPICS), "v": 3}
    size = sized(effects, "intercept g d, slope g, events g +, levels l +, weights g n, deviations v +", **fixed)
    right = size["d"] and len(set(effects.topics)) == size["g"]
    demand(right, "topics should have different names, and an intercept for each class but one")
    p = size["d"] + 1 + (size["n"] if effects.weights is not None and effects.deviations is not None else 0)
    sized(effects, "covariance g p p, new p p, cross g p c, plain c", g=size["g"], p=p)
    for covariance in (effects.new, *effects.covariance):
        _check_positive(covariance, "the covariance of a topic")


def _check_extremes(extremes: Extremes) -> None:
    right = extremes.centre is None or extremes.centre.ndim == 2
    demand(right, "the centre of extremes should have the shape (N, K - 1)")


def _panel(kind: type[Panel] | type[FullPanel]) -> Any:  # noqa: ANN401 - a function for `Kind`
    def make(parts: Any, bias: Array, names: Any, classes: Any, settings: Settings) -> Any:  # noqa: ANN401
        n, d = len(names), len(classes) - 1
        shaped(bias, (n, d), "the bias")
        sized(settings.extremes, "centre n d", n=n, d=d)
        sized(parts, "contrast n" if isinstance(parts, Parts) else "means k n d", n=n, d=d, k=d + 1)
        panel = kind.from_parts(parts, bias, names, classes, settings)
        _check_answer(panel, n, d + 1)
        return panel

    return make


def _panel_fields(panel: Panel | FullPanel) -> dict[str, Any]:
    return {
        "parts": panel.parts,
        "bias": panel.bias_ratios,
        "names": panel.names,
        "classes": tuple(label.item() if isinstance(label, np.generic) else label for label in panel.classes),
        "settings": panel.settings,
    }


def check_learned(prior: Array | None, events: Array, counts: Array, n: int, k: int) -> None:
    """Raise a SavedPoolError if a saved pool's `prior`, `events` or `counts` have a wrong shape or impossible values.

    `events` are numbers of events by outcome, (k,), `counts` are numbers of forecasts by expert, (n,), and `prior` has
    a probability for each class, (k,).
    """
    if prior is not None:
        shaped(prior, (k,), "the prior", least=logodds.LEAST)
        demand(abs(float(prior.sum()) - 1.0) <= 1e-9, f"the prior should sum to 1, and sums to {prior.sum():.15g}")
    shaped(events, (k,), "the events by outcome", least=0.0)
    shaped(counts, (n,), "the counts of forecasts", least=0.0)


def _check_members(members: Members) -> None:
    sized(members, "shares 3 +, before 3 +, count n +, follow n +")
    demand((members.count <= 1).all(), "experts should count from 0 to 1 in the average")
    for what, values in (("members", members.shares), ("members before", members.before), ("experts", members.follow)):
        demand(abs(values.sum() - 1.0) <= ROUNDING, f"shares of {what} should be probabilities that add up to 1")


def _check_left_out(left_out: LeftOut) -> None:
    d = sized(left_out, "ratios e d, weight e +, outcomes e +, null d")["d"]
    demand((left_out.outcomes <= d).all(), f"outcomes of resolved events should be positions of {d + 1} classes")


def _check_panel_state(learned: FittedPanel) -> None:
    panel = learned.panel
    n, k = len(panel), len(panel.classes)
    check_learned(learned.prior, learned.events, learned.counts, n, k)
    demand(learned.present.shape == (n,), f"who made a forecast should be {n} times true or false")
    # Where events have options of their own, no prior is shared, and nobody can be biased towards a class.
    widths = {k - 1} if learned.prior is not None else {k - 1, 1}
    right = learned.marginal is None or learned.marginal.bias.shape in {(n, width) for width in widths}
    demand(right, f"features of each expert by itself should be of {n} experts and {k} classes")
    posterior = learned.posterior
    if posterior is not None:
        known = posterior.contrast.shape[1] if isinstance(posterior, CrowdPosterior) else posterior.mean.shape[1]
        demand(known >= n, f"what is open about {n} weights is of {known}")
    topics, common = learned.topics, k - 1 + n
    for part, name, axis, size in (
        *((topics, "intercept", 1, k - 1), (topics, "weights", 1, n), (topics, "cross", 2, common)),
        *((topics, "plain", 0, common), (learned.left_out, "null", 0, k - 1), (learned.members, "follow", 0, n)),
    ):
        array = getattr(part, name, None)
        demand(array is None or array.shape[axis] == size, f"{name} should be of {n} experts and {k} classes")
    _check_answer(learned, n, k)


def _of_any_release(kind: Kind) -> Kind:
    """Return a copy of `kind` that adds a note to fitted panels whose posterior is from release 0.1."""

    def make(**given: Any) -> Any:  # noqa: ANN401 - fields
        found = kind.make(**given)
        old = found.structure == "default" and found.posterior is not None and not found.posterior.hyperparameter
        if not old or any(note.code == "older-method" for note in found.notes):
            return found
        return replace(found, notes=(*found.notes, finding("older-method")))

    def take(panel: FittedPanel) -> dict[str, Any]:
        return {**kind.take(panel), "left_out": panel.left_out}

    return replace(kind, take=take, make=make, optional=("topics", "recency", "members", "coding", "left_out"))


def _check_pool_state(learned: FittedPool) -> None:
    n, k = len(learned.experts), len(learned.classes)
    demand(learned.rule in {*POOLS} - {"gaussian"}, f"there is no pool {learned.rule!r} of this kind")
    right = len(set(learned.experts)) == n > 0 and len(set(learned.classes)) == k > 1
    demand(right, "there should be experts with different names, and two or more different classes")
    check_learned(learned.prior, learned.events, learned.counts, n, k)
    try:
        _check_answer(learned, n, k)
    except (TypeError, ValueError, IndexError) as error:
        raise SavedPoolError(f"the parameters do not fit the {learned.rule} pool: {error}") from None


def _check_answer(pool: FittedPanel | FittedPool | Panel | FullPanel, n: int, k: int) -> None:
    """Raise a SavedPoolError if the pool's answer to a test forecast by `n` experts is not a finite probability."""
    even: Any = 0.5 if k == 2 else np.full(k, 1.0 / k)
    q = np.full(n, 0.6) if k == 2 else np.full((n, k), 1.0 / k)
    demand(np.isfinite(pool.pool(q, even)).all(), "this pool gives no answer")


def _beliefs(**saved: Any) -> Beliefs:  # noqa: ANN401 - what a file may hold
    demand(isinstance(saved["stated"], dict), "beliefs should be values by name")
    return beliefs_of_mapping(saved["stated"])


_PANEL = {"bias": Array, "names": tuple[str, ...], "classes": tuple[Label, ...], "settings": Settings}

_NOTE = {"code": str, "text": str, "count": int, "serious": bool}
_NOTES: tuple[type[Note], ...] = (Note, Finding)

# A pool or panel that is added to the project is added here.
PARTS = (
    *(Kind("note", kind, _NOTE, lambda note: {name: getattr(note, name) for name in _NOTE}, Note) for kind in _NOTES),
    Kind.of("extremes", Extremes, _check_extremes),
    Kind.of("settings", Settings, _check_settings),
    Kind.of("common-correlation", CommonCorrelation, _check_common),
    Kind.of("nested-evidence", NestedCorrelation, "signal n"),
    replace(Kind.of("mixed-dependence", MixedCorrelation), optional=("signal",)),
    Kind.of("correlation-matrix", MatrixCorrelation, _check_dependence),
    replace(Kind.of("parts", Parts), make=_parts, optional=("source",)),
    Kind.of("discriminant", Discriminant, _check_means),
    Kind.of("features-alone", MarginalFeatures, _check_marginal),
    replace(Kind.of("posterior", Posterior, _check_posterior), retired=("limits",)),
    Kind.of("members", Members, _check_members),
    Kind.of("left-out", LeftOut, _check_left_out),
    replace(
        Kind.of("topic-effects", TopicEffects, _check_topics), optional=("weights", "deviations", "cross", "plain")
    ),
    replace(
        Kind.of("recency", Recency, _check_recency),
        optional=("experts", "source"),
        retired=("by_revisions", "by_agreement"),
    ),
    Kind.of("coding", Coding, _check_coding),
    Kind.of("class-weights", ClassWeights),
    replace(Kind.of("class-posterior", ClassPosterior, _check_class_posterior), retired=("limits",)),
    replace(Kind.of("crowd-posterior", CrowdPosterior, _check_crowd_posterior), retired=("limits",)),
    Kind("panel", Panel, {"parts": Parts, **_PANEL}, _panel_fields, _panel(Panel)),
    Kind("full-panel", FullPanel, {"parts": Discriminant, **_PANEL}, _panel_fields, _panel(FullPanel)),
    _of_any_release(
        Kind.of(
            "learned-panel",
            FittedPanel,
            _check_panel_state,
            {"marginal": "alone", "posterior": "doubt", "known": "left_out"},
            known=LeftOut | None,
        )
    ),
    Kind.of("learned-pool", FittedPool, _check_pool_state, classes=tuple[Label, ...]),
    Kind("beliefs", Beliefs, {"stated": Any}, lambda beliefs: {"stated": beliefs.to_dict()}, _beliefs),
)


def _check_trained(trained: TrainedPool) -> None:
    demand(trained.name in POOLS, f"there is no pool {trained.name!r}")
    same = trained.stream is None or trained.stream.classes == trained.classes
    demand(same, "the pool and what it learned from have different classes")


# What files of older releases hold and newer ones do not.
OLD = (
    Kind.of("copies", Copies),
    Kind.of("other-sums", OtherSums),
    Kind.of("other-limits", OtherLimits),
    _old("weights-covariance", OldPosterior, {}),
    _old("class-covariance", OldClassPosterior, {"weights": ClassWeights, "differences": Array}),
)

KINDS = (
    *PARTS,
    *OLD,
    *STREAMS,
    replace(
        Kind.of("trained-pool", TrainedPool, _check_trained), optional=("release", "duplicates", "scales", "at_least")
    ),
)
