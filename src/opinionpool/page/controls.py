"""The page's controls: native ones, each with a label, help on its term, and what its number means in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from types import MappingProxyType

from opinionpool import logodds
from opinionpool.report.blocks import Html, joined, markup
from opinionpool.report.listing import percent, printable

# What terms mean, by the key that controls name.
HELP = MappingProxyType(
    {
        "prior": "How probable the event is before any expert is asked, such as how often events like it happen.",
        "forecast": "The probability that this expert gives for the event.",
        "auc": (
            "How good an expert is: of two events, one that happens and one that does not, how often the expert gives "
            "the former the higher probability. 50 in 100 is guessing, 100 in 100 perfect."
        ),
        "hit_rate": "On how many of 100 events that are as likely as not the expert is on the right side of 50%.",
        "score": "The expected log score of its forecasts: 0 is saying 50% each time, 1 is being sure and right.",
        "calibration": (
            "Whether the expert's probabilities go too far. Too sure: what it calls 90% happens less often. Too timid: "
            "what it calls 70% happens more often."
        ),
        "bias": "Whether the expert's probabilities are too high or too low on average, whatever the event.",
        "worth": (
            "How much what you say counts beside outcomes: as if you had seen it on so many resolved events. Not "
            "assessed: it is assumed, and an expert counts no more than the average of those you assessed."
        ),
        "correlation": (
            "How much the experts' errors go together, from 0, unrelated, to 1, the same. The more alike they are, the "
            "less a second opinion adds."
        ),
        "base_rate": (
            "Only if the events that experts were judged on were picked, such as 50 that happened and 50 that did not: "
            "how often the event really happens."
        ),
        "interval": (
            "How much each expert should count is known only roughly; the interval says how roughly (a 90% credible "
            "interval). It leaves out the risk that the model does not suit these experts."
        ),
        "average": "The mean of the experts' probabilities, all counting the same.",
        "geometric": "Odds multiplied and the root taken, all counting the same: it goes further than the average.",
        "weight": (
            "How much an expert counts in the answer: what its forecast, on a scale of log-odds, is multiplied by. "
            "Weights need not add up to 1."
        ),
        "independent": "So many experts of their average accuracy, whose errors are unrelated, would be worth as much.",
        "action": "What it costs to act, whether the event happens or not. Any unit, such as thousands of euros.",
        "loss": "What it costs if you do not act and the event happens, in the same unit.",
    }
)


def attributes(**values: object) -> Html:
    """Return escaped HTML attributes, leaving out values of None and False.

    >>> attributes(value="-1 <", data_do="name", hidden=False, disabled=True)
    ' value="-1 &lt;" data-do="name" disabled'
    """
    found = []
    for key, value in values.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        found.append(f" {label}" if value is True else f' {label}="{escape(printable(str(value)), quote=True)}"')
    return Html("".join(found))


def helped(term: str) -> Html:
    """A button that shows what a term means."""
    return markup(
        '<button type="button" class="help"{}>?</button>',
        attributes(popovertarget=f"help-{term}", aria_label=f"What is meant: {_named(term)}"),
    )


def _named(term: str) -> str:
    names = {"auc": "AUC", "worth": "how sure", "loss": "loss", "action": "cost of acting"}
    return names.get(term, term.replace("_", " "))


def help_texts() -> Html:
    """Return the hidden help texts of all terms."""
    return joined(
        markup(f'<div popover id="help-{term}"><b>{{}}</b> {{}}</div>', f"{_named(term).capitalize()}.", text)
        for term, text in HELP.items()
    )


def labelled(ident: str, label: str, owner: str = "", term: str = "", *, unseen: bool = False) -> Html:
    """Return a label with help on its term; for screen readers the label names the expert."""
    whose = markup('<span class="unseen">{}: </span>', owner) if owner else ""
    kind = ' class="unseen"' if unseen else ""
    shown = markup(f"<label{{}}{kind}>{{}}{{}}</label>", attributes(for_=ident), whose, label)
    return markup('<span class="term">{}{}</span>', shown, helped(term)) if term else shown


def slider(
    ident: str,
    label: str,
    value: float,
    ends: tuple[float, float, float],
    meaning: str,
    *,
    owner: str = "",
    assumed: bool = False,
    term: str = "",
    **more: object,
) -> Html:
    """A slider from and to somewhere by steps, with what its place means, and whether that is only assumed."""
    low, high, step = ends
    meaning = f"{meaning} (assumed)" if assumed else meaning
    control = attributes(
        type="range", id=ident, min=f"{low:g}", max=f"{high:g}", step=f"{step:g}",
        value=f"{min(max(value, low), high):.6g}", aria_valuetext=meaning, **more,
    )  # fmt: skip
    return markup(
        '<div class="control{}">{}<input{}><output{}>{}</output></div>',
        " faint" if assumed else "", labelled(ident, label, owner, term), control, attributes(for_=ident), meaning,
    )  # fmt: skip


def field(
    ident: str, label: str, value: str, *, owner: str = "", kind: str = "text", term: str = "", unseen: bool = False,
    **more: object,
) -> Html:  # fmt: skip
    """A field to type in."""
    control = attributes(type=kind, id=ident, value=value, autocomplete="off", **more)
    return markup('<div class="control">{}<input{}></div>', labelled(ident, label, owner, term, unseen=unseen), control)


def choice(
    ident: str, label: str, options: Sequence[tuple[str, str]], chosen: str, *, owner: str = "", term: str = "",
    **more: object,
) -> Html:  # fmt: skip
    """A list to choose from: pairs of a value and its name."""
    inner = joined(
        markup("<option{}>{}</option>", attributes(value=value, selected=value == chosen), name)
        for value, name in options
    )
    control = markup("<select{}>{}</select>", attributes(id=ident, **more), inner)
    return markup('<div class="control">{}{}</div>', labelled(ident, label, owner, term), control)


def button(label: str, do: str, **more: object) -> Html:
    """A button that makes an action."""
    return markup('<button type="button"{}>{}</button>', attributes(data_do=do, **more), label)


def shares(
    do: str,
    label: str,
    values: Sequence[float] | None,
    classes: Sequence[object],
    *,
    owner: str = "",
    key: int | None = None,
    assumed: bool = False,
    frozen: bool = False,
) -> Html:
    """A probability by slider and by number; one for each class where there are more than two."""
    state = assumed, frozen
    if len(classes) == 2:
        return _share(do, label, None if values is None else values[0], None, owner, key, state)
    inner = joined(
        _share(do, printable(str(c)), None if values is None else values[i], i, owner or label, key, state)
        for i, c in enumerate(classes)
    )
    return markup('<div class="shares"><p class="caption">{}</p>{}</div>', label, inner)


def _share(
    do: str, label: str, p: float | None, at: int | None, owner: str, key: int | None, state: tuple[bool, bool]
) -> Html:
    assumed, frozen = state
    ident = "-".join(str(part) for part in (do, key, at) if part is not None)
    shown = "" if p is None else f"{100 * p:.3g}" if 0.01 <= p <= 0.99 else f"{100 * p:.5g}"
    more = {"data_do": do, "data_expert": key, "data_class": at, "disabled": frozen}
    title = f"{label} (assumed)" if assumed else label
    range_ = attributes(
        type="range", id=f"{ident}-slide", min=0, max=100, step=1, value=f"{50.0 if p is None else 100 * p:.6g}",
        aria_label=f"{f'{owner}: ' if owner else ''}{title}, per cent",
        aria_valuetext="no answer" if p is None else percent(p), **more,
    )  # fmt: skip
    number = attributes(
        type="number", id=ident, min=0, max=100, step="any", value=shown, inputmode="decimal", placeholder="–", **more
    )
    # In a list of experts the heading of the column says it.
    label_ = labelled(ident, title, owner, "" if key is not None else do, unseen=key is not None and at is None)
    return markup(
        '<div class="control share{}">{}<input{}><span class="percent"><input{}>'
        '<span aria-hidden="true">%</span></span></div>',
        " faint" if assumed or p is None else "", label_, range_, number,
    )  # fmt: skip


def accuracy_words(unit: str, value: float) -> str:
    """How good an expert is, as one would say it.

    >>> accuracy_words("auc", 0.8)
    'picks which of two events happens 80 times in 100'
    """
    if unit == "auc":
        return f"picks which of two events happens {100 * value:.0f} times in 100"
    if unit == "hit_rate":
        return f"right about {100 * value:.0f} of 100 even events"
    return f"score {value:.2f}, where 1 is perfect"


def calibration_words(kappa: float) -> str:
    """Whether an expert is too sure, as one would say it.

    >>> calibration_words(0.7), calibration_words(1.5), calibration_words(1.0)
    ('too sure: a 90% counts as 82%', 'too timid: a 70% counts as 78%', 'counts as it is')
    """
    if 0.97 <= kappa <= 1.03:
        return "counts as it is"
    p = 0.9 if kappa < 1 else 0.7
    counted = float(logodds.expit(kappa * math.log(p / (1.0 - p))))
    return f"too {'sure' if kappa < 1 else 'timid'}: a {100 * p:.0f}% counts as {100 * counted:.0f}%"


def bias_words(bias: float, prior: float) -> str:
    """Describe an expert's bias by its forecast when it has no information.

    >>> bias_words(0.5, 0.5), bias_words(0.0, 0.5)
    ('too high: 62% where 50% is right', 'neither high nor low')
    """
    if abs(bias) < 0.025:
        return "neither high nor low"
    shown = float(logodds.expit(math.log(prior / (1.0 - prior)) + bias))
    return f"too {'high' if bias > 0 else 'low'}: {100 * shown:.0f}% where {100 * prior:.0f}% is right"
