"""Two things timed in turn, so that whatever else the machine does meets both alike."""

from __future__ import annotations

import resource
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


def processor_seconds() -> float:
    """Processor time of this process and of those that it waited for, whatever else the machine does."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def interleave(a: Work, b: Work, rounds: int, clock: Callable[[], float] = time.perf_counter) -> Comparison:
    """Run `a` and `b` alternately, each `rounds` times after one unmeasured run, changing who goes first.

    Each is a function without arguments, or a command line as a list, which must succeed and is timed from start to
    end of its process.
    """
    once(a, clock)
    once(b, clock)
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds[which].append(once((a, b)[which], clock))
    return Comparison(median(seconds[0]), median(seconds[1]))


def once(work: Work, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a piece of work takes, by some clock."""
    start = clock()
    if callable(work):
        work()
    else:
        subprocess.run(work, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return clock() - start
