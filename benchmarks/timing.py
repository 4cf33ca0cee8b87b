"""Two things timed in turn, so that whatever else the machine does meets both alike."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

Work: TypeAlias = Callable[[], object] | Sequence[str]


@dataclass(frozen=True)
class Comparison:
    """Median seconds of two pieces of work."""

    first: float
    second: float

    @property
    def ratio(self) -> float:
        """How many times as long the first takes."""
        return self.first / self.second


def interleave(a: Work, b: Work, rounds: int) -> Comparison:
    """Run `a` and `b` alternately, each `rounds` times after one unmeasured run, changing who goes first.

    Each is a function without arguments, or a command line as a list, which must succeed and is timed from start to
    end of its process.
    """
    once(a)
    once(b)
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds[which].append(once((a, b)[which]))
    return Comparison(median(seconds[0]), median(seconds[1]))


def once(work: Work) -> float:
    """Seconds that a piece of work takes."""
    start = time.perf_counter()
    if callable(work):
        work()
    else:
        subprocess.run(work, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - start
