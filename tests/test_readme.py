"""The README tells the truth: its commands and examples give the output it shows, and its links lead somewhere."""

import doctest
import os
import pty
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
COLUMNS = "100"


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(text, kind):
    return [textwrap.dedent(match["body"]) for match in BLOCK.finditer(text) if match["kind"] == kind]


def commands(text):
    """Commands and the lines shown below each, in order."""
    for body in blocks(text, "console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            yield line, shown.splitlines()


def on_a_terminal(line, folder, source):
    """What appears on a terminal when a command runs there."""
    name, *arguments = shlex.split(line)
    program = {"python": [sys.executable], "opinionpool": [sys.executable, "-m", "opinionpool"]}[name]
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": COLUMNS, "NO_COLOR": "1", "TERM": "xterm"}
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
    assert process.returncode == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n").splitlines()


def same(shown, got):
    """Whether lines are those shown, where a line of dots stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def test_commands_print_what_is_shown(readme, root, tmp_path):
    (tmp_path / "examples").symlink_to(root / "examples")
    told = list(commands(readme))
    assert [line.split()[:2] for line, _ in told if line.startswith("opinionpool")][:2] == [
        ["opinionpool", "check"],
        ["opinionpool", "pool"],
    ]
    for line, shown in told:
        got = on_a_terminal(line, tmp_path, root / "src")
        assert same(shown, got), f"$ {line}\n" + "\n".join(got)


def test_python_prints_what_is_shown(readme):
    examples = blocks(readme, "pycon")
    assert examples
    test = doctest.DocTestParser().get_doctest("\n".join(examples), {}, "README", "README.md", 0)
    told = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert not told, "".join(told)


def test_links_lead_to_files(readme, root):
    links = [link for link in re.findall(r"\]\(([^)#]+)", readme) if "://" not in link]
    assert links
    for link in links:
        assert (root / link).is_file(), link


def test_dots_stand_for_lines():
    assert same(["a", "...", "c"], ["a", "b", "b", "c"])
    assert same(["a", "..."], ["a"])
    assert not same(["a", "...", "c"], ["a", "b"])
    assert not same(["a"], ["a", "b"])
