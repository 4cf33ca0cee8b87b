"""``opinionpool report``: where the page goes, what is refused, and what it says of its own making."""

import hashlib
import re

import pytest

from opinionpool.report import findings as reportdata

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
