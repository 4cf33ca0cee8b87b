"""A change of a stream is made entirely or not at all, wherever it is interrupted and whoever else looks on."""

import pickle
import random
import sys
import threading

import numpy as np
import pytest

from opinionpool.errors import ProbabilityError
from opinionpool.estimators.files import load, save
from opinionpool.forecasts import Forecasts
from opinionpool.model.panel import Panel
from opinionpool.streams.stream import Stream

X, Y = Panel.exchangeable(3, correlation=0.3, accuracy=0.8).simulate(60, seed=3)


def batch(start, stop):
    names = [f"q{i}" for i in range(start, stop)]
    return Forecasts.from_array(X[start:stop], Y[start:stop].astype(int), events=names)


def begun():
    stream = Stream(capacity=40)
    stream.add(batch(0, 20))
    stream.add_rows(X[20:30], Y[20:30].astype(int))
    for i in range(3):
        stream.forecast(f"open{i}", {"expert_1": 0.3, "expert_2": 0.6})
    return stream


CHANGES = {
    "add": lambda stream: stream.add(batch(15, 50)),
    "add_rows": lambda stream: stream.add_rows(X[30:], Y[30:].astype(int)),
    "forecast": lambda stream: stream.forecast("open1", {"zoe": 0.2, "expert_1": None}),
    "withdraw": lambda stream: stream.withdraw("open2"),
    "forecast by who did": lambda stream: stream.forecast("open1", {"expert_1": 0.2, "expert_2": 0.9}),
    "resolve": lambda stream: stream.resolve("open0", 1, {"adam": 0.4}),
    "resolve what was forecast": lambda stream: stream.resolve("open0", 1),
    "correct": lambda stream: stream.resolve("q3", 1 - int(Y[3])),
    "take back": lambda stream: stream.resolve("q4", None),
}


def content(stream):
    """Whatever there is to know about a stream."""
    state = stream.copy()._settled()
    events = [*(event for _, block in state.sample.parts for event in block), *state.open.values()]
    records = sorted(
        (str(e.id), e.outcome, sorted(zip(e.experts.tolist(), e.probabilities.tolist(), strict=True))) for e in events
    )
    totals = state.totals
    return (
        records, totals.experts, totals.events.tolist(), totals.number.tolist(), totals.counts.tolist(),
        state.ledger.array().tolist(), state.rows, stream.fingerprint, sorted(state.open), state.sample.beyond.tolist(),
        totals.shared.totals.tolist(),
    )  # fmt: skip


class Interrupted:
    """Raises `KeyboardInterrupt` before the n-th line of the package that is run, as a signal would."""

    def __init__(self, n):
        self.left = n

    def __enter__(self):
        sys.settrace(self.call)
        return self

    def __exit__(self, kind, value, traceback):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def call(self, frame, event, argument):
        file = frame.f_code.co_filename
        return self.line if "opinionpool" in file or "contextlib" in file else None

    def line(self, frame, event, argument):
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.line


def lines_of(change, stream):
    counter = Interrupted(10**9)
    with counter:
        change(stream)
    return 10**9 - counter.left


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_interrupted_is_made_or_not(name, tmp_path):
    change, stream = CHANGES[name], begun()
    before = content(stream)
    whole = stream.copy()
    lines = lines_of(change, whole)
    after = content(whole)
    assert before != after
    for n in sorted({1, lines, *random.Random(0).sample(range(1, lines + 1), min(lines, 60))}):
        hit = stream.copy()
        with Interrupted(n):
            change(hit)
        found = content(hit)
        assert found in (before, after), n
        if found == before:
            change(hit)
            assert content(hit) == after
    save(hit, tmp_path / "stream.json")
    assert content(load(tmp_path / "stream.json"))[1:8] == after[1:8]


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("totals.Totals.add_rows", "add_rows"),
        ("totals.Totals.add", "correct"),
        ("sample.EventSample.add_block", "add"),
        ("ledger.Ledger.added", "add"),
        ("sample.EventSample.remove", "take back"),
    ],
)
def test_whatever_fails_changes_nothing(monkeypatch, where, change):
    stream = begun()
    before, (module, owner, name) = content(stream), where.split(".")

    def fails(*given, **options):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(getattr(sys.modules[f"opinionpool.streams.{module}"], owner), name, fails)
        # Changes do not wait to be added up.
        for size in ("WAITING", "BLOCK"):
            patched.setattr(f"opinionpool.streams.state.{size}", 1)
        with pytest.raises(MemoryError):
            CHANGES[change](stream)
    assert content(stream) == before


def test_events_that_cannot_be_added_up_yet_wait(monkeypatch):
    stream, other = begun(), begun()
    for each in (stream, other):
        CHANGES["resolve"](each)

    def fails(*given, **options):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("opinionpool.streams.totals.Totals.add_rows", fails)
        with pytest.raises(MemoryError):
            _ = stream.events
    assert stream.count == other.count
    assert content(stream) == content(other)


def test_priors_are_of_every_event_or_of_none():
    """It is said where it happens, not when it is too late to learn."""
    f = batch(0, 4)
    own = Forecasts.from_array(f.X, list(f.outcomes), events=["a", "b", "c", "d"], prior=[0.3, 0.4, 0.5, 0.6])
    stream = Stream()
    stream.add(f)
    before = content(stream)
    for change in (
        lambda: stream.add(own),
        lambda: stream.forecast("new", {"expert_1": 0.4}, prior=0.2),
        lambda: stream.resolve("new", 1, {"expert_1": 0.4}, prior=0.2),
        lambda: stream.add_rows(X[:2], [0, 1], prior=[0.2, 0.3]),
    ):
        with pytest.raises(ProbabilityError, match="events before it in this stream have none"):
            change()
        assert content(stream) == before
    other = Stream()
    other.add(own)
    with pytest.raises(ProbabilityError, match="have none"):
        stream.merge(other)
    stream = Stream(prior=0.5)
    stream.add(f)
    stream.add(own)
    assert stream.learn().experts == f.experts


def test_threads_see_no_half_changes(tmp_path):
    """One thread adds, others save, copy and learn: every file can be loaded, every answer is of a whole batch."""
    stream, wrong = begun(), []
    done = threading.Event()

    def write():
        try:
            for i in range(40):
                stream.forecast(f"new{i}", {"expert_1": 0.4, f"guest{i}": 0.7})
                stream.resolve(f"new{i}", i % 2)
                stream.add_rows(X[:3], Y[:3].astype(int))
        except Exception as error:
            wrong.append(error)
        done.set()

    def look(number):
        path = tmp_path / f"{number}.json"
        while not done.is_set():
            try:
                save(stream, path)
                found = load(path)
                assert found.count == int(found._state.totals.number.sum())
                assert (found.count - 30) % 4 in {0, 1}
                assert len(stream.copy().forecasts().experts) >= 3
                stream.fit("average")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=write), *(threading.Thread(target=look, args=(i,)) for i in range(3))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not wrong


def test_streams_are_pickled_with_all_they_hold():
    stream = begun()
    assert content(pickle.loads(pickle.dumps(stream))) == content(stream)


class TestMergedRows:
    def test_a_sample_of_rows_is_that_of_the_whole(self):
        rng = np.random.default_rng(0)
        q, y = rng.uniform(0.1, 0.9, (90, 2)), rng.integers(0, 2, 90)
        whole, parts = Stream(capacity=20), [Stream(capacity=20) for _ in range(3)]
        whole.add_rows(q, y)
        for part, rows in zip(parts, np.split(rng.permutation(90), [10, 40]), strict=True):
            part.add_rows(q[rows], y[rows])
        for one, two, three in ((0, 1, 2), (2, 0, 1)):
            merged = parts[one].merge(parts[two]).merge(parts[three])
            assert merged.sample()[0].X.tolist() == whole.sample()[0].X.tolist()
