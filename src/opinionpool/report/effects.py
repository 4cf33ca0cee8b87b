"""How far an answer depends on what is believed: as facts for JSON, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.analysis.sensitivity import Effect
from opinionpool.report.listing import printable
from opinionpool.report.numbers import brief, percent
from opinionpool.text import counted

LABELS = {"auc": "AUC", "accuracy": "AUC", "correlation": "correlation of errors"}


def effect_name(effect: Effect) -> str:
    """Name of the belief that is varied, and of its expert, as text."""
    what = LABELS.get(effect.what, effect.what)
    what += f" of {effect.expert}" if effect.expert else ""
    return what if effect.assessed else f"{what} (assumed)"


def effect_ends(effect: Effect) -> tuple[str, str]:
    """Both ends of the range over which it is varied."""
    low, high = (brief(x) if effect.what in {"forecast", "prior"} else f"{x:.2f}" for x in effect.values)
    return low, high


def effect_facts(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """Sensitivities of an answer to beliefs, as records for JSON."""
    return [
        {
            "what": effect.what, "expert": effect.expert or None, "assessed": effect.assessed,
            "values": list(effect.values), "answers": list(effect.answers),
        }
        for effect in effects
    ]  # fmt: skip


def effect_lines(effects: Sequence[Effect], event: str) -> list[str]:
    """Sensitivities of an answer to beliefs, as lines of text."""
    lines = [f"{event}: how the answer depends on {counted(len(effects), 'belief')}"] if effects else []
    for effect in effects:
        at_low, at_high = map(percent, effect.answers)
        lines.append(f"  {effect_name(effect)} {' to '.join(effect_ends(effect))}: {at_low} to {at_high}")
    return [*map(printable, lines)]
