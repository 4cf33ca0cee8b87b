"""Work on blocks by as many threads as there are processors, its results in order.

NumPy lets go of the interpreter in its loops, so threads share the work. Threads of linear algebra under them would
fight for the same processors, so they are held to one; that is done once for all blocks.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], threads: int | None = None) -> Iterator[Result]:
    """What `work` makes of each piece, in their order; at most two pieces a thread are on their way.

    >>> list(in_order(lambda x: x * x, range(4), threads=2))
    [0, 1, 4, 9]
    """
    threads = processors() if threads is None else threads
    with one_blas_thread():
        if threads == 1:
            yield from map(work, pieces)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for piece in pieces:
                    waiting.append(pool.submit(work, piece))
                    if len(waiting) == 2 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def one_blas_thread() -> AbstractContextManager[object]:
    """Linear algebra on one thread, for the time of a with statement."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """The libraries of linear algebra that are loaded; to look for them takes longer than most work here."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
