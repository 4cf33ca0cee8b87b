"""Checks of the paper's statements, each of which has a row in `claims.toml` and a value that is computed here.

A number that can be computed in two ways is computed in both, for random panels and forecasts. Misprinted formulas
(model.md, section 7) are rows that do not hold. Differences between scores are paired: same experts, same halves of the
events. A difference is significant above `SIGNIFICANT` standard errors over the draws of experts and halves of a data
set. If parameters are known, the expected difference is shown too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.logodds import expit, logit
from opinionpool.model.panel import Panel
from opinionpool.paper import batch_fits
from opinionpool.paper.datasets import DataSet, Expected, gaussian_scores, simulated_panel
from opinionpool.paper.experiments import METHODS, Curves
from opinionpool.pools.averages import Average
from opinionpool.pools.logarithmic import Independent
from opinionpool.priors import laplace_prior
from opinionpool.scoring.scores import log_score

TABLE = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
# Standard errors above which a difference is significant, and what rounding may make of one.
SIGNIFICANT, ROUNDING = 2.0, 1e-9
NAMES = {
    "gaussian": "Gaussian",
    "logistic": "logistic",
    "independent": "IndOps",
    "linear": "LinOps",
    "average": "AvgOps",
}


@dataclass(frozen=True)
class Claim:
    """Statement of the paper with the computed result."""

    name: str  # name of its row in `claims.toml`
    where: str  # section, equation or figure of the paper
    says: str  # statement of the paper
    found: str  # computed number that decides, and how it was computed
    holds: bool  # whether the statement is correct
    right: str = ""  # correct statement, if this one does not hold
    figure: str = ""  # figure of the model that it is about, "1" or "2"


def claim(name: str, value: npt.ArrayLike, **facts: object) -> Claim:
    """Return the claim `name` of the table of claims, decided by the value or values computed for it.

    >>> claim("half", 2e-16).holds, claim("valid", -0.2).right
    (True, '−1/(N−1) < ρ < 1.')
    """
    row = TABLE[name]
    published, tolerance = np.asarray(row.get("published", 0.0)), row.get("tolerance", ROUNDING)
    low, high = published - tolerance, published + tolerance
    if "at_least" in row or "at_most" in row:
        low, high = row.get("at_least", -np.inf), row.get("at_most", np.inf)
    holds = bool(np.all((low <= np.asarray(value)) & (np.asarray(value) <= high)))
    shown = {"published": published, "tolerance": tolerance, **row, "value": value, **facts}
    where, says, found, right = (row.get(key, "").format(**shown) for key in ("where", "says", "found", "right"))
    return Claim(name, where, says, found, holds, "" if holds else right, row.get("figure", ""))


def model_claims(seed: int = 0) -> list[Claim]:
    """Return claims of sections 2 to 5.4, the model and its special cases, for panels drawn with `seed`.

    >>> next(claim.found for claim in model_claims() if "0.51" in claim.says)
    'w = 0.4615, p* = 73.7 %'
    """
    rng = np.random.default_rng([seed, 24])
    parts = (_pooling, _recalibration, _accuracy, _relative, _independent, _exchangeable, _examples, _set_up)
    return [each for part in parts for each in part(rng)]


def _panel(rng: np.random.Generator, n: int = 5) -> Panel:
    """Return a random panel of `n` experts, with random correlations, calibrations and biases."""
    root = rng.normal(size=(n, n))
    return Panel(rng.uniform(0.3, 1.5, n), root @ root.T / n + 0.5 * np.eye(n), rng.normal(0.0, 0.5, n))


def _largest(*differences: Array | float) -> float:
    return max(float(np.abs(each).max()) for each in differences)


def _log_odds(panel: Panel, q: Array, prior: Array | float) -> Array:
    """Return the panel's pooled log-odds before the floor on answers."""
    return np.asarray(logit(prior) + panel.contributions(q, prior).sum(axis=1))


def _log_density(x: Array, mean: Array, covariance: Array) -> Array:
    """Return the normal log-density up to a constant that depends only on the covariance, (T,)."""
    off = x - mean
    return np.asarray(-0.5 * np.einsum("ti,ij,tj->t", off, np.linalg.inv(covariance), off))


def _pooling(rng: np.random.Generator) -> Iterator[Claim]:
    panel, prior = _panel(rng), 0.3
    q = expit(rng.normal(0.0, 1.0, (200, len(panel))))
    contrast = logit(q) - logit(prior) - panel.bias
    pooled = panel.contributions(q, prior).sum(axis=1)
    above = _log_density(contrast, panel.contrast, panel.covariance)
    below = _log_density(-contrast, panel.contrast, panel.covariance)
    yield claim("bayes", _largest(pooled - (above - below)))
    yield claim("second-line", _largest(pooled - (above + below)))
    weights = np.append(panel.prior_weight, panel.weights)
    terms = np.column_stack([np.full(len(q), logit(prior)), logit(q) - panel.bias])
    yield claim("logops", _largest(terms @ weights - pooled - logit(prior), weights.sum() - 1.0))
    agreed = np.linspace(0.05, 0.95, 19)
    unanimous = expit(_log_odds(panel, expit(logit(agreed)[:, None] + panel.bias), agreed))
    yield claim("unanimity", _largest(unanimous - agreed))
    news = rng.normal(0.0, 1.0, (200, 1))
    before = _log_odds(panel, expit(logit(q) + news), expit(logit(prior) + news[:, 0]))
    yield claim("external-bayesianity", _largest(before - _log_odds(panel, q, prior) - news[:, 0]))


def _recalibration(rng: np.random.Generator) -> Iterator[Claim]:
    panel, prior, q = _panel(rng), 0.3, np.linspace(0.02, 0.98, 49)
    kappa = 2.0 * panel.contrast[2] / panel.covariance[2, 2]
    by_hand = kappa * (logit(q) - panel.bias[2]) + (1.0 - kappa) * logit(prior)
    yield claim("shading", _largest(_log_odds(panel.subset([2]), q[:, None], prior) - by_hand))
    curve = {k: Panel.exchangeable(1, k).pool(q[:, None], prior) for k in (0.0, 0.5, 1.0, 2.0)}
    yield claim("calibration-ends", _largest(curve[1.0] - q, curve[0.0] - prior))
    off = {k: np.abs(logit(c) - logit(prior))[np.abs(logit(q) - logit(prior)) > ROUNDING] for k, c in curve.items()}
    yield claim("calibration-order", ((off[0.5] < off[1.0]) & (off[1.0] < off[2.0])).sum())
    x = rng.normal(3.0, 2.0, (1, 400, 4)) * [1.0, 5.0, 0.1, 1.0]
    y = rng.random((1, 400)) < expit((x[:, :, 0] - 3.0) / 2.0 - 0.5)
    updated, _ = batch_fits.recalibrated(x, y, x)
    zero, one = batch_fits.conditional_means(updated, y)
    yield claim("recalibrated-bias", _largest((zero + one) / 2.0 - batch_fits.laplace_log_odds(y)[:, None]))
    within = updated - np.where(y[:, :, None], one[:, None], zero[:, None])
    yield claim("recalibrated-slope", _largest((one - zero) / ((within**2).sum(axis=1) / 398.0) - 1.0))


def _accuracy(rng: np.random.Generator) -> Iterator[Claim]:
    panel = _panel(rng)
    exact = panel.joint_accuracy
    happened = rng.random(100_000) < 0.3
    noise = rng.standard_normal((100_000, len(panel))) @ np.linalg.cholesky(panel.covariance).T
    pooled = (np.where(happened, 1.0, -1.0)[:, None] * panel.contrast + noise) @ panel.weights
    towards = np.where(happened, pooled, -pooled)
    mean, error = towards.mean(), towards.std() / np.sqrt(len(towards))
    yield claim("accuracy", (mean - exact) / error, mean=mean, error=error, exact=exact)
    yield claim("half", _largest(panel.accuracy / panel.calibration - panel.contrast))
    yield claim("bias", 0.3 - 0.7)


def _relative(rng: np.random.Generator) -> Iterator[Claim]:
    panel = _panel(rng)
    m, kappa, r = panel.relative_accuracy, panel.calibration, panel.correlation
    scaled = Panel.from_features(kappa, r, m, accuracy=7.0 * panel.accuracy[0])
    corrected = np.sqrt(m) @ np.linalg.inv(r) @ np.diag(kappa / np.sqrt(m))
    again = (Panel.from_features(kappa, r, m).weights, scaled.weights, corrected)
    yield claim("theorem", _largest(*(w - panel.weights for w in again)))
    printed = (1.0 / np.sqrt(m)) @ np.linalg.inv(r) @ np.diag(kappa / np.sqrt(m))
    yield claim("exponent", _largest(printed - panel.weights))
    sigma, root = np.sqrt(np.diag(panel.covariance)), np.sqrt(2.0 * panel.accuracy)
    yield claim("spreads", _largest(1.0 / sigma - kappa / root, panel.contrast / sigma - root / 2.0))
    odd = Panel([1.0, -0.5], [[1.0, 0.3], [0.3, 1.0]])
    root = np.sqrt(odd.relative_accuracy)
    printed = root @ np.linalg.inv(odd.correlation) * odd.calibration / root
    yield claim("signs", _largest(printed - odd.weights), printed=printed, weights=odd.weights)


def _independent(rng: np.random.Generator) -> Iterator[Claim]:
    mu, variance = rng.uniform(0.3, 1.5, 4), rng.uniform(0.5, 2.0, 4)
    panel = Panel(mu, np.diag(variance))
    yield claim("independent-weights", _largest(panel.weights - 2.0 * mu / variance))
    yield claim("independent-formula", _largest(2.0 * panel.relative_accuracy / variance - panel.weights))
    q = expit(rng.normal(0.0, 1.5, (200, 4)))
    yield claim("indops", _largest(Independent().pool(q, prior=0.3) - Panel.exchangeable(4).pool(q, 0.3)))


def _exchangeable(_rng: np.random.Generator) -> Iterator[Claim]:
    n, rho, kappa = 6, 0.4, 0.8
    matrix = np.where(np.eye(n, dtype=bool), 1.0, rho)
    inverse, bottom = np.linalg.inv(matrix), (1.0 - rho) * (1.0 + (n - 1) * rho)
    alpha, beta = (1.0 + (n - 2) * rho) / bottom, rho / bottom
    yield claim("diagonal", _largest(inverse[0, 0] - alpha))
    yield claim("off-diagonal", inverse[0, 1] - beta, entry=inverse[0, 1], beta=beta)
    yield claim("valid", np.linalg.eigvalsh(np.where(np.eye(3, dtype=bool), 1.0, -0.6))[0])
    direct = 2.0 * np.linalg.solve(matrix * 2.0 / kappa**2, np.full(n, 1.0 / kappa))
    yield claim("exchangeable-weight", _largest(direct - kappa / (1.0 + (n - 1) * rho)))
    free, equal = (Panel.exchangeable(n, kappa, r).weights for r in (0.0, 1.0))
    yield claim("exchangeable-ends", _largest(free - kappa, n * equal - kappa))
    panel = Panel.exchangeable(n, kappa, rho, accuracy=1.5)
    joint, ratio = panel.joint_accuracy, panel.joint_accuracy / panel.accuracy[0]
    yield claim("multiplier", _largest(ratio - n / (1.0 + (n - 1) * rho)))
    printed = float(panel.weights @ panel.relative_accuracy)
    yield claim("joint-accuracy", printed - joint, printed=printed, exact=joint)
    stretch = float(panel.weights @ panel.contrast / panel.contrast[0])
    yield claim("contrast", stretch - ratio, stretch=stretch, exact=ratio)
    most = [Panel.exchangeable(10_000, correlation=r, accuracy=1.0).joint_accuracy * r for r in (0.1, 0.2, 0.5, 0.9)]
    yield claim("large", most)
    yield claim("clones", _largest(Panel.exchangeable(1000, correlation=1.0, accuracy=1.0).joint_accuracy - 1.0))
    single, many = gaussian_scores([1, 50], 0.0, 2.0)
    yield claim("many", many, single=single)


def _examples(rng: np.random.Generator) -> Iterator[Claim]:
    full, alike, free = (Panel.exchangeable(2, *each) for each in ((1.0, 0.95), (0.9, 0.95), (0.9, 0.0)))
    calibrated, found, independent = ([p.weights[0], float(p.pool([0.7, 0.8]))] for p in (full, alike, free))
    calibrated[1] *= 100.0
    yield claim("example-alike", found, percent=100.0 * found[1], calibrated=calibrated)
    yield claim("example-independent", independent, percent=100.0 * independent[1])
    gaps = []
    for rho in (0.95, 0.0):
        panel = Panel.exchangeable(2, 1.0, rho, accuracy=1.0)
        q, _ = panel.simulate(20_000, seed=rng)
        gaps.append(float(np.abs(panel.pool(q) - Average().pool(q)).mean()))
    yield claim("near-linear", gaps[0], independent=gaps[1])


def _set_up(rng: np.random.Generator) -> Iterator[Claim]:
    kappa, other = (float(simulated_panel(1, 0.0, v).calibration[0]) for v in (1.0, 2.0))
    yield claim("simulated-calibration", kappa, other=other)
    prior = 0.3
    yield claim("simulated-bias", 2.0 * float(logit(prior)))
    nothing = _largest(log_score([prior, prior], [1, 0], prior))
    knows = prior * log_score([1.0], [1], prior)[0] + (1.0 - prior) * log_score([0.0], [0], prior)[0]
    yield claim("score", [nothing, knows])
    q, truths = np.linspace(0.001, 0.999, 999), [0.1, 0.3, 0.8]
    best = [float(q[np.argmax(-p * (1.0 - q) ** 2 - (1.0 - p) * q**2)]) for p in truths]
    yield claim("proper", _largest(np.subtract(best, truths)), best=best)
    yield claim("floor", log_score([0.0], [1])[0])
    zeros, ones = 130, 120
    corrected = laplace_prior(np.array([zeros, ones], dtype=np.float64)).sum()
    yield claim("laplace", (zeros + ones + 2.0) / (zeros + ones + 1.0), corrected=corrected)
    x = rng.normal(1.0, 1.0, 120)
    yield claim("means", x.sum() - x.mean(), sum=x.sum(), mean=x.mean())


def score_claims(pairs: Sequence[tuple[Curves, Expected | None]]) -> list[Claim]:
    """Return claims about figure 3 or 4 from pairs of scores and expected scores (None if not simulated).

    The simulated data sets of a figure have equal variances, and are in the order of their correlations.
    """
    known = [(c, e) for c, e in pairs if e is not None]
    return [*(_simulated(known) if known else ()), *(each for c, e in pairs if e is None for each in _real(c))]


def _simulated(group: list[tuple[Curves, Expected]]) -> Iterator[Claim]:
    variance = group[0][0].data.variance
    beaten = [
        (float(gain), f" ({NAMES[method]} at {_place(c, n)})")
        for c, _ in group
        for method in ("independent", "linear", "average")
        for n, gain in zip(c.numbers, np.minimum(*_leads(c, method)), strict=True)
        if gain > 0
    ]
    most, place = max(beaten, default=(0.0, ""))
    total = 3 * sum(len(c.numbers) for c, _ in group)
    yield claim("highest", len(beaten), total=total, most=most, place=place, variance=variance)
    found = [(c, *_extreme(c, "gaussian", "logistic")) for c, _ in group]
    c, gain, n = max(found, key=lambda one: abs(one[1]))
    calm = max((abs(one) for other, one, _ in found if not other.separated.any()), default=np.nan)
    share = c.separated[n - 1].mean()
    halves = f", where {100.0 * share:.0f} % of the halves are separated" if share else ""
    yield claim("on-par", gain, place=_place(c, n) + halves, calm=calm, variance=variance)
    last = max(c.data.correlation or 0.0 for c, _ in group)
    for c, e in group:
        if c.data.correlation == 0.0:
            gain, n = _extreme(c, "independent", "gaussian")
            off = e.independent - e.gaussian
            yield claim("equal", off[np.abs(off).argmax()], gain=gain, n=n, variance=variance)
        yield from _linear(c, e, same=c.data.correlation == last)
    ends = [[c.mean("independent")[-1], e.independent[-1]] for c, e in group]
    text = ", ".join(f"{c.data.correlation:g}: {a:.2f} ({b:.2f})" for (c, _), (a, b) in zip(group, ends, strict=True))
    n = group[0][0].numbers[-1]
    yield claim("falls-with-correlation", np.diff(ends, axis=0), n=n, scores=text, variance=variance)
    yield from (_independent_claim(c, e) for c, e in group if c.data.correlation)


def _leads(c: Curves, method: str) -> tuple[Array, Array]:
    """Gains of `method` over the Gaussian and the logistic pool, by number of experts, (P,); 0 if not significant."""
    return _significant(*c.gain(method, "gaussian")), _significant(*c.gain(method, "logistic"))


def _linear(c: Curves, e: Expected, *, same: bool) -> Iterator[Claim]:
    """Yield claims that the linear pool and the average forecast score below the Gaussian pool, or the `same`."""
    for method in ("linear", "average"):
        gain, error = (each[-1] for each in c.gain(method, "gaussian"))
        known = e.of(method)[-1] - e.gaussian[-1]
        value = [gain, known] if same else _significant(gain, error)
        yield claim(
            "par" if same else "far-below", value, method=NAMES[method], rho=c.data.correlation, gain=gain, error=error,
            n=len(c.numbers), known=known, other=e.of(method)[-1], gaussian=e.gaussian[-1], variance=c.data.variance,
        )  # fmt: skip


def _independent_claim(c: Curves, e: Expected) -> Claim:
    """Return the claim on how the independent pool's score changes as the number of experts increases."""
    mean, peak, rho = c.mean("independent"), int(e.independent.argmax()), c.data.correlation or 0.0
    places = dict.fromkeys((0, peak, len(mean) - 1))
    text = ", ".join(f"{mean[i]:.2f} ({e.independent[i]:.2f}) at N = {i + 1}" for i in places)
    best = round(1.0 / rho)
    optimal = ""
    if c.data.variance == 1.0 and best < len(mean):
        off = e.gaussian[best] - e.independent[best]
        optimal = f" At N = 1 + 1/ρ = {best + 1} IndOps is optimal: {off:.3f} from the Gaussian pool."
    falls = [e.independent[-1] - e.independent[0], mean[-1] - mean[0]]
    facts = {"scores": text, "peak": peak + 1, "optimal": optimal, "variance": c.data.variance}
    return claim("falls-with-experts", falls, rho=rho, **facts)


def _real(c: Curves) -> Iterator[Claim]:
    events, n, title = *c.data.values.shape, c.data.title
    yield claim("complete", c.data.unmeasured, title=title, events=events, n=n)
    ahead = []
    for method in METHODS[1:]:
        gain = _significant(*c.gain(method, "gaussian"))
        ahead += [f"{NAMES[method]} by {gain[i]:.3f} at N = {i + 1}" for i in np.flatnonzero(gain > 0)]
    which = ": " + "; ".join(ahead[:3]) if ahead else ""
    which += f" and {len(ahead) - 3} more" if len(ahead) > 3 else ""
    yield claim("not-dominant", len(ahead), title=title, which=which)
    for name, method in (("above-independent", "independent"), ("above-linear", "linear")):
        gain, error = (each[-1] for each in c.gain("gaussian", method))
        facts = {"gain": gain, "error": error, "n": n, "dependence": dependence(c.data)}
        yield claim(name, _significant(gain, error), title=title, **facts)
    most, number = _extreme(c, "gaussian", "logistic")
    yield claim("similar", most, title=title, place=_place(c, number))


def dependence(data: DataSet) -> float:
    """Return the mean absolute correlation of two experts' log-odds given the outcome.

    >>> from opinionpool.paper.datasets import simulated
    >>> round(dependence(simulated(0.5, 2.0)), 1)
    0.5
    """
    one, zero = (data.values[mask].mean(axis=0) for mask in (data.outcomes, ~data.outcomes))
    r = np.corrcoef((data.values - np.where(data.outcomes[:, None], one, zero)).T)
    return float(np.abs(r[np.triu_indices_from(r, 1)]).mean())


def _significant(gain: Array, error: Array) -> Array:
    """Return `gain`, but 0 where it is no more than a multiple of its standard error or than a rounding error."""
    return np.where(np.abs(gain) > np.maximum(SIGNIFICANT * error, ROUNDING), gain, 0.0)


def _extreme(c: Curves, first: str, second: str) -> tuple[float, int]:
    """Return the largest mean difference between two methods, and the number of experts N at which it occurs."""
    gain, _ = c.gain(first, second)
    place = int(np.abs(gain).argmax())
    return float(gain[place]), int(c.numbers[place])


def _place(c: Curves, n: int) -> str:
    return f"N = {n}" if c.data.correlation is None else f"ρ = {c.data.correlation:g}, N = {n}"
