"""What a learned panel is worth as a whole, in words and for JSON: the short form of `opinionpool.value`."""

from __future__ import annotations

from dataclasses import dataclass

from opinionpool.choosing import gain_from_one_more
from opinionpool.errors import ArgumentError
from opinionpool.learn import LearnedPanel
from opinionpool.panel import Panel
from opinionpool.redundancy import REDUNDANT, redundant_groups
from opinionpool.render import decimal, printable
from opinionpool.rules import Learned
from opinionpool.value import PanelValue, known_panel, learned_value
from opinionpool.wording import listed

# Of more experts, groups that repeat each other are not looked for.
MOST = 2000


@dataclass(frozen=True, eq=False)
class Together:
    """A panel as a whole.

    Attributes
    ----------
    value : PanelValue
    gain : float or None
        In expected score, from one more expert like these; None where that is not known.
    redundant : list of tuple of str
        Groups whose members say nearly the same.
    """

    value: PanelValue
    gain: float | None
    redundant: list[tuple[str, ...]]


def together(state: Learned) -> Together | None:
    """What a fit says of the panel as a whole; None if it learned nothing of the kind."""
    if not isinstance(state, LearnedPanel) or state.structure == "assumed" or len(state.panel) < 2:
        return None
    value = learned_value(state)
    if not isinstance(state.panel, Panel):
        return Together(value, None, [])
    known, gain = known_panel(state), None
    try:
        gain = None if value.prior is None else gain_from_one_more(known, value.prior).score
    except ArgumentError:
        # One of them alone says anything.
        gain = None
    return Together(value, gain, redundant_groups(known) if len(known) <= MOST else [])


def together_facts(found: Together | None) -> dict[str, object]:
    """The same for JSON."""
    if found is None:
        return {"together": None}
    value = found.value
    return {
        "together": {
            "auc": value.joint_auc,
            "expected_score": value.joint_score,
            "expected_brier": value.joint_brier,
            "hit_rate": value.joint_hit_rate,
            "effective_number": value.effective,
            "gain_from_one_more": found.gain,
            "redundant": [list(group) for group in found.redundant],
        }
    }


def together_lines(found: Together | None) -> list[str]:
    """The same for people."""
    if found is None:
        return []
    value = found.value
    if value.joint_score is None:
        told = f"AUC between two classes {decimal(value.joint_auc)}"
    else:
        told = f"AUC {decimal(value.joint_auc)}, expected score {decimal(value.joint_score)}"
    number = f"{value.effective:.1f} independent experts of their average accuracy"
    told = f"all {len(value.experts):,} together, if the model holds: {told}, like {number}"
    if found.gain is not None:
        told += f"; one more would add {found.gain:.3f}"
    lines = [told]
    lines += [
        printable(f"{listed(group, 4)} say nearly the same (correlated at {REDUNDANT:g} or more)")
        for group in found.redundant[:3]
    ]
    if len(found.redundant) > 3:
        lines.append(f"and {len(found.redundant) - 3} more groups say nearly the same")
    return lines
