"""What is shown of a long fit: when, where, and how much is left."""

import io
import sys

import numpy as np
import pytest

from pauca import SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.runs import progress as module
from pauca.runs.progress import ProgressReport, TimeLeft, duration
from pauca.runs.run import Progress


def move(size, fold, k=10, n_folds=5):
    return Progress(("add", 1), size, k, 1.0, 2.0, 3.0, fold, n_folds)


def test_what_is_left_is_known_after_the_first_run():
    """Six runs of ten seconds each, one after the other; then a round to larger sizes."""
    left, now = TimeLeft(), 0.0
    for number, fold in enumerate([None, 0, 1, 2, 3, 4]):
        for size in range(11):
            left.record(move(size, fold), now)
            if number == 0:
                assert left.seconds(move(size, fold), now) is None
            else:
                assert left.seconds(move(size, fold), now) == pytest.approx(60 - now, abs=0.01)
            now += 1.0 if size < 10 else 0.0
        assert left.share(move(10, fold)) == pytest.approx((number + 1) / 6)
    left.record(move(11, None, k=20), now)
    assert left.seconds(move(11, None, k=20), now) is None


def test_runs_at_the_same_time():
    """Two at a time, ten seconds each: sixty seconds of work take thirty."""
    left = TimeLeft()
    for start in (0.0, 10.0):
        for size in range(11):
            for fold in ([None, 0], [1, 2])[int(start) // 10]:
                left.record(move(size, fold), start + size)
    assert left.seconds(move(10, 2), 20.0) == pytest.approx(20, abs=10)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", ["rich", "tqdm", "own", "lines"])
def test_bars_and_lines(monkeypatch, kind):
    """A bar of rich or tqdm where it is installed, else one of our own; lines where there is no terminal."""
    if kind in ("rich", "tqdm"):
        pytest.importorskip(kind)
    for other in {"rich", "tqdm"} - {kind}:
        monkeypatch.setitem(sys.modules, other, None)
        monkeypatch.setitem(sys.modules, f"{other}.console", None)
    monkeypatch.setattr(module, "DELAY", 0.001)
    monkeypatch.setattr(module, "FIRST_LINE", 0.001)
    stream = io.StringIO() if kind == "lines" else Terminal()
    report = ProgressReport(stream, time_limit=15.0)
    with report:
        assert report(move(5, 1)) is False
        share, text = report.line(report._started + 10)
        assert share == pytest.approx(0.5 / 6)
        assert text == "fold 2 of 5, size 5 of 10, 10 s so far, about 5 s left"
        while "fold 2 of 5" not in stream.getvalue():
            pass
        assert type(report._bar).__name__ == {"rich": "RichBar", "tqdm": "TqdmBar", "own": "Bar"}.get(kind, "NoneType")
    text = stream.getvalue()
    if kind == "own":
        assert "[##...." in text
        assert text.endswith("\r\x1b[K")  # nothing is left on the screen
    assert ("\r" in text) == (kind != "lines")
    if kind == "lines":
        assert "pauca: 8 % done, fold 2 of 5" in text


def test_durations():
    assert [duration(s) for s in (3.4, 130, 7300)] == ["3 s", "2 min", "2 h 2 min"]


def test_verbose(capsys, monkeypatch):
    """0 prints nothing, however long it takes; 1 shows progress and still calls the callback."""
    monkeypatch.setattr(module, "FIRST_LINE", 0.0)
    rng = np.random.default_rng(0)
    X, calls = rng.normal(size=(60, 6)), []
    model = SparseRegressor(k=range(5), callback=lambda one: calls.append(one) and False)
    model.fit(X, X[:, 0])
    assert capsys.readouterr() == ("", "")
    quiet = len(calls)
    model.set_params(verbose=1).fit(X, X[:, 0])
    out, err = capsys.readouterr()
    assert out == ""
    assert "s so far" in err
    assert len(calls) == 2 * quiet
    with pytest.raises(ValueError, match="'verbose' parameter"):
        SparseRegressor(verbose=-1).fit(X, X[:, 0])


@pytest.mark.parametrize("kind", [SparseCox, SparseOrdinalClassifier])
def test_other_estimators_show_progress_too(capsys, monkeypatch, kind):
    monkeypatch.setattr(module, "FIRST_LINE", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = rng.integers(3, size=40)
    if kind is SparseCox:
        y = np.array([(True, time) for time in rng.exponential(size=40)], dtype=[("event", bool), ("time", float)])
    kind(k=2, verbose=1).fit(X, y)
    assert "s so far" in capsys.readouterr().err
