"""The page's controls: native ones, each with a label and, where a number says little, what it means in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from opinionpool import logodds
from opinionpool.report.html import Html, joined, markup
from opinionpool.report.listing import printable


def attributes(**values: object) -> Html:
    """Attributes of an element, escaped; those that are None or False are left out.

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


def element(kind: str, content: str = "", **values: object) -> Html:
    """An element with its attributes."""
    return markup(f"<{kind}{{}}>{{}}</{kind}>", attributes(**values), content)


def slider(
    ident: str,
    label: str,
    value: float,
    ends: tuple[float, float, float],
    meaning: str,
    *,
    owner: str = "",
    faint: bool = False,
    **more: object,
) -> Html:
    """A slider from and to somewhere by steps, with what its place means."""
    low, high, step = ends
    control = Html(
        "<input"
        + attributes(
            type="range",
            id=ident,
            min=f"{low:g}",
            max=f"{high:g}",
            step=f"{step:g}",
            value=f"{min(max(value, low), high):.6g}",
            aria_valuetext=meaning,
            **more,
        )
        + ">"
    )
    return markup(
        '<div class="control{}">{}{}<output{}>{}</output></div>',
        " faint" if faint else "",
        labelled(ident, label, owner),
        control,
        attributes(for_=ident),
        meaning,
    )


def labelled(ident: str, label: str, owner: str = "") -> Html:
    """A label; whose control it is stands in it for those who do not see where it is."""
    whose = markup('<span class="unseen">{}: </span>', owner) if owner else ""
    return markup("<label{}>{}{}</label>", attributes(for_=ident), whose, label)


def field(ident: str, label: str, value: str, *, owner: str = "", kind: str = "text", **more: object) -> Html:
    """A field to type in."""
    control = Html("<input" + attributes(type=kind, id=ident, value=value, autocomplete="off", **more) + ">")
    return markup('<div class="control">{}{}</div>', labelled(ident, label, owner), control)


def choice(
    ident: str, label: str, options: Sequence[tuple[str, str]], chosen: str, *, owner: str = "", **more: object
) -> Html:
    """A list to choose from: pairs of a value and its name."""
    inner = joined(
        markup("<option{}>{}</option>", attributes(value=value, selected=value == chosen), name)
        for value, name in options
    )
    control = markup("<select{}>{}</select>", attributes(id=ident, **more), inner)
    return markup('<div class="control">{}{}</div>', labelled(ident, label, owner), control)


def button(label: str, do: str, **more: object) -> Html:
    """A button that makes a move."""
    return markup('<button type="button"{}>{}</button>', attributes(data_do=do, **more), label)


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
    """An expert's bias in words, by what it would say if it knew nothing.

    >>> bias_words(0.5, 0.5), bias_words(0.0, 0.5)
    ('too high: 62% where 50% is right', 'neither high nor low')
    """
    if abs(bias) < 0.025:
        return "neither high nor low"
    shown = float(logodds.expit(math.log(prior / (1.0 - prior)) + bias))
    return f"too {'high' if bias > 0 else 'low'}: {100 * shown:.0f}% where {100 * prior:.0f}% is right"
