"""What a panel, each of its experts and one more are worth: by column, as facts for JSON, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opinionpool.analysis.selection import Gain, gain_from_one_more, subset_path
from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import PanelValue, known_panel, panel_value
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.model.panel import Panel
from opinionpool.report.listing import Column, decimal, percent, printable, whole
from opinionpool.text import counted, listed

# Of more experts, the panel without each of them is not valued; experts whose order of asking is named.
MOST, ASKED = 300, 3


@dataclass(frozen=True, eq=False)
class Worth:
    """What a panel is worth, if its model holds."""

    value: PanelValue
    without: tuple[float, ...] | None  # the panel's expected score without each expert; None for more than `MOST`
    # from one more expert like these, and from one as accurate who errs independently of them
    more: tuple[Gain | None, Gain | None]
    # whom to ask first, and which share of the panel's accuracy those asked so far have
    order: tuple[tuple[str, float], ...]


def worth_of(state: FittedPanel, prior: float | None = None) -> Worth:
    """What a fitted or believed panel of two classes is worth.

    Raises
    ------
    ArgumentError
        If there are more than two classes.
    """
    if len(state.panel.classes) > 2 or not isinstance(state.panel, Panel):
        raise ArgumentError("what a panel is worth is known for two classes; name them with --positive")
    panel = known_panel(state)
    shared = 0.5 if state.prior is None else float(state.prior[1])
    value = panel_value(panel, shared if prior is None else prior)
    assert value.prior is not None
    n = len(panel)
    without = None
    if 1 < n <= MOST:
        others = ([j for j in range(n) if j != i] for i in range(n))
        without = tuple(float(panel_value(panel.subset(rest), value.prior).joint_score or 0.0) for rest in others)
    order = tuple((found.experts[-1], found.share) for found in subset_path(panel, min(n, ASKED)))
    return Worth(value, without, (_gain(panel, value.prior, None), _gain(panel, value.prior, 0.0)), order)


def _gain(panel: Panel, prior: float, correlation: float | None) -> Gain | None:
    try:
        return gain_from_one_more(panel, prior, correlation)
    except OpinionPoolError:
        # Only one of them is informative, or nobody can be so dependent on them.
        return None


def worth_columns(found: Worth) -> list[Column]:
    """The experts, who adds most to the panel first."""
    value = found.value
    assert value.score is not None
    n = len(value.experts)
    adds = [None] * n if found.without is None else [(value.joint_score or 0.0) - s for s in found.without]
    order = sorted(range(n), key=lambda i: (-(adds[i] or 0.0), i))
    score, auc = value.score.tolist(), value.auc.tolist()
    return [
        Column("expert", [value.experts[i] for i in order], "expert"),
        Column("auc", [auc[i] for i in order], "AUC", decimal),
        Column("expected_score", [score[i] for i in order], "expected score", decimal),
        Column("adds", [adds[i] for i in order], "adds to the panel", decimal),
    ]


def worth_facts(found: Worth, effects: Sequence[Effect]) -> dict[str, object]:
    """The rest for JSON."""
    value, (alike, independent) = found.value, found.more
    return {
        "prior": value.prior,
        "auc": value.joint_auc,
        "expected_score": value.joint_score,
        "effective_number": value.effective,
        "gain_from_one_like_these": None if alike is None else alike.score,
        "gain_from_one_independent": None if independent is None else independent.score,
        "ask_first": [{"expert": name, "share": share} for name, share in found.order],
        "sensitivity": [
            {
                "what": effect.what, "expert": effect.expert or None, "assessed": effect.assessed,
                "values": list(effect.values), "answers": list(effect.answers),
            }
            for effect in effects
        ],
    }  # fmt: skip


def worth_lines(found: Worth, effects: Sequence[Effect], event: str | None) -> list[str]:
    """The rest for people."""
    value = found.value
    n = len(value.experts)
    who = "the expert" if n == 1 else f"all {whole(n)} together"
    lines = [
        f"{who}, if the model holds: AUC {decimal(value.joint_auc)}, expected score "
        f"{decimal(float(value.joint_score or 0.0))} (0 = uninformed, 1 = perfect) at a prior of "
        f"{percent(float(value.prior or 0.5))}"
    ]
    if n > 1:
        lines.append(f"as good as {value.effective:.1f} independent experts of their average accuracy")
    gains = [
        f"{gain.score:.3f} by one {kind}"
        for gain, kind in zip(found.more, ("like these", "as accurate who errs independently of them"), strict=True)
        if gain is not None and gain.score is not None
    ]
    if gains:
        lines.append(f"one more expert would raise the expected score by {' or '.join(gains)}")
    if n > 1:
        names = listed([name for name, _ in found.order], ASKED)
        lines.append(printable(f"ask first: {names}, who have {percent(found.order[-1][1])} of the panel's accuracy"))
    if effects and event is not None:
        lines.append(printable(f"{event}: how the answer depends on {counted(len(effects), 'belief')}"))
        lines += [printable(f"  {effect_words(effect)}") for effect in effects]
    return lines


def effect_words(effect: Effect) -> str:
    """One line of a sensitivity analysis."""
    what = "AUC" if effect.what == "accuracy" else effect.what
    what += f" of {effect.expert}" if effect.expert else ""
    what += "" if effect.assessed else " (assumed)"
    low, high = (percent(v) if effect.what == "prior" else f"{v:.2f}" for v in effect.values)
    return f"{what} {low} to {high}: {percent(effect.answers[0])} to {percent(effect.answers[1])}"
