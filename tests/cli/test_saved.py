"""Pools kept in files by the command line: used as they are, or going on to learn."""

import csv
import io
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import opinionpool as op
from opinionpool.streams.trained import TrainedPool

from .conftest import THREE_CLASSES, WIDE, probabilities

LATER = """event,carol,alice,outcome
a,0.9,0.8,1
i,0.2,0.3,
"""
RESOLVED = WIDE.replace("g,0.9,0.8,0.7,", "g,0.9,0.8,0.7,1") + "i,0.3,0.4,0.2,0\n"


def test_saving_changes_no_answer(file, answers, command):
    plain = answers("pool", file(WIDE))
    assert answers("pool", "forecasts.csv", "--save", "m.json") == plain
    said = command("pool", "forecasts.csv", "--save", "m.json", "--format", "json")
    summary = json.loads(said.out)["summary"]
    assert summary["saved"] == "m.json"
    assert summary["learned_events"] == 6
    assert summary["fingerprint"] == op.load("m.json").stream.fingerprint
    assert summary["fingerprint"][:12] in said.err


def test_new_forecasts_are_pooled_without_learning(file, answers, command):
    command("pool", file(WIDE), "--save", "m.json")
    records = answers("pool", file(LATER, "later.csv"), "--model", "m.json")
    learned = op.load("m.json").learned
    expected = learned.pool([[0.8, np.nan, 0.9], [0.3, np.nan, 0.2]])
    assert probabilities(records) == expected.tolist()
    assert [record["in_sample"] for record in records] == ["true", "false"]


def test_what_is_known_afterwards_is_told_and_not_learned(file, command):
    command("pool", file(WIDE), "--save", "m.json")
    said = command("pool", file(RESOLVED, "more.csv"), "--model", "m.json")
    assert "note: 2 resolved events not learned from: the saved pool is used as it is; --save NEW goes on" in said.err
    assert "6 of 9 answers are in-sample" in said.err


def test_experts_who_are_unknown_are_named(file, command):
    command("pool", file(WIDE), "--save", "m.json")
    more = file("event,alice,dora,outcome\nx,0.3,0.4,1\ny,0.2,0.1,\n", "more.csv")
    said = command("pool", more, "--model", "m.json", status=1)
    assert "error: 'dora' is unknown to the pool in m.json" in said.err
    said = command("pool", file("event,x,z\na,0.8,0.7\nb,0.2,0.4\n", "others.csv"), "--model", "m.json", status=1)
    assert "error: no expert is known to the pool in m.json, which is of" in said.err
    assert "Was it made with another --column expert=NAME?" in said.err
    assert said.out == ""
    command("pool", more, "--model", "m.json", "--exclude", "dora")
    command("pool", more, "--model", "m.json", "--save", "n.json")
    assert op.load("n.json").experts == ("alice", "bob", "carol", "dora")


def test_priors_of_the_answers(file, answers, command):
    command("pool", file(WIDE), "--save", "m.json")
    learned = op.load("m.json").learned
    (record,) = answers("pool", file("event,alice\nx,0.3\n", "x.csv"), "--model", "m.json", "--prior", "0.2")
    assert float(record["probability"]) == learned.pool([0.3, np.nan, np.nan], 0.2)
    text = "event,alice,prior\nx,0.3,0.4\ny,0.3,\n"
    records = answers("pool", file(text, "x.csv"), "--model", "m.json", "--column", "prior=prior")
    expected = learned.pool([[0.3, np.nan, np.nan]] * 2, [0.4, 0.5])
    assert probabilities(records) == expected.tolist()


@pytest.mark.parametrize("kind", [op.GaussianPool, op.LinearPool, op.LogPool, op.AveragePool, op.BetaLinearPool])
def test_every_pool(file, answers, command, kind):
    before = answers("pool", file(WIDE), "--pool", kind.rule, "--save", "m.json")
    assert answers("pool", "forecasts.csv", "--model", "m.json") == before
    loaded, forecasts = op.load("m.json"), op.read_forecasts("forecasts.csv")
    assert loaded.predict_proba(forecasts.X)[:, 1].tolist() == probabilities(before)
    asked = replace(forecasts, prior=np.append(np.full(len(forecasts.events) - 1, 0.3), np.nan))
    with warnings.catch_warnings(action="ignore"):
        pool = kind().fit(forecasts)
    for given in (forecasts, asked):
        both = pool.predict_proba(given)
        assert loaded.predict_proba(given) == pytest.approx(both, abs=1e-12)


def test_classes_are_those_of_the_pool(file, answers, command):
    text = WIDE.replace(",1\n", ",won\n").replace(",0\n", ",lost\n")
    command("pool", file(text), "--positive", "won", "--save", "m.json")
    assert op.load("m.json").classes == ("lost", "won")
    records = answers("pool", file(LATER.replace(",1\n", ",won\n"), "later.csv"), "--model", "m.json")
    assert [record["outcome"] for record in records] == ["won", ""]
    said = command("pool", file(LATER.replace(",1\n", ",drawn\n"), "later.csv"), "--model", "m.json", status=1)
    assert "line 2, column 'outcome': outcome 'drawn' is none of the classes: 'lost', 'won', in 1 row" in said.err
    command("pool", file(THREE_CLASSES, "three.csv"), "--save", "k.json")
    before = answers("pool", "three.csv", "--save", "k.json")
    assert answers("pool", "three.csv", "--model", "k.json") == before
    assert "error" in command("pool", "three.csv", "--model", "m.json", status=1).err


def test_pools_that_python_saved(file, answers, command):
    x = [[0.8, 0.7], [0.2, 0.4], [0.6, 0.7], [0.3, 0.1]]
    pool = op.GaussianPool().fit(x, [1, 0, 1, 0])
    pool.save(file("", "e.json"))
    text = "event,expert_1,expert_2,outcome\nx,0.4,0.3,\n"
    (record,) = answers("pool", file(text, "x.csv"), "--model", "e.json")
    expected = pytest.approx(float(pool.predict_proba([[0.4, 0.3]])[0, 1]), abs=1e-9)
    assert float(record["probability"]) == expected
    said = command("pool", "x.csv", "--model", "e.json", "--save", "n.json", status=1)
    assert "saved without what it learned from" in said.err
    op.GaussianPool().partial_fit(x, [1, 0, 1, 0]).save("e.json")
    # One that goes on learning knows the new event as an open one.
    again = op.GaussianPool().fit([*x, [0.4, 0.3]], [1, 0, 1, 0, None]).predict_proba([[0.4, 0.3]])[0, 1]
    found = probabilities(answers("pool", "x.csv", "--model", "e.json", "--save", "n.json"))
    assert found == [pytest.approx(float(again), abs=1e-9)]
    assert isinstance(op.load("n.json"), TrainedPool)
    op.save(op.Panel.exchangeable(2), "e.json")
    said = command("pool", "x.csv", "--model", "e.json", status=1)
    assert "a Panel is saved there, which has not learned from any events" in said.err


def test_beliefs_go_on(file, command):
    file("correlation = { value = 0.9, worth = 50 }\n", "panel.toml")
    command("pool", file(WIDE), "--panel", "panel.toml", "--save", "m.json")
    assert str(op.load("m.json").options["beliefs"]) == "correlation 0.9 (worth 50)"
    command("pool", file(RESOLVED, "more.csv"), "--model", "m.json", "--save", "n.json")
    command("pool", "more.csv", "--panel", "panel.toml", "--save", "p.json")
    weights = [op.load(name).learned.weights for name in ("n.json", "p.json")]
    assert weights[0] == pytest.approx(weights[1], abs=1e-9)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_files_larger_than_memory(file, command, monkeypatch, kind):
    """A file in parts gives what it gives at once, to rounding: products of matrices of other sizes differ in it."""
    rng = np.random.default_rng(0)
    lines = ["event,alice,carol,outcome"]
    for t in range(90):
        outcome = ["0", "1", ""][t % 3]
        lines.append(f"n{t},{rng.uniform(0.05, 0.95):.3f},{rng.uniform(0.05, 0.95):.3f},{outcome}")
    command("pool", file(WIDE), "--save", "m.json")
    text = "\n".join([*lines, "a,0.8,0.9,1"]) + "\n"
    whole = command("pool", file(text, "large.csv"), "--model", "m.json", "--format", kind)
    monkeypatch.setattr("opinionpool.tables.engine.LARGE", 0)
    monkeypatch.setattr("opinionpool.tables.parts.CELLS", 60)
    parts = command("pool", "large.csv", "--model", "m.json", "--format", kind)
    assert parts.out.count("\n") == whole.out.count("\n") > 90
    assert "61 resolved events not learned from" not in parts.err
    assert "60 resolved events not learned from" in parts.err
    assert sorted(parts.err.splitlines()) == sorted(whole.err.splitlines())
    if kind == "json":
        one, two = json.loads(whole.out), json.loads(parts.out)
        assert one["summary"]["fingerprint"] == two["summary"]["fingerprint"]
        one, two = one["events"], two["events"]
    else:
        one, two = (list(csv.DictReader(io.StringIO(each.out))) for each in (whole, parts))
    for left, right in zip(one, two, strict=True):
        assert left.keys() == right.keys()
        for name in left:
            if name in {"probability", "low", "high"}:
                assert float(right[name]) == pytest.approx(float(left[name]), rel=1e-14)
            else:
                assert right[name] == left[name]


def test_experts_of_a_saved_pool(file, answers, command):
    command("pool", file(WIDE), "--save", "m.json")
    learned = op.load("m.json").learned
    records = answers("experts", file(LATER, "later.csv"), "--model", "m.json")
    assert {r["expert"]: float(r["weight"]) for r in records} == dict(
        zip(learned.experts, learned.weights.tolist(), strict=True)
    )
    assert {r["expert"]: r["forecasts"] for r in records} == {"alice": "2", "bob": "0", "carol": "2"}
    said = command("experts", "later.csv", "--model", "m.json")
    assert "pool from m.json: gaussian pool, 3 experts, 6 resolved events" in said.err


def test_the_report_of_a_saved_pool(file, answers, command):
    command("pool", file(WIDE), "--save", "m.json")
    grown = file(RESOLVED.replace("g,0.9,0.8,0.7,1", "g,0.9,0.8,0.2,") + "j,0.8,0.6,0.9,\n", "more.csv")
    command("pool", grown, "--model", "m.json", "--save", "n.json")
    command("report", grown, "--model", "n.json", "--since", "m.json", "--repeats", "1", "-o", "r.html")
    with open("r.html", encoding="utf-8") as page:
        text = page.read()
    assert "Answers, weights and features are those of the pool saved in n.json" in text
    changed = text.partition('<section id="changes">')[2].partition("</section>")[0]
    assert "Since <bdi>m.json</bdi> was saved" in changed
    assert "new or revised forecasts" in changed
    command("report", grown, "--since", "m.json", "--repeats", "1", "-o", "s.html")
    with open("s.html", encoding="utf-8") as page:
        assert changed == page.read().partition('<section id="changes">')[2].partition("</section>")[0]
    command("report", "more.csv", "--model", "m.json", "--repeats", "1", "-o", "t.html")
    answer = next(r for r in answers("pool", "more.csv", "--model", "m.json") if r["event"] == "j")
    with open("t.html", encoding="utf-8") as page:
        assert f"<b>{float(answer['probability']):.0%}</b>" in page.read()


def test_a_file_is_checked_beside_a_saved_pool(file, command):
    command("pool", file(WIDE), "--save", "m.json")
    head, *rows = RESOLVED.splitlines()
    lines = [head.replace("outcome", "dora,outcome"), *(",0.4,".join(row.rsplit(",", 1)) for row in rows)]
    said = command("check", file("\n".join(lines) + "\n", "more.csv"), "--model", "m.json")
    assert "beside the gaussian pool in m.json, which has learned from 6 resolved events" in said.out
    assert "'dora' is unknown to the pool" in said.out
    assert "2 resolved events not learned from" in said.out
    assert "6 resolved events learned from before, and not again" in said.out
    assert "in the way" in command("check", file(THREE_CLASSES, "three.csv"), "--model", "m.json", status=1).out
