"""Every public call with wrong arguments, by the table in ``fuzz/calls.py``: an answer, or an error of ours."""

import importlib.util
import inspect
import os
import re
import warnings

import pytest
from sklearn.exceptions import DataConversionWarning

import opinionpool as op
from opinionpool.arguments import chosen_name, file_path, number, one_of, whole_number
from opinionpool.errors import ArgumentError, OpinionPoolError, OpinionPoolWarning

# What messages call an argument, where it is not its own name.
WORDS = {
    "X": "probability|X:", "y": "outcome|y:", "p": "forecast", "q": "probability", "probabilities": "probability",
    "at": "time|at must", "cost_loss": "cost-loss", "half_life": "half-life", "other": "merged",
    "forecasts": "forecasts|batch", "positive": "about", "source": "source|forecasts are read",
    "pool_floor": "floor", "base_rate": "base rate", "scoring_prior": "scoring prior",
    "sample_weight": "sample weight", "beliefs": "Beliefs",
    "outcomes": "outcome|forecasts are read", "joint_accuracy": "accuracy", "pool": "pool", "pools": "pool",
    "relative_accuracy":
    "relative.accuracy", "capacity": "capacity", "means": "mean", "keep": "keep", "hit_rate": "hit.rate", "options":
    "options", "names": "name", "experts": "expert", "event": "event", "weights": "weight", "as_of": "as_of",
    "old": "saved", "new": "saved", "old_forecasts": "forecasts", "new_forecasts": "forecasts",
    "worth": "worth", "value": "value", "score": "score", "scores": "score",
}  # fmt: skip
# What may be anything.
FREE = {
    ("explain", "event"), ("check_model", "prior"), ("GaussianPool.fit", "topics"), ("Note", "code"), ("Note", "text"),
    ("Note", "count"), ("Note", "serious"),
}  # fmt: skip


@pytest.fixture(scope="module")
def table(root, tmp_path_factory):
    """The module that knows every public call; what calls write goes to a folder of its own."""
    spec = importlib.util.spec_from_file_location("calls", root / "fuzz" / "calls.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    here = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("calls"))
    yield module
    os.chdir(here)
    module.FOLDER.cleanup()


@pytest.fixture(scope="module")
def calls(table):
    return table.calls()


def test_the_table_has_every_public_call(table, calls):
    # What a class has from elsewhere, gives without being asked anything, or is for other parts of the package.
    inside = {"answer_parts", "from_parts", "pair_weights", "weights_for", "dense_blocks", "to_frame", "copy", "sample"}
    inside |= {"absolute", "to_dict", "of", "out_of", "forecasts", "get_metadata_routing", "get_params", "set_params"}
    inside |= {"get_feature_names_out", "set_output", "settings", "read", "for_options", "pool_forecasts", "answers"}
    missing = set()
    for name in set(op.__all__) - table.NOT_CALLED:
        thing = getattr(op, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        missing |= {name} - set(calls)
        if inspect.isclass(thing):
            methods = {each for each, _ in inspect.getmembers(thing, callable) if each[0] != "_"} - inside
            missing |= {f"{name}.{each}" for each in methods if not each.endswith("_request")} - set(calls)
    assert missing <= {"ExpertBeliefs.get", *(name for name in missing if name.endswith("Pool.save"))}


def test_the_calls_of_the_table_are_right(calls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpinionPoolWarning)
        for name, (call, good) in calls.items():
            if name != "make_report":
                call(**good)


def test_wrong_arguments_end_in_answers_or_errors_of_ours(table, calls):
    left = []
    with warnings.catch_warnings():
        for category in (OpinionPoolWarning, DataConversionWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "X has feature names")
        for name, (call, good) in calls.items():
            # Of calls that take long, and of pools after the first two, a few values that differ much; of the others
            # each third value in turn: `make fuzz` has all.
            few = name == "make_report" or (name.partition(".")[0].endswith("Pool") and name[:3] not in {"Gau", "Ave"})
            for turn, argument in enumerate(good):
                values = table.wrong_values()
                for key in ("odd", "lists", "complex", "void", "infinite") if few else list(values)[turn % 3 :: 3]:
                    if name == "make_report" and key == "infinite":
                        continue
                    found = table.ends_well(call, good | {argument: values[key]})
                    if found is not None and (argument, key) != ("progress", "function"):
                        left.append((name, argument, key, found))
    assert left == []


def test_errors_name_the_argument(table, calls):
    silent = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (call, good) in calls.items():
            for argument in good:
                if (name, argument) in FREE:
                    continue
                try:
                    call(**good | {argument: table.Odd()})
                except OpinionPoolError as error:
                    if not re.search(WORDS.get(argument, argument.replace("_", ".")), str(error)):
                        silent.append((name, argument, str(error)))
                else:
                    silent.append((name, argument, "no error"))
    assert silent == []


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: op.compare_pools(op.Forecasts.from_array([[0.5]]), ["medain"]), "did you mean 'median'"),
        (lambda: op.Stream().fit("gausian"), "did you mean 'gaussian'"),
        (lambda: op.read_forecasts("x.csv", positiv="yes"), "did you mean 'positive'"),
        (lambda: op.read_forecasts("x.csv", columns={"expertt": "a"}), "did you mean 'expert'"),
        (lambda: op.read_forecasts("x.csv", duplicates="lst"), "did you mean 'last'"),
        (lambda: op.GaussianPool(structure="ful").fit([[0.5]], [1]), "did you mean 'full'"),
        (lambda: op.Panel.from_features([1, 1], 0.5, dependence="nestd"), "did you mean 'nested'"),
        (lambda: op.Forecasts.from_array([[0.5]], experts=["ann"]).select_experts(["anne"]), "did you mean 'ann'"),
        (lambda: op.Beliefs(experts={"ann": {"calibraton": 1}}), "did you mean 'calibration'"),
    ],
)  # fmt: skip
def test_what_was_meant(call, text):
    with pytest.raises(OpinionPoolError, match=text):
        call()


def test_one_number():
    import numpy as np

    assert (number(np.float32(0.5), "x"), number(np.array(2), "x", 0, 2), number(0, "x", 0)) == (0.5, 2.0, 0.0)
    for bad, rule in ((True, "finite"), ("1", "finite"), (1e400, "finite"), (3, "from 0 to 2"), (None, "finite")):
        with pytest.raises(ArgumentError, match=rule):
            number(bad, "x", 0, 2)
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        number(1, "level", 0, 1, between=True)


def test_whole_numbers_words_and_paths(tmp_path):
    assert (whole_number(3.0, "k"), one_of("b", "x", ("a", "b")), file_path(tmp_path)) == (3, "b", str(tmp_path))
    for bad in (2.5, True, "3", float("inf"), -1, 10**400):
        with pytest.raises(ArgumentError, match="k must be a whole number"):
            whole_number(bad, "k")
    with pytest.raises(ArgumentError, match="no pool is called 'x'; there are 'a'"):
        chosen_name("x", "pool", ("a",))
    for bad in (3, b"x", "", "a\0b"):
        with pytest.raises(ArgumentError, match="path must be the name of a file"):
            file_path(bad)
