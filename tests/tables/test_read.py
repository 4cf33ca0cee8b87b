"""From a table as people have it to forecasts: formats, policies, and what each refusal says."""

import csv
import gzip
import io
import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import opinionpool as op
from opinionpool.errors import ArgumentError, CellError, DuplicateError, ExpertError, LayoutError
from opinionpool.tables.read import read_forecasts
from opinionpool.tables.roles import words_of

from .reading import NAN, notes, read, same


def test_questions_have_words_for_people():
    long = "question_id,question,user,prediction\nq1,Will it rain?,ann,0.9\nq1,Will it rain?,bob,0.7\nq2,,bob,0.2\n"
    found = read(long)
    assert found.texts == ("Will it rain?", "")
    assert [found.question(t) for t in (0, 1)] == ["Will it rain?", "q2"]
    assert "text = question" in notes(found)["layout"].text
    assert found.select_events([1, 0]).texts == ("", "Will it rain?")
    assert read(long, columns={"text": None}).texts is None
    # One column of words is the event, and in other tables a title is no text of an event.
    assert read("question,ann\nWill it rain?,0.9\nWill it snow?,0.1\n").texts is None


# What people met elsewhere, with its right value.


def test_ids_are_text_on_both_sides_of_a_join():  # case 55
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["08", "007"], "outcome": ["no", "yes"]}), sink)
    sink.seek(0)
    found = read("id,A\n007,0.9\n08,0.5\n", outcomes=sink)
    assert found.events == ("007", "08")
    same(found, [[0.9], [0.5]], [1, 0])
    with pytest.raises(
        LayoutError, match=r"no event of .*: there ids look like '7', '8', here like '007', '08'; .*zeros"
    ):
        read("id,A\n007,0.9\n08,0.5\n", outcomes="id,outcome\n7,yes\n8,no\n")


def test_an_encoding_is_for_the_file_that_needs_it():
    forecasts, outcomes = "event,A\nMünchen,.5\n", "event,outcome\nMünchen,1\n"
    for encoded in (outcomes.encode(), outcomes.encode("cp1252")):
        found = read(forecasts.encode("cp1252"), outcomes=io.BytesIO(encoded), encoding="cp1252")
        assert found.events == ("München",)
        assert found.outcomes.tolist() == [1]
        told = notes(found)["outcomes-layout"].text
        assert ("is UTF-8, and not cp1252, so it is read as that" in told) == (encoded == outcomes.encode())
    assert "is UTF-8, and not cp1252" in notes(read(forecasts, encoding="cp1252"))["encoding"].text
    # These letters of GBK happen to be UTF-8 as well.
    assert read("event,A\n联通,.5\n".encode("gbk"), encoding="gbk").events == ("联通",)


def test_events_that_do_not_match_are_counted_with_examples():
    found = read("id,A\n" + "".join(f"q{i},0.5\n" for i in range(6)), outcomes="id,y\nq1,1\nx1,1\nx2,0\nx3,0\nx4,0\n")
    assert found.outcomes.tolist() == [-1, 1, -1, -1, -1, -1]
    assert notes(found)["outcomes-unmatched"].text.endswith("without forecasts left out: 'x1', 'x2', 'x3' and 1 more")
    assert notes(found)["outcomes-lacking"].text.endswith(": 'q0', 'q2', 'q3' and 2 more")
    assert notes(found)["outcomes-lacking"].count == 5


def test_nobody_and_nothing_vanishes():  # case 58
    for text in ("question,A,B\nq1,.2,\nq2,.4,\nq3,,\n", "question,expert,p\nq1,A,.2\nq2,A,.4\nq3,,\nq1,B,\n"):
        found = read(text)
        assert (found.events, found.experts) == (("q1", "q2", "q3"), ("A", "B"))
        assert found.counts.tolist() == [2, 0]
        assert found.crowd.tolist() == [1, 1, 0]


def test_which_class_is_forecast_is_asked():  # case 36
    text = "event,A,y\n1,.9,default\n2,.1,repaid\n"
    with pytest.raises(LayoutError, match=r"--positive default or --positive repaid \(in Python positive='default' or"):
        read(text)
    found = read(text, positive="default")
    assert found.classes == ("repaid", "default")
    assert notes(found)["positive"].text == "probabilities are those of outcome default, not of repaid"
    for words in ("default yes", "default no"), ("Resolved YES", "Resolved NO"):
        assert list(read(text.replace("default", words[0]).replace("repaid", words[1])).outcomes) == [1, 0]


def test_forecasts_after_the_close_do_not_count():  # case 76
    text = "event,expert,p,time,closes\n" + "".join(
        f"q1,{name},{p},2025-01-01 {hour}:00,2025-01-01 12:00\n"
        for name, p, hour in zip("ABC", (0.15, 0.2, 0.99), ("09", "10", "13"), strict=True)
    )
    found = read(text)
    same(found, [[0.15, 0.2, NAN]])
    assert notes(found)["after-close"].text == "1 forecast left out, made after the event closed"
    assert read(text.replace("closes", "resolved_at")).counts.tolist() == [1, 1, 0]


def test_rounded_rows_over_classes_are_accepted_and_normalised():  # case 9
    text = "event,expert,class,p,outcome\n" + "".join(f"q1,A,{c},0.33,draw\n" for c in ("home", "draw", "away"))
    found = read(text)
    np.testing.assert_allclose(found.X, [[[1 / 3] * 3]], rtol=1e-15)
    assert notes(found)["normalised"].count == 1
    with pytest.raises(CellError, match=r"by 'A' on event 'q1' add up to 0.96 over the classes"):
        read(text.replace("0.33", "0.32"))
    single = np.array([0.1, 0.2, 0.7], np.float32)
    wide = {"event": ["q"], **{f"m:{c}": single[i : i + 1] for i, c in enumerate("abc")}}
    assert read_forecasts(wide).X.sum() == pytest.approx(1, abs=1e-15)


# Further policies.


def test_outcomes_known_after_the_cutoff_are_not_known():
    text = "event,expert,p,time,resolved_at,y\nq1,A,.5,2025-01-01,2025-02-01,1\nq2,A,.5,2025-01-01,2025-04-01,1\n"
    assert read(text).outcomes.tolist() == [1, 1]
    found = read(text, as_of="2025-03-01")
    assert found.outcomes.tolist() == [1, -1]
    assert notes(found)["as-of-outcomes"].count == 1
    with pytest.raises(LayoutError, match="no column with times of forecasts, as is needed for --as-of;"):
        read("event,A\nq1,.5\n", as_of="2025-03-01")
    with pytest.raises(ArgumentError, match=r"--as-of \(as_of\) must be a time"):
        read(text, as_of="yesterday")


def test_what_became_known_at_an_unknown_time_was_not_known_before():
    text = (
        "event,expert,p,time,closes,resolved_at,y\nq1,A,.5,2025-01-01,,2025-02-01,1\nq2,A,.5,2025-01-01,,,0\n"
        "q3,A,.5,2025-01-01,2025-04-01,,annulled\nq4,A,.5,2025-01-01,2025-02-01,,annulled\nq5,A,.5,2025-01-01,,,void\n"
    )
    found = read(text, as_of="2025-03-01")
    assert dict(zip(found.events, found.outcomes.tolist(), strict=True)) == {"q1": 1, "q2": -1, "q3": -1, "q5": -1}
    assert sorted(note.text.partition(",")[0] for note in found.notes if note.code.startswith(("as-of-", "void"))) == [
        "1 event left out as void (annulled",
        "1 event resolved",
        "2 events annulled",
    ]
    undated = read(text, as_of="2025-03-01", columns={"resolved_at": None})
    assert dict(zip(undated.events, undated.outcomes.tolist(), strict=True)) == {"q1": 1, "q2": 0, "q3": -1}


def test_an_event_that_closes_after_the_cutoff_had_no_outcome_then():
    text = "event,expert,p,time,closes,y\nq1,A,.5,2025-01-01,2025-02-01,1\nq2,A,.5,2025-01-01,2025-04-01,0\n"
    found = read(text + "q3,A,.5,2025-01-01,,1\n", as_of="2025-03-01")
    assert found.outcomes.tolist() == [1, -1, 1]
    assert [note.text for note in found.notes if note.code.startswith("as-of-")] == [
        "1 event closed after the time of --as-of, taken as not resolved",
        "there are no times of resolution, so every other outcome counts as known at the time of --as-of",
    ]
    assert read(text, as_of="2025-04-01").outcomes.tolist() == [1, 0]


def test_when_an_event_belongs():
    text = "event,expert,p,time,closes,resolved_at\n" + "\n".join(
        ["q1,A,.5,2025-01-01,2025-02-01,2025-03-01", "q2,A,.5,2025-01-01,2025-02-01,", "q3,A,.5,2025-01-01,,",
         "q3,B,.5,2025-01-02,,", "q4,A,.5,,,"],
    )  # fmt: skip
    assert read(text).times.astype("M8[D]").astype(str).tolist() == ["2025-03-01", "2025-02-01", "2025-01-02", "NaT"]
    assert read("event,A\nq,.5\n").times is None
    joined = read("event,A\nq,.5\n", outcomes="event,y,resolved_at\nq,1,2025-03-01\n")
    assert joined.times.astype("M8[D]").astype(str).tolist() == ["2025-03-01"]


def test_the_times_of_forecasts_and_of_events_are_told_apart():
    text = (
        "event,expert,p,time,closes,resolved\nq1,A,.5,2025-01-03,2025-02-01,2025-03-01T12:00\n"
        "q1,A,.6,2025-01-02,2025-02-01,2025-03-01T12:00\nq2,A,.5,,2025-02-01,\nq2,B,.5,2025-02-02,2025-02-01,\n"
    )
    columns = {"resolved_at": "resolved"}
    told = notes(read(text, columns=columns, duplicates="last"))["times"].text
    assert told == "forecasts made 2025-01-02 to 2025-01-03; events close 2025-02-01; resolved 2025-03-01T12:00:00Z"
    assert "times" not in notes(read(text, columns={"time": None, "closes": None}, duplicates="last"))


def test_priors_of_several_classes():
    long = "event,expert,class,p,prior\n" + "".join(
        f"q{i},A,{c},{p},{q if i else ''}\n"
        for i in range(2)
        for c, p, q in (("x", 0.5, 0.2), ("y", 0.25, 0.3), ("z", 0.25, 0.5))
    )
    wide = "event,A:x,A:y,A:z,prior:x,prior:y,prior:z\nq0,.5,.25,.25,,,\nq1,.5,.25,.25,.2,.3,.5\n"
    for text in (long, wide):
        found = read(text)
        np.testing.assert_array_equal(found.prior, [[NAN] * 3, [0.2, 0.3, 0.5]])
        same(found, [[[0.5, 0.25, 0.25]]] * 2)
    two = read("event,A:yes,A:no,prior:no,prior:yes\nq,.7,.3,.6,.4\n")
    assert (two.classes, two.prior.tolist(), two.X.tolist()) == (("no", "yes"), [0.4], [[0.7]])
    with pytest.raises(LayoutError, match="a prior needs one column for each class: 'prior:x', 'prior:y', 'prior:z'"):
        read("event,A:x,A:y,A:z,prior:x\nq,.5,.25,.25,.2\n")
    with pytest.raises(CellError, match=r"event 'q' has two values in column 'prior': '.*' \(.*\) and '.*'"):
        read("event,expert,class,p,prior\nq,A,x,.5,.2\nq,A,y,.5,.8\nq,B,x,.5,.3\nq,B,y,.5,.7\n", positive="y")


def test_experts_are_chosen_by_name():
    wide, long = "event,A,B,n\nq1,.5,.25,57\n", "event,expert,p\nq1,A,.5\nq1,B,.25\nq1,n,.1\n"
    with pytest.raises(CellError, match=r"column 'c': 57 is not between 0 and 1; .*--exclude c"):
        read(wide.replace("n\n", "c\n"))
    assert read(wide).experts == ("A", "B")  # which is a count by its name
    for text in (wide, long):
        assert read(text, exclude=["n"]).experts == ("A", "B")
        assert read(text, include=["B", "A"]).experts == ("A", "B")
        same(read(text, include=["B"]), [[0.25]])
        with pytest.raises(ExpertError, match="no expert is called 'b'; "):
            read(text, exclude=["b"])
    with pytest.raises(ExpertError, match="no expert is called 'alise'; did you mean 'alice'"):
        read("event,alice\nq,.5\n", include=["alise"])


def test_a_column_that_numbers_the_rows_may_be_the_events():
    text = "sample_id,A,B\n" + "".join(f"{i},.5,.25\n" for i in range(6))
    for found in (read(text), read(text, columns={"event": "sample_id"})):
        assert found.events == ("0", "1", "2", "3", "4", "5")
    counts = text.replace("sample_id", "seen").replace("5,", "7,")
    with pytest.raises(
        CellError, match=r"2 is not between 0 and 1: .* if column 'seen' is not an expert's, say --exclude seen"
    ) as e:
        read(counts)
    assert "--missing-value" not in str(e.value)


@pytest.mark.parametrize("outcome", ["", "outcome"])
@pytest.mark.parametrize("name", ["target_label", "home_win"])
def test_a_column_of_0_and_1_among_probabilities_is_asked_about(name, outcome):
    rows = [f"q{i},{0.3 + i / 50},{i % 2},{i % 3 % 2 if i < 5 else ''}" for i in range(10)]
    text = "\n".join([f"event,A,{name},{outcome or 'note'}", *rows]) + "\n"
    with pytest.raises(LayoutError) as caught:
        read(text)
    commands = [remedy["columns"] for remedy in caught.value.remedies]
    # What is 0 or 1 is never offered as a forecast beside fractions.
    assert ({"probability": "A"} if outcome else {"outcome": name}) in commands
    for columns in commands:
        found = read(text, columns=columns)
        assert found.experts == ("A",)
        assert found.resolved.any()


def test_somebody_must_be_left():
    with pytest.raises(ExpertError, match="at least one expert, and there is none"):
        read("event,A,B\nq1,.5,.25\n").select_experts([])
    with pytest.raises(ExpertError, match="at least one expert, and there is none"):
        op.Forecasts.from_array(np.empty((3, 0)), [0, 1, None])


def test_forecasts_are_shown_in_a_line():
    shown = repr(read("event,A,B,outcome\nq1,.5,.25,no\nq2,.5,,\n"))
    assert shown == "Forecasts(events=2, resolved=1, experts=2, classes=('no', 'yes'), forecasts=3)"
    many = op.Forecasts.from_array(np.full((1, 300, 30), 1 / 30), classes=range(30))
    assert len(repr(many)) < 200


NAME = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=6).map(
    str.strip
)
# A column whose name says that it holds no forecasts is asked about, whatever is in it.
NAMES = st.lists(
    NAME.filter(lambda name: name and "%" not in name and not words_of(f"e {name}")),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=12)
@given(st.data())
def test_long_and_wide_tables_and_frames_come_back_equal(data):
    events, experts = data.draw(NAMES), data.draw(NAMES)
    size = len(events) * len(experts)
    cell = st.none() | st.floats(0, 1)
    values = np.array(data.draw(st.lists(cell, min_size=size, max_size=size)), float).reshape(len(events), -1)
    outcomes = data.draw(st.lists(st.sampled_from(["", "0", "1"]), min_size=len(events), max_size=len(events)))
    text = [["" if value != value else repr(value) for value in row] for row in values.tolist()]

    def csv(rows):
        return "\r\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)

    pairs = [(i, j) for i in range(len(events)) for j in range(len(experts))]
    long = [["event", "expert", "probability", "outcome"]] + [
        [events[i], experts[j], text[i][j], outcomes[i]] for i, j in pairs
    ]
    lines = [json.dumps(dict(zip(long[0], row, strict=True))) for row in long[1:]]
    frame = {name: [row[k] for row in long[1:]] for k, name in enumerate(long[0])}
    for source in (csv(long), "\n".join(lines)):
        found = read(source)
        assert (found.events, found.experts) == (tuple(events), tuple(experts))
        same(found, values, [{"": -1, "0": 0, "1": 1}[outcome] for outcome in outcomes])
    same(read_forecasts(frame), values)
    wide = [["event", *(f"e {name}" for name in experts), "outcome"]] + [
        [e, *row, y] for e, row, y in zip(events, text, outcomes, strict=True)
    ]
    found = read(csv(wide))
    assert (found.events, found.experts) == (tuple(events), tuple(f"e {name}" for name in experts))
    same(found, values)


@pytest.mark.parametrize(("resolved", "kept"), [("2025-06-09", True), ("2025-06-09T09:00", False)])
def test_days_on_which_events_are_resolved_last_as_those_on_which_they_close(resolved, kept):
    text = (
        "event,expert,p,time,closes,resolved_at,y\n"
        f"q,A,.2,2025-06-09T10:00,2025-06-09,{resolved},1\nq,B,.3,2025-06-08T10:00,2025-06-09,{resolved},1\n"
    )
    found = read(text)
    assert found.counts.tolist() == [int(kept), 1]
    assert ("after-resolution" in notes(found)) == (not kept)
    assert ("close and are resolved" in notes(found)["closing-days"].text) == kept
    # The outcome was not known before that day was over.
    assert read(text, as_of="2025-06-09T12:00").outcomes.tolist() == [-1 if kept else 1]


@pytest.mark.parametrize(
    ("cell", "missing", "stands"),
    [("650%", "650%", True), ("oops", "oops", True), ("", "oops", False), ("NA", "oops", False)],
)
def test_what_is_named_as_missing_takes_nothing_back(cell, missing, stands):
    text = f"event,expert,p,time\na,x,60%,2026-01-01\na,x,{cell},2026-01-02\na,y,70%,2026-01-01\n"
    found = read(text, missing_values=[missing], duplicates="last")
    same(found.select_experts([name for name in ("x", "y") if name in found.experts]), [[0.6 if stands else NAN, 0.7]])
    assert ("withdrawn" in notes(found)) == (not stands)


def test_names_that_hardly_differ_are_told_and_kept_apart():
    names = ["Ann Lee", "ann lee", "ann  lee", "José", "Jose\u0301", "bob"]
    wide = read(",".join(["event", *names]) + "\nq,.1,.2,.3,.4,.5,.6\n")
    long = read("event,expert,p\n" + "".join(f"q,{name},.5\n" for name in names))
    for found in (wide, long):
        assert found.experts == tuple(names)
        note = notes(found)["similar-names"]
        assert note.serious
        assert note.count == 5
        assert "'Ann Lee' and 'ann lee' and 'ann  lee'; 'José' and 'Jose\u0301': names that differ only" in note.text
    assert "similar-names" not in notes(read("event,ann,bob\nq,.5,.5\n"))


def test_an_event_id_stands_once_in_the_container():
    with pytest.raises(DuplicateError, match="event ids must differ, and 'q' stands twice"):
        op.Forecasts.from_array([[0.5], [0.5], [0.5]], events=["p", "q", "q"])


@pytest.mark.parametrize(
    ("made", "closes", "kept"),
    [
        # Days without times of day last until their end, where forecasts have times of day.
        ("2025-06-09 23:59", "2025-06-09", True),
        ("2025-06-10 00:00", "2025-06-09", False),
        # A midnight that was written is one, and a date alone is the end of its day, whatever other cells have.
        ("2025-06-09 14:00", "2025-06-09 00:00", False),
        ("2025-06-09", "2025-06-09", True),
        ("2025-06-10", "2025-06-09", False),
    ],
)
def test_days_on_which_events_close(tmp_path, made, closes, kept):
    early = "2025-06-01 12:00" if ":" in made else "2025-06-01"
    file = tmp_path / "f.csv"
    file.write_text(
        f"event,expert,probability,time,closes,outcome\nq,ann,.7,{made},{closes},1\nq,bob,.6,{early},{closes},1\n"
    )
    found = op.read_forecasts(file)
    assert len(found.probabilities) == 1 + kept
    assert ("closing-days" in notes(found)) == (":" in made and ":" not in closes)


def test_numbers_at_one_time_are_named_with_their_rows(tmp_path):
    file = tmp_path / "f.csv"
    rows = ["q,ann,.9,2025-01-01,1", "q,ann,.5,2025-01-01,1", "r,ann,.3,2025-01-02,0", "s,bob,.3,2025-01-02,0"]
    # Twice the same is no conflict.
    rows += ["r,ann,.3,2025-01-02,0", "s,bob,.4,2025-01-02,0"]
    file.write_text("event,expert,probability,time,outcome\n" + "\n".join(rows) + "\n")
    with pytest.raises(op.DuplicateError) as caught:
        op.read_forecasts(file, duplicates="last")
    text = f"'ann' on event 'q', 0.9 and 0.5 ({file}, lines 2, 3); 'bob' on event 's', 0.3 and 0.4 ({file}, lines 5, 7)"
    assert text in str(caught.value)
    assert "event 'r'" not in str(caught.value)
    assert caught.value.count == 2


def test_a_category_with_blanks_may_be_what_events_are_about(tmp_path):
    file = tmp_path / "f.csv"
    rows = ["q,ann,.9,sport,1", "q,bob,.8,sport,1", "r,ann,.3,,0", "s,bob,.3,prices,0"]
    file.write_text("event,expert,probability,category,outcome\n" + "\n".join(rows) + "\n")
    assert op.read_forecasts(file).topics is None
    assert op.read_forecasts(file, columns={"topic": "category"}).topics.tolist() == ["sport", "", "prices"]
    # Where events have several, they are classes.
    file.write_text("event,expert,probability,category,outcome\n" + "\n".join([*rows, "q,ann,.1,prices,1"]) + "\n")
    with pytest.raises(op.CellError, match="without its class; --where can leave"):
        op.read_forecasts(file)


BINARY = {
    "replicats_sips2019": (25, 25, 625), "niamey_precip": (92, 4, 368), "midterms2018_538": (504, 3, 1512),
    "replication_markets": (103, 344, 7281), "general_knowledge": (500, 459, 45900),
}  # fmt: skip


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize("name", BINARY)
def test_binary_sets(shared, name):
    path = shared / "data" / f"{name}.csv.gz"
    found = read_forecasts(path)
    assert (*found.shape, len(found.probabilities)) == BINARY[name]
    assert found.classes == (0, 1)
    events, experts = {}, {}
    for row in rows(path):
        i = events.setdefault(row["event"], len(events))
        j = experts.setdefault(row["expert"], len(experts))
        assert found.X[i, j] == float(row["probability"])
        assert found.outcomes[i] == int(row["outcome"])
        if "prior" in row:
            assert found.prior[i] == float(row["prior"])
        if "time" in row:
            assert str(found.times[i].astype("M8[D]")) == row["time"]
    assert (found.events, found.experts) == (tuple(events), tuple(experts))


def test_five_classes(shared):
    path = shared / "data" / "flusight.csv.gz"
    found = read_forecasts(path)
    assert (*found.shape, found.probabilities.shape) == (1484, 24, (29524, 5))
    assert found.classes == ("decrease", "increase", "large_decrease", "large_increase", "stable")
    said = defaultdict(dict)
    outcomes = {}
    for row in rows(path):
        said[row["event"], row["expert"]][row["class"]] = float(row["probability"])
        outcomes[row["event"]] = row["outcome"]
    for event, expert, stated in zip(found.event_index, found.expert_index, found.probabilities, strict=True):
        written = said[found.events[event], found.experts[expert]]
        np.testing.assert_allclose(stated, [written[label] for label in found.classes], rtol=0, atol=2e-6)
    assert [found.classes[i] for i in found.outcomes] == [outcomes[event] for event in found.events]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=0, atol=1.1e-9)
    assert next(note.count for note in found.notes if note.code == "normalised") == 4
