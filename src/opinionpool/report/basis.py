"""What the answers rest on beside outcomes: beliefs, how much they matter, and what the panel is worth."""

from __future__ import annotations

import math

import numpy as np

from opinionpool.analysis.near_duplicates import REDUNDANT, clusters
from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.selection import gain_from_one_more
from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import PanelValue, expected_auc, known_panel, learned_value
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.prior import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.model.panel import Panel
from opinionpool.report.charts import range_bar, two
from opinionpool.report.findings import Findings, Missing
from opinionpool.report.html import Html, joined, markup, missing, name, section, table
from opinionpool.report.listing import decimal, whole
from opinionpool.report.waterfall import brief
from opinionpool.scoring.comparison import DEFAULT
from opinionpool.text import counted, listed

# Names in a list before it is cut.
NAMED = 6


def basis_section(f: Findings) -> Html | None:
    """What is believed of whom, and how far the first answer depends on it; None where outcomes decide."""
    beliefs = f.beliefs or Beliefs()
    if f.pool != DEFAULT or (f.measured and beliefs.any_panel):
        return None
    words = "No event is resolved, so the answers rest on what is believed of the experts."
    if f.measured:
        words = "Beliefs count beside the outcomes, each like so many resolved events."
    parts = [markup("<p>{}</p>", words)]
    rows = [["all experts", *_belief(what, belief)] for what, belief in beliefs.given.items()]
    for expert, own in beliefs.experts.items():
        rows += [[name(expert), *_belief(what, belief)] for what, belief in own.given.items()]
    if rows:
        header = ["who", "what", "value", "worth"]
        parts.append(
            table(
                header,
                rows,
                numbers=[False, False, True, True],
                caption="Assessed. Worth: the number of resolved events that a belief counts for",
                kind="stack",
            )
        )
    parts.append(markup("<p>{}</p>", _assumed(f, beliefs)))
    if f.effects:
        parts += _effects(f)
    return section("basis", "What the answers rest on", *parts)


def _belief(what: str, belief: Belief) -> list[str]:
    labels = {"auc": "AUC", "correlation": "correlation of errors"}
    worth = "certain" if math.isinf(belief.worth) else counted(round(belief.worth), "event")
    return [labels.get(what, what.replace("_", " ")), f"{belief.value:g}", worth]


def _assumed(f: Findings, beliefs: Beliefs) -> str:
    """What is assumed of any panel, where nobody assessed it."""
    own = [beliefs.experts.get(name, ExpertBeliefs()) for name in f.forecasts.experts]
    open_ = []
    if "bias" not in beliefs.given and any(each.get("bias") is None for each in own):
        open_.append("no bias")
    if "calibration" not in beliefs.given and any(each.get("calibration") is None for each in own):
        open_.append(f"about calibrated ({CALIBRATION:g})")
    if beliefs.absolute() is None and any(each.absolute() is None for each in own):
        open_.append(f"equally accurate (an AUC of {float(expected_auc(ACCURACY)):.2f})")
    if len(f.forecasts.experts) > 1 and beliefs.get("correlation") is None:
        open_.append(f"errors correlated by {CORRELATION:g}")
    if not open_:
        return "Nothing else is assumed of all experts."
    return (
        f"Assumed of experts where nobody assessed it: {', '.join(open_)}. A belief about one expert takes precedence."
    )


def _effects(f: Findings) -> list[Html]:
    """The first answer over the range of each belief."""
    t = f.open_rows[0]
    p = float(f.pooled.probabilities[t])
    rows = []
    for effect in f.effects:
        low, high = effect.answers
        span = f"{_end(effect, 0)} to {_end(effect, 1)}"
        rows.append([_what(effect), span, range_bar(p, low, high), f"{brief(low)} to {brief(high)}"])
    caption = f"{f.question(t)}: the answer is {brief(p)}; how it would change if one belief were off"
    note = (
        "Each range holds the true value with 90% probability if the belief is worth what is assessed; where nobody "
        "assessed it, the range is that of panels in general. The largest effect stands first."
    )
    header = ["belief", "range", "0% to 100%", "answer"]
    listing = table(header, rows, numbers=[False, True, False, True], caption=caption, kind="stack")
    return [listing, markup('<p class="note">{}</p>', note)]


def _what(effect: Effect) -> str:
    names = {"correlation": "Correlation of errors", "accuracy": "AUC"}
    what = names.get(effect.what, effect.what.capitalize())
    if effect.expert:
        what += f" of {effect.expert}"
    elif effect.what in {"accuracy", "calibration", "bias"}:
        what += " of all"
    return what if effect.assessed else f"{what} (assumed)"


def _end(effect: Effect, place: int) -> str:
    value = effect.values[place]
    return brief(value) if effect.what == "prior" else f"{value:.2f}"


def worth_section(f: Findings) -> Html:
    """What the panel is worth, measured or expected, and what one more expert would add."""
    title = "Value of the panel"
    entries = [*_difference(f), *_by_model(f)]
    if not isinstance(f.errors, Missing):
        entries.append(("Near-duplicates", _redundant_words(f.errors)))
    if not entries:
        return section("worth", title, missing("", "one expert is worth what the table of experts says of it"))
    phrase = joined(markup("<dt>{}</dt><dd>{}</dd>", *entry) for entry in entries)
    return section("worth", title, markup("<dl>{}</dl>", phrase))


def _by_model(f: Findings) -> list[tuple[str, str]]:
    """What follows from what was learned or assumed, if the model holds."""
    if len(f.learned.panel) < 2:
        return []
    try:
        value = learned_value(f.learned)
    except OpinionPoolError:
        return []
    expected = f"an AUC of {value.joint_auc:.2f}"
    if value.joint_score is None:
        expected += " between two classes"
    else:
        expected = f"a score of {value.joint_score:.2f} and {expected}"
    n = len(value.experts)
    number = (
        f"{value.effective:.1f} of {whole(n)}: because their errors correlate, together they are worth about as much "
        f"as {value.effective:.1f} experts who are as good as these on average and whose errors are unrelated."
    )
    entries = [
        ("If every expert gives a forecast", f"The method expects {expected} on new events."),
        ("Effective number of experts", number),
    ]
    return [*entries, *_one_more(f, value)]


def _one_more(f: Findings, value: PanelValue) -> list[tuple[str, str]]:
    """What another expert would add, like these or independent of them."""
    if value.prior is None or not isinstance(f.learned.panel, Panel):
        return []
    words = []
    like = "One as good as these on average, whose errors correlate as theirs do,"
    for kind, correlation in ((like, None), ("one whose errors are unrelated to theirs", 0.0)):
        try:
            gain = gain_from_one_more(known_panel(f.learned), value.prior, correlation)
        except OpinionPoolError:
            # Only one of them is informative, or nobody can be so dependent on them.
            continue
        added = f"{gain.score:.3f}" if gain.score is not None and gain.score >= 5e-4 else "next to nothing"
        words.append(f"{kind} would raise the expected score by {added}")
    beside = f" (now {value.joint_score:.2f})" if value.joint_score is not None and words else ""
    return [("One more expert", f"{'; '.join(words)}{beside}.")] if words else []


def _difference(f: Findings) -> list[tuple[str, str]]:
    """How well the pool discriminates, out of sample."""
    if isinstance(f.comparison, Missing) or not f.binary:
        return []
    own = next(pool for pool in f.comparison.pools if pool.pool == f.pool)
    if not math.isfinite(own.auc) or own.over_average.verdict == "too few events":
        return []
    forecast, outcomes = f.comparison.answers[f.pool], f.forecasts.outcomes
    scored = ~np.isnan(forecast)
    right = (forecast[scored] > 0.5) == (outcomes[scored] == 1)
    phrase = (
        f"Its answer was on the right side of 50% for {100 * right.mean():.1f}% of events. Of two events, one that "
        f"happened and one that did not, it gave the former the higher probability in {100 * own.auc:.1f}% of pairs "
        f"(AUC {decimal(own.auc)}; the simple average {decimal(f.comparison.average.auc)}). Both are from the "
        "test described above."
    )
    return [("The pool", phrase)]


def redundant(errors: SharedErrors) -> list[list[str]]:
    """Names of experts in clusters that say nearly the same."""
    if len(errors.experts) < 2:
        return []
    return [[errors.experts[i] for i in group] for group in clusters(errors.correlation).groups(REDUNDANT)]


def _redundant_words(errors: SharedErrors) -> str:
    groups = redundant(errors)
    among = f" among the {len(errors.experts)} looked at" if errors.left_out else ""
    if not groups:
        return f"None{among}: no two experts’ errors correlate by {two(REDUNDANT)} or more."
    phrase = "; ".join(listed(group, NAMED) for group in groups)
    return (
        f"Errors correlate by {two(REDUNDANT)} or more{among} in these groups; one of each says nearly all: {phrase}."
    )
