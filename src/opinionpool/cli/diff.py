"""``opinionpool diff``: what changed from one saved pool to the next, and why answers moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import writing
from opinionpool.cli.output import conclude, destination
from opinionpool.cli.reading_options import pair_reading
from opinionpool.report.listing import write_json, write_listing, write_text

if TYPE_CHECKING:
    from typing import TextIO

    from opinionpool.analysis.diff import Diff
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
    from opinionpool.report import answers, changes, summary
    from opinionpool.streams.trained import TrainedPool

    writing.check([old, new, *([] if reading is None else reading.inputs)])
    before, after = alike(TrainedPool.of(load(old)), TrainedPool.of(load(new)))
    files: list[Forecasts] = []
    if reading is not None:
        for path, trained, name in zip(reading.files, (before, after), (old, new), strict=True):
            files.append(read(replace(reading, files=(path,)), (name, trained)))
    found = difference(before, after, *files)
    notes = tuple({note.text: note for each in files for note in each.notes}.values())
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            experts = list(answers.records(changes.change_columns(found)))
            facts = changes.change_facts(found) | {"experts": experts}
            facts |= {"notes": summary.note_records((*notes, *found.notes))}
            write_json("moves", answers.records(changes.move_columns(found)), facts, out)
        elif kind == "csv":
            write_listing(changes.move_columns(found), kind, out)
        else:
            _write(found, out)
    lines = changes.change_lines(found) if kind != "table" else []
    lines += summary.note_lines(files[1], notes) if files else []
    lines += [f"note: {note.text}" for note in found.notes]
    if lines:
        conclude(kind, *lines)


def _write(found: Diff, out: TextIO) -> None:
    """The whole difference for people."""
    from opinionpool.report import changes
    from opinionpool.text import counted

    events = len(found.moves)
    if events:
        write_listing(changes.move_columns(found, changes.SHOWN), "table", out)
        if events > changes.SHOWN:
            out.write(f"({counted(events - changes.SHOWN, 'smaller move')} in CSV and JSON)\n")
        out.write("\n")
    if changes.weighed(found):
        write_listing(changes.change_columns(found, changes.SHOWN_EXPERTS), "table", out)
        if len(found.experts) > changes.SHOWN_EXPERTS:
            more = counted(len(found.experts) - changes.SHOWN_EXPERTS, "expert")
            out.write(f"({more} with smaller changes in JSON)\n")
        out.write("\n")
    for line in [*changes.change_lines(found), "", *changes.meaning_lines(found)]:
        write_text(line, out)
