"""Late, repeated and many-class statements, against the same rules written as loops."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool.errors import CellError, DuplicateError
from opinionpool.tables.classes import EventOptions
from opinionpool.tables.event_facts import Facts, in_time
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.statements import Distinctions, LongRows, fold_rows, one_each
from opinionpool.tables.table import read_frame

EVENTS, EXPERTS = ["q0", "q1", "q2"], ["a", "b"]
NAT = np.datetime64("NaT", "us")
# What says where a statement stood.
TABLE = read_frame({"event": ["q"] * 20})


def statements(rows, classes=(), times=True):
    """Statements of (event, expert, class, value, hour or None)."""
    columns = [np.array([row[i] for row in rows]) for i in range(4)]
    event, expert, label = (column.astype(np.intp) for column in columns[:3])
    hours = [NAT if row[4] is None else np.datetime64(int(row[4]), "h").astype("M8[us]") for row in rows]
    return LongRows(
        table=TABLE, events=EVENTS, experts=EXPERTS, classes=classes, event=event, expert=expert, label=label,
        value=columns[3].astype(float), rows=np.arange(len(rows)), column=np.zeros(len(rows), np.intp),
        time=np.array(hours, "M8[us]") if times else None,
    )  # fmt: skip


def said(found):
    return sorted(
        zip(found.event.tolist(), found.expert.tolist(), found.label.tolist(), found.value.tolist(), strict=True)
    )


ROW = st.tuples(
    st.integers(0, 2),
    st.integers(0, 1),
    st.just(0),
    st.integers(0, 8).map(lambda n: n / 8),
    st.none() | st.integers(0, 9),
)


@given(
    st.lists(ROW, max_size=15),
    st.none() | st.integers(0, 9),
    st.lists(st.none() | st.integers(0, 9), min_size=3, max_size=3),
)
def test_what_was_said_in_time_stays(rows, cutoff, closes):
    limits = np.array([NAT if hour is None else np.datetime64(hour, "h").astype("M8[us]") for hour in closes], "M8[us]")
    never = np.full(3, NAT)
    as_of = None if cutoff is None else np.datetime64(cutoff, "h").astype("M8[us]")

    def is_early(row):
        known = row[4] is not None
        if cutoff is not None and not (known and row[4] <= cutoff):
            return False
        return not known or closes[row[0]] is None or row[4] <= closes[row[0]]

    expected = sorted(row[:4] for row in rows if is_early(row))
    if not rows:
        return
    for left, right in ((limits, never), (never, limits)):
        facts = Facts(left, right, False, None, None, None, ())
        kept, notes = in_time(statements(rows), ReadOptions(as_of=as_of), facts, Distinctions(TABLE))
        assert said(kept) == expected
        assert sum(note.count for note in notes) == len(rows) - len(expected)


@given(st.lists(ROW, min_size=1, max_size=15), st.booleans())
def test_one_statement_each_by_either_rule(rows, times):
    groups = defaultdict(list)
    for row in rows:
        groups[row[:3]].append(row)
    given_rows = statements(rows, times=times)
    ties = {}
    for row in rows if times else ():
        ties.setdefault((*row[:3], row[4]), set()).add(row[3])
    latest = {key: max(-1 if row[4] is None else row[4] for row in several) for key, several in groups.items()}
    tied = any(
        len(values) > 1 and latest[key[:3]] == (-1 if key[3] is None else key[3]) for key, values in ties.items()
    )
    if tied:
        with pytest.raises(
            DuplicateError, match=r"different numbers at one time by column 'time', .* so none is the last. .*last-row"
        ):
            one_each(given_rows, "last", Distinctions(TABLE, "time"))
    for rule in ("last-row", "mean") if tied else ("last", "last-row", "mean"):
        kept, notes = one_each(given_rows, rule, Distinctions(TABLE, "time" if times else None))
        found = {key[:3]: key[3] for key in said(kept)}
        assert set(found) == set(groups)
        for key, several in groups.items():
            if rule == "mean":
                assert found[key] == pytest.approx(sum(row[3] for row in several) / len(several), abs=1e-15)
            else:
                last = max(
                    enumerate(several), key=lambda at: (-1 if at[1][4] is None or not times else at[1][4], at[0])
                )
                assert found[key] == last[1][3]
        repeated = sum(len(several) > 1 for several in groups.values())
        assert sum(note.count for note in notes) == repeated
    if repeated:
        with pytest.raises(DuplicateError, match="--duplicates last"):
            one_each(given_rows, None, Distinctions(TABLE))


def test_averages_are_the_same_to_the_last_bit_in_any_order_of_rows():
    rows = [(0, 0, 0, value, None) for value in (0.1, 0.2, 0.3, 0.7)] + [(0, 1, 0, 0.6, None)] * 2
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    found = {
        tuple(one_each(statements(order), "mean", Distinctions(TABLE))[0].value)
        for order in list(itertools.permutations(rows))[::29]
    }
    assert len(found) == 1


def test_the_last_forecast_of_several_classes_is_one_forecast():
    rows = [(0, 0, 0, 0.9, 1), (0, 0, 1, 0.1, 1), (0, 0, 0, 0.3, 2)]
    kept, _ = one_each(statements(rows, classes=("x", "y")), "last", Distinctions(TABLE, "time"))
    assert said(kept) == [(0, 0, 0, 0.3)]
    with pytest.raises(CellError, match="forecast by 'a' on event 'q0' has no probability for class 'y'"):
        fold_rows(kept, EventOptions.shared("xy", "xy", 3), lambda some: np.zeros(len(some.value)))
