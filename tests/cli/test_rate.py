"""``opinionpool rate``: its numbers are those from Python, in every format, with a saved pool too."""

import json
import runpy

import pytest

import opinionpool as op


@pytest.fixture(scope="module")
def systems(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("systems")
    runpy.run_path(str(root / "examples" / "systems.py"))["main"](folder)
    return folder / "systems.csv"


def python(path, **options):
    """What Python says of the same file."""
    f = op.read_forecasts(path, columns={"topic": "system", **options})
    plain = op.read_forecasts(path, columns={"topic": None, **options})
    return op.rates(op.GaussianPool().fit(plain), f, "topic")


def test_rates_and_differences(systems, command, answers):
    found = python(systems)
    rows = answers("rate", systems, "--by", "system")
    assert [row["group"] for row in rows] == list(found.groups_) == ["cheap", "new", "old"]
    assert [float(row["rate"]) for row in rows] == pytest.approx(found.rate_)
    assert [float(row["high"]) for row in rows] == pytest.approx(found.interval_[1])
    assert [float(row["rogan_gladen_low"]) for row in rows] == pytest.approx(found.rivals_["Rogan-Gladen"].low)
    whole = json.loads(command("rate", systems, "--by", "system", "--format", "json").out)
    assert [row["rate"] for row in whole["rates"]] == pytest.approx(found.rate_)
    assert whole["summary"]["all"]["rate"] == pytest.approx(found.total_.difference)
    first = whole["summary"]["differences"][0]
    assert (first["group"], first["than"]) == ("new", "cheap")
    assert first["difference"] == pytest.approx(found.difference("new", "cheap").difference)
    said = command("rate", systems, "--by", "system", "--format", "table")
    assert "happens more" in said.out
    assert "assumed: experts are taken to err in every group as in the others" in said.err


def test_several_columns_and_none(systems, answers):
    assert [row["group"] for row in answers("rate", systems)] == ["all"]
    both = answers("rate", systems, "--by", "system, question")
    assert len(both) == 1200
    assert both[0]["group"] == "cheap / q001"


def test_a_saved_pool(systems, answers, command, tmp_path):
    saved = tmp_path / "pool.json"
    command("pool", systems, "--save", saved)
    one, other = (
        answers("rate", systems, "--by", "system", "--model", saved),
        answers("rate", systems, "--by", "system"),
    )
    assert [float(row["rate"]) for row in one] == pytest.approx([float(row["rate"]) for row in other])


def test_the_report_has_them_by_topic(systems, command, tmp_path):
    page = tmp_path / "page.html"
    command("report", systems, "--topic", "system", "--repeats", "1", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "Rates by topic" in text
    found = python(systems)
    for rate in found.rate_:
        assert f"{100 * rate:.1f}%" in text
