"""Streams: chunks equal the whole, nothing is half-updated, and the second stage fits what the first has found."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn_checks import parametrize_settings
from streams import KINDS, kind, make_rows

import pauca
from pauca import PaucaWarning, StreamClassifier, StreamRegressor, clock
from pauca.losses import Huber
from pauca.sgd.tuning import SettingsSearch
from problems import ar_problem, in_chunks


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning", "ignore:No features were selected:UserWarning")
@pytest.mark.usefixtures("array_api")
@parametrize_settings(
    [
        StreamRegressor(loss="huber", average=False, passes=1, radius=50.0),
        StreamRegressor(),
        StreamRegressor(fit_intercept=False, ridge=0.1, keep_rows=50),
        StreamClassifier(loss="hinge", passes=2, ridge=1e-3, radius=10.0, learning_rate=0.1, first_epoch=30),
        StreamClassifier(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def feed(estimator, X, y, size, **more):
    for start in range(0, X.shape[0], size):
        estimator.partial_fit(X[start : start + size], y[start : start + size], **more)
    return estimator


def first_chunk(estimator, y):
    return {"classes": np.unique(y)} if isinstance(estimator, StreamClassifier) else {}


def assert_same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.average_iterate_[0], other.average_iterate_[0])
    np.testing.assert_array_equal(one.last_iterate_[0], other.last_iterate_[0])
    assert one.n_samples_seen_ == other.n_samples_seen_


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [1, 37, 200])
def test_chunks_of_any_size_equal_one_array(name, size):
    estimator, X, y = kind(name)
    more = first_chunk(estimator, y)
    X = sparse.csr_matrix(X)
    whole = clone(estimator).partial_fit(X, y, **more).finish()
    assert_same(feed(clone(estimator), X, y, size, **more).finish(), whole)
    assert set(whole.support_) == {7, 11, 30}


@pytest.mark.parametrize("name", KINDS)
def test_one_pass_in_order_is_the_same_by_fit(name):
    estimator, X, y = kind(name, passes=1, shuffle=False)
    stream = feed(clone(estimator), X, y, 100, **first_chunk(estimator, y)).finish(X, y)
    assert_same(estimator.fit(X, y), stream)


def test_dense_and_sparse_rows_give_the_same():
    X, y = make_rows()
    dense = StreamRegressor(k=3).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        np.testing.assert_allclose(StreamRegressor(k=3).fit(form(X), y).coef_, dense.coef_, rtol=1e-9)
    np.testing.assert_allclose(StreamRegressor(k=3).fit(X.astype(np.float32), y).coef_, dense.coef_, rtol=1e-4)
    np.testing.assert_array_equal(StreamRegressor(k=3).fit(np.asfortranarray(X), y).coef_, dense.coef_)


@pytest.mark.parametrize("at", [50, 350])
def test_pickling_in_mid_stream_and_continuing_equals_not_stopping(at):
    estimator, X, y = kind("numbers")
    plain = feed(clone(estimator), X, y, 50).finish()
    part = pickle.loads(pickle.dumps(feed(clone(estimator), X[:at], y[:at], 50)))
    assert_same(feed(part, X[at:], y[at:], 50).finish(), plain)


@pytest.mark.parametrize("at", [50, 350])
def test_predicting_in_mid_stream_changes_nothing_of_what_follows(at):
    estimator, X, y = kind("numbers")
    plain = feed(clone(estimator), X, y, 50).finish()
    curious = feed(clone(estimator), X[:at], y[:at], 50)
    curious.predict(X[:3])
    assert curious.finish().n_samples_seen_ == at
    assert_same(feed(curious, X[at:], y[at:], 50).finish(), plain)


def test_out_of_date_attributes_are_computed_again():
    estimator, X, y = kind("numbers")
    estimator.fit(X, y)
    before = estimator.coef_
    estimator.partial_fit(X[:0], y[:0])
    assert estimator.coef_ is before
    estimator.partial_fit(X[:50], -y[:50])
    assert estimator.n_samples_seen_ == len(y) + 50
    assert not np.array_equal(estimator.coef_, before)
    copy = clone(estimator).fit(X, y).partial_fit(X[:50], -y[:50]).finish()
    assert_same(estimator, copy)
    assert "3 features of 40" in clone(estimator).partial_fit(X, y).summary()
    with pytest.raises(AttributeError, match="no attribute 'coef_'"):
        _ = clone(estimator).partial_fit(X[:0], y[:0]).coef_


def test_a_refit_takes_features_that_occur_in_its_rows():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 400, (3000, 3)), axis=1)
    columns[:, 0] = rng.integers(0, 5, 3000)
    X = sparse.csr_matrix((np.ones(9000), columns.ravel(), np.arange(0, 9001, 3)), shape=(3000, 400))
    y = columns[:, 0] + 0.1 * rng.standard_normal(3000)
    stream = StreamRegressor(k=20, keep_rows=100, ridge=1e-6).partial_fit(X, y).finish()
    assert (stream.k_, stream.stop_) == (20, "size")
    copies = sparse.hstack([X, X[:, [0]]]).tocsr()
    with pytest.warns(PaucaWarning, match="in the rows of the refit were left out: .*'x400'"):
        model = StreamRegressor(k=401).fit(copies, y)
    assert model.stop_ == "exhausted"


def test_fit_forgets_what_was_learned_before():
    estimator, X, y = kind("numbers")
    fresh = clone(estimator).fit(X, y)
    assert_same(feed(estimator, X, -y, 100).fit(X, y), fresh)


BAD_CHUNKS = {
    "missing values": (lambda X, y: (np.where(np.arange(X.shape[1]) == 4, np.nan, X), y), "NaN.*'x4'"),
    "infinite": (lambda X, y: (np.where(np.arange(X.shape[1]) == 4, np.inf, X), y), "infinity.*'x4'"),
    "another width": (lambda X, y: (X[:, :5], y), "5 features, but .* is expecting 40"),
    "lengths": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "missing target": (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "y contains NaN"),
}


@pytest.mark.parametrize(
    ("bad", "at"),
    # The first chunk may have any width.
    [(bad, at) for bad in BAD_CHUNKS for at in (0, 50, 350) if at or bad != "another width"],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_an_invalid_chunk_changes_nothing(bad, at, form):
    estimator, X, y = kind("numbers", radius=10.0, learning_rate=0.1, first_epoch=50)
    plain = feed(clone(estimator), X, y, 50).finish()
    stream = feed(clone(estimator), X[:at], y[:at], 50) if at else clone(estimator)
    spoil, message = BAD_CHUNKS[bad]
    chunk, target = spoil(X[:20], y[:20])
    with pytest.raises(ValueError, match=message):
        stream.partial_fit(form(chunk), target)
    with pytest.raises(ValueError, match="Negative"):
        stream.partial_fit(X[:20], y[:20], sample_weight=-np.ones(20))
    if not at:
        with pytest.raises(NotFittedError):
            stream.predict(X)
    assert_same(feed(stream, X[at:], y[at:], 50).finish(), plain)


def test_an_invalid_table_keeps_the_model_of_another():
    X, y = make_rows()
    for model, target in ((StreamRegressor(k=3), y), (StreamClassifier(k=3), np.digitize(y, [-1, 1]))):
        before = model.fit(X, target).predict(X)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(X[:, :5] * np.nan, target)
        with pytest.raises(ValueError, match="at least one row must count"):
            model.fit(X[:, :5], target > 0, sample_weight=np.zeros(len(y)))
        np.testing.assert_array_equal(model.predict(X), before)


def test_weights_without_rows_raise_an_error():
    estimator, X, y = kind("numbers")
    with pytest.raises(ValueError, match="belong together"):
        estimator.fit(X, y).finish(sample_weight=np.ones(len(y)))


def test_an_empty_chunk_is_no_row():
    estimator, X, y = kind("numbers")
    plain = feed(clone(estimator), X, y, 100).finish()
    stream = clone(estimator).partial_fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="No row with weight has been learned yet"):
        stream.finish()
    assert_same(feed(stream, X, y, 100).partial_fit(sparse.csr_matrix((0, 40)), []).finish(), plain)
    words, X, y = kind("two classes")
    assert feed(words.partial_fit(X[:0], y[:0], classes=["no", "yes"]), X, y, 100).finish().n_samples_seen_ == len(y)
    with pytest.raises(ValueError, match="0 sample"):
        StreamRegressor().fit(X[:0], [])


def test_before_any_chunk():
    for estimator in (StreamRegressor(), StreamClassifier()):
        calls = (
            lambda e: e.predict([[1.0]]),
            lambda e: e.finish(),
            lambda e: e.average_iterate_,
            lambda e: e.summary(),
        )
        for call in calls:
            with pytest.raises(NotFittedError):
                call(estimator)


def test_classes_that_come_late():
    X, y = make_rows()
    labels = np.where(y > 0, "yes", "no")
    no = np.flatnonzero(labels == "no")[:60]
    with pytest.raises(ValueError, match=r"the one class 'no' alone\. Give all classes with the first chunk"):
        StreamClassifier().partial_fit(X[no], labels[no])
    stream = StreamClassifier(k=3, keep_rows=100).partial_fit(X[no], labels[no], classes=["yes", "no"])
    stream.partial_fit(X, labels)
    with pytest.raises(ValueError, match="'maybe', and the classes were fixed by the first chunk"):
        stream.partial_fit(X[:2], ["no", "maybe"])
    with pytest.raises(ValueError, match="y contains None"):
        stream.partial_fit(X[:2], ["no", None])
    with pytest.raises(ValueError, match="To predict numbers use StreamRegressor"):
        StreamClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as on last call"):
        stream.partial_fit(X, labels, classes=["no", "never"])
    assert stream.finish(X, labels).n_samples_seen_ == len(y) + 60
    assert list(stream.classes_) == ["no", "yes"]
    assert stream.score(X, labels) > 0.75
    with pytest.raises(ValueError, match="'balanced' needs all rows at once"):
        StreamClassifier(class_weight="balanced").partial_fit(X, labels)


def test_classes_that_are_all_one_until_the_end_are_no_trouble():
    X, y = make_rows()
    no = np.flatnonzero(y < 0)[:30]
    stream = StreamClassifier(k=3).partial_fit(X[no], np.zeros(30), classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        assert np.all(stream.predict(X) == 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "'k' parameter"),
        ({"k": 2.5}, "'k' parameter"),
        ({"radius": 0.0}, "'radius' parameter"),
        ({"radius": -1.0}, "'radius' parameter"),
        ({"learning_rate": 0}, "'learning_rate' parameter"),
        ({"first_epoch": 0}, "'first_epoch' parameter"),
        ({"passes": 0}, "'passes' parameter"),
        ({"keep_rows": 0}, "'keep_rows' parameter"),
        ({"truncation": "best"}, "'truncation' parameter"),
        ({"average": "last"}, "'average' parameter"),
        ({"refit": 1}, "'refit' parameter"),
        ({"ridge": -1.0}, "'ridge' parameter"),
        ({"loss": "poisson"}, "Poisson"),
        ({"loss": "log_loss"}, "targets that are classes"),
        ({"time_limit": 0}, "'time_limit' parameter"),
        ({"callback": 3}, "'callback' parameter"),
    ],
)
def test_invalid_options_raise_errors(options, message):
    _, X, y = kind("numbers")
    for name in ("fit", "partial_fit"):
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(StreamRegressor(**options), name)(X, y)


@pytest.mark.parametrize("name", ["fit", "partial_fit"])
def test_losses_without_a_compiled_form_raise_errors_before_any_row(name):
    X, y = make_rows()
    for estimator, target in (
        (StreamRegressor(loss="poisson"), np.abs(y)),
        (StreamClassifier(loss="squared_hinge"), y > 0),
    ):
        with pytest.raises(ValueError, match="no compiled form"):
            getattr(estimator, name)(X, target)


def test_a_callback_ends_learning_and_a_limit_too():
    X, y = make_rows(n=20_000)
    reports = []
    model = StreamRegressor(k=2, passes=3, callback=reports.append).fit(X, y)
    assert [reports[-1].n_samples_seen, reports[-1].n_samples_total] == [60_000, 60_000]
    assert model.stop_ == "size"
    stopped = StreamRegressor(k=2, passes=3, callback=lambda progress: progress.n_samples_seen > 12_000).fit(X, y)
    assert (stopped.stop_, stopped.n_samples_seen_) == ("callback", 12_288)
    assert StreamRegressor(k=2, time_limit=1e-9).fit(X, y).stop_ == "time"


def test_the_clock_is_read_more_often_where_rows_are_long_and_classes_many(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 20)), rng.integers(0, 5, 300)
    reports = []
    monkeypatch.setattr("pauca.sgd.stream.ENTRIES_AT_ONCE", 7 * 20 * 5)
    whole = StreamClassifier(k=2, passes=1, callback=reports.append).fit(X, y)
    assert np.diff([0, *(report.n_samples_seen for report in reports)]).tolist() == [7] * 42 + [6]
    monkeypatch.setattr("pauca.sgd.stream.GRACE", 0.0)
    hurried = StreamClassifier(k=2, time_limit=1e-9).fit(X, y)
    assert (hurried.stop_, hurried.n_samples_seen_) == ("time", 7)
    monkeypatch.undo()
    np.testing.assert_array_equal(whole.coef_, StreamClassifier(k=2, passes=1).fit(X, y).coef_)


@pytest.mark.parametrize("chunks", [False, True])
def test_compiling_is_done_before_the_clock_starts(monkeypatch, chunks):
    X, y = make_rows(n=50)
    events = []
    monkeypatch.setattr("pauca.sgd.base.compile_kernels", lambda: events.append("compiled"))
    after = clock.deadline_after
    monkeypatch.setattr("pauca.sgd.base.deadline_after", lambda seconds: events.append("clock") or after(seconds))
    StreamRegressor(k=2, time_limit=60.0).fit(pauca.scan(np.asarray(X)) if chunks else X, y)
    assert events[:2] == ["compiled", "clock"]


def test_an_interrupt_keeps_what_was_learned():
    X, y = make_rows(n=20_000)

    def press(progress):
        if progress.n_samples_seen > 12_000:
            raise KeyboardInterrupt

    with pytest.warns(PaucaWarning, match="interrupted; what was learned from 12288 rows"):
        model = StreamRegressor(k=2, callback=press).fit(X, y)
    assert model.stop_ == "interrupted"
    assert model.k_ == 2


def test_an_interrupt_while_settings_are_chosen_changes_nothing(monkeypatch):
    estimator, X, y = kind("numbers")
    plain = feed(clone(estimator), X, y, 150).finish()
    stream = clone(estimator).partial_fit(X[:150], y[:150])

    def press(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SettingsSearch, "loss", press)
        with pytest.raises(KeyboardInterrupt):
            stream.partial_fit(X[150:300], y[150:300])
        with pytest.raises(KeyboardInterrupt):
            clone(estimator).fit(X, y)
    assert_same(feed(stream, X[150:], y[150:], 150).finish(), plain)


def test_what_a_callback_raises_comes_out_at_once(monkeypatch):
    estimator, X, y = kind("numbers", callback=lambda progress: 1 / 0)
    monkeypatch.setattr(SettingsSearch, "loss", lambda *_: pytest.fail("settings were searched"))
    with pytest.raises(ZeroDivisionError):
        estimator.set_params(keep_rows=10_000).fit(X, y)


def test_random_numbers_are_used_once(monkeypatch):
    X, y = make_rows(n=100)
    seeds, real = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: seeds.append(seed) or real(seed))
    StreamRegressor(k=2, passes=3, truncation="systematic", radius=9.0, learning_rate=0.1, first_epoch=20).fit(X, y)
    assert len({real(seed).random() for seed in seeds}) == 5  # the reservoir, three orders, one draw


def test_a_long_table_is_learned_in_few_blocks(monkeypatch):
    monkeypatch.setattr("pauca.sgd.stream.BLOCK", 2)
    X, y = make_rows(n=501)
    reports = []
    settings = {"radius": 9.0, "learning_rate": 0.1, "first_epoch": 20}
    StreamRegressor(k=2, passes=1, callback=reports.append, **settings).fit(X, y)
    assert len(reports) <= 100
    assert reports[-1].n_samples_seen == reports[-1].n_samples_total == 501


def test_files_hold_the_fitted_model(tmp_path):
    X, y = make_rows()
    frame = pd.DataFrame(X, columns=[f"word {j}" for j in range(40)])
    for model, target in ((StreamRegressor(k=3), y), (StreamClassifier(k=3), np.where(y > 0, "a", "b"))):
        model.fit(frame, target).save(tmp_path / "model.json")
        again = pauca.load(tmp_path / "model.json")
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        assert (again.radius_, again.first_epoch_) == (model.radius_, model.first_epoch_)
        assert (again.learning_rate_, again.n_samples_seen_) == (model.learning_rate_, model.n_samples_seen_)
        assert '"word 30"' in again.to_sql("t")
        assert model.at(0).k_ == 0
        with pytest.raises(ValueError, match="hold its coefficients but not the stream"):
            again.partial_fit(frame, target)
        with pytest.raises(ValueError, match="hold its coefficients but not the stream"):
            model.at(3).finish()


def test_a_million_columns_cost_a_few_numbers_each():
    rng = np.random.default_rng(0)
    d, n = 1 << 20, 3000
    columns = np.sort(rng.integers(0, d, (n, 5)), axis=1)
    columns[:, 0] = rng.choice([7, 11, 13], n)
    X = sparse.csr_matrix((np.ones(n * 5), columns.ravel(), np.arange(0, 5 * n + 1, 5)), shape=(n, d))
    y = 1.0 * (columns[:, 0] == 7) - 1.0 * (columns[:, 0] == 11) + 0.1 * rng.standard_normal(n)
    model = StreamRegressor(k=2, loss=Huber(1.0), passes=2).fit(X, y)
    assert model.support_.tolist() == [7, 11]


def test_tables_in_chunks_are_learned_in_their_order():
    X, y = ar_problem(2000, 20, 3, snr=4.0)
    names = [f"c{j}" for j in range(20)]
    model = StreamRegressor(k=3, passes=2).fit(pl.DataFrame(X, schema=names).lazy(), y)
    stream = StreamRegressor(k=3)
    for _ in range(2):
        stream.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, stream.finish().coef_)
    assert model.feature_names_in_.tolist() == names
    classes = np.where(y > 0, "a", "b")
    assert StreamClassifier(k=3, passes=1).fit(in_chunks(X, 300), classes).classes_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        StreamRegressor(k=3).fit(in_chunks(X, 300), y[1:])


def test_names_of_columns_are_shown_and_travel(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.standard_normal((400, 4)))
    y = X[:, [2]].toarray().ravel() + 0.1 * rng.standard_normal(400)
    words = ["cheap", "pills", "lunch", "noon"]
    model = StreamRegressor(k=1, passes=1).fit(X, y, feature_names=words)
    assert model.path_.names(1) == ["lunch"]
    assert "lunch" in model.summary()
    assert not hasattr(model, "feature_names_in_")
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").path_.names(1) == ["lunch"]
    assert model.fit(X, y).path_.names(1) == ["x2"]
    stream = StreamRegressor(k=1).partial_fit(X[:200], y[:200], feature_names=words)
    stream = pickle.loads(pickle.dumps(stream)).partial_fit(X[200:], y[200:])
    assert stream.finish().path_.names(1) == ["lunch"]
    clicks = StreamClassifier(k=1).partial_fit(X, y > 0, feature_names=words)
    assert clicks.finish().path_.names(1) == ["lunch"]
    assert StreamRegressor(k=1).fit(in_chunks(X.toarray(), 100), y, feature_names=words).path_.names(1) == ["lunch"]
    with pytest.raises(ValueError, match="X has 4, and there are 3 names"):
        StreamRegressor(k=1).fit(X, y, feature_names=words[:3])
    with pytest.raises(ValueError, match="X has column names of its own"):
        StreamRegressor(k=1).fit(pd.DataFrame(X.toarray(), columns=words), y, feature_names=words)
