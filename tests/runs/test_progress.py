"""What is shown of a long fit: when, where, and how much is left."""

import io
import itertools
import sys

import numpy as np
import pytest

from pauca import SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.runs import progress as module
from pauca.runs.progress import ProgressReport, TimeLeft, duration
from pauca.runs.run import Progress


def move(size, fold, k=10, n_folds=5):
    return Progress(("add", 1), size, k, 1.0, 2.0, 3.0, fold, n_folds)


def test_what_is_left_is_known_after_the_first_fold():
    """A run on all rows of 2 s, five folds of 10 s whose last 4 are scores without moves, a last search of 12 s."""
    left, now, told = TimeLeft(), 2.0, []
    left.runs_begin(6, 5, 0.0)
    assert left.seconds(move(5, None), 1.0) is None
    left.run_ended(0, 2.0)
    for fold in range(5):
        for second in range(10):
            size = min(10, 2 * second)
            told.append((now + second, left.seconds(move(size, fold), now + second)))
            assert left.share(move(size, fold)) == pytest.approx((fold + size / 10) / 6)
        now += 10.0
        left.run_ended(fold + 1, now)
    left.runs_begin(1, 5, now)
    for second in range(12):
        size = round(10 * (second / 12) ** 0.5)
        told.append((now + second, left.seconds(move(size, None), now + second)))
    assert [one for _, one in told[:10]] == [None] * 10
    for when, seconds in told[10:]:
        assert seconds == pytest.approx(64 - when, abs=4)
    falls = [before - after for (_, before), (_, after) in itertools.pairwise(told[10:])]
    assert min(falls) > -2  # it hardly ever rises


def test_larger_sizes_are_a_round_of_their_own():
    left = TimeLeft()
    left.runs_begin(6, 5, 0.0)
    for number in range(6):
        left.run_ended(number, 10.0 * (number + 1))
    left.runs_begin(6, 5, 60.0)
    assert left.seconds(move(11, None, k=20), 60.0) == pytest.approx(60.0)  # as the last round, until more is known
    left.run_ended(0, 62.0)
    left.run_ended(1, 67.0)
    assert left.seconds(move(11, 1, k=20), 67.0) == pytest.approx(25.0)


def test_runs_at_the_same_time():
    """Two at a time, ten seconds each."""
    left = TimeLeft()
    left.runs_begin(6, 5, 0.0)
    for number, end in ((0, 10.0), (1, 10.0), (2, 20.0), (3, 20.0)):
        left.run_ended(number, end)
    assert left.seconds(move(0, 3), 20.0) == pytest.approx(15, abs=6)


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
        report.runs_begin(6, 5)
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


def test_what_comes_after_a_fit_is_not_silent_either(monkeypatch, tmp_path):
    """Every phase is shown with its steps by one report, that of the outermost call; none without verbose."""
    shown = []
    monkeypatch.setattr(ProgressReport, "phase", lambda self, name, n_steps=0: shown.append((id(self), name, n_steps)))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    model = SparseRegressor(k=range(3), cv=3, verbose=1).fit(X, X[:, 0] + rng.normal(size=60))
    calls = {
        "choosing again without each fold, 3": lambda: model.evaluate(nested=True),
        "fitting without each fold, 3": lambda: model.at(2).evaluate(),
        "searching on halves of the rows, 6": lambda: model.stability(6),
        "fitting resampled rows, 7": lambda: model.inference("bootstrap", n_resamples=7),
        "looking for replacements, 0": model.alternatives,
        "proving the models to be best, 0": model.certify,
        "looking for other models, 0": lambda: model.pool(n_best=2),
    }
    for words, call in calls.items():
        shown.clear()
        call()
        assert [f"{name}, {n_steps}" for _, name, n_steps in shown] == [words]
    shown.clear()
    model.report(tmp_path / "page.html", nested=True, n_resamples=5)
    assert [name.split()[0] for _, name, _ in shown] == ["choosing", "fitting", "writing", "looking"]
    assert len({report for report, _, _ in shown}) == 1
    shown.clear()
    model.set_params(verbose=0).evaluate(nested=True)
    assert not shown


def test_steps_of_a_phase():
    report = ProgressReport(io.StringIO())
    with report, module.showing(visible=True):
        step = module.phase("resampling", 4)
        assert report.line(report._started + 2) == (0.0, "resampling, 1 of 4, 2 s so far")
        step()
        share, text = report.line(report._started + 10)
        assert share == 0.25
        assert text == "resampling, 2 of 4, 10 s so far, about 30 s left"
        module.phase("writing")
        assert report.line(report._started + 12) == (None, "writing, 12 s so far")
    module.phase("nothing is shown any more", 3)()
    assert report._phase == "writing"


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
