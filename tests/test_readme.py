"""The README and the pages beside it tell the truth: their commands and examples print what they show.

``python tests/test_readme.py`` writes what they print now into them.
"""

import contextlib
import doctest
import io
import re
import shlex
import tempfile
import textwrap
from pathlib import Path

import pytest

BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
PAGES = (
    "README.md", "SKILL.md", "docs/beliefs.md", "docs/classes.md", "docs/explain.md", "docs/quick-start.md",
    "docs/rates.md", "docs/tutorial-classifiers.md", "docs/tutorial-panel.md", "docs/tutorial-season.md",
    "docs/tutorial-tournament.md",
)  # fmt: skip
# Blocks that are files, which the commands and examples after them read.
FILES = {"toml": "panel.toml", "csv": "forecasts.csv"}
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "xterm"}


def printed(line, run):
    """What appears on a terminal when a command runs there; it has to succeed, unless its status is asked for."""
    line, asked, _ = line.partition("; echo $?")
    program, *arguments = shlex.split(line)
    status, shown = run(*([program] if program != "python" else []), *arguments, **TERMINAL)
    assert status in ({0, 1} if asked else {0}), shown
    # A progress bar writes over itself and is gone in the end.
    return [*shown.split("\x1b[2K")[-1].splitlines(), *([str(status)] if asked else [])]


def abridged(got, shown):
    """Output cut where the README cuts it: a line of dots stands for any number of lines."""
    if "..." not in shown:
        return got
    before = shown.index("...")
    after = len(shown) - before - 1
    assert len(got) >= before + after
    return [*got[:before], "...", *got[len(got) - after :]]


def console(body, run):
    """A block of commands with what they print now."""
    lines = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        lines += [f"$ {command}", *abridged(printed(command, run), shown)]
    return "".join(f"{line}\n" for line in lines)


def session(body, names):
    """A block of Python with what it prints now; `names` is what earlier blocks defined."""
    lines = []
    for example in doctest.DocTestParser().get_examples(body):
        first, *more = example.source.splitlines()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(example.source, "README.md", "single"), names)
        lines += [f">>> {first}", *(f"... {line}" for line in more), *out.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def refreshed(text, root, folder, run):
    """A page with what its commands and examples print now; `run` runs a command on a terminal."""
    (folder / "examples").symlink_to(root / "examples")
    names = {}

    def block(match):
        body = textwrap.dedent(match["body"])
        if match["kind"] == "console":
            body = console(body, run)
        elif match["kind"] == "pycon":
            body = session(body, names)
        elif match["kind"] in FILES:
            (folder / FILES[match["kind"]]).write_text(body, encoding="utf-8")
        fenced = f"```{match['kind']}\n{body}```"
        return textwrap.indent(fenced, match["indent"])

    with contextlib.chdir(folder):
        return BLOCK.sub(block, text)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_examples_print_what_is_shown(root, tmp_path, terminal, page):
    text = (root / page).read_text(encoding="utf-8")
    assert "\n$ opinionpool " in text
    assert refreshed(text, root, tmp_path, terminal) == text


def test_output_is_cut_where_the_readme_cuts_it():
    assert abridged(["a", "b", "c", "d"], ["x", "...", "y"]) == ["a", "...", "d"]
    assert abridged(["a", "b"], ["..."]) == ["..."]
    assert abridged(["a", "b"], ["x"]) == ["a", "b"]


if __name__ == "__main__":
    from conftest import on_a_terminal

    ROOT = Path(__file__).resolve().parents[1]
    for name in PAGES:
        with tempfile.TemporaryDirectory() as empty:
            new = refreshed((ROOT / name).read_text(encoding="utf-8"), ROOT, Path(empty), on_a_terminal)
        (ROOT / name).write_text(new, encoding="utf-8")
