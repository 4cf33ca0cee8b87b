"""What a panel is worth, if its model holds: as a view, as facts for JSON, in words, and as a section of the report.

Two numbers differ, and have words of their own: *with the learned weights* is what the pool is expected to do, *with
ideal weights* what the best weights for the same experts would, which nobody knows exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

from opinionpool.analysis.near_duplicates import REDUNDANT, redundant_groups
from opinionpool.analysis.selection import Gain, gain_from_one_more, subset_path
from opinionpool.analysis.value import PanelValue, known_panel, learned_value, panel_value
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.model.panel import Panel
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.listing import Column, printable
from opinionpool.report.numbers import decimal, percent
from opinionpool.text import listed

# Of more experts, the panel without each of them is not valued; nor are groups that repeat each other looked for.
MOST_VALUED, MOST_COMPARED = 300, 2000
# Experts whose order of asking is named; names in a list before it is cut; groups that are named.
ASKED, NAMED, GROUPS = 3, 6, 3


@dataclass(frozen=True, eq=False)
class PanelWorth:
    """Value of a panel under its model: expected scores, gains from one more expert, and redundant groups."""

    value: PanelValue  # each expert, and all together with the learned weights
    ideal: PanelValue | None  # the same with ideal weights; None where weights differ between classes
    # gains in expected score from one more expert like these, and from one whose errors are unrelated to theirs
    more: tuple[Gain | None, Gain | None]
    redundant: list[tuple[str, ...]]  # groups whose members say nearly the same


def panel_worth(state: Fitted, prior: float | None = None) -> PanelWorth | None:
    """Value of the fitted panel under its model; None if the pool has no panel."""
    if not isinstance(state, FittedPanel):
        return None
    value = learned_value(state, prior)
    if not isinstance(state.panel, Panel):
        return PanelWorth(value, None, (None, None), [])
    known = known_panel(state)
    more = (None, None) if value.prior is None else (_gain(known, value.prior, None), _gain(known, value.prior, 0.0))
    alike = redundant_groups(known) if 1 < len(known) <= MOST_COMPARED else []
    return PanelWorth(value, panel_value(known, 0.5 if value.prior is None else value.prior), more, alike)


def _gain(panel: Panel, prior: float, correlation: float | None) -> Gain | None:
    try:
        return gain_from_one_more(panel, prior, correlation)
    except OpinionPoolError:
        # Only one of them is informative, or nobody can be so dependent on them.
        return None


def expected_words(found: PanelWorth) -> str:
    """Expected AUC and score of the pool, as text."""
    value = found.value
    if value.joint_score is None:
        return f"AUC between two classes {decimal(value.joint_auc)}"
    words = f"AUC {decimal(value.joint_auc)}, expected score {decimal(value.joint_score)} with the learned weights"
    if found.ideal is not None and decimal(found.ideal.joint_score or 0.0) != decimal(value.joint_score):
        words += f" ({decimal(found.ideal.joint_score or 0.0)} with ideal ones, which nobody knows exactly)"
    return words


def gain_words(found: PanelWorth) -> str:
    """Expected gains in score from one more expert, as text."""
    kinds = ("one more expert like these", "one as accurate whose errors are unrelated to theirs")
    gains = [
        f"{kind} would raise the expected score by {f'{gain.score:.3f}' if gain.score >= 5e-4 else 'next to nothing'}"
        for gain, kind in zip(found.more, kinds, strict=True)
        if gain is not None and gain.score is not None
    ]
    return ", ".join(gains)


def together_facts(found: PanelWorth | None) -> dict[str, object]:
    """The panel as a whole for JSON."""
    if found is None:
        return {"together": None}
    value, ideal, like = found.value, found.ideal, found.more[0]
    return {
        "together": {
            "auc": value.joint_auc,
            "expected_score": value.joint_score,
            "expected_brier": value.joint_brier,
            "hit_rate": value.joint_hit_rate,
            "ideal_expected_score": None if ideal is None else ideal.joint_score,
            "effective_number": value.effective,
            "gain_from_one_more": None if like is None else like.score,
            "redundant": [list(group) for group in found.redundant],
        }
    }


def together_lines(found: PanelWorth | None) -> list[str]:
    """The panel as a whole for people."""
    if found is None:
        return []
    n = len(found.value.experts)
    who = "the expert" if n == 1 else f"all {n:,} together"
    lines = [f"{who}, if the model holds: {expected_words(found)}; 0 = uninformed, 1 = perfect"]
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
    """Value of the fitted panel, None where it was only assumed, has fewer than two experts, or does not exist."""
    if not isinstance(state, FittedPanel) or state.structure == "assumed" or len(state.panel) < 2:
        return None
    return panel_worth(state)


@dataclass(frozen=True, eq=False)
class ExpertWorth:
    """Contribution of each expert to the expected score of a panel of two classes, with ideal weights."""

    panel: PanelWorth
    adds: tuple[float | None, ...]  # by how much the expected score would be lower without each
    # whom to ask first, and which share of the panel's accuracy those asked so far have
    order: tuple[tuple[str, float], ...]


def expert_worth(state: FittedPanel, prior: float | None = None) -> ExpertWorth:
    """Contribution of each expert of a fitted or believed panel to its expected score.

    Raises
    ------
    ArgumentError
        If there are more than two classes.
    """
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


def worth_columns(found: ExpertWorth) -> list[Column]:
    """The experts, who adds most to the panel first."""
    value = found.panel.value
    assert value.score is not None
    order = sorted(range(len(found.adds)), key=lambda i: (-(found.adds[i] or 0.0), i))
    columns = [
        Column("expert", value.experts, "expert"),
        Column("auc", value.auc.tolist(), "implied AUC", decimal),
        Column("expected_score", value.score.tolist(), "expected score", decimal),
        Column("adds", found.adds, "adds to the panel", decimal),
    ]
    return [column.take(order) for column in columns]


def worth_facts(found: ExpertWorth) -> dict[str, object]:
    """Facts on the panel as a whole for JSON, beside the rows of `worth_columns`."""
    value, (alike, independent) = found.panel.value, found.panel.more
    return {
        "prior": value.prior,
        "auc": value.joint_auc,
        "expected_score": value.joint_score,
        "ideal_expected_score": None if found.panel.ideal is None else found.panel.ideal.joint_score,
        "effective_number": value.effective,
        "gain_from_one_like_these": None if alike is None else alike.score,
        "gain_from_one_independent": None if independent is None else independent.score,
        "ask_first": [{"expert": name, "share": share} for name, share in found.order],
    }


def worth_lines(found: ExpertWorth) -> list[str]:
    """Lines on the panel as a whole for people, beside the table of `worth_columns`."""
    lines = [f"at a prior of {percent(float(found.panel.value.prior or 0.5))}", *together_lines(found.panel)]
    if len(found.adds) > 1:
        names = listed([name for name, _ in found.order], ASKED)
        lines.append(printable(f"ask first: {names}, who have {percent(found.order[-1][1])} of the panel's accuracy"))
    return lines
