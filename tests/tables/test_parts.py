"""Files that are read in parts, against the same files read at once."""

from __future__ import annotations

import io
import json
import sys

import duckdb
import numpy as np
import pytest

from opinionpool.cli import app as cli
from opinionpool.errors import CellError, DuplicateError, Note
from opinionpool.findings import added_up, finding
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import expit
from opinionpool.tables import engine, parts
from opinionpool.tables.event_facts import Spans
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.parts import open_parts
from opinionpool.tables.read import read_forecasts

EVENTS, EXPERTS = 90, 4


@pytest.fixture
def small_parts(monkeypatch):
    """Everything is large, and parts are small."""
    monkeypatch.setattr(engine, "LARGE", 0)
    monkeypatch.setattr(parts, "CELLS", 60)


def said(seed: int = 0, missing: float = 0.2) -> tuple[np.ndarray, list[str]]:
    """Probabilities (T, N), NaN where missing, and outcomes, "" where open."""
    rng = np.random.default_rng(seed)
    y = rng.random(EVENTS) < 0.4
    z = rng.normal(size=(EVENTS, 1)) + rng.normal(size=(EVENTS, EXPERTS)) + np.where(y, 1.0, -1.0)[:, None]
    q = np.round(expit(z), 3)
    q[rng.random(q.shape) < missing] = np.nan
    known = rng.random(EVENTS) < 0.8
    return q, [str(int(value)) if k else "" for value, k in zip(y, known, strict=True)]


def cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def wide(q: np.ndarray, outcomes: list[str], prior: bool) -> str:
    lines = [",".join(["event", *(f"e{i}" for i in range(EXPERTS)), *(["prior"] if prior else []), "outcome"])]
    for t, row in enumerate(q):
        lines.append(",".join([f"q{t}", *map(cell, row), *([f"{0.3 + 0.004 * t:.3f}"] if prior else []), outcomes[t]]))
    return "\n".join(lines) + "\n"


def long(q: np.ndarray, outcomes: list[str], prior: bool, shuffled: bool) -> str:
    rows = [
        ",".join([f"q{t}", f"e{i}", cell(q[t, i]), *([f"{0.3 + 0.004 * t:.3f}"] if prior else []), outcomes[t]])
        for t in range(EVENTS)
        for i in range(EXPERTS)
        if not np.isnan(q[t, i])
    ]
    if shuffled:
        rows = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    return "\n".join([f"event,expert,probability{',prior' if prior else ''},outcome", *rows]) + "\n"


def classes(outcomes: list[str]) -> str:
    """A wide table of three classes."""
    rng = np.random.default_rng(2)
    labels = ("away", "draw", "home")
    lines = [",".join(["event", *(f"e{i}:{label}" for i in range(EXPERTS) for label in labels), "outcome"])]
    for t, outcome in enumerate(outcomes):
        happened = labels[int(outcome) + t % 2] if outcome else ""
        p = rng.dirichlet(np.ones(3) + 2 * np.array([label == happened for label in labels]), size=EXPERTS)
        p[:, 2] = 1 - p[:, :2].round(3).sum(axis=1)
        lines.append(",".join([f"q{t}", *(f"{value:.3f}" for value in p.ravel()), happened]))
    return "\n".join(lines) + "\n"


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        status = cli.run(list(arguments))
        return status, sys.stdout.getvalue(), sys.stderr.getvalue()
    finally:
        sys.stdout, sys.stderr = out, err


def compare_checks(path: str, monkeypatch: pytest.MonkeyPatch, told: set[str]) -> None:
    """Check that what is in the file is the same both ways, and what is said of the model on all of so few events."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "LARGE", 1 << 60)
        whole = json.loads(run("check", path, "--format", "json")[1])
    # The whole is not read, so that memory is bounded.
    monkeypatch.setattr("opinionpool.tables.diagnosis.diagnose", None)
    divided = json.loads(run("check", path, "--format", "json")[1])
    notes = [each["summary"].pop("notes") for each in (divided, whole)]
    assert divided == whole
    assert {note["code"] for note in notes[0]} - told == {note["code"] for note in notes[1]}


def compare(path: str, monkeypatch: pytest.MonkeyPatch, *options: str, told: set[str] = frozenset()) -> dict:
    """Check that the command says the same both ways; what it says at once."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "LARGE", 1 << 60)
        whole = run("pool", path, "--format", "json", *options)
    divided = run("pool", path, "--format", "json", *options)
    assert divided[0] == whole[0] == 0, (divided[2], whole[2])
    here, there = json.loads(divided[1]), json.loads(whole[1])
    assert len(here["events"]) == len(there["events"])
    for mine, its in zip(here["events"], there["events"], strict=True):
        assert mine.keys() == its.keys()
        for key in its:
            if isinstance(its[key], float | dict):
                assert mine[key] == pytest.approx(its[key], rel=1e-9)
            else:
                assert mine[key] == its[key], (key, its)
    notes = [summary.pop("notes") for summary in (here["summary"], there["summary"])]
    assert here["summary"] == there["summary"]
    codes = [{note["code"] for note in each} for each in notes]
    assert codes[0] - told == codes[1]
    for code in ("unresolved", "in-sample", "no-forecast", "missing-words", "layout", "positive"):
        texts = [[note["text"] for note in each if note["code"] == code] for each in notes]
        assert texts[0] == texts[1]
    return here


@pytest.mark.parametrize(
    ("layout", "kind", "prior"),
    [
        ("wide", "csv", False), ("wide", "parquet", True), ("long", "csv", True), ("long", "parquet", False),
        ("shuffled", "csv", False), ("shuffled", "parquet", True),
    ],
)  # fmt: skip
def test_files_of_every_form(layout, kind, prior, tmp_path, monkeypatch, small_parts):
    q, outcomes = said(missing=0.0 if layout == "wide" and prior else 0.2)
    text = wide(q, outcomes, prior) if layout == "wide" else long(q, outcomes, prior, layout == "shuffled")
    path = tmp_path / "forecasts.csv"
    path.write_text(text)
    if kind == "parquet":
        target = tmp_path / "forecasts.parquet"
        duckdb.sql(f"COPY (SELECT * FROM read_csv('{path}')) TO '{target}'")
        path = target
    told = {"sorted"} if layout == "shuffled" else set()
    compare(str(path), monkeypatch, told=told)
    compare_checks(str(path), monkeypatch, told)


def test_three_classes_and_a_prior_for_each(tmp_path, monkeypatch, small_parts):
    _, outcomes = said()
    path = tmp_path / "classes.csv"
    path.write_text(classes(outcomes))
    compare(str(path), monkeypatch)
    compare(str(path), monkeypatch, "--prior", "home=0.5", "--prior", "draw=0.2", "--prior", "away=0.3")


def test_words_percentages_experts_left_out_and_rows_without_names(tmp_path, monkeypatch, small_parts):
    q, outcomes = said()
    words = {"1": "Yes", "0": "no", "": "void"}
    path = tmp_path / "forecasts.csv"
    for sign, scale in (("", 1), ("%", 100)):
        cells = [["NA" if np.isnan(p) else f"{scale * p:.1f}{sign}" for p in row] for row in q]
        lines = [",".join([*row, words[outcome]]) for row, outcome in zip(cells, outcomes, strict=True)]
        path.write_text("\n".join(["e0,e1,e2,e3,happened", *lines]) + "\n")
        compare(str(path), monkeypatch, "--column", "outcome=happened", "--exclude", "e2")


@pytest.mark.parametrize("fault", ["1.7", "rain", "5%"])
def test_faults_are_named_with_their_lines(fault, tmp_path, small_parts):
    q, outcomes = said(missing=0.0)
    lines = wide(q, outcomes, False).splitlines()
    lines[71] = ",".join([*lines[71].split(",")[:2], fault, *lines[71].split(",")[3:]])
    path = tmp_path / "forecasts.csv"
    path.write_text("\n".join(lines) + "\n")
    status, _, told = run("pool", str(path))
    assert status == 1
    assert "line 72" in told
    assert "'e1'" in told or "e1" in told


def test_faults_in_a_sorted_file_are_named_with_their_lines(tmp_path, small_parts):
    q, outcomes = said()
    lines = long(q, outcomes, False, True).splitlines()
    lines[40] = ",".join([*lines[40].split(",")[:2], "1.5", ""])
    path = tmp_path / "forecasts.csv"
    path.write_text("\n".join(lines) + "\n")
    with open_parts(path, None, ReadOptions()) as found, pytest.raises(CellError, match="line 41,"):
        list(found.forecasts())
    lines[40] = lines[39]
    path.write_text("\n".join(lines) + "\n")
    with open_parts(path, None, ReadOptions()) as found, pytest.raises(DuplicateError, match="lines 40, 41"):
        list(found.forecasts())


def test_parts_hold_the_whole_in_order_whatever_their_size(tmp_path, monkeypatch):
    q, outcomes = said()
    path = tmp_path / "forecasts.csv"
    path.write_text(long(q, outcomes, True, False))
    whole = read_forecasts(path)
    for cells, threads in ((7, 1), (50, 3), (10**6, 2)):
        monkeypatch.setattr(parts, "CELLS", cells)
        with open_parts(path, None, ReadOptions()) as found:
            read = list(found.forecasts(threads))
            assert len(read) == 1 if cells == 10**6 else len(read) > 3
            together = Forecasts.joined(read)
        assert together.events == whole.events
        np.testing.assert_array_equal(together.X, whole.X)
        np.testing.assert_array_equal(together.outcomes, whole.outcomes)
        np.testing.assert_array_equal(together.prior, whole.prior)


def test_tables_with_classes_in_rows_are_read_at_once(tmp_path, small_parts):
    path = tmp_path / "classes.csv"
    path.write_text("event,expert,class,probability\na,x,r,0.2\na,x,s,0.3\na,x,t,0.5\n")
    with open_parts(path, None, ReadOptions()) as found:
        assert len(found.only.events) == 1


@pytest.mark.parametrize(
    ("code", "parts", "together"),
    [
        ("no-event", [{"count": 1}, {"count": 1}], "2 rows without an event left out"),
        ("unresolved", [{"count": 1200, "total": 1500, "marked": ""}, {"count": 3, "total": 40, "marked": ""}],
         "1,203 of 1,540 events not resolved"),
        ("normalised",
         [{"count": 1, "total": 5, "worst": 0.1, "why": ""}, {"count": 2, "total": 6, "worst": 0.3, "why": ""}],
         "3 of 11 forecasts did not add up to 1 (0.3 at most): normalised"),
    ],
)  # fmt: skip
def test_notes_on_parts_add_up(code, parts, together):
    notes = [note for part in parts for note in (finding(code, **part), Note("code", "the same in each"))]
    assert [note.text for note in added_up(notes)] == [together, "the same in each"]


def test_spans_of_time_on_parts_are_joined():
    made, notes = "forecasts made", []
    for first, last, day in (("2020-03-01", "2020-05-01", "2021-01-01"), ("2020-01-01", "2020-04-01", "2021-02-01")):
        notes.append(finding("times", spans=Spans({made: (first, last), "resolved": (day, day)})))
    assert added_up(notes)[0].text == "forecasts made 2020-01-01 to 2020-05-01; resolved 2021-01-01 to 2021-02-01"


def test_the_engine_draws_nothing_on_standard_output(tmp_path):
    path = tmp_path / "forecasts.csv"
    path.write_text(wide(*said(), False))
    for progress in (None, lambda _: None):
        with open_parts(path, None, ReadOptions(), progress) as found:
            names = ("enable_progress_bar", "enable_progress_bar_print")
            drawn, printed = (
                found.table.connection.execute(f"SELECT current_setting('{name}')").fetchone()[0] for name in names
            )
            assert not (drawn and printed)


def test_units_are_those_of_all_parts_together(small_parts, tmp_path):
    rows = [(f"q{t}", who, p) for t in range(60) for who, p in (("ann", 30 + t % 40), ("bob", 40), ("cy", 0.4))]
    # One number of an expert is above 1, in the last part.
    rows += [("q60", "ann", 30), ("q60", "bob", 20), ("q60", "cy", 30)]
    path = tmp_path / "units.csv"

    def read_with(rows, **options):
        path.write_text("event,expert,probability\n" + "".join(f"{q},{who},{p}\n" for q, who, p in rows))
        with open_parts(path, None, ReadOptions(**options)) as found:
            assert found.only is None
            assert len(found.spans) > 2
            return np.concatenate([part.probabilities for part in found.forecasts()])

    tiny = read_with(rows, percent=True)
    assert tiny.min() == pytest.approx(0.004)
    with pytest.raises(CellError, match=r"no number of 'cy' is above 1%, .*--unit cy=fraction"):
        read_with(rows[:-3], percent=True)
    assert read_with(rows[:-3], percent=True, units={"cy": "fraction"}).min() == pytest.approx(0.3)
