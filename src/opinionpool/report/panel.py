"""Value of a panel under its model, and the beliefs on which its answers rest beside outcomes.

Two numbers differ, and have words of their own: *with the learned weights* is what the pool is expected to do, *with
ideal weights* what the best weights for the same experts would, which nobody knows exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.selection import (
    REDUNDANT,
    Dendrogram,
    Gain,
    gain_from_one_more,
    redundant_groups,
    subset_path,
)
from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import PanelValue, expected_auc, known_panel, learned_value, panel_value
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.learning.fitted import FittedPanel
from opinionpool.model.panel import Panel
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.blocks import Block, Section, Table, definitions, missing, name, note
from opinionpool.report.charts import LABELS, effect_ends, effect_name, range_bar, two
from opinionpool.report.findings import Missing, ReportData
from opinionpool.report.listing import Column, as_is, brief, decimal, percent, printable, whole
from opinionpool.scoring.compare import DEFAULT
from opinionpool.scoring.leaderboard import leaderboard
from opinionpool.text import counted, listed

# Of more experts, the panel without each of them is not valued; nor are groups that repeat each other looked for.
MOST_VALUED, MOST_COMPARED = 300, 2000
# Largest numbers of experts named in the order to ask them, of names in a list, and of groups named.
ASKED, NAMED, GROUPS = 3, 6, 3


@dataclass(frozen=True, eq=False)
class PanelWorth:
    """Value of a panel if its model holds: expected scores, gain from one more expert, and near-duplicate experts."""

    value: PanelValue  # of each expert, and of the whole panel under the learned weights
    ideal: PanelValue | None  # the value under ideal weights; None if weights differ between classes
    # gains in expected score from one more expert like these, and from one whose errors are unrelated to theirs
    more: tuple[Gain | None, Gain | None]
    redundant: list[tuple[str, ...]]  # groups of experts whose forecasts are near-duplicates
    resolved: bool  # whether it was learned from outcomes, on which its score can be measured

    @property
    def facts(self) -> dict[str, object]:
        """Expected scores of the whole panel and its effective number of experts, for JSON."""
        value, ideal = self.value, self.ideal
        best = None if ideal is None else ideal.joint_score
        own = {"auc": value.joint_auc, "expected_score": value.joint_score, "effective_number": value.effective}
        return {**own, "ideal_expected_score": best}


def panel_worth(state: Fitted, prior: float | None = None) -> PanelWorth | None:
    """Return the value of a fitted panel if its model holds; None if the pool has no panel of experts."""
    if not isinstance(state, FittedPanel):
        return None
    value = learned_value(state, prior)
    if not isinstance(state.panel, Panel):
        return PanelWorth(value, None, (None, None), [], bool(state.counts.any()))
    known = known_panel(state)
    more = (None, None) if value.prior is None else (_gain(known, value.prior, None), _gain(known, value.prior, 0.0))
    alike = redundant_groups(known) if 1 < len(known) <= MOST_COMPARED else []
    return PanelWorth(
        value, panel_value(known, 0.5 if value.prior is None else value.prior), more, alike, bool(state.counts.any())
    )


def _gain(panel: Panel, prior: float, correlation: float | None) -> Gain | None:
    try:
        return gain_from_one_more(panel, prior, correlation)
    except OpinionPoolError:
        # Only one of them is informative, or nobody can be so dependent on them.
        return None


def expected_words(found: PanelWorth) -> str:
    """Return, as text, the area under the ROC curve and the score that are expected of the panel."""
    value = found.value
    if value.joint_score is None:
        return f"implied AUC between two classes {decimal(value.joint_auc)}"
    words = (
        f"implied AUC {decimal(value.joint_auc)}, expected score {decimal(value.joint_score)} with the learned weights"
    )
    if found.ideal is not None and decimal(found.ideal.joint_score or 0.0) != decimal(value.joint_score):
        words += f" ({decimal(found.ideal.joint_score or 0.0)} with ideal ones, which nobody knows exactly)"
    return words


def gain_words(found: PanelWorth) -> str:
    """Return, as text, how much one more expert is expected to raise the score."""
    kinds = ("one more expert like these", "one as accurate whose errors are unrelated to theirs")
    gains = [
        f"{kind} would raise the expected score by {f'{gain.score:.3f}' if gain.score >= 5e-4 else 'next to nothing'}"
        for gain, kind in zip(found.more, kinds, strict=True)
        if gain is not None and gain.score is not None
    ]
    return ", ".join(gains)


def together_facts(found: PanelWorth | None) -> dict[str, object]:
    """Return a panel's expected scores, the gain from one more expert and near-duplicates, for JSON."""
    if found is None:
        return {"together": None}
    value, like = found.value, found.more[0]
    more = {"expected_brier": value.joint_brier, "hit_rate": value.joint_hit_rate}
    gain = {"gain_from_one_more": None if like is None else like.score}
    return {"together": found.facts | more | gain | {"redundant": [list(group) for group in found.redundant]}}


def together_lines(found: PanelWorth | None) -> list[str]:
    """Return lines for people on expected scores of the panel, one more expert, and near-duplicates."""
    if found is None:
        return []
    n = len(found.value.experts)
    who = "the expert" if n == 1 else f"all {n:,} together"
    lines = [f"{who}, if the model holds: {expected_words(found)}; 0 = uninformed, 1 = perfect"]
    lines += ["opinionpool compare measures the score on the resolved events"] if found.resolved else []
    if n > 1:
        lines.append(
            f"with ideal weights worth {found.value.effective:.1f} independent experts of their average accuracy"
        )
    lines += [gain_words(found)] if gain_words(found) else []
    lines += [
        printable(f"{listed(group, NAMED)} say nearly the same (correlated at {REDUNDANT:g} or more)")
        for group in found.redundant[:GROUPS]
    ]
    if len(found.redundant) > GROUPS:
        lines.append(f"and {len(found.redundant) - GROUPS} more groups say nearly the same")
    return lines


def together(state: Fitted) -> PanelWorth | None:
    """Return the value of a fitted panel; None if its features are only assumed, or it has fewer than two experts."""
    if not isinstance(state, FittedPanel) or state.structure == "assumed" or len(state.panel) < 2:
        return None
    return panel_worth(state)


@dataclass(frozen=True, eq=False)
class ExpertWorth:
    """What each expert of a two-class panel adds to the panel's expected score, under the best possible weights."""

    panel: PanelWorth
    adds: tuple[float | None, ...]  # decrease of the expected score without each expert; None if not computed
    # experts in the order to ask them, with the share of the panel's accuracy that those asked so far have
    order: tuple[tuple[str, float], ...]


def expert_worth(state: FittedPanel, prior: float | None = None) -> ExpertWorth:
    """Return how much the expected score of a two-class panel falls without each expert, and whom to ask first."""
    if len(state.panel.classes) > 2 or not isinstance(state.panel, Panel):
        raise ArgumentError("what a panel is worth is known for two classes; name them with --positive")
    shared = 0.5 if state.prior is None else float(state.prior[1])
    found = panel_worth(state, shared if prior is None else prior)
    assert found is not None
    assert found.ideal is not None
    assert found.ideal.prior is not None
    panel, whole_score = known_panel(state), found.ideal.joint_score or 0.0
    n, adds = len(panel), list[float | None]([None] * len(panel))
    if 1 < n <= MOST_VALUED:
        rest = ([j for j in range(n) if j != i] for i in range(n))
        adds = [whole_score - float(panel_value(panel.subset(r), found.ideal.prior).joint_score or 0.0) for r in rest]
    order = tuple((each.experts[-1], each.share) for each in subset_path(panel, min(n, ASKED)))
    return ExpertWorth(found, tuple(adds), order)


def worth_columns(found: ExpertWorth, forecasts: Forecasts) -> list[Column]:
    """Return columns with a row for each expert, by decreasing amount that the expert adds to the expected score."""
    value = found.panel.value
    assert value.score is not None
    order = sorted(range(len(found.adds)), key=lambda i: (-(found.adds[i] or 0.0), i))
    columns = [
        Column("expert", value.experts, "expert"),
        Column("auc", value.auc.tolist(), "implied AUC", decimal),
        Column("expected_score", value.score.tolist(), "expected score", decimal),
        Column("adds", found.adds, "adds to the panel", decimal),
    ]
    measured = {each.expert: each.score for each in leaderboard(forecasts)}
    if measured:
        own = list(map(measured.get, value.experts))
        columns.insert(3, Column("score", own, "measured score", decimal))
    return [column.take(order) for column in columns]


def worth_facts(found: ExpertWorth) -> dict[str, object]:
    """Return facts for JSON on the value of the whole panel; the rows of `worth_columns` have those on each expert."""
    like, independent = (None if gain is None else gain.score for gain in found.panel.more)
    gains = {"gain_from_one_like_these": like, "gain_from_one_independent": independent}
    first = [{"expert": name, "share": share} for name, share in found.order]
    return {"prior": found.panel.value.prior} | found.panel.facts | gains | {"ask_first": first}


def worth_lines(found: ExpertWorth) -> list[str]:
    """Return lines for people on the value of the whole panel; the table of `worth_columns` is about each expert."""
    lines = [f"at a prior of {percent(float(found.panel.value.prior or 0.5))}", *together_lines(found.panel)]
    if len(found.adds) > 1:
        names = listed([name for name, _ in found.order], ASKED)
        lines.append(printable(f"ask first: {names}, who have {percent(found.order[-1][1])} of the panel's accuracy"))
    return lines


@cache
def terms() -> dict[str, tuple[str, str, str]]:
    """Name, short meaning and full explanation of each feature of experts, by the key of its control on the page."""
    table = Path(__file__).with_name("terms.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines() if line[:3] == "| `"]
    return {key: (name, text, detail) for key, name, text, detail in rows}


def basis_section(f: ReportData) -> Section | None:
    """Return the section on beliefs and how they move the first answer; None unless answers rest on beliefs."""
    beliefs = f.fit.beliefs or Beliefs()
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
    agreeing = any(each.code == "agreement" for each in f.state.notes)
    parts.append(assumed_words(beliefs, f.forecasts.experts, agreeing=agreeing))
    parts.append(definitions([terms()[key][:2] for key in ("auc", "calibration", "bias", "correlation")]))
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
    """Return columns of each belief's expert, feature, value and worth (number of events)."""
    worths = [belief_worth(belief) for *_, belief in rows]
    return [
        Column("who", [who for who, *_ in rows], "who", page=str),
        Column("what", [LABELS.get(what, what.replace("_", " ")) for _, what, _ in rows], "what"),
        Column("value", [belief.value for *_, belief in rows], "value", "{:g}".format),
        Column("worth", worths, "worth", as_is),
    ]


def belief_worth(belief: Belief) -> str:
    """Return, as text, how many resolved events a belief is worth; "certain" if infinitely many."""
    return "certain" if math.isinf(belief.worth) else counted(round(belief.worth), "event")


def assumed_words(beliefs: Beliefs, experts: Sequence[str], *, agreeing: bool) -> str:
    """Return the sentence on the values assumed for what nobody assessed; `agreeing`: agreement tells accuracies."""
    own = [beliefs.experts.get(name, ExpertBeliefs()) for name in experts]
    assumed = []
    if "bias" not in beliefs.given and any(each.get("bias") is None for each in own):
        assumed.append("no bias")
    if "calibration" not in beliefs.given and any(each.get("calibration") is None for each in own):
        assumed.append(f"about calibrated ({CALIBRATION:g})")
    if beliefs.absolute() is None and any(each.absolute() is None for each in own):
        accurate = "the more accurate the more they agree" if agreeing else "equally accurate"
        assumed.append(f"{accurate} (an AUC of {float(expected_auc(ACCURACY)):.2f}{' on average' * agreeing})")
    if len(experts) > 1 and beliefs.get("correlation") is None:
        assumed.append(f"errors correlated by {CORRELATION:g}")
    if not assumed:
        return "Nothing else is assumed of all experts."
    which = ", ".join(assumed)
    return f"Assumed of experts where nobody assessed it: {which}. A belief about one expert takes precedence."


def effect_columns(effects: Sequence[Effect], p: float) -> list[Column]:
    """Return columns with the beliefs varied, their ranges, and the answer at either end of each range."""
    return [
        Column("belief", [effect_name(each) for each in effects], "belief"),
        Column("range", [" to ".join(effect_ends(each)) for each in effects], "range", as_is),
        Column("picture", [range_bar(p, *each.answers) for each in effects], "0% to 100%"),
        Column("answer", [" to ".join(map(brief, each.answers)) for each in effects], "answer", as_is),
    ]


def effect_facts(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """Return a record for JSON for each varied belief: its range, and the answer at either end."""
    return [
        {
            "what": effect.what, "expert": effect.expert or None, "assessed": effect.assessed,
            "values": list(effect.values), "answers": list(effect.answers),
        }
        for effect in effects
    ]  # fmt: skip


def effect_lines(effects: Sequence[Effect], event: str) -> list[str]:
    """Return lines on how the answer about `event` moves when each belief is varied."""
    lines = [f"{event}: how the answer depends on {counted(len(effects), 'belief')}"] if effects else []
    for effect in effects:
        at_low, at_high = map(percent, effect.answers)
        lines.append(f"  {effect_name(effect)} {' to '.join(effect_ends(effect))}: {at_low} to {at_high}")
    return [*map(printable, lines)]


def worth_section(f: ReportData) -> Section:
    """Return the section on the value of the panel, measured and expected, and of one more expert."""
    entries = [*_measured(f), *_by_model(f)]
    if not isinstance(f.errors, Missing):
        entries.append(("Near-duplicates", _redundant_words(f.errors)))
    parts: list[Block] = [definitions(entries)]
    return Section(
        "worth",
        "Value of the panel",
        parts if entries else [missing("one expert is worth what the table of experts says of it")],
    )


def _by_model(f: ReportData) -> Iterator[tuple[str, str]]:
    """Yield pairs of title and text on what the model expects: scores, effective number of experts, gains."""
    try:
        found = panel_worth(f.learned) if len(f.learned.panel) > 1 else None
    except OpinionPoolError:
        return
    if found is None:
        return
    value = found.value
    score, marginal = _measured_score(f), None if isinstance(f.errors, Missing) else f.learned.marginal
    measured = "" if score is None else f" In the test above the {f.pool} pool scored {decimal(score)}."
    yield "If every expert gives a forecast", f"The method expects of new events: {expected_words(found)}.{measured}"
    alike = "" if marginal is None else f" ({two(marginal.correlation)} between equally good ones, see Shared errors)"
    yield (
        "Effective number of experts",
        f"{value.effective:.1f} of {whole(len(value.experts))}: as their errors correlate{alike}, together they are "
        f"worth about as much as {value.effective:.1f} experts who are as good as these on average and whose errors "
        "are unrelated.",
    )
    words = gain_words(found)
    if words:
        yield "One more expert", f"{words[:1].upper()}{words[1:]}."


def _measured_score(f: ReportData) -> float | None:
    """Return the pool's mean score on events that it had not learned from; None if there are too few to measure it."""
    found = None if isinstance(f.comparison, Missing) else f.score_of(f.comparison)
    return None if found is None or found.over_average.verdict == "too few events" else found.score


def _measured(f: ReportData) -> list[tuple[str, str]]:
    """Return title and text on how often the pool was on the right side of 50%; empty if it was not scored."""
    found = f.comparison
    if isinstance(found, Missing) or not f.binary or _measured_score(f) is None:
        return []
    forecast, outcomes = found.answers[f.pool], f.forecasts.outcomes
    scored = ~np.isnan(forecast) & f.forecasts.resolved
    right = (forecast[scored] > 0.5) == (outcomes[scored] == 1)
    phrase = f"Its answer was on the right side of 50% for {100 * right.mean():.1f}% of events, in the test above."
    return [("The pool", phrase)]


def redundant(errors: SharedErrors) -> list[list[str]]:
    """Return groups of experts, by name, whose errors correlate so much that one expert has nearly all information."""
    if len(errors.experts) < 2:
        return []
    return [[errors.experts[i] for i in group] for group in Dendrogram.of(errors.correlation).groups(REDUNDANT)]


def _redundant_words(errors: SharedErrors) -> str:
    groups: Sequence[Sequence[str]] = redundant(errors)
    among = f" among the {len(errors.experts)} looked at" if errors.left_out else ""
    if not groups:
        return f"None{among}: no two experts’ errors correlate by {two(REDUNDANT)} or more."
    phrase = "; ".join(listed(group, NAMED) for group in groups)
    return (
        f"Errors correlate by {two(REDUNDANT)} or more{among} in these groups; one of each says nearly all: {phrase}."
    )
