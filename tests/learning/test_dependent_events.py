"""Events that share a group or a date count for what they tell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.forecasts import Forecasts
from opinionpool.learning import screening
from opinionpool.learning.learn import learn
from opinionpool.pools.registry import fit_pool
from opinionpool.tables.read import read_forecasts


def expit(x):
    return 1 / (1 + np.exp(-x))


def simulated(rng, clusters, size, shared, lasting=0.0, unit="group"):
    """Calibrated forecasts of events whose outcomes have a surprise in common within a cluster, in log-odds."""
    surprise = np.zeros(clusters)
    surprise[0] = rng.normal()
    for i in range(1, clusters):
        surprise[i] = lasting * surprise[i - 1] + np.sqrt(1 - lasting**2) * rng.normal()
    member = np.repeat(np.arange(clusters), size)
    signal = rng.normal(size=(len(member), 1)) + 0.5 * rng.normal(size=(len(member), 3))
    y = (rng.random(len(member)) < expit(signal.mean(axis=1) + shared * surprise[member])).astype(int)
    found = Forecasts.from_array(expit(signal), y)
    if unit == "group":
        return replace(found, groups=member.astype(str))
    return replace(found, times=np.datetime64("2025-01-01", "us") + member * np.timedelta64(1, "D"))


def worth(forecasts, weight=None):
    weight = np.ones(len(forecasts.events)) if weight is None else weight
    reference = np.full((len(forecasts.events), 2), 0.5)
    return screening.independent_weight(forecasts, reference, weight, 1e-4)[0]


def anova(values, member):
    """Intraclass correlation of equal clusters, written out."""
    groups = [values[member == g] for g in np.unique(member)]
    m, g = len(groups[0]), len(groups)
    between = m * np.var([v.mean() for v in groups], ddof=1)
    inside = sum(((v - v.mean()) ** 2).sum() for v in groups) / (g * (m - 1))
    return (between - inside) / (between + (m - 1) * inside)


class TestCorrelation:
    @pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
    def test_is_recovered(self, rho):
        rng = np.random.default_rng(1)
        member = np.repeat(np.arange(400), 10)
        values = np.sqrt(rho) * rng.normal(size=400)[member] + np.sqrt(1 - rho) * rng.normal(size=4000)
        found = screening._of_one(values[:, None], member, np.ones(4000), False)
        believed = (3 * 0.2 + 399 * max(anova(values, member), 0)) / 402
        assert found.correlation == pytest.approx(believed, abs=1e-12)
        assert found.correlation == pytest.approx(rho, abs=0.04)
        assert found.lasting == 0

    @pytest.mark.parametrize("r", [0.0, 0.5, 0.8])
    def test_what_lasts_is_recovered(self, r):
        rng = np.random.default_rng(2)
        series = np.zeros(2000)
        for i in range(1, 2000):
            series[i] = r * series[i - 1] + rng.normal()
        assert screening._lasting(series[:, None] - series.mean()) == pytest.approx(r, abs=0.05)

    @pytest.mark.parametrize(("dates", "r"), [(40, 0.3), (40, 0.6), (80, 0.7)])
    def test_short_series_are_right_on_average(self, dates, r):
        rng = np.random.default_rng(4)
        series = rng.normal(size=(dates, 6000, 1))
        for i in range(1, dates):
            series[i] = r * series[i - 1] + np.sqrt(1 - r**2) * series[i]
        held = np.mean([screening._lasting(each - each.mean()) for each in series.swapaxes(0, 1)])
        unheld = (held * (dates + screening.LASTING_WORTH) - screening.LASTING_WORTH * screening.LASTING) / dates
        assert unheld == pytest.approx(r, abs=0.008)

    def test_variance_of_a_mean_is_what_the_effect_says(self):
        """The design effect is the variance of the mean over that of independent events, by simulation."""
        rng = np.random.default_rng(3)
        clusters, size, rho, r = 200, 8, 0.4, 0.5
        means = []
        for _ in range(2000):
            level = np.zeros(clusters)
            level[0] = rng.normal()
            noise = rng.normal(size=clusters) * np.sqrt(1 - r**2)
            for i in range(1, clusters):
                level[i] = r * level[i - 1] + noise[i]
            means.append((np.sqrt(rho) * level[:, None] + np.sqrt(1 - rho) * rng.normal(size=(clusters, size))).mean())
        measured = np.var(means) * clusters * size
        # What is measured between the means of clusters: their common part, thinned by what is not shared.
        lasting = r * rho / (rho + (1 - rho) / size)
        assert screening._Shared(rho, lasting).effect(size) == pytest.approx(measured, rel=0.25)


class TestWorth:
    def test_without_groups_and_dates_nothing_changes(self):
        f = replace(simulated(np.random.default_rng(0), 5, 4, 1.0), groups=None)
        weight = np.arange(20.0)
        reduced, notes = screening.independent_weight(f, np.full((20, 2), 0.5), weight, 1e-4)
        assert reduced is weight
        assert notes == ()

    def test_independent_events_keep_most_of_what_they_tell(self):
        f = simulated(np.random.default_rng(4), 60, 5, 0.0)
        assert 0.8 * 300 < worth(f).sum() <= 300

    def test_shared_surprises_count_about_once(self):
        rng = np.random.default_rng(5)
        f = simulated(rng, 40, 25, 3.0)
        assert worth(f).sum() < 150
        lasting = simulated(rng, 40, 25, 3.0, lasting=0.9, unit="date")
        assert worth(lasting).sum() < 40

    def test_more_shared_counts_less(self):
        sums = [worth(simulated(np.random.default_rng(6), 40, 10, s)).sum() for s in (0.0, 1.0, 4.0)]
        assert sums[0] > sums[1] > sums[2]

    @settings(max_examples=20)
    @given(st.integers(0, 2**32))
    def test_order_of_events_plays_no_part(self, seed):
        rng = np.random.default_rng(seed)
        f = simulated(rng, 6, 4, 1.0, unit="date")
        order = rng.permutation(24)
        assert worth(f.select_events(order)) == pytest.approx(worth(f)[order], rel=1e-9)

    def test_frequencies_are_repetition(self):
        f = simulated(np.random.default_rng(7), 8, 3, 1.0)
        times = np.tile([1, 2, 3], 8)
        rows = np.repeat(np.arange(24), times)
        often = replace(Forecasts.from_array(f.X[rows], f.outcomes[rows]), groups=f.groups[rows])
        assert worth(often).sum() == pytest.approx(worth(f, times.astype(float)).sum(), rel=1e-9)

    def test_events_without_a_date_are_alone(self):
        f = simulated(np.random.default_rng(8), 10, 6, 2.0, unit="date")
        times = f.times.copy()
        times[:6] = np.datetime64("NaT", "us")
        reduced = worth(replace(f, times=times))
        assert reduced[:6].min() > 1.5 * reduced[6:].max()

    def test_one_date_for_all_is_believed_to_be_shared(self):
        f = simulated(np.random.default_rng(9), 1, 30, 0.0, unit="date")
        assert worth(f).sum() == pytest.approx(30 / (1 + 29 * 0.2) * (1 - 0.3) / (1 + 0.3))


class TestLearning:
    def test_counts_are_of_events_as_they_came_and_a_note_says_how_they_count(self):
        f = simulated(np.random.default_rng(10), 12, 10, 2.0)
        learned = learn(f)
        assert learned.events.sum() == 120
        assert learned.counts.tolist() == [120.0] * 3
        note = next(note for note in learned.notes if note.code == "shared-events")
        assert "120 resolved events fall on 12 groups" in note.text

    def test_intervals_cover_where_surprises_are_shared(self):
        """With slopes and intercepts of clusters drawn at random, those that take events as independent fail."""
        rng = np.random.default_rng(11)
        covered = {True: [], False: []}
        grid = expit(rng.normal(size=(100, 3)))
        for _ in range(40):
            f = simulated(rng, 15, 30, 1.2)
            truth = expit(np.log(grid / (1 - grid)).mean(axis=1) * 1.0)
            for grouped, shares in covered.items():
                learned = learn(f if grouped else replace(f, groups=None), prior=0.5)
                low, high = learned.interval(grid)
                shares.append(np.mean((truth >= low) & (truth <= high)))
        # The average over surprises is a little flatter than the truth at surprise 0, so neither is exact.
        assert np.mean(covered[True]) > 0.85
        assert np.mean(covered[False]) < np.mean(covered[True]) - 0.15


def test_weeks_of_53_places_learned_forward_in_time(shared):
    """Four weeks behind: ahead of the average by more than chance, and hardly behind the best of the others."""
    f = read_forecasts(shared / "data" / "flusight.csv.gz")
    week = f.times.astype("datetime64[D]")
    weeks = np.unique(week)
    names = ("gaussian", "average", "linear", "median", "geometric", "trimmed")
    scores = {name: [] for name in names}
    for day in weeks[6:]:
        past, now = f.select_events(week <= day - np.timedelta64(28, "D")), week == day
        for name in names:
            p = fit_pool(name, past).pool(f.X[now])
            scores[name].append(np.log(p[np.arange(now.sum()), f.outcomes[now]]).mean())
    gain = np.subtract(scores["gaussian"], scores["average"])
    assert gain.mean() - 2.08 * gain.std(ddof=1) / np.sqrt(len(gain)) > 0
    assert np.mean(scores["gaussian"]) > np.mean(scores["geometric"])
    assert max(np.mean(scores[name]) for name in names) - np.mean(scores["gaussian"]) <= 0.01
