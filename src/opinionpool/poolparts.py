"""``opinionpool pool`` for a file that is too large for memory."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from opinionpool.arguments import Chances, Pooling, Reading, Writing
from opinionpool.errors import ArgumentError
from opinionpool.steps import asked
from opinionpool.streams import progress

if TYPE_CHECKING:
    from opinionpool.trained import TrainedPool

__all__ = ["pool_in_parts"]


def pool_in_parts(
    reading: Reading,
    pooling: Pooling,
    writing: Writing,
    base_rate: Chances,
    model: tuple[str, TrainedPool] | None = None,
) -> bool:
    """Pool a file in parts, if it is so large, having learned from it in parts; whether that was done.

    With a `model`, nothing is learned.
    """
    from opinionpool.labels import label_text
    from opinionpool.parts import is_large, open_parts
    from opinionpool.tables import Request

    if reading.outcomes is not None or not is_large(reading.file):
        return False
    labels = None if model is None else [label_text(label) for label in model[1].classes]
    try:
        request = Request.of(**asked(reading, labels))
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    with ExitStack() as stack:
        with progress(f"reading {reading.file}") as advance:
            parts = stack.enter_context(open_parts(reading.file, request, reading.encoding, advance))
        if parts is not None:
            from opinionpool.partanswers import pool_parts

            pool_parts(parts, pooling, writing, base_rate, model)
        return parts is not None
