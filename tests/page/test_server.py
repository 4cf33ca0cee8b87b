"""The server and its command: who is refused, what is bounded and written, when it ends; that a move is quick."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from opinionpool.cli import app as cli, pages as command
from opinionpool.errors import ArgumentError
from opinionpool.learning.beliefs import Beliefs
from opinionpool.page import handover, server
from opinionpool.page.answer import PageData
from opinionpool.page.assessment import Assessment, Expert, ExpertBeliefs
from opinionpool.page.server import MOST_BYTES, Server
from opinionpool.page.session import read_kept, start_of

from .test_handover import forecasts_file

NAME = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def panel(n):
    experts = tuple(
        Expert(i, f"expert {i}", (0.2 + 0.03 * i % 0.6,), ExpertBeliefs(auc=0.6 + 0.01 * i, calibration=0.9, bias=0.1))
        for i in range(1, n + 1)
    )
    return Assessment("Q?", experts=experts, everyone=Beliefs(correlation=0.5), prior=(0.4,))


def test_it_listens_to_this_machine_alone(serve):
    server = serve()
    assert server.address == f"http://127.0.0.1:{server.port}/{server.token}/"
    assert len(server.token) >= 32
    assert server.server._socket.getsockname()[0] == "127.0.0.1"
    assert serve().token != server.token


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}), ("/wrong/", {}), ("/{token}x/", {}), ("/assets/page.js", {}), ("/favicon.ico", {}),
        ("/{token}/", {"host": "evil.example"}), ("/{token}/", {"host": "evil.example:{port}"}),
        ("/{token}/", {"host": "127.0.0.1"}), ("/{token}/", {"origin": "http://evil.example"}),
        ("/{token}/", {"origin": "null"}), ("/{token}/", {"origin": "https://127.0.0.1:{port}"}),
    ],
)  # fmt: skip
def test_strangers_are_refused(serve, path, headers):
    server = serve()

    def filled(text):
        return text.replace("{token}", server.token).replace("{port}", str(server.port))

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    given = {"host": f"127.0.0.1:{server.port}"} | {key: filled(value) for key, value in headers.items()}
    connection.request("GET", filled(path), headers=given)
    refusal = connection.getresponse()
    assert refusal.status == 403
    assert server.token not in refusal.read().decode()
    connection.close()


def test_its_own_page_is_not_refused(serve):
    server = serve()
    own = {"origin": f"http://127.0.0.1:{server.port}"}
    assert server.request("", headers=own)[0] == 303
    assert server.request("", headers={"host": f"localhost:{server.port}"})[0] == 303


def test_nothing_inline_and_nothing_foreign(serve):
    server = serve(given=panel(3))
    status, headers, content = server.request(server.page())
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["referrer-policy"] == "no-referrer"
    text = content.decode()
    assert " style=" not in text
    assert "<style" not in text
    assert " onclick" not in text
    assert "http://" not in text
    assert "https://" not in text


def test_names_are_never_markup(serve):
    server = serve()
    page = server.page()
    drawn = server.move(
        page,
        {"do": "question", "value": NAME},
        {"do": "assessor", "value": NAME},
        {"do": "name", "expert": 1, "value": NAME},
        {"do": "add", "value": f"{NAME}: 30%"},
    )
    texts = list(drawn["regions"].values())
    for view in ("what_if", "hand_over"):
        texts += server.move(page, {"do": "view", "value": view})["regions"].values()
    texts.append(json.loads(server.request(f"{page}later/effects")[2])["html"])
    texts.append(server.request(page)[2].decode().replace('<script src="../../assets/page.js" defer></script>', ""))
    for text in texts:
        assert "<script" not in text
        assert "<img" not in text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("[", 400), ("{}", 400), ("[]", 400), ('{"version": 1, "moves": []}', 400),
        ('{"version": 1, "moves": [1]}', 400),
        ('{"version": 1, "moves": [{"do": "forecast", "expert": 1, "value": [1]}]}', 400), ("[" * 100_000, 400),
        (json.dumps({"version": 1, "moves": [{"do": "undo"}] * 1000}), 400), (" " * (MOST_BYTES + 1), 413),
    ],
)  # fmt: skip
def test_what_comes_is_bounded(serve, body, status):
    server = serve()
    page = server.page()
    given = {"content-type": "application/json"}
    assert server.request(f"{page}move", method="POST", body=body, headers=given)[0] == status


def test_a_body_without_a_length_is_bounded_too(serve):
    server = serve()
    page = server.page()
    chunks = (b" " * 65536 for _ in range(40))
    given = {"content-type": "application/json", "transfer-encoding": "chunked"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(
            "POST",
            f"/{server.token}/{page}move",
            chunks,
            {"host": f"127.0.0.1:{server.port}"} | given,
            encode_chunked=True,
        )
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has answered and closed before all was sent
    finally:
        connection.close()
    assert server.request(page)[0] == 200


@pytest.mark.parametrize(
    "move",
    [
        {}, {"do": "nonsense"}, {"do": "forecast", "expert": 99, "value": 50},
        {"do": "forecast", "expert": 1, "value": "many"}, {"do": "forecast", "expert": 1, "value": 101},
        {"do": "forecast", "expert": 1, "value": float("nan")}, {"do": "prior", "value": 0},
        {"do": "accuracy", "expert": 1, "unit": "weight", "value": 0.8},
        {"do": "accuracy", "expert": 1, "unit": "auc", "value": 0.2}, {"do": "correlation", "value": 1.5},
        {"do": "name", "expert": 1, "value": "Ben, banker"}, {"do": "name", "expert": 1, "value": " "},
        {"do": "name", "expert": 1, "value": "x" * 500}, {"do": "name", "expert": 1, "value": "\x1b[31m"},
        {"do": "name", "expert": 1, "value": "\ud800"}, {"do": "question", "value": ""},
        {"do": "outcomes", "value": "a, b"}, {"do": "outcomes", "value": "a, b, a"}, {"do": "add", "value": ""},
        {"do": "add", "value": "\n".join(f"n{i}" for i in range(300))}, {"do": "panel", "value": "calibration = "},
        {"do": "panel", "value": "calibration = -1"}, {"do": "panel", "value": "nothing = 1"},
        {"do": "action", "value": 0}, {"do": "worth", "expert": 1, "value": -1}, {"do": "view", "value": "elsewhere"},
        {"do": "event", "value": 0}, {"do": "take", "value": 0}, {"do": "take", "value": "9" * 5000},
        {"do": "forecast", "expert": 1, "value": "9" * 5000},
    ],
)  # fmt: skip
def test_what_cannot_be_done_changes_nothing_and_says_why(serve, move):
    server = serve()
    page = server.page()
    before = server.move(page, {"do": "unit", "value": "auc"})["regions"]["answer"]
    drawn = server.move(page, move)
    assert drawn["regions"]["trouble"].startswith("<p>")
    assert drawn["regions"]["answer"] == before
    assert 'id="undo" disabled' in drawn["regions"]["top"]


def test_undo_and_redo_take_a_drag_as_one_step(serve):
    server = serve()
    page = server.page()
    first = server.move(page, {"do": "unit", "value": "auc"})["live"]
    drag = [{"do": "forecast", "expert": 1, "value": p, "begins": p == 70} for p in (70, 60, 50)]
    moved = server.move(page, *drag, {"do": "forecast", "expert": 1, "value": 40, "begins": False})["live"]
    then = server.move(page, {"do": "forecast", "expert": 2, "value": 20})["live"]
    assert len({first, moved, then}) == 3
    assert server.move(page, {"do": "undo"})["live"] == moved
    assert server.move(page, {"do": "undo"})["live"] == first
    assert server.move(page, {"do": "redo"}, {"do": "redo"})["live"] == then


def test_what_is_wrong_is_said_at_its_field(serve):
    server = serve()
    page = server.page()
    drawn = server.move(page, {"do": "forecast", "expert": 1, "value": "x", "field": "forecast-1"})
    assert drawn["wrong"]["field"] == "forecast-1"
    assert "must be a number" in drawn["wrong"]["text"]
    assert server.move(page, {"do": "unit", "value": "auc"})["wrong"] == {"field": "", "text": ""}


def test_a_client_that_leaves_in_the_middle_leaves_no_trace(serve, capfd):
    server = serve()
    page = server.page()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        head = f"POST /{server.token}/{page}move HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        client.sendall((head + "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{").encode())
        time.sleep(0.3)
    time.sleep(0.3)
    assert server.request(page)[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_move_with_20_experts_takes_30_ms_at_most(serve):
    """The median of the processor's time, as other tests may run beside this one."""
    server = serve(given=panel(20))
    page = server.page()
    took = [server.move(page, {"do": "forecast", "expert": 3, "value": 20 + i})["timing"] for i in range(15)]
    assert sorted(took)[7] <= 30.0


def test_kept_assessments_are_offered_again(serve, tmp_path):
    path = tmp_path / "kept.json"
    server = serve(keep=str(path))
    assert not path.exists()
    one, two = server.page(), server.page()
    server.move(one, {"do": "question", "value": "First?"})
    server.move(two, {"do": "question", "value": "Second?"}, {"do": "forecast", "expert": 1, "value": 11})
    # Nothing else is written, and nothing needs the server to end well.
    assert [each.name for each in tmp_path.iterdir()] == ["kept.json"]
    assert [kept.assessment.question for kept in read_kept(str(path))] == ["Second?", "First?"]
    later = serve(keep=str(path))
    page = later.page()
    assert b"Go on with Second?" in later.request(page)[2]
    drawn = later.move(page, {"do": "take", "value": "0"})
    assert "Second?" in drawn["regions"]["top"]
    assert 'value="11"' in drawn["regions"]["work"]


def test_two_servers_keep_what_the_other_has_kept(serve, tmp_path):
    path = tmp_path / "kept.json"
    for question in ("First?", "Second?", "Third?"):
        server = serve(keep=str(path))
        if question == "First?":
            first, page = server, server.page()
        server.move(page if question == "First?" else server.page(), {"do": "question", "value": question})
    first.move(page, {"do": "question", "value": "First after all?"})
    questions = [kept.assessment.question for kept in read_kept(str(path))]
    assert questions == ["First after all?", "Third?", "Second?"]


@pytest.mark.parametrize("content", ["precious", "{}", '{"format": "opinionpool", "version": 1}', "[" * 100_000])
def test_another_file_is_not_written_over(tmp_path, content):
    path = tmp_path / "notes.json"
    path.write_text(content)
    with pytest.raises(ArgumentError, match="no file of assessments"):
        Server(PageData(), keep=str(path))
    assert path.read_text() == content


def test_it_says_where_keeping_fails(serve, tmp_path):
    if os.geteuid() == 0:
        folder = tmp_path / "gone"
        folder.mkdir()
        server = serve(keep=str(folder / "kept.json"))
        folder.rmdir()
    else:
        server = serve(keep=str(tmp_path / "kept.json"))
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    page = server.page()
    server.move(page, {"do": "question", "value": "Kept?"})
    assert "cannot be written" in server.move(page, {"do": "unit", "value": "auc"})["keep"]


def test_it_ends_when_its_last_page_was_closed():
    server = Server(PageData(), linger=0.6)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.started.wait(20)
    time.sleep(1.0)
    assert thread.is_alive()  # no page was open yet
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    host = {"host": f"127.0.0.1:{server.port}"}
    connection.request("GET", f"/{server.token}/", headers=host)
    answered = connection.getresponse()
    answered.read()
    page = answered.headers["location"]
    connection.request("GET", f"/{server.token}/{page}alive", headers=host)
    stream = connection.getresponse()
    assert stream.readline().startswith(b": open")
    time.sleep(1.0)
    assert thread.is_alive()
    stream.close()
    connection.close()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.skipif(os.name == "nt", reason="interrupts are sent otherwise there")
def test_the_command_prints_its_address_and_ends_with_an_interrupt(root):
    words = [sys.executable, "-m", "opinionpool", "open", "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        connection = http.client.HTTPConnection(address.split("/")[2], timeout=20)
        # The socket listens before the address is printed, so this waits for the server.
        connection.request("GET", address.removeprefix(f"http://{address.split('/')[2]}"))
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """What a page would be opened with."""
    monkeypatch.chdir(tmp_path)
    started = []

    class Recorded(server.Server):
        def run(self):
            self._socket.close()
            started.append(self)

    monkeypatch.setattr(server, "Server", Recorded)

    def run(*words):
        status = cli.run(["open", "--no-browser", *map(str, words)])
        return status, started[-1]._parts if started else None

    return run


def test_with_nothing_it_has_three_advisers(opened):
    status, (data, given) = opened()
    assert (status, data.forecasts, given) == (0, None, None)


def test_a_panel_file_brings_its_experts(opened, tmp_path):
    (tmp_path / "panel.toml").write_text("correlation = 0.3\n[experts.ann]\nauc = 0.8\n")
    status, (_, given) = opened("--panel", "panel.toml")
    assert status == 0
    assert [each.name for each in given.experts] == ["ann"]
    assert given.everyone.correlation.value == 0.3


def test_a_file_and_its_options_are_for_the_command_handed_over(opened, tmp_path):
    forecasts_file(tmp_path, ("win", "loss"))
    status, (data, _) = opened("file.csv", "--positive", "loss", "--exclude", "a", "--column", "event=event")
    assert status == 0
    assert data.forecasts.experts == ("b", "c")
    assert data.source.files == ("file.csv",)
    assert data.source.reading == ("--column", "event=event", "--positive", "loss", "--exclude", "a")


def test_a_saved_pool_answers_as_it_is(opened, tmp_path, capsys):
    forecasts_file(tmp_path)
    assert cli.run(["pool", "file.csv", "--save", "pool.json", "-o", "out.csv"]) == 0
    status, (data, given) = opened("--model", "pool.json")
    assert (status, given.prior) == (0, None)
    assert data.trained.experts == ("a", "b", "c")
    status, (data, given) = opened("file.csv", "--model", "pool.json")
    assert (status, given) == (0, None)
    assert len(data.forecasts.events) == 32


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--positive", "yes"], 2, "there is none"), (["--keep", "folder/kept.json"], 2, "no directory"),
        (["--keep", "file.csv", "file.csv"], 2, "read from"), (["--keep", "out.txt"], 2, "no file of assessments"),
        (["nowhere.csv"], 2, "no file nowhere.csv"), (["--port", "70000"], 2, "range"),
        (["--panel", "bad.toml"], 1, "not TOML"),
    ],
)  # fmt: skip
def test_what_it_refuses(opened, tmp_path, capsys, words, status, message):
    forecasts_file(tmp_path)
    (tmp_path / "bad.toml").write_text("correlation = ")
    (tmp_path / "out.txt").write_text("precious")
    assert opened(*words)[0] == status
    assert message in capsys.readouterr().err
    assert (tmp_path / "out.txt").read_text() == "precious"


def test_it_says_what_to_install(opened, monkeypatch, capsys):
    monkeypatch.setattr(command, "NEEDED", ("nothing_of_that_name",))
    assert opened()[0] == 1
    assert "pip install" in capsys.readouterr().err


def test_several_files_are_named_in_the_command(opened, tmp_path):
    rows = forecasts_file(tmp_path).read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(rows[:50]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([rows[0], *rows[50:]]) + "\n")
    status, (data, _) = opened("one.csv", "two.csv")
    assert status == 0
    a = start_of(data, None)
    line = handover.command_line(a, data)
    assert line == "opinionpool explain one.csv two.csv q30"
