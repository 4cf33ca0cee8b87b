"""Saved pools answer with the same bits, go on learning, and are refused where anything is wrong with the file."""

import dataclasses
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import opinionpool as op
from opinionpool.errors import ArgumentError, Note, OpinionPoolError, OpinionPoolWarning, SavedPoolError
from opinionpool.estimators.files import load, save
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import logit
from opinionpool.model.full_panel import FullPanel
from opinionpool.pools.fit import fit_pool
from opinionpool.streams.stream import Stream
from opinionpool.streams.trained import TrainedPool
from tests.panels import drawn

RNG = np.random.default_rng(0)


def simulated(events=40, missing=0.15, unresolved=0.1, **how):
    return drawn(events, missing=missing, unresolved=unresolved, **how)


def again(pool, path):
    save(pool, path)
    return load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pool.json"


LABELS = [(0, 1), ("no", "yes"), (False, True), (0.0, 1.0), ("a", "b", "c"), (2, 5, 9)]


class TestTheSame:
    @pytest.mark.parametrize("classes", LABELS, ids=str)
    @pytest.mark.parametrize("structure", ["auto", "full", "common", "exchangeable", "independent"])
    def test_learned_panels(self, path, classes, structure):
        f = simulated(classes=classes, seed=3)
        learned = learn(f, structure=structure, beliefs="default" if structure == "auto" else None)
        loaded = again(learned, path)
        assert loaded.pool(f.X).tobytes() == learned.pool(f.X).tobytes()
        assert loaded.pool_forecasts(f).tobytes() == learned.pool_forecasts(f).tobytes()
        assert loaded.panel.classes == classes
        assert [type(label) for label in loaded.panel.classes] == [type(label) for label in classes]
        assert loaded.notes == learned.notes
        assert loaded.structure == learned.structure
        assert loaded.present.tolist() == learned.present.tolist()
        assert loaded.panel.bias.tobytes() == learned.panel.bias.tobytes()
        if structure == "auto" and len(classes) == 2:
            assert [x.tobytes() for x in loaded.interval(f.X)] == [x.tobytes() for x in learned.interval(f.X)]
            assert loaded.marginal.accuracy.tobytes() == learned.marginal.accuracy.tobytes()

    @pytest.mark.parametrize("name", ["GaussianPool", "class-model", "topics"])
    def test_files_of_older_releases_have_intervals_about_their_answers(self, name):
        state = load(Path(__file__).parents[1] / "golden" / "saved" / f"{name}.json").state_
        k, n = len(state.classes), len(state.experts)
        q = np.random.default_rng(0).dirichlet(np.ones(k), (5, n))
        x, prior = (q[..., 1], 0.5) if k == 2 else (q, np.full(k, 1 / k))
        low, answer, high = (
            logit(each) for each in (state.interval(x, prior)[0], state.pool(x, prior), state.interval(x, prior)[1])
        )
        assert high - answer == pytest.approx(answer - low, abs=1e-9)
        assert (high > low).all()

    @pytest.mark.parametrize(
        "panel",
        [
            op.Panel.exchangeable(4, correlation=0.3, classes=("no", "yes")),
            op.Panel.from_features([1.0, 0.0, 0.5], 0.4, [1, 2, 3], bias=[0.1, 0, -0.2]),
            op.Panel([1.0, 0.5], [[2.0, 0.3], [0.3, 1.0]], bias=[[0.1, 0.2, -0.3], [0, 1, 3]], classes=("a", "b", "c")),
            op.Panel([0.0, 0.5], [[0.0, 0.0], [0.0, 1.0]], floor=0.01, pool_floor=1e-5),
            FullPanel([[[-2.0, -2.0]], [[1.0, 1.0]], [[1.0, 1.0]]], [[3.0, 1.5], [1.5, 3.0]], classes=["x", "y", "z"]),
        ],
        ids=["exchangeable", "features", "three classes", "silent", "full"],
    )
    def test_panels(self, path, panel):
        loaded = again(panel, path)
        k, n = len(panel.classes), len(panel)
        q = RNG.dirichlet(np.ones(k), (50, n))
        q, prior = (q[..., 1], 0.3) if k == 2 else (q, np.array([0.2, 0.3, 0.5]))
        q[RNG.random((50, n)) < 0.2] = np.nan
        assert loaded.pool(q, prior).tobytes() == panel.pool(q, prior).tobytes()
        assert type(loaded) is type(panel)
        assert loaded.names == panel.names

    @pytest.mark.parametrize("pool", [op.GaussianPool(), op.LinearPool()], ids=str)
    def test_events_with_options_of_their_own(self, path, pool):
        said = [[[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]], [[0.4, 0.6, 0.0], [0.1, 0.9, 0.0]]] * 4
        options = [["a", "b", "c"], ["x", "y"]] * 4
        f = Forecasts.from_array(said, ["a", "y"] * 3 + [None, None], options=options)
        pool.fit(f)
        loaded = again(pool, path)
        assert loaded.predict_proba(f).tobytes() == pool.predict_proba(f).tobytes()
        assert loaded.predict(f).tolist() == pool.predict(f).tolist()

    def test_priors_of_the_events_own(self, path):
        f = simulated(unresolved=0)
        prior = np.linspace(0.1, 0.9, 40)
        learned = learn(f, prior=prior)
        assert again(learned, path).prior is None
        assert load(path).pool(f.X, prior).tobytes() == learned.pool(f.X, prior).tobytes()

    @pytest.mark.parametrize("options", [{}, {"half_life": 9.0}, {"capacity": 8, "seed": 3}, {"prior": 0.3}], ids=str)
    @pytest.mark.parametrize("classes", [(0, 1), ("a", "b", "c")], ids=str)
    def test_streams_go_on_as_if_nothing_had_happened(self, path, options, classes):
        if "prior" in options and len(classes) == 3:
            options = {"prior": [0.2, 0.3, 0.5]}
        f = simulated(60, classes=classes)
        stream = Stream(classes, **options)
        stream.add(f.select_events(np.arange(30)))
        stream.add_rows(f.X[:7], f.outcomes[:7], experts=f.experts)
        loaded = again(stream, path)
        assert loaded.fingerprint == stream.fingerprint
        for each in (stream, loaded):
            each.add(f)
            each.resolve("q3", classes[0])
        for structure, beliefs in (("auto", "default"), ("common", None)):
            one, two = stream.learn(structure, beliefs), loaded.learn(structure, beliefs)
            assert one.weights.tobytes() == two.weights.tobytes()
        assert loaded.fingerprint == stream.fingerprint
        assert again(loaded, path).open == loaded.open

    def test_streams_keep_priors_times_and_groups(self, path):
        f = simulated(20)
        f = Forecasts(
            f.events, f.experts, f.classes, f.event_index, f.expert_index, f.probabilities, f.outcomes,
            np.where(np.arange(20) % 3, 0.4, np.nan),
            np.datetime64("2025-01-01T12:00") + np.arange(20) * np.timedelta64(1, "D"),
            np.array([f"g{i % 4}" for i in range(20)]),
        )  # fmt: skip
        stream = Stream(prior=0.2)
        stream.add(f)
        (mine, _), (theirs, _) = stream.sample(), again(stream, path).sample()
        assert (mine.times == theirs.times).all()
        assert (mine.groups == theirs.groups).all()
        assert mine.prior.tobytes() == theirs.prior.tobytes()

    def test_names_of_any_kind(self, path):
        names = ['a"b', "é", "\ud800", "x\n", "[{", ""]
        assert again(op.Panel.exchangeable(6, names=names), path).names == tuple(names)

    def test_the_file_is_ordinary_json(self, path):
        save(learn(simulated()), path)
        page = json.loads(path.read_text(), parse_constant=pytest.fail)
        assert (page["format"], page["version"]) == ("opinionpool", 1)


class TestEstimators:
    def test_parameters_of_every_kind(self, path):
        f = simulated(unresolved=0)
        beliefs = op.Beliefs(correlation=(0.6, 50), extremes=np.inf, experts={"ann": {"auc": 0.8}})
        pool = op.GaussianPool(beliefs=beliefs).fit(f)
        pool.save(path)
        assert str(load(path).beliefs) == str(beliefs)
        weighed = op.LinearPool(weights={"ann": 1, "bob": 2, "cy": 0.5}).fit(f)
        weighed.save(path)
        loaded = load(path)
        assert loaded.weights_.tobytes() == weighed.weights_.tobytes()
        assert loaded.classes_.dtype == weighed.classes_.dtype
        assert loaded.feature_names_in_.tolist() == ["ann", "bob", "cy"]
        assert (loaded.get_params(), loaded.n_events_) == (weighed.get_params(), weighed.n_events_)
        listed = op.LinearPool(weights=[1, 2, 1]).fit(f)
        listed.save(path)
        assert load(path).fit(f).weights_.tobytes() == listed.weights_.tobytes()

    def test_what_is_not_fitted_is_not_saved(self, path):
        with pytest.raises(Exception, match="not fitted"):
            op.GaussianPool().save(path)
        assert not path.exists()
        with pytest.raises(SavedPoolError, match="a dict is no pool"):
            save({}, path)

    def test_experts_join(self):
        f = simulated(60, experts=4, missing=0.0, unresolved=0.0)
        first = f.select_events(np.arange(30)).select_experts(["ann", "cy"])
        pool = op.AveragePool().partial_fit(first).partial_fit(f.select_events(np.arange(30, 60)))
        assert pool.feature_names_in_.tolist() == ["ann", "cy", "bob", "dan"]
        assert pool.predict_proba(f)[:, 1] == pytest.approx(f.X.mean(axis=1))

    def test_errors_state_the_rule(self):
        f = simulated(unresolved=0)
        with pytest.warns(OpinionPoolWarning, match="began anew"):
            anew = op.GaussianPool().fit(f.X, f.outcomes).partial_fit(f.X[:30], f.outcomes[:30])
        assert anew.n_events_ == 30
        assert "the 40 events of the fit before it" in anew.notes_[-1].text
        pool = op.GaussianPool().partial_fit(f.X, f.outcomes, classes=[0, 1], prior=0.3)
        with pytest.raises(OpinionPoolError, match="cannot change"):
            pool.partial_fit(f.X, f.outcomes, classes=[0, 1, 2])
        with pytest.raises(ArgumentError, match="with the first batch"):
            pool.partial_fit(f.X, f.outcomes, prior=0.4)
        with pytest.raises(OpinionPoolError, match="outcome 7 is not one of the classes"):
            pool.partial_fit(f.X, np.where(f.outcomes == 1, 7, 0))
        assert pool.n_events_ == 40
        # A fit forgets.
        assert not hasattr(pool.fit(f.X, f.outcomes), "stream_")


DAMAGE = [
    (lambda page: page.update(version=2), "has version 2, and this release of opinionpool knows version 1"),
    (lambda page: page.update(version="1"), "should be a whole number"),
    (lambda page: page.update(format="other"), 'does not say "format": "opinionpool"'),
    (lambda page: page.pop("content"), "should be a saved pool"),
    (lambda page: page["content"].update(type="os.system"), "no type 'os.system'"),
    (lambda page: page["content"].pop("panel"), "has no panel"),
    (lambda page: page["content"].update(surprise=1), "'surprise', which is unknown"),
    (lambda page: page["content"]["panel"].update(names=["ann", "ann", "cy"]), "names must differ"),
    (lambda page: page["content"]["panel"].update(names=["ann"]), "should have the shape"),
    (lambda page: page["content"]["panel"].update(classes=[0, 0]), "two different labels"),
    (lambda page: page["content"]["panel"].update(classes=[0, {}]), "should be a number"),
    (lambda page: page["content"]["panel"]["parts"]["spread"]["values"].__setitem__(0, -1.0), "at least 0"),
    (lambda page: page["content"]["panel"]["parts"]["contrast"]["values"].__setitem__(0, "nan"), "should be finite"),
    (lambda page: page["content"]["panel"]["parts"]["contrast"]["values"].__setitem__(0, "x"), "should be a number"),
    (lambda page: page["content"]["panel"]["parts"]["contrast"].update(shape=[2]), "needs 2 values here"),
    (lambda page: page["content"]["panel"]["settings"].update(floor=2.0), "a floor must lie"),
    (lambda page: page["content"]["panel"]["settings"]["extremes"].update(limit=-1.0), "limit above 0"),
    (lambda page: page["content"].update(present={"shape": [3], "values": [1, 1, 0]}), "true or false"),
    (lambda page: page["content"]["prior"]["values"].__setitem__(0, 0.9), "should sum to 1"),
    (lambda page: page["content"]["prior"].update(shape=[-1]), "shape of whole numbers"),
    (lambda page: page["content"]["prior"].update(shape=[10**30]), "shape of whole numbers"),
    (lambda page: page["content"].update(notes=[{"type": "note"}]), "note has no code"),
    (lambda page: page["content"].update(notes="x"), "should be a list"),
    (lambda page: page["content"]["counts"]["values"].__setitem__(0, 7.0), "checksum"),
    (lambda page: page["content"].update(structure="fuller"), "checksum"),
]  # fmt: skip

CORRELATIONS = [
    (lambda page: page["content"]["panel"]["parts"]["dependence"]["array"]["lower"].__setitem__(1, 1.7), "lie in"),
    (lambda page: page["content"]["panel"]["parts"]["dependence"]["array"].update(lower=[1, 0.9, 1, 0.9, -0.9, 1]),
     "positive definite"),
]  # fmt: skip


class TestDamage:
    @pytest.fixture(scope="class")
    @staticmethod
    def page(tmp_path_factory):
        path = tmp_path_factory.mktemp("saved") / "pool.json"
        save(learn(simulated(missing=0.0)), path)
        return path.read_text()

    def refused(self, path, text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SavedPoolError) as caught:
            load(path)
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message
        assert len(message) < 500
        return message

    @pytest.mark.parametrize(("damage", "told"), DAMAGE, ids=[told for _, told in DAMAGE])
    def test_each_kind_is_named(self, path, page, damage, told):
        page = json.loads(page)
        damage(page)
        assert told in self.refused(
            path, json.dumps({key: page[key] for key in page if told == key or key != "checksum"})
        )

    @pytest.mark.parametrize(("damage", "told"), CORRELATIONS, ids=[told for _, told in CORRELATIONS])
    def test_correlations_that_are_none_are_named(self, path, damage, told):
        save(learn(simulated(missing=0.0), beliefs=None), path)
        page = json.loads(path.read_text())
        del page["checksum"]
        damage(page)
        assert told in self.refused(path, json.dumps(page))

    def test_text_that_is_no_json(self, path, page):
        for cut in range(len(page) // 2, len(page) // 2 + 40):
            assert "it ends too early" in self.refused(path, page[:cut])
        assert "it is no JSON" in self.refused(path, page.replace(":", ";", 3))
        assert "it is no text" in self.refused(path, b"\xff\xfe" + page.encode())
        assert "NaN is no number" in self.refused(path, page.replace("0.0001", "NaN", 1))
        assert "nested too deeply" in self.refused(path, "[" * 900_000)
        assert "lists and tables" in self.refused(path, "[" + "[]," * 1_100_000)
        assert "too large" in self.refused(path, page.replace("0.0001", "1e999", 1))
        assert "too many digits" in self.refused(path, page.replace("0.0001", "1" * 5000, 1))
        assert "same name twice" in self.refused(path, page.replace('"version"', '"format"'))
        assert "ends too early" in self.refused(path, "")
        assert "does not say" in self.refused(path, "[]")

    def test_size_is_bounded(self, path, page, monkeypatch):
        monkeypatch.setattr("opinionpool.saving.files.MOST_BYTES", 500)
        assert "larger than" in self.refused(path, page)
        with pytest.raises(SavedPoolError, match="would take"):
            save(learn(simulated()), path)

    def test_a_file_that_was_edited_may_lose_its_checksum(self, path, page):
        page = json.loads(page)
        del page["checksum"]
        page["content"]["notes"] = []
        path.write_text(json.dumps(page))
        assert load(path).notes == ()

    def test_a_missing_file_is_an_os_error(self, path):
        with pytest.raises(FileNotFoundError):
            load(path)


def test_whenever_it_is_killed_nothing_half_written_remains(tmp_path):
    """A process that saves again and again is killed at random moments: the file is always one that was saved."""
    path = tmp_path / "pool.json"
    code = (
        "import sys, opinionpool as op\n"
        "panel = op.Panel.exchangeable(200, correlation=0.5)\n"
        "panel = op.Panel(panel.weights, panel.correlation)\n"
        "print('ready', flush=True)\n"
        f"while True: op.save(panel, {str(path)!r})\n"
    )
    for moment in (0.0, 0.02, 0.05, 0.11, 0.16):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ})
        process.stdout.readline()
        while not path.exists():
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(load(path)) == 200
        left = [name for name in os.listdir(tmp_path) if name != "pool.json"]
        # Between naming a complete draft and putting it in place there is a moment too.
        assert all(len(load(tmp_path / name)) == 200 for name in left)
        for name in left:
            os.unlink(tmp_path / name)


def test_a_failure_leaves_what_was_there(path, monkeypatch):
    save(op.Panel.exchangeable(2), path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        save(op.Panel.exchangeable(3), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_pipe_is_written_to_and_not_replaced(path):
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        save(op.Panel.exchangeable(2), path)
        assert b'"checksum"' in os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(path.parent) == [path.name]


def test_an_error_names_the_file_that_was_asked_for(path, monkeypatch):
    long = path.with_name("x" * 300)
    with pytest.raises(OSError, match="too long") as caught:
        save(op.Panel.exchangeable(2), long)
    assert caught.value.filename == str(long)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space") as caught:
        save(op.Panel.exchangeable(2), path)
    assert caught.value.filename == str(path)


class TestReleases:
    FOLDER = Path(__file__).parents[1] / "golden" / "saved"

    @pytest.mark.parametrize("name", ["GaussianPool", "topics", "beliefs"])
    def test_pools_of_release_0_1_say_so_once(self, name, tmp_path):
        pool = load(self.FOLDER / f"{name}.json")
        save(pool, tmp_path / "again.json")
        for each in (pool, load(tmp_path / "again.json")):
            assert [note.code for note in each.state_.notes].count("older-method") == 1

    def test_what_this_release_learned_and_pools_without_weights_do_not(self, tmp_path):
        save(op.GaussianPool().fit(np.array([[0.2, 0.3], [0.7, 0.6], [0.4, 0.1]]), [0, 1, 0]), tmp_path / "new.json")
        for file in (tmp_path / "new.json", self.FOLDER / "data-alone.json"):
            assert "older-method" not in {note.code for note in load(file).state_.notes}

    def test_a_stream_of_release_0_1_says_by_what_method_it_learns_until_it_is_saved_again(self, tmp_path):
        stream = op.Stream()
        stream.add(simulated())
        save(stream, tmp_path / "new.json")
        content = json.loads((tmp_path / "new.json").read_text())
        del content["content"]["priorities"]
        del content["checksum"]
        (tmp_path / "old.json").write_text(json.dumps(content))
        old = load(tmp_path / "old.json")
        save(old, tmp_path / "again.json")
        for each, codes in (
            (old, ["newer-method"]),
            (old.copy(), ["newer-method"]),
            (load(tmp_path / "again.json"), []),
        ):
            for found in (each.learn(), each.fit()):
                assert [note.code for note in found.notes if note.code == "newer-method"] == codes
        assert "newer-method" not in {note.code for note in old.fit("linear").notes}

    def test_a_pool_of_release_0_1_that_goes_on_learning_says_by_what_method(self):
        f = simulated()
        new, notes = TrainedPool.fit("gaussian", f.select_events(np.arange(30))).updated(f)
        assert "newer-method" not in {note.code for note in notes}
        trained = TrainedPool.fit("gaussian", f.select_events(np.arange(30)))
        old = Note("older-method", "by the method of release 0.1")
        trained = dataclasses.replace(trained, learned=dataclasses.replace(trained.learned, notes=(old,)))
        other, notes = trained.updated(f)
        assert "newer-method" in {note.code for note in notes}
        assert "older-method" not in {note.code for note in other.learned.notes}
        np.testing.assert_array_equal(other.learned.weights, new.learned.weights)


def of_any_kind(seed):
    """Forecasts of a random kind: independent or shared errors, two classes or three, gaps, copies, topics, groups."""
    rng = np.random.default_rng(seed)
    n, t, k = int(rng.integers(1, 9)), int(rng.choice([1, 5, 20, 60, 120, 200])), int(rng.choice([2, 2, 2, 3]))
    y, accuracy = rng.integers(0, k, t), rng.uniform(0.2, 2.0, n)[:, None]
    common = rng.choice([0.0, 0.0, 0.6])
    noise = np.sqrt(1 - common) * rng.normal(size=(t, n, k)) + np.sqrt(common) * rng.normal(size=(t, 1, k))
    q = np.exp(accuracy * (np.arange(k) == y[:, None])[:, None] * 2.0 + np.sqrt(accuracy) * noise)
    q /= q.sum(axis=2, keepdims=True)
    if rng.random() < 0.3:
        q[:, -1] = q[:, 0]
    if rng.random() < 0.3:
        q[rng.random((t, n)) < 0.3] = np.nan
    more = {}
    if rng.random() < 0.2:
        more["topics"] = rng.choice(["a", "b", "c"], t).tolist()
    if rng.random() < 0.2:
        more["groups"] = rng.choice(["x", "y", "z", "w"], t).tolist()
    outcomes = [None if rng.random() < 0.1 else int(label) for label in y]
    return Forecasts.from_array(q[..., 1] if k == 2 else q, outcomes, classes=range(k), **more)


@pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
@settings(max_examples=25)
@example(seed=219)
@given(seed=st.integers(0, 2**32 - 1))
def test_whatever_is_fitted_can_be_saved(seed):
    forecasts = of_any_kind(seed)
    learned = fit_pool("gaussian", forecasts)
    with tempfile.TemporaryDirectory() as folder:
        loaded = again(learned, Path(folder) / "pool.json")
        assert loaded.pool_forecasts(forecasts).tobytes() == learned.pool_forecasts(forecasts).tobytes()
