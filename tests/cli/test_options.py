"""What the options do, and what is said when they, or the data, are wrong."""

import json

import pytest

from opinionpool import __version__
from opinionpool.errors import OpinionPoolError
from opinionpool.tables.read import read_forecasts

from .conftest import WIDE, probabilities

LONG = """event,expert,probability,time,closes,outcome
q1,A,0.15,2025-01-01T09:00Z,2025-01-01T12:00Z,1
q1,B,0.20,2025-01-01T10:00Z,2025-01-01T12:00Z,1
q1,C,0.99,2025-01-01T13:00Z,2025-01-01T12:00Z,1
q2,A,0.40,2025-01-02T09:00Z,2025-01-03T12:00Z,0
q2,B,0.30,2025-01-04T09:00Z,2025-01-03T12:00Z,0
"""


def test_options_reach_the_reader(file, answers):
    def mean(*arguments):
        return probabilities(answers("pool", *arguments, "--pool", "average"))

    assert mean(file("event,a,b,outcome\nx,50,30,1\ny,20,10,0\n"), "--percent") == pytest.approx([0.4, 0.15])
    assert mean(file("event;a;b\nx;0,5;0,3\n"), "--decimal", ",") == pytest.approx([0.4])
    assert mean(file("event,a,b\nx,0.5,-1\n"), "--missing-value", "-1") == pytest.approx([0.5])
    assert mean(file("event,a,b\nx,0.5,abst\ny,99,0.2\n"), "--missing-value", "abst", "--missing-value", "99") == [
        pytest.approx(0.5),
        pytest.approx(0.2),
    ]
    assert mean(file("event,a,b,c\nx,0.5,0.3,0.9\n"), "--exclude", "c") == pytest.approx([0.4])
    assert mean("forecasts.csv", "--include", "a", "--include", "b") == pytest.approx([0.4])
    assert mean(file("event,expert,probability\nx,a,0.2\nx,a,0.4\n"), "--duplicates", "mean") == pytest.approx([0.3])
    assert mean("forecasts.csv", "--duplicates", "last") == pytest.approx([0.4])
    assert mean(file("what,who,p\nx,a,0.2\n"), "--column", "event=what", "--column", "expert=who") == [0.2]
    assert mean(file(LONG)) == pytest.approx([0.175, 0.4])
    assert mean("forecasts.csv", "--as-of", "2025-01-01T09:30Z")[0] == pytest.approx(0.15)
    assert mean(file("event,é\nx,0.2\n".encode("cp1252")), "--encoding", "cp1252") == [pytest.approx(0.2)]


@pytest.mark.parametrize("arguments", [["frob"], ["pool"], ["pool", "nowhere.csv"], ["pool", "a", "b"]])
def test_wrong_commands_are_status_2(tmp_path, monkeypatch, command, arguments):
    monkeypatch.chdir(tmp_path)
    assert command(*arguments, status=2).err.startswith("opinionpool: error: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("event,expert,probability\nx,A,.1\nx,A,.2\n", "--duplicates"),
        (b"PK\x03\x04xl/worksheets", "CSV"),
        ("event,expert,probability,p_yes\nx,a,0.2,0.3\n", ""),
    ],
)
def test_data_that_do_not_allow_it_are_status_1_and_one_message(file, command, text, told):
    status = 0 if told == "" else 1
    said = command("pool", file(text), status=status)
    if status:
        assert said.err.startswith("opinionpool: error: ")
        first, *ways = said.err.splitlines()
        assert told in first
        # What follows, if anything, are questions, and the command lines that read it.
        assert all(way.startswith("  opinionpool pool ") for way in ways[-1:])
        assert said.out == ""


def test_a_fault_of_the_program_is_one_line_too(file, command, monkeypatch):
    monkeypatch.setattr("opinionpool.cli.pool.read_parts", lambda *_, **__: 1 / 0)
    said = command("pool", file(WIDE), status=1)
    assert said.err.startswith("opinionpool: error: a fault of opinionpool itself")
    assert "ZeroDivisionError" in said.err


def test_an_interruption_is_status_130(file, command, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("opinionpool.cli.pool.read_parts", interrupted)
    assert command("pool", file(WIDE), status=130).err.strip() == "opinionpool: interrupted"


def test_help_and_version(command):
    assert "Commands:" in command(status=2).err
    listed = command("--help").out
    assert "pool" in listed
    assert "..." not in listed.split("Commands:")[1]
    for name in ("pool", "experts", "check"):
        assert "--duplicates" in command(name, "--help").out
    assert command("--version").out.strip() == f"opinionpool {__version__}"


def test_output_to_a_file(file, command, tmp_path):
    printed = command("pool", file(WIDE), "--format", "csv").out
    said = command("pool", "forecasts.csv", "-o", "out.csv")
    assert said.out == ""
    assert (tmp_path / "out.csv").read_text() == printed
    command("pool", "forecasts.csv", "-o", "out.json")
    assert len(json.loads((tmp_path / "out.json").read_text())["events"]) == 8
    command("pool", "forecasts.csv", "-o", "out.txt", "--format", "table")
    assert (tmp_path / "out.txt").read_text().startswith("event  probability")
    command("check", "forecasts.csv", "-o", "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["summary"]["events"] == 8
    command("check", "forecasts.csv", "-o", "out.txt")
    assert (tmp_path / "out.txt").read_text().startswith("file  ")
    command("check", "forecasts.csv", "-o", "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("expert,forecasts,")
    for name in ("out", "OUT.CSV", "out.txt"):
        command("pool", "forecasts.csv", "-o", name)
        assert (tmp_path / name).read_text() == printed
    command("pool", "forecasts.csv", "-o", "out.tsv", "--format", "csv")
    assert (tmp_path / "out.tsv").read_text() == printed
    assert command("pool", "forecasts.csv", "-o", "-", "--format", "csv").out == printed


def test_a_failing_command_leaves_the_output_alone(file, command, tmp_path):
    file("old", "out.csv")
    command("pool", file("event,a\nx,7\n"), "-o", "out.csv", status=1)
    assert (tmp_path / "out.csv").read_text() == "old"


def test_an_input_is_never_written_over(file, command, tmp_path):
    file("event,outcome\na,1\n", "truth.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "truth.csv")
    arguments = ["pool", file("event,x\na,0.5\n"), "--outcomes", "truth.csv", "-o", "link.csv"]
    assert "read from" in command(*arguments, status=2).err
    assert (tmp_path / "truth.csv").read_text().startswith("event")


def test_names_that_look_like_formulas_survive(file, answers, command):
    text = "event,=1+1,@b,outcome\n@SUM(A1),0.5,0.4,1\n-x,0.2,0.3,0\n"
    records = answers("pool", file(text))
    assert [record["event"] for record in records] == ["'@SUM(A1)", "'-x"]
    experts = answers("experts", "forecasts.csv")
    assert sorted(record["expert"] for record in experts) == ["'=1+1", "'@b"]
    assert read_forecasts("forecasts.csv").experts == ("=1+1", "@b")
    said = command("pool", "forecasts.csv", "--format", "json")
    assert [event["event"] for event in json.loads(said.out)["events"]] == ["@SUM(A1)", "-x"]
    assert "note: '@SUM(A1)', '-x', '=1+1' and 1 more would be a formula in a spreadsheet: CSV has" in said.err
    # The answers as forecasts of one expert: the events are the same.
    command("pool", "forecasts.csv", "--format", "csv", "--output", "pooled.csv")
    again = read_forecasts("pooled.csv", columns={"expert": None}, include=["probability"])
    assert again.events == ("@SUM(A1)", "-x")


class TestWeights:
    def test_given_weights_are_used_and_nothing_is_learned(self, file, answers, command):
        name = file(WIDE)
        given = ("--weight", "alice=2", "--weight", "bob=1", "--weight", "carol=1")
        found = answers("pool", name, "--pool", "linear", *given)
        assert probabilities(found) == pytest.approx([0.8, 0.275, 0.575, 0.225, 2 / 3, 0.4, 0.825, 0.5])
        assert {record["in_sample"] for record in found} == {"false"}
        assert "weights as they were given" in command("pool", name, "--pool", "linear", *given).err
        assert "They were given" in command("report", name, "--pool", "linear", *given, "-o", "-").out


def test_help_begins_with_what_is_the_commands_own(command):
    help_ = command("compare", "--help").out
    own, comparison, reading = (help_.index(f"\n{section}:\n") for section in ("Options", "Comparison", "Reading FILE"))
    assert own < comparison < help_.index("--by-time") < reading < help_.index("--outcomes")
    for name in ("pool", "report"):
        assert command(name, "--help").out.count("--panel PANEL.toml") == 1


def test_all_classes_in_their_order(file, command):
    name = file("event,a,b,outcome\nx,0.2,0.3,red\ny,0.4,0.6,red\n")
    found = json.loads(command("pool", name, "--classes", "blue,red", "--format", "json").out)
    assert (found["summary"]["classes"], found["summary"]["positive"]) == (["blue", "red"], "red")
    three = file("event,a:x,a:y,a:z,outcome\ne,0.2,0.3,0.5,y\nf,0.1,0.2,0.7,z\n", "three.csv")
    listed = command("pool", three, "--classes", "z, x, y", "--format", "json", "--pool", "average").out
    assert json.loads(listed)["summary"]["classes"] == ["z", "x", "y"]
    assert read_forecasts(name, classes=["blue", "red"]).classes == ("blue", "red")


def test_every_option_of_reading_is_a_field_and_a_row_of_the_table():
    from dataclasses import fields

    from opinionpool.tables.options import OPTIONS, STAGES, ReadOptions

    names = [field.name for field in fields(ReadOptions) if not field.name.startswith("known_")]
    assert names == list(OPTIONS)
    assert {option.stage for option in OPTIONS.values()} == {*STAGES}
    assert all(option.help for option in OPTIONS.values())


def test_classes_as_they_are_typed():
    from opinionpool.tables.options import OPTIONS, ReadOptions

    options = ReadOptions(classes=("a", "b, c", 'say "no"'))
    assert options.arguments() == ["--classes", 'a,"b, c","say ""no"""']
    assert OPTIONS["classes"].from_words(options.arguments()[1:]) == options.classes


def test_arguments_are_utf_8_in_any_locale(file, root):
    import os
    import subprocess
    import sys

    name = file("event,änn,bob,outcome\nqé,0.9,0.3,1\nq2,0.4,0.6,0\n", "ü.csv")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    environment = os.environ | locale | {"PYTHONPATH": str(root / "src")}
    words = ["pool", name, "--include", "änn", "--missing-value", "ö", "--pool", "average", "--format", "csv"]
    done = subprocess.run(
        [sys.executable, "-m", "opinionpool", *map(str.encode, words)],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[1].startswith("qé,0.")


def test_arguments_that_are_no_text(file, command):
    name = file(WIDE)
    assert r"'\udcff' is no text in UTF-8" in command("pool", name, "--missing-value", "\udcff", status=2).err
    said = command("pool", "no\x1b[31m\udcff.csv", status=2).err
    assert r"no\x1b[31m\udcff.csv" in said
    assert "\x1b" not in said
    for wrong in ({"missing_values": ["\udcff"]}, {"where": "alice = '\udcff'"}, {"encoding": "a\0"}):
        with pytest.raises(OpinionPoolError):
            read_forecasts(name, **wrong)
