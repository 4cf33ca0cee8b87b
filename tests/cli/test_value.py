"""``opinionpool value``: its numbers are those from Python, with and without data."""

import csv
import io
import json

import pytest

import opinionpool as op
from opinionpool.analysis.value import known_panel
from opinionpool.learning.learn import learn

PANEL = """correlation = 0.5
[experts.ann]
auc = 0.9
[experts.bob]
auc = 0.75
[experts.cy]
auc = 0.8
"""


def test_a_panel_without_data(file, command, tmp_path):
    file(PANEL, "panel.toml")
    answer = json.loads(command("value", "--panel", "panel.toml", "--prior", "0.3", "--format", "json").out)
    summary = answer["summary"]
    # Nested evidence and calibration as in the beliefs; accuracies are those of the AUCs.
    beliefs = op.read_beliefs(tmp_path / "panel.toml")
    empty = op.Forecasts.from_array([[float("nan")] * 3], [None], experts=["ann", "bob", "cy"])
    state = learn(empty, prior=0.3, beliefs=beliefs)
    panel = known_panel(state)
    whole = op.panel_value(panel, 0.3)
    assert summary["expected_score"] == pytest.approx(whole.joint_score)
    for row in answer["experts"]:
        rest = [name for name in panel.names if name != row["expert"]]
        assert row["adds"] == pytest.approx(whole.joint_score - op.panel_value(panel.subset(rest), 0.3).joint_score)
        assert row["auc"] == pytest.approx({"ann": 0.9, "bob": 0.75, "cy": 0.8}[row["expert"]])
    adds = [row["adds"] for row in answer["experts"]]
    assert adds == sorted(adds, reverse=True)
    assert summary["gain_from_one_independent"] == pytest.approx(op.gain_from_one_more(panel, 0.3, 0.0).score)
    assert summary["ask_first"][0]["expert"] == "ann"
    assert summary["sensitivity"] == []


def test_experts_of_whom_nothing_is_known(command):
    run = command("value", "--experts", "4", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert [row["expert"] for row in rows] == [f"expert_{i}" for i in range(1, 5)]
    value = op.panel_value(op.Panel.exchangeable(4, correlation=0.6, accuracy=1.0))
    assert f"expected score {value.joint_score:.3f}" in run.err
    assert f"worth {value.effective:.1f} independent experts" in run.err


def test_what_an_open_answer_rests_on(file, command):
    name = file("event,ann,bob,cy\nx,0.7,0.6,0.8\n")
    file(PANEL, "panel.toml")
    run = command("value", name, "--panel", "panel.toml", "--prior", "0.4", "--format", "table")
    assert "x: how the answer depends on 5 beliefs" in run.err
    assert "AUC of ann" in run.err
    assert "calibration (assumed)" in run.err
