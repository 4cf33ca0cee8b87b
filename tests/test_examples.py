"""The examples do what they say."""

import csv
import runpy

import pytest
from sklearn.datasets import load_breast_cancer


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_breast_cancer_files_hold_what_they_say(root, tmp_path):
    runpy.run_path(str(root / "examples" / "breast_cancer.py"))["main"](tmp_path)
    cases = read(tmp_path / "breast_cancer.csv")
    truth = {row["event"]: row["outcome"] for row in read(tmp_path / "breast_cancer_truth.csv")}
    data = load_breast_cancer()
    assert list(data.target_names) == ["malignant", "benign"]
    malignant = {f"case_{i + 1:03}": str(1 - benign) for i, benign in enumerate(data.target)}

    assert [case["event"] for case in cases] == list(malignant)
    assert len(truth) == 169
    for case in cases:
        name, outcome = case.pop("event"), case.pop("outcome")
        assert (outcome == "") == (name in truth)
        assert (outcome or truth[name]) == malignant[name]
        assert len(case) == 6
        assert all(0 <= float(p) <= 1 for p in case.values())
    experts = cases[0].keys()
    for expert in experts:
        right = sum(
            (float(case[expert]) > 0.5) == (malignant[name] == "1") for case, name in zip(cases, malignant, strict=True)
        )
        assert right / len(cases) > 0.85, expert


def test_the_assessed_panel_prints_its_answers(root, capsys):
    runpy.run_path(str(root / "examples" / "assessed_panel.py"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["weight", "weight", "weight", "all", "without", "where"]
    everyone, shifted = float(lines[3].split()[-1]), float(lines[5].split()[-1])
    shift = (0.1 / 0.9) / (0.3 / 0.7)
    assert shifted / (1 - shifted) == pytest.approx(shift * everyone / (1 - everyone), rel=0.01)


def test_the_tournament_is_what_its_page_says(root, tmp_path):
    runpy.run_path(str(root / "examples" / "tournament.py"))["main"](tmp_path)
    rows = read(tmp_path / "tournament.csv")
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert sum(row["time"] > row["closes"] for row in rows) == 21
    assert {bool(row["outcome"]) == bool(row["resolved_at"]) for row in rows} == {True}
    assert all(row["closes"] <= row["resolved_at"] for row in rows if row["resolved_at"])
    assert len({row["question"] for row in rows if not row["outcome"]}) == 12
    facts = {(row["question"], row["closes"], row["resolved_at"], row["outcome"]) for row in rows}
    assert len(facts) == len({row["question"] for row in rows}) == 119


def test_the_judges_are_what_their_page_says(root, tmp_path):
    runpy.run_path(str(root / "examples" / "judges.py"))["main"](tmp_path)
    rows = read(tmp_path / "judges.csv")
    assert [row["correct"] != "" for row in rows] == [True] * 150 + [False] * 150
    said = {name: [row[name] for row in rows] for name in rows[0]}
    assert said["small"].count("0.5") > 100
    assert said["strict"].count("") > 15
    assert said["strict"].count("0.0") + said["strict"].count("1.0") > 150
    for row in rows:
        assert abs(float(row["medium"]) - float(row["medium-t1"])) < 0.25


def test_the_systems_file_holds_what_it_says(root, tmp_path, capsys):
    example = runpy.run_path(str(root / "examples" / "systems.py"))
    example["main"](tmp_path)
    rows, truth = read(tmp_path / "systems.csv"), read(tmp_path / "systems_truth.csv")
    assert capsys.readouterr().out.startswith(f"systems.csv: {len(rows)} answers")
    assert {row["system"] for row in rows} == {row["system"] for row in truth} == set(example["SYSTEMS"])
    labelled = [row for row in rows if row["outcome"]]
    assert len(labelled) == 150
    assert {row["system"] for row in labelled} == {"old"}
    for row in truth:
        assert float(row["share"]) == pytest.approx(example["SYSTEMS"][row["system"]], abs=0.07)
