"""What the answers rest on beside outcomes: what is assessed or assumed, and how far an answer depends on it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import expected_auc
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.prior import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.report.blocks import Block, Section, Table, note
from opinionpool.report.charts import range_bar
from opinionpool.report.findings import Findings
from opinionpool.report.html import name
from opinionpool.report.listing import Column, printable
from opinionpool.report.numbers import as_is, brief, percent
from opinionpool.scoring.comparison import DEFAULT
from opinionpool.text import counted

LABELS = {"auc": "AUC", "accuracy": "AUC", "correlation": "correlation of errors"}


def basis_section(f: Findings) -> Section | None:
    """What is believed of whom, and how far the first answer depends on it; None where outcomes decide."""
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
    """Who was assessed how: the expert, the feature, its value and how many events that counts for."""
    worths = ["certain" if math.isinf(b.worth) else counted(round(b.worth), "event") for *_, b in rows]
    return [
        Column("who", [who for who, *_ in rows], "who", page=str),
        Column("what", [LABELS.get(what, what.replace("_", " ")) for _, what, _ in rows], "what"),
        Column("value", [belief.value for *_, belief in rows], "value", "{:g}".format),
        Column("worth", worths, "worth", as_is),
    ]


def assumed_words(beliefs: Beliefs, experts: Sequence[str]) -> str:
    """What is assumed of any panel, where nobody assessed it."""
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


def effect_name(effect: Effect) -> str:
    """What is varied, and of whom."""
    what = LABELS.get(effect.what, effect.what)
    what += f" of {effect.expert}" if effect.expert else ""
    return what if effect.assessed else f"{what} (assumed)"


def effect_ends(effect: Effect) -> tuple[str, str]:
    """Both ends of the range over which it is varied."""
    low, high = (brief(x) if effect.what in {"forecast", "prior"} else f"{x:.2f}" for x in effect.values)
    return low, high


def effect_columns(effects: Sequence[Effect], p: float) -> list[Column]:
    """What an answer becomes at both ends of the range of each belief, the largest effect first."""
    return [
        Column("belief", [effect_name(each) for each in effects], "belief"),
        Column("range", [" to ".join(effect_ends(each)) for each in effects], "range", as_is),
        Column("picture", [range_bar(p, *each.answers) for each in effects], "0% to 100%"),
        Column("answer", [" to ".join(map(brief, each.answers)) for each in effects], "answer", as_is),
    ]


def effect_facts(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """The same for JSON."""
    return [
        {
            "what": effect.what, "expert": effect.expert or None, "assessed": effect.assessed,
            "values": list(effect.values), "answers": list(effect.answers),
        }
        for effect in effects
    ]  # fmt: skip


def effect_lines(effects: Sequence[Effect], event: str) -> list[str]:
    """The same for people."""
    lines = [f"{event}: how the answer depends on {counted(len(effects), 'belief')}"] if effects else []
    for effect in effects:
        at_low, at_high = map(percent, effect.answers)
        lines.append(f"  {effect_name(effect)} {' to '.join(effect_ends(effect))}: {at_low} to {at_high}")
    return [*map(printable, lines)]
