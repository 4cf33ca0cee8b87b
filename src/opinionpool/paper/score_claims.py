"""Claims of sections 5.5 and 6 of the paper, about scores, checked against the experiments.

Differences between methods are paired: same experts, same halves. "On par" means that no mean difference exceeds
`PAR`; "significantly" that the mean difference exceeds `SIGNIFICANT` standard errors over the draws of experts and
halves, which share one data set. Beside each stands the same comparison at known parameters, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Mask
from opinionpool.paper.datasets import DataSet
from opinionpool.paper.expected_scores import average_scores, gaussian_scores, independent_scores
from opinionpool.paper.experiments import METHODS, Curves
from opinionpool.paper.page import Claim

PAR = 0.02
SIGNIFICANT = 2.0
ROUNDING = 1e-9
NAMES = {
    "gaussian": "Gaussian",
    "logistic": "logistic",
    "independent": "IndOps",
    "linear": "LinOps",
    "average": "AvgOps",
}


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected scores at known parameters for N = 1, 2, ..., (P,) each."""

    gaussian: Array
    independent: Array
    average: Array

    def of(self, method: str) -> Array:
        """Expected scores of a method; "logistic" maps to the Gaussian pool and "linear" to the average, (P,)."""
        return {"independent": self.independent, "linear": self.average, "average": self.average}.get(
            method, self.gaussian
        )


def expectations(data: DataSet) -> Expected | None:
    """Expected scores for simulated experts; None for other data."""
    if data.correlation is None or data.variance is None:
        return None
    n = np.arange(1, len(data.experts) + 1)
    return Expected(
        gaussian_scores(n, data.correlation, data.variance),
        independent_scores(n, data.correlation, data.variance),
        average_scores(len(n), data.correlation, data.variance),
    )


def score_claims(curves: Sequence[Curves], expected: Sequence[Expected | None]) -> list[Claim]:
    """Check what the paper says about figures 3 and 4.

    Parameters
    ----------
    curves : sequence of Curves
        Of the simulated sets, all correlations for each variance, and of the UCI sets, if they are there.
    expected : sequence of Expected or None
        From `expectations`, for each of them.
    """
    claims: list[Claim] = []
    pairs = list(zip(curves, expected, strict=True))
    for variance in dict.fromkeys(c.data.variance for c in curves if c.data.variance is not None):
        group = [(c, e) for c, e in pairs if c.data.variance == variance and e is not None]
        claims += _simulated(group, f"5.5, figure 3, σ² = {variance:g}")
    for c, e in pairs:
        if e is None:
            claims += _real(c)
    return claims


def _simulated(group: list[tuple[Curves, Expected]], where: str) -> Iterator[Claim]:
    curves = [c for c, _ in group]
    yield _highest(curves, where)
    yield _on_par(curves, where, "Gaussian and logistic aggregation are on par.")
    for c, e in group:
        if c.data.correlation == 0.0:
            yield _equal(c, e, where)
            yield from _far_below(c, e, where, "at ρ = 0")
        elif c.data.correlation == max(o.data.correlation or 0.0 for o in curves):
            yield from _far_below(c, e, where, f"at ρ = {c.data.correlation:g}", par=True)
        else:
            yield from _far_below(c, e, where, f"at ρ = {c.data.correlation:g}")
    yield from _declines(group, where)


def _highest(curves: list[Curves], where: str) -> Claim:
    beaten = []
    for c in curves:
        leads = c.mean("gaussian") >= c.mean("logistic")
        for method in ("independent", "linear", "average"):
            (over_one, error_one), (over_other, error_other) = c.gain(method, "gaussian"), c.gain(method, "logistic")
            gain, error = np.where(leads, over_one, over_other), np.where(leads, error_one, error_other)
            ahead = np.flatnonzero(_clear(gain, error))
            beaten += [(float(gain[i]), f"{NAMES[method]} at {_place(c, int(c.numbers[i]))}") for i in ahead]
    total = sum(len(c.numbers) for c in curves)
    most, which = max(beaten, default=(0.0, ""))
    text = f", by {most:.3f} at most ({which})" if beaten else ""
    return Claim(
        where, "Gaussian and logistic aggregation yield the highest scores in all cases.",
        f"others are significantly ahead {len(beaten)} times in {3 * total} comparisons{text}", not beaten,
        "Others may lead by that little on a single data set; at known parameters none does." if beaten else "",
    )  # fmt: skip


def _on_par(curves: list[Curves], where: str, says: str) -> Claim:
    found = [(c, *_extreme(c, "gaussian", "logistic")) for c in curves]
    c, gain, n = max(found, key=lambda one: abs(one[1]))
    calm = [abs(one) for other, one, _ in found if not other.separated.any()]
    share = c.separated[n - 1].mean()
    difference = f", where {share:.0%} of the halves are separated".replace("%", " %") if share else ""
    right = ""
    if abs(gain) > PAR:
        right = "Where halves are separated, or nearly, logistic regression knows less"
        right += f"; within {max(calm):.3f} on sets without such halves." if calm else "."
    return Claim(
        where, says,
        f"Gaussian less logistic: {gain:+.3f} at most, at {_place(c, n)}{difference}; on par means within {PAR}",
        abs(gain) <= PAR, right,
    )  # fmt: skip


def _equal(c: Curves, e: Expected, where: str) -> Claim:
    gain, n = _extreme(c, "independent", "gaussian")
    known = (e.independent - e.gaussian)[np.abs(e.independent - e.gaussian).argmax()]
    return Claim(
        where, "IndOps is equal to Gaussian aggregation at ρ = 0.",
        f"IndOps less Gaussian: {gain:+.3f} at most, at N = {n}; {known:+.3f} at most at known parameters; "
        f"equal means within {PAR} there",
        abs(known) <= PAR,
        "" if abs(known) <= PAR else "Equal for calibrated experts only, σ² = 2.",
    )  # fmt: skip


def _declines(group: list[tuple[Curves, Expected]], where: str) -> Iterator[Claim]:
    last = [c.mean("independent")[-1] for c, _ in group]
    known = [e.independent[-1] for _, e in group]
    each = zip([c.data.correlation for c, _ in group], last, known, strict=True)
    text = ", ".join(f"{rho:g}: {score:.2f} ({limit:.2f})" for rho, score, limit in each)
    yield Claim(
        where, "IndOps' scores decline precipitously as ρ increases.",
        f"at N = {group[0][0].numbers[-1]} and ρ = {text}; in brackets, at known parameters",
        bool((np.diff(last) < -PAR).all() and (np.diff(known) < -PAR).all()),
    )  # fmt: skip
    for c, e in group:
        if not c.data.correlation:
            continue
        mean, peak, n = c.mean("independent"), int(e.independent.argmax()), len(c.numbers)
        falls = bool(e.independent[-1] < e.independent[0] - PAR and mean[-1] < mean[0] - PAR)
        text = ", ".join(
            f"{mean[i]:.2f} ({e.independent[i]:.2f}) at N = {i + 1}" for i in dict.fromkeys((0, peak, n - 1))
        )
        right = "" if falls else f"They rise up to N = {peak + 1} at known parameters."
        best = 1.0 + 1.0 / c.data.correlation
        if c.data.variance == 1.0 and best <= n:
            i = round(best) - 1
            off = e.gaussian[i] - e.independent[i]
            right += f" At N = 1 + 1/ρ = {i + 1} IndOps is optimal: {off:.3f} from the Gaussian pool."
        yield Claim(
            where, f"IndOps' scores decline precipitously as N increases, at ρ = {c.data.correlation:g}.",
            f"{text}; in brackets, at known parameters", falls, right.strip(),
        )  # fmt: skip


def _far_below(c: Curves, e: Expected, where: str, at: str, *, par: bool = False) -> Iterator[Claim]:
    """Claims on LinOps and AvgOps compared with the Gaussian pool at the largest N."""
    n = len(c.numbers)
    for method in ("linear", "average"):
        gains, errors = c.gain(method, "gaussian")
        gain, error = gains[-1], errors[-1]
        known = e.of(method)[-1] - e.gaussian[-1]
        found = (
            f"{gain:+.3f} ± {error:.3f} at N = {n}; {known:+.3f} at known parameters "
            f"({e.of(method)[-1]:.3f} against {e.gaussian[-1]:.3f})"
        )
        if par:
            yield Claim(
                where, f"{NAMES[method]} is on par with Gaussian aggregation {at}.", found,
                abs(gain) <= PAR and abs(known) <= PAR, "Closer than at low ρ, and still well below.",
            )  # fmt: skip
        else:
            yield Claim(
                where, f"{NAMES[method]} scores significantly lower than Gaussian aggregation {at}.", found,
                bool(gain < -SIGNIFICANT * error and gain < -PAR),
            )  # fmt: skip


def _real(c: Curves) -> Iterator[Claim]:
    events, n = c.data.values.shape
    yield Claim(
        f"5.1, {c.data.title}", "The data are complete.",
        f"{events} instances of {n} predictors, {c.data.unmeasured} of them with a value that was not measured",
        c.data.unmeasured == 0, "" if c.data.unmeasured == 0 else "What was not measured is written as 0, and used so.",
    )  # fmt: skip
    where = f"5.5, 6, figure 4, {c.data.title}"
    ahead = []
    for method in METHODS[1:]:
        gain, error = c.gain(method, "gaussian")
        ahead += [f"{NAMES[method]} by {gain[i]:.3f} at N = {i + 1}" for i in np.flatnonzero(_clear(gain, error))]
    yield Claim(
        where, "The Gaussian model is not dominant.",
        f"significantly beaten {len(ahead)} times{f': {_some(ahead)}' if ahead else ''}", bool(ahead),
        "" if ahead else "None of the other four is significantly better at any N.",
    )  # fmt: skip
    gain, error = c.gain("gaussian", "independent")
    yield Claim(
        where, "Gaussian aggregation is more accurate than IndOps, that is when dependence is high.",
        f"{gain[-1]:+.3f} ± {error[-1]:.3f} at N = {n}; mean correlation of two predictors within an outcome "
        f"{dependence(c.data):.2f}, up to sign",
        bool(_clear(gain, error)[-1]),
    )  # fmt: skip
    gain, error = c.gain("gaussian", "linear")
    yield Claim(
        where, "Gaussian aggregation can be much more accurate than LinOps.",
        f"{gain[-1]:+.3f} ± {error[-1]:.3f} at N = {n}", bool(gain[-1] > max(PAR, SIGNIFICANT * error[-1])),
    )  # fmt: skip
    yield _on_par([c], where, "Results are similar to those of logistic regression.")


def dependence(data: DataSet) -> float:
    """Mean absolute correlation of two experts within an outcome.

    Examples
    --------
    >>> from opinionpool.paper.datasets import simulated
    >>> round(dependence(simulated(0.5, 2.0)), 1)
    0.5
    """
    within = data.values - np.where(
        data.outcomes[:, None], data.values[data.outcomes].mean(axis=0), data.values[~data.outcomes].mean(axis=0)
    )
    r = np.corrcoef(within.T)
    return float(np.abs(r[np.triu_indices_from(r, 1)]).mean())


def separation_rows(curves: Sequence[Curves]) -> list[tuple[str, int, float, float, float, float]]:
    """Rows on separated halves: data, N, share, and the scores of the rule, its limit and the Gaussian pool.

    The rule is that of `opinionpool.estimation.logistic.logistic_fit`: the most probable coefficients under normal
    beliefs. The limit is that of separating weights multiplied without end, every answer at a floor.
    """
    rows = []
    for c in curves:
        for place in np.flatnonzero(c.separated.any(axis=1)):
            difference = c.separated[place]
            scores = [float(values[difference].mean()) for values in (
                c.of("logistic")[place], c.limit[place], c.of("gaussian")[place]
            )]  # fmt: skip
            rows.append(
                (c.data.title, int(c.numbers[place]), float(difference.mean()), scores[0], scores[1], scores[2])
            )
    return rows


def _clear(gain: Array, error: Array) -> Mask:
    """Mask of gains that are significant and exceed rounding errors."""
    return np.asarray(gain > np.maximum(SIGNIFICANT * error, ROUNDING))


def _extreme(c: Curves, first: str, second: str) -> tuple[float, int]:
    """The largest mean difference between two methods, and its N."""
    gain, _ = c.gain(first, second)
    place = int(np.abs(gain).argmax())
    return float(gain[place]), int(c.numbers[place])


def _place(c: Curves, n: int) -> str:
    return f"N = {n}" if c.data.correlation is None else f"ρ = {c.data.correlation:g}, N = {n}"


def _some(items: list[str]) -> str:
    """The first three items as text, with the number of the others."""
    more = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return "; ".join(items[:3]) + more
