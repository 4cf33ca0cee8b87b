"""What pool, experts and check print, in every format."""

import json
import math
from types import SimpleNamespace

import pytest

from opinionpool.estimation import sampling
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.pools import NAMES
from opinionpool.pools.fit import in_sample_note

from .conftest import WIDE, probabilities

SAID = [
    [0.8, 0.7, 0.9], [0.2, 0.4, 0.3], [0.6, 0.7, 0.4], [0.3, 0.1, 0.2], [0.7, 0.6, math.nan], [0.4, 0.5, 0.3],
    [0.9, 0.8, 0.7], [math.nan] * 3,
]  # fmt: skip
HAPPENED = [1, 0, 1, 0, 1, 0, None, None]


def test_every_event_comes_back_in_full_precision_and_in_order(file, answers):
    records = answers("pool", file(WIDE))
    learned = learn(Forecasts.from_array(SAID, HAPPENED))
    assert probabilities(records) == pytest.approx(learned.pool(SAID), rel=1e-14)
    assert [record["event"] for record in records] == list("abcdefgh")
    assert [record["experts"] for record in records] == list("33332330")
    assert [record["outcome"] for record in records] == ["1", "0", "1", "0", "1", "0", "", ""]
    assert [record["in_sample"] for record in records] == ["true"] * 6 + ["false"] * 2


def test_an_event_without_forecasts_gets_the_prior(file, answers, command):
    assert probabilities(answers("pool", file(WIDE), "--prior", "0.3"))[-1] == pytest.approx(0.3, abs=1e-15)
    said = command("pool", file(WIDE), "--format", "table")
    assert said.out.splitlines()[-1].split()[:3] == ["h", "50.0%", "0"]
    assert "no forecast: the prior" in said.out
    assert "1 event without a forecast got the prior" in said.err


def test_the_summary_on_standard_error(file, command):
    said = command("pool", file(WIDE), "--prior", "20%", "--base-rate", "0.1", "--pool", "linear")
    lines = said.err.splitlines()
    assert lines[0] == "8 events, 6 resolved; 3 experts, 20 forecasts, 16.7% missing"
    assert lines[1] == "linear pool; prior 20.0% (as given); base rate 10.0%"
    assert all(line.startswith("note: ") for line in lines[2:])


@pytest.mark.parametrize(("resolved", "prior"), [((1, 9), 2 / 12), ((5, 0), 6 / 7)])
def test_the_prior_is_laplaces_unless_given(file, command, resolved, prior):
    ones, zeros = resolved
    rows = [f"e{i},{0.3 + 0.04 * i},{int(i < ones)}" for i in range(ones + zeros)]
    page = json.loads(command("pool", file("\n".join(["event,a,outcome", *rows])), "--format", "json").out)
    assert page["summary"]["prior"] == pytest.approx(prior, abs=1e-15)


def test_a_prior_that_nothing_was_estimated_from_is_said_to_be_assumed(file, command):
    text = "event,a,b,outcome\nx,0.3,0.4,\ny,0.6,0.7,\n"
    said = command("pool", file(text)).err
    assert "prior 50.0% (assumed, as no event is resolved; give --prior)" in said
    assert "Laplace" not in said
    assert "share a prior" not in said
    told = "the experts are taken to share a prior of 50.0%"
    assert told in command("pool", "forecasts.csv", "--base-rate", "1%").err
    assert told not in command("pool", "forecasts.csv", "--base-rate", "1%", "--prior", "0.5").err
    resolved = file(text.replace("0.4,", "0.4,1"), "resolved.csv")
    said = command("pool", resolved, "--base-rate", "1%").err
    assert told not in said
    assert "prior 66.7% (estimated from the resolved events)" in said


def test_one_kind_of_outcome_is_told_by_every_command_whose_pool_learns(file, command):
    text = "event,a,b,outcome\nx,0.3,0.4,1\ny,0.6,0.7,1\nz,0.6,0.7,\n"
    told = "note: every resolved event has outcome 1, which says little about whom to believe\n"
    assert command("pool", file(text)).err.count(told) == 1
    assert command("experts", "forecasts.csv").err.count(told) == 1
    assert command("check", "forecasts.csv").out.count(told.removeprefix("note: ").strip()) == 1
    assert told not in command("pool", "forecasts.csv", "--pool", "average").err
    assert told not in command("pool", file(text.replace("0.7,1", "0.7,0"))).err


@pytest.mark.parametrize("pool", NAMES)
def test_experts_of_every_pool_have_a_row_each(file, command, pool):
    table = command("experts", file(WIDE), "--pool", pool, "--format", "table").out
    assert len(table.splitlines()) == 4


def test_of_a_sample_no_answer_claims_more_than_it_was_learned_from(file, command, monkeypatch):
    monkeypatch.setattr(sampling, "EVENTS", 4)
    monkeypatch.setattr("opinionpool.tables.engine.LARGE", 0)
    shown = " ".join(command("pool", file(WIDE), "--pool", "linear").err.split())
    assert "4 of 6 resolved events were used to learn" in shown
    assert "6 of 8 answers are in-sample: the pool knew these outcomes, but has learned from 4 events only" in shown
    learned = SimpleNamespace(notes=(sampling.sample_note(4, 6),))
    assert "the pool knew its outcome, which may be among the 4 that" in in_sample_note(learned).text


CLASSES = """event,expert,class,probability,outcome
a,x,sun,0.7,sun
a,x,rain,0.2,sun
a,x,snow,0.1,sun
b,x,sun,0.1,rain
b,x,rain,0.6,rain
b,x,snow,0.3,rain
c,x,sun,0.2,
c,x,rain,0.2,
c,x,snow,0.6,
"""


def test_several_classes_have_a_row_each(file, answers, command):
    records = answers("pool", file(CLASSES), "--pool", "average")
    assert [record["event"] for record in records] == list("aaabbbccc")
    by_class = {(r["event"], r["class"]): float(r["probability"]) for r in records}
    assert by_class["c", "snow"] == pytest.approx(0.6)
    assert [record["outcome"] for record in records] == ["sun"] * 3 + ["rain"] * 3 + [""] * 3
    page = json.loads(command("pool", "forecasts.csv", "--pool", "average", "--format", "json").out)
    assert {(e["event"], k): p for e in page["events"] for k, p in e["probabilities"].items()} == by_class
    assert "probability" not in page["events"][0]
    table = [line.split() for line in command("pool", "forecasts.csv", "--format", "table").out.splitlines()]
    assert [line[0] for line in table] == ["event", "a", "snow", "sun", "b", "snow", "sun", "c", "snow", "sun"]
    assert [line[1] for line in table if "in-sample" in line] == ["rain", "rain"]
    assert [line[0] for line in table if line[-1] == "happened"] == ["sun"]
    assert table[4][-2:] == ["happened,", "in-sample"]


def test_a_prior_of_several_classes(file, command):
    three = ["--prior", "sun=50%", "--prior", "rain=0.3", "--prior", "snow=0.2"]
    page = json.loads(command("pool", file(CLASSES), *three, "--format", "json").out)
    assert page["summary"]["prior"] == pytest.approx({"sun": 0.5, "rain": 0.3, "snow": 0.2})
    for wrong, told in [
        (three[:4], "a number for each"),
        ([*three[:5], "snow=0.3"], "add up to 1.1"),
        ([*three[:5], "hail=0.2"], "'hail' is not a class"),
        (["--prior", "0.3"], "a number for each"),
    ]:
        assert told in command("pool", "forecasts.csv", *wrong, status=2).err


def test_experts_are_listed_by_weight(file, answers, command):
    records = answers("experts", file(WIDE))
    learned = learn(Forecasts.from_array(SAID, HAPPENED, experts=["alice", "bob", "carol"]))
    by_name = dict(zip(learned.experts, learned.weights.tolist(), strict=True))
    assert [float(record["weight"]) for record in records] == sorted(by_name.values(), reverse=True)
    assert {record["expert"]: float(record["weight"]) for record in records} == by_name
    position = {name: i for i, name in enumerate(learned.experts)}
    for name in ("bias", "calibration", "accuracy"):
        alone = getattr(learned.marginal, name).ravel()
        assert [float(r[name]) for r in records] == pytest.approx([alone[position[r["expert"]]] for r in records])
    assert {r["expert"]: (r["forecasts"], r["resolved"]) for r in records} == {
        "alice": ("7", "6"),
        "bob": ("7", "6"),
        "carol": ("6", "5"),
    }
    page = json.loads(command("experts", "forecasts.csv", "--format", "json").out)
    assert [float(record["auc"]) for record in records] == [expert["auc"] for expert in page["experts"]]


def test_nothing_is_said_of_experts_when_nothing_was_learned(file, answers):
    (record, _) = answers("experts", file("event,a,b\nx,0.3,0.4\ny,0.6,0.7\n"))
    assert (record["bias"], record["calibration"], record["accuracy"], record["auc"]) == ("", "", "", "")


def test_an_expert_who_is_worse_than_guessing_has_an_area_below_a_half(file, answers, command):
    happened = [i % 2 for i in range(80)]
    rows = [f"e{i},{0.3 + 0.4 * y + i % 5 / 50},{0.7 - 0.4 * y + i % 3 / 30},{y}" for i, y in enumerate(happened)]
    file("\n".join(["event,strong,weak,outcome", *rows]))
    records = {record["expert"]: record for record in answers("experts", "forecasts.csv")}
    assert float(records["strong"]["auc"]) > 0.5 > float(records["weak"]["auc"])
    assert float(records["weak"]["calibration"]) < 0
    assert "1 expert with a calibration below 0" in command("experts", "forecasts.csv").err


def test_check_describes_the_file(file, command):
    said = command("check", file(WIDE))
    assert "8, 6 resolved" in said.out
    assert "'0' 3 times, '1' 3 times" in said.out
    assert "20, 16.7% missing" in said.out
    assert "nothing: these forecasts can be pooled" in said.out
    assert said.out.splitlines()[-2:] == ["To read it, type", "  opinionpool pool forecasts.csv"]
    assert said.out.splitlines()[-6].split() == ["alice", "7", "6", "0", "0", "0"]
    page = json.loads(command("check", "forecasts.csv", "--format", "json").out)
    assert page["summary"]["obstacles"] == []
    assert [expert["halves"] for expert in page["experts"]] == [0, 1, 0]


def test_check_says_what_stands_in_the_way_and_goes_on(file, command):
    text = "event,expert,probability,outcome\nq1,A,0.2,1\nq1,A,0.8,1\nq1,B,0.5,1\nq2,B,0.5,0\n"
    said = command("check", file(text), status=1)
    assert "--duplicates" in said.out
    assert "2, all resolved" in said.out
    assert said.err.splitlines()[-1] == "opinionpool: error: something stands in the way; see above"
    assert "--duplicates" in command("check", "forecasts.csv", "--format", "csv", status=1).err
    assert "--duplicates" in command("check", "forecasts.csv", "-o", "report.txt", status=1).err
    page = json.loads(command("check", "forecasts.csv", "--format", "json", status=1).out)
    assert len(page["summary"]["obstacles"]) == 1
    assert command("check", "forecasts.csv", "--duplicates", "mean").err


def test_check_without_outcomes(file, command):
    said = command("check", file("event,a,b\nx,0.3,0.4\ny,0.6,0.7\n"))
    assert "no event is resolved" in said.out
    assert "--outcomes" in said.out


def test_nobody_knows_between_what_the_prior_lies_where_only_constant_experts_answered(file, answers, command):
    rows = "".join(f"e{t},{0.2 + 0.01 * t},0.3,{t % 2}\n" for t in range(30)) + "x,,0.3,\n"
    records = answers("pool", file("event,a,b,outcome\n" + rows))
    assert (records[-1]["low"], records[-1]["high"], records[-1]["experts"]) == ("", "", "1")
    assert all(float(r["low"]) < float(r["probability"]) < float(r["high"]) for r in records[:-1])
    said = command("pool", file("event,b,outcome\n" + "".join(f"e{t},0.3,{t % 2}\n" for t in range(30))))
    same = "every expert who forecast a resolved event always gave the same forecast"
    assert f"{same}, so nothing was learned, and the answers" in said.err
    assert "'b' always gave the same forecast and got weight 0" in said.err
