"""Controls of the page, each with help on its term: a row of controls for each expert, and common ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import numpy as np

from opinionpool import logodds
from opinionpool.learning.beliefs import Belief
from opinionpool.learning.constants import CORRELATION
from opinionpool.model.accuracy import normal_cdf, normal_score
from opinionpool.page.assessment import EXAMPLE, UNITS, WORTHS, Expert, Features, uniform
from opinionpool.page.session import PageInputs
from opinionpool.report.blocks import Html, joined, markup, name, sentence
from opinionpool.report.listing import percent, printable
from opinionpool.report.panel import terms
from opinionpool.text import counted


def attributes(**values: object) -> Html:
    """Return HTML attributes with escaped values; attributes whose value is None or False are left out.

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
    """Return the help button that shows what `term` means."""
    return markup(
        '<button type="button" class="help"{}>?</button>',
        attributes(popovertarget=f"help-{term}", aria_label=f"What is meant: {terms()[term][0]}"),
    )


def help_texts() -> Html:
    """Return the help texts of all terms as HTML, hidden until a help button is clicked."""
    return joined(
        markup(f'<div popover id="help-{term}"><b>{{}}</b> {{}}</div>', sentence(called), text)
        for term, (called, text, _) in terms().items()
        if text
    )


def ident_of(do: str, key: int | None, *more: object) -> str:
    """Return the HTML id of a control: its action `do`, its expert's `key` if it has one, and `more`, with hyphens."""
    return "-".join(str(part) for part in (do, key, *more) if part is not None)


def labelled(ident: str, label: str, owner: str = "", term: str = "", *, unseen: bool = False) -> Html:
    """Label of control `ident`, visually hidden if `unseen`, with help on `term`; only screen readers read `owner`."""
    whose = markup('<span class="unseen">{}: </span>', owner) if owner else ""
    kind = ' class="unseen"' if unseen else ""
    shown = markup(f"<label{{}}{kind}>{{}}{{}}</label>", attributes(for_=ident), whose, label)
    return markup('<span class="term">{}{}</span>', shown, helped(term)) if term else shown


def slider(
    do: str, label: str, value: float, ends: tuple[float, float, float], meaning: str, *, owner: str = "",
    key: int | None = None, assumed: bool = False, term: str = "", **more: object,
) -> Html:  # fmt: skip
    """Slider with `ends` = (low, high, step), and `meaning` as text of its value; faint if `assumed`.

    `do` is the action of a change, `key` and `owner` the expert's key and name, `term` what a help button explains.
    """
    low, high, step = ends
    ident, meaning = ident_of(do, key), f"{meaning} (assumed)" if assumed else meaning
    control = attributes(
        type="range", id=ident, min=f"{low:g}", max=f"{high:g}", step=f"{step:g}", data_do=do, data_expert=key,
        value=f"{min(max(value, low), high):.6g}", aria_valuetext=meaning, **more,
    )  # fmt: skip
    return markup(
        '<div class="control{}">{}<input{}><output{}>{}</output></div>',
        " faint" if assumed else "", labelled(ident, label, owner, term), control, attributes(for_=ident), meaning,
    )  # fmt: skip


def field(
    do: str, label: str, value: str, *, key: int | None = None, kind: str = "text", term: str = "", **more: object
) -> Html:
    """Text field, of the HTML type `kind`, with its label, which is hidden if the field belongs to an expert.

    `do` is the action of a change, `key` the expert's key, `term` what a help button explains.
    """
    ident = ident_of(do, key)
    control = attributes(type=kind, id=ident, value=value, autocomplete="off", data_do=do, data_expert=key, **more)
    shown = labelled(ident, label, term=term, unseen=key is not None)
    return markup('<div class="control">{}<input{}></div>', shown, control)


def choice(
    do: str, label: str, options: Sequence[tuple[str, str]], chosen: str, *, owner: str = "", key: int | None = None,
    term: str = "",
) -> Html:  # fmt: skip
    """Select box with its label; `options` pairs each value with its name.

    `do` is the action of a change, `key` and `owner` the expert's key and name, `term` what a help button explains.
    """
    inner = joined(
        markup("<option{}>{}</option>", attributes(value=value, selected=value == chosen), name)
        for value, name in options
    )
    ident = ident_of(do, key)
    control = markup("<select{}>{}</select>", attributes(id=ident, data_do=do, data_expert=key), inner)
    return markup('<div class="control">{}{}</div>', labelled(ident, label, owner, term), control)


def button(label: str, do: str, **more: object) -> Html:
    """Return a button that sends the action `do` to the server."""
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
    """Slider and a number field for a probability or, of more than two `classes`, for each one's.

    `do` is the action of a change, `key` and `owner` the expert's key and name; `values` are faint if `assumed`, and
    cannot be changed if `frozen`.
    """
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
    (assumed, frozen), ident = state, ident_of(do, key, at)
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
    """Return an accuracy, in the given unit, in everyday words.

    >>> accuracy_words("auc", 0.8)
    'picks which of two events happens 80 times in 100'
    """
    if unit == "auc":
        return f"picks which of two events happens {100 * value:.0f} times in 100"
    if unit == "hit_rate":
        return f"right about {100 * value:.0f} of 100 even events"
    return f"score {value:.2f}, where 1 is perfect"


def calibration_words(kappa: float) -> str:
    """Return a calibration in everyday words: overconfident, well calibrated or too cautious.

    >>> calibration_words(0.7), calibration_words(1.5), calibration_words(1.0)
    ('too sure: a 90% counts as 82%', 'too timid: a 70% counts as 78%', 'counts as it is')
    """
    if 0.97 <= kappa <= 1.03:
        return "counts as it is"
    p = 0.9 if kappa < 1 else 0.7
    counted = float(logodds.expit(kappa * math.log(p / (1.0 - p))))
    return f"too {'sure' if kappa < 1 else 'timid'}: a {100 * p:.0f}% counts as {100 * counted:.0f}%"


def bias_words(bias: float, prior: float) -> str:
    """Return a bias, in log-odds, in everyday words: what the expert forecasts where `prior` is right.

    >>> bias_words(0.5, 0.5), bias_words(0.0, 0.5)
    ('too high: 62% where 50% is right', 'neither high nor low')
    """
    if abs(bias) < 0.025:
        return "neither high nor low"
    shown = float(logodds.expit(math.log(prior / (1.0 - prior)) + bias))
    return f"too {'high' if bias > 0 else 'low'}: {100 * shown:.0f}% where {100 * prior:.0f}% is right"


UNIT_NAMES = {"auc": "AUC: which of two", "hit_rate": "hit rate", "score": "expected log score"}
# Largest number of experts whose controls are shown.
ROWS = 60


def panel(pieces: Mapping[str, Html]) -> Html:
    """Return the panel view: the controls of all experts, of which `pieces` has the HTML by element id."""
    rows = [markup(f'<li id="{key}">{{}}</li>', html) for key, html in pieces.items() if key.startswith("expert-")]
    return markup(
        '<div id="example">{}</div><h2>Who says what, and how good they are</h2>'
        '<div id="common" class="common">{}</div>{}<div id="foot">{}</div>',
        pieces["example"],
        pieces["common"],
        markup('<ol class="experts">{}</ol>', joined(rows)) if rows else markup("<p>Add the first expert below.</p>"),
        pieces["foot"],
    )


def pieces_of(inputs: PageInputs) -> dict[str, Html]:
    """Return the HTML of the panel view in pieces that can be replaced one by one, by the id of the piece's element."""
    a, known = inputs.a, set(inputs.data.experts)
    shown = [each for each in a.experts if each.forecast is not None or each.name not in known]
    without = [each for each in a.experts if each.forecast is None and each.name in known]
    setting = _Setting.of(inputs)
    learned = _learned(inputs, setting.unit)
    rows = {
        f"expert-{each.key}": _expert(
            each, a.features(each, a.common), setting, each.name in known, learned.get(each.name, "")
        )
        for each in shown[:ROWS]
    }
    foot = []
    if len(shown) > ROWS:
        more = counted(len(shown) - ROWS, "more expert")
        words = f"{more} answered. The answer counts all of them; controls are shown for {ROWS}."
        foot.append(markup('<p class="note">{}</p>', words))
    if without:
        foot.append(_without_forecasts(without))
    if setting.fixed:
        words = f"The panel is the saved pool of {printable(inputs.data.source.model or '')}, as it is."
        foot.append(markup('<p class="note">{}</p>', words))
    else:
        area = attributes(id="new", rows=1, placeholder="Dana, or pasted lines: Dana 60%", spellcheck="false")
        adding = '<form class="adding" data-add="new"><label for="new">Add experts</label><textarea{}></textarea>'
        foot += [markup(f'{adding}<button type="submit">Add</button></form>', area), _more(inputs)]
    example = Html("")
    if a.question == EXAMPLE and inputs.data.forecasts is None:
        words = "This is an example: the question, the advisers and their assessments are made up."
        clear = button("Clear it and begin with your own", "blank", id="blank")
        example = markup('<p class="banner">{} {}</p>', words, clear)
    return {"example": example, "common": _common(inputs, setting), **rows, "foot": joined(foot)}


def _learned(inputs: PageInputs, unit: str) -> dict[str, str]:
    """Each expert's own accuracy as learned from outcomes, as text by name; empty if nothing was learned."""
    if not inputs.learns or inputs.found is None or inputs.found.state.marginal is None:
        return {}
    state = inputs.found.state
    assert state.marginal is not None
    rows = zip(state.experts, state.marginal.accuracy.tolist(), state.counts.tolist(), strict=True)
    return {who: f"learned {accuracy_label(unit, accuracy)}" for who, accuracy, count in rows if count > 0}


def _common(inputs: PageInputs, setting: _Setting) -> Html:
    """Return the controls that apply to all experts: prior, correlation, and the unit of accuracies."""
    a = inputs.a
    label = "Prior (estimated)" if inputs.learns and a.prior is None else "Prior"
    assumed = a.prior is None and not inputs.learns
    parts = [shares("prior", label, setting.priors, a.classes, assumed=assumed, frozen=setting.frozen)]
    if not setting.fixed:
        own = a.everyone.get("correlation")
        rho = CORRELATION if own is None else own.value
        ends, words, assumed = (0, 0.95, 0.01), f"correlation of errors {rho:.2f}", own is None
        unit, names = inputs.look.unit, list(UNIT_NAMES.items())
        parts += [
            slider("correlation", "How alike they are", rho, ends, words, assumed=assumed, term="correlation"),
            _worth_choice("correlation_worth", "How sure of that", own, ""),
            choice("unit", "Say how good they are as", names, unit, term=unit),
        ]
    return joined(parts)


def _worth_choice(do: str, label: str, belief: Belief | None, owner: str, key: int | None = None) -> Html:
    """Select box, with action `do`, for how many resolved events `belief` is worth; "not assessed" if it is None."""
    options = [("", "not assessed"), *((str(n), f"as from {n} cases") for n in WORTHS), ("inf", "certain")]
    worth = "" if belief is None else "inf" if math.isinf(belief.worth) else f"{belief.worth:g}"
    if worth not in dict(options):
        options.append((worth, f"as from {worth} cases"))
    return choice(do, label, options, worth, owner=owner, key=key, term="worth")


@dataclass(frozen=True)
class _Setting:
    """Inputs, beside an expert's own, on which the controls of every expert depend."""

    unit: str  # unit in which accuracies are shown
    priors: tuple[float, ...]  # prior of the second class, or of each of K > 2 classes
    classes: tuple[object, ...]
    fixed: bool  # whether the panel is a saved pool, so that nothing is assessed
    frozen: bool  # whether forecasts cannot be changed, as events have options of their own
    given: frozenset[str]  # features assessed for all experts together

    @classmethod
    def of(cls, inputs: PageInputs) -> _Setting:
        """Return the setting of the page drawn from `inputs`."""
        f, a = inputs.data.forecasts, inputs.a
        prior = a.prior or uniform(a.classes)
        if a.prior is None and inputs.found is not None:
            prior = tuple(np.atleast_1d(inputs.found.why.prior).tolist())
        own = f is not None and f.options is not None
        given = set(a.everyone.given) | ({"accuracy"} if a.everyone.absolute() is not None else set())
        return cls(inputs.look.unit, prior, a.classes, inputs.data.trained is not None, own, frozenset(given))

    def assumes(self, expert: Expert, feature: str) -> bool:
        """Return True if `feature` is assessed neither of this expert nor of all experts."""
        own = expert.beliefs
        if feature == "accuracy" and (own.absolute() is not None or own.get("relative_accuracy") is not None):
            return False
        return feature not in self.given and feature not in own.given


@lru_cache(maxsize=1024)
def _expert(each: Expert, features: Features, setting: _Setting, from_file: bool, learned: str) -> Html:
    """Return the controls of one expert; cached, as changes of another expert do not affect them."""
    who = printable(each.name)
    if from_file:
        head = markup('<p class="who">{}</p>', name(each.name))
    else:
        head = field("name", "Name", each.name, key=each.key, maxlength=200, spellcheck="false", class_="who")
    verb = "Leave out" if from_file else "Remove"
    leave = button(
        verb, "clear" if from_file else "remove", id=f"remove-{each.key}", data_expert=each.key,
        aria_label=f"{verb} {who}", class_="quiet",
    )  # fmt: skip
    forecast = shares(
        "forecast", "Forecast", each.forecast, setting.classes, owner=who, key=each.key, frozen=setting.frozen
    )
    parts = [head, forecast, leave]
    if not setting.fixed:
        shown = accuracy_label(setting.unit, features.accuracy)
        accuracy, kappa = ("assumed " if setting.assumes(each, it) else "" for it in ("accuracy", "calibration"))
        summary = f"{accuracy}{shown}, {kappa}calibration {features.calibration:.2g}"
        summary = f"{learned or accuracy + shown} · assess" if accuracy and kappa else summary
        start = f'<details id="how-{each.key}"><summary id="fold-{each.key}">'
        fold = start + '{}</summary><div class="second">{}</div></details>'
        parts.append(markup(fold, summary, _assessed(each, features, setting, who)))
    return markup('<fieldset class="line"><legend class="unseen">{}</legend>{}</fieldset>', who, joined(parts))


def accuracy_label(unit: str, accuracy: float) -> str:
    """Return as text an accuracy in `unit`, with the unit's name.

    >>> accuracy_label("auc", 1.0)
    'AUC .84'
    """
    return f"{terms()[unit][0]} {in_unit(unit, max(accuracy, 0.0)):.2f}".replace("0.", ".", 1)


def in_unit(unit: str, accuracy: float) -> float:
    """Return in `unit` (AUC, hit rate or expected score) an accuracy that is given as mean log-odds, μ*."""
    if unit == "score":
        return float(normal_score(accuracy, 2.0 * accuracy))
    return float(normal_cdf(math.sqrt(accuracy if unit == "auc" else accuracy / 2.0)))


def _assessed(each: Expert, features: Features, setting: _Setting, who: str) -> Html:
    unit, value = setting.unit, in_unit(setting.unit, features.accuracy)
    words = accuracy_words(unit, value), calibration_words(features.calibration)
    kappa = math.log2(features.calibration)
    sliders: list[tuple[str, str, float, tuple[float, float, float], str, str]] = [
        ("accuracy", "How good", value, (*UNITS[unit], 0.01), words[0], unit),
        ("calibration", "Too sure, or too timid", kappa, (-2, 2, 0.05), words[1], "calibration"),
    ]
    if len(setting.classes) == 2:
        meaning = bias_words(features.bias, setting.priors[0])
        sliders.append(("bias", "Bias", features.bias, (-2, 2, 0.05), meaning, "bias"))
    parts = [
        slider(
            do, label, shown, ends, meaning, owner=who, key=each.key, assumed=setting.assumes(each, do), term=term,
            data_unit=unit,
        )
        for do, label, shown, ends, meaning, term in sliders
    ]  # fmt: skip
    first = next(iter(each.beliefs.given.values()), None)
    parts.append(_worth_choice("worth", "How sure of this", first, who, each.key))
    return joined(parts)


def _without_forecasts(without: Sequence[Expert]) -> Html:
    """Return the select box by which an expert of the file without a forecast on this event gets one."""
    names = ", ".join(each.name for each in without[:8]) + (" …" if len(without) > 8 else "")
    options = [("", "choose an expert"), *((str(each.key), printable(each.name)) for each in without[:500])]
    return markup(
        '<div class="adding"><p class="note">{} of the file did not answer: {}</p>{}</div>',
        counted(len(without), "expert"), names,
        choice("include", "Give a forecast for", options, ""),
    )  # fmt: skip


def _more(inputs: PageInputs) -> Html:
    """Return the rarely needed controls, folded: outcomes, base rate, panel file."""
    a, parts = inputs.a, []
    if inputs.data.forecasts is None:
        labels = "" if a.binary else ", ".join(str(label) for label in a.classes)
        title = "Outcomes, if they are more than yes and no"
        parts.append(field("outcomes", title, labels, placeholder="north, south, nobody"))
    parts.append(shares("base_rate", "How frequent it is where the answer is used", a.base_rate, a.classes))
    load = '<input type="file" id="load" accept=".toml" data-load="panel">'
    parts.append(markup('<div class="control"><label for="load">Beliefs from a panel file</label>{}</div>', Html(load)))
    return markup(
        '<details id="more"><summary>More: outcomes, base rate, panel file</summary>'
        '<div class="common">{}</div></details>',
        joined(parts),
    )
