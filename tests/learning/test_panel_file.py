"""Files of beliefs: read as they are meant, refused with the place, the rule and the way out."""

import contextlib
import math

import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import LARGEST, Beliefs, beliefs_of_mapping, read_beliefs
from opinionpool.learning.learn import learn


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "panel.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_the_documented_file(file):
    path = file(read_beliefs.__doc__.split("::")[1].split("The keys")[0].replace("\n        ", "\n"))
    assert read_beliefs(path) == Beliefs(
        correlation=(0.6, 20), calibration=0.9, experts={"alice": {"relative_accuracy": 2.0, "bias": 0.2}}
    )


def test_worths_of_inf_a_byte_order_mark_and_nothing(file):
    assert read_beliefs(file(b"\xef\xbb\xbfcalibration = {value = 1, worth = inf}")).calibration.worth == math.inf
    assert read_beliefs(file("")) == Beliefs()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calibration = .9", "this is not TOML: .*line 1.* a line looks like calibration = 0.9"),
        ("a = " + "[" * 5000, "brackets are nested too deeply"),
        ("calibration = " + "9" * 5000, "this is not TOML"),
        ("#" * (LARGEST + 1), "at most 1,000,000 bytes"),
        (b"# fine\n# caf\xe9", "line 2: a TOML file is UTF-8"),
        ("calibration = 2024-01-01", "it is 2024-01-01"),
        ("corelation = 0.5", "there is no key 'corelation'; did you mean 'correlation'"),
        ("expert.alice.auc = 0.8", "there is no key 'expert'; did you mean 'experts'"),
        ("[experts.alice.bob]\nauc = 0.8", "experts.alice: there is no key 'bob'"),
        (".".join(["a"] * 2000) + " = 1", "there is no key 'a'"),
    ],
)
def test_what_is_refused(file, text, message):
    path = file(text)
    with pytest.raises(OpinionPoolError, match=message) as refused:
        read_beliefs(path)
    assert str(refused.value).startswith(str(path))


def toml(values, table=""):
    """Values as somebody would write them."""

    def text(value):
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {text(own)}" for key, own in value.items()) + " }"
        return repr(float(value))

    lines = [f"{key} = {text(value)}" for key, value in values.items() if key != "experts"]
    for name, own in values.get("experts", {}).items():
        quoted = '"' + "".join(f"\\U{ord(c):08x}" for c in name) + '"'
        lines += [f"[experts.{quoted}]", toml(own)]
    return "\n".join(lines)


worths = st.one_of(st.just(math.inf), st.floats(1e-3, 1e6))


def features(**more):
    ranges = {"bias": (-20, 20), "calibration": (0.01, 100), "auc": (0.51, 0.99)} | more
    said = {key: st.fixed_dictionaries({"value": st.floats(*ends), "worth": worths}) for key, ends in ranges.items()}
    return st.fixed_dictionaries({}, optional=said)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
panels = st.builds(
    lambda panel, experts: panel | {"experts": experts},
    features(correlation=(-0.99, 1)),
    st.dictionaries(names, features(), max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(panels)
def test_round_trip(tmp_path_factory, given):
    path = tmp_path_factory.mktemp("panel") / "panel.toml"
    path.write_text(toml(given), encoding="utf-8")
    found = read_beliefs(path)
    assert found == Beliefs(**given) == beliefs_of_mapping(found.to_dict())
    assert found.to_dict() == given


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: ("calibration = " + text).encode())))
def test_no_bytes_are_a_fault(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("panel") / "panel.toml"
    path.write_bytes(raw)
    with contextlib.suppress(OpinionPoolError):
        assert isinstance(read_beliefs(path), Beliefs)


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("[experts.Ana Maria]\nauc = 0.8\n", r'stands in quotes: \[experts."Ana Maria"\]'),
        ("correlation = 60%\n", "write 0.6 for 60%"),
        ("[experts.ana]\nauc = 85\n", "if 85% is meant, write 0.85"),
        ("correlation = 60\n", "if 60% is meant, write 0.6"),
        ("prior = 0.3\n", "give it as --prior 0.3"),
        ("[ana]\nauc = 0.8\n", r'write its name \[experts."ana"\]'),
        ("[experts.J.Smith]\nauc = 0.8\n", r'in quotes if it has a dot, as \[experts."J. Doe"\]'),
        ("calibration : 0.9\n", "a line looks like calibration = 0.9"),
    ],
)
def test_what_people_write_wrongly_is_answered_with_what_is_right(tmp_path, written, advice):
    path = tmp_path / "panel.toml"
    path.write_text(written)
    with pytest.raises(ArgumentError, match=advice) as error:
        read_beliefs(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("beliefs", "noted"),
    [
        ({"experts": {"ann": {"auc": 0.7}}}, True),
        ({"experts": {"ann": {"auc": 0.9}}}, False),
        ({"auc": 0.65, "experts": {"ann": {"auc": 0.7}}}, False),
        ({"experts": {"ann": {"auc": 0.7}, "bob": {"auc": 0.6}}}, False),
    ],
)
def test_an_accuracy_below_what_is_assumed_of_the_others_is_noted(beliefs, noted):
    f = Forecasts.from_array([[0.7, 0.6]], [None], experts=["ann", "bob"])
    notes = {note.code: note.text for note in learn(f, beliefs=beliefs_of_mapping(beliefs)).notes}
    assert ("believed-below" in notes) is noted
    if noted:
        assert notes["believed-below"].startswith("'ann' is assessed as less accurate")
