"""Model files: a loaded model equals the saved one, and an invalid file raises an error that names the location."""

import json
import os
import stat
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fitted_models import MAKERS, NAMES, fitted, rows_for, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import pauca
from pauca import ModelFileError, SparseClassifier, SparseRegressor
from pauca.export import register_class
from pauca.export.json_files import write_atomically
from pauca.export.json_values import CLASSES
from pauca.export.model_file import read_document, write_document
from pauca.losses import Huber, SquaredError

VERBS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")


@cache
def file_of(name):
    """The content of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        fitted(name).save(os.path.join(folder, "model.json"))
        return Path(folder, "model.json").read_bytes()


def reloaded(model, folder):
    model.save(folder / "model.json")
    return pauca.load(folder / "model.json")


def assert_same_model(a, b):
    """Bit for bit."""
    for left, right in zip(a.path_, b.path_, strict=True):
        for field, value in vars(left).items():
            other = getattr(right, field)
            np.testing.assert_array_equal(value, other, strict=True)
            assert type(value) is type(other), field
            if isinstance(value, np.ndarray):
                assert value.tolist() == other.tolist() or np.isnan(value).any()
    for field in ("moves", "stop", "n_features", "output_names"):
        assert getattr(a.path_, field) == getattr(b.path_, field)
    for field in ("column_names", "group_labels", "owner"):
        assert_same_array(getattr(a.path_, field), getattr(b.path_, field))
    fields = {name for name in vars(a) if name.endswith("_") or name == "_several_outputs"}
    assert fields == {name for name in vars(b) if name.endswith("_") or name == "_several_outputs"}
    for field in fields - {"path_"}:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def assert_same_array(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.dtype.kind == b.dtype.kind
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_equals_the_saved_one(name, tmp_path):
    model = fitted(name)
    again = reloaded(model, tmp_path)
    assert type(again) is type(model)
    assert_same_model(model, again)
    X = rows_for(model)
    for verb in VERBS:
        assert hasattr(model, verb) == hasattr(again, verb)
        if hasattr(model, verb) and not (verb == "transform" and model.k_ == 0):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(getattr(model, verb)(X), getattr(again, verb)(X))
    assert again.summary() == model.summary()
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
    assert again.path_.table() == model.path_.table()
    for size in model.path_.sizes:
        np.testing.assert_array_equal(again.at(size).predict(X), model.at(size).predict(X))


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_are_restored(name, tmp_path):
    model = fitted(name)
    again = reloaded(model, tmp_path)
    ours, theirs = model.get_params(), again.get_params()
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        if hasattr(value, "to_numpy") or isinstance(value, np.ndarray):
            np.testing.assert_array_equal(theirs[key], value)
        else:
            assert theirs[key] == value
            assert type(theirs[key]) is type(value) or isinstance(value, np.generic)
    clone(again)


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.parametrize("name", ["squared_error", "groups", "constraints", "words", "multinomial"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    model = fitted(name)
    again = reloaded(model, tmp_path)
    X, score = table()
    y = score if not hasattr(model, "classes_") else model.predict(X)
    np.testing.assert_allclose(clone(again).fit(X, y).coef_, clone(model).fit(X, y).coef_)


@pytest.mark.parametrize("name", ["bools", "words", "objects", "numbers", "hinge", "many hinges"])
def test_classes_keep_their_type(name, tmp_path):
    model = fitted(name)
    again = reloaded(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in again.classes_] == [type(label) for label in model.classes_]
    assert again.predict(rows_for(model)).tolist() == model.predict(rows_for(model)).tolist()


def test_a_loaded_model_can_be_plotted_and_saved_again(tmp_path):
    mpl.use("Agg")
    again = reloaded(fitted("squared_error"), tmp_path)
    again.path_.plot()
    first = (tmp_path / "model.json").read_bytes()
    again.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == first


def test_warm_start_starts_afresh_and_callbacks_are_left_out(tmp_path):
    X, y = table()
    model = SparseRegressor(k=2, warm_start=True, callback=lambda progress: None).fit(X, y)
    again = reloaded(model, tmp_path)
    assert again.callback is None
    assert again.warm_start is True
    np.testing.assert_array_equal(again.set_params(k=3).fit(X, y).coef_, SparseRegressor(k=3).fit(X, y).coef_)


def test_the_file_is_plain_json_with_a_version(tmp_path):
    fitted("squared_error").save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert (document["format"], document["version"], document["pauca_version"]) == ("pauca model", 4, pauca.__version__)
    assert document["features"]["names"] == NAMES
    assert "größe" in text


def test_names_that_are_no_text_in_utf8(tmp_path):
    X, y = table()
    model = SparseRegressor(k=2).fit(X.to_numpy(), y)
    object.__setattr__(model.path_, "column_names", np.array(["a", "\ud800", "\0", "", "\\", '"'], dtype=object))
    assert reloaded(model, tmp_path).path_.column_names.tolist() == ["a", "\ud800", "\0", "", "\\", '"']


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        SparseRegressor().save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


class Own(SquaredError):
    def __init__(self, width=1.0):
        self.width = width


class OwnRegressor(SparseRegressor):
    pass


def test_a_custom_loss_must_be_registered(tmp_path, monkeypatch):
    X, y = table()
    model = SparseRegressor(k=2, loss=Own(0.5)).fit(X, y)
    with pytest.raises(ModelFileError, match=r"loss=Own\(width=0.5\) is a custom class.*register_class\(Own\)"):
        model.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(CLASSES, "Own", Own)
    assert reloaded(model, tmp_path).loss == Own(0.5)
    monkeypatch.delitem(CLASSES, "Own")
    with pytest.raises(ModelFileError, match=r"parameters.loss.class: 'Own' is unknown"):
        pauca.load(tmp_path / "model.json")


def test_a_class_name_is_registered_once(monkeypatch):
    monkeypatch.setattr("pauca.export.json_values.CLASSES", dict(CLASSES))
    assert register_class(Own) is Own
    assert register_class(Own) is Own
    taken = type("Huber", (SquaredError,), {})
    with pytest.raises(
        ValueError, match=r"The name 'Huber' is already registered for pauca\.losses\.regression\.Huber"
    ):
        register_class(taken)


def test_a_custom_estimator_cannot_be_saved(tmp_path):
    X, y = table()
    with pytest.raises(ModelFileError, match="OwnRegressor cannot be saved; classes that can be saved are"):
        OwnRegressor(k=2).fit(X, y).save(tmp_path / "model.json")


def test_parameters_that_cannot_be_saved(tmp_path):
    model = deepcopy(fitted("squared_error"))
    for always in (object(), np.ones((2, 2)), np.array([1j])):
        with pytest.raises(ModelFileError, match=r"always (holds a object|is an array of . dimensions?)"):
            model.set_params(always=always).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [["2020-01-01", "2021-01-01"], [b"a", b"b"]], ids=["dates", "bytes"])
def test_classes_that_cannot_be_saved(classes, tmp_path):
    kind = "datetime64[D]" if isinstance(classes[0], str) else "S1"
    model = deepcopy(fitted("bools"))
    model.classes_ = np.array(classes, dtype=kind)
    with pytest.raises(ModelFileError, match="classes_ is an array"):
        model.save(tmp_path / "model.json")


# Files on disk.


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        pauca.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        fitted("squared_error").save(tmp_path / "none" / "model.json")
    with pytest.raises(OSError, match="directory"):
        fitted("squared_error").save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_save_keeps_the_old_file(tmp_path, monkeypatch):
    fitted("squared_error").save(tmp_path / "model.json")
    before = (tmp_path / "model.json").read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                fitted("words").save(tmp_path / "model.json")
        assert (tmp_path / "model.json").read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")
def test_links_are_followed_and_others_may_read(tmp_path):
    (tmp_path / "model.json").symlink_to(tmp_path / "real.json")
    old = os.umask(0o022)
    try:
        fitted("squared_error").save(tmp_path / "model.json")
    finally:
        os.umask(old)
    assert (tmp_path / "model.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o644


def test_names_of_files_may_be_long(tmp_path):
    write_atomically(tmp_path / ("n" * 250), b"x")
    assert (tmp_path / ("n" * 250)).read_bytes() == b"x"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON, or truncated"),
        (b"\x80\x04\x95", "not a text file in UTF-8"),
        (b"[" * 100_000, "nested too deeply|not valid JSON"),
        (b"[1, 2]", "not a model file"),
        (b'{"format": "something else"}', "not a model file"),
        (b'{"format": "pauca model"}', "version: expected an integer, got None"),
        (b'{"format": "pauca model", "version": 4}', "the field 'pauca_version' is missing"),
        (
            b'{"format": "pauca model", "version": 5}',
            r"version: .*version 5, but this pauca .* reads version 4; update pauca",
        ),
        (
            b'{"format": "pauca model", "version": 1}',
            r"version: .*version 1, from before the first release.* save the model again",
        ),
        (b'{"format": "pauca model", "format": 1}', "the same field twice"),
        (b'{"format": NaN}', "NaN is not a finite number"),
        (b'{"format": 1e999}', "1e999 is not a finite number"),
        (b'{"format": ' + b"1" * 5000 + b"}", "not valid JSON|not a model file"),
    ],
)
def test_files_that_are_no_models(content, message, tmp_path):
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"model\.json: .*({message})"):
        pauca.load(tmp_path / "model.json")


def test_a_truncated_file_is_an_error(tmp_path):
    fitted("words").save(tmp_path / "model.json")
    content = (tmp_path / "model.json").read_bytes().rstrip()
    for end in range(0, len(content), 37):
        (tmp_path / "model.json").write_bytes(content[:end])
        with pytest.raises(ModelFileError):
            pauca.load(tmp_path / "model.json")


def test_a_changed_file_is_noticed(tmp_path):
    fitted("squared_error").save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    document["models"][1]["coef"][0] *= 2
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"checksum: the file was changed.*delete the field 'checksum'"):
        pauca.load(tmp_path / "model.json")
    del document["checksum"]
    (tmp_path / "model.json").write_text(json.dumps(document))
    edited = pauca.load(tmp_path / "model.json")
    assert edited.at(1).coef_[1] == 2 * fitted("squared_error").at(1).coef_[1]


# The fields of a file.


def _put(*path_and_value):
    *path, value = path_and_value

    def change(document):
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def _drop(*path):
    def change(document):
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("squared_error", _put("surprise", 1), "unknown field 'surprise'"),
        ("squared_error", _put("models", 2, "extra", 1), r"models\[2\]: unknown field 'extra'"),
        ("squared_error", _drop("models", 2, "coef"), r"models\[2\]: the field 'coef' is missing"),
        ("squared_error", _put("models", 3, "coef", 0, "1"), r"models\[3\]\.coef\[0\]: expected a number, got '1'"),
        ("squared_error", _put("models", 3, "coef", 0, None), r"models\[3\]\.coef\[0\]: expected a number"),
        ("squared_error", _put("models", 3, "coef", 0, True), r"models\[3\]\.coef\[0\]: expected a number, got True"),
        (
            "squared_error",
            _put("models", 3, "coef", 0, np.nan),
            r"models\[3\]\.coef\[0\]: expected a finite number, got nan",
        ),
        (
            "squared_error",
            _put("models", 3, "coef", 0, 10**400),
            r"expected a finite number, got a number of very many",
        ),
        ("squared_error", _put("models", 3, "intercept", np.inf), r"models\[3\]\.intercept: expected a finite number"),
        ("squared_error", _put("models", 3, "objective", np.nan), r"models\[3\]\.objective: expected a finite number"),
        (
            "squared_error",
            _put("models", 3, "coef", [1.0]),
            r"models\[3\]\.coef: expected a list of length 3, got length 1",
        ),
        (
            "squared_error",
            _put("models", 3, "importance", [1.0]),
            r"models\[3\]\.importance: expected a list of length 3",
        ),
        (
            "squared_error",
            _put("models", 3, "support", [1, 2, 6]),
            r"models\[3\]\.support\[2\]: expected an integer from 0 to 5, got 6",
        ),
        (
            "squared_error",
            _put("models", 3, "support", [-1, 2, 5]),
            r"models\[3\]\.support\[0\]: expected an integer from 0 to 5, got -1",
        ),
        (
            "squared_error",
            _put("models", 3, "support", [2, 1, 4]),
            r"models\[3\]\.support: the numbers must be strictly increasing",
        ),
        (
            "squared_error",
            _put("models", 3, "support", [0, 1, 3]),
            r"models\[3\]\.support: .* unit that was not selected",
        ),
        (
            "squared_error",
            _put("models", 3, "units", [1.0, 2, 3]),
            r"models\[3\]\.units\[0\]: expected an integer",
        ),
        ("squared_error", _put("models", 3, "diverged", 0), r"models\[3\]\.diverged: expected true or false, got 0"),
        ("squared_error", _put("models", {}), "models: expected a list, got an object"),
        ("squared_error", _put("models", []), "models: the model of size 0 is missing"),
        ("squared_error", _drop("models", 0), "models: the model of size 0 is missing"),
        ("squared_error", _put("size", 5), "size: there is no model of size 5"),
        ("squared_error", _put("size", "3"), "size: expected an integer"),
        ("squared_error", _put("stop", "tired"), "stop: 'tired' is unknown; expected one of 'callback'"),
        ("squared_error", _put("kind", "Pickle"), "kind: 'Pickle' is unknown; expected one of .*'SparseClassifier'"),
        ("squared_error", _put("moves", 0, ["add"]), r"moves\[0\]: a move is"),
        ("squared_error", _put("moves", 0, []), r"moves\[0\]: a move is"),
        (
            "squared_error",
            _put("moves", 0, ["add", 6]),
            r"moves\[0\]\[1\]: expected an integer from 0 to 5, got 6",
        ),
        ("squared_error", _put("features", "names", ["a"]), r"features\.names: expected a list of length 6"),
        ("squared_error", _put("features", "names", 0, 3), r"features\.names\[0\]: expected a string, got 3"),
        ("squared_error", _put("features", "count", -1), r"features\.count: expected an integer from 0 to"),
        ("squared_error", _put("output_names", []), "output_names: the list is empty"),
        ("outputs", _put("output_names", None), r"models\[0\]\.coef: expected a list of length 0"),
        ("outputs", _put("models", 1, "intercept", 1.0), r"models\[1\]\.intercept: expected a list"),
        (
            "groups",
            _put("feature_groups", "group_of_feature", 0, 3),
            r"feature_groups\.group_of_feature\[0\]: expected an integer from 0 to 2",
        ),
        (
            "groups",
            _put("feature_groups", "labels", "dtype", "datetime64"),
            r"feature_groups\.labels\.dtype: 'datetime64' is unknown",
        ),
        (
            "groups",
            _put("feature_groups", "labels", "array", 1, 5),
            r"feature_groups\.labels\.array\[1\]: expected a string, got 5",
        ),
        ("squared_error", _drop("parameters", "ridge"), "parameters: the field 'ridge' is missing"),
        ("squared_error", _put("parameters", "lasso", 1), "parameters: unknown field 'lasso'"),
        ("squared_error", _put("parameters", "ridge", -1), "the file is inconsistent: The 'ridge' parameter"),
        (
            "squared_error",
            _put("parameters", "loss", "log_loss"),
            "the file is inconsistent: loss='log_loss' is for .* classes",
        ),
        (
            "squared_error",
            _put("parameters", "loss", {"module": "os"}),
            "parameters.loss: expected an object with one of",
        ),
        ("huber", _put("parameters", "loss", "class", "os.system"), r"parameters\.loss\.class: 'os.system' is unknown"),
        (
            "huber",
            _put("parameters", "loss", "options", {"threshold": -1}),
            r"parameters\.loss\.options: The threshold",
        ),
        ("huber", _put("parameters", "loss", "options", {"x": 1}), r"parameters\.loss\.options: .*unexpected keyword"),
        ("huber", _put("parameters", "loss", "options", {}), r"parameters\.loss\.options: the options of Huber are"),
        ("huber", _put("parameters", "loss", "options", 3), r"parameters\.loss\.options: expected an object, got 3"),
        ("words", _put("arrays", "classes_", "array", ["x"]), "the classes must be two or more"),
        ("words", _put("arrays", "classes_", "array", ["x", "x"]), "the classes must be two or more"),
        ("multinomial", _put("arrays", "classes_", "array", ["x", "y"]), "the classes must be two or more"),
        ("words", _put("arrays", {}), "arrays: the field 'classes_' is missing"),
        ("hinge", _put("arrays", "classes_", "array", 0, 300), r"arrays\.classes_\.array\[0\]: .* from -128 to 127"),
        ("constraints", _put("parameters", "costs", "dict", [["a", 1], ["a", 2]]), r"parameters\.costs: duplicate key"),
        (
            "constraints",
            _put("parameters", "costs", "dict", [["a"]]),
            r"parameters\.costs\.dict\[0\]: expected a list of length 2",
        ),
        ("constraints", _put("parameters", "costs", "dict", [[["a"], 1]]), r"expected a single value, got a list"),
    ],
)
def test_errors_name_the_location(name, change, message):
    document = json.loads(json.dumps(write_document(fitted(name))))
    change(document)
    with pytest.raises(ModelFileError, match=message):
        read_document(document)


ODD = [None, True, -1, 0, 1, 3, 2**40, 10**500, 0.5, -0.0, 1e308, "", "squared_error", "0", [], [[]], [1, 2], {}]
ODD += [{"float": "inf"}, {"float": 1}, {"tuple": [1]}, {"class": "FoBa", "options": {}}, {"dict": [[None, 1]]}]
ODD += [{"array": ["a"], "dtype": "str"}, {"array": [True, 2], "dtype": "object"}, {"set": [{"float": "nan"}]}]


def _places(node, path=()):
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _places(value, (*path, key))


def _mutated(document, data):
    """The document with one value changed, dropped, doubled or renamed."""
    path = data.draw(st.sampled_from(sorted(_places(document), key=repr)))
    if not path:
        return data.draw(st.sampled_from(ODD))
    node = document
    for step in path[:-1]:
        node = node[step]
    how = data.draw(st.sampled_from(["put", "put", "drop", "again", "nudge"]))
    if how == "drop":
        del node[path[-1]]
    elif how == "again" and isinstance(node, list):
        node.append(node[path[-1]])
    elif how == "again":
        node[data.draw(st.text(max_size=3))] = node[path[-1]]
    elif how == "nudge" and isinstance(node[path[-1]], int | float):
        node[path[-1]] += data.draw(st.sampled_from([-1, 1, 0.5, 1e300]))
    else:
        node[path[-1]] = data.draw(st.sampled_from(ODD) | st.text(max_size=5))
    return document


@pytest.mark.parametrize("checked", [True, False], ids=["checksum", "no checksum"])
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_file_loads_or_raises_a_model_file_error(checked, tmp_path, data):
    name = data.draw(st.sampled_from(["huber", "outputs", "groups", "constraints", "multinomial", "words"]))
    model, document = fitted(name), json.loads(file_of(name))
    if not checked:
        del document["checksum"]
    (tmp_path / "model.json").write_text(json.dumps(_mutated(document, data)))
    try:
        again = pauca.load(tmp_path / "model.json")
    except ModelFileError:
        return
    if checked:
        assert_same_model(model, again)
    else:  # another model, perhaps, but a sound one
        assert isinstance(again.summary(), str)
        X = rows_for(model)
        X = X.set_axis(again.feature_names_in_, axis=1) if hasattr(again, "feature_names_in_") else X.to_numpy()
        with np.errstate(all="ignore"):
            assert len(again.predict(X)) == len(X)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_load_or_raise_a_model_file_error(tmp_path, data):
    content = bytearray(file_of("groups"))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    (tmp_path / "model.json").write_bytes(content)
    try:
        again = pauca.load(tmp_path / "model.json")
    except ModelFileError:
        return
    assert_same_model(fitted("groups"), again)


@settings(max_examples=100, deadline=None)
@given(
    coef=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    threshold=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
def test_floats_come_back_to_the_last_bit(coef, threshold):
    document = write_document(fitted("huber"))
    document["models"][2]["coef"] = coef
    document["parameters"]["loss"]["options"]["threshold"] = threshold
    again = read_document(json.loads(json.dumps(document)))
    assert np.array(coef).tobytes() == again.path_[2].coef.tobytes()
    assert again.loss == Huber(threshold)


def test_infinite_importance():
    document = write_document(fitted("separable"))
    document["models"][1]["importance"] = [{"float": "inf"}]
    assert read_document(document).path_[1].importance.tolist() == [np.inf]


def test_a_series_of_costs_comes_back_as_an_array(tmp_path):
    X, y = table()
    model = SparseRegressor(k=2, costs=pd.Series(range(1, 7))).fit(X, y)
    assert reloaded(model, tmp_path).costs.tolist() == [1, 2, 3, 4, 5, 6]


def test_class_labels_that_look_like_numbers_stay_strings(tmp_path):
    X, y = table()
    model = SparseClassifier(k=2).fit(X, np.where(y > 0, "1", "0"))
    assert reloaded(model, tmp_path).classes_.tolist() == ["0", "1"]
