import pickle

import numpy as np
import pytest

from opinionpool.streams.rows import Memory, Rows
from opinionpool.streams.stream import Stream


def block(seed, events=30, experts=3):
    rng = np.random.default_rng(seed)
    return rng.random((events, experts)), rng.integers(0, 2, events)


@pytest.mark.parametrize("shapes", [[(4, 3)] * 6, [(4, 3), (40, 3), (1, 3)], [(4, 3, 2), (3, 3, 2)]])
@pytest.mark.parametrize("room", [0, 10_000])
def test_copies_behind_each_other_are_one(shapes, room):
    memory, given = Memory(room), [np.random.default_rng(i).random(shape) for i, shape in enumerate(shapes)]
    rows = [Rows(memory.copy(each), np.zeros(len(each), dtype=int), np.ones(len(each))) for each in given]
    found = Rows.joined(rows)
    np.testing.assert_array_equal(found.forecasts, np.concatenate(given))
    np.testing.assert_array_equal(found.weight, np.ones(len(found)))
    assert np.shares_memory(found.forecasts, rows[0].forecasts) == (room == 10_000)
    # In another order they are not.
    back = Rows.joined(rows[::-1])
    np.testing.assert_array_equal(back.forecasts, np.concatenate(given[::-1]))


def test_copies_of_a_stream_do_not_write_into_each_other():
    one = Stream()
    one.add_rows(*block(0))
    two, three = one.copy(), pickle.loads(pickle.dumps(one))
    for stream, seed in ((one, 1), (two, 2), (three, 3), (one, 4), (two, 5), (three, 6)):
        stream.add_rows(*block(seed))
    for stream, seeds in ((one, (0, 1, 4)), (two, (0, 2, 5)), (three, (0, 3, 6))):
        alike = Stream()
        alike.add_rows(*map(np.concatenate, zip(*map(block, seeds), strict=True)))
        np.testing.assert_allclose(stream.learn(beliefs=None).weights, alike.learn(beliefs=None).weights, rtol=1e-10)
        np.testing.assert_array_equal(stream.learn().weights, alike.learn().weights)


def test_an_array_that_is_used_again_was_copied():
    stream, alike, buffer = Stream(), Stream(), np.empty((30, 3))
    for seed in range(4):
        q, y = block(seed)
        buffer[:] = q
        stream.add_rows(buffer, y)
        alike.add_rows(q, y)
    np.testing.assert_array_equal(stream.learn().weights, alike.learn().weights)
