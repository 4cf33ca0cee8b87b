"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

# Linux can write a file that has no name yet, so that nothing is left of it when the process is killed.
_UNNAMED = getattr(os, "O_TMPFILE", None)
_DESCRIPTORS = "/proc/self/fd"
# What writing to an open file fails with, without naming it.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream of bytes that becomes the file at `path` when the block ends without an error.

    Until then what was there stays, and nobody sees half of the new content, whenever the process ends. Links are
    followed, permissions kept. Devices and pipes are written to as they are, and never replaced.

    Raises
    ------
    OSError
        If it cannot be written; it names `path`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing(folder / "new") as out:
    ...     _ = out.write(b"half")
    ...     seen = list(folder.iterdir())
    >>> seen, (folder / "new").read_bytes()
    ([], b'half')
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
    """Let errors of writing name the file that was asked for, not a draft or nothing."""
    try:
        yield
    except OSError as error:
        if _is_draft(str(error.filename), path) if error.filename is not None else error.errno in _FULL:
            error.filename, error.filename2 = path, None
        raise


def _is_draft(name: str, path: str) -> bool:
    """Whether `name` is that of a draft of the file at `path`."""
    folder, last = os.path.split(os.path.realpath(path))
    return name.startswith((_DESCRIPTORS, os.path.join(folder, f".{last}.")))


@contextmanager
def _drafted(target: str) -> Iterator[BinaryIO]:
    """A stream into a draft, which takes the place of the file at `target` when all went well."""
    folder, name = os.path.split(target)
    handle = _unnamed(folder)
    draft = None
    if handle is None:
        handle, draft = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            # A file without a name is changed by its descriptor, which not every system can do.
            os.chmod(handle if draft is None else draft, _mode(target))
            os.fsync(handle)
            if draft is None:
                draft = _named(handle, target)
        if draft != target:
            os.replace(draft, target)
    except BaseException:
        if draft is not None and draft != target:
            with suppress(OSError):
                os.unlink(draft)
        raise
    _sync(folder)


def _unnamed(folder: str) -> int | None:
    """A file without a name, None where there is no such thing."""
    if _UNNAMED is None or not os.path.isdir(_DESCRIPTORS):
        return None
    with suppress(OSError):
        return os.open(folder, _UNNAMED | os.O_RDWR | os.O_CLOEXEC, 0o600)
    return None


def _named(handle: int, target: str) -> str:
    """Name a complete file: as wanted, or beside it if something is there."""
    source = f"{_DESCRIPTORS}/{handle}"
    folder, name = os.path.split(target)
    names = [target, *(os.path.join(folder, f".{name}.{os.getpid()}.{i}") for i in range(100))]
    for place in names:
        with suppress(FileExistsError):
            # A directory's descriptor makes this follow the link to the file; the path is absolute, so any will do.
            os.link(source, place, src_dir_fd=handle)
            return place
    raise FileExistsError(17, "there is no name left for a draft", target)


def _sync(folder: str) -> None:
    """Make the new name last, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode(path: str) -> int:
    """The permissions that a file at `path` has, or would get."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
