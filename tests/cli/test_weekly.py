"""The weekly run: a table that is exported again and again, and a pool that goes on learning from it."""

import json
import pathlib

import numpy as np
import pytest

import opinionpool as op
from opinionpool.cli import app as cli
from opinionpool.streams.trained import TrainedPool

from .conftest import THREE_CLASSES

HEAD = "event,expert,probability,time,closes,outcome\n"


def week(number, *, seed=3, questions=40, experts=6):
    """What a tournament exports in a week: questions resolve one after another, and open ones are forecast anew."""
    rng = np.random.default_rng(seed)
    truth = rng.random(questions) < 0.5
    signal = rng.normal(np.where(truth, 1.0, -1.0)[:, None], 1.5, (questions, experts))
    lines = []
    for q in range(questions):
        resolves = 1 + q // 4
        outcome = int(truth[q]) if resolves <= number else ""
        for e in range(experts):
            for made in range(max(1, resolves - 3), min(number, resolves) + 1):
                revised = signal[q, e] + 0.3 * made * (1 if truth[q] else -1) * ((q + e) % 3 - 0.5)
                if (q + e + made) % 4:
                    p = 1 / (1 + np.exp(-revised))
                    day = f"2025-{1 + made // 4:02}-{1 + 7 * (made % 4):02}"
                    close = f"2025-{1 + (resolves + 1) // 4:02}-{1 + 7 * ((resolves + 1) % 4):02}"
                    lines.append(f"q{q},e{e},{p:.3f},{day},{close},{outcome}\n")
    return lines


def run(command, file, name, lines, *options):
    return command(
        "pool", file(HEAD + "".join(lines), name), "--duplicates", "last", *options, "--format", "json", "-v"
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What `run` saves of the fourth week."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "w4.csv").write_text(HEAD + "".join(week(4)))
    assert cli.run(["pool", str(folder / "w4.csv"), "--duplicates", "last", "--save", str(folder / "a.json")]) == 0
    return (folder / "a.json").read_bytes()


@pytest.fixture
def fourth(file, saved):
    """The folder of a test with the table of the fourth week, and the pool saved from it as ``a.json``."""
    file(HEAD + "".join(week(4)), "w4.csv")
    file(saved, "a.json")


def learned(name):
    return op.load(name).learned


def same(one, two, within=1e-12):
    order = [two.experts.index(expert) for expert in one.experts]
    assert one.weights == pytest.approx(two.weights[order], abs=within)
    assert one.prior == pytest.approx(two.prior, abs=within)
    assert one.panel.bias == pytest.approx(two.panel.bias[order], abs=within)
    assert one.posterior.weight_sd(len(order))[-1] == pytest.approx(
        two.posterior.weight_sd(len(order))[order[-1]], abs=within
    )


def test_week_by_week_is_as_from_the_whole(file, command):
    run(command, file, "w2.csv", week(2), "--save", "m2.json")
    for number in range(3, 9):
        options = ["--model", f"m{number - 1}.json", "--save", f"m{number}.json", "--open", "--sort", "closes"]
        said = run(command, file, f"w{number}.csv", week(number), *options)
    whole = run(command, file, "w8.csv", week(8), "--save", "whole.json", "--open", "--sort", "closes")
    same(learned("m8.json"), learned("whole.json"))
    assert op.load("m8.json").stream.fingerprint == op.load("whole.json").stream.fingerprint
    mine, theirs = (json.loads(each.out)["events"] for each in (said, whole))
    assert [event["event"] for event in mine] == [event["event"] for event in theirs]
    assert [event["probability"] for event in mine] == pytest.approx([e["probability"] for e in theirs], abs=1e-12)
    assert [event["closes"] for event in mine] == sorted(event["closes"] for event in mine)
    assert {event["outcome"] for event in mine} == {None}


@pytest.mark.parametrize("dates", ["closes", "none"])
def test_a_week_as_of_a_time_and_then_without_one(file, command, dates):
    lines = week(8)
    if dates == "none":
        lines = [",".join([*line.split(",")[:4], "", line.split(",")[5]]) for line in lines]
    run(command, file, "w.csv", lines, "--as-of", "2025-02-23", "--save", "a.json")
    said = run(command, file, "w.csv", lines, "--model", "a.json", "--save", "b.json")
    assert dates == "closes" or "topic, group or date" not in said.out
    run(command, file, "w.csv", lines, "--save", "whole.json")
    if dates == "closes":
        same(learned("b.json"), learned("whole.json"))
        assert op.load("b.json").stream.fingerprint == op.load("whole.json").stream.fingerprint
    b, whole = (op.load(name).stream.forecasts() for name in ("b.json", "whole.json"))
    np.testing.assert_array_equal(b.by_experts(whole.experts).ages, whole.ages)


def test_the_same_week_twice_changes_nothing(file, fourth, command):
    for one, two in (("a.json", "b.json"), ("b.json", "c.json")):
        said = run(command, file, "w4.csv", week(4), "--model", one, "--save", two)
    assert "16 resolved events learned from before, and not again" in said.err
    same(learned("a.json"), learned("c.json"))
    assert op.load("a.json").stream.open == op.load("c.json").stream.open
    assert (tuple(op.load("c.json").stream.events), op.load("c.json").stream.count) == ((7.0, 9.0), 16)


@pytest.mark.parametrize("question", ["q1", "q17"], ids=["learned from", "open"])
def test_what_is_annulled_is_taken_back(file, fourth, command, question):
    void = [line.rsplit(",", 1)[0] + ",annulled\n" if line.startswith(f"{question},") else line for line in week(4)]
    said = run(command, file, "void.csv", void, "--model", "a.json", "--save", "b.json")
    assert "note: 1 event left out as void" in said.err
    assert "note: 1 event annulled since, and taken back" in said.err
    run(command, file, "void.csv", void, "--save", "whole.json")
    same(learned("b.json"), learned("whole.json"))
    assert question not in op.load("b.json").stream.open
    assert op.load("b.json").stream.fingerprint == op.load("whole.json").stream.fingerprint
    assert "taken back" not in run(command, file, "void.csv", void, "--model", "b.json", "--save", "c.json").err


def test_forecasts_that_are_there_no_more_are_withdrawn(file, fourth, command):
    later = [line for line in week(4) if not line.startswith("q17,e2,")]
    assert len(later) < len(week(4))
    said = run(command, file, "later.csv", later, "--model", "a.json", "--save", "b.json")
    assert "note: 1 forecast on open events withdrawn" in said.err
    run(command, file, "later.csv", later, "--save", "whole.json")
    same(learned("b.json"), learned("whole.json"))


def test_a_file_of_outcomes_alone_withdraws_nothing():
    forecasts = op.Forecasts.from_array([[0.8, 0.7], [0.2, 0.4]], [1, None], events=["a", "b"])
    trained = TrainedPool.fit("average", forecasts)
    outcomes = op.Forecasts.from_array(np.full((1, 2), np.nan), [0], events=["b"])
    after, notes = trained.updated(outcomes)
    assert notes == ()
    whole = op.Forecasts.from_array([[0.8, 0.7], [0.2, 0.4]], [1, 0], events=["a", "b"])
    assert after.stream.fingerprint == TrainedPool.fit("average", whole).stream.fingerprint


def test_annulled_later_than_the_time_of_as_of_is_open(file, command):
    text = (
        "event,expert,probability,time,resolved_at,outcome\n"
        "a,ann,0.8,2025-01-01,2025-01-05,1\nb,ann,0.3,2025-01-01,2025-01-06,0\n"
        "c,ann,0.6,2025-01-02,2025-02-01,void\nd,ann,0.6,2025-01-02,2025-01-03,void\n"
    )
    said = command("pool", file(text), "--as-of", "2025-01-10", "--open")
    assert [line.split(",")[0] for line in said.out.splitlines()] == ["event", "c"]
    assert "1 event annulled after the time of --as-of, taken as open" in said.err
    assert "1 event left out as void" in said.err
    assert "2 events left out as void" in command("pool", "forecasts.csv").err
    assert "2, all resolved, and 2 void" in command("check", "forecasts.csv").out


def test_orders(file, answers, command):
    text = (
        "event,ann,bob,closes,outcome\nd,0.9,0.8,2025-03-01,\nb,0.2,0.9,2025-01-01,1\na,0.6,0.5,,\n"
        "c,0.1,0.2,2025-02-01,\ne,,,2025-04-01,\n"
    )
    file(text)

    def order(*options):
        return "".join(record["event"] for record in answers("pool", "forecasts.csv", *options))

    assert order() == "dbace"
    assert order("--sort", "event") == "abcde"
    assert order("--sort", "closes") == "bcdea"
    assert order("--sort", "closes", "--open") == "cda"
    assert order("--sort", "probability", "--open") == "dac"
    assert order("--sort", "disagreement")[0] == "b"
    said = command("pool", "forecasts.csv", "--open", "--format", "table")
    assert said.out.splitlines()[0].split() == ["event", "probability", "90%", "from", "to", "experts", "closes"]
    assert "2025-03-01" in said.out
    assert "note: 1 open event without a forecast not listed" in said.err


@pytest.mark.parametrize("kind", ["csv", "json", "table"])
def test_nothing_is_open(file, command, kind):
    said = command("pool", file("event,ann,bob,outcome\na,0.9,0.8,1\nb,0.2,0.3,0\n"), "--open", "--format", kind)
    if kind == "json":
        assert json.loads(said.out)["events"] == []
    else:
        header = "event,probability,low,high,experts,outcome,in_sample,status"
        assert said.out.split() == ([header] if kind == "csv" else [
            "event", "probability", "90%", "from", "to", "experts"])  # fmt: skip
    command("pool", file(THREE_CLASSES, "three.csv"), "--open", "--sort", "disagreement", "--format", kind)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_open_events_of_a_file_in_parts(file, command, monkeypatch, kind):
    rows = [f"n{t},0.{t % 8 + 1},0.{t % 7 + 1},2025-03-{t % 28 + 1:02},{t % 2 if t < 60 else ''}" for t in range(90)]
    name = file("\n".join(["event,ann,bob,closes,outcome", *rows]) + "\n")
    whole = command("pool", name, "--open", "--format", kind)
    for limit, size in (("engine.LARGE", 0), ("parts.CELLS", 60)):
        monkeypatch.setattr(f"opinionpool.tables.{limit}", size)
    parts = command("pool", name, "--open", "--format", kind)
    assert parts.out.count("\n") == whole.out.count("\n") > 30
    said = command("pool", name, "--open", "--sort", "closes", status=2)
    assert "a file this large is answered in parts" in said.err


def without(lines, *questions):
    return [line for line in lines if not line.startswith(tuple(f"{question}," for question in questions))]


def test_an_outcome_that_is_blank_again_is_taken_back(file, fourth, command):
    blank = [line[:-2] + "\n" if line.startswith(("q1,", "q3,")) else line for line in week(4)]
    said = run(command, file, "blank.csv", blank, "--model", "a.json", "--save", "b.json")
    assert "note: 2 outcomes taken back: not resolved in this table, and open again" in said.err
    assert "14 resolved events learned from before" in said.err
    run(command, file, "blank.csv", blank, "--save", "whole.json")
    same(learned("b.json"), learned("whole.json"))
    assert op.load("b.json").stream.fingerprint == op.load("whole.json").stream.fingerprint
    assert {"q1", "q3"} <= set(op.load("b.json").stream.open)
    known = {event["event"]: event["in_sample"] for event in json.loads(said.out)["events"]}
    assert (known["q1"], known["q2"]) == (False, True)
    assert set(op.diff(op.load("a.json"), op.load("b.json")).corrections) == {"q1", "q3"}
    assert "taken back" not in run(command, file, "blank.csv", blank, "--model", "b.json", "--save", "c.json").err
    run(command, file, "w4.csv", week(4), "--model", "b.json", "--save", "d.json")
    same(learned("a.json"), learned("d.json"))


def test_a_table_without_any_outcome_takes_none_back(file, fourth, command):
    blank = [line.rsplit(",", 1)[0] + ",\n" for line in week(4)]
    said = run(command, file, "blank.csv", blank, "--model", "a.json", "--save", "b.json")
    assert "taken back" not in said.err
    assert "16 resolved events learned from before" in said.err
    same(learned("a.json"), learned("b.json"))


def test_what_the_table_no_longer_has_is_named_and_kept(file, fourth, command):
    said = run(command, file, "less.csv", without(week(4), "q1", "q17", "q18"), "--model", "a.json", "--save", "b.json")
    notes = " ".join(said.err.split())
    assert "note: 2 open events of the pool not in this table, and kept: 'q17', 'q18'; a row" in notes
    assert "note: 1 resolved event of the pool not in this table, and kept: 'q1'; a row" in notes
    same(learned("a.json"), learned("b.json"))
    # An older table onto a newer pool.
    run(command, file, "w6.csv", week(6), "--save", "c.json")
    said = run(command, file, "w4.csv", week(4), "--model", "c.json", "--save", "d.json")
    notes = " ".join(said.err.split())
    assert "8 outcomes taken back" in notes
    assert "open events of the pool not in this table" in notes
    # Other events alone are an addition.
    run(command, file, "some.csv", without(week(4), "q1", "q17"), "--save", "e.json")
    rest = [line for line in week(4) if line.startswith(("q1,", "q17,"))]
    assert "not in this table" not in run(command, file, "r.csv", rest, "--model", "e.json", "--save", "f.json").err


def test_who_was_renamed_is_named(file, fourth, command):
    renamed = [line.replace(",e2,", ",e2b,") for line in week(4)]
    said = run(command, file, "renamed.csv", renamed, "--model", "a.json", "--save", "b.json")
    notes = " ".join(said.err.split())
    assert "note: 1 expert of the pool without a forecast in this table: 'e2'; new in it: 'e2b' (was 'e2'?)" in notes
    assert "--save without --model" in notes
    again = run(command, file, "renamed.csv", renamed, "--model", "b.json", "--save", "c.json").err
    assert "without a forecast in this table: 'e2'\n" in again


TOPICS = "event,expert,probability,time,closes,outcome,topic\n"


def by_topic(lines):
    return [f"{line.rstrip()},{'xy'[int(line.split(',')[0][1:]) % 2]}\n" for line in lines]


def test_an_older_table_is_answered_by_what_it_does_not_know_and_that_is_noted(file, command):
    run(command, file, "w8.csv", week(8), "--save", "m8.json")
    said = run(command, file, "w7.csv", week(7), "--model", "m8.json")
    assert "4 events open here whose outcome the pool has learned" in said.err
    run(command, file, "w7.csv", week(7), "--model", "m8.json", "--save", "back.json")
    run(command, file, "w7.csv", week(7), "--save", "m7.json")
    same(learned("back.json"), learned("m7.json"))


def test_topics_that_come_later_are_learned_and_that_they_are_missing_is_noted(file, command):
    run(command, file, "w7.csv", week(7), "--save", "m7.json")
    command("pool", file(TOPICS + "".join(by_topic(week(8))), "t8.csv"), "--duplicates", "last", "--save", "t8.json")
    said = command("pool", "t8.csv", "--duplicates", "last", "--model", "m7.json", "--save", "m8.json")
    assert "28 events with another topic, group or date than when they were learned from" in said.err
    one, two = learned("m8.json").topics, learned("t8.json").topics
    assert one.topics == two.topics == ("x", "y")
    assert one.intercept == pytest.approx(two.intercept, abs=1e-12)
    assert "has no column of topics" in run(command, file, "w8.csv", week(8), "--model", "m8.json").err
    shown = command("experts", "t8.csv", "--duplicates", "last", "--format", "table").out
    assert "counts as" in shown
    assert float(shown.partition("counts as")[2].split("\n")[1].split()[1]) == pytest.approx(one.events.max(), abs=0.05)


def test_no_forecast_at_a_horizon_is_an_error_that_says_so(file, command):
    path = file(HEAD + "".join(week(8)), "w8.csv")
    for by in ([], ["--by-time"]):
        said = command("compare", path, "--duplicates", "last", "--horizon", "400d", *by, status=1)
        assert "no forecast was made 400 days or more before its event closed" in said.err


def test_another_rule_for_duplicates_than_before_is_noted(file, command):
    run(command, file, "w3.csv", week(3), "--save", "a.json")
    name = file(HEAD + "".join(week(4)), "w4.csv")
    said = command("pool", name, "--duplicates", "mean", "--model", "a.json", "--save", "b.json")
    assert "note: the pool was made with --duplicates last, and this table is read with mean" in said.err
    assert op.load("b.json").duplicates == "last"
    assert "was made with" not in run(command, file, "w4.csv", week(4), "--model", "a.json", "--save", "c.json").err
    # Files that do not say it are read as before.
    saved = json.loads(pathlib.Path("a.json").read_text())
    del saved["checksum"], saved["content"]["duplicates"], saved["content"]["release"]
    file(json.dumps(saved), "older.json")
    assert op.load("older.json").release is None
    said = command("pool", name, "--duplicates", "mean", "--model", "older.json", "--save", "d.json")
    assert "was made with" not in said.err


@pytest.mark.parametrize(
    ("words", "options"),
    [(("No", "Yes"), []), (("dry", "rain"), ["--positive", "rain"])],
    ids=["yes and no", "words of their own"],
)
def test_a_pool_without_outcomes_takes_the_names_of_the_first_ones(file, command, words, options):
    def named(number):
        return [f"{line[:-2]}{words[int(line[-2])]}\n" if line[-2] != "," else line for line in week(number)]

    def unresolved(number):
        return [line if line[-2] == "," else f"{line[:-2]}\n" for line in week(number)]

    run(command, file, "w1.csv", unresolved(1), "--save", "m1.json")
    run(command, file, "w2.csv", unresolved(2), "--model", "m1.json", "--save", "m2.json")
    assert op.load("m2.json").classes == (0, 1)
    for number in (3, 4):
        saved = ["--model", f"m{number - 1}.json", "--save", f"m{number}.json"]
        run(command, file, f"w{number}.csv", named(number), *saved, *(options if number == 3 else []))
    said = run(command, file, "w4.csv", named(4), "--save", "whole.json", *options)
    assert op.load("m4.json").classes == op.load("whole.json").classes == words
    same(learned("m4.json"), learned("whole.json"))
    assert f"those of outcome {words[1]}, not of {words[0]}" in said.err
    # What is not saved takes the names, too.
    once = run(command, file, "w3.csv", named(3), "--model", "m2.json", *options)
    assert words[1] in {record["outcome"] for record in json.loads(once.out)["events"]}
    assert (
        "beside the gaussian pool"
        in command("check", "w3.csv", "--duplicates", "last", "--model", "m2.json", *options).out
    )
    moved = command("diff", "m2.json", "m3.json", "--format", "json")
    assert json.loads(moved.out)["moves"]


def test_no_is_never_proposed_as_a_word_for_not_resolved(file, command):
    run(command, file, "w2.csv", week(2), "--save", "m2.json")
    later = [f"{line[:-2]}{'No' if line[-2] == '0' else 'Yes'}\n" if line[-2] != "," else line for line in week(3)]
    with_words = command(
        "pool", file(HEAD + "".join(later), "w3.csv"), "--duplicates", "last", "--model", "m2.json", status=1
    )
    assert "--missing-value" not in with_words.err
    assert "Outcomes need the names of the classes" in with_words.err
