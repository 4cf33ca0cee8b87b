"""``opinionpool diff``."""

import csv
import io
import json

import pytest

FIRST = """event,ann,bob,cy,outcome
a,0.8,0.7,0.9,1
b,0.2,0.4,0.3,0
c,0.6,0.7,0.4,1
d,0.3,0.1,0.2,0
x,0.7,0.6,0.5,
y,0.3,0.4,0.6,
z,0.5,0.6,0.7,
"""
SECOND = FIRST.replace("b,0.2,0.4,0.3,0", "b,0.2,0.4,0.3,1").replace("x,0.7,0.6,0.5,", "x,0.7,0.6,0.5,1")
SECOND = SECOND.replace("y,0.3,0.4,0.6,", "y,0.3,0.4,0.2,").replace("d,0.3,0.1,0.2,0", "d,0.3,0.1,0.2,void")


@pytest.fixture
def weeks(file, command):
    """Two weeks, and the pools that they leave."""
    command("pool", file(FIRST, "one.csv"), "--save", "one.json")
    command("pool", file(SECOND, "two.csv"), "--model", "one.json", "--save", "two.json")


def moves(out):
    return [
        {key: value if key == "event" else float(value) for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(out))
    ]


def test_what_moved_and_why(weeks, command, answers):
    plain = command("diff", "one.json", "two.json")
    found = moves(plain.out)
    assert [move["event"] for move in found] == ["y", "z"]
    before, after = (
        {
            row["event"]: float(row["probability"])
            for row in answers("pool", f"{name}.csv", "--model", f"{name}.json")
            if row["status"] != "void"
        }
        for name in ("one", "two")
    )
    for move in found:
        assert (move["old"], move["new"]) == pytest.approx((before[move["event"]], after[move["event"]]), abs=1e-12)
        parts = [move[step] for step in ("corrections", "outcomes", "agreement", "forecasts", "beliefs")]
        assert sum(parts) == pytest.approx(move["new"] - move["old"], abs=1e-12)
        assert parts[0] != 0
        assert parts[1] != 0
    assert found[1]["forecasts"] == 0
    assert "4 resolved events before, 4 now" in plain.err
    assert f"x happened ({before['x']:.0%})" in plain.err
    assert "outcomes, dates, topics or learned forecasts corrected: 'b'" in plain.err
    assert "events annulled or no longer there: 'd'" in plain.err
    files = command("diff", "one.json", "two.json", "--files", "one.csv", "two.csv")
    assert moves(files.out) == found


def test_tables_and_json(weeks, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = command("diff", "one.json", "two.json", "--format", "table").out
    assert table.splitlines()[0].split() == [
        "event", "before", "now", "moved", "corrected", "outcomes", "agreement", "forecasts"
    ]  # fmt: skip
    assert max(map(len, table.splitlines())) <= 80
    assert "y moved most, from" in table
    found = json.loads(command("diff", "one.json", "two.json", "--format", "json").out)
    assert {expert["expert"] for expert in found["summary"]["experts"]} == {"ann", "bob", "cy"}
    assert found["summary"]["outcomes_learned"] == ["x"]
    expert = found["summary"]["experts"][0]
    assert expert["weight"] - expert["weight_old"] == pytest.approx(expert["weight_change"])


def test_nothing_moved(weeks, command):
    said = command("diff", "one.json", "one.json", "--format", "table").out
    assert "no answer moved" in said
    assert said.splitlines()[0].split() == ["event", "before", "now", "moved"]


def test_pools_without_weights(file, command):
    command("pool", file(FIRST), "--pool", "median", "--save", "m.json")
    command("pool", file(SECOND, "two.csv"), "--pool", "median", "--save", "n.json")
    said = command("diff", "m.json", "n.json", "--format", "table").out
    assert "expert" not in said.split()
    assert "new or revised forecasts" in said


def test_nothing_is_open_in_both(file, command):
    command("pool", file("event,ann,bob,outcome\na,0.8,0.7,\n", "one.csv"), "--save", "one.json")
    command("pool", file("event,ann,bob,outcome\na,0.8,0.7,1\nb,0.2,0.3,\n", "two.csv"), "--model", "one.json",
            "--save", "two.json")  # fmt: skip
    for kind in ("table", "csv", "json"):
        said = command("diff", "one.json", "two.json", "--format", kind)
        assert "outcomes learned" in (said.err if kind != "table" else said.out)
    command("report", "two.csv", "--since", "one.json", "--repeats", "1", "-o", "page.html")
    with open("page.html", encoding="utf-8") as page:
        assert "No event was open before and is open now." in page.read()
