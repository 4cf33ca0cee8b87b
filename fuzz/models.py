"""Bytes that may be a saved pool or a file of beliefs: they are one, or there is an error of the project's own.

Run as fuzz/readers.py is. The first byte says what the others are: even for a saved pool, odd for beliefs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["opinionpool"]):
    from opinionpool.errors import OpinionPoolError, OpinionPoolWarning
    from opinionpool.estimators.files import load, save
    from opinionpool.forecasts import Forecasts
    from opinionpool.learning.beliefs import read_beliefs
    from opinionpool.learning.learn import learn
    from opinionpool.model.panel import Panel
    from opinionpool.pools.fit import fit_pool
    from opinionpool.pools.registry import POOLS
    from opinionpool.streams.stream import Stream

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
FILE = FOLDER / "input"
FORECASTS = Forecasts.from_array(
    [[0.8, 0.7], [0.2, 0.4], [0.6, float("nan")], [0.3, 0.1], [0.7, 0.6]],
    [1, 0, 1, 0, None],
    experts=["alice", "bob"],
)
BELIEFS = """correlation = { value = 0.6, worth = 20 }
calibration = 0.9
[experts.alice]
relative_accuracy = 2.0
bias = 0.2
[experts.bob]
auc = { value = 0.8, worth = 5 }
"""


def inputs() -> dict[str, bytes]:
    """Files to begin with."""
    found = {"beliefs": b"\1" + BELIEFS.encode(), "few": b"\1accuracy = 0.7\n[experts]\nbob.calibration = 0\n"}
    stream = Stream()
    stream.add(FORECASTS)
    pools = {name: fit_pool(name, FORECASTS) for name in POOLS} | {
        "panel": Panel.exchangeable(2, correlation=0.5),
        "matrix": Panel([1.0, 0.5], [[1.0, 0.2], [0.2, 1.0]], classes=["a", "b", "c"]),
        "stream": stream,
    }
    for name, pool in pools.items():
        save(pool, FILE)
        found[name] = b"\0" + FILE.read_bytes()
    return found


def attempt(data: bytes) -> None:
    """Load and use what can be; anything else than an `OpinionPoolError` is a fault."""
    FILE.write_bytes(data[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OpinionPoolWarning)
        try:
            if data[:1] and data[0] % 2:
                learned = learn(FORECASTS, beliefs=read_beliefs(FILE))
                answers = learned.pool(FORECASTS.X)
            else:
                made = load(FILE)
                save(made, FILE)
                experts = getattr(made, "experts", getattr(made, "names", ()))
                classes = len(getattr(made, "classes", (0, 1)))
                if not hasattr(made, "pool") or len(experts) > 100 or classes > 100:
                    return
                q = np.full((2, len(experts)) if classes == 2 else (2, len(experts), classes), 1.0 / classes)
                answers = made.pool(q)
            assert np.isfinite(answers).all(), answers
            assert ((answers >= 0) & (answers <= 1)).all(), answers
        except OpinionPoolError as error:
            str(error).encode()


def main() -> None:
    """Fuzz with the folder given first as the corpus."""
    if len(sys.argv) > 1 and not os.path.isfile(sys.argv[1]) and not sys.argv[1].startswith("-"):
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in inputs().items():
            (folder / name).write_bytes(data)
    atheris.Setup(sys.argv, attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
