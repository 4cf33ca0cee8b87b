"""Pages for looking things up leave nothing out: names, commands, errors, notes and fields are those of the code."""

import ast
import json
import pkgutil
import re
import sys

import click
import pytest
from click.testing import CliRunner

import opinionpool as op
from opinionpool.cli import app as cli
from opinionpool.findings import messages
from opinionpool.learning.constants import CALIBRATION, CORRELATION
from opinionpool.pools.registry import POOLS


@pytest.fixture(scope="module")
def page(root):
    return lambda name: (root / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(root):
    """What the pages are filled with."""
    sys.path.insert(0, str(root / "docs" / "_extensions"))
    try:
        import commands

        return commands
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def filled(root):
    """What fills marks in pages."""
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(root / "docs" / "_extensions"))
    try:
        import generated

        return generated
    finally:
        sys.path.pop(0)


def first_cells(text):
    """The names in the first column of every table."""
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_public_name_is_described_once(root):
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((root / "docs").rglob("*.md")))
    described = re.findall(r"^\.\. auto\w+:: (?:opinionpool\.)?(\w+)$", text, re.MULTILINE)
    assert sorted(described) == sorted(op.__all__)


def test_every_error_has_its_line(page):
    raised = [name for name, home in op._HOME.items() if home == "errors" and name.endswith("Error")]
    table = page("errors.md").partition("## Notes")[0]
    assert sorted(first_cells(table)) == sorted(raised)


MADE = {"Note", "finding", "fault", "cell_fault"}


def codes_of(path):
    """The codes of the notes that a module makes; where code computes one, the words in the module that are codes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute)
        name = ast.unparse(call.func) if made else ""
        if path.name != "findings.py" and name in MADE:
            code = call.args[0]
            if isinstance(code, ast.Constant):
                yield code.value
            else:
                yield from {text.value for text in ast.walk(tree) if isinstance(text, ast.Constant)} & {*messages()}


def test_every_note_and_every_fault_has_its_line(root):
    paths = list((root / "src" / "opinionpool").rglob("*.py"))
    made = {code for path in paths for code in codes_of(path)}
    assert made == set(messages())


def test_docstrings_refer_to_what_is_there(root):
    names = {
        name
        for path in (root / "src" / "opinionpool").rglob("*.py")
        for name in re.findall(r"`(opinionpool(?:\.\w+)+)`", path.read_text(encoding="utf-8"))
    }
    assert len(names) > 50
    missing = []
    for name in names:
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


def test_every_command_and_option_is_described(written):
    text = written.commands()
    for name, command in cli.app.commands.items():
        part = text.partition(f"## opinionpool {name}\n")[2].partition("\n## ")[0]
        shared = "".join(
            text.partition(f"### {title}\n")[2].partition("\n##")[0]
            for title in written.GROUPS
            if f"[{title.lower()}](#{title.lower()})" in part
        )
        options = [option for option in command.params if isinstance(option, click.Option)]
        described = re.findall(r"^\| `(?:-\w(?: \S+)?`, `)?(--[\w-]+)", part + shared, re.MULTILINE)
        assert sorted(described) == sorted(option.opts[-1] for option in options)


def test_every_pool_has_its_line(page, filled):
    assert "<!-- pools -->" in page("choosing.md")
    text = filled.pools()
    assert first_cells(text)[: len(POOLS)] == list(POOLS)
    learning = re.search(r"Only (.*) learn;", text)[1]
    assert re.findall(r"`([\w-]+)`", learning) == [name for name, pool in POOLS.items() if pool.learns]


def test_what_is_believed_of_any_panel_is_what_the_pool_believes(page):
    assert f"errors correlated at {CORRELATION:g}," in page("how-it-works.md")
    assert f"| correlation ρ | {CORRELATION:g};" in page("beliefs.md")
    assert f"| calibration κ | {CALIBRATION:g} for all" in page("beliefs.md")


def test_the_readme_compares_by_the_same_gains(root, page):
    def rows(text, first):
        lines = text[text.index(f"| {first} |") :].partition("\n\n")[0].splitlines()
        return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]

    numbers, _, *pools = rows(page("few-data.md"), "pool")
    gains = {row[0]: dict(zip(numbers[1:], row[1:], strict=True)) for row in pools}
    ways, _, *shown = rows((root / "README.md").read_text(encoding="utf-8"), "resolved events")
    names = {
        "linear stacking": "linear", "stacking by logistic regression": "log",
        "discriminant analysis (LDA)": "discriminant analysis", "opinionpool": "default pool",
        "opinionpool, real forecasts": "default pool, real forecasts",
    }  # fmt: skip
    assert len(shown) == 5
    for events, *row in shown:
        found = ["" if cell.endswith("no answer") else cell for cell in row]
        assert found == [gains[names[way]][events] for way in ways[1:]]


def test_every_field_of_an_answer_is_named(page, tmp_path):
    forecasts = tmp_path / "forecasts.csv"
    rows = [f"q{i},{0.3 + 0.01 * i},{0.7 - 0.02 * i},{i % 2}" for i in range(12)]
    forecasts.write_text("event,ann,bob,outcome\n" + "\n".join(rows), encoding="utf-8")
    text = page("formats.md")
    common = None
    for command, extra in {
        "pool": [],
        "experts": [],
        "explain": ["q3"],
        "compare": ["--repeats", "2"],
        "check": [],
    }.items():
        run = CliRunner().invoke(cli.app, [command, str(forecasts), *extra, "--format", "json"])
        answer = json.loads(run.stdout)
        (holds,) = set(answer) - {"summary"}
        line = next(line for line in text.splitlines() if line.startswith(f"| `{command}` | `{holds}` |"))
        assert set(re.findall(r"`(\w+)`", line)) - {"probabilities"} == {command, holds, *answer[holds][0]}
        common = set(answer["summary"]) if common is None else common & set(answer["summary"])
    promised = text.partition("and a `summary`, which has in every case")[2].partition("(")[0]
    assert set(re.findall(r"`(\w+)`", promised)) == common
