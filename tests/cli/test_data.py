"""Real forecasts from end to end: what comes out is checked against the file, read in another way."""

import csv
import gzip
import json
from collections import Counter

import pytest


@pytest.fixture(params=["replicats_sips2019", "niamey_precip", "replication_markets"])
def real(request, shared):
    path = shared / "data" / f"{request.param}.csv.gz"
    with gzip.open(path, "rt", newline="") as lines:
        return path, list(csv.DictReader(lines))


def test_experts_of_real_forecasts(real, answers):
    path, rows = real
    counts = Counter(row["expert"] for row in rows)
    records = answers("experts", path)
    assert {record["expert"]: int(record["forecasts"]) for record in records} == counts
    weights = [float(record["weight"]) for record in records]
    assert weights == sorted(weights, reverse=True)
    assert all(0 <= float(record["auc"]) <= 1 for record in records)


def test_check_of_real_forecasts(real, command):
    path, rows = real
    page = json.loads(command("check", path, "--format", "json").out)
    ones = Counter(row["expert"] for row in rows if float(row["probability"]) == 1)
    assert {expert["expert"]: expert["ones"] for expert in page["experts"] if expert["ones"]} == ones
    events = {row["event"] for row in rows}
    assert page["summary"]["events"] == len(events)
    experts = {row["expert"] for row in rows}
    assert page["summary"]["missing"] == pytest.approx(1 - len(rows) / len(events) / len(experts), abs=1e-12)
    assert page["summary"]["obstacles"] == []


def test_check_notes_beliefs_of_somebody_who_forecast_nothing(file, command):
    name = file("event,ann,bob\nx,0.3,0.4\ny,0.6,0.7\n")
    said = command("check", name, "--panel", file("[experts.anne]\nauc = 0.9\n", "panel.toml"))
    assert "'anne', who made no forecast; did you mean 'ann'" in " ".join(said.out.split())
