"""What X and y say about classes and missing values: understood as it is meant, or refused."""

import random
import re
import signal
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, cross_val_predict

import opinionpool as op
from opinionpool.estimators import pools as estimators

# Few events, of which pools say what they must.
pytestmark = pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
POOLS = [getattr(estimators, name) for name in estimators.__all__]
RNG = np.random.default_rng(0)
X3 = RNG.dirichlet(np.ones(3), size=(8, 2))
LABELS = ["a"] * 4 + ["b"] * 4


def of_three(X):
    return pd.DataFrame(X.reshape(len(X), 6), columns=[f"{expert}:{label}" for expert in "AB" for label in "abc"])


class TestClassesThatOutcomesLack:
    """Two of three classes happened: the columns are on three classes all the same."""

    @pytest.mark.parametrize("pool", [pool for pool in POOLS if not pool.binary_only])
    def test_columns_name_them(self, pool):
        frame = of_three(X3)
        fitted = pool().fit(frame, LABELS)
        assert fitted.classes_.tolist() == ["a", "b", "c"]
        deep = pool().fit(X3, LABELS, classes=["a", "b", "c"])
        assert fitted.predict_proba(frame) == pytest.approx(deep.predict_proba(X3), abs=1e-12)
        in_parts = pool().partial_fit(frame[:4], LABELS[:4]).partial_fit(frame[4:], LABELS[4:])
        assert in_parts.predict_proba(frame) == pytest.approx(deep.predict_proba(X3), abs=1e-9)
        assert fitted.predict_proba(frame).sum(axis=1) == pytest.approx(np.ones(8))

    @pytest.mark.parametrize("k", [3, 4, 6])
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_columns_without_names_show_them_by_their_sums(self, k, method):
        X = RNG.dirichlet(np.ones(k), size=(9, 2))
        y = [0, 1, 0] * 3 if k < 6 else [0, 1, 2] * 3
        with pytest.raises(op.OutcomeError, match=rf"by {k}, as forecasts on {k} classes do.*classes=\[\.\.\.\]"):
            getattr(op.AveragePool(), method)(X.reshape(9, -1), y)
        pool = getattr(op.AveragePool(), method)(X.reshape(9, -1), y, classes=list(range(k)))
        assert pool.predict_proba(X.reshape(9, -1)) == pytest.approx(X.mean(axis=1), abs=1e-3)

    def test_folds_that_lack_a_class(self):
        frame, y = of_three(RNG.dirichlet(np.ones(3), size=(9, 2))), [0] * 3 + [1] * 3 + [2] * 3
        frame.columns = [f"{expert}:{label}" for expert in "AB" for label in "012"]
        found = cross_val_predict(op.AveragePool(), frame, y, cv=KFold(3), method="predict_proba")
        mean = frame.to_numpy().reshape(9, 2, 3).mean(axis=1)
        assert found == pytest.approx(mean, abs=1e-3)

    def test_experts_whose_forecasts_happen_to_add_up(self):
        """Experts on two classes are no forecasts on three because one event has .2, .3 and .5."""
        assert op.AveragePool().fit([[0.2, 0.3, 0.5]], [1]).n_features_in_ == 3
        X = RNG.uniform(size=(30, 6))
        assert op.AveragePool().fit(X, [0, 1] * 15).predict_proba(X)[:, 1] == pytest.approx(X.mean(axis=1), abs=1e-3)

    def test_both_classes_of_one_expert_are_not_two_experts_unsaid(self):
        q = RNG.uniform(0.1, 0.9, 20)
        X, y = np.column_stack([1 - q, q]), [0, 1] * 10
        with pytest.warns(op.OpinionPoolWarning, match="add up to 1 by two"):
            assert [note.code for note in op.AveragePool().fit(X, y).notes_] == ["pairs"]
        pool = op.AveragePool().fit(X[:, None, :], y)
        assert pool.predict_proba(X[:, None, :]) == pytest.approx(X, abs=1e-9)
        with pytest.warns(op.OpinionPoolWarning, match="add up to 1 by two"):
            op.GaussianPool("full", beliefs=None).fit(np.column_stack([1 - q, q]), np.array(y))

    def test_an_order_that_columns_do_not_have_is_refused(self):
        with pytest.raises(op.OutcomeError, match="sorted order of the classes, 'high', 'low', 'medium'"):
            op.AveragePool().fit(X3, ["low"] * 8, classes=["low", "medium", "high"])
        with pytest.raises(op.OutcomeError, match="two or more different labels"):
            op.AveragePool().fit(X3, [0] * 8, classes=[0, 1, 1])


class TestOutcomesThatAreNone:
    @pytest.mark.parametrize("word", ["annulled", "void", "Cancelled", "N/A", "unknown", "?", "nan", ""])
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_words_for_no_outcome_are_no_class(self, word, method):
        with pytest.raises(op.OutcomeError, match=r"use None"):
            getattr(op.AveragePool(), method)([[0.1], [0.2], [0.3]], ["yes", word, "yes"])

    def test_they_are_if_they_are_said_to_be(self):
        pool = op.AveragePool().fit([[0.1], [0.2], [0.3]], ["open", "closed", "open"], classes=["closed", "open"])
        assert pool.classes_.tolist() == ["closed", "open"]
        assert pool.score([[0.1], [0.9]], ["open", "closed"]) < 0
        again = op.AveragePool().partial_fit([[0.1], [0.2]], ["open", "closed"], classes=["closed", "open"])
        assert again.partial_fit([[0.4]], ["open"]).n_events_ == 3

    @pytest.mark.parametrize("y", [[-1, 0, 1, 1], [-1, 0, 0, -1], np.array([-1.0, 0.0, 1.0, 0.0])])
    def test_minus_one_beside_zero_says_that_an_event_is_open(self, y):
        X = [[0.1], [0.2], [0.3], [0.4]]
        blank = [None if label == -1 else label for label in y]
        pool = op.AveragePool().fit(X, y)
        assert pool.classes_.tolist() == [0, 1]
        forecasts = op.Forecasts.from_array(X, y)
        assert forecasts.outcomes.tolist() == op.Forecasts.from_array(X, blank).outcomes.tolist()
        for name in ("GaussianPool", "LogPool"):
            if 1 in y:
                expected = getattr(op, name)().fit(X, blank).predict_proba(X)
                np.testing.assert_array_equal(getattr(op, name)().fit(X, y).predict_proba(X), expected)
        stepwise = op.AveragePool().partial_fit(X, y, classes=[0, 1])
        assert stepwise.n_events_ == sum(label is not None for label in blank)
        stream = op.Stream()
        stream.add(forecasts)
        for i, label in enumerate(y):
            stream.resolve(forecasts.events[i], label)
        assert stream.count == sum(label is not None for label in blank)

    def test_minus_one_is_a_class_where_it_can_be_one(self):
        X = RNG.dirichlet(np.ones(3), size=(9, 2))
        assert op.AveragePool().fit(X, [-1, 0, 1] * 3).classes_.tolist() == [-1, 0, 1]
        assert op.AveragePool().fit(X.reshape(9, 6), [-1, 0, 1] * 3).classes_.tolist() == [-1, 0, 1]
        assert op.AveragePool().fit([[0.2], [0.4]], [-1, 1]).classes_.tolist() == [-1, 1]


class TestNumbers:
    CELLS = (True, np.True_, "0.5", {"a": 1}, object(), 1 + 2j, [0.5])

    @pytest.mark.parametrize("cell", CELLS, ids=lambda cell: re.sub(r" at 0x\w+", "", str(cell)))
    def test_what_is_no_number_is_refused_at_every_door(self, cell):
        rows = np.empty((2, 2), dtype=object)
        rows[:] = [[0.5, 0.4], [0.6, 0.7]]
        rows[0, 1] = cell
        pool, panel = op.AveragePool().fit([[0.5, 0.4], [0.6, 0.7]], [0, 1]), op.Panel.exchangeable(2)
        doors = [
            lambda: op.AveragePool().fit(rows, [0, 1]), lambda: pool.predict_proba(rows),
            lambda: op.AveragePool().partial_fit(rows, [0, 1]), lambda: op.Forecasts.from_array(rows),
            lambda: panel.pool(rows), lambda: panel.contributions(rows), lambda: op.Stream().add_rows(rows, [0, 1]),
            lambda: op.log_score(rows[0], [0, 1]), lambda: op.brier_score(rows[0], [0, 1]),
        ]  # fmt: skip
        if not isinstance(cell, list):
            doors += [
                lambda: op.AveragePool().fit(pd.DataFrame(rows), [0, 1]),
                lambda: op.AveragePool().fit(rows.tolist(), [0, 1]),
                lambda: panel.pool(rows[0].tolist()),
                lambda: op.Stream().forecast("q", {"ann": cell}),
                lambda: op.AveragePool().fit([[0.5], [0.4]], [0, 1], prior=cell),
            ]
        for door in doors:
            with pytest.raises(op.OpinionPoolError):
                door()


class TestNames:
    def test_columns_by_position_are_said(self):
        frame = pd.DataFrame({"ann": [0.1, 0.2], "bob": [0.3, 0.4]})
        with pytest.warns(op.OpinionPoolWarning, match="does not have valid feature names.*'ann', 'bob'"):
            op.AveragePool().fit(frame, [0, 1]).predict_proba(frame.to_numpy())
        with pytest.warns(op.OpinionPoolWarning, match="fitted without feature names"):
            op.AveragePool().fit(frame.to_numpy(), [0, 1]).predict_proba(frame)


class TestStates:
    """A fit is put in place at once, and an answer is of one fit."""

    X, Y = op.Panel.exchangeable(3, accuracy=0.8).simulate(60, seed=1)

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
    def test_partial_fit_that_is_interrupted(self, tmp_path):
        chosen = random.Random(1)
        whole = {
            size: op.AveragePool().partial_fit(self.X[:size], self.Y[:size]).predict_proba(self.X) for size in (30, 60)
        }
        hit = 0

        def interrupt(*_):
            raise KeyboardInterrupt

        old = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(60):
                pool = op.AveragePool().partial_fit(self.X[:30], self.Y[:30])
                pool.predict_proba(self.X)
                try:
                    signal.setitimer(signal.ITIMER_REAL, chosen.uniform(1e-5, 1.5e-3))
                    pool.partial_fit(self.X[30:], self.Y[30:])
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    hit += 1
                assert pool.n_events_ in (30.0, 60.0)
                assert pool.predict_proba(self.X) == pytest.approx(whole[int(pool.n_events_)], abs=1e-12)
        finally:
            signal.signal(signal.SIGALRM, old)
        assert hit
        pool.save(tmp_path / "pool.json")
        assert op.load(tmp_path / "pool.json").n_events_ == pool.n_events_

    def test_a_prediction_in_flight_leaves_no_old_answer(self):
        pool, wrong, done = op.LogPool().partial_fit(self.X[:20], self.Y[:20]), [], threading.Event()
        states = {n: op.LogPool().partial_fit(self.X[:n], self.Y[:n]).predict_proba(self.X) for n in range(20, 60, 2)}

        def predict():
            while not done.is_set():
                try:
                    found = pool.predict_proba(self.X)
                    if not any(np.allclose(found, state, atol=1e-9) for state in states.values()):
                        wrong.append(found)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=predict) for _ in range(4)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        for thread in threads:
            thread.start()
        for n in range(20, 58, 2):
            pool.partial_fit(self.X[n : n + 2], self.Y[n : n + 2])
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        assert not wrong
        assert pool.predict_proba(self.X) == pytest.approx(states[58], abs=1e-9)


class TestFromArray:
    """`op.Forecasts.from_array` takes what fits take, and means the same by it."""

    def test_classes_side_by_side(self):
        rng = np.random.default_rng(5)
        q, y = rng.dirichlet([2, 1, 1], (30, 2)), rng.choice(["a", "b", "c"], 30)
        forecasts = op.Forecasts.from_array(q.reshape(30, 6), y)
        assert forecasts.classes == ("a", "b", "c")
        assert pytest.approx(q) == forecasts.X
        one, two = op.GaussianPool().fit(forecasts), op.GaussianPool().fit(q.reshape(30, 6), y)
        assert one.predict_proba(forecasts) == pytest.approx(two.predict_proba(q.reshape(30, 6)))

    def test_groups_and_times(self):
        forecasts = op.Forecasts.from_array(
            [[0.2], [0.4], [0.6]], [0, 1, None], groups=["a", None, "a"], times=["2025-01-01", None, "2025-02-01"]
        )
        assert forecasts.groups.tolist() == ["a", "", "a"]
        assert forecasts.settled.tolist() == [True, False, True]
        assert forecasts.times[2] == np.datetime64("2025-02-01", "us")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"outcomes": ["yes", None]}, op.OutcomeError, r"one class only, 'yes', .*classes=\[\.\.\.\]"),
            ({"times": ["soon", None]}, op.ShapeError, "times must be dates"),
            ({"times": ["2025-01-01"]}, op.ShapeError, "2 events need as many times"),
            ({"groups": ["a"]}, op.ShapeError, "groups"),
        ],
    )
    def test_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            op.Forecasts.from_array([[0.2], [0.4]], **{"outcomes": [1, 0], **arguments})


@pytest.mark.parametrize("time", [np.inf, -np.inf, 1e12])
def test_a_number_that_is_no_time_is_refused(time):
    times = np.array([[0.0, 1.0], [np.nan, time]])
    with pytest.raises(op.ArgumentError, match="a number of days that is no time"):
        op.GaussianPool().fit([[0.2, 0.3], [0.8, 0.7]], [0, 1], times=times)
