"""What docs/promises.md promises of every estimator, each once found broken."""

import time
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from pauca import (
    L1Classifier,
    L1Regressor,
    PaucaWarning,
    SparseClassifier,
    SparseCox,
    SparseOrdinalClassifier,
    SparsePrecision,
    SparseRegressor,
    StreamClassifier,
    StreamRegressor,
    select,
)
from pauca.clock import OutOfTime, check_time, limited_until

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 5))
Y = X[:, 1] - 0.7 * X[:, 3] + 0.5 * RNG.standard_normal(60)
CLASSES = (Y > 0).astype(int)
TIMES = np.array([(value > -1, np.exp(value)) for value in Y], dtype=[("event", bool), ("time", float)])

FITS = {
    "SparseRegressor": lambda X, **given: SparseRegressor(k=2).fit(X, Y, **given),
    "absolute error": lambda X, **given: SparseRegressor(k=2, loss="absolute_error").fit(X, Y, **given),
    "SparseClassifier": lambda X, **given: SparseClassifier(k=2).fit(X, CLASSES, **given),
    "SparseCox": lambda X, **given: SparseCox(k=2).fit(X, TIMES, **given),
    "SparseOrdinalClassifier": lambda X, **given: SparseOrdinalClassifier(k=2).fit(X, np.digitize(Y, [-1, 1]), **given),
    "L1Regressor": lambda X, **given: L1Regressor(radius=1.0).fit(X, Y, **given),
    "L1Classifier": lambda X, **given: L1Classifier(radius=1.0).fit(X, CLASSES, **given),
    "SparsePrecision": lambda X, **given: SparsePrecision(k=2).fit(X, **given),
    "StreamRegressor": lambda X, **given: StreamRegressor(k=2).fit(X, Y, **given),
    "StreamClassifier": lambda X, **given: StreamClassifier(k=2).fit(X, CLASSES, **given),
}
IN_MEMORY = [name for name in FITS if not name.startswith("Stream")]


def masked(values):
    return np.ma.masked_array(
        values, np.eye(*np.shape(values), dtype=bool) if values.ndim == 2 else values == values[0]
    )


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pd.DataFrame(X, columns=["a", "b", "a", "c", "d"]), "several columns of one name: 'a'"),
        (masked(X), "X has masked entries"),
        (X + 1j, "Complex data not supported"),
        (pd.DataFrame(X).astype("Float64").where(X < 1, pd.NA), "NaN"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"] * 60), "b": X[:, 1]}), r"dates or times(:| in) 'when'"),
        (np.where(np.eye(*X.shape, dtype=bool), 1e200, X), "too large"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_one_door_for_all(name, bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        FITS[name](bad)


@pytest.mark.parametrize("name", IN_MEMORY)
@pytest.mark.parametrize("form", [lambda X: X.astype(object), lambda X: X.astype(np.longdouble), np.ma.masked_array])
def test_other_forms_of_the_same_numbers(name, form):
    model, same = FITS[name](X), FITS[name](form(X))
    values = [getattr(one, "coef_", getattr(one, "precision_", None)) for one in (model, same)]
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("name", IN_MEMORY)
@pytest.mark.parametrize("factor", [1e308, 1e-310])
def test_only_the_ratios_of_weights_matter(name, factor):
    weights = np.tile([1.0, 0.5, 0.25], 20)
    model, same = FITS[name](X, sample_weight=weights), FITS[name](X, sample_weight=factor * weights)
    values = [getattr(one, "coef_", getattr(one, "precision_", None)) for one in (model, same)]
    np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-9)


def test_masked_targets_and_weights_are_refused():
    with pytest.raises(ValueError, match="y has masked entries"):
        SparseRegressor(k=1).fit(X, masked(Y))
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        SparseRegressor(k=1).fit(X, Y, sample_weight=masked(np.arange(1.0, 61)))


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
def test_a_chosen_column_held_at_zero_is_not_in_the_support(loss):
    bounds = {int(np.argmin(X.T @ Y)): (0, None)}  # a positive coefficient would not help
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        model = SparseRegressor(k=2, ridge=0.0, loss=loss, bounds=bounds, always=list(bounds)).fit(X, Y)
    assert model.k_ == 2
    assert model.support_.tolist() == np.flatnonzero(model.coef_).tolist()
    assert set(bounds) <= set(model.path_[2].units.tolist())
    np.testing.assert_array_equal(model.transform(X), X[:, model.support_])


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_no_model_is_worse_than_the_empty_one(loss):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        noise = rng.integers(-5, 6, (12, 4)).astype(float)
        model = SparseRegressor(k=3, loss=loss, ridge=10.0 ** rng.uniform(-3, 3)).fit(
            noise, np.round(rng.normal(size=12))
        )
        assert all(one.objective <= model.path_[0].objective * (1 + 1e-12) for one in model.path_)


@pytest.mark.parametrize("name", ["SparseRegressor", "SparseClassifier", "L1Regressor", "SparsePrecision"])
def test_a_fit_that_fails_changes_nothing(name):
    model = FITS[name](X)
    before = dict(vars(model))
    bad = np.hstack([X, np.full((60, 1), np.nan)])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad) if name == "SparsePrecision" else model.fit(bad, CLASSES)
    assert list(vars(model)) == list(before)
    assert all(value is before[attribute] for attribute, value in vars(model).items())


def test_an_interrupt_before_there_is_a_model_changes_nothing(monkeypatch):
    model = SparseRegressor(k=1).fit(X, Y)
    before = dict(vars(model))

    def interrupted(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("pauca.estimators.fit.design_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], Y)
    assert vars(model) == before


@pytest.fixture
def first_interrupt(monkeypatch):
    """Forget the interrupts of other tests: a second one within two seconds is not kept."""
    monkeypatch.setattr("pauca.runs.run._interrupts._last", float("-inf"))


@pytest.mark.usefixtures("first_interrupt")
def test_an_interrupt_in_the_last_refits_keeps_the_model(monkeypatch):
    from pauca.subsets.fit_cache import FitCache

    def interrupted(*given):
        raise KeyboardInterrupt

    expected = SparseClassifier(k=2, ridge=0.1).fit(X, CLASSES)
    monkeypatch.setattr(FitCache, "values_without", interrupted)
    with pytest.warns(PaucaWarning, match="interrupted"):
        model = SparseClassifier(k=2, ridge=0.1, method="forward").fit(X, CLASSES)
    assert model.stop_ == "interrupted"
    assert not model.path_[2].importance_is_exact
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.usefixtures("first_interrupt")
def test_an_interrupt_while_the_path_is_refitted_keeps_that_of_the_search(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("pauca.estimators.fit.refitted_run", interrupted)
    with pytest.warns(PaucaWarning, match="interrupted"):
        model = SparseRegressor(k=2, ridge=0.5, search_ridge=0.1).fit(X, Y)
    assert model.stop_ == "interrupted"
    assert model.ridge_ == model.search_ridge_ == 0.1
    np.testing.assert_allclose(model.coef_, SparseRegressor(k=2, ridge=0.1).fit(X, Y).coef_)


@pytest.mark.usefixtures("first_interrupt")
@pytest.mark.parametrize("call", [2, 3, 4, 5])
def test_an_interrupt_while_a_move_is_written_down(monkeypatch, call):
    from pauca.subsets.least_squares import LeastSquaresSubset

    calls, snapshot = [], LeastSquaresSubset.snapshot

    def interrupted(self):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return snapshot(self)

    monkeypatch.setattr(LeastSquaresSubset, "snapshot", interrupted)
    with pytest.warns(PaucaWarning, match="interrupted"):
        model = SparseRegressor(k=4, method="forward", ridge=0.0).fit(X, Y)
    assert model.stop_ == "interrupted"
    assert model.k_ == len(model.support_) <= 4


@pytest.mark.usefixtures("first_interrupt")
@pytest.mark.parametrize("fold", [0, 1])
def test_an_interrupt_in_a_fold_is_said(fold):
    def interrupt(progress):
        if progress.fold == fold:
            raise KeyboardInterrupt

    model = SparsePrecision(k=range(4), cv=2, callback=interrupt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        model.fit(X @ RNG.standard_normal((5, 5)))
    assert model.path_.stop == "interrupted"
    assert "interrupt" in model.path_.choice.message
    assert "held out" not in model.path_.choice.message or "before the interrupt" in model.path_.choice.message


HOSTILE = ["\x1b[2J\x1b[31mred", "two\nlines", "\u202eevil", "$\\x$", "half \ud800", "bell\x07"]


def test_names_are_shown_and_not_obeyed():
    frame = pd.DataFrame(np.column_stack([X, X[:, 0] + X[:, 1]]), columns=pd.Index(HOSTILE, dtype=object))
    model = SparseRegressor(k=6, ridge=0.1).fit(frame, Y)
    plain = SparseRegressor(k=6, ridge=0.1).fit(frame.to_numpy(), Y)
    text = model.summary()
    assert len(text.splitlines()) == len(plain.summary().splitlines())
    assert all(line.isprintable() for line in text.splitlines())
    assert "two\\nlines" in text
    model.stability(n_resamples=2)
    with mpl.rc_context({"backend": "agg"}):
        for ax in (model.path_.plot(), model.plot_stability()):
            ax.figure.canvas.draw()


def test_a_clock_that_all_loops_ask():
    with limited_until(time.monotonic() - 1), pytest.raises(OutOfTime):
        check_time()
    check_time()
    with limited_until(-np.inf), limited_until(np.inf), pytest.raises(OutOfTime):
        check_time()


@pytest.mark.parametrize(
    "estimator",
    [
        SparseRegressor(k=3, loss="huber", method="backward", time_limit=1e-9),
        SparseRegressor(k=3, loss="absolute_error", ridge=0.1, time_limit=1e-9),
        SparseRegressor(cv=2, time_limit=1e-9),
        SparseClassifier(cv=2, time_limit=1e-9),
        L1Regressor(time_limit=1e-9, cv=2),
        L1Classifier(radius=2.0, time_limit=1e-9),
    ],
)
def test_fits_end_where_there_is_no_time_at_all(monkeypatch, estimator):
    """Not even that by which the first move may exceed the limit."""
    for module in ("runs.run", "estimators.fit", "l1.certificate", "l1.base", "model_selection.size_selection"):
        monkeypatch.setattr(f"pauca.{module}.GRACE", -1.0)
    y = CLASSES if "Classifier" in type(estimator).__name__ else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        estimator.fit(X, y)
    assert estimator.stop_ == "time"
    assert np.all(np.isfinite(estimator.coef_))
    assert estimator.objective_ <= estimator.path_[0].objective * (1 + 1e-12)


def test_own_objectives_are_not_asked_again_after_the_limit():
    asked = []

    def value(w):
        asked.append(1)
        return float(np.mean((Y - X @ w) ** 2))

    with pytest.warns(PaucaWarning, match="time limit"):
        path = select(value, 2, gradient=lambda w: 2 * X.T @ (X @ w - Y) / 60, n_coords=5, time_limit=1e-9)
    assert len(asked) < 60  # the check alone asks two hundred times
    assert path.stop == "time"


@pytest.mark.filterwarnings("ignore:The time limit was reached:pauca.PaucaWarning")  # whether a refit fits in
def test_settings_of_a_stream_are_not_searched_after_the_limit(monkeypatch):
    from pauca.sgd.tuning import SettingsSearch

    learned = []
    learn = SettingsSearch._learn
    monkeypatch.setattr(SettingsSearch, "_learn", lambda self, settings: learned.append(1) or learn(self, settings))
    model = StreamRegressor(k=2, passes=3, time_limit=1e-9).fit(X, Y)
    assert len(learned) <= 1
    assert model.stop_ == "time"
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("bad", [{"learning_rate": 1e9, "first_epoch": 5, "radius": 1e300}, {"learning_rate": 1e300}])
def test_a_stream_that_diverges_is_an_error_in_words(bad):
    with pytest.raises(ValueError, match="The steps of the stream diverge"):
        StreamRegressor(k=None, passes=5, **bad).fit(1e3 * X, Y)
