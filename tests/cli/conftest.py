"""What the tests of commands share."""

import csv
import gzip
import io

import pytest

from opinionpool.cli import app as cli

WIDE = """event,alice,bob,carol,outcome
a,0.8,0.7,0.9,1
b,0.2,0.4,0.3,0
c,0.6,0.7,0.4,1
d,0.3,0.1,0.2,0
e,0.7,0.6,,1
f,0.4,0.5,0.3,0
g,0.9,0.8,0.7,
h,,,,
"""
THREE_CLASSES = "event,expert,class,probability,outcome\n" + "".join(
    f"q{t},ann,{c},{p},{'abc'[t % 3]}\n" for t in range(6) for c, p in (("a", 0.5), ("b", 0.3), ("c", 0.2))
)


def probabilities(records):
    return [float(record["probability"]) for record in records]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file of forecasts and give its name."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="forecasts.csv"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        return name

    return write


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command that must succeed; standard output and standard error."""
    # Set where tests run side by side; what is printed would be as wide as that.
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments, status=0):
        assert cli.run([str(argument) for argument in arguments]) == status
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return said

    return run


@pytest.fixture
def answers(command):
    """The records of CSV that a command prints."""

    def run(*arguments):
        return list(csv.DictReader(io.StringIO(command(*arguments, "--format", "csv").out)))

    return run
