"""The figures in the pages of `docs` are those that the code they name computes, and their links lead somewhere."""

import re

import numpy as np
import pytest


def rows_of(text):
    """The table of a page: its first column, and the numbers in the others."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"-?[\d.]+", cells[-1]):
            found[cells[0]] = [float(cell) for cell in cells[1:]]
    return found


def test_figures_on_missing_forecasts(root, study):
    written = rows_of((root / "docs" / "missing.md").read_text(encoding="utf-8"))
    computed = study("missing").figures()
    assert list(written) == list(computed)
    for reason, values in written.items():
        assert values[:4] == pytest.approx(computed[reason][:4], abs=0.0051)
        assert values[4:] == pytest.approx(computed[reason][4:], abs=0.00051)


def test_figures_on_beliefs(root, study):
    written = rows_of((root / "docs" / "beliefs.md").read_text(encoding="utf-8"))
    worth = study("worth")
    # A part of the table: of each panel, one size.
    computed = worth.figures(worth.SIZES[:1])
    assert len(written) == len(worth.SIZES) * len(computed) == 9
    for name, values in computed.items():
        assert written[name] == pytest.approx(values, abs=0.00051)


@pytest.mark.parametrize(
    "page",
    ["docs/beliefs.md", "docs/classes.md", "docs/explain.md", "docs/few-data.md", "docs/intervals.md", "docs/model.md",
     "docs/missing.md", "docs/rates.md", "README.md", "CONTRIBUTING.md"],
)  # fmt: skip
def test_links_lead_somewhere(root, page):
    path = root / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_figures_on_rates(root, study):
    text = (root / "docs" / "rates.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| 5 | 50 | one |"))
    # In whole per cent.
    written = [float(cell.rstrip("%")) for cell in line.strip("| ").split(" | ")[3:]]
    assert written == pytest.approx([100 * each for each in study("rates").figures(5, 50, "one").values()], abs=0.51)


@pytest.fixture
def page(root):
    return (root / "docs" / "few-data.md").read_text(encoding="utf-8")


@pytest.fixture
def intervals(root):
    return (root / "docs" / "intervals.md").read_text(encoding="utf-8")


class TestFewData:
    """The pages on few data and intervals; a part of each table is computed anew, with the same seeds."""

    def test_gains(self, page, study):
        few = study("few_data")
        line = next(line for line in page.splitlines() if line.startswith("| mixed |"))
        written = [float(cell) for cell in line.strip("| ").split(" | ")[1:6]]
        sizes = (20,)
        computed = np.mean([few.gains("mixed", n, sizes=sizes)[..., 0].mean(axis=0) for n in few.EXPERTS], axis=0)
        assert [written[few.SHOWN.index(size)] for size in sizes] == pytest.approx(computed, abs=0.00051)

    def test_discriminant_analysis(self, page, study):
        few = study("few_data")
        written = re.search(r"on mixed ones it gains ([+-][.0-9]+) after 80", " ".join(page.split()))
        found = np.concatenate([few.discriminant("mixed", n, 80) for n in few.EXPERTS])
        assert float(written[1]) == pytest.approx(found.mean(), abs=0.00051)

    def test_regret(self, page, study):
        simulated = study("default_pool")
        section = page[page.index("## Against the best rival") :]
        line = next(line for line in section.splitlines() if line.startswith("| near-identical |"))
        written = [float(cell) for cell in line.strip("| ").split(" | ")[1:]]
        for size in (5, 20):
            means = [simulated.mean_losses("near-identical", n, size) for n in simulated.EXPERTS]
            computed = np.mean([simulated.regrets(mean)[0] for mean in means])
            assert written[simulated.SIZES.index(size)] == pytest.approx(computed, abs=0.00051)

    def test_coverage(self, intervals, study):
        line = next(line for line in intervals.splitlines() if line.startswith("| 30 |") and "±" in line)
        written = [float(number) for number in line.strip("| ").split(" | ")[1].split(" ± ")]
        assert written == pytest.approx(study("coverage").cell(30, 3, 0.0), abs=0.00051)

    def test_coverage_of_accurate_experts(self, intervals, study):
        line = next(line for line in intervals.splitlines() if line.startswith("| 9 | 3 |"))
        inside, width = line.strip("| ").split(" | ")[4].split(", ")
        written = [*map(float, inside.split(" ± ")), float(width)]
        assert written == pytest.approx(study("coverage").accurate(9.0, 100, 3)[:3], abs=0.0051)
        *_, line = (line for line in intervals.splitlines() if line.startswith("| 4 | 3 |"))
        answers, *weights = line.strip("| ").split(" | ")[2:]
        written = [*map(float, answers.split(" ± ")), *map(float, weights)]
        found = study("coverage").accurate(4.0, 100, 3, unequal=0.6)
        assert written == pytest.approx([*found[:2], *found[3:]], abs=0.0051)

    def test_posterior(self, intervals, study):
        line = next(line for line in intervals.splitlines() if line.startswith("| 30 | 3 | 0.15 |"))
        written = [float(cell) for cell in line.strip("| ").split(" | ")[3:]]
        off, ratio, inside = study("posterior").row(30, 3, 0.15)
        assert written == pytest.approx([off, ratio, inside], abs=0.0051)
