"""Quadratic problems whose answers are at least 0: the least of one, and the shortest of equal ones."""

from __future__ import annotations

import numpy as np

from opinionpool.arrays import Array, Mask

# How far below 0 a component, or relative to the linear term a derivative, may be and still count as 0.
NEGLIGIBLE = 1e-13
# Exchanging all wrong components at once is tried this often without progress, then one at a time.
PATIENCE = 3
# How much length weighs against likeness in one step of `shortest`; the steps make up for it.
PENALTY = 1e-4
STEPS = 60


def least_quadratic(matrix: Array, linear: Array, free: Mask) -> Array | None:
    """The x ≥ 0 that minimises ½ x'Ax − b'x, by block principal pivoting (Júdice & Pires 1994).

    A component is either free, with derivative 0, or 0, with derivative ≥ 0. Those that break this change sides
    together. After some rounds without progress it goes on from the best point so far as Lawson & Hanson (1974, chapter
    23) do: components become free one by one, and the value falls at each step, so that it ends after finitely many.

    Parameters
    ----------
    matrix : ndarray, shape (N, N)
        A, symmetric and positive definite.
    linear : ndarray, shape (N,)
        b.
    free : ndarray of bool, shape (N,)
        A guess at which components are above 0.

    Returns
    -------
    ndarray, shape (N,), or None
        With exact zeros. None if rounding keeps the exchange from ending.

    Examples
    --------
    >>> import numpy as np
    >>> least_quadratic(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([2.0, 0.5]), np.array([True, True]))
    array([1., 0.])
    """
    slack = 10 * NEGLIGIBLE * (1.0 + float(np.abs(linear).max()))
    fewest, best, patience = len(linear) + 1, np.zeros(len(linear)), PATIENCE
    while patience:
        x = _stationary(matrix, linear, free)
        wrong = np.where(free, x < -NEGLIGIBLE, matrix @ x - linear < -slack)
        number = int(wrong.sum())
        if not number:
            return np.asarray(np.maximum(x, 0.0))
        if number < fewest:
            fewest, best, patience = number, np.maximum(x, 0.0), PATIENCE
        else:
            patience -= 1
        free = free ^ wrong
    return _one_by_one(matrix, linear, best, slack)


def _stationary(matrix: Array, linear: Array, free: Mask) -> Array:
    """The x with derivative 0 in its free components, the others 0."""
    if free.all():
        return np.asarray(np.linalg.solve(matrix, linear))
    (inside,) = free.nonzero()
    x = np.zeros(len(linear))
    x[inside] = np.linalg.solve(matrix[inside[:, None], inside], linear[inside])
    return x


def _one_by_one(matrix: Array, linear: Array, x: Array, slack: float) -> Array | None:
    """The same from a point x ≥ 0, by steps that never leave it."""
    free = x > 0
    for _ in range(10 * len(x) + 20):
        target = _stationary(matrix, linear, free)
        (low,) = (free & (target < -NEGLIGIBLE)).nonzero()
        if len(low):
            # So far that the first component is 0, which then is no longer free.
            reached = x[low] / (x[low] - target[low])
            x = np.maximum(x + reached.min() * (target - x), 0.0)
            out = low[reached <= reached.min()]
            x[out], free[out] = 0.0, False
            continue
        x = np.maximum(target, 0.0)
        derivative = np.where(free, 0.0, matrix @ x - linear)
        steepest = int(derivative.argmin())
        if derivative[steepest] >= -slack:
            return x
        free[steepest] = True
    return None


def shortest(x: Array, rows: Array) -> Array | None:
    """The shortest y ≥ 0 that the rows of S cannot tell from x: Sy = Sx.

    It is unique, so that components which can stand in for one another share. Found by the method of multipliers,
    and then, its zeros known, by least squares.

    Parameters
    ----------
    x : ndarray, shape (N,)
        At least 0.
    rows : ndarray, shape (M, N)
        S, with orthonormal rows.

    Returns
    -------
    ndarray, shape (N,), or None
        None if it is not found to nine digits.

    Examples
    --------
    >>> import numpy as np
    >>> shortest(np.array([1.0, 0.0, 3.0]), np.array([[0.6, 0.8, 0.0]])).round(12)
    array([0.36, 0.48, 0.  ])
    """
    target = rows @ x
    y = rows.T @ target
    if y.min() >= 0:
        return np.asarray(y)
    matrix = rows.T @ rows
    matrix.flat[:: len(x) + 1] += PENALTY
    aim, free, miss = target, y > 0, np.inf
    for _ in range(STEPS):
        found = least_quadratic(matrix, rows.T @ aim, free)
        if found is None:
            return None
        y, free = found, found > 0
        residual = target - rows @ y
        before, miss = miss, float(np.abs(residual).max())
        if miss <= NEGLIGIBLE or (miss <= 1e-9 and miss > 0.5 * before):
            break
        aim = aim + residual
    exact = np.zeros(len(x))
    exact[free] = np.linalg.lstsq(rows[:, free], target, rcond=1e-9)[0]
    if exact.min() >= -1e-12 and np.abs(rows @ exact - target).max() <= 1e-9:
        return np.maximum(exact, 0.0)
    return y if miss <= 1e-9 else None
