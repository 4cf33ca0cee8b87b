"""Pictures show the numbers of what they are pictures of."""

import numpy as np
import pytest

import opinionpool as op
from opinionpool.analysis.explanation import weight_table
from opinionpool.analysis.residuals import shared_errors
from opinionpool.learning.learn import learn
from opinionpool.scoring.learning_curve import learning_curve
from opinionpool.scoring.reliability import reliability_curve
from tests.panels import panel

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture
def ax():
    return figure.Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def forecasts():
    return panel(experts=3, names=["ann", "b$b", "cy"])


def ticks(labels):
    return [tick.get_text() for tick in labels]


def test_weights_of_whatever_was_fitted(forecasts, ax):
    pool = op.GaussianPool().fit(forecasts)
    table = weight_table(pool.state_)
    assert op.plots.weights(pool, ax=ax) is ax
    assert ticks(ax.get_yticklabels()) == [name.replace("$", r"\$") for name in table.experts]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), table.weight)
    for given in (pool.state_, pool.panel_, table, op.LinearPool().fit(forecasts)):
        drawn = op.plots.weights(given, ax=figure.Figure().subplots())
        own = np.sort(getattr(given, "weights_", getattr(given, "weights", table.weight)))[::-1]
        np.testing.assert_allclose(drawn.lines[0].get_xdata(), own)
    with pytest.raises(op.ArgumentError, match="no weights"):
        op.plots.weights(op.MedianPool().fit(forecasts), ax=ax)


def test_correlations_of_a_panel_and_of_errors(forecasts, ax):
    panel = op.Panel([1, 1, 1], [[2, 0.2, 1.6], [0.2, 2, 0.2], [1.6, 0.2, 2]], names=["a", "b", "c"])
    assert op.plots.correlation(panel, ax=ax) is ax
    names = ticks(ax.get_yticklabels())
    assert abs(names.index("a") - names.index("c")) == 1
    order = ["abc".index(name) for name in names]
    np.testing.assert_allclose(ax.images[0].get_array(), panel.correlation[np.ix_(order, order)])
    errors = shared_errors(forecasts, learn(forecasts))
    np.testing.assert_allclose(
        op.plots.correlation(errors, figure.Figure().subplots()).images[0].get_array(), errors.correlation
    )
    with pytest.raises(op.ArgumentError, match="two or more experts"):
        op.plots.correlation(op.Panel.exchangeable(1), ax=ax)


def test_reliability_and_learning(forecasts, ax):
    curve = reliability_curve(forecasts.X[:, 0], forecasts.outcomes)
    assert op.plots.reliability(forecasts.X[:, 0], forecasts.outcomes, ax=ax) is ax
    drawn = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(drawn["observed (isotonic)"].get_ydata(), 100 * curve.frequency)
    learned = learning_curve(forecasts)
    other = op.plots.learning(learned, ax=figure.Figure().subplots())
    np.testing.assert_allclose(other.lines[0].get_ydata(), learned.score)


def test_rates_beside_other_estimates(forecasts, ax):
    found = op.rates(learn(forecasts), forecasts, ["a", "b$b"] * 30)
    assert op.plots.rates(found, ax=ax) is ax
    assert ticks(ax.get_yticklabels()) == ["a", r"b\$b"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), 100 * found.rate_)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(found.rivals_)
    alone = op.plots.rates(found, ax=figure.Figure().subplots(), rivals=False)
    assert alone.get_legend() is None
    three = op.Forecasts.from_array(np.full((4, 2, 3), 1 / 3), [0, 1, 2, None], classes=(0, 1, 2))
    with pytest.raises(op.ArgumentError, match="more than two classes"):
        op.plots.rates(op.rates(learn(three), three))


def test_gains_of_a_comparison(forecasts, ax):
    found = op.compare_pools(forecasts, ["gaussian", "linear"], repeats=1)
    op.plots.gains(found, ax=ax)
    names = ticks(ax.get_yticklabels())
    assert sorted(names) == ["gaussian", "linear"]
    means = {pool.pool: pool.over_average.mean for pool in found.pools}
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [means[name] for name in names])


def test_a_waterfall_goes_from_the_prior_to_the_answer(ax):
    panel = op.Panel.exchangeable(3, correlation=0.4, names=["ann", "bob", "cy"])
    why = op.explain(panel, [0.8, 0.7, 0.4], prior=0.3)
    op.plots.waterfall(why, ax=ax)
    assert ticks(ax.get_yticklabels())[1:-1] == [why.experts[i] for i in np.argsort(-np.abs(why.contributions))]
    starts = np.array([bar.get_x() for bar in ax.patches])
    widths = np.array([bar.get_width() for bar in ax.patches])
    assert starts[0] == pytest.approx(np.log(0.3 / 0.7))
    np.testing.assert_allclose(np.sort(widths), np.sort(why.contributions), atol=1e-9)
    assert starts[-1] + widths[-1] == pytest.approx(float(why.total))
    with pytest.raises(op.ArgumentError, match="one of the classes"):
        op.plots.waterfall(why, ax=ax, of="maybe")


def test_a_waterfall_of_several_classes_and_of_no_log_odds(forecasts, ax):
    panel = op.Panel.exchangeable(2, correlation=0.4, classes="abc")
    why = op.explain(panel, [[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]])
    op.plots.waterfall(why, ax=ax, of="b")
    last = ax.patches[-1]
    answer = float(why.probability[1])
    assert last.get_x() + last.get_width() == pytest.approx(np.log(answer / (1 - answer)))
    linear = op.explain_event(forecasts, 0, op.LinearPool().fit(forecasts).state_)
    with pytest.raises(op.ArgumentError, match="waterfall is of log-odds"):
        op.plots.waterfall(linear, ax=ax)


def test_a_figure_is_made_where_no_axes_are_given():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    ax = op.plots.weights(op.Panel.exchangeable(2))
    assert ax.figure in map(pyplot.figure, pyplot.get_fignums())
    pyplot.close("all")


@pytest.mark.parametrize("draw", ["gains", "learning", "waterfall", "correlation", "weights"])
def test_what_cannot_be_drawn_is_named(draw):
    with pytest.raises(op.ArgumentError):
        getattr(op.plots, draw)(3)
    with pytest.raises(op.ArgumentError, match="forecast"):
        op.plots.reliability("x", [1])
    with pytest.raises(op.ArgumentError, match=r"one is 0.8; all probabilities are 0 or 1: they stand first here"):
        op.plots.reliability([1, 0, 1], [0.8, 0.3, 0.6])
    with pytest.raises(op.ArgumentError, match="outcomes are positions of classes"):
        op.plots.reliability([0.7, 0.4, 0.5], [0.8, 0.3, 0.6])
