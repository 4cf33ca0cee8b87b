"""A command that is killed at any moment leaves what was there, or the whole of what it writes, and nothing else."""

import os
import signal
import subprocess
import sys
import time

import pytest

EVENTS = 4000
# Writing is slowed, so that a kill meets it, and says how far it is.
SLOW = """
import signal, sys, time
# A shell script's background jobs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from opinionpool.cli import app as cli
from opinionpool.report import listing as render
rows, plain = [0], render.islice
def slow(written, count):
    rows[0] += count
    print(rows[0], file=sys.stderr, flush=True)
    time.sleep(0.01)
    return plain(written, count)
render.BLOCK, render.islice = 50, slow
sys.exit(cli.run(sys.argv[1:]))
"""


@pytest.fixture
def forecasts(tmp_path):
    path = tmp_path / "forecasts.csv"
    path.write_text(
        "event,A,B,outcome\n" + "".join(f"q{i},0.{i % 8 + 1},0.{i % 7 + 1},{i % 2}\n" for i in range(EVENTS))
    )
    return path


def run(root, *arguments):
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", SLOW, *map(str, arguments)], env=environment, stderr=subprocess.PIPE)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize(("number", "lines"), [("SIGKILL", 1), ("SIGKILL", 20), ("SIGTERM", 20), ("SIGINT", 1)])
def test_killed_while_it_writes(root, tmp_path, command, forecasts, lines, number):
    target = tmp_path / "pooled.csv"
    target.write_text("what was there\n")
    process = run(root, "pool", forecasts, "--pool", "average", "--output", target)
    for _ in range(lines):
        assert process.stderr.readline().strip().isdigit()
    process.send_signal(getattr(signal, number))
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert target.read_text() == "what was there\n"
    left = [path.name for path in tmp_path.iterdir() if path not in (forecasts, target)]
    # Nobody can tidy up after a kill; Python does after an interrupt.
    assert not left or (number != "SIGINT" and len(left) == 1 and left[0].endswith(".draft"))
    # The next attempt is not in anybody's way, and removes the draft.
    command("pool", forecasts, "--pool", "average", "--output", target)
    assert len(target.read_text().splitlines()) == EVENTS + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forecasts.csv", "pooled.csv"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_weekly_run_that_is_killed_can_be_run_again(root, tmp_path, command, forecasts):
    last, this, answers = (tmp_path / name for name in ("last.json", "this.json", "open.csv"))
    plain = ["pool", forecasts, "--pool", "average"]
    command(*plain, "--save", last, "--output", tmp_path / "first.csv")
    before = last.read_bytes()
    process = run(root, *plain, "--model", last, "--save", this, "--output", answers)
    assert process.stderr.readline().strip().isdigit()
    process.kill()
    process.communicate(timeout=60)
    assert last.read_bytes() == before
    assert not this.exists()
    assert not answers.exists()
    command(*plain, "--model", last, "--save", this, "--output", answers)
    assert answers.read_text() == (tmp_path / "first.csv").read_text()


# A file that takes the engine some time.
MANY = 60_000


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "forecasts.csv"
    names = ",".join(f"e{i}" for i in range(20))
    rows = "".join(
        f"q{i},{','.join(f'0.{(i * k) % 9973 + 1:04}' for k in range(1, 21))},{i % 2}\n" for i in range(MANY)
    )
    path.write_text(f"event,{names},outcome\n{rows}")
    return path


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP here")
@pytest.mark.parametrize(("name", "wait"), [("SIGINT", 0.35), ("SIGINT", 0.8), ("SIGTERM", 0.8), ("SIGHUP", 0.35)])
def test_ended_from_outside_while_it_reads(root, tmp_path, long_file, name, wait):
    """The status that shells have for it, one line, nothing left behind, and no fault of anybody."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "TMPDIR": str(tmp_path)}
    target = tmp_path / "pooled.csv"
    process = subprocess.Popen(
        [sys.executable, "-m", "opinionpool", "pool", str(long_file), "--pool", "average", "-o", str(target)],
        env=environment,
        stderr=subprocess.PIPE,
    )
    time.sleep(wait)
    process.send_signal(getattr(signal, name))
    told = process.communicate(timeout=60)[1].decode()
    # A second signal, or one while Python itself begins or ends, kills the process, which shells report alike.
    number = getattr(signal, name)
    assert process.returncode in (128 + number, -number) or (process.returncode == 0 and target.exists()), told
    assert "fault" not in told
    if process.returncode == 128 + number:
        assert told.split("\n") in ([""], ["opinionpool: interrupted", ""], ["", "opinionpool: interrupted", ""])
        assert not list(tmp_path.iterdir())
