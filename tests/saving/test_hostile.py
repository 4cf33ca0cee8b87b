"""Saved pools that somebody made to do harm, and pools that could not be read again."""

import copy
import json
import random
import tracemalloc
import warnings

import numpy as np
import pytest

import opinionpool as op
from opinionpool.errors import SavedPoolError
from opinionpool.pools.fit import fit_pool
from opinionpool.streams.trained import TrainedPool

X, Y = op.Panel.exchangeable(3, correlation=0.3, accuracy=0.8).simulate(12, seed=3)
F = op.Forecasts.from_array(X, Y.astype(int))


def pools():
    stream = op.Stream()
    stream.add(F)
    stream.forecast("new", {"expert_1": 0.3})
    named = op.Forecasts.from_array(X, ["no" if y == 0 else "yes" for y in Y], classes=("no", "yes"))
    return {
        **{name: fit_pool(name, F) for name in ("linear", "log", "beta-linear")},
        "estimator": op.LinearPool().fit(X, np.where(Y == 1, "yes", "no")),
        "incremental": op.AveragePool().partial_fit(X, Y),
        "panel": op.Panel.exchangeable(3, correlation=0.3),
        "classes": op.Panel([1.0, 0.5], [[1.0, 0.2], [0.2, 1.0]], classes=["a", "b", "c"]),
        "learned": fit_pool("gaussian", F),
        "stream": stream,
        "trained": TrainedPool.fit("log", named),
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "pool.json"
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, pool in pools().items():
            op.save(pool, path)
            found[name] = json.loads(path.read_text())
    return path, found


JUNK = [None, True, -1, 2**70, -0.0, 1e308, "x", "nan", "inf", [], [1], {}, {"type": "note"}, {"by_name": {}}]


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def get(content, place):
    for key in place:
        content = content[key]
    return content


def answers(made):
    """Whatever a pool is for."""
    if isinstance(made, op.Stream):
        return made.sample()[1]
    if isinstance(made, TrainedPool):
        return made.pool(X, 0.5)
    if isinstance(made, op.Panel) and len(made.classes) > 2:
        return made.pool(np.full((len(made), len(made.classes)), 1 / len(made.classes)))
    return made.predict_proba(X, prior=0.5) if hasattr(made, "predict_proba") else made.pool(X, 0.5)


@pytest.mark.parametrize("name", pools())
def test_parts_of_every_kind_in_every_place(saved, name):
    """A part that is right elsewhere, or none, in any place, without a checksum: refused, or there are answers."""
    path, found = saved
    chosen = random.Random(name)
    parts = [get(each["content"], place) for each in found.values() for place in places(each["content"])]
    parts = [*JUNK, *(part for part in parts if len(json.dumps(part)) < 2000)]
    mine = [place for place in places(found[name]["content"]) if place]
    for _ in range(150):
        page = copy.deepcopy({key: value for key, value in found[name].items() if key != "checksum"})
        *inside, key = chosen.choice(mine)
        if chosen.random() < 0.2:
            del get(page["content"], inside)[key]
        else:
            get(page["content"], inside)[key] = copy.deepcopy(chosen.choice(chosen.choice((JUNK, parts))))
        path.write_text(json.dumps(page))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = op.load(path)
        except SavedPoolError:
            continue
        try:
            found_answers = np.asarray(answers(made))
        except op.OpinionPoolError:
            # Other experts or classes than those asked about.
            continue
        assert np.isfinite(found_answers).all()


@pytest.mark.parametrize("name", ["estimator", "trained"])
def test_one_flipped_bit(saved, name):
    path, found = saved
    data = json.dumps(found[name]).encode()
    path.write_bytes(data)
    whole, chosen = answers(op.load(path)), random.Random(0)
    start = data.find(b'"checksum"')
    bits = [*range(8 * start, 8 * start + 96), *(chosen.randrange(8 * len(data)) for _ in range(250))]
    for bit in bits:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        try:
            found_answers = answers(op.load(path))
        except SavedPoolError:
            continue
        np.testing.assert_array_equal(found_answers, whole)


@pytest.mark.parametrize("kind", ["<U200000000", "U99999999999", "<f8(", "O,O", "V8", "M8[ns]", "<f16", "{", "", "S5"])
def test_types_of_labels_ask_for_no_memory(saved, kind):
    path, found = saved
    page = copy.deepcopy({key: value for key, value in found["estimator"].items() if key != "checksum"})
    page["content"]["labels"] = kind
    path.write_text(json.dumps(page))
    tracemalloc.start()
    try:
        made = op.load(path)
    except SavedPoolError:
        pass
    else:
        assert made.classes_.tolist() == ["no", "yes"]
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_an_empty_array_has_no_long_axis(saved):
    path, found = saved
    page = copy.deepcopy({key: value for key, value in found["stream"].items() if key != "checksum"})
    page["content"]["beyond"] = {"shape": [0, 1 << 39], "values": []}
    path.write_text(json.dumps(page))
    with pytest.raises(SavedPoolError):
        op.load(path)


def test_the_checksum_is_compared_before_anything_is_made(saved):
    path, found = saved
    page = copy.deepcopy(found["estimator"])
    page["content"]["labels"] = "{"
    path.write_text(json.dumps(page))
    with pytest.raises(SavedPoolError, match="checksum"):
        op.load(path)
    page = {("chexksum" if key == "checksum" else key): value for key, value in found["estimator"].items()}
    path.write_text(json.dumps(page))
    with pytest.raises(SavedPoolError, match="'chexksum', which is unknown"):
        op.load(path)


@pytest.mark.parametrize("labels", [(0, 2**63), (1, 10**25)])
def test_what_could_not_be_read_is_not_written(tmp_path, labels):
    path = tmp_path / "pool.json"
    op.save(op.Panel.exchangeable(2), path)
    before = path.read_bytes()
    stream = op.Stream(labels)
    stream.forecast("q", {"ann": 0.4})
    panel = op.Panel.exchangeable(2, classes=labels)
    for pool in (stream, panel):
        with pytest.raises(SavedPoolError, match="cannot be saved, as what would be written could not be read"):
            op.save(pool, path)
        assert path.read_bytes() == before
    assert op.load(path).weights == pytest.approx([1.0, 1.0])
