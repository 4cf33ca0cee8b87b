"""Data frames and notebooks show the numbers of what they are of."""

import sys

import numpy as np
import pytest

import opinionpool as op

Q = [[0.2, 0.5], [0.3, 0.6], [0.6, 0.3], [0.4, 0.7], [0.7, 0.2], [0.8, 0.4], [0.9, np.nan]]
FORECASTS = op.Forecasts.from_array(Q, [0, 0, 0, 1, 1, 1, None], experts=["<ann>", "bob"])


def results():
    pool = op.GaussianPool().fit(FORECASTS)
    return {
        "panel": op.Panel.exchangeable(2, correlation=0.5, accuracy=1.0),
        "relative": op.Panel.from_features(1.0, 0.5, [1.0, 2.0]),
        "fitted": pool.state_,
        "forecasts": FORECASTS,
        "comparison": op.compare_pools(FORECASTS, ["gaussian"], repeats=1),
        "explanation": op.explain_event(FORECASTS, 0, pool.state_),
        "classes": op.explain(op.Panel.exchangeable(2, classes="abc"), [[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]),
    }


@pytest.fixture(scope="module")
def found():
    return results()


def test_frames_have_the_numbers(found):
    pytest.importorskip("pandas")
    frames = {name: each.to_frame() for name, each in found.items()}
    assert frames["forecasts"].shape == (13, 4)
    assert frames["forecasts"]["probability"].tolist() == FORECASTS.probabilities.tolist()
    assert frames["fitted"]["weight"].tolist() == found["fitted"].weights.tolist()
    low, high = op.GaussianPool().fit(FORECASTS).weight_intervals_.T
    np.testing.assert_allclose(frames["fitted"][["weight_low", "weight_high"]].to_numpy().T, [low, high])
    assert frames["comparison"]["pool"].tolist() == [pool.pool for pool in found["comparison"].pools]
    why = found["explanation"]
    assert frames["explanation"]["adds"].sum() == pytest.approx(
        float(why.total - why.start - why.intercept - why.members_shift)
    )
    assert frames["panel"]["accuracy"].tolist() == pytest.approx([1.0, 1.0])
    assert frames["relative"]["relative_accuracy"].tolist() == pytest.approx([1.0, 2.0])
    assert frames["classes"]["class"].tolist() == [*"abcabc"]


def test_polars_serves_where_pandas_is_missing(found, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(found["panel"].to_frame(), polars.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(op.OpinionPoolError, match="pandas or polars"):
        found["panel"].to_frame()


def test_notebooks_show_escaped_names_and_the_first_rows(found):
    for each in found.values():
        assert each._repr_html_().startswith("<table><thead><tr><th>")
    assert "&lt;ann&gt;" in found["forecasts"]._repr_html_()
    assert "<ann>" not in found["forecasts"]._repr_html_()
    many = op.Forecasts.from_array(np.full((30, 1), 0.5), [None] * 30)
    assert many._repr_html_().count("<tr>") == 1 + 20
    assert "10 more rows" in many._repr_html_()
