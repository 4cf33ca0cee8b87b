"""Every command answers with one view, the same rows and numbers in every format; and where the report goes."""

import csv
import hashlib
import html
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from opinionpool.cli import pool as pool_command
from opinionpool.report import findings as reportdata, view
from opinionpool.report.blocks import Table

NAMES = ("Ana", "Ben", "Cleo Dubois", "Dana")


@pytest.fixture
def forecasts(file):
    """A file with 40 events, of which the last two are open, and two saved pools of it."""
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=40)
    p = 1 / (1 + np.exp(-((2 * y - 1)[:, None] + rng.normal(size=(40, 4)) * [0.8, 1.2, 1.6, 2.0])))
    topics = ["sport", "politics"] * 20
    rows = [[f"event {t}", *(f"{x:.4f}" for x in p[t]), topics[t], str(y[t]) if t < 38 else ""] for t in range(40)]
    return file("\n".join([",".join(["event", *NAMES, "topic", "outcome"]), *map(",".join, rows)]) + "\n")


COMMANDS = {
    "pool": [],
    "pool --open": [],
    "experts": [],
    "experts --scores": [],
    "compare": ["--pools", "gaussian,average,linear", "--repeats", "1"],
    "value": [],
    "check": [],
    "explain": ["event 39"],
    "rate": ["--by", "topic"],
    "diff": [],
}


def numbers(texts):
    """Numbers as a table shows them, and how far each may be from what it shows."""
    for text in texts:
        plain = text.replace("−", "-").replace(",", "")
        found = re.fullmatch(r"[+-]?\d+(\.\d+)?(%?)", plain)
        if found:
            unit = 0.01 if found[2] else 1.0
            yield text, unit * float(plain.rstrip("%")), unit * 10.0 ** -len((found[1] or ".")[1:])


def shows(text, value, step, values):
    """Whether a number is one of some values, rounded; differences of probabilities are shown in points."""
    near = [x for x in values if abs(x - value) <= 0.51 * step or abs(100 * x - value) <= 0.51 * step]
    return bool(near)


@pytest.mark.parametrize("words", COMMANDS)
def test_all_formats_show_the_same_view(forecasts, file, command, monkeypatch, words):
    captured = []
    write_view, write_listing = view.write_view, pool_command.write_listing
    monkeypatch.setattr(view, "write_view", lambda v, *a: (captured.append(v.table or v.columns), write_view(v, *a)))
    monkeypatch.setattr(
        pool_command, "write_listing", lambda c, *a, **o: (captured.append(c), write_listing(c, *a, **o))
    )
    name, *flags = words.split()
    if name == "diff":
        command("pool", forecasts, "--save", "new.json", "-o", "out.csv")
        lines = Path(forecasts).read_text().splitlines()
        file("\n".join([*lines[:30], *(line.rpartition(",")[0] + "," for line in lines[30:])]) + "\n", "old.csv")
        command("pool", "old.csv", "--save", "old.json", "-o", "out.csv")
        arguments = ["old.json", "new.json"]
        captured.clear()
    else:
        arguments = [forecasts, *COMMANDS[words]]

    def written(kind):
        return command(name, *arguments, *flags, "--format", kind).out

    document = json.loads(written("json"))
    rows = next(value for key, value in document.items() if key != "summary")
    listed = list(csv.DictReader(io.StringIO(written("csv"))))
    key = next(iter(rows[0]))
    by_name = {row[key]: row for row in listed if row.get(key)}
    assert [row[key] for row in rows] == [row[key] for row in listed if row.get(key)][: len(rows)]
    table = written("table").splitlines()
    shown = {
        re.split(r"\s{2,}", line.strip())[0]: re.split(r"\s{2,}", line.strip()) for line in reversed(table) if line
    }
    cells = [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td[^>]*>(.*?)</td>", row)]
        for row in re.findall("<tr>(.*?)</tr>", Table(captured[0]).html(), flags=re.DOTALL)
    ]
    pages = {name: next(row for row in cells if name in row) for name in shown if any(name in row for row in cells)}
    for row in rows:
        # CSV has each value of JSON in full.
        for field, value in row.items():
            if field in by_name[row[key]]:
                text = by_name[row[key]][field]
                expected = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
                assert text == expected, (field, text, value)
        values = [x for x in row.values() if isinstance(x, int | float) and not isinstance(x, bool)]
        # A table and a page show no number that is none of them.
        for line in (shown[row[key]], pages[row[key]]):
            found = list(numbers(line[1:]))
            assert found
            assert all(shows(*each, values) for each in found), (line, row)


ROWS = [("a", 0.9, 0.7, 1), ("b", 0.2, 0.4, 0), ("c", 0.6, 0.8, 1), ("d", 0.3, 0.1, 0), ("e", 0.7, 0.6, "")] * 3
WIDE = "event,ann,bob,outcome\n" + "".join(f"{e}{i},{p},{q},{y}\n" for i, (e, p, q, y) in enumerate(ROWS))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(reportdata, "ROUNDS", 1)
    monkeypatch.setattr(reportdata, "MANY", 0)


def test_a_page_is_written_with_its_command_and_the_files_digest(file, command, tmp_path):
    (tmp_path / "secret").mkdir()
    name = file(WIDE, "secret/panel.csv")
    said = command("report", name, "-o", tmp_path / "page.html", "--prior", "0.4")
    assert said.out == ""
    assert "the report is in" in said.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert hashlib.sha256(WIDE.encode()).hexdigest() in page
    assert re.search(r"opinionpool report panel\.csv.* --prior 0\.4.* --output page\.html", page)
    assert "secret" not in page
    assert "40.0% (as given)" in page
    command("report", name, "-o", tmp_path / "page.html", "--prior", "0.4")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_a_dash_is_standard_output(file, command):
    said = command("report", file(WIDE), "-o", "-")
    assert said.out.startswith("<!DOCTYPE html>")


def test_a_title_and_an_order_of_events(file, command):
    name = file(WIDE.replace("e4,0.7,0.6", "e4,0.9,0.9"))
    command("report", name, "-o", "page.html", "--title", "Will it <work>?", "--sort", "event")
    with open("page.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "<h1><bdi>Will it &lt;work&gt;?</bdi></h1>" in page
    assert page.index("<bdi>e14</bdi>") < page.index("<bdi>e4</bdi>") < page.index("<bdi>e9</bdi>")
