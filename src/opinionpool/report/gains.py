"""How good the pool is: beside the simple average, the best single expert and the base rate, on events not learned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opinionpool.report.blocks import Beside, Block, Card, Cards, Figure, Section, Table, Text, missing, note, words
from opinionpool.report.charts import Gain, gain_chart
from opinionpool.report.comparison import how_line
from opinionpool.report.findings import Findings, Missing, best_expert
from opinionpool.report.html import Html, markup, name, sentence
from opinionpool.report.listing import Column, printable
from opinionpool.report.numbers import decimal, finite, percent, signed
from opinionpool.scoring.comparison import AVERAGE, LEVEL, Comparison, Difference, ExpertScore
from opinionpool.scoring.reliability import auc
from opinionpool.scoring.scores import brier
from opinionpool.text import counted


def gains_section(f: Findings) -> Section:
    """Section on the pool's scores, compared with the simple average and the best single expert."""
    title = "How good the pool is"
    if isinstance(f.comparison, Missing):
        why = f.comparison.reason
        if not f.forecasts.resolved.any():
            why = "no event is resolved, so the answers rest on what is assumed of the experts"
        return Section("gains", title, [missing(why, "It cannot be measured yet.")])
    found, best = f.comparison, best_expert(f.comparison)
    gain = next(pool for pool in found.pools if pool.pool == f.pool).over_average
    lead = words(*verdict(f), kind="lead")
    caveats = [note(markup("<b>Mind:</b> {}", sentence(each.text))) for each in f.caveats]
    meaning = note(_meaning(f, found, gain))
    if gain.verdict == "too few events":
        # Large numbers and intervals would promise more than so few events can show.
        return Section("gains", title, [lead, meaning, *caveats])
    texts: list[Block] = [] if best is None else [_beside_best(best, found)]
    texts.append(_scores(f, found, best))
    return Section(
        "gains", title, [lead, _cards(f, found, best), Beside(texts, _chart(f, gain, best)), meaning, *caveats]
    )


def _chart(f: Findings, gain: Difference, best: ExpertScore | None) -> Block:
    """Figure of the pool's gains over the simple average and the best expert."""
    gains = [] if f.pool == AVERAGE else [Gain("the simple average", gain.mean, gain.low, gain.high)]
    caption = f"How much better the pool scored, with {LEVEL:.0%} intervals"
    if best is not None:
        over = best.over_pool
        gains.append(Gain(printable(best.expert), 0.0 - over.mean, 0.0 - over.high, 0.0 - over.low))
        caption += "; that over the expert allows for picking the best expert after the scores were known"
    return Figure(gain_chart(gains), f"{caption}.") if gains else Html("")


def _meaning(f: Findings, found: Comparison, gain: Difference) -> str:
    """Sentences on the scale of the score, its measurement, and the scope of its interval."""
    k = len(f.forecasts.classes)
    worst, unit = f"saying {'50%' if k == 2 else f'{100 / k:.3g}% for each of the {k} classes'} every time", f"ln {k}"
    if f.forecasts.options is not None:
        worst, unit = "equal probabilities for all options of an event", "the logarithm of the number of options"
    scale = f"Score: the log score, scaled as 1 − log loss / {unit}, so that {worst} scores 0 and perfect forecasts 1."
    single = ""
    if gain.verdict in {"better", "worse"}:
        single = (
            " The interval is for this one comparison; opinionpool compare looks at many pools at once, with wider "
            "intervals, and may call the same difference unclear."
        )
    return f"{scale} {how_line(found)}.{single}"


def headline(f: Findings) -> list[str]:
    """In two sentences, whether the pool is better than the simple average on these forecasts."""
    found = f.comparison
    if isinstance(found, Missing):
        if f.pool == AVERAGE or f.forecasts.resolved.any():
            return []
        return ["No event is resolved, so nobody can say yet whether the pool is better than the simple average."]
    claim, *_ = _over_average(f, found)
    if f.pool == AVERAGE:
        return []
    own = next(pool for pool in found.pools if pool.pool == f.pool)
    on = f"On {counted(found.scored, 'resolved event')} that it had not learned from"
    ends = f"(0 is {_even(f, found)}, 1 is perfect)"
    gain = own.over_average
    sure = (
        "" if gain.verdict == "too few events" else f", {LEVEL:.0%} interval {signed(gain.low)} to {signed(gain.high)}"
    )
    both = f"it scored {decimal(own.score)}, the average {decimal(found.average.score)} {ends}"
    return [claim, f"{on}, {both}: a difference of {signed(gain.mean)}{sure}."]


def verdict(f: Findings) -> list[str]:
    """Whether the pool is better than the simple average, how sure that is, and what the base rate alone would do."""
    found = f.comparison
    if isinstance(found, Missing):
        return []
    texts = _over_average(f, found)
    if found.base is not None:
        of = "the share of the other events that happened (the base rate)"
        of = of if f.binary else "the outcomes’ shares of the other events (base rates)"
        texts.append(f"Answering every event with {of} would score {decimal(found.base.score)}.")
    return texts


def _even(f: Findings, found: Comparison) -> str:
    """Words for the forecasts whose score is 0."""
    return "saying 50% every time" if found.answers[f.pool].ndim == 1 else "saying the same of every class"


def _over_average(f: Findings, found: Comparison) -> list[str]:
    """Sentences on the gain over the simple average, with its interval."""
    own = next(pool for pool in found.pools if pool.pool == f.pool)
    gain, score, average = own.over_average, decimal(own.score), decimal(found.average.score)
    if f.pool == AVERAGE:
        return [f"The pool is the simple average. On {counted(found.scored, 'event')} it scored {score}."]
    others = {"time": "earlier outcomes", "group": "other groups"}.get(found.by or "", "other events")
    on = f"each of {counted(found.scored, 'resolved event')} was answered by a pool that had learned only from {others}"
    if gain.verdict == "too few events":
        few = markup("<b>There are too few events to measure what pooling gains.</b>")
        return [few, f"In a test, {on}. It scored {score}, the simple average {average}."]
    means = [percent(math.exp(-pool.log_loss)) for pool in (own, found.average)]
    test = (
        f"In a test, {on}. It gave the actual outcome a probability of {means[0]} on average (geometric mean), the "
        f"simple average gave it {means[1]}. That is a score of {score} against {average} (0 is {_even(f, found)}, 1 "
        "is perfect)"
    )
    span, limits = f"{abs(gain.mean):.3f}", f"({LEVEL:.0%} interval {signed(gain.low)} to {signed(gain.high)})"
    pool = "the pool, which combines the forecasts,"
    claim, end = {
        "better": (
            f"{pool} did better than the simple average",
            f", a statistically significant gain of {span} {limits}",
        ),
        "worse": (
            f"the simple average did better than {pool.rstrip(',')}",
            f", a statistically significant loss of {span} {limits}. Use the average",
        ),
        "the same": ("the pool and the simple average do the same", ""),
        "unclear": (
            f"whether {pool} is better than the simple average is unclear",
            f", {'ahead' if gain.mean > 0 else 'behind'} by {span} {limits}, which is not statistically significant",
        ),
    }[gain.verdict]
    return [markup("<b>{}</b>", sentence(claim)), f"{test}{end}."]


def _beside_best(best: ExpertScore, found: Comparison) -> Text:
    """Paragraph on the comparison of the pool with the best expert."""
    same = "" if best.events == found.scored else f" on the {counted(best.events, 'event')} that it answered"
    start = markup(
        "The best single expert, <b>{}</b>, scored {}{}; the pool scored {} on the same events.",
        name(best.expert), decimal(best.score), same, decimal(best.pool_score),
    )  # fmt: skip
    phrase = {
        "better": "That expert is better than the pool, significantly so.",
        "worse": "The pool is better, significantly so.",
        "the same": "They do the same.",
        "unclear": f"The difference is not significant: these {best.events} events do not show which is better.",
        "too few events": "Those are too few events to compare the two.",
    }[best.over_pool.verdict]
    hindsight = "It was picked as the best expert after the scores were known, which flatters it."
    return words(start, phrase, hindsight if len(found.experts) > 1 else "")


def _cards(f: Findings, found: Comparison, best: ExpertScore | None) -> Cards:
    """Cards with the scores of the pool, the simple average and the best expert."""
    k = len(f.forecasts.classes)

    def card(title: str, score: float, more: str = "", *, own: bool = False) -> Card:
        # The geometric mean of the probabilities of what happened.
        typical = percent(math.exp((score - 1.0) * math.log(k)))
        return Card(title, decimal(score), [f"gave the actual outcome {typical} on average{more}"], own=own)

    scores = {pool.pool: pool.score for pool in found.pools}
    cards = [] if f.pool == AVERAGE else [card("The pool", scores[f.pool], own=True)]
    cards.append(card("Simple average", scores[AVERAGE]))
    if best is not None:
        same = best.events == found.scored
        more = "" if same else f"; on {counted(best.events, 'event')}, where the pool has {decimal(best.pool_score)}"
        cards.append(card(markup("Best expert: {}", name(best.expert)), best.score, more))
    return Cards(cards)


def _scores(f: Findings, found: Comparison, best: ExpertScore | None) -> Table:
    """Table of skill, log loss, Brier score and AUC of the pool, the average, the base rate and the best expert."""
    pools = sorted(found.pools, key=lambda pool: pool.pool == AVERAGE)
    rows: list[tuple[str, Sequence[float]]] = [
        ("simple average" if pool.pool == AVERAGE else "the pool", (pool.skill, pool.log_loss, pool.brier, pool.auc))
        for pool in pools
    ]
    if found.base is not None:
        rows.append(("base rate alone", (0.0, found.base.log_loss, found.base.brier, math.nan)))
    if best is not None:
        answered = "" if best.events == found.scored else f" ({counted(best.events, 'event')})"
        rows.append((markup("{}{}", name(best.expert), answered), (math.nan, *_expert_scores(f, found, best))))
    titles = ("skill", "log loss", "Brier", *(["AUC"] if f.binary else []))
    columns = [
        Column(title, [finite(values[i]) for _, values in rows], title, decimal) for i, title in enumerate(titles)
    ]
    caption = "Skill: 0 is the base rate, the share of the other events that happened; 1 is perfect"
    caption += "; not computed for single experts" if best is not None else ""
    caption += ". Log loss and Brier score measure error: lower is better"
    if f.binary:
        caption += (
            ". AUC, the area under the ROC curve: of two events, how often the one that happened had the higher "
            "forecast"
        )
    return Table([Column("who", [who for who, _ in rows], "", page=str), *columns], caption)


def _expert_scores(f: Findings, found: Comparison, best: ExpertScore) -> tuple[float, float, float]:
    """Log loss, Brier score and area of one expert on the scored events that it answered."""
    forecasts = f.forecasts
    forecast = forecasts.X[:, forecasts.experts.index(best.expert)]
    scored = ~np.isnan(found.scores[found.reference]) & ~np.isnan(forecast.reshape(len(forecast), -1)).any(axis=1)
    forecast, outcomes = forecast[scored], forecasts.outcomes[scored]
    area = auc(forecast, outcomes).area if f.binary and len(np.unique(outcomes)) == 2 else math.nan
    return (1.0 - best.score) * math.log(len(forecasts.classes)), float(np.mean(brier(forecast, outcomes))), area
