"""The README and the pages beside it tell the truth: their commands and examples print what they show.

``python tests/test_readme.py`` writes what they print now into them.
"""

import contextlib
import doctest
import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
PAGES = (
    "README.md",
    "docs/beliefs.md",
    "docs/explain.md",
    "docs/quick-start.md",
    "docs/tutorial-classifiers.md",
    "docs/tutorial-panel.md",
    "docs/tutorial-season.md",
    "docs/tutorial-tournament.md",
)
# Blocks that are files, which the commands and examples after them read.
FILES = {"toml": "panel.toml", "csv": "forecasts.csv"}
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "xterm"}


def on_a_terminal(line, folder, source):
    """What appears on a terminal when a command runs there; it has to succeed, unless its status is asked for."""
    line, asked, _ = line.partition("; echo $?")
    name, *arguments = shlex.split(line)
    program = {"python": [sys.executable], "opinionpool": [sys.executable, "-m", "opinionpool"]}[name]
    environment = os.environ | TERMINAL | {"PYTHONPATH": str(source)}
    ours, theirs = pty.openpty()
    with subprocess.Popen([*program, *arguments], stdout=theirs, stderr=theirs, cwd=folder, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            # How Linux says that nobody has the terminal open any more.
            pass
        os.close(ours)
    assert process.returncode in ({0, 1} if asked else {0}), shown.decode()
    # A progress bar writes over itself and is gone in the end.
    lines = shown.decode().replace("\r\n", "\n").split("\x1b[2K")[-1]
    return [*lines.splitlines(), *([str(process.returncode)] if asked else [])]


def abridged(got, shown):
    """Output cut where the README cuts it: a line of dots stands for any number of lines."""
    if "..." not in shown:
        return got
    before = shown.index("...")
    after = len(shown) - before - 1
    assert len(got) >= before + after
    return [*got[:before], "...", *got[len(got) - after :]]


def console(body, folder, source):
    """A block of commands with what they print now."""
    lines = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        lines += [f"$ {command}", *abridged(on_a_terminal(command, folder, source), shown)]
    return "".join(f"{line}\n" for line in lines)


def session(body, names):
    """A block of Python with what it prints now; `names` is what earlier blocks defined."""
    lines = []
    for example in doctest.DocTestParser().get_examples(body):
        first, *more = example.source.splitlines()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, "README.md", "single"), names)
        lines += [f">>> {first}", *(f"... {line}" for line in more), *printed.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def refreshed(text, root, folder):
    """A page with what its commands and examples print now."""
    (folder / "examples").symlink_to(root / "examples")
    names = {}

    def block(match):
        body = textwrap.dedent(match["body"])
        if match["kind"] == "console":
            body = console(body, folder, root / "src")
        elif match["kind"] == "pycon":
            with contextlib.chdir(folder):
                body = session(body, names)
        elif match["kind"] in FILES:
            (folder / FILES[match["kind"]]).write_text(body, encoding="utf-8")
        fenced = f"```{match['kind']}\n{body}```"
        return textwrap.indent(fenced, match["indent"])

    return BLOCK.sub(block, text)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_examples_print_what_is_shown(root, tmp_path, page):
    text = (root / page).read_text(encoding="utf-8")
    assert "\n$ opinionpool " in text
    assert "\n>>> " in text
    assert refreshed(text, root, tmp_path) == text


def test_links_lead_to_files(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert links
    for link in links:
        assert (root / link).is_file(), link


def test_output_is_cut_where_the_readme_cuts_it():
    assert abridged(["a", "b", "c", "d"], ["x", "...", "y"]) == ["a", "...", "d"]
    assert abridged(["a", "b"], ["..."]) == ["..."]
    assert abridged(["a", "b"], ["x"]) == ["a", "b"]


if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    for name in PAGES:
        with tempfile.TemporaryDirectory() as empty:
            new = refreshed((ROOT / name).read_text(encoding="utf-8"), ROOT, Path(empty))
        (ROOT / name).write_text(new, encoding="utf-8")
