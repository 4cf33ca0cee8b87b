"""The reference loops in C, compiled for this machine; the fastest of several ways to compile them counts."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
WAYS = tuple((tile, triangle, width) for tile in (1, 16) for triangle in (0, 1) for width in (256, 512))
TRIED = 100_000


@dataclass(frozen=True)
class Reference:
    """Both loops, for forecasts by N experts.

    Attributes
    ----------
    moments : callable
        From forecasts (T, N) and outcomes (T,) to counts (2,), sums (2, N) and cross-products (N, N).
    pool : callable
        From forecasts, weights (N,) and a constant to probabilities (T,).
    """

    moments: Callable[[Array, npt.NDArray[np.uint8]], tuple[Array, Array, Array]]
    pool: Callable[[Array, Array, float], Array]


def reference(experts: int, floor: float = 1e-4) -> Reference | None:
    """Compile the loops; None if there is no compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    ways = [_compiled(compiler, experts, floor, *way) for way in WAYS]
    rng = np.random.default_rng(0)
    q, y = rng.random((TRIED, experts)), rng.integers(0, 2, TRIED).astype(np.uint8)
    weight = np.full(experts, 1.0 / experts)
    moments = min(ways, key=lambda way: _seconds(lambda: way.moments(q, y))).moments
    pool = min(ways, key=lambda way: _seconds(lambda: way.pool(q, weight, 0.0))).pool
    return Reference(moments, pool)


def _seconds(work: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def _compiled(compiler: str, n: int, floor: float, tile: int, triangle: int, width: int) -> Reference:
    source = Path(__file__).with_name("reference.c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "reference.so"
        macros = (f"-DN={n}", f"-DTILE={tile}", f"-DTRIANGLE={triangle}", f"-mprefer-vector-width={width}")
        subprocess.run(
            [compiler, *FLAGS, *macros, str(source), "-o", str(target), "-lmvec", "-lm"],
            check=True,
            capture_output=True,
        )
        library = ctypes.CDLL(str(target))
    low, high = ctypes.c_double(floor), ctypes.c_double(1.0 - floor)

    def moments(q: Array, y: npt.NDArray[np.uint8]) -> tuple[Array, Array, Array]:
        count, total, cross, origin = np.zeros(2), np.zeros((2, n)), np.zeros((n, n)), np.zeros(n)
        arrays = map(_pointer, (origin, count, total, cross))
        library.moments(_pointer(q), _pointer(y), ctypes.c_long(len(q)), low, high, *arrays)
        return count, total, cross

    def pool(q: Array, weight: Array, constant: float) -> Array:
        answer = np.empty(len(q))
        given = _pointer(weight), ctypes.c_double(constant), _pointer(answer)
        library.pool(_pointer(q), ctypes.c_long(len(q)), low, high, *given)
        return answer

    return Reference(moments, pool)


def _pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
