"""Runs can be watched, limited, interrupted and taken up again, and leave X alone."""

import itertools
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from pauca import L1Regressor, PaucaWarning, SparseRegressor, Stop, select
from pauca.methods import Exchange, FoBa, Forward
from pauca.runs import run as driver
from problems import METHODS, ar_problem

RESUMABLE = [
    *METHODS,
    FoBa(compare="cumulative"),
    FoBa(compare="smallest", removal="zero"),
    Exchange(scouts=(), detour=0),
]


@pytest.fixture(scope="module")
def hard():
    return ar_problem(80, 60, 10, rho=0.95, seed=4)


def stop_after(count):
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) >= count

    callback.seen = seen
    return callback


def same(a, b):
    assert a.path_.moves == b.path_.moves
    assert a.path_.sizes == b.path_.sizes
    for one, other in zip(a.path_, b.path_, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_callback_sees_every_move(hard, method):
    callback = stop_after(10**9)
    model = SparseRegressor(k=9, method=method, callback=callback).fit(*hard)
    assert [p.move for p in callback.seen] == model.path_.moves
    last = callback.seen[-1]
    assert last.k == 9
    assert last.null_objective == pytest.approx(model.path_[0].objective)
    assert last.objective == pytest.approx(model.path_[last.size].objective, rel=1e-8)
    assert np.all(np.diff([p.elapsed for p in callback.seen]) >= 0)


def fails(*_):
    """A function of a user's own that fails as a computation may; np.linalg raises in a module of NumPy."""
    return np.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: SparseRegressor(k=2, callback=fails).fit(X, y),
        lambda X, y: SparseRegressor(k=range(3), callback=fails, n_jobs=2).fit(X, y),
        lambda X, y: SparseRegressor(k=range(3), scoring=lambda *_: 1 / 0).fit(X, y),
        lambda X, y: L1Regressor(radius=1.0, callback=fails).fit(X, y),
        lambda X, y: select(fails, 1, gradient=fails, n_coords=3, check=False),
    ],
    ids=["callback", "callback of folds", "scorer", "l1", "objective"],
)
def test_what_functions_of_users_raise_is_left_alone(hard, fit):
    with pytest.raises((ZeroDivisionError, np.linalg.LinAlgError)):
        fit(*hard)


def test_what_cannot_be_computed_is_told_in_words(hard, monkeypatch):
    monkeypatch.setattr(driver, "apply", fails)
    with pytest.raises(ValueError, match="leave the range of floating-point numbers"):
        SparseRegressor(k=2).fit(*hard)


@pytest.mark.parametrize("cut", [1, 3, 8, 15])
@pytest.mark.parametrize("method", RESUMABLE, ids=repr)
def test_a_run_taken_up_again_equals_one_that_was_not_stopped(hard, method, cut):
    whole = SparseRegressor(k=12, method=method).fit(*hard)
    model = SparseRegressor(k=12, method=method, callback=stop_after(cut), warm_start=True).fit(*hard)
    if model.stop_ is Stop.CALLBACK:
        assert len(model.path_.moves) == cut
    model.set_params(callback=None).fit(*hard)
    same(model, whole)


@pytest.mark.parametrize("method", METHODS)
def test_going_on_to_more_features(hard, method):
    whole = SparseRegressor(k=12, method=method).fit(*hard)
    model = SparseRegressor(k=5, method=method, warm_start=True).fit(*hard)
    first = len(model.path_.moves)
    calls = stop_after(10**9)
    model.set_params(k=12, callback=calls).fit(*hard)
    same(model, whole)
    assert len(calls.seen) == len(whole.path_.moves) - first


@pytest.mark.parametrize("method", METHODS)
def test_a_lesser_goal_starts_afresh(hard, method):
    model = SparseRegressor(k=9, method=method, warm_start=True).fit(*hard)
    model.set_params(k=4).fit(*hard)
    same(model, SparseRegressor(k=4, method=method).fit(*hard))
    assert model.k_ == 4
    tol = 0.01 * model.path_[0].objective
    if method != "backward":
        model.set_params(k=None, tol=tol / 4).fit(*hard)
        model.set_params(tol=tol).fit(*hard)
        same(model, SparseRegressor(k=None, method=method, tol=tol).fit(*hard))
        model.set_params(tol=tol / 4).fit(*hard)
        same(model, SparseRegressor(k=None, method=method, tol=tol / 4).fit(*hard))


def test_other_data_start_afresh(hard):
    X, y = hard
    model = SparseRegressor(k=5, warm_start=True).fit(X, y)
    model.fit(X[:, ::-1], y)
    same(model, SparseRegressor(k=5).fit(X[:, ::-1], y))
    model.set_params(method="forward").fit(X, y)
    same(model, SparseRegressor(k=5, method="forward").fit(X, y))


@pytest.mark.parametrize("method", ["forward", "foba", "exchange"])
def test_a_time_limit_keeps_the_best_so_far(hard, method):
    words = "k=30 features were requested, but the time limit was reached at 1. Allow more time, or go on from there"
    with pytest.warns(PaucaWarning, match=words):
        model = SparseRegressor(k=30, method=method, time_limit=1e-9).fit(*hard)
    assert model.stop_ is Stop.TIME
    assert "time limit" in model.stop_.message
    assert model.k_ == 1
    np.testing.assert_array_equal(model.support_, SparseRegressor(k=1, method=method).fit(*hard).support_)
    model.set_params(time_limit=None, warm_start=True, k=6).fit(*hard)
    same(model, SparseRegressor(k=6, method=method).fit(*hard))


def test_a_time_limit_that_the_moves_of_the_last_fit_use_up_is_told(hard, monkeypatch):
    model = SparseRegressor(k=3, loss="huber", warm_start=True).fit(*hard)
    monkeypatch.setattr("pauca.runs.run.GRACE", 0.0)
    with pytest.warns(PaucaWarning, match="Allow more time: all of it was needed to repeat the moves of the last fit"):
        model.set_params(k=9, time_limit=1e-9).fit(*hard)
    assert model.k_ == 3


def test_a_backward_run_out_of_time_keeps_the_model_it_has(hard):
    with pytest.warns(PaucaWarning, match="the time limit was reached at 59"):
        model = SparseRegressor(k=5, method="backward", time_limit=1e-9).fit(*hard)
    assert model.stop_ is Stop.TIME
    assert model.k_ == 59
    assert model.score(*hard) > 0.9
    model.set_params(time_limit=None, warm_start=True).fit(*hard)
    same(model, SparseRegressor(k=5, method="backward").fit(*hard))


def test_numpy_booleans_stop_a_run_too(hard):
    model = SparseRegressor(k=9, callback=lambda progress: np.bool_(progress.size >= 3)).fit(*hard)
    assert model.stop_ is Stop.CALLBACK
    assert model.k_ == 3


@pytest.fixture
def quiet(monkeypatch):
    """No interrupt of another test is remembered."""
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("quiet")
def test_ctrl_c_leaves_a_usable_path(hard, method):
    X, y = hard

    def interrupt(progress):
        if progress.size == (4 if method != "backward" else 7):
            raise KeyboardInterrupt

    with pytest.warns(PaucaWarning, match="interrupted"):
        model = SparseRegressor(k=10, method=method, callback=interrupt).fit(X[:, :10], y)
    assert model.stop_ is Stop.INTERRUPTED
    assert model.k_ >= 4
    assert np.all(np.isfinite(model.predict(X[:, :10])))


@pytest.mark.usefixtures("quiet")
def test_a_second_ctrl_c_interrupts_as_usual(hard):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(PaucaWarning, match="interrupted"):
        SparseRegressor(k=3, callback=interrupt).fit(*hard)
    with pytest.raises(KeyboardInterrupt):
        SparseRegressor(k=3, callback=interrupt).fit(*hard)


@pytest.mark.usefixtures("quiet")
def test_ctrl_c_in_the_middle_of_a_move(hard, monkeypatch):
    """The history knows only whole moves: the half-made one is not in it."""
    from pauca.solvers.factorisation import InverseFactor

    append, calls = InverseFactor.appended, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return append(self, *args)

    monkeypatch.setattr(InverseFactor, "appended", interrupted)
    with pytest.warns(PaucaWarning, match="interrupted; the models up to size 3 were kept"):
        model = SparseRegressor(k=10, method="forward").fit(*hard)
    monkeypatch.undo()
    same(model, SparseRegressor(k=3, method="forward").fit(*hard))


@pytest.fixture
def mapped(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "X.npy"
    X = np.lib.format.open_memmap(file, mode="w+", dtype=np.float64, shape=(3000, 1000))
    X[:] = rng.standard_normal(X.shape)
    y = X[:, :5].sum(axis=1) + rng.standard_normal(3000)
    X.flush()
    return np.load(file, mmap_mode="r"), y


@pytest.mark.parametrize("method", ["forward", "foba", "exchange"])
def test_a_read_only_memory_map_is_neither_copied_nor_changed(mapped, method):
    X, y = mapped
    SparseRegressor(k=2, method=method).fit(X[:50, :50], y[:50])  # whatever is imported late
    tracemalloc.start()
    model = SparseRegressor(k=10, method=method).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(range(5)) <= set(model.support_)
    assert peak < X.nbytes / 3


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_other_dtypes_are_not_copied_either(dtype):
    X = (np.random.default_rng(0).standard_normal((3000, 1000)) * 20).astype(dtype)
    X.flags.writeable = False
    y = X[:, :3].sum(axis=1, dtype=float)
    tracemalloc.start()
    SparseRegressor(k=3, method="forward").fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * X.size / 2


def test_the_answer_is_the_same_at_any_number_of_threads():
    X, y = ar_problem(300, 600, 15, rho=0.95)
    answers = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            answers.append(SparseRegressor(k=15).fit(X, y).path_.moves)
    assert answers[0] == answers[1] == answers[2]


def test_table_plot_and_summary(hard, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    X, y = hard
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(60)])
    model = SparseRegressor(k=5).fit(frame, y)
    table = model.path_.to_frame()
    assert list(table.index) == [0, 1, 2, 3, 4, 5]
    assert table["explained"].is_monotonic_increasing
    now = set()
    for _, row in table.iterrows():
        now = now.difference(row["left"]).union(row["entered"])
        assert now == set(row["features"])
    ax = model.path_.plot()
    labels = " ".join(text.get_text() for text in ax.texts)
    assert all(name in labels for name in model.path_.names(1))
    ax.figure.savefig(tmp_path / "path.png")
    mpl.pyplot.close(ax.figure)
    text = model.summary()
    assert all(name in text for name in model.get_feature_names_out())
    share = model.path_[5].importance.max() / model.path_[0].objective
    assert f"{100 * share:.2f} %" in text
    assert "path of sizes 0-5" in repr(model.path_).lower()


@pytest.mark.parametrize(("library", "call"), [("pandas", "to_frame"), ("matplotlib.pyplot", "plot")])
def test_a_missing_extra_is_named(hard, monkeypatch, library, call):
    path = SparseRegressor(k=2).fit(*hard).path_
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install"):
        getattr(path, call)()


def test_rescaled_data_start_afresh_where_the_scale_matters(hard):
    X, y = hard
    method = Forward(rule="gradient")
    scaled = X * 2.0 ** np.random.default_rng(0).integers(-6, 6, X.shape[1])
    model = SparseRegressor(k=4, method=method, warm_start=True).fit(X, y)
    same(model.fit(scaled, y), SparseRegressor(k=4, method=method).fit(scaled, y))
    ridged = SparseRegressor(k=4, warm_start=True).fit(X, y).set_params(ridge=5.0).fit(X, y)
    same(ridged, SparseRegressor(k=4, ridge=5.0).fit(X, y))


@pytest.mark.parametrize("seed", range(6))
def test_exchange_goes_on_the_same_way_from_any_move(seed):
    X, y = ar_problem(50, 41, 8, rho=0.97, seed=seed)  # of fewer columns every fit would be proved
    whole = SparseRegressor(k=8).fit(X, y)
    for cut in range(1, len(whole.path_.moves)):
        model = SparseRegressor(k=8, callback=stop_after(cut), warm_start=True).fit(X, y)
        same(model.set_params(callback=None).fit(X, y), whole)


def test_the_clock_is_read_while_rivals_are_tried(hard, monkeypatch):
    """Exchange hands over None in between; a run past its limit ends there, before the next move."""
    clock = itertools.count()
    monkeypatch.setattr("pauca.runs.run.time.monotonic", lambda: float(next(clock)))
    whole = SparseRegressor(k=8).fit(*hard)
    ticks = next(clock)
    with pytest.warns(PaucaWarning, match="the time limit was reached"):
        limited = SparseRegressor(k=8, time_limit=ticks / 2).fit(*hard)
    assert ticks > 3 * len(whole.path_.moves)
    assert limited.stop_ is Stop.TIME
    assert limited.path_.moves == whole.path_.moves[: len(limited.path_.moves)]
    assert 0 < len(limited.path_.moves) < len(whole.path_.moves)


def test_targets_that_cannot_be_squared_are_refused(hard):
    X, y = hard
    for factor in (1e155, 1e-200):
        with pytest.raises(ValueError, match="Input y has values of magnitude"):
            SparseRegressor(k=2).fit(X, y * factor)


def test_a_perfect_fit_is_not_reported_as_dependence():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseRegressor(k=20).fit(rng.standard_normal((10, 40)), rng.standard_normal(10))
    assert model.stop_ is Stop.PERFECT
