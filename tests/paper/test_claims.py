"""The claims: verdicts where the answer is known, and tables that follow the data."""

from functools import cache

import numpy as np
import pytest

from opinionpool.paper import datasets
from opinionpool.paper.claims import TABLE, Claim, dependence, model_claims, score_claims
from opinionpool.paper.datasets import DataSet
from opinionpool.paper.experiments import Curves
from opinionpool.paper.reproduce import Section, page, picture, separation_rows

# Several tests ask for the same.
simulated, expectations = cache(datasets.simulated), cache(datasets.expectations)

# The printed formulas that slip, by a part of what the paper says.
SLIPS = (
    "− ½(−C−μ)ᵀΣ⁻¹(−C−μ)", "Bias is an expected difference", "(mᵀ)^(−½)", "No restriction on μ", "2mᵀΣ⁻¹",
    "β/σ² off its diagonal", "|ρ| < 1", "μ* = wᵀm", "multiply the contrast by N", "w = 0.51, p* = 76 %",
    "fully calibrated, κ = 1", "+ 1L°", "only smooth scoring rule", "(t₁ + 1)/(t₀ + t₁ + 1)", "Σ_t X_y(t, ·)",
)  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_slips_and_nothing_else_of_the_model_fails(seed):
    claims = model_claims(seed)
    failing = [claim for claim in claims if not claim.holds]
    for slip in SLIPS:
        assert sum(slip in claim.says for claim in failing) == 1, slip
    assert len(failing) == len(SLIPS)
    assert all(claim.right for claim in failing)
    assert len(claims) - len(failing) >= 25


def test_numbers_of_the_examples():
    found = {claim.says: claim.found for claim in model_claims()}
    # By hand: w = 0.9 / 1.95, logit(p) = w (log(7/3) + log(4)).
    w = 0.9 / 1.95
    p = 1 / (1 + np.exp(-w * (np.log(7 / 3) + np.log(4))))
    assert f"w = {w:.4f}, p* = {100 * p:.1f} %" in found.values()
    p = 1 / (1 + np.exp(-0.9 * (np.log(7 / 3) + np.log(4))))
    assert f"w = 0.90, p* = {100 * p:.1f} %" in found.values()


def test_claims_are_computed_not_typed(monkeypatch):
    """A broken pool turns rows red."""
    monkeypatch.setattr("opinionpool.paper.claims.Independent.pool", lambda self, q, prior: np.full(len(q), prior))
    claim = next(claim for claim in model_claims() if claim.where == "(23)")
    assert not claim.holds


def test_every_row_of_the_table_is_computed():
    sets = [simulated(rho, 1.0) for rho in (0.0, 0.2, 0.5)]
    real = DataSet("real", "real", tuple("abc"), simulated(0.5, 2.0).values[:, :3], simulated(0.5, 2.0).outcomes, True)
    flat = np.zeros((6, 3, 2))
    pairs = [(curves(data, [0.0] * 6), expectations(data)) for data in sets]
    pairs.append((Curves(real, np.arange(1, 4), flat, flat[0] > 1, flat[0]), None))
    assert {each.name for each in [*model_claims(), *score_claims(pairs)]} == set(TABLE)
    assert all(set(row) <= {"where", "figure", "says", "found", "right", *BOUNDS} for row in TABLE.values())


BOUNDS = ("published", "tolerance", "at_least", "at_most")


def curves(data, shift, noise=0.0, separated=None):
    """Scores at the expected ones, each method moved by `shift`, the same in every iteration but for noise."""
    known = expectations(data)
    n = np.arange(1, len(data.experts) + 1)
    rng = np.random.default_rng(0)
    base = [known.gaussian, known.gaussian, known.independent, known.average, known.average, known.gaussian]
    scores = np.array([np.tile((b + s)[:, None], (1, 5)) for b, s in zip(base, shift, strict=True)])
    scores += noise * rng.standard_normal(scores.shape)
    apart = np.zeros((len(n), 5), dtype=bool) if separated is None else separated
    return Curves(data, n, scores, apart, np.where(apart, -1.0, np.nan))


def verdicts(claims):
    return {claim.says: claim.holds for claim in claims}


def test_verdicts_at_the_expected_scores():
    """What unlimited training data say: the paper's text needs σ² = 2, and its figure 3c neither."""
    for variance in (1.0, 2.0):
        sets = [simulated(rho, variance) for rho in (0.0, 0.2, 0.5)]
        claims = score_claims([(curves(data, [0.0] * 6), expectations(data)) for data in sets])
        held = verdicts(claims)
        assert held["Gaussian and logistic aggregation yield the highest scores in all cases."]
        assert held["Gaussian and logistic aggregation are on par."]
        assert held["IndOps is equal to Gaussian aggregation at ρ = 0."] == (variance == 2.0)
        assert held["IndOps' scores decline precipitously as ρ increases."]
        assert not held["IndOps' scores decline precipitously as N increases, at ρ = 0.2."]
        assert held["IndOps' scores decline precipitously as N increases, at ρ = 0.5."] == (variance == 2.0)
        for method in ("LinOps", "AvgOps"):
            assert held[f"{method} scores significantly lower than Gaussian aggregation at ρ = 0."]
            assert held[f"{method} scores significantly lower than Gaussian aggregation at ρ = 0.2."]
            assert not held[f"{method} is on par with Gaussian aggregation at ρ = 0.5."]
        assert all(variance_named(claim, variance) for claim in claims)


def variance_named(claim: Claim, variance: float) -> bool:
    return claim.where.endswith(f"σ² = {variance:g}")


def test_verdicts_follow_the_scores():
    sets = [simulated(rho, 2.0) for rho in (0.0, 0.2, 0.5)]
    worse = verdicts(score_claims([(curves(data, [0, -0.05, 0, 0, 0, 0]), expectations(data)) for data in sets]))
    assert not worse["Gaussian and logistic aggregation are on par."]
    ahead = score_claims([(curves(data, [0, 0, 2.0, 0, 0, 0]), expectations(data)) for data in sets])
    best = next(claim for claim in ahead if "highest scores" in claim.says)
    assert not best.holds
    assert "ahead 30 times" in best.found


def test_what_is_said_of_real_data_follows_the_scores():
    values, outcomes = simulated(0.5, 2.0).values[:, :4], simulated(0.5, 2.0).outcomes
    data = DataSet("real", "real data", tuple("abcd"), values, outcomes, True)
    n, shape = np.arange(1, 5), (4, 6)
    flat = np.zeros((6, *shape))
    flat[1] += 0.01  # the logistic pool is ahead everywhere
    flat[2:5] -= 0.1
    c = Curves(data, n, flat + 1e-4 * np.random.default_rng(0).standard_normal(flat.shape), flat[0] > 1, flat[0])
    held = verdicts(score_claims([(c, None)]))
    assert held["The Gaussian model is not dominant."]
    assert held["Gaussian aggregation is more accurate than IndOps, that is when dependence is high."]
    assert held["Results are similar to those of logistic regression."]
    flat[1] -= 0.05
    c = Curves(data, n, flat, flat[0] > 1, flat[0])
    assert not verdicts(score_claims([(c, None)]))["The Gaussian model is not dominant."]


def test_dependence_is_the_correlation_within_an_outcome():
    data = simulated(0.5, 1.0)
    rows = data.values[data.outcomes] - data.values[data.outcomes].mean(axis=0)
    others = data.values[~data.outcomes] - data.values[~data.outcomes].mean(axis=0)
    r = np.corrcoef(np.concatenate([rows, others]).T)
    assert dependence(data) == pytest.approx(np.abs(r[np.triu_indices(10, 1)]).mean())
    assert dependence(simulated(0.0, 1.0)) < 0.1


def test_separated_halves_are_listed_with_the_rules_effect():
    data = simulated(0.0, 1.0)
    apart = np.zeros((10, 5), dtype=bool)
    apart[8, :2] = True
    rows = separation_rows([curves(data, [0.1, 0, 0, 0, 0, 0], separated=apart)])
    known = expectations(data).gaussian[8]
    assert [(row[1], row[2]) for row in rows] == [(9, 0.4)]
    assert rows[0][3:] == pytest.approx((known, -1.0, known + 0.1))


def test_the_page_shows_everything_and_escapes():
    claims = (Claim("one", "(1)", "a < b", "-0.5 & more", True), Claim("two", "(2)", "c", "d", False, "e"))
    drawn = picture("Figure 1", "Curves.", b"<svg/>", ("figure-1.svg",))
    text = page("T", ["L"], [Section("S", ("P",), (drawn,), claims, ("Data", "N"), (("x", "3"),))])
    for part in ("a &lt; b", "−0.5 &amp; more", "✓ holds", "✗ does not hold", "PHN2Zy8+", 'href="figure-1.svg"', ">3<"):
        assert part in text
    assert "<svg/>" not in text
