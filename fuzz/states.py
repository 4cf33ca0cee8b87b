"""What must hold whatever comes between: interrupts, kills, threads, damaged files, rows in another order.

    .venv/bin/python fuzz/states.py --seconds 300

Each attack gets its share of the time. The exit status is the number of attacks that broke a rule, 100 at most.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import opinionpool as op
from opinionpool.errors import OpinionPoolError, OpinionPoolWarning
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS

X, Y = op.Panel.exchangeable(3, correlation=0.3, accuracy=0.8).simulate(90, seed=3)
Y = Y.astype(int)
FOLDER = Path(tempfile.mkdtemp())


def batch(start: int, stop: int) -> op.Forecasts:
    """Some of the events, with ids."""
    return op.Forecasts.from_array(X[start:stop], Y[start:stop], events=[f"q{i}" for i in range(start, stop)])


def begun(capacity: int) -> op.Stream:
    """A stream that holds something of everything."""
    stream = op.Stream(capacity=capacity)
    stream.add(batch(0, 20))
    stream.add_rows(X[20:30], Y[20:30])
    for i in range(3):
        stream.forecast(f"open{i}", {"expert_1": 0.3, "expert_2": 0.6})
    return stream


CHANGES: dict[str, Callable[[op.Stream], object]] = {
    "add": lambda stream: stream.add(batch(15, 50)),
    "add_rows": lambda stream: stream.add_rows(X[30:], Y[30:]),
    "forecast": lambda stream: stream.forecast("open1", {"zoe": 0.2, "expert_1": None}),
    "withdraw": lambda stream: stream.withdraw("open2"),
    "forecast by who did": lambda stream: stream.forecast("open1", {"expert_1": 0.2, "expert_2": 0.9}),
    "resolve": lambda stream: stream.resolve("open0", 1, {"adam": 0.4}),
    "resolve what was forecast": lambda stream: stream.resolve("open0", 1),
    "correct": lambda stream: stream.resolve("q3", 1 - int(Y[3])),
    "take back": lambda stream: stream.resolve("q4", None),
}


class Interrupted:
    """Raises `KeyboardInterrupt` before the n-th line of the package that is run, as a signal would."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __enter__(self) -> None:
        sys.settrace(self.call)

    def __exit__(self, kind: type | None, *_: object) -> bool:
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def call(self, frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 - as settrace wants it
        """Follow the lines of the package."""
        return self.line if "opinionpool" in frame.f_code.co_filename else None

    def line(self, _frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401
        """Count a line."""
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.line


def content(stream: op.Stream) -> tuple[object, ...]:
    """What a stream has learned from and answers."""
    learned = stream.fit("average")
    return (
        stream.fingerprint,
        stream.events.tolist(),
        sorted(stream.open),
        learned.pool(np.full(len(stream.experts), 0.4)),
    )


def interrupted(rng: random.Random) -> None:
    """A change that is interrupted is made or not, and what is saved then can be read."""
    capacity, name = rng.choice([40, 1000]), rng.choice(list(CHANGES))
    before, after, stream = begun(capacity), begun(capacity), begun(capacity)
    CHANGES[name](after)
    with Interrupted(rng.randrange(1, 3000)):
        CHANGES[name](stream)
    found = content(stream)
    assert found in (content(before), content(after)), f"{name}: neither before nor after"
    op.save(stream, FOLDER / "stream.json")
    assert content(op.load(FOLDER / "stream.json")) == found, f"{name}: not what was saved"


def interrupted_fit(rng: random.Random) -> None:
    """An estimator whose `fit` or `partial_fit` is interrupted answers as before or as after."""
    kind, partial = rng.choice([op.GaussianPool, op.AveragePool, op.LinearPool]), rng.random() < 0.7
    pools = [kind().partial_fit(X[:30], Y[:30], classes=[0, 1]) for _ in range(3)]
    change = (lambda pool: pool.partial_fit(X[30:], Y[30:])) if partial else (lambda pool: pool.fit(X[30:], Y[30:]))
    change(pools[1])
    answers = [pool.predict_proba(X[:5]) for pool in pools[:2]]
    with Interrupted(rng.randrange(1, 8000)):
        change(pools[2])
        pools[2].predict_proba(X[:5])
    found = pools[2].predict_proba(X[:5])
    assert any(np.array_equal(found, answer) for answer in answers), f"{kind.__name__}: neither before nor after"


def threads(rng: random.Random) -> None:
    """Files that one thread saves while others change a stream can be read, and answers are of one state."""
    stream, failed, path = begun(60), list[BaseException](), FOLDER / "threads.json"

    def work(job: Callable[[int], object]) -> None:
        try:
            for i in range(15):
                job(i)
        except BaseException as error:
            failed.append(error)

    def keep(_: int) -> None:
        op.save(stream, path)
        op.load(path)

    pool = op.GaussianPool().partial_fit(X[:30], Y[:30], classes=[0, 1])
    jobs: list[Callable[[int], object]] = [
        lambda i: stream.forecast(f"new{i}", {"expert_1": 0.2}),
        lambda i: stream.resolve(f"late{i}", i % 2, {"expert_2": 0.7}),
        keep,
        lambda i: pool.partial_fit(X[30 + i : 32 + i], Y[30 + i : 32 + i]),
        lambda _: pool.predict_proba(X[:3]),
    ]
    rng.shuffle(jobs)
    running = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert not failed, repr(failed[0])
    fresh = op.GaussianPool().partial_fit(X[:30], Y[:30], classes=[0, 1])
    for i in range(15):
        fresh.partial_fit(X[30 + i : 32 + i], Y[30 + i : 32 + i])
    assert np.allclose(pool.predict_proba(X[:3]), fresh.predict_proba(X[:3]), atol=1e-12), "an old answer stayed"


def saved() -> list[bytes]:
    """A file of every kind."""
    kinds: list[object] = [fit_pool(name, batch(0, 40)) for name in POOLS]
    kinds += [begun(40), op.GaussianPool().fit(X, Y), op.Panel.exchangeable(3, correlation=0.5)]
    found = []
    for kind in kinds:
        op.save(kind, FOLDER / "kind.json")
        found.append((FOLDER / "kind.json").read_bytes())
    return found


SAVED: list[bytes] = []
PIECES = (b"1e999", b"[", b"{", b'"', b"null", b"-1", b"9" * 30, b"<U200000000", b"\\ud800", b"\xff", b"true", b"")


def damaged(rng: random.Random) -> None:
    """A saved pool with other bytes in it is refused, or is read and answers."""
    if not SAVED:
        SAVED.extend(saved())
    data = bytearray(rng.choice(SAVED))
    if rng.random() < 0.5:
        # As if somebody had known how to.
        start = data.rfind(b'"checksum"')
        data = data[: data.rfind(b",", 0, start)] + b"\n}\n"
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        if rng.random() < 0.4:
            data[at] ^= 1 << rng.randrange(8)
        else:
            data[at : at + rng.randrange(0, 12)] = rng.choice(PIECES)
    path = FOLDER / "damaged.json"
    path.write_bytes(bytes(data))
    try:
        made = op.load(path)
        op.save(made, path)
        if hasattr(made, "predict_proba"):
            answers = made.predict_proba(np.full((2, made.n_features_in_), 0.4))
        else:
            names = getattr(made, "experts", getattr(made, "names", ()))
            several = len(made.classes) > 2
            q = np.full((len(names), len(made.classes)) if several else len(names), 1 / len(made.classes))
            answers = (made.fit("average") if isinstance(made, op.Stream) else made).pool(q)
        assert np.isfinite(answers).all(), "an answer that is no number"
    except OpinionPoolError:
        return


def killed(rng: random.Random) -> None:
    """A command that is killed leaves the old files or the new ones, and nothing else."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    rows = "".join(f"q{i},0.{rng.randrange(1, 9)},0.{rng.randrange(1, 9)},{rng.randrange(2)}\n" for i in range(3000))
    (folder / "f.csv").write_text("event,a,b,outcome\n" + rows)
    (folder / "out.csv").write_text("what was there\n")
    op.save(begun(40), folder / "pool.json")
    old = (folder / "pool.json").read_bytes()
    command = [sys.executable, "-m", "opinionpool", "pool", "f.csv", "-o", "out.csv", "--save", "pool.json"]
    number = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
    time.sleep(rng.uniform(0.05, 2.0))
    process.send_signal(number)
    _, told = process.communicate()
    # Python's own beginning is out of reach.
    assert b"Traceback" not in told or b"opinionpool/" not in told, told[-300:]
    assert b"fault of opinionpool" not in told, told[-300:]
    assert {path.name for path in folder.iterdir()} == {"f.csv", "out.csv", "pool.json"}, sorted(folder.iterdir())
    written = (folder / "out.csv").read_text()
    assert written == "what was there\n" or written.count("\n") == 3001, "half an output"
    if (folder / "pool.json").read_bytes() != old:
        op.load(folder / "pool.json")


def shuffled(rng: random.Random) -> None:
    """The order of rows plays no part in any pool's answers."""
    t = rng.choice([12, 40, 90])
    order = np.array(rng.sample(range(t), t))
    name = rng.choice(list(POOLS))
    q = X[:t].copy()
    q[np.array([rng.random() < 0.1 for _ in range(q.size)]).reshape(q.shape)] = np.nan
    one, two = (fit_pool(name, op.Forecasts.from_array(q[rows], Y[:t][rows])) for rows in (np.arange(t), order))
    answers = [each.pool(X[:9]) for each in (one, two)]
    assert np.allclose(*answers, atol=1e-8), f"{name}: {np.abs(answers[0] - answers[1]).max():.2g}"


ATTACKS = (interrupted, interrupted_fit, threads, damaged, killed, shuffled)


def main() -> int:
    """Attack for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", OpinionPoolWarning)
    broken = 0
    for attack in ATTACKS:
        rng, count, failed = random.Random(options.seed), 0, 0
        until = time.monotonic() + options.seconds / len(ATTACKS)
        while time.monotonic() < until:
            count += 1
            try:
                attack(rng)
            except Exception as error:
                failed += 1
                if failed <= 3:
                    traceback.print_exception(error, limit=-3)
        print(f"{attack.__name__}: {count:,} times, {failed:,} broken", flush=True)
        broken += failed
    return min(broken, 100)


if __name__ == "__main__":
    sys.exit(main())
