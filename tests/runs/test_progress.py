"""What is shown of a long fit: when, where, and how much is left."""

import io

import numpy as np
import pytest

from pauca import SparseRegressor
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


def test_bars_and_lines(monkeypatch):
    monkeypatch.setattr(module, "DELAY", 0.001)
    monkeypatch.setattr(module, "FIRST_LINE", 0.001)
    for stream in (Terminal(), io.StringIO()):
        report = ProgressReport(stream, time_limit=15.0)
        with report:
            assert report(move(5, 1)) is False
            assert report.line(report._started + 10).startswith("[")
            assert "fold 2 of 5, size 5 of 10, 10 s so far, about 5 s left" in report.line(report._started + 10)
            while not stream.getvalue():
                pass
        text = stream.getvalue()
        assert text.endswith("\r\x1b[K" if stream.isatty() else "\n")
        assert ("\r" in text) == stream.isatty()
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
