"""Real forecasts from end to end, checked against the file, read in another way; and exports of survey tools."""

import csv
import gzip
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


def test_check_notes_beliefs_of_somebody_who_forecast_nothing(file, command):
    name = file("event,ann,bob\nx,0.3,0.4\ny,0.6,0.7\n")
    said = command("check", name, "--panel", file("[experts.anne]\nauc = 0.9\n", "panel.toml"))
    assert "'anne', who made no forecast; did you mean 'ann'" in " ".join(said.out.split())


LINES = (
    'Frage;Anna;Bernd;Ergebnis\n"F33: Umsatz über 3 Mio. €;\nStichtag: Quartalsende?";0,8;0,6;\nF3: Regen?;0,2;0,3;\n'
)


@pytest.mark.parametrize("typed", ["F33", "F33: Umsatz", r"F33: Umsatz über 3 Mio. €;\nStichtag: Quartalsende?"])
def test_an_event_is_explained_by_how_it_begins_or_as_it_is_printed(typed, file, command):
    assert "F33: Umsatz" in command("explain", file(LINES), typed).err


def test_what_begins_several_events_or_ends_within_a_word_is_not_taken(file, command):
    name = file("event,ann\nrain in May,0.5\nrain in June,0.4\nq10,0.3\n")
    for typed in ("rain", "q1", "rain in Ma"):
        assert "no event is called" in command("explain", name, typed, status=2).err


def test_line_breaks_are_blanks_in_the_report(file, command, tmp_path):
    command("report", file(LINES), "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "€; Stichtag" in page
    assert r"\nStichtag" not in page


def test_units_are_given_for_an_expert_or_a_column(file, answers, command):
    name = file("event;ann;bob\nq1;65;0.9\n")
    rows = answers("pool", name, "--pool", "average", "--unit", "ann=percent")
    assert float(rows[0]["probability"]) == pytest.approx(0.775)


def test_saved_options_hold_units_void_words_and_where_outcomes_are(file, command, answers):
    file("Frage;Ergebnis;Stand\nF1;ja;05.12.2026\nF2;vertagt;\n", "o.csv")
    name = file("Frage;Teilnehmer;Prognose\nF1;ann;65\nF1;b b;0,9\nF2;ann;30\n", "umfrage.csv")
    options = ["--outcomes", "o.csv", "--column", "resolved_at=Stand", "--void-value", "vertagt"]
    options += ["--percent", "--unit", "b b=fraction"]
    command("check", name, *options, "--write-options", "opinionpool.toml")
    told = command("pool", name, "--pool", "average", "--format", "csv")
    assert "resolved_at=Stand" in told.err
    assert told.out == command("pool", name, "--pool", "average", "--format", "csv", *options).out
    rows = answers("pool", name, "--pool", "average")
    assert [(row["event"], row["probability"] == "", row["status"]) for row in rows] == [
        ("F1", False, "resolved"),
        ("F2", True, "void"),
    ]
