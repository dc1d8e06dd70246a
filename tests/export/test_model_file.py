"""Model files: a loaded model equals the saved one, whatever the disk does."""

import json
import os
import stat
from copy import deepcopy

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fitted_models import MAKERS, NAMES, fitted, rows_for, table
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import assert_same_model
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


def reloaded(model, folder):
    model.save(folder / "model.json")
    return pauca.load(folder / "model.json")


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
    assert (document["format"], document["version"], document["pauca_version"]) == ("pauca model", 5, pauca.__version__)
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
        (b'{"format": "pauca model", "version": 5}', "the field 'pauca_version' is missing"),
        (
            b'{"format": "pauca model", "version": 6}',
            r"version: .*version 6, but this pauca .* reads version 5; update pauca",
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


def test_infinity_as_a_level_of_a_category(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical([1.0, np.inf, 2.0, np.inf, 1.0, 2.0]), "b": np.arange(6.0)})
    with pytest.warns(pauca.PaucaWarning, match="The chosen column, 'a', has 2 coefficients, on 6 rows"):
        model = pauca.SparseRegressor(k=1).fit(frame, [0.0, 5.0, 0.1, 5.1, 0.2, 0.1])
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(pauca.load(tmp_path / "model.json").predict(frame), model.predict(frame))
