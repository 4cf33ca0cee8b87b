"""Files of any pool or estimator: `save` and `load`."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from opinionpool.saving.codec import Kinds
from opinionpool.saving.files import POOLS, read, write


def save(pool: object, path: str | os.PathLike[str]) -> None:
    """Write a pool to a file, from which `load` restores it with bit-identical answers.

    Parameters
    ----------
    pool
        A fitted estimator, a `Panel` or `FullPanel`, a `Stream`, a trained pool, or the result of a fit
        (`FittedPanel`, `FittedPool`). Of these, streams, trained pools and estimators that learned by `partial_fit`
        keep their events and go on learning when they are loaded; the others answer only.
    path : path-like
        File to write. It appears completely or not at all; an earlier file stays until then.

    Raises
    ------
    SavedPoolError
        If `pool` is no pool, its file would exceed 256 MB, or `load` would refuse it. An earlier file then stays.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from opinionpool.model.panel import Panel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "panel.json"
    >>> save(Panel.exchangeable(3, correlation=0.5), path)
    >>> load(path).weights
    array([0.5, 0.5, 0.5])
    """
    write(pool, path, _kinds(estimators=type(pool).__module__ == "opinionpool.estimators.pools"))


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the pool that `save` wrote to a file.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    object
        Of the type that was saved: an estimator, a `Stream`, or a `TrainedPool` where the command line saved it, which
        answers by ``predict_proba(forecasts)`` too.

    Raises
    ------
    SavedPoolError
        If the file is no saved pool, is damaged, or is of a format that this release does not know.
    OSError
        If the file cannot be read.
    """
    return read(path, lambda name: _kinds(estimators=name.startswith("estimator")))


@cache
def _kinds(*, estimators: bool) -> Kinds:
    if not estimators:
        return POOLS
    # They bring scikit-learn, for which nobody else should wait.
    from opinionpool.estimators import pools
    from opinionpool.estimators.incremental import estimator_kinds

    return estimator_kinds(*(getattr(pools, name) for name in pools.__all__))
