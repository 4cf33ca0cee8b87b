"""Kinds of panels, fitted pools and streams in files, with their checks on reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.errors import Note, SavedPoolError
from opinionpool.findings import Finding
from opinionpool.learning.beliefs import Beliefs, beliefs_of_mapping
from opinionpool.learning.class_weights import ClassPosterior, ClassWeights
from opinionpool.learning.constants import DEVIATIONS, TOPICS
from opinionpool.learning.crowd_posterior import CrowdPosterior
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.left_out import LeftOut
from opinionpool.learning.levels import LatentLevels
from opinionpool.learning.members import Members
from opinionpool.learning.posterior import Limits, Posterior
from opinionpool.learning.recency import Recency
from opinionpool.learning.rounding import Rounding
from opinionpool.learning.shrinkage import MarginalFeatures
from opinionpool.learning.topics import TopicEffects
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import CommonCorrelation, Dependence, MatrixCorrelation, matrix_correlation
from opinionpool.model.features import LARGEST, Parts
from opinionpool.model.full_panel import Discriminant, FullPanel
from opinionpool.model.mixed import MixedCorrelation
from opinionpool.model.nested import NestedCorrelation
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.pools.registry import POOLS
from opinionpool.saving.codec import Kind, Label, shaped
from opinionpool.saving.streams import STREAMS
from opinionpool.streams.trained import TrainedPool

# How far a covariance may be from positive, relative to its variances, by rounding.
ROUNDING = 1e-8
# Spreads below this would overflow where weights are divided by them.
SMALLEST = 1e-150


def _check_dependence(dependence: MatrixCorrelation) -> None:
    matrix_correlation(dependence.array)
    if not 0 < dependence.least < 1:
        raise SavedPoolError(f"the least eigenvalue should lie between 0 and 1, and is {dependence.least:g}")


def _check_common(dependence: CommonCorrelation) -> None:
    if dependence.size < 1 or not np.isfinite(dependence.rho):
        raise SavedPoolError(f"there is no common correlation of {dependence.rho} among {dependence.size} experts")


def _check_nested(dependence: NestedCorrelation) -> None:
    if dependence.signal.ndim != 1 or not np.isfinite(dependence.signal).all():
        raise SavedPoolError("nested evidence should have a finite signal for each expert")


def _check_parts(parts: Parts) -> None:
    n = parts.contrast.size
    shaped(parts.contrast, (n,), "the contrasts")
    shaped(np.nan_to_num(parts.spread, nan=0.0, posinf=np.inf), (n,), "the spreads", least=0.0)
    if max(np.abs(parts.contrast).max(initial=0.0), np.nanmax(parts.spread, initial=0.0)) > LARGEST:
        raise SavedPoolError(f"contrasts and spreads should be at most {LARGEST:g}")
    if 0 < np.min(parts.spread, where=parts.spread > 0, initial=np.inf) < SMALLEST:
        raise SavedPoolError(f"spreads should be 0 or at least {SMALLEST:g}")
    if parts.source is None and parts.dependence.size != n:
        raise SavedPoolError(f"{n} contrasts do not fit the correlation of {parts.dependence.size} experts")


class Copies(NamedTuple):
    """Dependence of duplicate experts, in files of release 0.1."""

    distinct: Dependence
    source: Index


class OtherSums(NamedTuple):
    """Alternative model of the sum of weights in files of release 0.1: probability, shifts and covariance."""

    probability: float
    moves: Array
    covariance: Array


class OtherLimits(NamedTuple):
    """Alternative limits of contamination in files of release 0.1."""

    limits: Array
    probability: Array
    coefficients: Array


class OldPosterior(Posterior):
    """Posterior in files of release 0.1: one covariance, alternative sums of weights and limits of contamination."""


class OldClassPosterior(ClassPosterior):
    """Posterior in files of release 0.1 of panels whose weights differ between classes."""


def _old_posterior(
    covariance: Array, sums: tuple[tuple[OtherSums, ...], ...] | None, limits: object = None, **differences: Any  # noqa: ANN401, ARG001 - limits moved answers little
) -> Posterior:  # fmt: skip
    """Normal posterior with the covariance of release 0.1 and the variance between its alternative sums."""
    for each in (some[0] for some in sums or () if some):
        covariance = covariance + each.probability * (each.covariance + each.moves.T @ each.moves - covariance)
    normal = Posterior(np.ones(1), np.zeros((1, len(covariance))), covariance[None])
    _check_posterior(normal)
    return ClassPosterior(normal.probability, normal.mean, normal.covariance, **differences) if differences else normal


def _old(name: str, kind: type[Posterior], more: dict[str, Any]) -> Kind:
    """Kind of a posterior of release 0.1, which is read and never written."""
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
    if parts.means.ndim != 3 or len(parts.means) < 2 or parts.means.shape[2] != len(parts.means) - 1:
        raise SavedPoolError(f"means should have the shape (K, N, K - 1), and have {parts.means.shape}")
    FullPanel(parts.means, parts.covariance)


def _check_posterior(posterior: Posterior) -> None:
    m, size = len(posterior.probability), posterior.mean.shape[-1]
    shaped(posterior.probability, (m,), "the probabilities of normals", least=0.0)
    shaped(posterior.mean, (m, size), "the means of the weights")
    shaped(posterior.covariance, (m, size, size), "the covariances of the weights")
    if not m or abs(float(posterior.probability.sum()) - 1.0) > ROUNDING:
        raise SavedPoolError("the probabilities of normals should sum to 1")
    for covariance in posterior.covariance:
        _check_positive(covariance, "the covariance of the weights")
    if posterior.limits is not None:
        limits = posterior.limits
        shaped(limits.limit, (limits.limit.size,), "the limits of extremes", least=0.0)
        shaped(limits.probability, limits.limit.shape, "the probabilities of limits", least=0.0)
        shaped(limits.mean, (*limits.limit.shape, size), "weights by limit")
    h = len(posterior.hyperparameter)
    if len(posterior.value) != h or posterior.prior.shape != (h,) or posterior.posterior.shape != (h,):
        raise SavedPoolError("each hyperparameter should have a value, and probabilities before and after")


def _check_class_posterior(posterior: ClassPosterior) -> None:
    _check_posterior(posterior)
    size = posterior.weights.size
    shaped(posterior.differences, (size, size), "the covariance of differences between classes")
    _check_positive(posterior.differences, "the covariance of differences between classes")


def _check_crowd_posterior(posterior: CrowdPosterior) -> None:
    _check_posterior(posterior)
    b, n = posterior.contrast.shape
    d = posterior.mean.shape[1] - b
    shaped(posterior.contrast, (b, n), "the contrasts of panels")
    shaped(posterior.variance, (3, n), "the variances of features", least=0.0)
    shaped(posterior.shift, (d,), "the shift of biases")
    shaped(posterior.turn, (d, d), "what turns log-ratios")
    if posterior.nested.shape != (b,) or [len(part.contrast) for part in posterior.parts] != [n, n]:
        raise SavedPoolError(f"{b} panels of {n} experts should have one of two dependences each")


def _check_positive(covariance: Array, what: str) -> None:
    variance = np.diag(covariance)
    if (variance < 0).any():
        raise SavedPoolError(f"{what} should be positive semi-definite, and has a variance of {variance.min():.3g}")
    size = np.sqrt(np.where(variance > 0, variance, 1.0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = covariance / np.outer(size, size)
    if not np.isfinite(scaled).all():
        raise SavedPoolError(f"{what} should have variances of usual size, and they are {variance.min():.3g} and more")
    if np.abs(scaled - scaled.T).max(initial=0.0) > ROUNDING:
        raise SavedPoolError(f"{what} should be symmetric")
    least = float(np.linalg.eigvalsh(scaled)[0]) if len(scaled) else 0.0
    if least < -ROUNDING * max(1, len(scaled)):
        raise SavedPoolError(f"{what} should be positive semi-definite, and its smallest eigenvalue is {least:.3g}")


def _check_marginal(marginal: MarginalFeatures) -> None:
    n = marginal.contrast.size
    shaped(marginal.contrast, (n,), "the contrasts")
    shaped(marginal.spread, (n,), "the spreads", least=0.0)
    if marginal.bias.ndim != 2 or not np.isfinite(marginal.bias).all() or not -1 <= marginal.correlation <= 1:
        raise SavedPoolError("biases should be finite, (N, K - 1), and the correlation between -1 and 1")


def _check_levels(votes: LatentLevels) -> None:
    n = len(votes.experts)
    for each in votes.levels, votes.votes, votes.scale, votes.shift, votes.leniency:
        if each.shape != (n,) or not np.isfinite(each).all():
            raise SavedPoolError(f"there should be levels, a scale, a shift and a leniency for each of {n} experts")
    if (votes.levels < 0).any() or ((votes.scale >= 0) != (votes.levels > 0)).any() or (votes.scale >= n).any():
        raise SavedPoolError("who gives levels should have a scale, and nobody else")


def _check_rounding(votes: Rounding) -> None:
    shaped(votes.zero, (len(votes.experts),), "what zeros count as", least=0.0)


def _check_recency(recency: Recency) -> None:
    size = recency.half_lives.shape
    if len(size) != 1 or not (recency.half_lives > 0).all() or recency.absolute.shape != size:
        raise SavedPoolError("half-lives should be above 0, each with where ages count from")
    if recency.correlations.ndim != 1 or not ((recency.correlations >= 0) & (recency.correlations <= 1)).all():
        raise SavedPoolError("correlations should lie between 0 and 1")
    both = (*size, *recency.correlations.shape)
    shaped(recency.probabilities, both, "the probabilities of half-lives", least=0.0)
    if (recency.experts is None) != (recency.source is None):
        raise SavedPoolError("experts and the distinct ones behind them should both be there, or neither")
    if recency.experts is not None and recency.source is not None:
        n = len(recency.experts)
        if recency.source.shape != (n,) or not ((recency.source >= -2) & (recency.source < n)).all():
            raise SavedPoolError("each expert should have a distinct one behind it")
    if recency.by_agreement is not None:
        shaped(recency.by_agreement, size, "the probabilities of half-lives", least=0.0)


def _check_topics(effects: TopicEffects) -> None:
    g = len(effects.topics)
    d = effects.intercept.shape[1] if effects.intercept.ndim == 2 else 0
    if d == 0 or len(set(effects.topics)) < g:
        raise SavedPoolError("topics should have different names, and an intercept for each class but one")
    shaped(effects.intercept, (g, d), "the intercepts of topics")
    shaped(effects.slope, (g,), "the slopes of topics")
    shaped(effects.events, (g,), "the events of topics", least=0.0)
    shaped(effects.levels, (len(TOPICS),), "the probabilities of levels", least=0.0)
    size = d + 1
    if effects.weights is not None and effects.deviations is not None:
        size += effects.weights.shape[-1]
        shaped(effects.weights, (g, size - d - 1), "the weights of topics")
        shaped(effects.deviations, (len(DEVIATIONS),), "the probabilities of deviations", least=0.0)
    shaped(effects.covariance, (g, size, size), "the covariance of topics")
    shaped(effects.new, (size, size), "the covariance of a new topic")
    if effects.cross is not None:
        shaped(effects.cross, (g, size, effects.cross.shape[-1]), "the covariance of topics with what is common")
    if effects.plain is not None:
        shaped(effects.plain, (effects.plain.size,), "what slopes multiply")
    for covariance in (effects.new, *effects.covariance):
        _check_positive(covariance, "the covariance of a topic")


def _check_extremes(extremes: Extremes) -> None:
    if extremes.centre is not None and extremes.centre.ndim != 2:
        raise SavedPoolError(f"the centre of extremes should have the shape (N, K - 1), not {extremes.centre.shape}")


def _panel(kind: type[Panel] | type[FullPanel]) -> Any:  # noqa: ANN401 - a function for `Kind`
    def make(parts: Any, bias: Array, names: Any, classes: Any, settings: Settings) -> Any:  # noqa: ANN401
        n, d = len(names), len(classes) - 1
        shaped(bias, (n, d), "the bias")
        if settings.extremes.centre is not None:
            shaped(settings.extremes.centre, (n, d), "the centre of extremes")
        if isinstance(parts, Parts):
            shaped(parts.contrast, (n,), "the contrasts")
        else:
            shaped(parts.means, (d + 1, n, d), "the means")
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
    """Raise a SavedPoolError for a prior, events or counts that no fit to n experts and K classes gives."""
    if prior is not None:
        shaped(prior, (k,), "the prior", least=logodds.LEAST)
        if abs(float(prior.sum()) - 1.0) > 1e-9:
            raise SavedPoolError(f"the prior should sum to 1, and sums to {float(prior.sum()):.15g}")
    shaped(events, (k,), "the events by outcome", least=0.0)
    shaped(counts, (n,), "the counts of forecasts", least=0.0)


def _check_members(members: Members) -> None:
    if members.count.shape != members.follow.shape or not ((members.count >= 0) & (members.count <= 1)).all():
        raise SavedPoolError("experts should count from 0 to 1 in the average")
    for what, values in (("members", members.shares), ("members before", members.before), ("experts", members.follow)):
        if values.ndim != 1 or not (values >= 0).all() or abs(values.sum() - 1.0) > ROUNDING:
            raise SavedPoolError(f"shares of {what} should be probabilities that add up to 1")
    if len(members.shares) != 3 or len(members.before) != 3:
        raise SavedPoolError(f"there should be shares of three members, not {len(members.shares)}")


def _check_left_out(left_out: LeftOut) -> None:
    events, (d,) = left_out.weight.shape, left_out.null.shape
    shaped(left_out.ratios, (*events, d), "ratios of resolved events")
    shaped(left_out.weight, events, "weights of resolved events", least=0.0)
    if left_out.outcomes.shape != events or not ((left_out.outcomes >= 0) & (left_out.outcomes <= d)).all():
        raise SavedPoolError(f"outcomes of resolved events should be positions of {d + 1} classes")


def _check_panel_state(learned: FittedPanel) -> None:
    panel = learned.panel
    n, k = len(panel), len(panel.classes)
    check_learned(learned.prior, learned.events, learned.counts, n, k)
    if learned.present.shape != (n,):
        raise SavedPoolError(f"who made a forecast should be {n} times true or false")
    # Where events have options of their own, no prior is shared, and nobody can be biased towards a class.
    widths = {k - 1} if learned.prior is not None else {k - 1, 1}
    if learned.marginal is not None and learned.marginal.bias.shape not in {(n, width) for width in widths}:
        raise SavedPoolError(f"features of each expert by itself should be of {n} experts and {k} classes")
    posterior = learned.posterior
    if posterior is not None:
        known = posterior.contrast.shape[1] if isinstance(posterior, CrowdPosterior) else posterior.mean.shape[1]
        if known < n:
            raise SavedPoolError(f"what is open about {n} weights is of {known}")
    topics, common = learned.topics, k - 1 + n
    for part, name, axis, size in (
        *((topics, "intercept", 1, k - 1), (topics, "weights", 1, n), (topics, "cross", 2, common)),
        *((topics, "plain", 0, common), (learned.left_out, "null", 0, k - 1), (learned.members, "follow", 0, n)),
    ):
        array = getattr(part, name, None)
        if array is not None and array.shape[axis] != size:
            raise SavedPoolError(f"{name} should be of {n} experts and {k} classes, and has the shape {array.shape}")
    _check_answer(learned, n, k)


def _of_any_release(kind: Kind) -> Kind:
    """Kind of fitted panels; those with a posterior of release 0.1 (no hyperparameters) get a note."""

    def make(**given: Any) -> Any:  # noqa: ANN401 - fields
        found = kind.make(**given)
        old = found.structure == "default" and found.posterior is not None and not found.posterior.hyperparameter
        if not old or any(note.code == "older-method" for note in found.notes):
            return found
        text = (
            "weights were learned by the method of release 0.1, and answers are as they were; learned anew by this "
            "release they would differ"
        )
        return replace(found, notes=(*found.notes, Note("older-method", text)))

    def take(panel: FittedPanel) -> dict[str, Any]:
        return {**kind.take(panel), "left_out": panel.left_out}

    return replace(kind, take=take, make=make, optional=("topics", "recency", "members", "votes", "left_out"))


def _check_pool_state(learned: FittedPool) -> None:
    n, k = len(learned.experts), len(learned.classes)
    if learned.rule not in POOLS or learned.rule == "gaussian":
        raise SavedPoolError(f"there is no pool {learned.rule!r} of this kind")
    if n == 0 or len(set(learned.experts)) < n or k < 2 or len(set(learned.classes)) < k:
        raise SavedPoolError("there should be experts with different names, and two or more different classes")
    check_learned(learned.prior, learned.events, learned.counts, n, k)
    try:
        _check_answer(learned, n, k)
    except (TypeError, ValueError, IndexError) as error:
        raise SavedPoolError(f"the parameters do not fit the {learned.rule} pool: {error}") from None


def _check_answer(pool: FittedPanel | FittedPool | Panel | FullPanel, n: int, k: int) -> None:
    """Raise a SavedPoolError if the pool gives no finite probability for a test forecast."""
    even: Any = 0.5 if k == 2 else np.full(k, 1.0 / k)
    q = np.full(n, 0.6) if k == 2 else np.full((n, k), 1.0 / k)
    if not np.isfinite(pool.pool(q, even)).all():
        raise SavedPoolError("this pool gives no answer")


def _nothing(_: object) -> None:
    """Check nothing beyond the types of the fields."""


def _beliefs(**saved: Any) -> Beliefs:  # noqa: ANN401 - what a file may hold
    values = saved["stated"]
    if not isinstance(values, dict):
        raise SavedPoolError("beliefs should be values by name")
    return beliefs_of_mapping(values)


_PANEL = {"bias": Array, "names": tuple[str, ...], "classes": tuple[Label, ...], "settings": Settings}

_NOTE = {"code": str, "text": str, "count": int, "serious": bool}
_NOTES: tuple[type[Note], ...] = (Note, Finding)

# A pool or panel that is added to the project is added here.
PARTS = (
    *(Kind("note", kind, _NOTE, lambda note: {name: getattr(note, name) for name in _NOTE}, Note) for kind in _NOTES),
    Kind.of("extremes", Extremes, _check_extremes),
    Kind.of("settings", Settings, _check_settings),
    Kind.of("common-correlation", CommonCorrelation, _check_common),
    Kind.of("nested-evidence", NestedCorrelation, _check_nested),
    replace(Kind.of("mixed-dependence", MixedCorrelation, _nothing), optional=("signal",)),
    Kind.of("correlation-matrix", MatrixCorrelation, _check_dependence),
    replace(Kind.of("parts", Parts, _nothing), make=_parts, optional=("source",)),
    Kind.of("discriminant", Discriminant, _check_means),
    Kind.of("features-alone", MarginalFeatures, _check_marginal),
    Kind.of("limits", Limits, _nothing),
    Kind.of("posterior", Posterior, _check_posterior),
    Kind.of("members", Members, _check_members),
    Kind.of("left-out", LeftOut, _check_left_out),
    replace(
        Kind.of("topic-effects", TopicEffects, _check_topics), optional=("weights", "deviations", "cross", "plain")
    ),
    replace(
        Kind.of("recency", Recency, _check_recency),
        optional=("experts", "source", "by_agreement"),
        retired=("by_revisions",),
    ),
    Kind.of("latent-levels", LatentLevels, _check_levels),
    Kind.of("rounding", Rounding, _check_rounding),
    Kind.of("class-weights", ClassWeights, _nothing),
    Kind.of("class-posterior", ClassPosterior, _check_class_posterior),
    Kind.of("crowd-posterior", CrowdPosterior, _check_crowd_posterior),
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
    if trained.name not in POOLS:
        raise SavedPoolError(f"there is no pool {trained.name!r}")
    if trained.stream is not None and trained.stream.classes != trained.classes:
        raise SavedPoolError("the pool and what it learned from have different classes")


# What files of older releases hold and newer ones do not.
OLD = (
    Kind.of("copies", Copies, _nothing),
    Kind.of("other-sums", OtherSums, _nothing),
    Kind.of("other-limits", OtherLimits, _nothing),
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
