"""The panel's controls: what each expert says of the event, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opinionpool.learning.beliefs import Belief
from opinionpool.learning.prior import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.model.accuracy import normal_cdf, normal_score
from opinionpool.page.assessment import Expert
from opinionpool.page.controls import (
    accuracy_words,
    attributes,
    bias_words,
    button,
    calibration_words,
    choice,
    field,
    labelled,
    slider,
)
from opinionpool.page.moves import UNITS, WORTHS
from opinionpool.page.scene import ROWS, UNIT_NAMES, Scene
from opinionpool.report.html import Html, joined, markup, name
from opinionpool.report.listing import printable
from opinionpool.report.numbers import percent
from opinionpool.text import counted


def panel(pieces: Mapping[str, Html]) -> Html:
    """The controls of all experts, from their pieces."""
    rows = [markup(f'<li id="{key}">{{}}</li>', html) for key, html in pieces.items() if key.startswith("expert-")]
    return markup(
        "<h2>Who says what, and how good they are</h2>"
        '<div id="common" class="common">{}</div>{}<div id="foot">{}</div>',
        pieces["common"],
        markup('<ol class="experts">{}</ol>', joined(rows)) if rows else markup("<p>Add the first expert below.</p>"),
        pieces["foot"],
    )


def pieces_of(scene: Scene) -> dict[str, Html]:
    """The controls in pieces, by the id of what holds them: those of all experts, of each, and what stands below."""
    a, resolved = scene.a, _resolved(scene)
    known = set(scene.material.experts)
    shown = [each for each in a.experts if each.forecast is not None or each.name not in known]
    without = [each for each in a.experts if each.forecast is None and each.name in known]
    setting = _Setting.of(scene)
    rows = {
        f"expert-{each.key}": _expert(each, resolved[each.name], setting, each.name in known) for each in shown[:ROWS]
    }
    foot = []
    if len(shown) > ROWS:
        more = counted(len(shown) - ROWS, "more expert")
        words = f"{more} answered. The answer counts all of them; controls are shown for {ROWS}."
        foot.append(markup('<p class="note">{}</p>', words))
    if without:
        foot.append(_without_forecasts(without))
    if setting.fixed:
        words = f"The panel is the saved pool of {printable(scene.material.source.model or '')}, as it is."
        foot.append(markup('<p class="note">{}</p>', words))
    else:
        foot += [_adding(), _more(scene)]
    return {"common": _common(scene), **rows, "foot": joined(foot)}


@dataclass(frozen=True)
class _Features:
    """What is taken of one expert, whoever assessed it."""

    accuracy: float
    calibration: float
    bias: float


def _resolved(scene: Scene) -> dict[str, _Features]:
    """What is taken of each expert: as assessed, else as of all, else as of any panel."""
    a, names = scene.a, [each.name for each in scene.a.experts]
    everyone = a.everyone
    level = everyone.absolute()
    base = ACCURACY if level is None else level.value
    found = {}
    for each, own in zip(names, (each.beliefs for each in a.experts), strict=True):
        accuracy, relative = own.absolute(), own.get("relative_accuracy")
        level_of = accuracy.value if accuracy is not None else base * (1.0 if relative is None else relative.value)
        kappa = own.get("calibration") or everyone.get("calibration") or Belief(CALIBRATION)
        bias = own.get("bias") or everyone.get("bias") or Belief(0.0)
        found[each] = _Features(level_of, kappa.value, bias.value)
    return found


def in_unit(unit: str, accuracy: float) -> float:
    """An accuracy as an area, a hit rate or a score."""
    if unit == "score":
        return float(normal_score(accuracy, 2.0 * accuracy))
    return float(normal_cdf(math.sqrt(accuracy if unit == "auc" else accuracy / 2.0)))


def _prior(scene: Scene) -> tuple[float, ...]:
    if scene.a.prior is not None:
        return scene.a.prior
    if scene.found is not None:
        return tuple(np.atleast_1d(scene.found.why.prior).tolist())
    k = len(scene.a.classes)
    return (0.5,) if k == 2 else (1.0 / k,) * k


def _common(scene: Scene) -> Html:
    """Prior, dependence, and the way to say how good experts are."""
    a, fixed = scene.a, scene.material.trained is not None
    own = a.everyone.get("correlation")
    rho = CORRELATION if own is None else own.value
    parts = [
        _shares("prior", "Prior", _prior(scene), _Setting.of(scene), faint=a.prior is None),
    ]
    if not fixed:
        dependence = slider(
            "correlation", "How alike they are", rho, (0, 0.95, 0.01), f"correlation of errors {rho:.2f}",
            data_do="correlation", faint=own is None,
        )  # fmt: skip
        worth = _worth_choice("correlation_worth", "correlation", own, "")
        unit = choice("unit", "Say how good they are as", list(UNIT_NAMES.items()), scene.look.unit, data_do="unit")
        parts += [dependence, worth, unit]
    return joined(parts)


def _worth_choice(do: str, of: str, belief: Belief | None, owner: str, key: int | None = None) -> Html:
    """How many resolved events an assessment is worth."""
    options = [("", "not assessed"), *((str(n), f"as from {n} cases") for n in WORTHS), ("inf", "certain")]
    worth = "" if belief is None else "inf" if math.isinf(belief.worth) else f"{belief.worth:g}"
    if worth not in dict(options):
        options.append((worth, f"as from {worth} cases"))
    ident = do if key is None else f"{do}-{key}"
    return choice(ident, f"How sure of {of}", options, worth, owner=owner, data_do=do, data_expert=key)


@dataclass(frozen=True)
class _Setting:
    """What the controls of all experts depend on."""

    unit: str  # how accuracies are given
    prior: float  # of the second class
    classes: tuple[object, ...]
    fixed: bool  # whether the panel is a saved pool, so that nothing is assessed
    frozen: bool  # whether forecasts are those of the file, as events have options of their own

    @classmethod
    def of(cls, scene: Scene) -> _Setting:
        """Those of a page."""
        f = scene.material.forecasts
        own = f is not None and f.options is not None
        return cls(scene.look.unit, _prior(scene)[0], scene.a.classes, scene.material.trained is not None, own)


@lru_cache(maxsize=1024)
def _expert(each: Expert, features: _Features, setting: _Setting, from_file: bool) -> Html:
    """One expert's controls; most stay as they are when another one's move."""
    who = printable(each.name)
    if from_file:
        head = markup('<p class="who">{}</p>', name(each.name))
    else:
        head = field(
            f"name-{each.key}", "Name", each.name, data_do="name", data_expert=each.key, maxlength=200,
            spellcheck="false", class_="who",
        )  # fmt: skip
    leave = button(
        "Leave out" if from_file else "Remove",
        "clear" if from_file else "remove",
        id=f"remove-{each.key}",
        data_expert=each.key,
        aria_label=f"{'Leave out' if from_file else 'Remove'} {who}",
        class_="quiet",
    )
    forecast = _shares("forecast", "Forecast", each.forecast, setting, owner=who, key=each.key)
    parts = [markup('<div class="first">{}{}{}</div>', head, forecast, leave)]
    if not setting.fixed:
        parts.append(markup('<div class="second">{}</div>', _assessed(each, features, setting, who)))
    return markup('<fieldset><legend class="unseen">{}</legend>{}</fieldset>', who, joined(parts))


def _assessed(each: Expert, features: _Features, setting: _Setting, who: str) -> Html:
    unit, own = setting.unit, each.beliefs
    value = in_unit(unit, features.accuracy)
    low, high = UNITS[unit]
    accurate = own.absolute() or own.get("relative_accuracy")
    parts = [
        slider(
            f"accuracy-{each.key}", "How good", value, (low, high, 0.01), accuracy_words(unit, value),
            owner=who, faint=accurate is None, data_do="accuracy", data_unit=unit, data_expert=each.key,
        ),
        slider(
            f"calibration-{each.key}", "Too sure, or too timid", math.log2(features.calibration), (-2, 2, 0.05),
            calibration_words(features.calibration), owner=who, faint=own.get("calibration") is None,
            data_do="calibration", data_expert=each.key,
        ),
    ]  # fmt: skip
    if len(setting.classes) == 2:
        parts.append(
            slider(
                f"bias-{each.key}", "Bias", features.bias, (-2, 2, 0.05),
                bias_words(features.bias, setting.prior), owner=who, faint=own.get("bias") is None,
                data_do="bias", data_expert=each.key,
            )
        )  # fmt: skip
    first = next(iter(own.given.values()), None)
    parts.append(_worth_choice("worth", "this expert", first, who, each.key))
    return joined(parts)


def _shares(
    do: str,
    label: str,
    shares: tuple[float, ...] | None,
    setting: _Setting,
    *,
    owner: str = "",
    key: int | None = None,
    faint: bool = False,
) -> Html:
    """A probability by slider and by number; one for each class where there are more than two."""
    frozen = setting.frozen
    if len(setting.classes) == 2:
        return _share(do, label, None if shares is None else shares[0], None, owner, key, faint, frozen)
    inner = joined(
        _share(do, printable(str(c)), None if shares is None else shares[i], i, f"{owner or label}", key, faint, frozen)
        for i, c in enumerate(setting.classes)
    )
    return markup('<div class="shares"><p class="caption">{}</p>{}</div>', label, inner)


def _share(
    do: str, label: str, p: float | None, at: int | None, owner: str, key: int | None, faint: bool, frozen: bool
) -> Html:
    ident = "-".join(str(part) for part in (do, key, at) if part is not None)
    shown = "" if p is None else f"{100 * p:.3g}" if 0.01 <= p <= 0.99 else f"{100 * p:.5g}"
    more = {"data_do": do, "data_expert": key, "data_class": at, "disabled": frozen}
    range_ = Html(
        "<input"
        + attributes(
            type="range", id=f"{ident}-slide", min=0, max=100, step=1, value=f"{50.0 if p is None else 100 * p:.6g}",
            aria_label=f"{f'{owner}: ' if owner else ''}{label}, per cent",
            aria_valuetext="no answer" if p is None else percent(p), **more,
        )
        + ">"
    )  # fmt: skip
    number_ = Html(
        "<input"
        + attributes(
            type="number", id=ident, min=0, max=100, step="any", value=shown, inputmode="decimal",
            placeholder="–", **more,
        )
        + ">"
    )  # fmt: skip
    return markup(
        '<div class="control share{}">{}{}<span class="percent">{}<span aria-hidden="true">%</span></span></div>',
        " faint" if faint or p is None else "", labelled(ident, label, owner), range_, number_,
    )  # fmt: skip


def _without_forecasts(without: Sequence[Expert]) -> Html:
    """Experts of the file without a forecast on this event, who may give one."""
    names = ", ".join(each.name for each in without[:8]) + (" …" if len(without) > 8 else "")
    options = [("", "choose an expert"), *((str(each.key), printable(each.name)) for each in without[:500])]
    return markup(
        '<div class="adding"><p class="note">{} of the file did not answer: {}</p>{}</div>',
        counted(len(without), "expert"), names,
        choice("include", "Give a forecast for", options, "", data_do="include"),
    )  # fmt: skip


def _adding() -> Html:
    area = markup(
        "<textarea{}></textarea>",
        attributes(id="new", rows=1, placeholder="Dana, or pasted lines: Dana 60%", spellcheck="false"),
    )
    return markup(
        '<form class="adding" data-add="new"><label for="new">Add experts</label>{}'
        '<button type="submit">Add</button></form>',
        area,
    )


def _more(scene: Scene) -> Html:
    """What is rarely needed."""
    a = scene.a
    parts = []
    if scene.material.forecasts is None:
        labels = "" if a.binary else ", ".join(str(label) for label in a.classes)
        parts.append(
            field(
                "outcomes", "Outcomes, if they are more than yes and no", labels, data_do="outcomes",
                placeholder="north, south, nobody",
            )
        )  # fmt: skip
    parts.append(_shares("base_rate", "How frequent it is where the answer is used", a.base_rate, _Setting.of(scene)))
    parts.append(
        markup(
            '<div class="control"><label for="load">Beliefs from a panel file</label>'
            '<input type="file" id="load" accept=".toml" data-load="panel"></div>'
        )
    )
    return markup(
        '<details id="more"><summary>More: outcomes, base rate, panel file</summary>'
        '<div class="common">{}</div></details>',
        joined(parts),
    )
