"""Rates by group against the estimators in use, on panels of judges whose errors are correlated.

    python benchmarks/rates.py [REPEATS]
    python benchmarks/rates.py --real FOLDER

Judges are calibrated up to a slope and an offset of their own, unequally accurate (log accuracies with a standard
deviation of 0.5), and their errors have a correlation of 0.4 given the outcome. Four groups of 100 to 2,000 events have
true shares drawn from 0.05 to 0.95. Labels lie in a group of their own ("one", half of it happens) or anywhere ("all").
Scores are probabilities in five levels, read as (level + ½)/5. Shown are root mean squared errors of the share among
the group's events, the ratio to the better of Rogan-Gladen and PPI++, and how often 90% intervals hold it. In the last
rows accuracies are 1.5 times as large in every other group, and `noticed` is how often a note says so. Then labels are
chosen by their outcome, so many that happened and so many that did not, among 800 events of one group or in a table of
their own; 20% or 50% of the events happen, and experts are as above, have a common offset of 1, or are calibrated. With
--real, panels are those of a folder of real forecasts that have groups, labels are drawn from all events, and the truth
is the share among all of a group's events.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from row import Row, at_most

from opinionpool.analysis.rates import Rates, rates
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit
from opinionpool.tables.read import read_forecasts

SIZES, JUDGES, LABELS, KINDS, PLACES = (
    (100, 300, 1000, 2000),
    (5, 25),
    (50, 200, 1000),
    ("scores", "probabilities"),
    ("one", "all"),
)
# Repeats of the tables, and of the page of benchmarks.
CORRELATION, UNEQUAL, REPEATS, FEW = 0.4, 1.5, 12, 4
CHOSEN, CHOSEN_KINDS = ((0, 20), (3, 20), (3, 100), (10, 100)), ("as above", "offset", "calibrated")
RIVALS = ("mean of answers", "majority", "Rogan-Gladen", "PPI++")
# Real panels: the column of groups, the one of what events share, and the least level of a score that is relevant.
REAL: tuple[tuple[str, str, str | None, int | None], ...] = (
    ("blf", "group", "question", None), ("nfl_students", "time", None, None), ("llmjudge_scores", "group", None, 2),
)  # fmt: skip
LEAST, DRAWS = 10, 12


class Problem(NamedTuple):
    """Forecasts of judges, and what they are about."""

    forecasts: Forecasts
    group: list[str]
    share: np.ndarray  # (4,); of the groups' events that happen


class Experts(NamedTuple):
    """Features of some judges, (N,)."""

    accuracy: np.ndarray
    calibration: np.ndarray
    offset: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, judges: int) -> Experts:
        """Judges who are unequal in all of these."""
        accuracy, calibration = 0.8 * np.exp(0.5 * rng.normal(size=judges)), np.exp(0.4 * rng.normal(size=judges))
        return cls(accuracy, calibration, 0.5 * rng.normal(size=judges))

    def say(self, rng: np.random.Generator, y: np.ndarray, better: np.ndarray | float = 1.0) -> np.ndarray:
        """Probabilities of events that happen or not, (T,), where log-odds are `better` apart by so much."""
        spread = np.sqrt(2 * self.accuracy) / self.calibration
        error = np.sqrt(CORRELATION) * rng.normal(size=(len(y), 1))
        error = error + np.sqrt(1 - CORRELATION) * rng.normal(size=(len(y), len(spread)))
        apart = (better * np.where(y, 1.0, -1.0))[:, None] * self.accuracy / self.calibration
        return np.asarray(expit(self.offset + apart + spread * error))


def problem(seed: int, judges: int, labels: int, kind: str, place: str, *, unequal: float = 1.0) -> Problem:
    """A panel's forecasts about four groups of events."""
    rng = np.random.default_rng([seed, judges, labels, KINDS.index(kind), PLACES.index(place)])
    experts = Experts.drawn(rng, judges)
    group = np.repeat(np.arange(len(SIZES)), SIZES)
    y = rng.random(len(group)) < rng.uniform(0.05, 0.95, len(SIZES))[group]
    known = np.zeros(len(group), dtype=bool)
    if place == "one":
        group = np.append(group, np.full(labels, len(SIZES)))
        y = np.concatenate([y, [False, True], rng.random(labels - 2) < 0.5])
        known = group == len(SIZES)
    else:
        known[rng.choice(len(group), labels, replace=False)] = True
    q = experts.say(rng, y, np.where(group % 2 == 1, np.sqrt(unequal), 1.0))
    if kind == "scores":
        q = (np.minimum(np.floor(5 * q), 4) + 0.5) / 5
    outcomes = [int(happened) if told else None for happened, told in zip(y, known, strict=True)]
    share = np.array([y[group == g].mean() for g in range(len(SIZES))])
    return Problem(Forecasts.from_array(q, outcomes, classes=(0, 1)), [f"g{g}" for g in group], share)


def estimate(drawn: Problem) -> Rates:
    """The rates of a problem's groups, by the default pool."""
    return rates(learn(drawn.forecasts), drawn.forecasts, drawn.group)


class Cell(NamedTuple):
    """Measured over the panels of one kind."""

    errors: dict[str, float]
    ratio: float
    covered: float
    noticed: float


def cell(judges: int, labels: int, kind: str, place: str, repeats: int, *, unequal: float = 1.0) -> Cell:
    """Root mean squared errors, their ratio, the coverage, and how often a note warns."""
    return measured(problem(seed, judges, labels, kind, place, unequal=unequal) for seed in range(repeats))


def measured(problems: Iterator[Problem]) -> Cell:
    """The same of problems; of each the first groups, as many as there are true shares."""
    errors: dict[str, list[np.ndarray]] = {}
    covered, noticed = [], []
    for drawn in problems:
        found, g = estimate(drawn), len(drawn.share)
        estimates = {"rates": found.rate_} | {name: each.rate for name, each in found.rivals_.items()}
        for name, each in estimates.items():
            errors.setdefault(name, []).append(each[:g] - drawn.share)
        low, high = (end[:g] for end in found.interval_)
        covered.append((low - 1e-9 <= drawn.share) & (drawn.share <= high + 1e-9))
        noticed.append(bool(found.notes))
    size = {name: float(np.sqrt(np.mean(np.square(each)))) for name, each in errors.items()}
    ratio = size["rates"] / min(size["Rogan-Gladen"], size["PPI++"])
    return Cell(size, ratio, float(np.mean(covered)), float(np.mean(noticed)))


def chosen(seed: int, happened: int, others: int, where: str, kind: str, share: float) -> list[float]:
    """True share, estimate, ends of its interval, and what Rogan-Gladen and a pool without labels say of it."""
    rng = np.random.default_rng([seed, happened, others, round(100 * share), CHOSEN_KINDS.index(kind)])
    experts, y = Experts.drawn(rng, 5), rng.random(800) < share
    if kind == "calibrated":
        experts = Experts(np.ones(5), np.ones(5), np.full(5, np.log(share / (1 - share))))
    experts = experts._replace(offset=experts.offset + (kind == "offset"))
    known = np.repeat([1, 0], [happened, others])
    q, labelled = experts.say(rng, y), experts.say(rng, known == 1)
    apart = Forecasts.from_array(np.concatenate([q, labelled]), [*[None] * 800, *known.tolist()], classes=(0, 1))
    rows = np.arange(len(apart.events))
    open_, resolved = (apart.select_events(part) for part in (rows[:800], rows[800:]))
    if where == "same":
        place = np.concatenate([np.flatnonzero(y)[:happened], np.flatnonzero(~y)[:others]])
        outcomes = np.full(800, -1)
        outcomes[place] = y[place]
        open_ = resolved = replace(open_, outcomes=outcomes)
    found = rates(learn(resolved), open_, labels="selected")
    other = rates(learn(apart), apart, ["open"] * 800 + ["resolved"] * len(known)).rivals_["Rogan-Gladen"]
    nothing = replace(open_, outcomes=np.full(800, -1))
    alone = rates(learn(nothing), nothing).rate_
    return [float(y.mean()), *(float(each[0]) for each in (found.rate_, *found.interval_, other.rate, alone))]


def chosen_cells(repeats: int) -> tuple[float, float, float, float]:
    """Print the table of labels chosen by outcome; coverage, and errors of rates, Rogan-Gladen and without labels."""
    print("| happened | others | where | covered | rates | Rogan-Gladen | without labels |")
    print("| --- " * 7 + "|")
    every = []
    for (happened, others), where in product(CHOSEN, ("same", "other")):
        seeds = product(range(repeats), CHOSEN_KINDS, (0.2, 0.5))
        drawn = np.array([chosen(seed, happened, others, where, kind, share) for seed, kind, share in seeds])
        truth, low, high = drawn[:, 0], drawn[:, 2] - 1e-9, drawn[:, 3] + 1e-9
        errors = np.sqrt(np.square(drawn[:, [1, 4, 5]] - truth[:, None]).mean(axis=0))
        every.append([np.mean((low <= truth) & (truth <= high)), *errors])
        numbers = " | ".join(f"{each:.3f}" for each in errors)
        print(f"| {happened} | {others} | {where} | {every[-1][0]:.2f} | {numbers} |", flush=True)
    covered, error, corrected, without = np.nanmean(every, axis=0).tolist()
    return covered, error, corrected, without


def real(file: Path, group: str, shared: str | None, least: int | None, labels: int) -> Iterator[Problem]:
    """A real panel with some labels, anew for each draw; groups of few events are left out."""
    table = pd.read_csv(file)
    if least is not None:
        table = table.assign(probability=(table["score"] + 0.5) / 4, outcome=(table["outcome"] >= least).astype(int))
    keep = ["event", "expert", "probability", "outcome", group, *([] if shared is None else [shared])]
    named: dict[str, Any] = {"topic": group, "group": shared, "time": None}
    forecasts = read_forecasts(table[keep].astype({group: str}), columns=named)
    assert forecasts.topics is not None
    often = pd.Series(forecasts.topics).map(pd.Series(forecasts.topics).value_counts()).to_numpy()
    forecasts = forecasts.select_events(np.flatnonzero(often >= LEAST).tolist())
    topics, outcomes = np.asarray(forecasts.topics), forecasts.outcomes
    share = pd.Series(outcomes == 1).groupby(topics).mean().sort_index().to_numpy()
    for seed in range(DRAWS):
        known = np.random.default_rng(seed).choice(len(outcomes), labels, replace=False)
        hidden = np.where(np.isin(np.arange(len(outcomes)), known), outcomes, -1)
        yield Problem(replace(forecasts, outcomes=hidden, topics=None), topics.tolist(), share)


def real_table(folder: Path) -> None:
    """Print the same figures of real panels."""
    warnings.simplefilter("ignore")
    print("| panel | labels | rates | " + " | ".join(RIVALS) + " | ratio | covered | noticed |")
    print("| --- " * 10 + "|")
    for name, *how in REAL:
        (file,) = folder.rglob(f"{name}.csv.gz")
        for labels in (50, 100, 200)[: 2 if name == "nfl_students" else 3]:
            found = measured(real(file, *how, labels))
            numbers = " | ".join(f"{found.errors[each]:.3f}" for each in ("rates", *RIVALS))
            print(f"| {name} | {labels} | {numbers} | {' | '.join(f'{x:.2f}' for x in found[1:])} |", flush=True)


def figures(judges: int, labels: int, place: str) -> dict[str, float]:
    """Root mean squared errors as `docs/rates.md` has them, over scores and probabilities."""
    cells = [cell(judges, labels, kind, place, REPEATS).errors for kind in KINDS]
    return {name: float(np.sqrt(np.mean([each[name] ** 2 for each in cells]))) for name in cells[0]}


def seconds(groups: int = 1000, size: int = 1000, judges: int = 10) -> float:
    """How long the rates of many groups take, after the fit."""
    rng = np.random.default_rng(0)
    y = rng.random(groups * size) < np.repeat(rng.uniform(0.1, 0.9, groups), size)
    q = expit(1.5 * rng.normal(size=(len(y), judges)) + np.where(y, 0.8, -0.8)[:, None])
    outcomes = np.where(rng.random(len(y)) < 0.001, y, np.nan)
    forecasts, group = Forecasts.from_array(q, outcomes, classes=(0, 1)), np.repeat(np.arange(groups), size).astype(str)
    state, start = learn(forecasts), time.perf_counter()
    rates(state, forecasts, group)
    return time.perf_counter() - start


def main(repeats: int) -> list[Cell]:
    """Print the tables; the cells in which the model holds."""
    print("| judges | labels | kind | place | rates | " + " | ".join(RIVALS) + " | ratio | covered | noticed |")
    print("| --- " * 12 + "|")
    cells = []
    for unequal in (1.0, UNEQUAL):
        for each in product(JUDGES, LABELS if unequal == 1.0 else (200,), KINDS, PLACES):
            found = cell(*each, repeats, unequal=unequal)
            numbers = " | ".join(f"{found.errors[name]:.3f}" for name in ("rates", *RIVALS))
            last = " | ".join(f"{number:.2f}" for number in found[1:])
            print(f"| {' | '.join(map(str, each))} | {numbers} | {last} |", flush=True)
            cells += [found] if unequal == 1.0 else []
    ratios, covered = [each.ratio for each in cells], [each.covered for each in cells]
    print(f"mean ratio {np.mean(ratios):.3f}, largest {np.max(ratios):.3f}, mean coverage {np.mean(covered):.3f}")
    return cells


def rows() -> Iterator[Row]:
    """What was promised."""
    cells = [cell(*each, FEW) for each in product(JUDGES, LABELS, KINDS, PLACES)]
    yield at_most(
        "error of rates / best rival", 0.75, float(np.mean([each.ratio for each in cells])), "Rogan-Gladen, PPI++"
    )
    covered = float(np.mean([each.covered for each in cells]))
    yield Row(
        "90% intervals of rates", ".85 to .95", f"{covered:.3f}", "the share of these events", 0.85 <= covered <= 0.95
    )
    covered, error, *others = chosen_cells(FEW)
    where = "labels chosen by outcome, 0 to 10 that happened"
    yield Row("90% intervals of rates", ">= .85", f"{covered:.3f}", where, covered >= 0.85)
    yield at_most("error of rates / best rival", 1.0, error / min(others), "labels chosen by outcome")
    took = seconds()
    yield Row("rates of 1,000 groups of 1,000 events", "<= 5 s", f"{took:.1f} s", "", took <= 5)


if __name__ == "__main__":
    if "--real" in sys.argv:
        sys.exit(real_table(Path(sys.argv[2])))
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    main(repeats)
    print("covered {:.3f}, errors {:.3f}, {:.3f} and {:.3f}".format(*chosen_cells(max(1, repeats // 3))))
    print(f"1,000 groups of 1,000 events: {seconds():.1f} s")
