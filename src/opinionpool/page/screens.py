"""What if, and what is handed over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionpool.analysis.sensitivity import Effect
from opinionpool.errors import OpinionPoolError
from opinionpool.page import charts, handover, what_if
from opinionpool.page.answer import Answer
from opinionpool.page.controls import accuracy_words, attributes, button, field, slider
from opinionpool.page.event_report import bars_of, named
from opinionpool.page.scene import Scene
from opinionpool.report.blocks import grid
from opinionpool.report.html import Html, joined, markup, sentence
from opinionpool.report.listing import printable
from opinionpool.report.numbers import brief, decimal


def what_if_view(scene: Scene) -> Html:
    """Which assessment matters most, a decision, and one more expert."""
    if scene.found is None:
        return markup("<h2>What if</h2><p>{}</p>", sentence(scene.trouble or "there is no answer yet"))
    return joined(
        [
            markup("<h2>Which assessment moves the answer most</h2>"),
            markup(
                '<p class="note">Each bar shows how the answer changes when one assessment varies over its 90% '
                "range and all else stays. Forecasts vary by half a unit of log-odds, as from 50% to 38% or 62%. A "
                "bar may reach beyond the credible interval, which is a normal approximation around the answer.</p>"
            ),
            markup('<div id="effects" data-later="effects"><p class="quiet">Computing …</p></div>'),
            _decision(scene, scene.found),
            _candidate(scene, scene.found),
        ]
    )


def effects(scene: Scene) -> Html:
    """The bars of what moves the answer."""
    if scene.found is None:
        return Html("")
    found = what_if.effects(scene.a, scene.material, scene.found, scene.at)
    if not found:
        return markup('<p class="missing">Nothing is assessed that could be otherwise.</p>')
    p = scene.probability(scene.found.why.probability)
    threshold = scene.a.stakes.action / scene.a.stakes.loss if scene.a.binary else None
    figure = markup(
        '<figure class="large">{}</figure>',
        charts.tornado(bars_of(found), p, threshold, f"Probability of {scene.event}"),
    )
    words = [figure, markup("<p>{}</p>", _most(scene, found, p, threshold))]
    rows = [
        [printable(title), f"{low} to {high}", " to ".join(brief(value) for value in effect.answers)]
        for effect, (title, low, high) in ((effect, named(effect)) for effect in found)
    ]
    listing = grid(["assessment", "range", "answer"], rows, words=2).html()
    words.append(
        markup('<details id="effects-table"><summary>All {} in numbers</summary>{}</details>', str(len(rows)), listing)
    )
    return joined(words)


def _most(scene: Scene, found: Sequence[Effect], p: float, threshold: float | None) -> str:
    """The strongest one in words, and whether any of them would change the decision."""
    first = found[0]
    low, high = sorted(first.answers)
    of = f" of {printable(first.expert)}" if first.expert else ""
    words = f"The answer is most sensitive to the {first.what}{of}: it goes from {brief(low)} to {brief(high)}."
    if threshold is None or scene.at != 1:
        return words
    turning = [effect for effect in found if any((q > threshold) != (p > threshold) for q in effect.answers)]
    if not turning:
        return (
            f"{words} No single assessment would take the answer across {brief(threshold)}, where acting begins to pay."
        )
    names = ", ".join(named(effect)[0] for effect in turning[:4])
    return f"{words} Any of these could take it across {brief(threshold)}, where acting begins to pay: {names}."


def _decision(scene: Scene, found: Answer) -> Html:
    """A threshold for acting, and what it costs to be wrong."""
    a = scene.a
    if not a.binary:
        return markup(
            "<h2>A decision</h2>{}",
            markup('<p class="missing">{}</p>', "Costs of acting are about two outcomes, and this event has more."),
        )
    p = float(found.why.probability)
    stake = what_if.stake(a, found, p)
    verdict = "Act" if stake.act else "Do not act"
    side = "above" if stake.act else "not above"
    better = abs(stake.waiting - stake.acting)
    controls = joined(
        [
            _amount("action", "Acting costs", a.stakes.action),
            _amount("loss", "Loss if you do not act", a.stakes.loss),
        ]
    )  # fmt: skip
    words = [
        markup(
            '<p class="lead"><b>{}.</b> {} is {} {}, where acting begins to pay. On average, that costs {} less than '
            "{}.</p>",
            verdict, brief(p), side, brief(stake.threshold), _money(better), "not acting" if stake.act else "acting",
        ),
        grid(
            ["choice", "it happens", "it does not", "expected"],
            [
                ["act", _money(a.stakes.action), _money(a.stakes.action), _money(stake.acting)],
                ["do not act", _money(a.stakes.loss), "0", _money(stake.waiting)],
            ],
            "What each way costs",
        ).html(),
    ]  # fmt: skip
    if stake.decision is not None:
        d, loss = stake.decision, a.stakes.loss
        worth = (
            f"Over many such events, deciding by the prior alone costs {_money(float(d.climatology) * loss)} each, "
            f"deciding by this panel {_money(float(d.expense) * loss)}, and with every outcome known beforehand "
            f"{_money(float(d.perfect) * loss)}. The panel is worth {_money(float(d.saving) * loss)} an event, "
            f"{float(d.value):.0%} of what perfect foresight is worth."
        )
        words.append(markup("<p>{}</p>", worth))
    return markup('<h2>A decision</h2><div class="common">{}</div>{}', controls, joined(words))


def _amount(ident: str, label: str, value: float) -> Html:
    return field(ident, label, f"{value:.12g}", kind="number", data_do=ident, min=0, step="any", inputmode="decimal")


def _money(x: float) -> str:
    """An amount in the user's own units.

    >>> _money(12.3456), _money(1234567.0), _money(0.5)
    ('12.3', '1,234,567', '0.5')
    """
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _candidate(scene: Scene, found: Answer) -> Html:
    """One more expert of such a kind, and what it is worth."""
    c = scene.a.candidate
    controls = joined(
        [
            slider(
                "candidate_auc", "How good", c.auc, (0.51, 0.99, 0.01), accuracy_words("auc", c.auc),
                data_do="candidate_auc",
            ),
            slider(
                "candidate_correlation", "How alike with these", c.correlation, (0, 0.95, 0.01),
                f"correlation {c.correlation:.2f} with each", data_do="candidate_correlation",
            ),
        ]
    )  # fmt: skip
    try:
        more = what_if.one_more(scene.a, found)
    except OpinionPoolError as error:
        result = markup('<p class="missing">{}</p>', sentence(str(error)))
    else:
        gain = more.gain
        before = 100 * (more.auc - gain.auc)
        words = f"The panel would rank {100 * more.auc:.0f} of 100 pairs correctly instead of {before:.0f}"
        if gain.score is not None:
            words += f", and its expected log score would rise by {decimal(gain.score)}"
        words += "."
        if more.saving is not None:
            words += f" For the decision above that is worth {_money(more.saving)} an event."
        result = markup("<p>{}</p>", words)
    return markup(
        '<h2>One more expert</h2>'
        '<p class="note">What asking somebody else is worth, before anybody knows what they say.</p>'
        '<div class="common">{}</div>{}',
        controls, result,
    )  # fmt: skip


def hand_over_view(scene: Scene) -> Html:
    """What is taken away."""
    if scene.found is None:
        return markup("<h2>Hand over</h2><p>{}</p>", sentence(scene.trouble or "there is no answer yet"))
    a, material, found = scene.a, scene.material, scene.found
    line = handover.command_line(a, material)
    links = joined(
        markup(
            "<li><a{}>{}</a> {}</li>",
            attributes(href=f"get/{file}", data_get=True, download=file, class_="get"),
            file,
            why,
        )
        for file, why in _files(scene, found)
    )
    exact = joined(f"{label}: {float(p)!r}; " for label, p in _exact(a.classes, found))
    parts = [
        markup("<h2>Hand over</h2>"),
        field(
            "assessor",
            "Assessed by",
            a.assessor,
            data_do="assessor",
            placeholder="names, for the record",
            maxlength=200,
        ),
        markup('<h3>Files</h3><ul class="files">{}</ul>', links),
        markup("<h3>The command with the same answer</h3>"),
        markup('<pre id="command" tabindex="0">{}</pre>', line),
        button("Copy", "copy", id="copy", data_copy="command"),
        markup(
            '<p class="note">Run in the folder of these files, it answers the same to the last digit: {}</p>',
            str(exact).rstrip("; "),
        ),
    ]
    return joined(parts)


def _exact(classes: Sequence[object], found: Answer) -> list[tuple[str, float]]:
    p = np.atleast_1d(found.why.probability).tolist()
    return [("probability", p[0])] if len(p) == 1 else [(printable(str(c)), x) for c, x in zip(classes, p, strict=True)]


def _files(scene: Scene, found: Answer) -> list[tuple[str, str]]:
    listed = [(handover.ARCHIVE, "all of these in one file"), (handover.REPORT, "the report, for people")]
    why = {
        handover.PANEL: "your assessments",
        handover.FORECASTS: "the forecasts on this event",
        handover.POOL: "the pool that was learned",
    }
    return listed + [(file, why[file]) for file in handover.names(scene.a, scene.material, found) if file in why]
