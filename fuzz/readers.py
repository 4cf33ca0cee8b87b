"""Bytes that may be a table: forecasts come of them, or an error of the project's own, and nothing else.

Coverage-guided, by atheris, which is not among the project's dependencies:

    python -m venv build/fuzz && build/fuzz/bin/pip install atheris -e . pyarrow
    build/fuzz/bin/python fuzz/readers.py build/corpus -max_total_time=600 -timeout=30 -rss_limit_mb=3000

Options after the folder are libFuzzer's. The folder is filled with small tables to begin with. One input again:
``fuzz/readers.py FILE``.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["opinionpool"]):
    from opinionpool.errors import OpinionPoolError, OpinionPoolWarning
    from opinionpool.forecasts import Forecasts
    from opinionpool.pools import registry as rules
    from opinionpool.report import check as describe
    from opinionpool.report.listing import write_csv
    from opinionpool.tables.diagnosis import diagnose
    from opinionpool.tables.read import read_forecasts

WIDE = "event,ann,bob,outcome\nq1,0.9,0.8,1\nq2,0.2,,0\nq3,0.4,0.3,\nq4,0.6,1,1\n"
LONG = (
    "event;expert;probability;class;time;closes;prior;outcome\n"
    "q1;ann;45%;yes;2025-03-01T10:00;2025-03-02;50%;yes\nq1;ann;55 %;no;2025-03-01T10:00;2025-03-02;50%;yes\n"
    "q2;bob;10%;yes;2025-03-03T00:30+02:00;;50%;\nq2;bob;90%;no;;;50%;\n"
)
CLASSES = 'id\tann:red\tann:green\tann:blue\toutcome\n"q,1"\t0,2\t0,3\t0,5\tred\n"q ""2"""\t0,1\t0,1\t0,8\t\n'
LINES = [{"event": "q1", "ann": 0.5, "bob": None, "outcome": True}, {"event": "q2", "ann": 1e-300, "bob": "20%"}]


def tables() -> dict[str, bytes]:
    """Tables to begin with; the first byte chooses the options."""
    found = {
        "wide": WIDE.encode(),
        "long": LONG.encode(),
        "classes": CLASSES.encode(),
        "lines": "\n".join(map(json.dumps, LINES)).encode(),
        "array": json.dumps(LINES).encode(),
        "gzip": gzip.compress(WIDE.encode()),
        "utf16": LONG.encode("utf-16"),
        "mark": b"\xef\xbb\xbf" + WIDE.replace("\n", "\r\n").encode(),
        "sep": b"sep=;\r\n\r\n" + LONG.replace("\n", "\r").encode(),
        "repeated": (WIDE + WIDE).encode(),
    }
    with contextlib.suppress(ImportError):
        import pyarrow
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(LINES[:1]), buffer)
        found["parquet"] = buffer.getvalue()
    return {name: bytes([i]) + data for i, (name, data) in enumerate(found.items())}


def read(data: bytes) -> Forecasts:
    """Forecasts under options that the first byte chooses."""
    chosen = data[0] if data else 0
    return read_forecasts(
        io.BytesIO(data[1:]),
        outcomes=io.BytesIO(data[1:]) if chosen & 16 else None,
        duplicates=(None, "last", "mean", "last")[chosen & 3],
        percent=chosen & 12 == 12,
        as_of="2025-03-01T12:00Z" if chosen & 32 else None,
        positive="yes" if chosen & 64 else None,
        missing_values=("0",) if chosen & 128 else (),
    )


def attempt(data: bytes) -> None:
    """Read, describe and pool what can be; anything else than an `OpinionPoolError` is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OpinionPoolWarning)
        try:
            found = describe.examine(diagnose(io.BytesIO(data[1:])))
            forecasts = read(data)
            write_csv(describe.check_view(found, "the file").columns, io.StringIO())
            rules.fit_pool("average", forecasts).pool(forecasts.X)
        except OpinionPoolError as error:
            str(error).encode()


def main() -> None:
    """Fuzz with the folder given first as the corpus."""
    if len(sys.argv) > 1 and not os.path.isfile(sys.argv[1]) and not sys.argv[1].startswith("-"):
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in tables().items():
            (folder / name).write_bytes(data)
    atheris.Setup(sys.argv, attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
