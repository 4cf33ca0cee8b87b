"""Forecasts at a horizon and over a question's life: at every moment they are what `as_of` reads."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.tables.read import read_forecasts

START = np.datetime64("2025-03-01", "s")


def hours(number):
    return str(START + np.timedelta64(int(number), "h"))


def table(rng, events=4, experts=3):
    """Forecasts that are revised, some withdrawn, some too late; the last event has no known end."""
    ends = rng.integers(20, 60, events)
    rows = {name: [] for name in ("event", "expert", "probability", "time", "closes", "outcome")}
    for t in range(events):
        for i in range(experts):
            for at in sorted(set(rng.integers(0, 70, rng.integers(0, 5)).tolist())):
                blank = rng.random() < 0.2
                values = (f"q{t}", f"e{i}", "" if blank else f"{rng.uniform(0.05, 0.95):.2f}", hours(at))
                values += (hours(ends[t]) if t < events - 1 else "", t % 2)
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    return rows, ends


def known_at(rows, event, moment):
    """What each expert last gave on an event until some time, blanks being withdrawals."""
    columns = zip(*(rows[k] for k in ("event", "expert", "probability", "time")), strict=True)
    last = {expert: p for name, expert, p, time in columns if name == event and time <= moment}
    return {expert: float(p) for expert, p in last.items() if p}


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
@example(433958)
def test_at_every_moment_it_is_what_was_known_then(seed):
    rng = np.random.default_rng(seed)
    rows, ends = table(rng)
    if not any(p and close for p, close in zip(rows["probability"], rows["closes"], strict=True)):
        return
    made = zip(*(rows[name] for name in ("time", "closes")), strict=True)
    if not any(close and time <= close for time, close in made):
        with pytest.raises(LayoutError, match="no forecast was made before its event closed"):
            read_forecasts(rows, duplicates="last", history=True)
        return
    found = read_forecasts(rows, duplicates="last", history=True)
    dense = found.history.forecasts.X
    for t, event in enumerate(found.events):
        at = np.flatnonzero(found.history.event == t)
        end = int(ends[int(event[1:])])
        hour = next((h for h in range(end + 1) if known_at(rows, event, hours(h))), None)
        if event == "q3" or hour is None:
            assert not len(at)
            continue
        # Each hour of the life stands for an equal part of it; a life that begins as it ends has one moment.
        edges = np.cumsum(found.history.share[at])
        assert edges[-1] == pytest.approx(1.0)
        for moment in range(hour, max(end, hour + 1)):
            part = (moment - hour + 0.5) / max(end - hour, 1)
            stretch = at[min(int(np.searchsorted(edges, part)), len(at) - 1)]
            stood = {found.experts[i]: p for i, p in enumerate(dense[stretch].tolist()) if not np.isnan(p)}
            assert stood == known_at(rows, event, hours(moment))


def two(**changes):
    """A table of two forecasts."""
    rows = {"event": ["a", "a"], "expert": ["ann", "bob"], "probability": [0.2, 0.6], "outcome": [1, 1]}
    return rows | {"time": [hours(0), hours(30)], "closes": [hours(40)] * 2} | changes


def test_forecasts_are_as_old_as_in_the_middle_of_a_stretch():
    found = read_forecasts(two(time=[hours(0), hours(24)], closes=[hours(72)] * 2), history=True).history
    assert found.forecasts.ages.tolist() == [0.5, 2.0, 1.0]


def test_expired_forecasts_stand_until_then():
    found = read_forecasts(two(time=[hours(0), hours(10)], expires=[hours(20), ""]), history=True).history
    assert found.share.tolist() == [0.25, 0.25, 0.5]
    assert np.array_equal(found.forecasts.X, [[0.2, np.nan], [0.2, 0.6], [np.nan, 0.6]], equal_nan=True)


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_a_horizon_is_a_time_of_its_own_for_each_event(seed, ahead):
    rng = np.random.default_rng(seed)
    rows, ends = table(rng)
    if not any(p for p, close in zip(rows["probability"], rows["closes"], strict=True) if close):
        return
    every = list(zip(*(rows[name] for name in ("event", "expert", "probability", "time", "closes")), strict=True))
    # A blank takes something back where its expert forecast the event, and says nothing elsewhere.
    answered = {(event, expert) for event, expert, probability, *_ in every if probability}
    made = [(event, time, close) for event, expert, _, time, close in every if (event, expert) in answered]
    if not any(close and time <= hours(ends[int(event[1:])] - ahead) for event, time, close in made):
        with pytest.raises(LayoutError, match=r"no forecast was made \d+ (?:hour|day)s? or more before"):
            read_forecasts(rows, duplicates="last", horizon=f"{ahead}h")
        return
    found = read_forecasts(rows, duplicates="last", horizon=f"{ahead}h")
    for t, event in enumerate(found.events):
        given_then = found.expert_index[found.event_index == t]
        if event == "q3":
            assert not len(given_then)
            continue
        then = read_forecasts(rows, duplicates="last", as_of=hours(ends[int(event[1:])] - ahead))
        mine = then.event_index == then.events.index(event)
        assert [found.experts[i] for i in given_then] == [then.experts[i] for i in then.expert_index[mine]]
        assert np.array_equal(found.probabilities[found.event_index == t], then.probabilities[mine])


def test_what_is_left_out_is_counted():
    rows = {
        "event": ["a", "a", "b"], "expert": ["ann", "bob", "ann"], "probability": [0.2, 0.6, 0.5],
        "time": [hours(0), hours(30), hours(39)], "closes": [hours(40)] * 3, "outcome": [1, 1, 0],
    }  # fmt: skip
    found = read_forecasts(rows, horizon="0.5d")
    notes = {note.code: note.text for note in found.notes}
    assert notes["horizon"] == "2 forecasts left out, first made less than 12 hours before the event closed"
    assert notes["coverage"] == "1 of 2 resolved events had a forecast 12 hours before closing"


@pytest.mark.parametrize(
    ("options", "without", "error", "told"),
    [
        ({"horizon": "7d"}, "time", LayoutError, "no column with times of forecasts, as is needed for --horizon;"),
        (
            {"history": True},
            "time",
            LayoutError,
            "no column with times of forecasts, as is needed for --time-averaged;",
        ),
        ({"horizon": 7}, "closes", LayoutError, "does not say when events close, as is needed for --horizon;"),
        ({"horizon": "soon"}, None, ArgumentError, "a horizon is a span of time"),
        ({"horizon": 7, "history": True}, None, ArgumentError, "give one of the two"),
    ],
    ids=["horizon without times", "history without times", "without closes", "no span", "both"],
)
def test_what_cannot_be_asked_for(options, without, error, told):
    rows = two(event=["a", "b"], expert=["ann"] * 2, outcome=[1, 0])
    rows.pop(without, None)
    with pytest.raises(error, match=told):
        read_forecasts(rows, **options)


def test_too_many_are_refused(monkeypatch):
    monkeypatch.setattr("opinionpool.tables.event_facts.MOST", 10)
    rows, _ = table(np.random.default_rng(1), experts=6)
    with pytest.raises(LayoutError, match="--time-averaged takes 10 at most"):
        read_forecasts(rows, duplicates="last", history=True)
