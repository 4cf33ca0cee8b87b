"""Files that appear completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

# What writing to an open file fails with, without naming it.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Context with a binary stream whose content becomes the file at `path` if the block ends without an error.

    Until then an earlier file stays, even if the process is killed. Links are followed, permissions kept. Devices and
    pipes are written to directly. Raises an OSError that names `path` if the file cannot be written.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing(folder / "new") as out:
    ...     _ = out.write(b"half")
    ...     seen = (folder / "new").exists()
    >>> seen, (folder / "new").read_bytes()
    (False, b'half')
    """
    target = os.path.realpath(path)
    with _naming(os.fspath(path)):
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as stream:
                yield stream
            return
        with _drafted(target) as stream:
            yield stream


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Context in which an error of writing says that it concerns `path`, and not a temporary file."""
    try:
        yield
    except OSError as error:
        draft = os.path.join(os.path.dirname(os.path.realpath(path)), f".{own_name()}")
        if error.errno in _FULL if error.filename is None else str(error.filename).startswith(draft):
            raise type(error)(error.errno, error.strerror, path) from None
        raise


@contextmanager
def _drafted(target: str) -> Iterator[BinaryIO]:
    """Context with a binary stream to a temporary file, which replaces `target` if the block ends without an error."""
    folder = os.path.dirname(target)
    for path in abandoned(folder):
        with suppress(OSError):
            os.unlink(path)
    handle, draft = _draft(folder)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            # A new file has the permissions that files get here.
            with suppress(FileNotFoundError):
                os.chmod(draft, os.stat(target).st_mode & 0o7777)
            os.fsync(handle)
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync(folder)


def own_name(process: int | None = None) -> str:
    """Return ``opinionpool-HOST-PROCESS-``, the prefix of names of a process's temporary files; None: this process."""
    host = hashlib.sha256(os.uname().nodename.encode() if hasattr(os, "uname") else b"").hexdigest()[:8]
    return f"opinionpool-{host}-{os.getpid() if process is None else process}-"


def abandoned(folder: str) -> list[str]:
    """Return paths of temporary files and folders in `folder` whose process, on this machine, no longer runs.

    >>> import tempfile
    >>> abandoned(tempfile.mkdtemp())
    []
    """
    pattern = re.compile(rf"\.?{re.escape(own_name(0).removesuffix('0-'))}(\d+)-.*")
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = pattern.fullmatch(entry.name)
            if named and not _runs(int(named[1])):
                found.append(entry.path)
    return found


def _runs(process: int) -> bool:
    """Return True if a process with this number runs, or if that cannot be determined."""
    try:
        os.kill(process, 0) if os.name == "posix" else None
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _draft(folder: str) -> tuple[int, str]:
    """Return handle and path of a new temporary file in `folder`, with a short name that no other file has."""
    for number in itertools.count():
        place = os.path.join(folder, f".{own_name()}{number}.draft")
        with suppress(FileExistsError):
            return os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), place
    raise AssertionError("there is always another name")


def _sync(folder: str) -> None:
    """Flush a folder to disk, if the system can, so that a new name in it survives a crash."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
