"""The command as the shell runs it: streams, terminals, locales, what it loads."""

import csv
import io
import os
import pty
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from opinionpool.cli.output import destination
from tests.panels import panel

SMALL = "event,alice,bob,outcome\na,0.8,0.7,1\nb,0.2,0.4,0\nc,0.6,0.7,1\nd,0.3,0.1,0\ne,0.7,0.6,\n"
COMMAND = [sys.executable, "-m", "opinionpool"]


@pytest.fixture
def environment(root):
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
    return kept | {"PYTHONPATH": str(root / "src"), "TERM": "xterm-256color"}


@pytest.fixture
def run(environment):
    def run(*arguments, stdin=b"", status=0, **changes):
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], input=stdin, env=environment | changes, capture_output=True, check=False
        )
        assert done.returncode == status, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def on_a_terminal(terminal):
    """Run a command that must succeed on a terminal, in this process; what appears there."""

    def run(*arguments, columns=80, **changes):
        status, shown = terminal("opinionpool", *map(str, arguments), COLUMNS=str(columns), **changes)
        assert status == 0, shown
        return shown

    return run


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(SMALL)
    return path


def test_pipes_at_both_ends(run, command, small):
    piped = run("pool", "-", stdin=SMALL.encode())
    assert piped.stdout.decode() == command("pool", small).out
    records = list(csv.DictReader(io.StringIO(piped.stdout.decode())))
    assert [record["event"] for record in records] == list("abcde")
    assert piped.stderr.decode().startswith("5 events, 4 resolved")


@pytest.fixture
def long(tmp_path):
    path = tmp_path / "long.csv"
    rows = [f"an_event_with_a_long_name_{i},0.{1 + i % 9},0.{1 + i % 7},{i % 2}" for i in range(5000)]
    path.write_text("\n".join(["event,a,b,outcome", *rows]))
    return path


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_reader_who_leaves_early_is_no_fault(environment, long, kind):
    with subprocess.Popen(
        [*COMMAND, "pool", str(long), "--format", kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read().decode()
    assert process.returncode == 0
    assert told.startswith("5,000 events")
    assert "Error" not in told
    assert "Exception" not in told


def test_closed_streams_are_no_fault_unless_results_would_be_lost(environment, small, tmp_path):
    def told(command):
        return subprocess.run(
            ["sh", "-c", command, "sh", *COMMAND, small], env=environment, capture_output=True, check=False
        )

    done = told('"$1" "$2" "$3" pool - <&-')
    assert (done.returncode, done.stderr) == (1, b"opinionpool: error: standard input is empty\n")
    done = told('"$1" "$2" "$3" pool "$4" >&-')
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"opinionpool: error: standard output is closed")
    done = told(f'"$1" "$2" "$3" pool "$4" --output {tmp_path / "answers.csv"} >&-')
    assert (done.returncode, done.stderr.splitlines()[0][:8]) == (0, b"5 events")
    done = told('"$1" "$2" "$3" pool "$4" 2>&-')
    assert (done.returncode, done.stdout[:6]) == (0, b"event,")
    assert told('"$1" "$2" "$3" pool "$4" <&- >&- 2>&-').returncode == 1
    assert told('"$1" "$2" "$3" pool nowhere <&- >&- 2>&-').returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told(environment, small):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "pool", str(small)], stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["opinionpool: error: No space left on device"]


def test_an_interruption_while_waiting_for_input(environment):
    # The child interrupts itself once it asks for its input.
    code = (
        "import io, os, signal, sys\n"
        "class Waiting(io.RawIOBase):\n"
        "    def readable(self): return True\n"
        "    def readinto(self, buffer): os.kill(os.getpid(), signal.SIGINT); return 0\n"
        # A shell script's background jobs ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.stdin = io.TextIOWrapper(io.BufferedReader(Waiting()))\n"
        "from opinionpool.cli import main\n"
        "main(['pool', '-'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 130
    assert done.stderr.decode().strip() == "opinionpool: interrupted"


def test_a_terminal_gets_a_table_and_a_pipe_gets_csv(run, command, environment, on_a_terminal, small):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "pool", str(small)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env=environment | {"COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(theirs)
        seen = b""
        try:
            while block := os.read(ours, 65536):
                seen += block
        except OSError:
            # How Linux says that nobody has the terminal open any more.
            pass
        os.close(ours)
    assert process.returncode == 0
    shown = on_a_terminal("pool", small)
    assert seen.decode().replace("\r\n", "\n") == shown
    assert shown.startswith("\x1b[1mevent  probability  90% from     to  experts  outcome\x1b[0m\n")
    assert shown.index("in-sample") < shown.index("\n\n5 events, 4 resolved")
    assert run("pool", small).stdout.startswith(b"event,probability,")
    assert on_a_terminal("pool", small, "--format", "csv").startswith("event,probability,")
    assert command("pool", small, "--format", "table").out.startswith("event  probability")


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(on_a_terminal, small, changes):
    for command in ("pool", "experts", "check"):
        assert "\x1b" not in on_a_terminal(command, small, **changes)


@pytest.mark.parametrize("columns", [60, 120])
def test_everything_fits_the_terminal(on_a_terminal, tmp_path, columns):
    path = tmp_path / "wide.csv"
    names = [f"an expert with quite a long name number {i}" for i in range(3)]
    rows = [f"is there any event with so long a name as event {i}?,0.{i + 1},0.2,0.{i + 3},{i % 2}" for i in range(6)]
    path.write_text("\n".join([",".join(["event", *names, "outcome"]), *rows]))
    for command in ("pool", "experts", "check"):
        shown = on_a_terminal(command, path, columns=columns, NO_COLOR="1")
        # A command line is there to be copied, and stands in one piece.
        lines = [line for line in shown.splitlines() if not line.startswith("  opinionpool pool ")]
        assert max(map(len, lines)) <= columns


def test_nothing_heavy_is_loaded(environment, small):
    code = (
        "import sys\nfrom opinionpool.cli import app as cli\n"
        f"for kind in ('csv', 'json', 'table'): cli.run(['pool', {str(small)!r}, '--format', kind])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "opinionpool.cli.app" in loaded
    if int(version("duckdb").partition(".")[0]) < 2:
        # Older engines load these where they are there.
        loaded -= {"pandas", "pyarrow"}
    assert not loaded & {"scipy", "sklearn", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "rich"}


def test_help_does_not_wait_for_numpy(environment):
    code = (
        "import sys\nfrom opinionpool.cli import app as cli\ncli.run(['pool', '--help'])\nprint('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "real")
    with destination(str(tmp_path / "link")) as out:
        out.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "real").read_text() == "new"


def test_devices_are_written_to_as_they_are():
    with destination(os.devnull) as out:
        out.write("x")
    assert not os.path.isfile(os.devnull)


THREADS = {f"{library}_NUM_THREADS": "2" for library in ("OPENBLAS", "OMP", "MKL")}
# They differ in everything; where there is no locale of that name, the second has that of the machine.
SETTINGS = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1"},
    THREADS | {"LC_ALL": "de_DE.UTF-8", "TZ": "America/St_Johns", "PYTHONHASHSEED": "77"},
]
# Two commands in one process, as the shell begins each.
BOTH = """
import sys
from opinionpool.cli import main
for command in (["pool"], ["check", "--format", "json"]):
    try:
        main([*command, sys.argv[1]])
    except SystemExit as ended:
        assert not ended.code
"""


def test_threads_locale_zone_and_hash_seed_play_no_part(environment, tmp_path):
    # So many experts that a matrix product is shared among threads.
    f = panel(200, 50, missing=0.05, unresolved=40)
    rows = [["event", "closes", *(f"é{i}" for i in range(50)), "outcome"]]
    for t, (given, y) in enumerate(zip(f.X, f.outcomes, strict=True)):
        cells = ["" if np.isnan(p) else f"{p:.4f}" for p in given]
        rows.append([f"q{t}", f"2025-01-{t % 28 + 1:02d}T00:00", *cells, "" if y < 0 else str(y)])
    (tmp_path / "crowd.csv").write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    command, seen = [sys.executable, "-c", BOTH, str(tmp_path / "crowd.csv")], set()
    for setting in SETTINGS:
        given = environment | dict.fromkeys(THREADS, "1") | setting
        ran = subprocess.run(command, env=given, capture_output=True, check=True)
        assert b"event,probability" in ran.stdout
        assert b'"summary"' in ran.stdout
        seen.add((ran.stdout, ran.stderr))
    assert len(seen) == 1
