"""Faults that people met in other software, each with the test that keeps it away; those that no other file tests.

The numbers are those of `cases.json` beside the project, which says what was seen, the input and the right answer.
"""

import ast
import io
import json
import pickle
import re
import tracemalloc
from functools import cache

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict

import opinionpool as op
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS

A, Y = [0.2, 0.3, 0.6, 0.4, 0.7, 0.8], [0, 0, 0, 1, 1, 1]
NAN = float("nan")

# By case: tests as file::test, or file::class::test; a file alone in this folder is this one.
CASES = {
    1: (
        "scoring/test_scores.py::test_certain_and_wrong_is_finite",
        "test_logodds.py::test_float32_is_upcast_before_flooring",
        "test_cases.py::test_single_precision_of_a_file_is_certain_and_wrong",
    ),
    3: (
        "scoring/test_scores.py::test_hard_forecasts_are_ranked_and_counted",
        "scoring/test_compare.py::TestExperts::test_hard_zeros_count_as_the_floor",
    ),
    4: ("estimators/test_pools.py::test_zeros_and_ones_are_floored_alike_at_both_ends",),
    6: ("pools/test_rule.py::TestWorkedNumbers::test_experts_who_each_rule_out_another_class",),
    7: ("pools/test_rule.py::TestWorkedNumbers::test_two_hundred_independent_experts_do_not_overflow",),
    9: (
        "tables/test_read.py::test_rounded_rows_over_classes_are_accepted_and_normalised",
        "estimators/test_pools.py::test_rounded_rows_are_normalised_and_that_is_said_once",
        "scoring/test_scores.py::test_rows_off_by_rounding_are_normalised",
    ),
    11: ("pools/test_rule.py::TestWorkedNumbers::test_three_classes_are_pooled_together",),
    12: ("test_cases.py::test_answers_over_classes_are_those_of_bayes_rule",),
    14: (
        "pools/test_registry.py::TestWorkedNumbers::test_an_impossible_event_that_happened",
        "estimation/test_simplex.py::test_a_fit_that_was_stopped_says_so",
    ),
    16: (
        "pools/test_registry.py::TestWorkedNumbers::test_maximum_likelihood_of_the_log_pool_is_not_penalised",
        "estimation/test_logistic.py::TestValues::test_closed_form",
    ),
    17: ("pools/test_registry.py::TestWorkedNumbers::test_separated_outcomes",),
    18: (
        "learning/test_learn.py::TestWhatTheDataCannotSay::test_errors_name_the_cause_and_the_way_out",
        "estimators/test_pools.py::test_too_few_events_for_the_data_alone_name_what_is_needed",
    ),
    20: ("estimators/test_pools.py::test_complements_share_one_weight",),
    21: ("estimators/test_pools.py::test_more_experts_than_events_are_refused_by_rank_or_shrunk",),
    22: ("pools/test_rule.py::TestWorkedNumbers::test_three_independent_experts_count_the_prior_once",),
    24: ("estimators/test_pools.py::test_clones_share_their_weight_equally",),
    26: ("estimators/test_pools.py::test_the_variance_has_divisor_events_less_two",),
    27: ("model/test_panel.py::test_example_of_section_4_3",),
    28: ("pools/test_rule.py::TestWorkedNumbers::test_geometric_mean_is_that_of_odds",),
    30: ("scoring/test_scores.py::test_two_conventions_of_the_brier_score",),
    31: (
        "estimators/test_pools.py::test_the_score_is_higher_for_the_better_forecast",
        "test_cases.py::test_a_search_takes_the_better_pool",
    ),
    33: (
        "tables/test_read.py::test_columns_of_classes_go_by_name",
        "estimators/test_pools.py::test_columns_are_matched_to_classes_by_name",
        "test_cases.py::test_perfect_forecasts_lose_nothing_whatever_their_columns_order",
    ),
    35: ("estimators/test_pools.py::test_classes_do_not_depend_on_the_order_of_appearance",),
    36: (
        "tables/test_read.py::test_which_class_is_forecast_is_asked",
        "cli/test_answers.py::test_what_a_probability_is_about_is_said",
    ),
    38: (
        "estimators/test_pools.py::test_one_outcome_only_is_explained_or_answered",
        "cli/test_answers.py::test_one_kind_of_outcome_is_told_by_every_command_whose_pool_learns",
    ),
    40: (
        "tables/test_read.py::test_an_outcome_among_no_classes_is_listed_with_its_lines",
        "estimators/test_pools.py::test_a_label_that_was_never_seen_cannot_be_scored",
    ),
    41: (
        "pools/test_registry.py::TestWorkedNumbers::test_one_of_two_experts_is_missing",
        "model/test_panel.py::test_one_forecast_of_a_correlated_pair_is_taken_as_if_alone",
    ),
    42: (
        "pools/test_rule.py::TestWorkedNumbers::test_missing_forecasts_renormalise_the_linear_pool",
        "cli/test_answers.py::test_an_event_without_forecasts_gets_the_prior",
    ),
    44: ("scoring/test_compare.py::TestExperts::test_an_expert_is_scored_on_what_it_answered",),
    46: (
        "tables/test_read.py::test_runs_of_one_expert_are_averaged_within_the_expert",
        "test_cases.py::test_ten_runs_of_one_expert_count_once",
    ),
    47: (
        "tables/test_read.py::test_percent_is_read_in_its_column_alone",
        "tables/test_cells.py::test_a_column_that_mixes_marked_and_unmarked_names_one_of_each",
    ),
    48: (
        "tables/test_read.py::test_a_scale_to_100_is_named_for_the_file",
        "tables/test_cells.py::test_the_unit_is_decided_for_the_column_and_never_for_a_cell",
        "tables/test_cells.py::test_a_name_about_per_cent_marks_its_column_and_is_asked_about_when_in_doubt",
    ),
    51: ("tables/test_read.py::test_a_code_for_abstention_is_refused_or_missing",),
    53: ("tables/test_read.py::test_a_byte_order_mark_changes_nothing",),
    55: (
        "tables/test_read.py::test_ids_are_text_on_both_sides_of_a_join",
        "tables/test_read.py::test_events_that_do_not_match_are_counted_with_examples",
    ),
    57: ("tables/test_read.py::test_repeated_forecasts_are_listed_or_follow_a_rule",),
    58: (
        "tables/test_read.py::test_nobody_and_nothing_vanishes",
        "test_cases.py::test_unanswered_events_and_silent_experts_stay_in_the_answers",
    ),
    59: (
        "tables/test_read.py::test_numbers_as_names_of_experts",
        "estimators/test_pools.py::test_names_are_matched_as_text",
    ),
    62: ("tables/test_read.py::test_outcomes_are_trimmed_and_compared_in_any_case",),
    64: (
        "tables/test_read.py::test_a_fraction_is_no_outcome",
        "estimators/test_pools.py::test_outcomes_that_are_not_classes_are_refused",
    ),
    65: (
        "estimators/test_pools.py::test_rows_are_matched_by_index",
        "estimators/test_pools.py::test_rows_with_other_keys_are_refused",
    ),
    67: ("pools/test_registry.py::TestWorkedNumbers::test_weights_by_name_when_an_expert_is_left_out",),
    68: (
        "estimators/test_pools.py::test_every_coding_of_the_outcomes_gives_the_same_pool",
        "estimators/test_pools.py::test_predict_returns_the_type_of_y",
        "test_cases.py::test_text_for_outcomes_goes_through_all_of_scikit_learn",
    ),
    70: (
        "estimators/test_pools.py::test_constructors_store_their_arguments_and_offer_the_options_of_each_rule",
        "estimators/test_pools.py::test_the_callers_data_stay_as_they_are",
        "estimators/test_pools.py::test_search_over_structures_and_floors",
    ),
    71: ("estimators/test_pools.py::test_zero_weight_is_no_event_and_weight_two_is_the_event_twice",),
    74: ("test_cases.py::test_a_saved_pool_is_plain_json_and_answers_to_the_last_bit",),
    75: (
        "scoring/test_compare.py::TestSplits::test_the_first_block_in_time_stays_without_a_score",
        "scoring/test_compare.py::TestSplits::test_dates_with_random_folds_are_noted",
        "test_cases.py::test_six_dated_events_in_two_folds_leave_two_without_a_score",
    ),
    76: (
        "tables/test_read.py::test_forecasts_after_the_close_do_not_count",
        "cli/test_options.py::test_options_reach_the_reader",
    ),
    78: ("tables/test_read.py::test_times_without_a_zone_are_utc",),
    79: (
        "pools/test_registry.py::test_an_expert_who_cannot_have_been_wrong_is_told_wherever_something_is_learned",
        "scoring/test_compare.py::TestExperts::test_experts_who_cannot_be_wrong_are_noted",
    ),
    81: (
        "estimators/test_pools.py::test_a_base_rate_of_one_per_cent_turns_80_into_4",
        "pools/test_registry.py::TestWorkedNumbers::test_a_base_rate_leaves_the_weights_alone",
    ),
    82: (
        "learning/test_learn.py::TestWorkedNumbers::test_laplace",
        "cli/test_answers.py::test_the_prior_is_laplaces_unless_given",
    ),
    83: (
        "estimators/test_pools.py::test_an_extreme_prior_is_bayes_rule",
        "cli/test_explain.py::test_the_column_adds_up_to_the_answer",
        "test_logodds.py::test_prior_out_of_range",
        "test_logodds.py::test_prior_of_three_classes",
    ),
    85: (
        "scoring/test_reliability.py::test_forecast_of_one_belongs_to_the_last_bin",
        "scoring/test_reliability.py::test_an_inexact_edge",
    ),
    86: ("scoring/test_reliability.py::test_tied_forecasts_stay_together",),
    87: ("scoring/test_reliability.py::test_empty_bins_are_listed_and_never_drawn",),
    89: ("scoring/test_reliability.py::test_three_events_are_too_few_to_judge",),
    90: ("pools/test_registry.py::TestWorkedNumbers::test_maximum_likelihood_of_the_log_pool_is_not_penalised",),
    92: (
        "learning/test_learn.py::TestWhatTheDataCannotSay::test_pairwise_covariances_are_never_used_as_they_are",
        "estimators/test_pools.py::test_missing_cells_never_make_an_indefinite_covariance",
    ),
    93: (
        "pools/test_registry.py::TestWorkedNumbers::test_one_expert",
        "estimators/test_pools.py::test_one_expert_is_recalibrated",
    ),
    94: ("test_cases.py::test_many_classes_and_experts_need_no_covariance_for_each_class",),
    97: ("cli/test_render.py::test_json_never_holds_nan",),
    99: (
        "cli/test_render.py::test_formulas_are_text_and_numbers_are_numbers_in_csv",
        "cli/test_options.py::test_names_that_look_like_formulas_survive",
    ),
    101: (
        "estimators/test_pools.py::test_a_corrected_outcome_replaces_everything",
        "test_cases.py::test_a_corrected_outcome_in_a_file_shows_at_once",
    ),
}

# Cases whose expected answer is met in another way, and why.
OTHERWISE = {
    38: "outcomes of one kind: the data alone are refused by name, and the default pool answers with what is believed",
    40: "rows with an unknown outcome are not passed over: the file is refused with their lines, so there is no "
    "--strict; in Python, score() refuses the label",
    64: "a fraction is an error in every reader; there is no option that scores it",
    65: "matching keys are aligned; other keys are an error",
    74: "files hold their own format version; nothing is pickled, so no release of scikit-learn plays a part",
}


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8")).body


def named(path, node):
    """Whether a file has this test, from its text."""
    body = parsed(path)
    for name in node.split("::"):
        found = next(
            (each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name), None
        )
        if found is None:
            return False
        body = found.body
    return True


@pytest.mark.parametrize("case", CASES)
def test_tests_of_the_cases_exist(root, case):
    for test in CASES[case]:
        path, _, node = test.partition("::")
        assert re.fullmatch(r"test_\w+|Test\w+::test_\w+", node)
        assert named(root / "tests" / path, node), test


def test_every_case_has_tests(shared):
    cases = json.loads((shared / "cases" / "cases.json").read_text(encoding="utf-8"))
    assert [case["id"] for case in cases] == list(CASES)
    assert set(OTHERWISE) <= set(CASES)


# Case 1.
def test_single_precision_of_a_file_is_certain_and_wrong():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    pq.write_table(pa.table({"event": ["q"], "A": pa.array([1.0], pa.float32()), "outcome": [0]}), buffer)
    buffer.seek(0)
    found = op.read_forecasts(buffer)
    expert = op.log_score(found.X[:, 0], found.outcomes, floor=1e-4)
    assert expert[0] == pytest.approx(-12.2877, abs=5e-5)
    assert op.log_score(found.X[:, 0], found.outcomes)[0] == pytest.approx(-25.5754, abs=5e-5)
    learned = fit_pool("average", found)
    assert op.log_score(learned.pool(found.X), found.outcomes)[0] == pytest.approx(-12.2877, abs=5e-5)


# Case 12.
def test_answers_over_classes_are_those_of_bayes_rule():
    joint = np.array([2.0, 1.0, 0.0])
    said = np.exp(joint) / np.exp(joint).sum()
    answer = op.Panel([1.0], [[2.0]], classes="abc").pool([said], prior=[1 / 3] * 3)
    assert answer == pytest.approx([0.66524, 0.24473, 0.09003], abs=5e-6)
    # From data: each class has its own mean, and the answer is the ratio of the normal densities.
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    z = rng.normal(size=(60, 3)) + 2 * np.eye(3)[y]
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    panel = learn(
        Forecasts.from_array(q[:, None], y, classes=(0, 1, 2)), prior=[1 / 3] * 3, beliefs=None, class_model="full"
    ).panel
    x = np.log(q[:, 1:]) - np.log(q[:, :1])
    means = np.array([x[y == c].mean(axis=0) for c in range(3)])
    inverse = np.linalg.inv(sum((x[y == c] - means[c]).T @ (x[y == c] - means[c]) for c in range(3)) / (60 - 3))
    log_density = np.array([[-0.5 * (row - m) @ inverse @ (row - m) for m in means] for row in x])
    right = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    assert panel.pool(q[:, None], prior=[1 / 3] * 3) == pytest.approx(
        right / right.sum(axis=1, keepdims=True), abs=1e-7
    )


# Case 31.
def test_a_search_takes_the_better_pool():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.05, 0.95, 200)
    y = (rng.random(200) < truth).astype(int)
    X = np.column_stack([truth, rng.uniform(size=200)])
    search = GridSearchCV(op.LinearPool(), {"weights": [[0, 1], [1, 0], [1, 1]]}, cv=4).fit(X, y)
    assert search.best_params_ == {"weights": [1, 0]}
    assert search.best_score_ > 0
    assert op.log_loss([0.8], [1])[0] == pytest.approx(0.22314, abs=5e-6)


# Case 33.
def test_perfect_forecasts_lose_nothing_whatever_their_columns_order():
    text = "event,m:dog,m:cat,y\n1,1,0,dog\n2,0,1,cat\n"
    for positive in ("dog", "cat"):
        found = op.read_forecasts(io.BytesIO(text.encode()), positive=positive)
        p = fit_pool("average", found).pool(found.X)
        assert op.log_loss(p, found.outcomes).mean() == pytest.approx(1e-4, rel=1e-3)


# Case 46.
def test_ten_runs_of_one_expert_count_once():
    text = "event,expert,p\n" + "q1,A,.1\n" * 10 + "q1,B,.9\n"
    found = op.read_forecasts(io.BytesIO(text.encode()), duplicates="mean")
    assert fit_pool("average", found).pool(found.X) == pytest.approx([0.5], rel=1e-13)


# Case 58.
@pytest.mark.parametrize("name", POOLS)
def test_unanswered_events_and_silent_experts_stay_in_the_answers(name):
    found = op.read_forecasts(io.BytesIO(b"question,A,B\nq1,.2,\nq2,.4,\nq3,,\n"))
    state = fit_pool(name, found, prior=0.3)
    answers = state.pool(found.X)
    assert len(answers) == len(found.events) == 3
    assert answers[2] == pytest.approx(0.3)
    assert found.counts.tolist() == [2, 0]
    if name == "gaussian":
        assert state.weights[1] == 0


# Case 68.
@pytest.mark.parametrize("coding", [str, np.str_, lambda label: label == "b", lambda label: int(label == "b")])
def test_text_for_outcomes_goes_through_all_of_scikit_learn(coding):
    labels = ["a", "b", "a", "b", "b", "a"] * 3
    y = np.array([coding(label) for label in labels])
    rng = np.random.default_rng(0)
    X = np.clip(np.column_stack([np.where(np.array(labels) == "b", 0.7, 0.3)] * 2) + rng.normal(0, 0.1, (18, 2)), 0, 1)
    pool = op.GaussianPool().fit(X, y)
    plain = op.GaussianPool().fit(X, np.array([label == "b" for label in labels], int))
    assert pool.classes_.tolist() == sorted({coding(label) for label in labels})
    assert pool.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(pool.predict_proba(X), plain.predict_proba(X))
    assert pickle.loads(pickle.dumps(pool)).score(X, y) == pool.score(X, y)
    assert set(cross_val_predict(clone(pool), X, y, cv=3)) <= set(y)


# Case 74.
def test_a_saved_pool_is_plain_json_and_answers_to_the_last_bit(tmp_path):
    saved = pytest.importorskip("opinionpool.estimators.files")
    X = np.column_stack([A, [0.3, 0.2, 0.5, 0.6, 0.4, 0.9]])
    learned = fit_pool("gaussian", Forecasts.from_array(X, Y, experts=["A", "B"]))
    path = tmp_path / "pool.json"
    saved.save(learned, path)
    held = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(held, dict)
    np.testing.assert_array_equal(saved.load(path).pool(X), learned.pool(X))


# Case 75.
def test_six_dated_events_in_two_folds_leave_two_without_a_score():
    days = "".join(f"q{i},{0.3 + 0.4 * (i % 2)},2025-01-0{i + 1},{i % 2}\n" for i in range(6))
    found = op.read_forecasts(io.BytesIO(b"event,A,resolved_at,outcome\n" + days.encode()))
    compared = op.compare_pools(found, ["geometric"], by="time", folds=2)
    assert compared.scored == 4
    random = op.compare_pools(found, ["geometric"], folds=2, repeats=1)
    assert "random-folds" in {note.code for note in random.notes}


# Case 94.
def test_many_classes_and_experts_need_no_covariance_for_each_class():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(60), (1000, 80))
    forecasts = Forecasts.from_array(q, rng.integers(0, 60, 1000), classes=range(60))
    del q
    tracemalloc.start()
    learned = learn(forecasts, beliefs=None, structure="full")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(learned.weights).all()
    assert peak < 20e6


# Case 101.
def test_a_corrected_outcome_in_a_file_shows_at_once():
    scores = []
    for outcome in (0, 1, ""):
        found = op.read_forecasts(io.BytesIO(f"event,A,outcome\nq,.8,{outcome}\n".encode()))
        scores.append(op.log_score(found.X[:, 0], np.where(found.resolved, found.outcomes, NAN))[0])
    assert scores[:2] == pytest.approx([-1.32193, 0.67807], abs=5e-6)
    assert np.isnan(scores[2])


# A check on this file: the numbers above are those of the cases.
def test_the_worked_example_of_one_expert():
    learned = learn(Forecasts.from_array(np.array(A)[:, None], Y), prior=0.5, beliefs=None)
    x = logit(A)
    variance = sum(((x[np.array(Y) == c] - x[np.array(Y) == c].mean()) ** 2).sum() for c in (0, 1)) / 4
    mean = (x[3:].mean() - x[:3].mean()) / 2
    assert learned.weights[0] == pytest.approx(2 * mean / variance, rel=1e-12)
