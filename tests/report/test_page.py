"""The report: its numbers are those from Python, it is valid and self-contained, and nothing in a name is code."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import opinionpool as op
from opinionpool.analysis.explanation import steps, weight_table
from opinionpool.analysis.sensitivity import sensitivity
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.report import answers, comparison as gains, findings as reportdata
from opinionpool.report.answers import coverage
from opinionpool.report.findings import ReportOptions, best_expert, find
from opinionpool.report.listing import brief, decimal, percent
from opinionpool.report.page import Source, make_report, report_page
from opinionpool.report.view import size_line
from tests.panels import drawn, panel

VOID = {"meta", "br", "img", "hr", "input", "link"}
# Elements of SVG that are closed at once.
EMPTY = {"line", "rect", "circle", "path"}


@pytest.fixture(autouse=True, scope="module")
def quick():
    """One round of everything: these tests are about what is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reportdata, "ROUNDS", 1)
        patch.setattr(reportdata, "MANY", 0)
        yield


class Page(HTMLParser):
    """Checks nesting; keeps text by section, the rows of tables, ids and links."""

    def __init__(self, page):
        super().__init__()
        self.open, self.sections, self.rows, self.ids, self.links, self.labels = [], {}, {}, [], [], []
        self.here, self.tags = "head", set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        found = dict(attributes)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "section":
            self.here = found["id"]
        self.links += [found[key] for key in ("href", "src", "xlink:href", "action", "data") if key in found]
        if found.get("role") == "img":
            self.labels.append(found.get("aria-label"))
        assert not [key for key in found if key.startswith("on")]
        if tag == "tr":
            self.rows.setdefault(self.here, []).append([])
        if tag in ("td", "th"):
            self.rows[self.here][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in EMPTY
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open or "svg" in self.open:
            return
        self.sections[self.here] = self.sections.get(self.here, "") + data
        if {"td", "th"} & set(self.open):
            self.rows[self.here][-1][-1] += data

    def row(self, section, first):
        """The cells of the row that begins with a text."""
        return next(row for row in self.rows[section] if row and row[0] == first)


@pytest.fixture(scope="module")
def found(quick):
    return find(panel(unresolved=6))


@pytest.fixture(scope="module")
def found_of_classes(quick):
    return find(drawn(40, classes="abc", unresolved=0.1))


@pytest.fixture(scope="module")
def found_open(quick):
    """With eight open events."""
    return find(panel(unresolved=8))


def minus(shown):
    return shown.replace("-", "−")


def test_its_numbers_are_those_from_python(found):
    forecasts = found.forecasts
    page = Page(report_page(found))
    state = fit_pool("gaussian", forecasts)

    compared = op.compare_pools(forecasts, ["average", "gaussian"], repeats=1)
    scores = {pool.pool: pool for pool in compared.pools}
    gains = page.sections["gains"]
    for pool in scores.values():
        assert decimal(pool.score) in gains
        assert percent(math.exp((pool.score - 1) * math.log(2))) in gains
    over = scores["gaussian"].over_average
    assert minus(f"{over.low:+.3f} to {over.high:+.3f}") in gains
    own, average = page.row("gains", "the pool"), page.row("gains", "simple average")
    for row, pool in ((own, scores["gaussian"]), (average, scores["average"])):
        assert row[1:] == [decimal(pool.skill), decimal(pool.log_loss), decimal(pool.brier), decimal(pool.auc)]
    best = best_expert(compared)
    assert minus(f"{best.expert}, scored {decimal(best.score)}; the pool scored") in gains
    base = page.row("gains", "base rate alone")
    assert base[1:4] == ["0.000", decimal(compared.base.log_loss), decimal(compared.base.brier)]
    same = "Answering every event with the share of the other events that happened (the base rate) would score"
    assert minus(f"{same} {decimal(compared.base.score)}.") in gains

    p = state.pool(forecasts.X)
    low, high = state.interval(forecasts.X)
    assert len(page.rows["open"]) == 1 + 6
    for i in range(6):
        interval = f"{brief(float(low[i]))} to {brief(float(high[i]))}"
        average = brief(float(forecasts.X[i].mean()))
        assert page.row("open", f"event_{i + 1}") == [f"event_{i + 1}", "", brief(float(p[i])), interval, "4", average]
    assert [row[0] for row in page.rows["open"][1:]] == [f"event_{i + 1}" for i in np.argsort(-p[:6])]

    columns = {column.key: column for column in answers.expert_columns(forecasts, state)}
    table = weight_table(state)
    for i, expert in enumerate(table.experts):
        place = columns["expert"].values.index(expert)
        features = [columns[key].show(columns[key].values[place]) for key in ("bias", "calibration", "accuracy", "auc")]
        weight = [f"{table.weight[i]:.3f}", f"{table.low[i]:.2f} to {table.high[i]:.2f}"]
        assert page.row("experts", expert) == [expert, "", *map(minus, weight), "54"]
        assert page.row("features", expert) == [expert, *map(minus, features), "60", "54"]
    assert [row[0] for row in page.rows["experts"][1:]] == list(table.experts)
    answered = found.comparison.answers["gaussian"][6:]
    assert f"{100 * float(np.mean((answered > 0.5) == forecasts.outcomes[6:])):.1f}%" in page.sections["worth"]
    assert size_line(forecasts) in page.sections["head"]


def test_the_page_is_whole_valid_and_needs_nothing(found):
    source = Source("panel.csv", "1 May 2026", "opinionpool report panel.csv -o page.html", (("panel.csv", "0" * 64),))
    written = report_page(replace(found, options=replace(found.options, source=source)))
    page = Page(written)
    assert written.startswith("<!DOCTYPE html>\n")
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.links) == len(re.findall("<h2>", written)) == 11
    assert list(page.sections)[1:] == [link[1:] for link in page.links]
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert "http" not in written
    assert "url(" not in written
    assert "@import" not in written
    assert all(page.labels)
    assert len(page.labels) >= 4
    assert "0" * 64 in page.sections["method"]
    assert "opinionpool report panel.csv -o page.html" in page.sections["method"]
    assert "1 May 2026" in page.sections["head"]
    assert report_page(find(panel(unresolved=6), options=ReportOptions(source))) == written
    assert not re.search(r"\b(nan|None|inf)\b", " ".join(page.sections.values()))


EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style></title></svg>'&amp;", "שלום עולם",
    "{0} {} %s", "\x00\x1b[31m\ufffe\u202eabc",
]  # fmt: skip


def topical(events=60):
    f = panel(events, unresolved=6)
    return replace(f, topics=np.array([("sport", "politics", "weather")[t % 3] for t in range(len(f.events))]))


def test_nobody_meets_log_odds_before_the_part_for_statisticians(found, found_of_classes):
    for each in (found, found_of_classes, find(topical())):
        before = report_page(each).partition('class="turn"')[0]
        assert "<h2>Method</h2>" not in before
        assert "log-odds" not in before
        assert "logarithm" not in before.partition('id="gains"')[0]


def test_intervals_are_claimed_as_measured(found):
    told = Page(report_page(found)).sections["open"]
    row = coverage(int(found.forecasts.resolved.sum()), len(found.forecasts.experts))
    assert f"contained the true probability in {100 * row.mean:.0f} of 100 answers" in " ".join(told.split())
    assert "with 90% probability" not in told


def test_nothing_in_a_name_is_code():
    forecasts = panel(experts=len(EVIL), names=EVIL, unresolved=6)
    events = tuple(EVIL + [f"event {i}" for i in range(len(EVIL), len(forecasts.events))])
    forecasts = Forecasts.from_array(
        forecasts.X, [None if c < 0 else ("<i>no", "yes'\"")[c] for c in forecasts.outcomes], events=events,
        experts=EVIL, classes=("<i>no", "yes'\""),
    )  # fmt: skip
    evil = "<script>alert(2)</script>"
    written = make_report(forecasts, source=Source(evil, evil, evil, ((evil, "0"),)))
    page = Page(written)
    assert not page.tags & {"script", "img", "i"}
    for raw in ("<script", "<img", "</style><", "<i>", "\x00", "\x1b", "\ufffe", "\u202e"):
        assert raw not in written.replace("</style>\n</head>", "")
    for section in ("open", "experts"):
        first = [row[0] for row in page.rows[section]]
        assert all(said in first for said in EVIL[:5])
    assert evil in page.sections["head"]


@pytest.mark.parametrize("pool", [pool for pool in POOLS if pool != "gaussian"])
def test_every_pool_can_be_reported(pool):
    page = Page(make_report(panel(24, unresolved=6), pool))
    state = fit_pool(pool, panel(24, unresolved=6))
    if state.weights is None:
        assert "has no weights" in page.sections["experts"]
    else:
        assert page.row("experts", "expert_1")[2] == minus(f"{float(state.weights[0]):.3f}")


@pytest.mark.parametrize(
    ("forecasts", "told"),
    [
        (panel(experts=1, unresolved=6), {"errors": "one expert only"}),
        (panel(unresolved=60), {"gains": "No event is resolved", "basis": "believed", "worth": "errors are unrelated"}),
        (panel(), {"open": "Every event is resolved"}),
        (panel(2), {"gains": "too few events", "learning": "at least"}),
        (panel(1), {"open": "Every event is resolved", "gains": "cannot be measured yet"}),
        (panel(events=30, missing=0.6, experts=3, unresolved=2), {}),
        (drawn(40, classes="abc", unresolved=1), {"gains": "cannot be measured yet"}),
        (Forecasts.from_array(np.full((12, 2), 0.7), [1] * 12), {}),
    ],
    ids=["expert", "open", "resolved", "two events", "event", "gaps", "open classes", "alike"],
)  # fmt: skip
def test_what_cannot_be_shown_says_why(forecasts, told):
    page = Page(make_report(forecasts))
    for section, words in told.items():
        assert words in page.sections[section]
    assert not re.search(r"\b(nan|None|inf)\b", " ".join(page.sections.values()))


def test_events_with_options_of_their_own_have_a_row_for_each():
    q = [[[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]], [[0.5, 0.5, 0], [0.6, 0.4, 0]]] * 8
    outcomes = ["a", "x"] * 6 + ["a", "<y>", None, None]
    forecasts = Forecasts.from_array(q, outcomes, options=[["a", "b", "c"], ["x", "<y>"]] * 8)
    page = Page(make_report(forecasts, sort="file"))
    assert [row[:2] for row in page.rows["open"][1:]] == [
        ["event_15", "a"], ["", "b"], ["", "c"], ["event_16", "x"], ["", "<y>"],
    ]  # fmt: skip
    shares = [float(row[3].rstrip("%")) for row in page.rows["open"][4:]]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert "equal probabilities for all options of an event scores 0" in page.sections["gains"].replace("’", "'")
    assert "Biases" not in page.sections["features"]


def test_many_experts_and_events_are_cut_and_that_is_said():
    forecasts = panel(events=700, experts=60, unresolved=660)
    written = make_report(forecasts)
    page = Page(written)
    assert len(written.encode()) < 3_000_000
    assert len(page.rows["open"]) == 2 + 25 + 500
    assert "135 are left out" in page.sections["open"]
    assert len(page.rows["experts"]) == 2 + 60
    assert "20 other experts are left out" in page.sections["errors"]
    assert "52 other experts are not drawn" in page.sections["calibration"]


def test_what_flatters_the_scores_stands_beside_them():
    forecasts = panel()
    rare = Forecasts.from_array(forecasts.X, [1, *[0] * 59])
    page = Page(make_report(rare))
    assert "Mind: Only 1 event had another outcome" in page.sections["gains"]
    assert "another outcome" not in page.sections["checks"]


def test_beliefs_are_told():
    from opinionpool.learning.beliefs import Beliefs

    page = Page(make_report(panel(unresolved=6), beliefs=Beliefs(correlation=0.3)))
    assert ["all experts", "correlation of errors", "0.3", "20 events"] in page.rows["basis"]
    for beliefs, told in [(None, "what is assumed of any panel"), (Beliefs(correlation=0.3), "what is believed of")]:
        page = Page(make_report(panel(unresolved=60), beliefs=beliefs))
        assert told in page.sections["experts"]


def test_a_model_that_was_not_looked_at_is_not_said_to_hold(found):
    told = "7 checks looked for signs"
    assert told in Page(report_page(found)).sections["checks"]
    page = Page(make_report(panel(2)))
    assert told not in page.sections["checks"]
    assert "There are too few forecasts or outcomes to check the model" in page.sections["checks"]


@pytest.mark.parametrize(
    ("arguments", "told"), [({"by": "time"}, "no column says when"), ({"sort": "loudest"}, "sort must be one of")]
)
def test_wrong_arguments_are_errors_and_no_missing_parts(arguments, told):
    with pytest.raises(op.ArgumentError, match=told):
        make_report(panel(unresolved=6), **arguments)


def test_few_open_events_are_cards_and_explained():
    forecasts = panel(unresolved=2)
    page = Page(make_report(forecasts, sort="file"))
    state = fit_pool("gaussian", forecasts)
    p = state.pool(forecasts.X)
    why = op.explain_event(forecasts, 0, state)
    assert "open" not in page.rows
    for i in range(2):
        assert brief(float(p[i])) in page.sections["open"]
    for i, expert in enumerate(why.experts):
        row = page.row("why", expert)
        assert row[1] == brief(float(forecasts.X[0, i]))
        assert row[-1] == brief(float(why.without[i]))
        assert page.row("experts", expert)[4:6] == [brief(float(q)) for q in forecasts.X[:2, i]]
    assert steps(why, 1)[-1].after == pytest.approx(float(why.probability), abs=1e-9)


def test_events_are_called_by_their_questions():
    text = f"Will <it> rain? {'very ' * 60}"
    forecasts = replace(Forecasts.from_array([[0.4, 0.6], [0.2, 0.3]], events=["q1", "q2"]), texts=(text, ""))
    page = Page(make_report(forecasts))
    assert "Why: Will <it> rain? very" in page.sections["why"]
    assert "… q1" in page.sections["open"]
    assert text not in page.sections["open"]
    assert "q2" in page.sections["open"]
    assert page.rows["experts"][0][-3:-1] == ["forecast: q1", "forecast: q2"]


def test_calibration_and_learning_wait_for_ten_events():
    for t, shown in ((9, False), (10, True)):
        page = Page(make_report(panel(t, 2)))
        assert any("Reliability" in each for each in page.labels) == shown
        assert ("9 resolved events cannot show it" in page.sections["calibration"]) != shown


def test_an_answer_that_rests_on_beliefs_shows_how_much_each_matters():
    from opinionpool.learning.beliefs import Beliefs

    forecasts = Forecasts.from_array([[0.7, 0.6, 0.8]], [None], experts=["ann", "bob", "cy"])
    beliefs = Beliefs(correlation=(0.5, 30), calibration=(0.8, 10), experts={"ann": {"auc": (0.85, 20)}})
    page = Page(make_report(forecasts, prior=0.4, beliefs=beliefs))
    for effect in sensitivity(forecasts, 0, beliefs, 0.4):
        low, high = effect.answers
        assert any(row[-1] == f"{brief(low)} to {brief(high)}" for row in page.rows["basis"])
    assert ["ann", "AUC", "0.85", "20 events"] in page.rows["basis"]
    assert not {"calibration", "learning", "errors"} & set(page.sections)


@pytest.mark.parametrize("sort", ["probability", "interval", "disagreement", "event", "file"])
def test_open_events_are_in_the_order_asked_for(found_open, sort):
    forecasts, state = found_open.forecasts, found_open.state
    low, high = (end[:8] for end in state.interval(forecasts.X))
    x = forecasts.X[:8]
    keys = {
        "probability": -state.pool(forecasts.X)[:8], "interval": low - high,
        "disagreement": x.min(axis=1) - x.max(axis=1), "event": np.arange(8), "file": np.arange(8),
    }  # fmt: skip
    page = Page(report_page(replace(found_open, options=replace(found_open.options, sort=sort))))
    order = np.argsort(keys[sort], kind="stable")
    assert [row[0] for row in page.rows["open"][1:]] == [f"event_{i + 1}" for i in order]


def test_headline_and_learning_curve_make_the_same_claim():
    found = find(panel(80))
    own = next(pool for pool in found.comparison.pools if pool.pool == "gaussian")
    curve = found.curve
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((own.over_average.low, own.over_average.high), abs=1e-12)
    assert curve.score[-1] == pytest.approx(own.score, abs=1e-12)
    assert curve.average[-1] == pytest.approx(found.comparison.average.score, abs=1e-12)


def test_six_events_are_too_few_for_a_claim():
    found = find(panel(6, 2))
    assert {pool.over_average.verdict for pool in found.comparison.pools if pool.pool != "average"} == {
        "too few events"
    }
    section = str(gains.gains_section(found).html())
    assert "There are too few events to measure what pooling gains." in section
    assert "more than chance" not in section
