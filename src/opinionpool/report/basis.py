"""What the answers rest on beside outcomes: what is assessed or assumed, and how far an answer depends on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from opinionpool.analysis.near_duplicates import REDUNDANT, clusters
from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import expected_auc
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import (
    ACCURACY,
    CALIBRATION,
    CORRELATION,
)
from opinionpool.report.blocks import Block, Definitions, Section, Table, missing, note
from opinionpool.report.charts import range_bar, two
from opinionpool.report.effects import LABELS, effect_ends, effect_name
from opinionpool.report.findings import Findings, Missing
from opinionpool.report.html import name
from opinionpool.report.listing import Column
from opinionpool.report.numbers import as_is, brief, decimal, whole
from opinionpool.report.panel import NAMED, expected_words, gain_words, panel_worth
from opinionpool.scoring.comparison import DEFAULT
from opinionpool.text import counted, listed


def basis_section(f: Findings) -> Section | None:
    """Section on beliefs and the first answer's sensitivity to them; None for other pools or where outcomes decide."""
    beliefs = f.beliefs or Beliefs()
    if f.pool != DEFAULT or (f.measured and beliefs.any_panel):
        return None
    lead = "No event is resolved, so the answers rest on what is believed of the experts."
    if f.measured:
        lead = "Beliefs count beside the outcomes, each like so many resolved events."
    parts: list[Block] = [lead]
    rows = [("all experts", *each) for each in beliefs.given.items()]
    rows += [(name(expert), *each) for expert, own in beliefs.experts.items() for each in own.given.items()]
    if rows:
        caption = "Assessed. Worth: the number of resolved events that a belief counts for"
        parts.append(Table(belief_columns(rows), caption, "stack"))
    parts.append(assumed_words(beliefs, f.forecasts.experts))
    if f.effects:
        p = float(f.pooled.probabilities[f.open_rows[0]])
        caption = f"{f.question(f.open_rows[0])}: the answer is {brief(p)}; how it would change if one belief were off"
        parts.append(Table(effect_columns(f.effects, p), caption, "stack"))
        parts.append(
            note(
                "Each range holds the true value with 90% probability if the belief is worth what is assessed; where "
                "nobody assessed it, the range is that of panels in general. The largest effect stands first."
            )
        )
    return Section("basis", "What the answers rest on", parts)


def belief_columns(rows: Sequence[tuple[str, str, Belief]]) -> list[Column]:
    """Columns of beliefs: the expert, the feature, its value, and the number of events that the belief counts for."""
    worths = [belief_worth(belief) for *_, belief in rows]
    return [
        Column("who", [who for who, *_ in rows], "who", page=str),
        Column("what", [LABELS.get(what, what.replace("_", " ")) for _, what, _ in rows], "what"),
        Column("value", [belief.value for *_, belief in rows], "value", "{:g}".format),
        Column("worth", worths, "worth", as_is),
    ]


def belief_worth(belief: Belief) -> str:
    """The number of events that a belief counts for, as text; "certain" if infinite."""
    return "certain" if math.isinf(belief.worth) else counted(round(belief.worth), "event")


def assumed_words(beliefs: Beliefs, experts: Sequence[str]) -> str:
    """Sentence with the default assumptions about features that nobody assessed."""
    own = [beliefs.experts.get(name, ExpertBeliefs()) for name in experts]
    assumed = []
    if "bias" not in beliefs.given and any(each.get("bias") is None for each in own):
        assumed.append("no bias")
    if "calibration" not in beliefs.given and any(each.get("calibration") is None for each in own):
        assumed.append(f"about calibrated ({CALIBRATION:g})")
    if beliefs.absolute() is None and any(each.absolute() is None for each in own):
        assumed.append(f"equally accurate (an AUC of {float(expected_auc(ACCURACY)):.2f})")
    if len(experts) > 1 and beliefs.get("correlation") is None:
        assumed.append(f"errors correlated by {CORRELATION:g}")
    if not assumed:
        return "Nothing else is assumed of all experts."
    which = ", ".join(assumed)
    return f"Assumed of experts where nobody assessed it: {which}. A belief about one expert takes precedence."


def effect_columns(effects: Sequence[Effect], p: float) -> list[Column]:
    """Columns of a sensitivity table: each belief, its range and the answers at both ends, largest effect first."""
    return [
        Column("belief", [effect_name(each) for each in effects], "belief"),
        Column("range", [" to ".join(effect_ends(each)) for each in effects], "range", as_is),
        Column("picture", [range_bar(p, *each.answers) for each in effects], "0% to 100%"),
        Column("answer", [" to ".join(map(brief, each.answers)) for each in effects], "answer", as_is),
    ]


def worth_section(f: Findings) -> Section:
    """Section on the panel's value, measured or expected, and on the gain from one more expert."""
    entries = [*_measured(f), *_by_model(f)]
    if not isinstance(f.errors, Missing):
        entries.append(("Near-duplicates", _redundant_words(f.errors)))
    parts: list[Block] = [Definitions(entries)]
    return Section(
        "worth",
        "Value of the panel",
        parts if entries else [missing("one expert is worth what the table of experts says of it")],
    )


def _by_model(f: Findings) -> Iterator[tuple[str, str]]:
    """Terms and texts of values expected under the model: joint score, effective number of experts, one more expert."""
    try:
        found = panel_worth(f.learned) if len(f.learned.panel) > 1 else None
    except OpinionPoolError:
        return
    if found is None:
        return
    value = found.value
    yield "If every expert gives a forecast", f"The method expects of new events: {expected_words(found)}."
    yield (
        "Effective number of experts",
        f"{value.effective:.1f} of {whole(len(value.experts))}: as their errors correlate, together they are worth "
        f"about as much as {value.effective:.1f} experts who are as good as these on average and whose errors are "
        "unrelated.",
    )
    words = gain_words(found)
    if words:
        yield "One more expert", f"{words[:1].upper()}{words[1:]}."


def _measured(f: Findings) -> list[tuple[str, str]]:
    """Entry on the share of correct answers and the AUC of the pool out of sample; empty if not measured."""
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
    """Names of the experts in each cluster of near-duplicates, by the correlation of their errors."""
    if len(errors.experts) < 2:
        return []
    return [[errors.experts[i] for i in group] for group in clusters(errors.correlation).groups(REDUNDANT)]


def _redundant_words(errors: SharedErrors) -> str:
    groups: Sequence[Sequence[str]] = redundant(errors)
    among = f" among the {len(errors.experts)} looked at" if errors.left_out else ""
    if not groups:
        return f"None{among}: no two experts’ errors correlate by {two(REDUNDANT)} or more."
    phrase = "; ".join(listed(group, NAMED) for group in groups)
    return (
        f"Errors correlate by {two(REDUNDANT)} or more{among} in these groups; one of each says nearly all: {phrase}."
    )
