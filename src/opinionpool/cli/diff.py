"""``opinionpool diff``: what changed from one saved pool to the next, and why answers moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import writing
from opinionpool.cli.output import present
from opinionpool.cli.reading_options import pair_reading

if TYPE_CHECKING:
    from opinionpool.forecasts import Forecasts


@click.command(cls=SectionedCommand, short_help="What changed since a pool was saved, and why answers moved.")
@click.argument("old", type=click.Path(exists=True, dir_okay=False))
@click.argument("new", type=click.Path(exists=True, dir_okay=False))
@pair_reading
@writing
def diff(old: str, new: str, reading: Reading | None, writing: Writing) -> None:
    """Say what changed from one pool that pool --save has written, OLD, to a later one, NEW.

    \b
    moved      new answer less old one, in percentage points
    corrected  change due to outcomes corrected and events annulled since
    outcomes   change due to events resolved since, from which the pool has learned
    agreement  change due to other open events: the pool also learns a little from who agrees with whom there
    forecasts  change due to new or revised forecasts on the event itself
    beliefs    change due to other beliefs or settings

    The changes are made in this order, one on top of the other, and the parts add up to the move; a part that is zero
    everywhere is left out of the table. Only events open in both are shown: those that the saved pools keep or, with
    --files, those in the two files, read as the options say. CSV holds the answers, JSON the experts too.
    """  # noqa: D301 - click reads the character
    from opinionpool.analysis.diff import alike, diff as difference
    from opinionpool.estimators.files import load
    from opinionpool.report import changes
    from opinionpool.streams.trained import TrainedPool

    writing.check([old, new, *([] if reading is None else reading.inputs)])
    before, after = alike(TrainedPool.of(load(old)), TrainedPool.of(load(new)))
    files: list[Forecasts] = []
    if reading is not None:
        for path, trained, name in zip(reading.files, (before, after), (old, new), strict=True):
            files.append(read(replace(reading, files=(path,)), (name, trained)))
    found = difference(before, after, *files)
    notes = tuple({note.text: note for each in files for note in each.notes}.values())
    view = changes.change_view(found, table=writing.chosen() == "table")
    about = files[1] if files else None
    present(replace(view, notes=(*notes, *found.notes), forecasts=about), writing)
