"""Ctrl-C while predictions or stability are measured: half a search is never taken for the model of its rows."""

import signal

import pytest
from sklearn.datasets import load_diabetes

from pauca import SparseRegressor
from pauca.runs import run as driver

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
