"""Every public call with arguments of wrong types, shapes and values: an answer, or an error of the project's own.

    .venv/bin/python fuzz/calls.py --seconds 300

`tests/test_arguments.py` puts each wrong value in the place of each argument; here several are wrong at once, and
nested. The exit status is the number of calls that ended in another way, 100 at most.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import DataConversionWarning

import opinionpool as op
from opinionpool.errors import OpinionPoolError, OpinionPoolWarning

# A call and arguments that it takes.
Call = tuple[Callable[..., object], dict[str, Any]]
X, Y = op.Panel.exchangeable(3, calibration=0.8, correlation=0.3, accuracy=0.7).simulate(40, seed=1)
NAMES = ("ann", "bob", "cat")
POOLS: tuple[Any, ...] = tuple(getattr(op, name) for name in op.__all__ if name.endswith("Pool"))
# Names of values that calls give back.
NOT_CALLED = {"Comparison", "Diff", "Forecasts", "Rates", "__version__"}
FOLDER = tempfile.TemporaryDirectory()


class Odd:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "<odd>"


def wrong_values() -> dict[str, Any]:
    """Values of many types, shapes and sizes; few arguments take any of them."""
    return {
        "none": None, "true": True, "zero": 0, "three": 3, "minus": -1, "half": 0.5, "huge": 10**30, "1e308": 1e308,
        "nan": float("nan"), "infinite": float("inf"), "complex": 1j, "decimal": decimal.Decimal("0.5"),
        "empty": "", "x": "x", "digits": "0.5", "surrogate": "\udcff", "control": "\x1b[2J", "nul": "a\0b",
        "bytes": b"x", "list": [], "tuple": (), "dict": {}, "set": {1, 2}, "dict of x": {"x": 1}, "range": range(3),
        "generator": (i for i in range(3)), "odd": Odd(), "type": int, "function": len, "lists": [0.1, [0.2]],
        "texts": ["x", "y"], "twice": ["x", "x"], "mixed": [1, "x", None], "numbers": [0.2, 0.3],
        "truths": [True, False], "array": np.zeros(0), "flat": np.full(7, 0.5), "deep": np.full((2, 2, 2, 2), 0.5),
        "wide": np.full((40, 5), 0.5),
        "short": np.full((39, 3), 0.5), "nans": np.full((40, 3), np.nan), "out": np.full((40, 3), 1.5),
        "complexes": np.full((40, 3), 0.5j), "void": np.zeros(2, dtype=[("a", float)]),
        "objects": np.array([Odd(), None], dtype=object), "strings": np.array(["x", "y", "z"]),
        "dates": np.array(["2025-01-01", "NaT"], dtype="datetime64[s]"), "date": datetime.date(2025, 1, 1),
        "frame": pd.DataFrame({"x": ["y"]}), "series": pd.Series([1, 2]), "masked": np.ma.masked, "na": pd.NA,
        "path": Path("no/such/file"),
    }  # fmt: skip


def estimator_calls() -> Iterator[tuple[str, Call]]:
    """The pools: how they are made, and each of their methods."""
    frame = pd.DataFrame(X, columns=NAMES)
    for kind in POOLS:
        name = kind.__name__

        def made(kind: Any = kind, **settings: Any) -> object:  # noqa: ANN401
            return kind(**settings).fit(X, Y)

        yield name, (made, kind().get_params())
        learned = {"X": frame, "y": Y, "prior": 0.4, "sample_weight": np.ones(40), "classes": [0, 1]}
        if kind is op.GaussianPool:
            learned["topics"] = np.array(["a", "b"] * 20)
        answered = {"X": frame, "prior": 0.4, "base_rate": 0.3}
        pool = kind().fit(**learned)
        yield f"{name}.fit", (lambda kind=kind, **given: kind().fit(**given), dict(learned))
        learned.pop("topics", None)
        yield f"{name}.partial_fit", (lambda kind=kind, **given: kind().partial_fit(**given), learned)
        for method in ("predict", "predict_proba"):
            yield f"{name}.{method}", (getattr(pool, method), answered)
        yield f"{name}.score", (pool.score, {**answered, "y": Y, "sample_weight": None, "scoring_prior": None})
        if kind in (op.GaussianPool, op.AveragePool):
            yield f"{name}.save", (pool.save, {"path": Path(FOLDER.name) / "saved.json"})
    yield "GaussianPool.predict_interval", (op.GaussianPool().fit(X, Y).predict_interval, {"X": X, "level": 0.9})
    lines = op.LogOddsTransformer()
    yield "LogOddsTransformer", (lambda **given: op.LogOddsTransformer(**given).fit(X, Y), {"output": "log-odds"})
    yield "LogOddsTransformer.fit", (lines.fit, {"X": X, "y": Y, "prior": 0.5, "sample_weight": None})
    yield (
        "LogOddsTransformer.fit_transform",
        (lines.fit_transform, {"X": X, "y": Y, "prior": 0.5, "sample_weight": None}),
    )
    yield "LogOddsTransformer.transform", (op.LogOddsTransformer().fit(X, Y).transform, {"X": X, "prior": 0.5})


def panel_calls() -> Iterator[tuple[str, Call]]:
    """Panels: how they are made, what they answer, and what they are worth."""
    features = {
        "calibration": [0.8, 0.9, 1.0],
        "correlation": 0.3,
        "relative_accuracy": [1.0, 1.2, 0.8],
        "accuracy": None,
        "bias": 0.0,
        "names": NAMES,
        "classes": [0, 1],
        "dependence": "common",
        "floor": 1e-4,
        "pool_floor": 1e-8,
    }
    panel = op.Panel.from_features([0.8, 0.9, 1.0], 0.3, accuracy=[0.5, 0.6, 0.7], names=NAMES)
    full = op.FullPanel([[[0.0], [0.1]], [[1.0], [1.2]]], [[1.0, 0.2], [0.2, 1.0]])
    yield (
        "Panel",
        (
            op.Panel,
            {
                "contrast": [1.0, 2.0, 1.5],
                "covariance": np.eye(3),
                "bias": 0.0,
                "names": NAMES,
                "classes": [0, 1],
                "floor": 1e-4,
                "pool_floor": 1e-8,
            },
        ),
    )
    yield "Panel.from_features", (op.Panel.from_features, features)
    yield (
        "Panel.exchangeable",
        (
            op.Panel.exchangeable,
            {
                "n": 3,
                "calibration": 0.9,
                "correlation": 0.3,
                "accuracy": 0.6,
                "bias": 0.0,
                "classes": [0, 1],
                "names": NAMES,
                "floor": 1e-4,
                "pool_floor": 1e-8,
            },
        ),
    )
    yield (
        "FullPanel",
        (
            op.FullPanel,
            {
                "means": full.means,
                "covariance": full.covariance,
                "names": ["ann", "bob"],
                "classes": [0, 1],
                "floor": 1e-4,
                "pool_floor": 1e-8,
            },
        ),
    )
    for name, one, q in (("Panel", panel, X), ("FullPanel", full, X[:, :2])):
        yield f"{name}.pool", (one.pool, {"probabilities": q, "prior": 0.4, "base_rate": 0.3})
        yield f"{name}.contributions", (one.contributions, {"probabilities": q, "prior": 0.4})
        yield f"{name}.simulate", (one.simulate, {"events": 5, "prior": 0.4, "seed": 1})
        yield f"{name}.subset", (one.subset, {"experts": [0, 1]})
        yield f"explain({name})", (op.explain, {"state": one, "q": q[0], "prior": 0.4, "base_rate": 0.3, "level": 0.9})
    yield "best_subset", (op.best_subset, {"panel": panel, "k": 2, "method": "auto"})
    yield "subset_path", (op.subset_path, {"panel": panel, "most": 2})
    yield "redundant_groups", (op.redundant_groups, {"panel": panel, "least": 0.9})
    yield (
        "gain_from",
        (op.gain_from, {"panel": panel, "accuracy": 0.5, "correlation": 0.3, "calibration": 0.9, "prior": 0.4}),
    )
    yield "gain_from_one_more", (op.gain_from_one_more, {"panel": panel, "prior": 0.4, "correlation": 0.3})
    yield "panel_value", (op.panel_value, {"panel": panel, "prior": 0.4, "joint_accuracy": 0.9})
    yield "decision_value", (op.decision_value, {"accuracy": 0.9, "cost_loss": [0.1, 0.5], "prior": 0.4})


def forecast_calls() -> Iterator[tuple[str, Call]]:
    """Forecasts, and what is made of them."""
    f = op.Forecasts.from_array(X, Y, experts=NAMES)
    state = op.GaussianPool().fit(f).state_
    beliefs = op.Beliefs(correlation=0.5)
    yield (
        "Forecasts.from_array",
        (
            op.Forecasts.from_array,
            {
                "probabilities": X,
                "outcomes": Y,
                "events": None,
                "experts": NAMES,
                "classes": (0, 1),
                "prior": 0.4,
                "options": None,
            },
        ),
    )
    yield "Forecasts.dense", (f.dense, {"rows": slice(None), "experts": NAMES})
    yield "Forecasts.select_events", (f.select_events, {"keep": np.ones(40, dtype=bool)})
    yield "Forecasts.select_experts", (f.select_experts, {"names": NAMES})
    yield (
        "explain",
        (op.explain, {"state": state, "q": X[0], "prior": None, "base_rate": 0.3, "event": "q", "level": 0.9}),
    )
    yield (
        "explain_event",
        (
            op.explain_event,
            {"forecasts": f, "event": 0, "state": state, "prior": None, "base_rate": None, "level": 0.9},
        ),
    )
    groups = np.array(["old", "new"] * 20)
    yield (
        "rates",
        (op.rates, {"pool": state, "forecasts": f, "by": groups, "labels": "random", "level": 0.9, "prior": None}),
    )
    yield "Rates.difference", (op.rates(state, f, groups).difference, {"a": "new", "b": "old", "of": 1})
    yield "check_model", (op.check_model, {"forecasts": f, "state": state, "prior": None})
    yield "learned_value", (op.learned_value, {"state": state, "prior": 0.4})
    yield (
        "compare_pools",
        (
            op.compare_pools,
            {
                "forecasts": f,
                "pools": ["average"],
                "folds": 2,
                "repeats": 1,
                "by": None,
                "gap": 0,
                "prior": None,
                "beliefs": beliefs,
                "seed": 0,
                "progress": None,
            },
        ),
    )
    yield (
        "make_report",
        (
            op.make_report,
            {
                "forecasts": f,
                "pool": "gaussian",
                "prior": None,
                "beliefs": None,
                "by": None,
                "repeats": 1,
                "source": None,
                "sort": "probability",
                "progress": None,
            },
        ),
    )
    yield (
        "read_forecasts",
        (
            op.read_forecasts,
            {
                "source": pd.DataFrame(X, columns=NAMES).assign(outcome=Y),
                "outcomes": None,
                "progress": None,
                "positive": 1,
                "missing_values": (),
                "columns": {},
                "duplicates": None,
                "as_of": None,
                "percent": False,
                "classes": None,
                "where": None,
                "dates": None,
            },
        ),
    )
    yield "load", (op.load, {"path": saved_pool()})
    yield "save", (op.save, {"pool": op.AveragePool().fit(X, Y), "path": Path(FOLDER.name) / "saved.json"})
    yield "read_beliefs", (op.read_beliefs, {"path": panel_file()})
    numbers = {
        "bias": 0.1,
        "calibration": (0.9, 10),
        "relative_accuracy": None,
        "accuracy": 0.5,
        "auc": None,
        "score": None,
        "hit_rate": None,
    }
    yield (
        "Beliefs",
        (op.Beliefs, {**numbers, "correlation": 0.3, "extremes": None, "experts": {"a": op.ExpertBeliefs()}}),
    )
    yield "ExpertBeliefs", (op.ExpertBeliefs, numbers)
    yield "Belief", (op.Belief, {"value": 0.5, "worth": 20.0})
    yield "Beliefs.get", (beliefs.get, {"name": "correlation"})
    yield "Note", (op.Note, {"code": "x", "text": "y", "count": 1, "serious": False})


def stream_calls() -> Iterator[tuple[str, Call]]:
    """Streams, each call on a copy."""
    f = op.Forecasts.from_array(X, Y, experts=NAMES)
    stream = op.Stream()
    stream.add_rows(X, Y, experts=NAMES)
    stream.forecast("open", {"ann": 0.5})
    values = {
        "classes": (0, 1),
        "prior": 0.4,
        "half_life": None,
        "capacity": 100,
        "seed": 0,
        "floor": 1e-4,
        "pool_floor": 1e-8,
    }

    def on_copy(method: str) -> Callable[..., object]:
        def call(**given: Any) -> object:  # noqa: ANN401
            return getattr(stream.copy(), method)(**given)

        return call

    yield "diff", (op.diff, {"old": stream, "new": stream.copy(), "old_forecasts": None, "new_forecasts": None})
    yield "Stream", (op.Stream, values)
    yield "Stream.add", (on_copy("add"), {"forecasts": f, "sample_weight": np.ones(40), "at": None})
    yield (
        "Stream.add_rows",
        (
            on_copy("add_rows"),
            {
                "probabilities": X,
                "outcomes": Y,
                "sample_weight": np.ones(40),
                "prior": None,
                "at": None,
                "experts": NAMES,
            },
        ),
    )
    yield "Stream.forecast", (on_copy("forecast"), {"event": "new", "forecasts": {"ann": 0.4}, "prior": None})
    yield (
        "Stream.resolve",
        (
            on_copy("resolve"),
            {"event": "new", "outcome": 1, "forecasts": {"ann": 0.4}, "prior": None, "weight": 1.0, "at": None},
        ),
    )
    yield "Stream.withdraw", (on_copy("withdraw"), {"event": "open"})
    yield "Stream.with_classes", (on_copy("with_classes"), {"classes": ("no", "yes")})
    yield "Stream.knows", (on_copy("knows"), {"event": "open"})
    yield "Stream.fit", (on_copy("fit"), {"pool": "average"})
    yield "Stream.learn", (on_copy("learn"), {"structure": "auto", "beliefs": "default"})
    yield "Stream.merge", (on_copy("merge"), {"other": stream.copy()})


def score_calls() -> Iterator[tuple[str, Call]]:
    """Scores, reliability and calibration."""
    both = {"p": X[:, 0], "y": Y}
    weighted = {**both, "sample_weight": np.ones(40)}
    for score in (op.brier_score, op.brier_sum, op.ranked_probability_score, op.spherical_score):
        yield score.__name__, (score, both)
    yield "log_loss", (op.log_loss, {**both, "floor": 1e-8})
    yield "log_score", (op.log_score, {**both, "floor": 1e-8, "scoring_prior": 0.5})
    yield "mean_log_score", (op.mean_log_score, {**weighted, "floor": 1e-8, "scoring_prior": 0.5})
    yield "mean_score", (op.mean_score, {"scores": X[:, 0], "sample_weight": np.ones(40)})
    yield "auc", (op.auc, weighted)
    yield "decompose", (op.decompose, {**weighted, "score": "brier", "floor": 1e-8})
    yield "reliability_table", (op.reliability_table, {**weighted, "level": 0.95})
    yield "wilson_interval", (op.wilson_interval, {"happened": [3, 4], "count": [5, 6], "level": 0.95})
    yield "calibration_curve", (op.calibration_curve, {"calibration": 0.9, "prior": 0.4, "q": [0.1, 0.9]})
    yield (
        "recalibrate",
        (
            op.recalibrate,
            {"q": [0.1, 0.9], "calibration": 0.9, "bias": 0.0, "prior": 0.5, "floor": 1e-4, "pool_floor": 1e-8},
        ),
    )


def saved_pool() -> Path:
    """A pool in a file."""
    op.save(op.AveragePool().fit(X, Y), Path(FOLDER.name) / "pool.json")
    return Path(FOLDER.name) / "pool.json"


def panel_file() -> Path:
    """Beliefs in a file."""
    (Path(FOLDER.name) / "panel.toml").write_text("correlation = 0.5\n")
    return Path(FOLDER.name) / "panel.toml"


def calls() -> dict[str, Call]:
    """Every public call by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpinionPoolWarning)
        parts = (estimator_calls, panel_calls, forecast_calls, stream_calls, score_calls)
        return {name: call for part in parts for name, call in part()}


def nested(value: Any, random: np.random.Generator) -> Any:  # noqa: ANN401
    """A wrong value inside something else, or as it is."""
    wrapped = [
        lambda v: [v],
        lambda v: (0.5, v),
        lambda v: {"ann": v},
        lambda v: [[v, 0.5, 0.2]] * 40,
        lambda v: [v] * 40,
    ]
    within = value is not np.ma.masked and random.random() < 0.3
    return wrapped[int(random.integers(len(wrapped)))](value) if within else value


def ends_well(call: Callable[..., object], given: dict[str, Any]) -> str | None:
    """None for an answer or an error of ours; else what was raised, and where."""
    try:
        call(**given)
    except (OpinionPoolError, FileNotFoundError):
        return None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]!r} at {Path(place.filename).name}:{place.lineno}"
    return None


def main() -> int:
    """Draw calls for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("error")
    for category in (OpinionPoolWarning, DataConversionWarning):
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("ignore", "X has feature names")
    every, random = list(calls().items()), np.random.default_rng(options.seed)
    os.chdir(FOLDER.name)
    until, count, broken = time.monotonic() + options.seconds, 0, collections.Counter[str]()
    while time.monotonic() < until:
        name, (call, good) = every[int(random.integers(len(every)))]
        values = wrong_values()
        chosen = random.choice(list(good), size=min(len(good), int(random.integers(1, 4))), replace=False).tolist()
        given = {argument: str(random.choice(list(values))) for argument in chosen}
        found = ends_well(call, good | {argument: nested(values[key], random) for argument, key in given.items()})
        count += 1
        if found is not None and "progress" not in given:
            broken[found] += 1
            if broken[found] == 1:
                print(f"{name} {given}: {found}", flush=True)
    print(f"{count:,} calls, {sum(broken.values()):,} that ended in another way, of {len(broken)} kinds")
    FOLDER.cleanup()
    return min(sum(broken.values()), 100)


if __name__ == "__main__":
    sys.exit(main())
