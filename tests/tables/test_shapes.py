"""Shapes of tables, keys, dates, the life of a forecast, and all faults at once: through every door the same."""

import io
import json

import numpy as np
import pytest

from opinionpool.cli.app import run
from opinionpool.errors import ArgumentError, CellError, DuplicateError, LayoutError, TableError
from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.options import ReadOptions, read_options
from opinionpool.tables.read import read_forecasts

from .reading import NAN, read, texts as notes


def test_different_numbers_at_one_time_have_no_last():
    text = "race,model,candidate,prob,date\nR1,m1,smith,0.5,2024-11-04\nR1,m1,jones,0.1,2024-11-04\n"
    with pytest.raises(DuplicateError, match=r"0.5 and 0.1 .*'candidate' distinguishes them") as raised:
        read(text, duplicates="last", columns={"class": None})
    # Rows that a column distinguishes are not merged.
    assert raised.value.remedies == ({"columns": {"class": "candidate"}, "duplicates": "last"},)
    same = text.replace("0.1", "0.5")
    np.testing.assert_allclose(read(same, duplicates="last", columns={"class": None}).X, [[0.5]])
    in_order = read(text, duplicates="last", columns={"class": None, "time": None})
    np.testing.assert_allclose(in_order.X, [[0.1]])


def test_a_forecast_taken_back_counts_under_no_rule():
    text = (
        "event,expert,p,time\nq,a,.9,2025-01-01\nq,a,,2025-01-20\nq,b,.3,2025-01-05\n"
        "r,a,,2025-01-01\nr,a,.4,2025-01-02\n"
    )
    for rule in ("last", "mean"):
        found = read(text, duplicates=rule)
        np.testing.assert_allclose(found.X, [[NAN, 0.3], [0.4, NAN]])
        assert notes(found)["withdrawn"].startswith("1 forecast withdrawn")
    with pytest.raises(DuplicateError, match="'a' on event 'q'"):
        read(text)
    np.testing.assert_allclose(read(text, duplicates="last", as_of="2025-01-10").X, [[0.9, 0.3], [0.4, NAN]])


def test_keys_of_several_columns(tmp_path):
    text = "day,home,who,p,outcome\n1,A,x,.5,1\n1,B,x,.25,\n2,A,x,.75,0\n2,,x,,\n"
    columns = {"event": ["day", "home"], "expert": "who"}
    found = read(text, columns=columns)
    assert found.events == ("1 / A", "1 / B", "2 / A")
    assert "event = day / home" in notes(found)["layout"]
    other = "day,home,result\n1,B,1\n2,A,0\n"
    both = read(text, columns={**columns, "outcome": None}, outcomes=io.BytesIO(other.encode()))
    assert both.outcomes.tolist() == [-1, 1, 0]
    table = {"day": [1, 1, 2], "home": ["A", "B", "A"], "x": [0.5, 0.25, 0.75]}
    assert read_forecasts(table, columns={"event": ["day", "home"]}).events == found.events
    with pytest.raises(ArgumentError, match="outcome is named twice"):
        read(text, columns={"outcome": ["day", "home"]})


@pytest.mark.parametrize(
    ("dates", "order", "instant"),
    [
        (["03/04/2025", "13/04/2025"], None, "2025-04-03"), (["03/04/2025", "04/13/2025"], None, "2025-03-04"),
        (["03/04/2025", "05/06/2025"], "dmy", "2025-04-03"), (["03/04/2025", "05/06/2025"], "mdy", "2025-03-04"),
        (["3.4.25 14:30", "5.6.25 9:05"], "%d.%m.%y %H:%M", "2025-04-03T14:30"),
        (["1/2/2025 3:04 PM", "1/31/2025 12:00 am"], None, "2025-01-02T15:04"),
        (["4 Mar 2025", "March 5th, 2025"], None, "2025-03-04"),
        (["Tue, 04 Mar 2025 10:00:00 GMT", "Wed, 05 Mar 2025 10:00:00 GMT"], None, "2025-03-04T10:00"),
        (["20250304", "20250305"], None, "2025-03-04"), (["1741046400", "1741046401.5"], None, "2025-03-04"),
        (["1741046400000", "1741046400001"], None, "2025-03-04"), (["45720", "45720.5"], None, "2025-03-04"),
    ],
)  # fmt: skip
def test_dates_as_columns_write_them(dates, order, instant):
    rows = "".join(f'q{i},a,0.5,"{date}"\n' for i, date in enumerate(dates))
    found = read("event,expert,p,time\n" + rows, dates=order)
    assert found.times[0] == np.datetime64(instant, "us")


def test_dates_that_could_be_either_are_asked_about():
    with pytest.raises(CellError, match=r"can be read in two ways: say --dates dmy .* --dates mdy") as raised:
        read("event,expert,p,time\nq1,a,.5,03/04/2025\nq2,a,.5,05/06/2025\n")
    assert raised.value.remedies == ({"dates": "dmy"}, {"dates": "mdy"})
    assert read("event,expert,p,time\nq1,a,.5,04/04/2025\n").times[0] == np.datetime64("2025-04-04", "us")
    with pytest.raises(CellError, match="'1741046400000' is not a time"):
        read("event,expert,p,time\nq1,a,.5,1741046400\nq2,a,.5,1741046401\nq3,a,.5,1741046400000\n")


def test_every_fault_of_a_file_in_one_run():
    text = (
        "event,expert,p,time,outcome\nq1,ann,20,01/02/2025,pass\nq1,Ann,90,05/02/2025,pass\nq1,bob,maybe,02/02/2025,pass\n"
        "q2,bob,30,03/02/2025,fail\nq2,bob,35,28/02/2025,fail\nq2,ann,40,28/02/2025,fail\nq2,cy,30,28/02/2025,fail\n"
    )
    found = diagnose(
        {name: list(cells) for name, *cells in zip(*(r.split(",") for r in text.splitlines()), strict=True)}
    )
    kinds = [
        sorted({word for words in fault.options() for word in words if word[:2] == "--"}) for fault in found.faults
    ]
    assert kinds == [["--positive"], ["--percent"], ["--duplicates"], ["--missing-value"], ["--merge-names"]]
    assert [fault.proposed for fault in found.faults] == [False] * 4 + [True]
    for way in found.readable:
        again = read(text, **{name: getattr(way.options, name) for name in way.options.given()})
        np.testing.assert_allclose(again.X, way.forecasts.X)
    assert {way.options.positive for way in found.readable} == {"pass", "fail"}


def test_what_cannot_be_settled_by_an_option_is_shown_without_one():
    found = diagnose({"event": ["q1", "q2"], "a": ["3:1", "2:1"]})
    assert found.readable == ()
    assert "looks like odds" in found.faults[0].text
    assert found.faults[0].options() in ([], [["--exclude", "a"]])


def test_options_in_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a,b,who,num\n1,x,ann,80\n1,y,ann,70\n1,x,bob,60\n1,x,bob,50\n")
    arguments = ["--column", "event=a", "--column", "event=b", "--column", "expert=who", "--column", "probability=num"]
    assert run(["check", "data.csv", *arguments, "--write-options", "opinionpool.toml"]) == 1
    assert "opinionpool pool data.csv" in capsys.readouterr().out
    kept = ReadOptions(**read_options("opinionpool.toml"))
    assert kept.columns["event"] == ("a", "b")
    assert (kept.percent, kept.duplicates) == (True, "last")
    assert run(["pool", "data.csv", "--pool", "average", "--format", "json"]) == 0
    output = capsys.readouterr()
    assert "reading with opinionpool.toml: --column event=a --column event=b" in output.err
    assert [e["probability"] for e in json.loads(output.out)["events"]] == pytest.approx([0.65, 0.7])
    assert run(["pool", "data.csv", "--duplicates", "mean", "--pool", "average", "--format", "json"]) == 0
    assert [e["probability"] for e in json.loads(capsys.readouterr().out)["events"]] == pytest.approx([0.675, 0.7])
    for text, told in (
        ("output = 'x'", "no option of reading is called 'output'"),
        ("percent = 3", "opinionpool.toml: percent must be of type bool"),
        ("outcomes = 3", "opinionpool.toml: outcomes must be of type str"),
    ):
        (tmp_path / "opinionpool.toml").write_text(text)
        assert run(["pool", "data.csv"]) == 2
        assert told in capsys.readouterr().err


def test_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("event,expert,p\nq1,x,0.5\nq2,x,0.25\n")
    (tmp_path / "b.csv").write_text("expert,event,p,note\ny,q1,0.75,\ny,q2,1.5,\n")
    with pytest.raises(CellError, match=r"b\.csv, line 3, column 'p': 1.5"):
        read_forecasts(["a.csv", "b.csv"])
    (tmp_path / "b.csv").write_text("expert,event,p,note\ny,q1,0.75,\n")
    for source in (["a.csv", "b.csv"], "*.csv", "."):
        np.testing.assert_allclose(read_forecasts(source).X, [[0.5, 0.75], [0.25, NAN]])
    (tmp_path / "one").mkdir()
    for name, p in (("ann", 0.5), ("bob", 0.75)):
        (tmp_path / "one" / f"{name}.csv").write_text(f"id,forecast\nq1,{p}\n")
    assert read_forecasts("one").experts == ("ann", "bob")
    assert read_forecasts("one/ann.csv", expert_from_name=True).experts == ("ann",)
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match="none is a directory, and no file in it"):
        read_forecasts("none")


@pytest.mark.parametrize("rows", [30_000])
def test_many_rows_are_read_as_few_are(rows, tmp_path):
    path = tmp_path / "many.csv"
    lines = [
        f" q{i // 3} ,'=x{i % 3},0.{i % 9 + 1},2025-01-{i % 28 + 1:02d}T10:{i % 60:02d}:00Z,{i // 3 % 2}"
        for i in range(rows)
    ]
    lines[7] = lines[7].replace("2025-01-08T10:07:00Z", "")
    path.write_text("\n".join(["event,expert,p,time,outcome", *lines]) + "\n")
    found = read_forecasts(path)
    assert found.events == tuple(f"q{i}" for i in range(rows // 3))
    assert found.experts == ("=x0", "=x1", "=x2")
    assert notes(found)["trimmed"].endswith(f"in {rows:,} cells")
    few = path.with_name("few.csv")
    few.write_text("\n".join(["event,expert,p,time,outcome", *lines[:300]]) + "\n")
    small = read_forecasts(few)
    np.testing.assert_array_equal(small.X, found.X[:100])
    np.testing.assert_array_equal(small.times, found.times[:100])


def test_rows_of_a_forecast_without_class_and_probability_are_asked_about():
    text = (
        ",event;expert;probability;class;time;outcome\nq1;ann;0,45;yes;2025;yes\nq1;ann;0,55;no;2025-03-01;yes\n"
        "q2;bob;0,1;yes;2025-03-03;\nq2;bob;0,9x;;;\n"
    )
    faults = [fault.text for fault in diagnose(io.BytesIO(text.encode())).faults]
    assert any("as 'q2' ('yes') and 'q1'" in fault for fault in faults)


@pytest.fixture
def two(tmp_path):
    def written(large, small):
        for name, text in (("large.csv", large), ("small.csv", small)):
            (tmp_path / name).write_text(text)
        return [tmp_path / "large.csv", tmp_path / "small.csv"]

    return written


def test_columns_of_the_same_events_in_two_files_are_experts_of_each_file(two):
    found = read_forecasts(two("event,run0,run1\nq,.1,.2\nr,.3,.4\n", "event,run0,run1\nq,.5,.6\nr,.7,\n"))
    assert found.experts == ("large run0", "small run0", "large run1", "small run1")
    np.testing.assert_allclose(found.X, [[0.1, 0.5, 0.2, 0.6], [0.3, 0.7, 0.4, np.nan]])
    assert "experts-of-files" in notes(found)


def test_an_expert_who_forecasts_an_event_in_two_files_is_two_unless_times_or_a_rule_say_which_counts(two):
    files = two("event,expert,p\nq,a,.1\nr,a,.3\n", "event,expert,p\nq,a,.5\ns,b,.6\n")
    found = read_forecasts(files)
    assert found.experts == ("large a", "small a", "small b")
    assert read_forecasts(files, duplicates="last").experts == ("a", "b")
    timed = two("event,expert,p,time\nq,a,.1,2026-01-01\n", "event,expert,p,time\nq,a,.5,2026-01-02\n")
    np.testing.assert_allclose(read_forecasts(timed, duplicates="last").X, [[0.5]])
    with pytest.raises(DuplicateError):
        read_forecasts(timed)


def test_rows_are_not_numbered_across_files(two):
    with pytest.raises(LayoutError):
        read_forecasts(two("ann,bob\n.1,.2\n", "ann,bob\n.3,.4\n"))


def test_one_column_of_forecasts_in_each_is_named_after_the_file(two):
    found = read_forecasts(
        two("id,p,logprob\nq,.1,-2\nr,.3,-1\n", "id,p,logprob\nq,.5,-3\nr,.7,-.5\n"),
        columns={"event": "id", "probability": "p"},
    )
    assert found.experts == ("large", "small")
