"""Files of pools: JSON with a format version, exact to every bit, of which nothing is executed when it is read.

The types that a file may hold are given as `Kinds`; `POOLS` has the types that do not need scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from opinionpool.arguments import file_path
from opinionpool.atomic import replacing
from opinionpool.errors import SavedPoolError
from opinionpool.saving.codec import Kinds, demand
from opinionpool.saving.kinds import KINDS
from opinionpool.text import listed
from opinionpool.version import __version__

FORMAT, VERSION = "opinionpool", 1
POOLS = Kinds(*KINDS)
# A file larger than this is not read, and none is written. Numbers take up to nine times their length in memory.
MOST_BYTES = 256 * 2**20
_KEYS = {"format", "version", "written_by", "content", "checksum"}
# A saved pool has few lists and tables, however long they are.
MOST_BRACKETS = 1_000_000
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def write(pool: object, path: str | os.PathLike[str], kinds: Kinds = POOLS) -> None:
    """Write a pool to a file, which appears completely or not at all; errors as for `to_bytes`."""
    data = to_bytes(pool, kinds)
    with replacing(file_path(path)) as file:
        file.write(data)


def to_bytes(pool: object, kinds: Kinds = POOLS) -> bytes:
    """Return the content of the file that `write` writes.

    Raises SavedPoolError if `pool` is no pool, its file would have more than 256 MB, or `load` would refuse the file.
    """
    demand(kinds.of(pool) is not None, f"a {type(pool).__name__} is no pool that can be saved")
    content = kinds.encode(pool)
    head = {"format": FORMAT, "version": VERSION, "written_by": f"opinionpool {__version__}"}
    lines = [*(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())]
    lines += [f'"content": {_dumped(content)}', f'"checksum": "{_checksum(content)}"']
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")
    if len(data) > MOST_BYTES:
        raise SavedPoolError(
            f"this pool would take {len(data) / 2**20:.0f} MB, and a file may have {MOST_BYTES // 2**20}; a stream "
            "with a smaller capacity takes less"
        )
    try:
        _check_brackets(data)
        _made(content, kinds)
    except SavedPoolError as error:
        raise SavedPoolError(
            f"this pool cannot be saved, as what would be written could not be read: {error}"
        ) from None
    return data


def read(path: str | os.PathLike[str], kinds_of: Callable[[str], Kinds]) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the pool saved in a file; `kinds_of` gives the types to read it with, by the name of the pool's type.

    Raises the errors of `op.load`.
    """
    name = file_path(path)
    try:
        with open(name, "rb") as file:
            data = _bytes_of(file)
        return _read(data, kinds_of)
    except SavedPoolError as error:
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 300 else reason[:297] + "..."
        raise SavedPoolError(f"{name} cannot be read as a saved pool: {reason}") from None


def _read(data: bytes, kinds_of: Callable[[str], Kinds]) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the saved object from the content of a file, after its checksum, parts and answers are checked."""
    found = _parsed(data)
    content = found.get("content")
    same = "checksum" not in found or found["checksum"] == _checksum(content)
    demand(same, "something in it was changed after it was written, as its checksum shows")
    named = content.get("type") if isinstance(content, dict) else None
    demand(isinstance(named, str), "content: should be a saved pool, and is not")
    return _made(content, kinds_of(str(named)))


def _made(content: object, kinds: Kinds) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the saved object from parsed JSON; a SavedPoolError if its parts do not fit together or it cannot pool."""
    try:
        return kinds.decode(content, Any, "content")
    except SavedPoolError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        # Parts that are right by themselves.
        raise SavedPoolError(f"content: its parts do not fit together ({error})") from None
    except MemoryError:
        raise SavedPoolError("content: it says that it is larger than what fits into memory") from None


def _dumped(content: object, *, ordered: bool = False) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"), sort_keys=ordered)


def _checksum(content: object) -> str:
    try:
        ordered = _dumped(content, ordered=True)
    except ValueError:
        raise SavedPoolError("a number is too large") from None
    return hashlib.sha256(ordered.encode("ascii")).hexdigest()


def _bytes_of(file: BinaryIO) -> bytes:
    """Return the content of a file; of a file above `MOST_BYTES`, only its beginning."""
    parts, size = [], 0
    while size <= MOST_BYTES and (part := file.read(1 << 20)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


# What numbers, true, false and null consist of.
_PLAIN = "0123456789.+-eEtruefalsn"


def _parsed(data: bytes) -> dict[str, Any]:
    """Return the content of a file as a JSON object, whose format version is checked."""
    demand(len(data) <= MOST_BYTES, f"it is larger than {MOST_BYTES // 2**20} MB")
    _check_brackets(data)
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_distinct)
    except UnicodeDecodeError:
        raise SavedPoolError("it is no text") from None
    except RecursionError:
        raise SavedPoolError("its lists and tables are nested too deeply") from None
    except json.JSONDecodeError as error:
        # Nothing, or the beginning of a number or a word, is left there.
        early = not error.doc[error.pos :].strip().strip(_PLAIN) or error.msg.startswith("Unterminated")
        what = "it ends too early" if early else "it is no JSON"
        raise SavedPoolError(f"{what} (line {error.lineno}, column {error.colno})") from None
    except SavedPoolError:
        raise
    except ValueError:
        raise SavedPoolError("a number has too many digits") from None
    demand(isinstance(found, dict) and found.get("format") == FORMAT, f'it does not say "format": "{FORMAT}"')
    strange, version = sorted(found.keys() - _KEYS), found.get("version")
    demand(not strange, f"it has a {listed(strange)}, which is unknown")
    demand(type(version) is int and version >= 1, 'its "version" should be a whole number')
    known = f"its format has version {version}, and this release of opinionpool knows version {VERSION} only"
    demand(version == VERSION, f"{known}; use a newer one")
    return dict(found)


def _check_brackets(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS:
        bare = _TEXT.sub(b"", data)
        if bare.count(b"[") + bare.count(b"{") > MOST_BRACKETS:
            raise SavedPoolError(f"it has more than {MOST_BRACKETS:,} lists and tables")


def _no_number(token: str) -> NoReturn:
    raise SavedPoolError(f"{token} is no number in JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    demand(len(found) == len(pairs), "a table has the same name twice")
    return found
