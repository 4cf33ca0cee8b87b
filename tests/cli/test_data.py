"""Real forecasts from end to end: what comes out is checked against the file, read in another way."""

import csv
import gzip
import json
from collections import Counter, defaultdict

import pytest

BINARY = ["replicats_sips2019", "niamey_precip", "midterms2018_538", "replication_markets", "general_knowledge"]


def opened(shared, name):
    path = shared / "data" / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"there is no {path.name}")
    with gzip.open(path, "rt", newline="") as lines:
        return path, list(csv.DictReader(lines))


@pytest.fixture(params=BINARY)
def binary(request, shared):
    return opened(shared, request.param)


@pytest.fixture(params=BINARY[:-1])
def smaller(request, shared):
    """All but the largest, which takes seconds to learn from."""
    return opened(shared, request.param)


def test_every_event_of_real_forecasts_is_pooled(binary, answers):
    path, rows = binary
    outcome = {row["event"]: row["outcome"] for row in rows}
    crowd = Counter(row["event"] for row in rows)
    said = defaultdict(list)
    for row in rows:
        said[row["event"]].append(float(row["probability"]))
    records = answers("pool", path)
    assert [record["event"] for record in records] == list(outcome)
    assert {record["event"]: record["outcome"] for record in records} == outcome
    assert {record["event"]: int(record["experts"]) for record in records} == crowd
    assert all(0 < float(record["probability"]) < 1 for record in records)
    averages = answers("pool", path, "--pool", "average")
    for record in averages:
        floored = [min(max(p, 1e-4), 1 - 1e-4) for p in said[record["event"]]]
        assert float(record["probability"]) == pytest.approx(sum(floored) / len(floored), abs=2e-4)


def test_experts_of_real_forecasts(smaller, answers):
    path, rows = smaller
    counts = Counter(row["expert"] for row in rows)
    records = answers("experts", path)
    assert {record["expert"]: int(record["forecasts"]) for record in records} == counts
    weights = [float(record["weight"]) for record in records]
    assert weights == sorted(weights, reverse=True)
    assert all(0 <= float(record["auc"]) <= 1 for record in records)


def test_check_of_real_forecasts(smaller, command):
    path, rows = smaller
    page = json.loads(command("check", path, "--format", "json").out)
    ones = Counter(row["expert"] for row in rows if float(row["probability"]) == 1)
    assert {expert["expert"]: expert["ones"] for expert in page["experts"] if expert["ones"]} == ones
    events = {row["event"] for row in rows}
    assert page["summary"]["events"] == len(events)
    experts = {row["expert"] for row in rows}
    assert page["summary"]["missing"] == pytest.approx(1 - len(rows) / len(events) / len(experts), abs=1e-12)
    assert page["summary"]["obstacles"] == []


def test_no_small_probability_is_shown_as_zero(smaller, command):
    table = command("pool", smaller[0], "--format", "table").out
    shown = [float(word[:-1]) for line in table.splitlines() for word in line.split() if word.endswith("%")]
    # The answer and the two ends of its interval.
    assert len(shown) >= 3 * len({row["event"] for row in smaller[1]})
    assert all(0 < percent < 100 for percent in shown)


def test_check_looks_at_beliefs_too(file, command):
    name = file("event,ann,bob\nx,0.3,0.4\ny,0.6,0.7\n")
    file("[experts.anne]\nauc = 0.9\n", "panel.toml")
    assert "'anne', who made no forecast; did you mean 'ann'" in " ".join(
        command("check", name, "--panel", "panel.toml").out.split()
    )
    file("[experts.ann]\nauc = 90\n", "panel.toml")
    assert "if 90% is meant, write 0.9" in " ".join(
        command("check", name, "--panel", "panel.toml", status=1).out.split()
    )
