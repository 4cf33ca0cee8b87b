"""The problems: every pool, kind of data and command; each name says what is in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import command_runs as commands
import numpy as np
from simulated import crowd, days, forecasts, long_table, own_options, panel

import opinionpool as op
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS

EXACT, ITERATIVE = 1e-9, 1e-6
ROWS = 40
SAVED = Path(__file__).resolve().parent / "saved"
Record = dict[str, Any]


def some(values: Any) -> np.ndarray:
    """Those of `ROWS` events, spread over all."""
    values = np.asarray(values)
    return values[np.unique(np.linspace(0, len(values) - 1, ROWS).round().astype(int))] if len(values) else values


def described(state: Any, f: op.Forecasts, prior: Any = None, weight: Any = None) -> Record:
    """What a fitted pool answers, its weights, how sure it is, and what it learned of each expert."""
    answers = state.pool_forecasts(f, prior)
    found: Record = {"answers": some(answers), "notes": _codes(state.notes), "weights": state.weights}
    if state.rule != "gaussian":
        found["parameters"] = {key: value for key, value in state.parameters.items() if key != "weights"}
        if state.rule in {"linear", "beta-linear", "log"}:
            found["log_likelihood"] = log_likelihood(state, f, answers, weight)
        return found
    features = state.panel if state.marginal is None else state.marginal
    found |= {
        "structure": state.structure,
        "calibration": features.calibration,
        "accuracy": features.accuracy,
        "weight_intervals": np.stack(state.weight_interval(), axis=-1),
        "class_model": state.class_model,
    }
    found["bias"] = getattr(features, "bias", None)
    intervals = state.forecast_intervals(f, f.even if prior is None and f.options is not None else prior)
    if intervals is not None:
        found["intervals"] = [some(end) for end in intervals]
    if state.recency is not None:
        found["half_life"] = getattr(state.recency, "half_life", None)
    return found


def log_likelihood(state: Any, f: op.Forecasts, answers: np.ndarray, weight: Any = None) -> float:
    """What the fit makes large: the mean log-probability of outcomes, less the beta-linear pool's penalty."""
    known = np.flatnonzero(f.resolved & (f.crowd > 0))
    if not len(known):
        return 0.0
    p = np.stack([1.0 - answers, answers], axis=1) if answers.ndim == 1 else answers
    share = np.ones(len(known)) if weight is None else np.asarray(weight, dtype=float)[known]
    share = share / share.sum()
    total = float(len(known) if weight is None else np.asarray(weight, dtype=float)[known].sum())
    found = float(share @ np.log(p[known, f.outcomes[known]]))
    if state.rule == "beta-linear":
        a, b, w = np.log(state.parameters["a"]), np.log(state.parameters["b"]), state.weights
        found -= (0.5 * a**2 + 0.5 * b**2 - np.log(w[w > 0]).mean()) / total
    return found


def fitted(
    name: str, make: Callable[[], op.Forecasts], prior: Any = None, weight: Any = None, **options: Any
) -> Record:
    """A pool that is fitted to forecasts, and asked about them."""
    f = make()
    state = fit_pool(name, f, prior=prior, sample_weight=weight, **options)
    return described(state, f, prior if np.ndim(prior) else None, weight)


# Every pool.


def weights_of(t: int, fractions: bool = False) -> np.ndarray:
    """Frequencies of events, some of them 0."""
    found = np.random.default_rng(t).integers(0, 4, t).astype(float)
    return found / 2 + 0.31 if fractions else found


def priors(t: int) -> np.ndarray:
    """A prior of each event."""
    return np.round(np.random.default_rng(t).uniform(0.1, 0.9, t), 3)


def extreme(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts of which many are exactly 0, ½ or 1."""
    q, y = panel(seed, 60, 4)
    rng = np.random.default_rng(seed)
    said = rng.random(q.shape)
    q = np.where(said < 0.15, np.round(q), np.where(said < 0.3, 0.5, q))
    return q, y


def copied(seed: int, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Five experts, of whom the last two repeat the first."""
    q, y = panel(seed, 60, 3, k)
    return np.concatenate([q, q[:, :1], q[:, :1]], axis=1), y


def constant(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four experts, of whom the last says .3 always."""
    q, y = panel(seed, 60, 4)
    q[:, 3] = 0.3
    return q, y


def separated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes that are as the first expert says."""
    q, _ = panel(seed, 12, 2, unresolved=0.0)
    return q, (q[:, 0] > 0.5).astype(float)


@cache
def every_kind() -> dict[str, tuple[Callable[[], op.Forecasts], dict[str, Any]]]:
    """Kinds of data by name, and what they are fitted with."""

    def of(drawn: Callable[[], tuple[np.ndarray, np.ndarray]], **facts: Any) -> Callable[[], op.Forecasts]:
        return lambda: forecasts(*drawn(), **facts)

    letters = [f"t{i % 3}" for i in range(60)]
    return {
        "complete": (of(partial(panel, 1, 60, 4)), {}),
        "many-events": (of(partial(panel, 2, 300, 3)), {"prior": 0.4}),
        "missing": (of(partial(panel, 3, 60, 5, missing=0.4)), {}),
        "classes": (of(partial(panel, 4, 60, 4, 3)), {}),
        "classes-missing": (of(partial(panel, 5, 80, 4, 4, missing=0.3)), {"prior": [0.1, 0.2, 0.3, 0.4]}),
        "options": (partial(own_options, 6, 60, 4, missing=0.2), {}),
        "weights": (of(partial(panel, 7, 60, 3)), {"weight": weights_of(60)}),
        "fractions": (of(partial(panel, 8, 60, 3, missing=0.1)), {"weight": weights_of(60, fractions=True)}),
        "priors": (of(partial(panel, 9, 60, 3)), {"prior": priors(60)}),
        "extremes": (of(partial(extreme, 10)), {}),
        "copies": (of(partial(copied, 11)), {}),
        "constant": (of(partial(constant, 12)), {"prior": 0.5}),
        "one-event": (of(partial(panel, 13, 4, 3, unresolved=0.75)), {}),
        "no-outcome": (of(partial(panel, 14, 10, 3, unresolved=1.0)), {}),
        "one-expert": (of(partial(panel, 15, 40, 1)), {}),
        "separated": (of(partial(separated, 16)), {"prior": 0.5}),
        "few-events": (of(partial(panel, 17, 8, 6)), {}),
        "topics": (of(partial(panel, 18, 60, 3), topics=letters), {}),
        "groups": (of(partial(panel, 19, 60, 3), groups=letters), {}),
        "sparse-crowd": (partial(crowd, 20, 60, 620), {}),
    }


# Kinds on which maximum likelihood stops by a tolerance for pools whose likelihood has one maximum otherwise.
FLAT = {"separated", "one-event", "few-events", "sparse-crowd"}


def tolerance_of(pool: str, kind: str) -> float:
    """How closely numbers of a pool are met."""
    flat = pool in {"log", "recalibrated", "mean-score"} and kind in FLAT
    return ITERATIVE if flat or pool in {"linear", "beta-linear", "dawid-skene"} else EXACT


def add_pools(add: Callable[..., None]) -> None:
    """Every pool on every kind of data."""
    for pool in POOLS:
        for kind, (make, given) in every_kind().items():
            add(f"pools/{pool}/{kind}", partial(fitted, pool, make, **given), tolerance_of(pool, kind))
    complete = every_kind()["complete"][0]
    for pool, given in [
        ("linear", {"weights": [0.4, 0.3, 0.2, 0.1]}),
        ("log", {"weights": [0.4, 0.5, 0.2, 0.1]}),
        ("geometric", {"weights": [4, 3, 2, 1]}),
        ("beta-linear", {"weights": [4, 3, 2, 1]}),
        ("beta-linear", {"penalty": 4.0}),
        ("trimmed", {"trim": 0.3}),
        ("extremized", {"factor": 2.0}),
        ("recalibrated", {"penalty": 10.0}),
        ("linear", {"floor": 0.05, "pool_floor": 0.02}),
        ("gaussian", {"floor": 0.05, "pool_floor": 0.02}),
    ]:
        name = ",".join(given)
        add(f"pools/given/{pool}-{name}", partial(fitted, pool, complete, **given), tolerance_of(pool, "complete"))


# The Gaussian pool.


def believed(kind: str | None) -> Any:
    """Beliefs by name."""
    if kind == "experts":
        return op.Beliefs(
            calibration=0.8,
            correlation=op.Belief(0.4, worth=10.0),
            experts={
                "expert_1": op.ExpertBeliefs(relative_accuracy=2.0, bias=0.2),
                "expert_2": op.ExpertBeliefs(calibration=op.Belief(1.2, worth=50.0)),
            },
        )
    if kind == "accuracy":
        return op.Beliefs(auc=0.75, extremes=4.0)
    return kind


def add_structures(add: Callable[..., None]) -> None:
    """Structures, beliefs and class models."""
    kinds = every_kind()
    for structure in ("full", "common", "exchangeable", "independent"):
        for beliefs in (None, "default"):
            for kind in ("complete", "missing", "classes", "classes-missing", "options", "weights"):
                options = {"structure": structure, "beliefs": believed(beliefs)}
                make, given = kinds[kind]
                em = structure == "full" and beliefs is None and kind in {"missing", "classes-missing", "options"}
                problem = partial(fitted, "gaussian", make, **given, **options)
                add(f"gaussian/{structure}/{beliefs}-{kind}", problem, ITERATIVE if em else EXACT)
    for beliefs in ("experts", "accuracy"):
        for kind in ("complete", "missing", "classes", "options", "no-outcome", "copies", "topics", "groups"):
            make, given = kinds[kind]
            options = {"beliefs": believed(beliefs)}
            add(f"gaussian/beliefs/{beliefs}-{kind}", partial(fitted, "gaussian", make, **given, **options))
    for beliefs in (None, "default"):
        for model in ("symmetric", "full", "auto"):
            for kind, em in (("classes", False), ("classes-missing", True)):
                make, given = kinds[kind]
                options = {"beliefs": beliefs, "class_model": model}
                problem = partial(fitted, "gaussian", make, **given, **options)
                tolerance = ITERATIVE if em and beliefs is None else EXACT
                add(f"gaussian/class-model/{beliefs}-{model}-{kind}", problem, tolerance)
    large = partial(forecasts, *panel(31, 250, 3, 3))
    add("gaussian/class-model/default-auto-many", partial(fitted, "gaussian", large))


def add_sizes(add: Callable[..., None]) -> None:
    """The default pool with few and many events and experts."""
    for t in (1, 3, 10, 30, 100):
        for n in (1, 2, 5, 20):
            make = partial(_drawn, t + n, t, n, unresolved=0.1)
            add(f"default/sizes/{t}x{n}", partial(fitted, "gaussian", make, prior=0.5))
    # Above 4096 events values are chosen on some of them, above 20,000 all is learned from a sample.
    for name, seed, t, n, more in [
        ("5000x3", 5000, 5000, 3, {}), ("600x12", 600, 600, 12, {}), ("400x8-missing", 400, 400, 8, {"missing": 0.5}),
        ("60x100", 60, 60, 100, {}), ("300x5-classes", 300, 300, 5, {"k": 3}), ("20000x2", 5, 20_000, 2, {}),
    ]:  # fmt: skip
        add(f"default/larger/{name}", partial(fitted, "gaussian", partial(_drawn, seed, t, n, **more)))


def _drawn(seed: int, t: int, n: int, k: int = 2, **more: Any) -> op.Forecasts:
    return forecasts(*panel(seed, t, n, k, **more))


def add_facts(add: Callable[..., None]) -> None:
    """Topics, groups, times, and what they do together."""
    topics, groups = {"topics": [f"t{i % 4}" for i in range(80)]}, {"groups": [f"g{i // 5}" for i in range(80)]}
    for k in (2, 3):
        for missing in (0.0, 0.4):
            for name, facts in [("topics", topics), ("groups", groups), ("both", topics | groups)]:
                make = partial(_with_facts, 40 + k, k, missing, facts)
                add(f"facts/array/{name}-{k}-{missing}", partial(fitted, "gaussian", make))
    for name, columns in [
        ("times", {}),
        ("times-topics", {"topic": [f"t{i % 3}" for i in range(60)]}),
        ("times-groups", {"group": [f"g{i // 6}" for i in range(60)]}),
    ]:
        for pool in ("gaussian", "recent-median", "linear"):
            make = partial(_timed_table, 50, columns)
            add(f"facts/table/{pool}-{name}", partial(fitted, pool, make), tolerance_of(pool, "complete"))
    for k in (2, 3):
        for pool in ("GaussianPool", "RecentMedianPool"):
            add(f"facts/times/{pool}-{k}", partial(_times_by_array, pool, k))


def _with_facts(seed: int, k: int, missing: float, facts: dict[str, Any]) -> op.Forecasts:
    return forecasts(*panel(seed, 80, 4, k, missing=missing), **facts)


def _timed_table(seed: int, columns: dict[str, Any]) -> op.Forecasts:
    q, y = panel(seed, 60, 5, missing=0.3)
    return op.read_forecasts(long_table(q, y, days(seed, 60, 5), **columns))


def _times_by_array(name: str, k: int) -> Record:
    q, y = panel(60 + k, 60, 4, k, missing=0.2)
    times = days(60, 60, 4)
    pool = getattr(op, name)().fit(q, y, times=times, classes=list(range(k)))
    found = {"answers": some(pool.predict_proba(q, times=times)), "notes": _codes(pool.notes_)}
    if name == "GaussianPool":
        found["intervals"] = some(pool.predict_interval(q, times=times))
        found["weights"] = pool.weights_
    return found


def _codes(notes: Any) -> list[str]:
    return sorted({note.code for note in notes})


def add_crowds(add: Callable[..., None]) -> None:
    """Many experts with few forecasts each."""
    topics = [f"t{i % 3}" for i in range(60)]
    for name, make, options in [
        ("binary", partial(crowd, 70, 60, 620), {}),
        ("classes", partial(crowd, 71, 60, 600, 3), {}),
        ("very-sparse", partial(crowd, 72, 100, 650, each=0.02), {"prior": 0.4}),
        ("topics", partial(crowd, 73, 60, 620, topics=topics), {}),
        ("groups", partial(crowd, 74, 60, 620, groups=topics), {}),
        ("beliefs", partial(crowd, 75, 60, 620), {"beliefs": op.Beliefs(calibration=0.9)}),
        ("few-events", partial(crowd, 76, 30, 520), {}),
        ("weights", partial(crowd, 77, 60, 620), {"weight": weights_of(60, fractions=True)}),
        ("common", partial(crowd, 78, 100, 520, each=0.24), {"structure": "common", "beliefs": None}),
        ("options", partial(own_options, 79, 60, 620, missing=0.94), {}),
    ]:
        add(f"crowds/{name}", partial(_crowd, make, options))


def _crowd(make: Callable[[], op.Forecasts], options: dict[str, Any]) -> Record:
    found = fitted("gaussian", make, **options)
    # So many experts, all alike: those of some are enough.
    return {key: some(value) if key in EXPERTS and value is not None else value for key, value in found.items()}


EXPERTS = ("weights", "calibration", "accuracy", "bias", "weight_intervals")


# Arrays, streams, panels, scores, analyses.


def add_arrays(add: Callable[..., None]) -> None:
    """Arrays as scikit-learn passes them."""
    for name in ("GaussianPool", "LinearPool", "LogPool", "IndependentPool", "GeometricPool", "RecalibratedPool"):
        tolerance = ITERATIVE if name == "LinearPool" else EXACT
        for k in (2, 3):
            add(f"arrays/fit/{name}-{k}", partial(_array, name, k, 0.0), tolerance)
            add(f"arrays/fit/{name}-{k}-missing", partial(_array, name, k, 0.3), tolerance)
            add(f"arrays/partial/{name}-{k}", partial(_in_parts, name, k), tolerance)
    for structure in ("full", "common", "exchangeable", "independent"):
        options = {"structure": structure, "beliefs": None}
        add(f"arrays/closed/{structure}", partial(_array, "GaussianPool", 2, 0.0, 400, options))
        add(f"arrays/closed/{structure}-3", partial(_array, "GaussianPool", 3, 0.0, 400, options))
        gaps = partial(_array, "GaussianPool", 2, 0.3, 400, options)
        add(f"arrays/closed/{structure}-missing", gaps, ITERATIVE if structure == "full" else EXACT)


def _array(name: str, k: int, missing: float, t: int = 80, options: dict[str, Any] | None = None) -> Record:
    q, y = panel(80 + k, t, 4, k, missing=missing, unresolved=0.0)
    pool = getattr(op, name)(**options or {}).fit(q, y)
    return _estimator(pool, q)


def _in_parts(name: str, k: int) -> Record:
    q, y = panel(90 + k, 90, 4, k, missing=0.1, unresolved=0.0)
    pool = getattr(op, name)()
    for part in (slice(0, 20), slice(20, 50), slice(50, 90)):
        pool.partial_fit(q[part], y[part], classes=list(range(k)))
    return _estimator(pool, q)


def _estimator(pool: Any, q: np.ndarray) -> Record:
    found = {
        "answers": some(pool.predict_proba(q)),
        "moved": some(pool.predict_proba(q, base_rate=0.2 if q.ndim == 2 else [0.2, 0.3, 0.5])),
        "notes": _codes(pool.notes_),
    }
    with contextlib.suppress(AttributeError):
        found["weights"] = pool.weights_
    if isinstance(pool, op.GaussianPool):
        found["weight_intervals"] = pool.weight_intervals_
        with contextlib.suppress(op.LearningError):
            found["intervals"] = some(pool.predict_interval(q))
    return found


def grown(k: int = 2, half_life: float | None = None, topics: bool = False, capacity: int = 20_000) -> op.Stream:
    """A stream with resolved, corrected, withdrawn and open events."""
    q, y = panel(100 + k, 70, 3, k, missing=0.15, unresolved=0.2)
    stream = op.Stream(classes=tuple(range(k)), half_life=half_life, capacity=capacity)
    for i, (row, outcome) in enumerate(zip(q, y, strict=True)):
        said = {
            f"e{j}": value if k == 2 else value.tolist() for j, value in enumerate(row) if not np.isnan(value).any()
        }
        topic = f"t{i % 3}" if topics else None
        stream.forecast(f"q{i}", {name: float(p) if k == 2 else p for name, p in said.items()}, topic=topic)
        if not np.isnan(outcome):
            stream.resolve(f"q{i}", int(outcome))
    if capacity > len(q):
        stream.resolve("q0", 1)
    stream.withdraw("q5")
    return stream


def add_streams(add: Callable[..., None]) -> None:
    """What is learned as events come one by one."""
    for name, given in [
        ("binary", {}), ("classes", {"k": 3}), ("half-life", {"half_life": 20.0}), ("topics", {"topics": True}),
        ("capacity", {"capacity": 20}),
    ]:  # fmt: skip
        common = {"structure": "common", "beliefs": None}
        for pool, options in [("gaussian", {}), ("gaussian", common), ("linear", {}), ("log", {})]:
            label = f"{pool}-{options.get('structure', 'auto')}"
            problem = partial(_streamed, given, pool, options)
            add(f"streams/{name}/{label}", problem, ITERATIVE if pool == "linear" else EXACT)


def _streamed(given: dict[str, Any], pool: str, options: dict[str, Any]) -> Record:
    stream = grown(**given)
    found = described(stream.fit(pool, **options), stream.forecasts())
    found.pop("log_likelihood", None)
    return found | {"count": stream.count}


def add_panels(add: Callable[..., None]) -> None:
    """Panels whose parameters are given."""
    correlation = [[1.0, 0.2, 0.2], [0.2, 1.0, 0.7], [0.2, 0.7, 1.0]]
    three = {"calibration": [1.0, 0.8, 0.9], "relative_accuracy": [1.0, 0.5, 0.7], "bias": [0.1, -0.2, 0.0]}
    add("panels/matrix", partial(_panel, lambda: op.Panel.from_features(correlation=correlation, **three)))
    add("panels/common", partial(_panel, lambda: op.Panel.from_features(correlation=0.4, **three)))
    nested = {"correlation": 0.5, "dependence": "nested"}
    add("panels/nested", partial(_panel, lambda: op.Panel.from_features(**nested, **three)))
    add("panels/accuracy", partial(_panel, lambda: op.Panel.from_features(correlation=0.3, accuracy=1.5, **three)))
    add("panels/exchangeable", partial(_panel, lambda: op.Panel.exchangeable(3, correlation=0.6)))
    add("panels/classes", partial(_panel, lambda: op.Panel.exchangeable(3, correlation=0.6, classes=("a", "b", "c"))))
    singular = [[2.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 2.0]]
    add("panels/singular", partial(_panel, lambda: op.Panel([1.0, 1.0, 0.5], singular)))


def _panel(make: Callable[[], op.Panel]) -> Record:
    built = make()
    k = len(built.classes)
    q, _ = panel(110, 12, 3, k, missing=0.2)
    prior = 0.3 if k == 2 else [0.2, 0.3, 0.5]
    found = {
        "answers": built.pool(q, prior),
        "moved": built.pool(q, prior, base_rate=0.1 if k == 2 else [0.5, 0.3, 0.2]),
        "weights": built.weights,
        "parts": built.contributions(q, prior),
        "fewer": built.subset([0, 2]).weights,
    }
    with contextlib.suppress(op.AccuracyUnknownError):
        found["accuracy"] = [built.joint_accuracy, *np.ravel(built.accuracy)]
    return found


def add_scores(add: Callable[..., None]) -> None:
    """Scores, reliability and comparisons."""
    for k in (2, 3):
        for name in ("log_score", "brier_score", "spherical_score", "log_loss", "mean_log_score", "auc"):
            if name in {"auc", "brier_score"} and k > 2:
                continue
            add(f"scores/rules/{name}-{k}", partial(_scored, name, k))
    add("scores/rules/decompose", partial(_scored, "decompose", 2))
    add("scores/rules/wilson", lambda: {"ends": op.wilson_interval([0, 3, 10], [10, 10, 10])})
    for pools, tolerance in (("average geometric log gaussian", EXACT), ("linear beta-linear", ITERATIVE)):
        add(f"scores/compared/{pools.replace(' ', '-')}", partial(_compared, pools.split(), {}), tolerance)
    add("scores/compared/classes", partial(_compared, ["average", "gaussian"], {"k": 3}))
    add("scores/compared/missing", partial(_compared, ["average", "log", "gaussian"], {"missing": 0.3}))


def _scored(name: str, k: int) -> Record:
    q, y = panel(120 + k, 50, 1, k, unresolved=0.0)
    value = getattr(op, name)(q[:, 0], y.astype(int))
    return {"value": dict(vars(value)) if hasattr(value, "__dict__") else value}


def _compared(pools: list[str], given: dict[str, Any]) -> Record:
    f = forecasts(*panel(130, 60, 3, **given))
    found = op.compare_pools(f, pools=pools, repeats=1, folds=3)
    return {"scores": found.to_frame().select_dtypes("number").to_numpy(), "notes": _codes(found.notes)}


# What is on disk: pools and streams saved by 0.1, examples, commands.


def _saved(name: str) -> Record:
    kept = op.load(SAVED / f"{name}.json")
    if isinstance(kept, op.Stream):
        found = described(kept.fit("gaussian"), kept.forecasts())
        return found | {"count": kept.count}
    k, n = len(kept.classes_), len(kept.state_.experts)
    q, _ = panel(140, 20, n, k, missing=0.2)
    found = _estimator(kept, q)
    if name.endswith("topics"):
        found["by_topic"] = kept.predict_proba(q, topics=[f"t{i % 4}" for i in range(20)])
    if name not in {"times", "crowd"}:
        q, y = panel(141, 20, n, k, missing=0.1, unresolved=0.0)
        kept.partial_fit(q, y.astype(int))
        found["later"] = some(kept.predict_proba(q))
    return found


def saved_pools() -> dict[str, Callable[[], Any]]:
    """Pools and streams that were saved, by the names of their files."""

    def fit(kind: str, k: int = 2, t: int = 40, n: int = 3, missing: float = 0.15, **options: Any) -> Any:
        q, y = panel(150 + k, t, n, k, missing=missing, unresolved=0.0)
        return getattr(op, kind)(**options).fit(q, y.astype(int))

    def with_facts(seed: int, **facts: Any) -> Any:
        q, y = panel(seed, 60, 3, unresolved=0.0)
        return op.GaussianPool().fit(q, y.astype(int), **facts)

    kinds = (
        "GaussianPool LinearPool LogPool IndependentPool AveragePool GeometricPool MedianPool TrimmedPool "
        "ExtremizedPool RecalibratedPool BetaLinearPool RecentMedianPool"
    )
    found: dict[str, Callable[[], Any]] = {kind: partial(fit, kind) for kind in kinds.split()}
    found |= {
        "classes": partial(fit, "GaussianPool", 3),
        "class-model": partial(fit, "GaussianPool", 3, class_model="full"),
        "discriminant": partial(fit, "GaussianPool", 3, 80, class_model="full", beliefs=None),
        "data-alone": partial(fit, "GaussianPool", 2, 80, beliefs=None),
        "common": partial(fit, "GaussianPool", structure="common"),
        "beliefs": partial(fit, "GaussianPool", beliefs=believed("experts")),
        "topics": partial(with_facts, 160, topics=[f"t{i % 4}" for i in range(60)]),
        "times": partial(with_facts, 161, times=days(161, 60, 3)),
        "crowd": partial(fit, "GaussianPool", 2, 60, 600, missing=0.95),
        "stream": grown,
        "stream-classes": partial(grown, 3),
        "stream-topics": partial(grown, topics=True),
        "stream-half-life": partial(grown, half_life=15.0),
    }
    return found


def save_missing() -> None:
    """Write the pools of `saved_pools` whose files are not there: those that are were written by 0.1."""
    SAVED.mkdir(exist_ok=True)
    for name, make in saved_pools().items():
        path = SAVED / f"{name}.json"
        if not path.exists():
            op.save(make(), path)


def add_saved(add: Callable[..., None]) -> None:
    """Files that 0.1 wrote."""
    for name in saved_pools():
        add(f"saved/{name}", partial(_saved, name), ITERATIVE if name in {"LinearPool", "BetaLinearPool"} else EXACT)


def add_commands(add: Callable[..., None]) -> None:
    """The JSON of commands."""
    for file in commands.FILES:
        for command in commands.COMMANDS:
            tolerance = ITERATIVE if command in {"check", "compare", "linear"} else EXACT
            add(f"commands/{file}/{command}", partial(commands.run, file, command), tolerance)


def add_all(add: Callable[..., None]) -> None:
    """Every problem."""
    for each in (
        add_pools, add_structures, add_sizes, add_facts, add_crowds, add_arrays, add_streams, add_panels, add_scores,
        add_saved, add_commands,
    ):  # fmt: skip
        each(add)
