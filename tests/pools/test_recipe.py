"""A new pool is a class and a row: everything else follows, and a row that is wrong is refused when it is read."""

import subprocess
import sys
import types

import click
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit, logit

from opinionpool import compare_pools
from opinionpool.cli.app import app
from opinionpool.errors import ArgumentError
from opinionpool.estimators.files import load, save
from opinionpool.forecasts import Forecasts
from opinionpool.pools import NAMES, ROWS, WEIGHTED, read_table, registry
from opinionpool.pools.fit import Configured, fit_pool
from opinionpool.pools.rule import Option, Pool
from opinionpool.pools.training import TrainingEvents

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, 40)
Q = expit((2 * Y - 1)[:, None] + RNG.normal(size=(40, 5)))


class MedianOfLogOdds(Pool):
    """The median of the log-odds of those present, beyond the prior's."""

    title = "Median of log-odds"

    def combine(self, contrast):
        """Log-ratios of the answers, (T, K - 1)."""
        beyond = np.where(contrast.present[..., None], contrast.contrasts, np.nan)
        return contrast.reference + np.nanmedian(beyond, axis=1)


class Unexplained(MedianOfLogOdds):
    scale = "log-odds"


class Deaf(MedianOfLogOdds):
    options = types.MappingProxyType({"pace": Option(1.0, "how fast")})

    def fit(self, sample: TrainingEvents):
        return {}


class Untitled(MedianOfLogOdds):
    title = ""


class Fixed(MedianOfLogOdds):
    fixed_by = "weights"


class Furlongs(MedianOfLogOdds):
    scale = "furlongs"


@pytest.fixture
def place(monkeypatch):
    """Where classes of this module are found."""
    module = types.ModuleType("toy.pools")
    vars(module).update(globals())
    monkeypatch.setitem(sys.modules, "toy", types.ModuleType("toy"))
    monkeypatch.setitem(sys.modules, "toy.pools", module)
    return "toy.pools"


def row(place, name="median-log-odds", weights=""):
    (found,) = read_table(f"| `{name}` | {place} | the median of log-odds | wild answers | few experts | {weights} |")
    return found


def test_a_pool_in_one_row(place, monkeypatch, tmp_path):
    (pool,) = registry.read_rows([row(f"{place}:MedianOfLogOdds")]).values()
    monkeypatch.setitem(registry._POOLS, "median-log-odds", pool)
    # The choices of the command line are those of the rows when it was loaded.
    monkeypatch.setattr(click.Choice, "convert", lambda _self, value, *_: value)
    forecasts = Forecasts.from_array(Q, Y)
    learned = fit_pool("median-log-odds", forecasts, prior=0.3)
    assert learned.pool(Q) == pytest.approx(expit(np.median(logit(Q), axis=1)), rel=1e-9)
    save(learned, tmp_path / "pool.json")
    assert load(tmp_path / "pool.json").pool(Q).tolist() == learned.pool(Q).tolist()
    found = compare_pools(forecasts, pools={"mine": Configured("median-log-odds")})
    assert {each.pool for each in found.pools} == {"average", "mine"}
    with pytest.raises(ArgumentError, match="not a sum"):
        learned.answer_parts(learned.read(Q[0], 0.3))
    table = tmp_path / "table.csv"
    lines = (",".join([*(f"{p:.9f}" for p in q), str(y)]) for q, y in zip(Q, Y, strict=True))
    table.write_text("\n".join(["a,b,c,d,e,outcome", *lines, ".9,.8,.7,.6,.5,"]), encoding="utf-8")
    result = CliRunner().invoke(app, ["pool", str(table), "--pool", "median-log-odds", "--prior", "0.3"])
    assert result.exit_code == 0, result.output
    assert "0.7" in result.output


@pytest.mark.parametrize(
    ("name", "weights", "told"),
    [
        ("Unexplained", "", "has no parts"), ("Deaf", "", "does not take pace"), ("Untitled", "", "needs a title"),
        ("Fixed", "", "no option"), ("Furlongs", "", "'furlongs'"), ("MedianOfLogOdds", "yes", "weighted"),
        ("Pool", "", "needs a title and a rule"), ("Forecasts", "", "no subclass of Pool"),
        ("Missing", "", "there is no pool"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_refused(place, name, weights, told):
    with pytest.raises(ArgumentError, match=told):
        registry.read_rows([row(f"{place}:{name}", weights=weights)])


def test_rows_are_read_as_they_are():
    with pytest.raises(ArgumentError, match="twice"):
        registry.read_rows([ROWS[1], ROWS[1]])
    with pytest.raises(ArgumentError, match="there is no pool 'x'"):
        registry.read_rows([row("nowhere:X", "x")])
    assert tuple(registry.POOLS) == NAMES == tuple(each.name for each in ROWS)
    assert set(WEIGHTED) == {name for name, pool in registry.POOLS.items() if "weights" in pool.options}


@pytest.mark.parametrize("name", [name for name in registry.POOLS if name != "gaussian"])
def test_every_row_answers_before_anything_is_learned(name):
    pool = registry.POOLS[name]
    given = {} if pool.learns else {option: each.default for option, each in pool.options.items()}
    answers = pool.pool([[0.4, 0.7], [0.4, np.nan], [np.nan, np.nan]], prior=0.3, **given)
    assert answers.shape == (3,)
    assert ((answers > 0) & (answers < 1)).all()
    assert answers[2] == pytest.approx(0.3, rel=1e-12)


def test_rows_are_read_without_scipy():
    code = "import opinionpool.pools.registry, sys; print(any(name.startswith('scipy') for name in sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
