"""Long tables in which each event has options of its own, from the file to the answer."""

import csv
import io
import json

import numpy as np
import pytest

import opinionpool as op
from opinionpool.cli.app import run
from opinionpool.errors import ArgumentError, CellError, ExpertError, LayoutError
from opinionpool.learning.learn import learn

HEADER = "question,forecaster,option,probability,resolution\n"
# Two votes, two games, and a number: labels differ, and so does how many there are.
EVENTS = {
    "vote": ("Harris", ["Trump", "Harris", "other"], [[0.3, 0.6, 0.1], [0.5, 0.4, 0.1]]),
    "rain": ("20+", ["0-10", "10-20", "20+"], [[0.2, 0.2, 0.6], [0.1, 0.4, 0.5]]),
    "game": ("home", ["home", "away"], [[0.7, 0.3], [0.6, 0.4]]),
    "next game": ("", ["home", "away"], [[0.8, 0.2], [0.9, 0.1]]),
}
SITE = HEADER + "".join(
    f"{event},{expert},{label},{p},{outcome}\n"
    for event, (outcome, labels, said) in EVENTS.items()
    for expert, row in zip(("ann", "bob"), said, strict=True)
    for label, p in zip(labels, row, strict=True)
)


@pytest.fixture
def file(tmp_path):
    def write(text, name="site.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def read(text, **options):
    rows = list(csv.DictReader(io.StringIO(text)))
    return op.read_forecasts({name: [row[name] for row in rows] for name in rows[0]}, **options)


def edited(old, new):
    assert old in SITE
    return SITE.replace(old, new)


# Reading.


def test_options_that_share_no_class_are_read_as_such_and_that_is_said():
    f = read(SITE)
    assert f.events == ("vote", "rain", "game", "next game")
    assert f.options == (("Trump", "Harris", "other"), ("0-10", "10-20", "20+"), ("home", "away"), ("home", "away"))
    assert f.happened == ["Harris", "20+", "home", None]
    assert f.X[1].tolist() == [[0.2, 0.2, 0.6], [0.1, 0.4, 0.5]]
    assert f.X[2].tolist() == [[0.7, 0.3, 0.0], [0.6, 0.4, 0.0]]
    note = next(note for note in f.notes if note.code == "options")
    assert "each event has options of its own, 2 to 3 of them, 3 different sets" in note.text


def test_events_that_share_all_classes_are_read_as_before_whatever_is_said():
    text = HEADER + "".join(
        f"q{t},{expert},{label},{p},{outcome}\n"
        for t, outcome in enumerate("abca")
        for expert in ("ann", "bob")
        for label, p in zip("cab", (0.2, 0.5, 0.3), strict=True)
    )
    plain, asked = read(text), read(text, options="event")
    assert plain.classes == asked.classes == ("a", "b", "c")
    assert asked.options is None
    np.testing.assert_array_equal(plain.X, asked.X)
    np.testing.assert_array_equal(learn(plain).weights, learn(asked).weights)


def overlapping():
    """A draw is possible in football, and not in tennis."""
    return (
        HEADER
        + "football,ann,home,0.5,home\nfootball,ann,draw,0.2,home\nfootball,ann,away,0.3,home\n"
        + "tennis,ann,home,0.5,away\ntennis,ann,away,0.5,away\n"
    )


def test_sets_that_overlap_are_asked_about():
    with pytest.raises(CellError, match=r"by 'ann' on event 'tennis' has no probability for class 'draw'") as told:
        read(overlapping())
    assert "'tennis' ('home', 'away') and 'football' ('home', 'draw', 'away'), say --options event" in str(told.value)
    f = read(overlapping(), options="event")
    assert f.sizes.tolist() == [3, 2]
    with pytest.raises(CellError, match=r"has no probability for class 'draw' .* each of 3 classes"):
        read(overlapping(), options="shared")
    with pytest.raises(CellError, match="no probability for class"):
        read(overlapping(), classes=["home", "draw", "away"])


def test_an_outcome_must_be_an_option_of_its_own_event():
    with pytest.raises(CellError, match=r"outcome 'home' is none of the options of event 'vote': 'Trump', 'Harris'"):
        read(SITE.replace(",Harris\n", ",home\n"))
    f = read(SITE.replace(",Harris\n", ",harris\n"))
    assert f.happened[0] == "Harris"
    assert any("read as options of their events" in note.text for note in f.notes)
    f = read(SITE.replace(",Harris\n", ",annulled\n"))
    assert "vote" not in f.events
    assert len(f.options) == len(f.events)
    with pytest.raises(CellError, match="'vote' has two values"):
        read(SITE.replace("vote,bob,Trump,0.5,Harris", "vote,bob,Trump,0.5,Trump"))


def test_open_and_unknown_may_be_options():
    f = read(SITE.replace("20+", "unknown"))
    assert f.happened[1] == "unknown"


def test_outcomes_may_come_from_another_table():
    lines = [",".join(line.split(",")[:4]) for line in SITE.splitlines()]
    f = read("\n".join(lines), outcomes={"event": ["game", "rain"], "outcome": ["away", "20+"]})
    assert f.happened == [None, "20+", "away", None]


def test_priors_are_given_by_option_or_even():
    text = SITE.replace("resolution\n", "resolution,prior\n").replace("\n", ",\n").replace("prior,\n", "prior\n")
    text = text.replace("vote,ann,Trump,0.3,Harris,", "vote,ann,Trump,0.3,Harris,0.5")
    text = text.replace("vote,ann,Harris,0.6,Harris,", "vote,ann,Harris,0.6,Harris,0.4")
    f = read(text.replace("vote,ann,other,0.1,Harris,", "vote,ann,other,0.1,Harris,0.1"))
    assert f.prior[0].tolist() == [0.5, 0.4, 0.1]
    assert np.isnan(f.prior[1:]).all()
    silent = op.Forecasts.from_array(np.full((4, 1, 3), np.nan), prior=f.prior, options=f.options)
    answers = learn(silent).pool_forecasts(silent)
    np.testing.assert_allclose(answers, [[0.5, 0.4, 0.1], [1 / 3] * 3, [0.5, 0.5, 0], [0.5, 0.5, 0]])


def test_percentages_and_rounding_hold_for_options():
    text = SITE.replace("0.3,Harris", "33,Harris")
    rows = list(csv.DictReader(io.StringIO(SITE)))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    table["probability"] = [f"{float(p):.0%}" for p in table["probability"]]
    assert read(SITE).X.tolist() == op.read_forecasts(table).X.tolist()
    with pytest.raises(CellError, match=r"add up to 1\.2 over the classes"):
        read(edited("vote,ann,Trump,0.3,", "vote,ann,Trump,0.5,"))
    with pytest.raises(CellError, match="not between 0 and 1"):
        read(text)
    thirds = HEADER + "".join(f"q,ann,{label},0.33,\n" for label in "abc") + "r,ann,d,0.5,\nr,ann,e,0.5,\n"
    f = read(thirds)
    np.testing.assert_allclose(f.X[0, 0], 1 / 3)
    assert any(note.code == "normalised" for note in f.notes)


def test_events_of_which_no_options_are_known_are_left_out_and_counted():
    f = read(SITE + "later,ann,,,\n")
    assert "later" not in f.events
    assert any(note.code == "no-options" and note.count == 1 for note in f.notes)
    silent = read(SITE + "later,ann,x,,\nlater,ann,y,,\n")
    assert silent.options[-1] == ("x", "y")
    assert silent.crowd[-1] == 0


def test_options_do_not_go_with_what_is_for_shared_classes():
    with pytest.raises(ArgumentError, match="--positive and classes are for classes that all events share"):
        read(SITE, positive="home")
    with pytest.raises(ArgumentError, match="options must be one of event, shared, and it is 'each'"):
        read(SITE, options="each")
    with pytest.raises(LayoutError, match="--options event is for a table with a row for each forecast and option"):
        op.read_forecasts({"event": ["a", "b"], "ann": [0.2, 0.4]}, options="event")
    with pytest.raises(ExpertError, match="no expert"):
        read(SITE, exclude=["cat"])


# The command line.


def answers(capsys, *arguments):
    assert run([*arguments]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_pool_prints_each_event_with_its_own_options(file, capsys):
    path = file(SITE)
    out, told = answers(capsys, "pool", path, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["event"], row["class"]) for row in rows[:4]] == [
        ("vote", "Trump"), ("vote", "Harris"), ("vote", "other"), ("rain", "0-10")
    ]  # fmt: skip
    assert len(rows) == 10
    assert "prior: all options of an event equally probable" in told
    assert "note: each event has options of its own, 2 to 3 of them" in told
    f = op.read_forecasts(path)
    p = learn(f).pool_forecasts(f)
    np.testing.assert_array_equal([float(row["probability"]) for row in rows], p[p > 0])
    out, _ = answers(capsys, "pool", path, "--format", "json")
    records = json.loads(out)
    assert list(records["events"][0]["probabilities"]) == ["Trump", "Harris", "other"]
    assert records["events"][2]["outcome"] == "home"
    assert records["summary"]["options"] == {"2": 2, "3": 2}
    table, _ = answers(capsys, "pool", path, "--format", "table", "--pool", "average")
    assert "option" in table.splitlines()[0]
    assert "Harris" in table


def test_wrong_usage_is_told_as_such(file, capsys):
    path = file(SITE)
    assert run(["pool", path, "--prior", "0.3"]) == 2
    assert "each event has options of its own, so no number can be for all events" in capsys.readouterr().err
    assert run(["pool", path, "--options", "each"]) == 2
    assert run(["pool", file(overlapping(), "both.csv")]) == 1
    assert "say --options event" in capsys.readouterr().err
    assert run(["pool", path, "--save", "pool.json"]) == 1
    assert "error: --save keeps pools of events that share their classes, and these have" in capsys.readouterr().err
    assert run(["pool", path, "--pool", "beta-linear"]) == 1
    assert "these forecasts are of events with options of their own" in capsys.readouterr().err
    assert run(["pool", file(overlapping(), "both.csv"), "--options", "event", "--format", "csv"]) == 0


def test_check_counts_no_position_that_is_no_option(file, capsys):
    """Behind an event's own options there is nothing, which is no forecast of 0%."""
    certain = SITE.replace("rain,bob,0-10,0.1", "rain,bob,0-10,0").replace("rain,bob,20+,0.5", "rain,bob,20+,0.6")
    for text, zeros in [(SITE, 0), (certain, 1)]:
        out, _ = answers(capsys, "check", file(text), "--format", "csv")
        assert sum(int(row["zeros"]) for row in csv.DictReader(io.StringIO(out))) == zeros
