"""Reading a table that stands in a test, and what came of it."""

import io
from operator import attrgetter

import numpy as np

from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import read_forecasts

NAN = float("nan")


def source(text):
    return io.BytesIO(text.encode()) if isinstance(text, str) else io.BytesIO(text) if isinstance(text, bytes) else text


def read(text, outcomes=None, **options):
    """Forecasts of a table in text or bytes; its outcomes may be in another."""
    return read_forecasts(source(text), outcomes=source(outcomes), **options)


def ways(text, outcomes=None, **options):
    """The options of each command that ``check`` would print, and the forecasts that it leads to."""
    found = diagnose(source(text), source(outcomes), ReadOptions(**options))
    return [(way.options.arguments(), way.forecasts) for way in found.readable]


def notes(found):
    return {note.code: note for note in found.notes}


def texts(found):
    return {note.code: note.text for note in found.notes}


def same(found, x, outcomes=None):
    np.testing.assert_array_equal(found.X, x)
    if outcomes is not None:
        assert found.outcomes.tolist() == outcomes


def as_expected(found, expected):
    """Whether attributes of forecasts are the expected ones, by their names."""
    for name, value in expected.items():
        check = np.testing.assert_allclose if name in {"X", "prior"} else np.testing.assert_array_equal
        check(attrgetter(name)(found), value, err_msg=name)


def check_offered(text, commands, **options):
    """Whether the commands that ``check`` would print are these, and each leads to what is expected of it."""
    found = {" ".join(arguments): forecasts for arguments, forecasts in ways(text, **options)}
    assert list(found) == list(commands)
    for command, expected in commands.items():
        as_expected(found[command], expected)
