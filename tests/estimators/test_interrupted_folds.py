"""Ctrl-C in what is computed after a fit: half a search is never taken for the model of its rows."""

import signal
import threading
import time

import pytest
from sklearn.datasets import load_diabetes

from pauca import PaucaWarning, SparseRegressor, load
from pauca.estimators import training_data
from pauca.relaxations import optimality_bounds
from pauca.relaxations.forest import Forest
from pauca.runs import run as driver
from pauca.subsets.least_squares import LeastSquaresSubset
from problems import ar_problem

pytestmark = pytest.mark.usefixtures("ctrl_c")


class Press:
    """A callback that presses Ctrl-C at one move after it was armed."""

    left = None

    def __call__(self, progress):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("moves", [2, 40])
def test_nested_folds_end_with_the_interrupt(moves, monkeypatch, tmp_path):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    press = Press()
    model = SparseRegressor(cv=3, callback=press).fit(X, y)
    press.left = moves
    with pytest.raises(KeyboardInterrupt):
        model.report(tmp_path / "page.html", nested=True)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("measured", ["evaluate", "stability"])
def test_searches_on_other_rows_end_with_the_interrupt(measured, loss, monkeypatch):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SparseRegressor(k=3, loss=loss).fit(X, y)
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    record, records = driver.History.record, []

    def press(self, *about):
        record(self, *about)
        records.append(about)
        if len(records) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(driver.History, "record", press)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, measured)()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_stability_keeps_the_halves_that_were_searched(n_jobs, monkeypatch):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SparseRegressor(k=2).fit(X, y)
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    search, searched = training_data.search_one_size, []

    def press(*about):
        searched.append(search(*about))
        if len(searched) == 7:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if len(searched) >= 7:  # other threads leave the main one time to see it
            time.sleep(0.05)
        return searched[-1]

    monkeypatch.setattr(training_data, "search_one_size", press)
    with pytest.warns(PaucaWarning, match="interrupted: frequencies are those of .* of 40 random halves"):
        found = model.stability(40, n_jobs=n_jobs)
    assert found is model.stability_
    assert 6 <= found.n_resamples < 40
    assert sum(found.frequency.values()) == pytest.approx(2)


@pytest.mark.parametrize("where", ["set-up", "trees", "last refits"])
def test_a_proof_keeps_what_it_has_at_an_interrupt(where, monkeypatch, tmp_path):
    X, y = ar_problem(100, 50, 20, rho=0.95, snr=1.0, seed=2)
    model = SparseRegressor(k=8, ridge=1e-4, method="forward").fit(X, y)
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    owner, name = {
        "set-up": (optimality_bounds, "base_diagonal"),
        "trees": (Forest, "advance"),
        "last refits": (LeastSquaresSubset, "finish"),
    }[where]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, interrupted)
        certificate = model.certify(time_limit=None if where == "trees" else 0.5)
    assert certificate is model.certificate_
    assert certificate.interrupted == (where != "last refits")
    if where == "set-up":
        assert certificate.message(8) == "The proof was interrupted before there was a bound."
    else:
        assert 0 < certificate.lower_bound[8] < model.path_[8].objective
    if where == "trees":
        assert certificate.message(8).endswith(" (lower bound). Interrupted from the keyboard.")
    model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").certificate_ == certificate


def interrupted(*given, **named):
    raise KeyboardInterrupt
