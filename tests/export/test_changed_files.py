"""Model files that were changed: they load, or raise an error that names the location."""

import json
import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fitted_models import fitted, rows_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import assert_same_model

import pauca
from pauca import ModelFileError
from pauca.export.model_file import read_document, write_document


@cache
def file_of(name):
    """The content of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        fitted(name).save(os.path.join(folder, "model.json"))
        return Path(folder, "model.json").read_bytes()


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
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
