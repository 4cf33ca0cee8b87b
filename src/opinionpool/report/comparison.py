"""Scores of pools out of sample, for the command ``compare`` and as a section of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace

from opinionpool.logodds import FLOOR
from opinionpool.report.blocks import (
    Block,
    Card,
    Html,
    Section,
    Table,
    beside,
    cards,
    figure,
    markup,
    missing,
    name,
    note,
    sentence,
    words,
)
from opinionpool.report.charts import gain_chart
from opinionpool.report.findings import Missing, ReportData, best_expert
from opinionpool.report.groups import score_columns, topic_facts
from opinionpool.report.listing import (
    Column,
    as_is,
    decimal,
    finite,
    gained,
    limit,
    percent,
    printable,
    records,
    signed,
    whole,
)
from opinionpool.report.view import View
from opinionpool.scoring.compare import AVERAGE, BaseRate, Comparison, ExpertScore
from opinionpool.scoring.intervals import FEWEST_CLUSTERS, LEVEL, Difference
from opinionpool.text import are, counted

# Number of experts that tables show at either end of the list.
SHOWN = 5


def pool_columns(found: Comparison) -> list[Column]:
    """Return columns with the scores of each pool, a row for each, the best first."""
    pools = found.pools
    area, skill = [finite(pool.auc) for pool in pools], [finite(pool.skill) for pool in pools]
    verdicts = ["reference" if pool.pool == AVERAGE else pool.over_average.verdict for pool in pools]
    beside = [None if pool.pool == AVERAGE else pool.over_average for pool in pools]
    return [
        Column("pool", [pool.pool for pool in pools], "pool"),
        Column("events", [found.scored] * len(pools), None),
        Column("score", [finite(pool.score) for pool in pools], "score", decimal),
        Column("skill", skill, None if all(x is None for x in skill) else "skill", decimal),
        Column("standard_error", [finite(pool.standard_error) for pool in pools], "±", decimal, spare=5),
        Column("in_sample", [finite(pool.in_sample) for pool in pools], "in-sample", decimal, spare=4),
        Column("log_loss", [finite(pool.log_loss) for pool in pools], "log loss", decimal, spare=3),
        Column("brier", [finite(pool.brier) for pool in pools], "Brier", decimal, spare=2),
        Column("auc", area, None if all(x is None for x in area) else "AUC", decimal, spare=1),
        *difference_columns("over_average", "gain", beside),
        Column("verdict", verdicts, "verdict"),
        *difference_columns("over_best", None, [pool.over_best for pool in pools]),
    ]


def with_base_rate(columns: Sequence[Column], base: BaseRate) -> list[Column]:
    """Return `columns` with a last row: the scores of a forecast that is always the base rate."""
    last = {
        "pool": "base rate",
        "score": finite(base.score),
        "skill": 0.0,
        "standard_error": finite(base.standard_error),
        "log_loss": finite(base.log_loss),
        "brier": finite(base.brier),
        "over_average_range": "",
        "over_best_range": "",
        "verdict": "no forecast",
    }
    return [replace(column, values=[*column.values, last.get(column.key)]) for column in columns]


def expert_columns(found: Comparison) -> list[Column]:
    """Return columns with a row for each expert; first come those whose score exceeds the pool's by most."""
    experts = found.experts
    lost, coverage = [expert.at_floor for expert in experts], [finite(expert.coverage) for expert in experts]
    return [
        Column("expert", [expert.expert for expert in experts], "expert"),
        Column("events", [expert.events for expert in experts], "events", whole),
        Column("score", [expert.score for expert in experts], "score", decimal),
        Column("pool_score", [expert.pool_score for expert in experts], found.reference, decimal, spare=1),
        Column("coverage", coverage, "coverage" if found.time_averaged else None, percent),
        Column("at_floor", lost, "at floor" if any(lost) else None, whole, spare=2),
        *difference_columns("over_pool", "gain", [expert.over_pool for expert in experts]),
        Column("verdict", [expert.over_pool.verdict for expert in experts], "verdict"),
    ]


def difference_columns(key: str, title: str | None, differences: Sequence[Difference | None]) -> list[Column]:
    """Columns of differences and their limits, named by `key`; in tables for people the limits are one text."""
    known = [difference or Difference(math.nan, math.nan, math.nan) for difference in differences]
    ranges = ["" if math.isnan(d.low) else f"{limit(d.low)} to {limit(d.high)}" for d in known]
    return [
        Column(key, [finite(d.mean) for d in known], title, signed),
        Column(f"{key}_low", [finite(d.low) for d in known], None),
        Column(f"{key}_high", [finite(d.high) for d in known], None),
        Column(f"{key}_range", ranges, None if title is None else "from … to", as_is, machine=False),
    ]


def verdict_lines(found: Comparison) -> list[str]:
    """Return sentences with the conclusions of a comparison: which pools and experts score better."""
    lines, best = _best(found), found.best
    others = [] if best.pool == AVERAGE else [pool for pool in found.pools[1:] if pool.pool != AVERAGE]
    behind = [pool.pool for pool in others if pool.over_best.verdict == "worse"]
    rivals = [pool.pool for pool in others if pool.over_best.verdict != "worse"]
    if behind and rivals:
        lines.append(f"Worse than {best.pool}: {', '.join(behind)}. Not distinguishable from it: {', '.join(rivals)}.")
    elif behind:
        lines.append(f"Every other pool is worse than {best.pool}.")
    return lines + _single(found) + _experts(found)


def _single(found: Comparison) -> list[str]:
    """Sentence on the pool against the simple average alone, if comparing all pools leads to another conclusion."""
    own = next((pool for pool in found.pools if pool.pool == found.reference), None)
    single = found.single
    if own is None or single is None or single.verdict == own.over_average.verdict:
        return []
    gain, others = gained(single.mean, single.low, single.high), len(found.pools) - 1
    return [
        f"{own.pool} against the average, a single comparison as in the report, is {single.verdict}: {gain}. The "
        f"intervals of the table are wider, as they allow for looking at {others} pools."
    ]


def _best(found: Comparison) -> list[str]:
    """Return sentences: which pool scored best, and which scored better or worse than the simple average."""
    best, on = found.best, counted(found.scored, "event")
    others = [pool for pool in found.pools if pool.pool not in {AVERAGE, best.pool}]
    loose = [pool.pool for pool in found.pools if not pool.over_average.is_firm(found.units)]
    better = [pool.pool for pool in others if pool.over_average.verdict == "better"]
    worse = [pool.pool for pool in others if pool.over_average.verdict == "worse"]
    gain = best.over_average
    if found.units < FEWEST_CLUSTERS:
        on = on if found.unit == "event" else f"{on} on {counted(found.units, found.unit)}"
        which = "the simple average" if best.pool == AVERAGE else best.pool
        return [f"{which} is best here, but {on} {are(found.scored)} too few to say which differences are real."]
    if best.pool == AVERAGE:
        lines = [f"The simple average is best on {'this' if found.scored == 1 else 'these'} {on}."]
    elif gain.verdict == "better":
        span = gained(gain.mean, gain.low, gain.high)
        lines = [f"{best.pool} is best here, and better than the simple average: {span}."]
    elif better or worse:
        lines = [f"{best.pool} is best here, but on {on} it cannot be distinguished from the simple average."]
    else:
        lines = [f"{best.pool} is best here, but on {on} no pool can be distinguished from the simple average."]
    if found.base is not None and best.skill <= 0:
        lines.append("The base rate alone is no worse than any pool.")
    if better:
        also = "Also better" if gain.verdict == "better" else "Better"
        lines.append(f"{also} than the simple average: {', '.join(better)}.")
    if worse:
        lines.append(f"Worse than {'it' if better else 'the simple average'}: {', '.join(worse)}.")
    if loose:
        lines.append(f"Not firm, as two other outcomes could leave it open: {', '.join(loose)}.")
    return lines


def _experts(found: Comparison) -> list[str]:
    """Return the sentence on how many experts scored better or worse than the pool; empty without experts."""
    if not found.experts:
        return []
    better = [e.expert for e in found.experts if e.over_pool.verdict == "better"]
    worse = sum(e.over_pool.verdict == "worse" for e in found.experts)
    phrase = f"{len(better)} better ({', '.join(better[:3])}{', …' * (len(better) > 3)})" if better else "none better"
    few = sum(e.over_pool.verdict == "too few events" for e in found.experts)
    rest = len(found.experts) - len(better) - worse - few
    too_few = f", {whole(few)} with too few events to say" if few else ""
    return [
        f"Of {counted(len(found.experts), 'expert')}, each on the events that it answered itself: {phrase} than the "
        f"{found.reference} pool, {whole(worse)} worse, {whole(rest)} not distinguishable{too_few}."
    ]


def how_line(found: Comparison) -> str:
    """Return the sentence on how many events were scored, and by which method of cross-validation."""
    if found.by == "time":
        way = f"forward in time, {counted(found.folds, 'block')}"
    else:
        what = "groups" if found.by == "group" else "events"
        times = "once" if found.rounds == 1 else f"{found.rounds} times"
        way = f"{found.folds}-fold cross-validation over {what}, done {times}"
    line = f"{counted(found.scored, 'event')} scored by pools that had not learned from them ({way})"
    return f"{line}, averaged over each event's life until it closed" if found.time_averaged else line


def meaning_lines(found: Comparison) -> list[str]:
    """Return sentences that explain the columns of the table of scores."""
    gain = "gain: score less that of the simple average"
    if found.experts:
        gain += f" (experts: less that of the {found.reference} pool on the same events)"
    if found.units >= FEWEST_CLUSTERS:
        of = counted(found.units, found.unit)
        gain += f"; {LEVEL:.0%} intervals that hold for all rows of a table at once, from {of}"
    lines = ["score: 0 = uninformed, 1 = perfect (normalised log score)"]
    if found.base is not None:
        lines.append("skill: 0 = the base rate alone, 1 = perfect")
    lines.append(gain)
    if found.time_averaged and found.experts:
        lines.append("coverage: the part of the events' lives for which a forecast by the expert stood")
    if any(expert.at_floor for expert in found.experts):
        lines.append(f"at floor: events that the expert called all but impossible; they count as {percent(FLOOR)}")
    return lines


def comparison_view(found: Comparison, *, table: bool) -> View:
    """Return the view of a comparison; as `table`, it shows only some of the experts, and sentences below the table."""
    pools, experts = pool_columns(found), expert_columns(found)
    below: list[Sequence[Column] | str] = []
    if found.experts:
        n, hidden = len(found.experts), len(found.experts) - 2 * SHOWN
        kept = range(n) if hidden < 2 else [*range(SHOWN), *range(n - SHOWN, n)]
        below.append([column.take(kept) for column in experts])
        if hidden > 1:
            below.append(f"({counted(hidden, 'expert')} between the first and the last {SHOWN} are in CSV and JSON)")
    below += [score_columns(found), "", *verdict_lines(found), "", how_line(found), *meaning_lines(found)]
    return View(
        "pools",
        with_experts(pools, experts),
        comparison_facts(found),
        [] if table else verdict_lines(found),
        below=below,
        table=pools if found.base is None else with_base_rate(pools, found.base),
        nested=records(pools),
    )


def with_experts(pools: Sequence[Column], experts: Sequence[Column]) -> list[Column]:
    """Return `pools` with a row added for each expert, and a column that says if a row is a pool or an expert."""
    parts = [{column.key: column for column in columns if column.machine} for columns in (pools, experts)]
    rows = len(pools[0].values), len(experts[0].values)
    kinds = Column("kind", ["pool"] * rows[0] + ["expert"] * rows[1], None)

    def values(key: str) -> list[object]:
        beside = zip(parts, rows, strict=True)
        return [x for part, n in beside for x in (part[key].values if key in part else [None] * n)]

    return [kinds, *(Column(key, values(key), None) for key in parts[0] | parts[1])]


def comparison_facts(found: Comparison) -> dict[str, object]:
    """Return facts for JSON: how pools were compared, which are better, and the experts' scores."""
    design = ("scored", "by", "folds", "rounds", "unit", "units", "reference", "time_averaged")
    return {key: getattr(found, key) for key in design} | {
        "level": LEVEL,
        "best": found.best.pool,
        "base_rate": None if found.base is None else {name: finite(x) for name, x in asdict(found.base).items()},
        "verdict": verdict_lines(found),
        "experts": list(records(expert_columns(found))),
        **topic_facts(score_columns(found)),
    }


def gains_section(f: ReportData) -> Section:
    """Return the section on the pool's scores, compared with the simple average and the best single expert."""
    title = "How good the pool is"
    if isinstance(f.comparison, Missing):
        why = f.comparison.reason
        if not f.forecasts.resolved.any():
            why = "no event is resolved, so the answers rest on what is assumed of the experts"
        return Section("gains", title, [missing(why, "It cannot be measured yet.")])
    found, best = f.comparison, best_expert(f.comparison)
    gain = f.score_of(found).over_average
    base = "" if found.base is None else decimal(found.base.score)
    of = "the share of the other events that happened" if f.binary else "the outcomes’ shares of the other events"
    of_base = f"Answering every event with {of} (the base rate) would score {base}." if base else ""
    average = f"The pool is the simple average. On {counted(found.scored, 'event')} it scored"
    average = f"{average} {decimal(found.average.score)}." if f.pool == AVERAGE else ""
    lead = words(average, *headline(f), of_base, kind="lead")
    caveats = [note(markup("<b>Mind:</b> {}", sentence(each.text))) for each in f.caveats]
    meaning = note(_meaning(f, found, gain))
    if gain.verdict == "too few events":
        # Large numbers and intervals would promise more than so few events can show.
        return Section("gains", title, [lead, meaning, *caveats])
    texts: list[Block] = [] if best is None else [_beside_best(best, found)]
    texts.append(_scores(f, found))
    return Section(
        "gains", title, [lead, _cards(f, found, best), beside(texts, _chart(f, gain, best)), meaning, *caveats]
    )


def _chart(f: ReportData, gain: Difference, best: ExpertScore | None) -> Block:
    """Figure of the pool's gain in score over the simple average of forecasts, and over the best expert."""
    gains = {} if f.pool == AVERAGE else {"the simple average": gain}
    caption = f"How much better the pool scored, with {LEVEL:.0%} intervals"
    if best is not None:
        over = best.over_pool
        gains[printable(best.expert)] = Difference(0.0 - over.mean, 0.0 - over.high, 0.0 - over.low)
        caption += "; that over the expert allows for picking the best expert after the scores were known"
    return figure(gain_chart(gains), f"{caption}.") if gains else Html("")


def _meaning(f: ReportData, found: Comparison, gain: Difference) -> str:
    """Return sentences on what the score means, how it was measured, and how to read the interval of the difference."""
    k = len(f.forecasts.classes)
    worst, unit = f"saying {'50%' if k == 2 else f'{100 / k:.3g}% for each of the {k} classes'} every time", f"ln {k}"
    if f.forecasts.options is not None:
        worst, unit = "equal probabilities for all options of an event", "the logarithm of the number of options"
    scale = f"Score: the log score, scaled as 1 − log loss / {unit}, so that {worst} scores 0 and perfect forecasts 1."
    single = ""
    if gain.verdict != "too few events":
        single = (
            " The interval is for this one comparison; opinionpool compare looks at many pools at once, with wider "
        )
        single += "intervals." if gain.verdict == "unclear" else "intervals, and may call the same difference unclear."
    return f"{scale} {how_line(found)}.{single}"


def headline(f: ReportData) -> list[str]:
    """Return two sentences on whether the pool scored better than the simple average of these forecasts."""
    found = f.comparison
    if isinstance(found, Missing):
        if f.pool == AVERAGE or f.forecasts.resolved.any():
            return []
        return ["No event is resolved, so nobody can say yet whether the pool is better than the simple average."]
    if f.pool == AVERAGE:
        return []
    own = f.score_of(found)
    gain, few = own.over_average, own.over_average.verdict == "too few events"
    claim = {
        "better": "The pool, which combines the forecasts, did better than the simple average",
        "worse": "The simple average did better than the pool, which combines the forecasts",
        "the same": "The pool, which combines the forecasts, and the simple average do the same",
        "unclear": "Whether the pool, which combines the forecasts, is better than the simple average is unclear",
        "too few events": "There are too few events to measure what pooling gains",
    }[gain.verdict]
    claim += _reservation(gain, found.units) or (": use the average" if gain.verdict == "worse" else "")
    others = {"time": "earlier outcomes", "group": "other groups"}.get(found.by or "", "other events")
    zero = "saying 50% every time" if found.answers[f.pool].ndim == 1 else "saying the same of every class"
    sure = "" if few else f", {LEVEL:.0%} interval {limit(gain.low)} to {limit(gain.high)}"
    sure += ", which is not statistically significant" if gain.verdict == "unclear" else ""
    measured = (
        f"On {counted(found.scored, 'resolved event')}, each answered by a pool that had learned only from {others}, "
        f"it scored {decimal(own.score)}, the average {decimal(found.average.score)} (0 is {zero}, 1 is perfect): a "
        f"difference of {signed(gain.mean)}{sure}."
    )
    return [markup("<b>{}.</b>", claim), measured]


def _reservation(difference: Difference, clusters: int) -> str:
    """Return a clause, to be added to a verdict, that it may change with two outcomes; empty if it is firm."""
    return "" if difference.is_firm(clusters) else ", but two other outcomes could leave that open"


def _beside_best(best: ExpertScore, found: Comparison) -> Html:
    """Return the paragraph that compares the scores of the pool and the best expert."""
    same = "" if best.events == found.scored else f" on the {counted(best.events, 'event')} that it answered"
    start = markup(
        "The expert who did best against the pool, <b>{}</b>, scored {}{}; the pool scored {} on the same events.",
        name(best.expert), decimal(best.score), same, decimal(best.pool_score),
    )  # fmt: skip
    reservation = _reservation(best.over_pool, min(best.events, found.units))
    phrase = {
        "better": f"That expert is better than the pool, significantly so{reservation}.",
        "worse": f"The pool is better, significantly so{reservation}.",
        "the same": "They do the same.",
        "unclear": f"The difference is not significant: these {best.events} events do not show which is better.",
        "too few events": "Those are too few events to compare the two.",
    }[best.over_pool.verdict]
    hindsight = "It was picked as the best expert after the scores were known, which flatters it."
    return words(start, phrase, hindsight if len(found.experts) > 1 else "")


def _cards(f: ReportData, found: Comparison, best: ExpertScore | None) -> Html:
    """Return cards with the scores of the pool, the simple average and the best expert."""
    k = len(f.forecasts.classes)

    def card(title: str, score: float, more: str = "", *, own: bool = False) -> Card:
        # The geometric mean of the probabilities of what happened.
        typical = percent(math.exp((score - 1.0) * math.log(k)))
        return Card(title, decimal(score), [f"gave the actual outcome {typical} on average{more}"], own=own)

    scores = {pool.pool: pool.score for pool in found.pools}
    shown = [] if f.pool == AVERAGE else [card("The pool", scores[f.pool], own=True)]
    shown.append(card("Simple average", scores[AVERAGE]))
    if best is not None:
        same = best.events == found.scored
        more = "" if same else f"; on {counted(best.events, 'event')}, where the pool has {decimal(best.pool_score)}"
        shown.append(card(markup("Best expert against it: {}", name(best.expert)), best.score, more))
    return cards(shown)


def _scores(f: ReportData, found: Comparison) -> Table:
    """Table of scores (skill, log loss, Brier score, AUC) of the pool, the simple average and the base rate."""
    names = {AVERAGE: "simple average", "base rate": "base rate alone"}
    pools = pool_columns(found) if found.base is None else with_base_rate(pool_columns(found), found.base)
    shown = [each for each in pools if each.key in {"skill", "log_loss", "brier", "auc"} and each.title is not None]
    who: list[str] = [names.get(pool, "the pool") for pool in pools[0].values]
    caption = "Skill: 0 is the base rate, the share of the other events that happened; 1 is perfect"
    caption += ". Log loss and Brier score measure error: lower is better"
    if f.binary:
        caption += ". AUC, the area under the ROC curve: of two events, how often the one that happened had the higher "
        caption += "forecast"
    return Table([Column("who", who, "", page=str), *shown], caption)
