"""Claims of sections 2 to 5.4 of the paper, the model and its special cases, each checked by arithmetic.

A check computes both sides by different routes, on panels and forecasts drawn at random. The printed formulas that slip
(model.md, section 7) are rows that do not hold, with what does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opinionpool.arrays import Array
from opinionpool.logodds import expit, logit
from opinionpool.model.panel import Panel
from opinionpool.paper import batch_fits
from opinionpool.paper.datasets import simulated_panel
from opinionpool.paper.expected_scores import gaussian_scores
from opinionpool.paper.page import Claim, close
from opinionpool.pools.averages import Average
from opinionpool.pools.logarithmic import Independent
from opinionpool.priors import laplace_prior
from opinionpool.scoring.scores import log_score

# What two routes to the same number may differ by.
ROUNDING = 1e-9
# Mean distance of two pools' probabilities below which they are called close.
NEAR = 0.02


def model_claims(seed: int = 0) -> list[Claim]:
    """Check sections 2 to 5.4 on panels drawn with a seed.

    Examples
    --------
    >>> claims = model_claims()
    >>> next(claim.found for claim in claims if "0.51" in claim.says)
    'w = 0.4615, p* = 73.7 %'
    """
    rng = np.random.default_rng([seed, 24])
    parts = (
        _pooling,
        _recalibration,
        _accuracy,
        _relative,
        _independent,
        _exchangeable,
        _examples,
        _set_up,
        _estimates,
    )
    return [claim for part in parts for claim in part(rng)]


def _panel(rng: np.random.Generator, n: int = 5) -> Panel:
    """A panel of any correlation, calibration and bias."""
    root = rng.normal(size=(n, n))
    return Panel(rng.uniform(0.3, 1.5, n), root @ root.T / n + 0.5 * np.eye(n), rng.normal(0.0, 0.5, n))


def _largest(difference: Array | float) -> float:
    return float(np.abs(difference).max())


def _same(where: str, says: str, what: str, difference: float) -> Claim:
    return Claim(where, says, f"{what}: largest difference {difference:.1e}", difference <= ROUNDING)


def _log_odds(panel: Panel, q: Array, prior: Array | float) -> Array:
    """Pooled log-odds before the floor on aggregates."""
    return np.asarray(logit(prior) + panel.contributions(q, prior).sum(axis=1))


def _normal_log_density(x: Array, mean: Array, covariance: Array) -> Array:
    """Normal log-density up to a constant that depends only on the covariance, (T,)."""
    off = x - mean
    return np.asarray(-0.5 * np.einsum("ti,ij,tj->t", off, np.linalg.inv(covariance), off))


def _pooling(rng: np.random.Generator) -> Iterator[Claim]:
    panel, prior = _panel(rng), 0.3
    q = expit(rng.normal(0.0, 1.0, (200, len(panel))))
    contrast = logit(q) - logit(prior) - panel.bias
    pooled = panel.contributions(q, prior).sum(axis=1)
    above = _normal_log_density(contrast, panel.contrast, panel.covariance)
    below = _normal_log_density(-contrast, panel.contrast, panel.covariance)
    yield _same(
        "(11)", "The aggregate contrast of Bayes' rule is wᵀC.", "pool against the ratio of Gaussian densities",
        _largest(pooled - (above - below)),
    )  # fmt: skip
    yield Claim(
        "(11), second line",
        "log f(C|1) − log f(C|0) = −½(C−μ)ᵀΣ⁻¹(C−μ) − ½(−C−μ)ᵀΣ⁻¹(−C−μ)",
        f"off by up to {_largest(pooled - (above + below)):.2f} on 200 forecasts",
        close(_largest(pooled - (above + below)), 0.0),
        "The second term has a plus sign.",
    )
    weights = np.append(panel.prior_weight, panel.weights)
    terms = np.column_stack([np.full(len(q), logit(prior)), logit(q) - panel.bias])
    yield _same(
        "(12)", "The aggregate is a debiased LogOps whose weights, with that of the prior, add up to 1.",
        "weighted sum against pool, and Σw against 1",
        max(_largest(terms @ weights - pooled - logit(prior)), abs(weights.sum() - 1.0)),
    )  # fmt: skip
    agreed = np.linspace(0.05, 0.95, 19)
    unanimous = expit(_log_odds(panel, expit(logit(agreed)[:, None] + panel.bias), agreed))
    yield _same(
        "2.2", "Unanimity: where prior and debiased forecasts agree, so does the aggregate.",
        "19 probabilities", _largest(unanimous - agreed),
    )  # fmt: skip
    news = rng.normal(0.0, 1.0, (200, 1))
    before = _log_odds(panel, expit(logit(q) + news), expit(logit(prior) + news[:, 0]))
    after = _log_odds(panel, q, prior) + news[:, 0]
    yield _same(
        "2.2", "External Bayesianity: everybody may learn of further evidence before or after pooling.",
        "pooled either way, 200 forecasts", _largest(before - after),
    )  # fmt: skip


def _recalibration(rng: np.random.Generator) -> Iterator[Claim]:
    panel, prior = _panel(rng), 0.3
    one = panel.subset([2])
    q = np.linspace(0.02, 0.98, 49)
    kappa = 2.0 * panel.contrast[2] / panel.covariance[2, 2]
    by_hand = kappa * (logit(q) - panel.bias[2]) + (1.0 - kappa) * logit(prior)
    yield _same(
        "(13), (14)", "A single expert is shaded by κ: L* = κ(L − b) + (1 − κ)L°.", "against a panel of one",
        _largest(_log_odds(one, q[:, None], prior) - by_hand),
    )  # fmt: skip
    curve = {k: Panel.exchangeable(1, k).pool(q[:, None], prior) for k in (0.0, 0.5, 1.0, 2.0)}
    bent = [_largest(curve[1.0] - q), _largest(curve[0.0] - prior)]
    yield _same("3.1", "κ = 1 is taken as is, κ = 0 leaves the prior.", "49 probabilities", max(bent))
    away = np.abs(logit(q) - logit(prior)) > 1e-9
    distance = {k: np.abs(logit(c) - logit(prior))[away] for k, c in curve.items()}
    ordered = bool((distance[0.5] < distance[1.0]).all() and (distance[1.0] < distance[2.0]).all())
    yield Claim(
        "3.1, figure 1", "κ < 1 is shaded towards the prior, κ > 1 moved away from it.",
        f"at {away.sum()} of {away.sum()} probabilities" if ordered else "not everywhere", ordered,
    )  # fmt: skip
    x = rng.normal(3.0, 2.0, (1, 400, 4)) * [1.0, 5.0, 0.1, 1.0]
    y = rng.random((1, 400)) < expit((x[:, :, 0] - 3.0) / 2.0 - 0.5)
    updated, _ = batch_fits.recalibrated(x, y, x)
    zero, mean = batch_fits.conditional_means(updated, y)
    bias = (zero + mean) / 2.0 - batch_fits.laplace_log_odds(y)[:, None]
    within = updated - np.where(y[:, :, None], mean[:, None], zero[:, None])
    kappa = (mean - zero) / ((within**2).sum(axis=1) / 398.0)
    yield _same("(21)", "A recalibrated covariate is unbiased.", "four covariates, 400 events", _largest(bias))
    yield _same("4.1", "A recalibrated covariate is calibrated, κ* = 1.", "the same", _largest(kappa - 1.0))


def _accuracy(rng: np.random.Generator) -> Iterator[Claim]:
    panel, prior = _panel(rng), 0.3
    happened = rng.random(100_000) < prior
    noise = rng.standard_normal((100_000, len(panel))) @ np.linalg.cholesky(panel.covariance).T
    pooled = (np.where(happened, 1.0, -1.0)[:, None] * panel.contrast + noise) @ panel.weights
    towards = np.where(happened, pooled, -pooled)
    error = towards.std() / np.sqrt(len(towards))
    gap = abs(towards.mean() - panel.joint_accuracy) / error
    yield Claim(
        "(15)", "The panel's accuracy, the expected contrast towards what happens, is wᵀμ.",
        f"{towards.mean():.3f} ± {error:.3f} in 100 000 simulated events, wᵀμ = {panel.joint_accuracy:.3f}", gap < 4,
    )  # fmt: skip
    half = panel.accuracy / panel.calibration
    yield _same("3.2", "μ = μ*/κ.", "five experts", _largest(half - panel.contrast))
    yield Claim(
        "(6)", "Bias is an expected difference, E[L] − L°.",
        f"an unbiased expert with μ = 1 at p° = 0.3 has E[L − L°] = {0.3 - 0.7:.1f}", close(0.3 - 0.7, 0.0),
        "The mean over the two outcomes, each counted half; the expected difference only where p° = ½.",
    )  # fmt: skip


def _relative(rng: np.random.Generator) -> Iterator[Claim]:
    panel = _panel(rng)
    m, kappa, r = panel.relative_accuracy, panel.calibration, panel.correlation
    again = [
        Panel.from_features(kappa, r, m).weights,
        Panel.from_features(kappa, r, m, accuracy=7.0 * panel.accuracy[0]).weights,
        np.sqrt(m) @ np.linalg.inv(r) @ np.diag(kappa / np.sqrt(m)),
    ]
    yield _same(
        "Theorem 3.1", "Weights are a function only of κ, R and m.",
        "from features, at 7 times the accuracy, and by (19) as corrected, against 2Σ⁻¹μ",
        max(_largest(w - panel.weights) for w in again),
    )  # fmt: skip
    printed = (1.0 / np.sqrt(m)) @ np.linalg.inv(r) @ np.diag(kappa / np.sqrt(m))
    yield Claim(
        "(19)", "wᵀ = (mᵀ)^(−½) R⁻¹ diag(κ/√m)",
        f"off by up to {_largest(printed - panel.weights):.2f} in five weights",
        close(_largest(printed - panel.weights), 0.0), "The exponent is +½.",
    )  # fmt: skip
    sigma = np.sqrt(np.diag(panel.covariance))
    sides = [1.0 / sigma - kappa / np.sqrt(2.0 * panel.accuracy), panel.contrast / sigma - np.sqrt(panel.accuracy / 2)]
    yield _same("(17), (18)", "1/σ = κ/√(2μ*) and μ/σ = √(μ*/2).", "five experts", max(map(_largest, sides)))
    odd = Panel([1.0, -0.5], [[1.0, 0.3], [0.3, 1.0]])
    wrong = np.sqrt(odd.relative_accuracy) @ np.linalg.inv(odd.correlation)
    wrong = wrong * odd.calibration / np.sqrt(odd.relative_accuracy)
    yield Claim(
        "Theorem 3.1, (17)–(19)", "No restriction on μ is given.",
        f"with μ = (1, −0.5) the weights come out as ({wrong[0]:.2f}, {wrong[1]:.2f}), and they are "
        f"({odd.weights[0]:.2f}, {odd.weights[1]:.2f})",
        close(_largest(wrong - odd.weights), 0.0), "μ > 0 is needed; with signs it holds for μ ≠ 0.",
    )  # fmt: skip


def _independent(rng: np.random.Generator) -> Iterator[Claim]:
    mu, variance = rng.uniform(0.3, 1.5, 4), rng.uniform(0.5, 2.0, 4)
    panel = Panel(mu, np.diag(variance))
    yield _same(
        "(22)", "Independent experts have weights κ.", "four experts", _largest(panel.weights - 2.0 * mu / variance)
    )
    off = _largest(2.0 * panel.relative_accuracy / variance - panel.weights)
    yield Claim(
        "(22)", "wᵀ = 2mᵀΣ⁻¹", f"off by up to {off:.2f} in four weights", close(off, 0.0), "μ takes the place of m."
    )
    q = expit(rng.normal(0.0, 1.5, (200, 4)))
    difference = _largest(Independent().pool(q, prior=0.3) - Panel.exchangeable(4).pool(q, 0.3))
    yield _same(
        "(23)", "For unbiased, calibrated, independent experts the pool is IndOps, with its (1 − N)L°.",
        "IndOps against the Gaussian pool, 200 forecasts", difference,
    )  # fmt: skip


def _exchangeable(_rng: np.random.Generator) -> Iterator[Claim]:
    n, rho, kappa = 6, 0.4, 0.8
    matrix = np.where(np.eye(n, dtype=bool), 1.0, rho)
    inverse = np.linalg.inv(matrix)
    bottom = (1.0 - rho) * (1.0 + (n - 1) * rho)
    alpha, beta = (1.0 + (n - 2) * rho) / bottom, rho / bottom
    yield _same("4.3", "Σ⁻¹ has α/σ² on its diagonal.", "N = 6, ρ = 0.4", abs(inverse[0, 0] - alpha))
    yield Claim(
        "4.3", "Σ⁻¹ has β/σ² off its diagonal.", f"{inverse[0, 1]:.4f}, and β = {beta:.4f}", close(inverse[0, 1], beta),
        "−β/σ².",
    )  # fmt: skip
    least = float(np.linalg.eigvalsh(np.where(np.eye(3, dtype=bool), 1.0, -0.6))[0])
    yield Claim(
        "4.3", "Valid for |ρ| < 1.", f"N = 3, ρ = −0.6: smallest eigenvalue {least:.2f}, no covariance", least > 0,
        "−1/(N−1) < ρ < 1.",
    )  # fmt: skip
    direct = 2.0 * np.linalg.solve(matrix * 2.0 / kappa**2, np.full(n, 1.0 / kappa))
    yield _same(
        "(24), figure 2a", "w = κ/(1 + (N−1)ρ) for each expert.", "against 2Σ⁻¹μ, N = 6, ρ = 0.4, κ = 0.8",
        _largest(direct - kappa / (1.0 + (n - 1) * rho)),
    )  # fmt: skip
    ends = [Panel.exchangeable(n, kappa, r).weights for r in (0.0, 1.0)]
    yield _same(
        "4.3",
        "Weights are κ at ρ = 0 and κ/N at ρ = 1.",
        "N = 6",
        max(_largest(ends[0] - kappa), _largest(n * ends[1] - kappa)),
    )
    panel = Panel.exchangeable(n, kappa, rho, accuracy=1.5)
    ratio = panel.joint_accuracy / panel.accuracy[0]
    yield _same(
        "(25), figure 2b", "Accuracy is N/(1 + (N−1)ρ) times that of one expert.", "wᵀμ against it, N = 6, ρ = 0.4",
        abs(ratio - n / (1.0 + (n - 1) * rho)),
    )  # fmt: skip
    printed = float(panel.weights @ panel.relative_accuracy)
    yield Claim(
        "(25)", "μ* = wᵀm", f"wᵀm = {printed:.3f}, and the panel's accuracy is {panel.joint_accuracy:.3f}",
        close(printed, panel.joint_accuracy), "μ takes the place of m.",
    )  # fmt: skip
    joint = float(panel.weights.sum() * panel.contrast[0])
    stretch = float(panel.weights @ panel.contrast / panel.contrast[0])
    yield Claim(
        "after (25)", "N independent experts multiply the contrast by N; 1/ρ bounds the contrast multiplier.",
        f"with κ = 0.8 the contrast is multiplied by {stretch:.3f}, the accuracy by {joint / panel.accuracy[0]:.3f}",
        close(stretch, joint / panel.accuracy[0]), "It is the accuracy, and the accuracy multiplier.",
    )  # fmt: skip
    most = [Panel.exchangeable(10_000, correlation=r, accuracy=1.0).joint_accuracy * r for r in (0.1, 0.2, 0.5, 0.9)]
    yield Claim(
        "4.3", "For large N the multiplier approaches 1/ρ, a bound.",
        f"N = 10 000: {min(most):.4f} to {max(most):.5f} of 1/ρ for ρ = 0.1 to 0.9",
        max(most) < 1.0 and min(most) > 0.999,
    )  # fmt: skip
    clones = Panel.exchangeable(1000, correlation=1.0, accuracy=1.0).joint_accuracy
    yield _same("4.3", "Replicated experts (ρ = 1) know no more than one.", "N = 1000", abs(clones - 1.0))
    score = float(gaussian_scores([50], 0.0, 2.0)[0])
    yield Claim(
        "4.3", "Many independent experts give near perfect information.",
        f"expected score {score:.6f} of 1 with 50 calibrated experts, {gaussian_scores([1], 0.0, 2.0)[0]:.2f} with one",
        score > 0.999,
    )  # fmt: skip


def _examples(rng: np.random.Generator) -> Iterator[Claim]:
    forecast = [0.7, 0.8]
    alike, gap = (Panel.exchangeable(2, 0.9, rho) for rho in (0.95, 0.0))
    full = Panel.exchangeable(2, 1.0, 0.95)
    w, p = float(alike.weights[0]), float(alike.pool(forecast))
    yield Claim(
        "4.3, example", "ρ = 0.95, κ = 0.9, forecasts of 70 % and 80 %: w = 0.51, p* = 76 %.",
        f"w = {w:.4f}, p* = {p:.1%}".replace("%", " %"), round(w, 2) == 0.51 and round(p, 2) == 0.76,
        f"The printed values belong to κ = 1: w = {full.weights[0]:.2f}, p* = "
        f"{100 * float(full.pool(forecast)):.0f} %.",
    )  # fmt: skip
    w, p = float(gap.weights[0]), float(gap.pool(forecast))
    yield Claim(
        "4.3, example", "ρ = 0, κ = 0.9, the same forecasts: w = 0.9, p* = 88 %.",
        f"w = {w:.2f}, p* = {p:.1%}".replace("%", " %"), round(w, 2) == 0.9 and round(p, 2) == 0.88,
    )  # fmt: skip
    gaps = {}
    for rho in (0.95, 0.0):
        panel = Panel.exchangeable(2, 1.0, rho, accuracy=1.0)
        q, _ = panel.simulate(20_000, seed=rng)
        gaps[rho] = float(np.abs(panel.pool(q) - Average().pool(q)).mean())
    yield Claim(
        "4.3", "For κ ≈ 1 and high ρ the aggregate is quite close to LinOps.",
        f"two experts: {gaps[0.95]:.3f} from their average, in the mean, at ρ = 0.95, and {gaps[0.0]:.3f} at ρ = 0; "
        f"close means below {NEAR}",
        gaps[0.95] < NEAR,
    )  # fmt: skip


def _set_up(_rng: np.random.Generator) -> Iterator[Claim]:
    kappa = [float(simulated_panel(1, 0.0, v).calibration[0]) for v in (1.0, 2.0)]
    yield Claim(
        "5.1", "With μ = 1 and σ² = 1 the simulated experts are fully calibrated, κ = 1.",
        f"κ = 2μ/σ² = {kappa[0]:g}; with σ² = 2 it is {kappa[1]:g}", close(kappa[0], 1.0),
        "κ = 2, underconfident. Both are run below.",
    )  # fmt: skip
    reference = float(logit(0.3))
    yield Claim(
        "5.1", "b = ½(μ₁ + μ₀) + 1L°", f"an unbiased expert at p° = 0.3 would have b = {2.0 * reference:.2f}",
        close(2.0 * reference, 0.0), "½(μ₁ + μ₀) − L°, as in (6). With L° = 0 it makes no difference.",
    )  # fmt: skip
    prior = 0.3
    nothing = _largest(log_score([prior, prior], [1, 0], prior))
    knows = prior * log_score([1.0], [1], prior)[0] + (1.0 - prior) * log_score([0.0], [0], prior)[0]
    off = max(nothing, abs(knows - 1.0))
    yield Claim(
        "(26)", "Repeating the scoring prior scores 0, perfect information is expected to score 1.",
        f"at p = 0.3: {nothing:.1e} and {knows:.7f} (less than 1 by the floor of 10⁻⁸)", off < 1e-6,
    )  # fmt: skip
    q = np.linspace(0.001, 0.999, 999)
    best = [float(q[np.argmax(-p * (1.0 - q) ** 2 - (1.0 - p) * q**2)]) for p in (0.1, 0.3, 0.8)]
    proper = _largest(np.array(best) - [0.1, 0.3, 0.8]) < 1e-9
    yield Claim(
        "5.3", "The log score is, in general, the only smooth scoring rule that is local and strictly proper.",
        "with two outcomes −(1 − q(Y))², the Brier score, depends only on q(Y) too; truths of 0.1, 0.3 and 0.8 are "
        f"best reported as {best[0]:.1f}, {best[1]:.1f} and {best[2]:.1f}",
        not proper, "From three outcomes on.",
    )  # fmt: skip
    worst = float(log_score([0.0], [1])[0])
    yield Claim(
        "5.3", "A lower bound on probabilities avoids the log score's difficulty with a zero.",
        f"the worst score is {worst:.2f} instead of −∞", bool(np.isfinite(worst)),
    )  # fmt: skip


def _estimates(rng: np.random.Generator) -> Iterator[Claim]:
    zeros, ones = 130, 120
    total = (ones + 1.0) / (zeros + ones + 1.0) + (zeros + 1.0) / (zeros + ones + 1.0)
    corrected = float(laplace_prior(np.array([zeros, ones], dtype=np.float64)).sum())
    yield Claim(
        "5.4", "Laplace's estimate is (t₁ + 1)/(t₀ + t₁ + 1).",
        f"p(1) and p(0) add up to {total:.4f} for 120 and 130 events", close(total, 1.0),
        f"(t₁ + 1)/(t₀ + t₁ + 2), which adds up to {corrected:g}.",
    )  # fmt: skip
    x = rng.normal(1.0, 1.0, 120)
    yield Claim(
        "5.4", "Conditional means are Σ_t X_y(t, ·).",
        f"{x.sum():.1f} for 120 values about 1; their mean is {x.mean():.2f}", close(float(x.sum()), float(x.mean())),
        "(1/t_y) Σ_t X_y(t, ·).",
    )  # fmt: skip
