"""``explain``, and what ``experts`` and ``check`` say of the panel and of the model."""

import csv
import io
import json

import numpy as np
import pytest

from opinionpool import OpinionPoolWarning, Panel, read_forecasts
from opinionpool.analysis.value import learned_value
from opinionpool.pools.fit import fit_pool


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


def test_without_outcomes_agreement_is_named(file, command):
    """What agreement says of each expert, who never names the one that goes its own way as the best."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, 1))
    x = 1 / (1 + np.exp(-truth - rng.normal(size=(40, 4)) * [0.3, 0.4, 0.5, 3.0]))
    said = command("explain", file(wide(x, [None] * 40, ("ann", "bob", "cy", "dan"))), "q1", "--positive", "1")
    line = next(line for line in said.err.splitlines() if "agreement on 40 events" in line)
    assert all(f"'{name}'" in said.err for name in ("ann", "bob", "cy", "dan"))
    assert "agreement on 40 events says who is likely to know more" in line
    assert said.err.index("'dan'") > max(said.err.index(f"'{name}'") for name in ("ann", "bob", "cy"))


def test_json_holds_all_parts(panel_file, command):
    found = json.loads(command("explain", panel_file, "q59", "--base-rate", "0.2", "--format", "json").out)
    summary = found["summary"]
    total = sum(summary[part] for part in ("start", "intercept", "shift", "members_shift"))
    total += sum(row["adds"] for row in found["experts"])
    assert total == pytest.approx(summary["total"], abs=1e-12)
    assert summary["low"] < summary["probability"] < summary["high"]
    assert summary["in_sample"] is True
    assert summary["base_rate"] == 0.2
    assert summary["event"] == "q59"
    assert {row["expert"] for row in found["experts"]} == {"ann", "bob", "cy"}


def test_tables_fit_80_columns(file, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    x, y = Panel.exchangeable(3, 0.9, 0.4, 1.0).simulate(30, seed=4)
    name = file(wide(x, y, ["a forecaster with a rather long name", "another one of those", "cy"]))
    for pool in ("gaussian", "average", "recalibrated"):
        said = command("explain", name, "q3", "--pool", pool, "--format", "table")
        assert max(map(len, said.out.splitlines())) <= 80
        assert "pooled" in said.out
    assert "in-sample" in said.err


def test_several_classes(file, command):
    rng = np.random.default_rng(5)
    rows = ["event,expert,class,probability,outcome"]
    for t in range(12):
        outcome = "hdw"[rng.integers(3)] if t < 11 else ""
        for name in ("ann", "bob"):
            p = rng.dirichlet([2, 2, 2]).round(3)
            p[2] = 1 - p[0] - p[1]
            rows += [f"m{t},{name},{label},{value:.3f},{outcome}" for label, value in zip("hdw", p, strict=True)]
    name = file("\n".join(rows) + "\n")
    found = list(csv.DictReader(io.StringIO(command("explain", name, "m11", "--format", "csv").out)))
    for label in "hdw":
        *parts, pooled = [row for row in found if row["class"] == label]
        assert sum(float(row["adds"]) for row in parts) == pytest.approx(float(pooled["adds"]), abs=1e-12)
    shares = [float(row["probability"]) for row in found if row["part"] == "pooled"]
    assert sum(shares) == pytest.approx(1.0)
    table = command("explain", name, "m11", "--format", "table")
    assert table.out.split()[0] == "class"
    assert "m11: d " in table.err or "m11: h " in table.err
    summary = json.loads(command("explain", name, "m11", "--format", "json").out)["summary"]
    assert set(summary["probability"]) == set("hdw")


def test_nobody_answered(file, command):
    x, y = Panel.exchangeable(3, 0.9, 0.4, 1.0).simulate(9, seed=4)
    x[8] = np.nan
    name = file(wide(x, [*map(int, y[:8]), None]))
    for pool in ("gaussian", "average"):
        rows = list(csv.DictReader(io.StringIO(command("explain", name, "q9", "--pool", pool, "--format", "csv").out)))
        assert [row["part"] for row in rows] == ["prior", "pooled"]
        assert float(rows[0]["probability"]) == pytest.approx(float(rows[1]["probability"]))


def test_unknown_events_and_pools_that_are_no_sum(panel_file, command):
    said = command("explain", panel_file, "Q60", status=2)
    assert "no event is called 'Q60'; did you mean 'q60'?" in said.err
    said = command("explain", panel_file, "q60", "--pool", "median", status=1)
    assert "the median pool's answer is not a sum" in said.err
    assert "EVENT" in command("explain", panel_file, status=2).err


def test_experts_says_what_the_panel_is_worth(panel_file, command):
    found = json.loads(command("experts", panel_file, "--format", "json").out)["summary"]["together"]
    value = learned_value(fit_pool("gaussian", read_forecasts(panel_file)))
    assert found["auc"] == pytest.approx(value.joint_auc)
    assert found["expected_score"] == pytest.approx(value.joint_score)
    assert found["effective_number"] == pytest.approx(value.effective)
    assert found["redundant"] == []
    assert 0 < found["gain_from_one_more"] < 0.2
    said = command("experts", panel_file, "--format", "csv")
    assert f"all 3 together, if the model holds: implied AUC {value.joint_auc:.3f}" in said.err
    assert "together" not in command("experts", panel_file, "--pool", "average").err


def test_experts_names_those_who_say_nearly_the_same(file, command):
    rng = np.random.default_rng(6)
    y = rng.integers(2, size=400)
    z = rng.standard_normal((400, 3))
    z[:, 1] = z[:, 0] + 0.05 * rng.standard_normal(400)
    x = 1 / (1 + np.exp(-(np.where(y == 1, 1, -1)[:, None] + 1.4 * z)))
    said = command("experts", file(wide(x, y)))
    assert "'ann', 'bob' say nearly the same (correlated at 0.9 or more)" in said.err


def test_nothing_is_worth_anything_before_outcomes(file, command):
    name = file("event,ann,bob\nq1,0.7,0.6\n")
    assert json.loads(command("experts", name, "--format", "json").out)["summary"]["together"] is None
    said = command("explain", name, "q1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert sum(float(row["adds"]) for row in rows[:-1]) == pytest.approx(float(rows[-1]["adds"]))


def test_check_says_what_departs_from_the_model(file, command):
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=80)
    x = np.column_stack([np.where(y == 1, 0.995, 0.005), rng.uniform(0.1, 0.9, 80), rng.uniform(0.1, 0.9, 80)])
    x[:30, 2] = 0.5
    said = command("check", file(wide(x, y)))
    assert "'ann' is right with extreme confidence on 100% of 80 events" in " ".join(said.out.split())
    assert "'cy' says 50% 30 times in 80: a placeholder?" in said.out
    assert "looked for and not found" in said.out
    checks = json.loads(command("check", "forecasts.csv", "--format", "json").out)["summary"]["checks"]
    assert {check["code"] for check in checks if check["serious"]} >= {"leakage", "placeholders"}


def test_clones_are_told_once(file, command):
    rng = np.random.default_rng(8)
    x = rng.uniform(0.1, 0.9, (30, 3)).round(2)
    x[:, 1] = x[:, 0]
    said = " ".join(command("check", file(wide(x, rng.integers(2, size=30)))).out.split())
    assert said.count("'ann', 'bob' say the same on every event") == 1
    assert "not two" not in said


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
