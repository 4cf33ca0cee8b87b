"""The real sets of forecasts, compared with what the csv module alone makes of them."""

import csv
import gzip
from collections import defaultdict

import numpy as np
import pytest

from opinionpool.tables.read import read_forecasts

BINARY = {
    "replicats_sips2019": (25, 25, 625), "niamey_precip": (92, 4, 368), "midterms2018_538": (504, 3, 1512),
    "replication_markets": (103, 344, 7281), "general_knowledge": (500, 459, 45900),
}  # fmt: skip


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize("name", BINARY)
def test_binary_sets(shared, name):
    path = shared / "data" / f"{name}.csv.gz"
    found = read_forecasts(path)
    assert (*found.shape, len(found.probabilities)) == BINARY[name]
    assert found.classes == (0, 1)
    events, experts = {}, {}
    for row in rows(path):
        i = events.setdefault(row["event"], len(events))
        j = experts.setdefault(row["expert"], len(experts))
        assert found.X[i, j] == float(row["probability"])
        assert found.outcomes[i] == int(row["outcome"])
        if "prior" in row:
            assert found.prior[i] == float(row["prior"])
        if "time" in row:
            assert str(found.times[i].astype("M8[D]")) == row["time"]
    assert (found.events, found.experts) == (tuple(events), tuple(experts))


def test_five_classes(shared):
    path = shared / "data" / "flusight.csv.gz"
    found = read_forecasts(path)
    assert (*found.shape, found.probabilities.shape) == (1484, 24, (29524, 5))
    assert found.classes == ("decrease", "increase", "large_decrease", "large_increase", "stable")
    said = defaultdict(dict)
    outcomes = {}
    for row in rows(path):
        said[row["event"], row["expert"]][row["class"]] = float(row["probability"])
        outcomes[row["event"]] = row["outcome"]
    for event, expert, stated in zip(found.event_index, found.expert_index, found.probabilities, strict=True):
        written = said[found.events[event], found.experts[expert]]
        np.testing.assert_allclose(stated, [written[label] for label in found.classes], rtol=0, atol=2e-6)
    assert [found.classes[i] for i in found.outcomes] == [outcomes[event] for event in found.events]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=0, atol=1.1e-9)
    assert next(note.count for note in found.notes if note.code == "normalised") == 4
