"""``explain``, and what ``experts`` and ``check`` say of the panel and of the model."""

import csv
import io
import json

import numpy as np
import pytest

from opinionpool import OpinionPoolWarning, Panel


def wide(x, y, names=("ann", "bob", "cy")):
    rows = [",".join(["event", *names, "outcome"])]
    for t, (said, outcome) in enumerate(zip(x, y, strict=True), 1):
        cells = ["" if np.isnan(p) else f"{p:.4f}" for p in said]
        rows.append(",".join([f"q{t}", *cells, "" if outcome is None else str(outcome)]))
    return "\n".join(rows) + "\n"


@pytest.fixture
def panel_file(file):
    with pytest.warns(OpinionPoolWarning, match="nested"):
        panel = Panel.from_features([0.8, 1.0, 1.1], 0.5, accuracy=[1.0, 1.5, 0.5], bias=[0.4, 0, -0.3])
    x, y = panel.simulate(60, seed=3)
    x[59, 1] = np.nan
    return file(wide(x, [*map(int, y[:59]), None]))


def test_the_column_adds_up_to_the_answer(panel_file, command):
    said = command("explain", panel_file, "q60", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    *parts, pooled = rows
    assert [row["part"] for row in parts] == ["prior", "intercept", "expert", "expert", "members"]
    total = sum(float(row["adds"]) for row in parts)
    assert total == pytest.approx(float(pooled["adds"]), abs=1e-12)
    assert 1 / (1 + np.exp(-total)) == pytest.approx(float(pooled["probability"]), abs=1e-12)
    for row in parts[2:4]:
        assert float(row["adds"]) == pytest.approx(float(row["weight"]) * float(row["contrast"]), abs=1e-12)
    answers = csv.DictReader(io.StringIO(command("pool", panel_file, "--format", "csv").out))
    (answer,) = (row for row in answers if row["event"] == "q60")
    assert float(answer["probability"]) == pytest.approx(float(pooled["probability"]), abs=1e-12)
    assert "matters most: without it" in said.err
    assert "q60: " in said.err
    assert "in-sample" not in said.err


def test_nobody_answered(file, command):
    x, y = Panel.exchangeable(3, 0.9, 0.4, 1.0).simulate(9, seed=4)
    x[8] = np.nan
    name = file(wide(x, [*map(int, y[:8]), None]))
    for pool in ("gaussian", "average"):
        rows = list(csv.DictReader(io.StringIO(command("explain", name, "q9", "--pool", pool, "--format", "csv").out)))
        assert [row["part"] for row in rows] == ["prior", "pooled"]
        assert float(rows[0]["probability"]) == pytest.approx(float(rows[1]["probability"]))


def test_a_saved_pool_is_explained_as_it_is(panel_file, file, answers, command):
    command("pool", panel_file, "--save", "m.json")
    rows = "event,cy,ann\nnew,0.7,0.9\n"
    found = json.loads(command("explain", file(rows, "new.csv"), "new", "--model", "m.json", "--format", "json").out)
    (answer,) = answers("pool", "new.csv", "--model", "m.json")
    summary = found["summary"]
    assert summary["probability"] == pytest.approx(float(answer["probability"]), abs=1e-12)
    total = sum(summary[part] for part in ("start", "intercept", "members_shift"))
    total += sum(row["adds"] for row in found["experts"])
    assert total == pytest.approx(summary["total"], abs=1e-12)
    assert {row["expert"] for row in found["experts"]} == {"ann", "cy"}
    assert summary["in_sample"] is False
    old = command("explain", panel_file, "q3", "--model", "m.json")
    assert "in-sample" in old.err
    assert "pool from m.json" in old.err
