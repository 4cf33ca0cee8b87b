"""What users wait for, each against work that must be done anyway, in processor time on one thread.

A missing forecast against none, a stream against a batch, classes against two, the default pool against logistic
regression and against the data alone, a comparison against the fits that it stands for, a report against the fits that
it needs, wide panels, and a large file against the engine that reads it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
from row import Row, at_most
from sklearn.linear_model import LogisticRegression
from speed import panel
from threadpoolctl import threadpool_limits
from timing import interleave, processor_seconds

import opinionpool as op
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.scoring.compare import compare_pools
from opinionpool.streams.stream import Stream

Array = npt.NDArray[np.float64]

ROUNDS = 5
OPINIONPOOL = (sys.executable, "-m", "opinionpool")
# The panel of true or false statements, if it lies beside the project.
GENERAL_KNOWLEDGE = Path(__file__).resolve().parents[2] / "shared" / "data" / "general_knowledge.csv.gz"


def rows() -> Iterator[Row]:
    """Measure all of it."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", op.OpinionPoolWarning)
        for part in (missing, streams, one_event, classes, small, large, comparisons, report, wide, files):
            yield from part()


def ratio(what: str, limit: float, work: Callable[[], object], peer: Callable[[], object], told: str) -> Row:
    """Return the row of work that may take so many times as long as its peer."""
    seconds = interleave(work, peer, ROUNDS, clock=processor_seconds)
    return at_most(
        what, limit, seconds.ratio, f"{told} {milliseconds(seconds.second)}; here {milliseconds(seconds.first)}"
    )


def milliseconds(seconds: float) -> str:
    """Return a time with three digits."""
    return f"{1e3 * seconds:.3g} ms"


def missing() -> Iterator[Row]:
    """One forecast missing, and some in a few patterns, learned from the data alone."""
    for experts in (50, 100):
        q, y = panel(50_000, experts)
        one, some = q.copy(), q.copy()
        one[17, 3] = np.nan
        rng = np.random.default_rng(1)
        for start in range(0, 50_000, 12_500):
            some[start : start + 12_500, rng.choice(experts, experts // 20 + 1, replace=False)] = np.nan
        for what, x in (("one forecast missing", one), ("5% missing in 4 patterns", some)):
            told = f"fit from the data alone, 50,000 x {experts}, {what}"
            yield ratio(told, 4, partial(alone, x, y), partial(alone, q, y), "none missing:")


def alone(q: Array, y: npt.NDArray[np.int64]) -> op.GaussianPool:
    """Fit from the data alone (5.4)."""
    return op.GaussianPool(beliefs=None).fit(q, y)


def streams() -> Iterator[Row]:
    """Blocks of rows, against a fit of the same rows at once."""
    q, y = panel(100_000, 20)
    blocks = [slice(start, start + 1_000) for start in range(0, len(q), 1_000)]

    def rows_added() -> None:
        stream = Stream()
        for block in blocks:
            stream.add_rows(q[block], y[block])
        stream.learn(beliefs=None)

    def fitted_in_parts() -> None:
        pool = op.GaussianPool(beliefs=None)
        for block in blocks:
            pool.partial_fit(q[block], y[block], classes=[0, 1])
        _ = pool.panel_

    def at_once() -> None:
        op.GaussianPool(beliefs=None).fit(q, y)

    yield ratio("Stream.add_rows, 100 blocks of 1,000 x 20", 3, rows_added, at_once, "GaussianPool.fit of all:")
    yield ratio("partial_fit, 100 blocks of 1,000 x 20", 3, fitted_in_parts, at_once, "GaussianPool.fit of all:")


def one_event() -> Iterator[Row]:
    """An event that is forecast, pooled and resolved, with 20 experts."""
    q, y = panel(3_000, 20)
    names = [f"e{i}" for i in range(20)]
    stream = Stream()
    stream.add_rows(q[:1_000], y[:1_000], experts=names)
    pooled = stream.learn().panel
    events = [dict(zip(names, row, strict=True)) for row in q.tolist()]
    number = 1_000

    def several() -> None:
        nonlocal number
        for event in range(number, number + 200):
            stream.forecast(f"q{event}", events[event % 3_000])
            pooled.pool(q[event % 3_000])
            stream.resolve(f"q{event}", int(y[event % 3_000]))
        number += 200

    seconds = interleave(several, lambda: None, 7, clock=processor_seconds).first / 200 * 1e6
    yield Row("one event of 20 experts: forecast, pool, resolve", "<= 60 us", f"{seconds:.1f} us", "", seconds <= 60)


def classes() -> Iterator[Row]:
    """Several classes from the data alone, against two; in the default pool, against logistic regression."""
    binary, y = panel(100_000, 20)
    rng = np.random.default_rng(5)
    several = rng.dirichlet(np.ones(5), (100_000, 20))
    outcome = rng.integers(0, 5, 100_000)
    several[np.arange(100_000), :, outcome] += 0.3
    several /= several.sum(axis=2, keepdims=True)
    seconds = interleave(lambda: alone(several, outcome), lambda: alone(binary, y), ROUNDS, clock=processor_seconds)
    own, its = seconds.first / several.size, seconds.second / binary.size
    told = f"two classes: {1e9 * its:.3g} ns a number; here {1e9 * own:.3g} ns"
    yield at_most("fit from the data alone, 100,000 x 20 x 5 classes, per number", 2, own / its, told)
    for events, experts, k in ((500, 20, 5), (20_000, 5, 3)):
        y = rng.integers(0, k, events)
        z = rng.normal(size=(events, 1, k)) + rng.normal(size=(events, experts, k)) + 0.9 * np.eye(k)[y][:, None]
        q = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True)
        yield ratio(
            f"default pool, {events:,} x {experts} x {k} classes",
            8,
            partial(op.GaussianPool().fit, q, y),
            partial(LogisticRegression().fit, z.reshape(events, -1), y),
            "LogisticRegression:",
        )


def small() -> Iterator[Row]:
    """The default pool of few events, against logistic regression on the same log-odds."""
    for events, experts, limit in ((20, 3, 8), (500, 20, 8), (1_000, 20, 6)):
        q, y = panel(events, experts)
        z = np.log(q / (1.0 - q))
        yield ratio(
            f"default pool, {events:,} x {experts}",
            limit,
            lambda q=q, y=y: op.GaussianPool().fit(q, y),
            lambda z=z, y=y: LogisticRegression().fit(z, y),
            "LogisticRegression:",
        )


def large() -> Iterator[Row]:
    """The default pool of many events, against the data alone."""
    q, y = panel(1_000_000, 20)
    yield ratio(
        "default pool, 1,000,000 x 20",
        6,
        lambda: op.GaussianPool().fit(q, y),
        lambda: alone(q, y),
        "from the data alone:",
    )


def comparisons() -> Iterator[Row]:
    """Eleven pools, rounds of 5 folds, against all those fits one by one."""
    panels = [("500 x 20", Forecasts.from_array(*panel(500, 20)), 20)]
    if GENERAL_KNOWLEDGE.exists():
        # Five rounds are as long as a fourth of twenty, but for the intervals of 459 experts, which are found once.
        panels.append(("general_knowledge", op.read_forecasts(GENERAL_KNOWLEDGE), 5))
    for name, forecasts, rounds in panels:
        work = interleave(
            partial(compare_pools, forecasts, repeats=rounds),
            partial(singly, forecasts, rounds),
            1,
            clock=processor_seconds,
        )
        told = f"each fit by itself: {work.second:.3g} s; here {work.first:.3g} s"
        yield at_most(f"compare, eleven pools, {name}, {rounds} rounds", 1.0, work.ratio, told)


def singly(forecasts: Forecasts, rounds: int) -> None:
    """Fit and ask each pool on each part, as a user would."""
    known = forecasts.select_events(forecasts.resolved)
    parts = [np.arange(len(known.events))]
    for seed in range(rounds):
        order = np.random.default_rng(seed).permutation(len(known.events))
        parts += [np.setdiff1d(order, order[fold::5]) for fold in range(5)]
    for part in parts:
        train = known.select_events(part)
        test = known if len(part) == len(known.events) else known.select_events(np.setdiff1d(parts[0], part))
        for name in (name for name, pool in POOLS.items() if not pool.timed):
            fit_pool(name, train).pool_forecasts(test, test.prior)


def report() -> Iterator[Row]:
    """The report on 459 people's answers, against the fits that it needs, with the reading of its file."""
    if not GENERAL_KNOWLEDGE.exists():
        yield Row("report, general_knowledge", "<= 2 x", "skipped", "shared/data is not there")
        return
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "page.html")
        whole = (*OPINIONPOOL, "report", str(GENERAL_KNOWLEDGE), "-o", target)
        needed = (
            "import opinionpool as op; from opinionpool.scoring.compare import compare_pools; "
            f"f = op.read_forecasts({str(GENERAL_KNOWLEDGE)!r}); op.GaussianPool().fit(f); compare_pools(f)"
        )
        seconds = interleave(whole, command(needed), 1, clock=processor_seconds)
        told = f"fit and comparison: {seconds.second:.3g} s; here {seconds.first:.3g} s"
        yield at_most("report, general_knowledge", 2, seconds.ratio, told)


def command(code: str) -> Sequence[str]:
    """Return what runs a piece of Python in a process of its own."""
    return (sys.executable, "-W", "ignore", "-c", code)


WIDE = """
import os, time, warnings
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import opinionpool as op
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
events, experts = {events}, {experts}
def panel(events, experts):
    y = rng.integers(0, 2, events)
    x = rng.normal(size=(events, experts)) * 1.2 + rng.normal(size=(events, 1)) + 0.6 * (2 * y - 1)[:, None]
    return 1 / (1 + np.exp(-x)), y
def most_memory():
    # Of this program alone: what resource.getrusage says counts the one that started it, too.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
# What is imported and made once.
op.GaussianPool().fit(*panel(300, 400))
before = most_memory()
q, y = panel(events, experts)
start = time.process_time()
pool = op.GaussianPool().fit(q, y)
seconds = time.process_time() - start
peak = most_memory()
used = next((n.text for n in pool.notes_ if n.code == "sample"), "all events")
print(seconds, (peak - before) / 1024, peak / 1024, used, sep="|")
"""


def wide() -> Iterator[Row]:
    """Panels with more experts than events: time, memory beside what is imported, and whether all events were used."""
    for events, experts, limit in ((895, 2_048, 3.0), (300, 1_000, 0.9), (2_000, 2_000, 1.8)):
        code = WIDE.format(events=events, experts=experts)
        done = subprocess.run(command(code), check=True, capture_output=True, text=True)
        took, memory, whole, used = done.stdout.strip().split("|")
        what, seconds = f"default pool, {events:,} x {experts:,}", float(took)
        yield Row(what, f"<= {limit:g} s", f"{seconds:.2f} s", used, seconds <= limit)
        beside = f"beside what is imported; forecasts included; {float(whole):.0f} MB in all"
        yield Row(f"{what}: memory", "<= 300 MB", f"{float(memory):.0f} MB", beside, float(memory) <= 300)


# The same answer that needs no learning, by the engine alone: the geometric mean of the odds of each event.
ENGINE = """
import duckdb
with duckdb.connect() as engine:
    engine.execute("SET threads TO 1")
    engine.execute("COPY (SELECT event, 1 / (1 + exp(-avg(ln(greatest(least(probability, 0.9999), 0.0001) / "
    "(1 - greatest(least(probability, 0.9999), 0.0001)))))) AS probability FROM '{file}' GROUP BY event) TO '{target}'")
"""


def files() -> Iterator[Row]:
    """Ten million forecasts in a file, pooled and checked, against the engine that reads them and takes the mean."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            file, target = str(Path(folder) / f"forecasts.{kind}"), str(Path(folder) / "pooled.csv")
            generate(file)
            peer = command(ENGINE.format(file=file, target=target))
            for what, options in (("pool", ("--pool", "geometric")), ("check", ())):
                own = (*OPINIONPOOL, what, file, *options, "--output", target)
                seconds = interleave(own, peer, 3, clock=processor_seconds)
                told = f"DuckDB alone: {seconds.second:.3g} s; here {seconds.first:.3g} s"
                yield at_most(f"{what} of 10,000,000 forecasts, {kind}", 5, seconds.ratio, told)


def generate(file: str) -> None:
    """A long table of 500,000 events and 20 experts."""
    with duckdb.connect() as engine:
        engine.execute("SELECT setseed(0.3)")
        engine.execute(
            "COPY (SELECT 'q' || i AS event, 'e' || j AS expert, round(random(), 3) AS probability, "
            "CASE WHEN i % 10 = 0 THEN NULL ELSE i % 2 END AS outcome "
            f"FROM range(500000) AS a(i), range(20) AS b(j) ORDER BY i, j) TO '{file}'"
        )
