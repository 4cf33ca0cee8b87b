"""What a stream knows and a table that is exported again and again no longer has: named, and kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from opinionpool.errors import Note
from opinionpool.names import unknown_names
from opinionpool.streams.state import StreamState
from opinionpool.text import counted, listed, shown

# Names in a note before it is cut.
_NAMED = 4


def absent_events(state: StreamState, keys: Iterable[int]) -> list[Note]:
    """Events of a stream that are none of those with these keys, as notes."""
    there, notes = set(keys), []
    opened = [record.event for key, record in state.open.items() if key not in there]
    if opened:
        notes.append(Note("absent-open", _kept("open event", opened, len(opened)), len(opened)))
    learned = [key for key in state.ledger.array()["key"].tolist() if key not in there]
    if learned:
        sampled = [record.event for record in map(state.reservoir.find, learned) if record is not None]
        notes.append(Note("absent-resolved", _kept("resolved event", sampled, len(learned)), len(learned)))
    return notes


def _kept(what: str, events: Sequence[str | int], count: int) -> str:
    """That events are kept, with the first names of those that are known."""
    first = sorted(map(str, events))[:_NAMED]
    names = f": {listed(first)}" if first else ""
    more = f" and {count - len(first)} more" if names and count > len(first) else ""
    return (
        f"{counted(count, what)} of the pool not in this table, and kept{names}{more}; a row with outcome annulled "
        "takes an event back"
    )


def absent_experts(before: Sequence[str], names: Sequence[str], present: Sequence[str]) -> list[Note]:
    """Experts who had a forecast before and have none in a table, beside those who are new in it, as notes.

    Parameters
    ----------
    before : sequence of str
        Who had a forecast in the stream.
    names : sequence of str
        All experts whom the stream knew.
    present : sequence of str
        Who has a forecast in the table.

    Examples
    --------
    >>> note = absent_experts(["ann lee", "bob"], ["ann lee", "bob"], ["ann lee-smith", "bob"])[0]
    >>> print(note.text.split(". ")[0])
    1 expert of the pool without a forecast in this table: 'ann lee'; new in it: 'ann lee-smith' (was 'ann lee'?)
    """
    gone = unknown_names(before, present)
    if not gone:
        return []
    text = f"{counted(len(gone), 'expert')} of the pool without a forecast in this table: {listed(gone, _NAMED)}"
    fresh = unknown_names(present, names)
    if fresh:
        text += (
            f"; new in it: {_beside(fresh, gone)}. Whoever was renamed begins anew; to go on, learn from the whole "
            "table: --save without --model"
        )
    return [Note("absent-experts", text, len(gone))]


def _beside(fresh: Sequence[str], gone: Sequence[str]) -> str:
    """New names, each with the one that it may have had."""
    from difflib import get_close_matches

    near = {name: get_close_matches(name, gone, 1, 0.5) for name in fresh}
    # Those who may have been renamed come first.
    first = sorted(fresh, key=lambda name: not near[name])[:_NAMED]
    words = [shown(name) + "".join(f" (was {shown(old)}?)" for old in near[name]) for name in first]
    return ", ".join(words) + (f" and {len(fresh) - len(first)} more" if len(fresh) > len(first) else "")


def present_experts(state: StreamState) -> list[str]:
    """Who has a forecast in a stream, on whatever event."""
    state.flush()
    return [state.experts[i] for i in np.flatnonzero(state.present()).tolist()]
