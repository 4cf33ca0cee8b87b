"""How far judges agree who use one scale, in words and for JSON."""

from __future__ import annotations

from opinionpool.analysis.rater_agreement import rater_agreement
from opinionpool.forecasts import Forecasts
from opinionpool.report.numbers import finite, hundredths
from opinionpool.text import counted


def agreement_line(forecasts: Forecasts) -> str:
    """How far judges who use one scale agree; "" where they do not."""
    found = rater_agreement(forecasts)
    if found is None:
        return ""
    named = (("Krippendorff's alpha", found.alpha), ("kappa", found.kappa))
    parts = [f"{name} {hundredths(value)}" for name, value in named if finite(value) is not None]
    shown = f"{', '.join(parts)} (1 = always, 0 = as by chance)" if parts else "all levels are the same"
    return f"{shown}, on {counted(found.events, 'event')}"


def levels_by_outcome(forecasts: Forecasts) -> dict[str, tuple[str, str]]:
    """Typical levels of each expert on a scale: its mean forecast where the event happened and where not, by name."""
    found = {}
    if len(forecasts.classes) == 2:
        outcome = forecasts.outcomes[forecasts.event_index]
        for i, name in enumerate(forecasts.experts):
            own = [forecasts.probabilities[(forecasts.expert_index == i) & (outcome == y)] for y in (1, 0)]
            if name in forecasts.scales and all(map(len, own)):
                yes, no = (forecasts.scales[name].typical(float(p.mean())) for p in own)
                found[name] = yes, no
    return found


def agreement_facts(forecasts: Forecasts) -> dict[str, object]:
    """Agreement of the raters for JSON: alpha, kappa and the number of events; empty if not measurable."""
    found = rater_agreement(forecasts)
    if found is None:
        return {}
    return {"agreement": {"alpha": finite(found.alpha), "kappa": finite(found.kappa), "events": found.events}}
