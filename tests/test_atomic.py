"""Files that appear whole or not at all."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from opinionpool.atomic import abandoned, own_name, replacing


def write(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


@pytest.mark.parametrize("length", [1, 251, 255])
def test_names_as_long_as_names_can_be(tmp_path, length):
    path = tmp_path / ("x" * length)
    for data in (b"one", b"two"):
        write(path, data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions here")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_any_file(tmp_path, mask):
    path, old = tmp_path / "file", os.umask(mask)
    try:
        write(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_mask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    """Other threads write files meanwhile."""
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the mask was changed"))
    write(tmp_path / "file")


@pytest.mark.skipif(os.name != "posix", reason="whether a process runs is not asked here")
def test_what_killed_processes_left_is_removed_at_the_next_start(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".{own_name(gone.pid)}0.draft"
    mine, other = tmp_path / f".{own_name()}7.draft", tmp_path / ".opinionpool-elsewhere-1-0.draft"
    for path in (left, mine, other):
        path.write_text("half")
    assert abandoned(str(tmp_path)) == [str(left)]
    write(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted([mine.name, other.name, "file"])


def test_threads_write_side_by_side(tmp_path):
    wrong = []

    def many(number):
        try:
            for i in range(20):
                write(tmp_path / "file", f"{number} {i}\n".encode() * 50)
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=many, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(set((tmp_path / "file").read_text().splitlines())) == 1
    assert os.listdir(tmp_path) == ["file"]
