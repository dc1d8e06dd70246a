"""What is shown of a long fit: when, where, and how much is left."""

import importlib.util
import io
import itertools
import sys

import numpy as np
import pytest

from pauca import (
    L1Classifier,
    L1Regressor,
    SparseClassifier,
    SparseCox,
    SparseOrdinalClassifier,
    SparsePrecision,
    SparseRegressor,
    SparseTagger,
    StreamClassifier,
    StreamRegressor,
    select,
)
from pauca.runs import progress as module
from pauca.runs.progress import ProgressReport, TimeLeft, duration
from pauca.runs.run import Progress


def move(size, fold, k=10, n_folds=5, **searches):
    return Progress(("add", 1), size, k, 1.0, 2.0, 3.0, fold, n_folds, **searches)


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
            assert left.share(move(size, fold)) == pytest.approx((1 + fold + size / 10) / 7)
        now += 10.0
        left.run_ended(fold + 1, now)
    left.runs_begin(1, 5, now)
    for second in range(12):
        size = round(10 * (second / 12) ** 0.5)
        told.append((now + second, left.seconds(move(size, None), now + second)))
    assert [one for _, one in told[:10]] == [None] * 10
    assert told.pop()[1] is None  # the last search is at its largest size, and has taken longer than a fold
    for when, seconds in told[10:]:
        assert seconds == pytest.approx(64 - when, abs=4)
    falls = [before - after for (_, before), (_, after) in itertools.pairwise(told[10:])]
    assert min(falls) > -2  # it hardly ever rises


def test_the_share_moves_within_the_first_run_and_never_falls_within_a_round():
    """A run on all rows of two searches of 10 s each, at two ridges; then folds; then a round to larger sizes."""
    left, shares = TimeLeft(), []
    left.runs_begin(6, 5, 0.0)
    for search, size in itertools.product(range(2), range(1, 11)):
        one = move(size, None, search=search, n_searches=2)
        shares.append(left.share(one))
        least, now = left.at_least(one, 10.0 * search + size), 10.0 * search + size
        assert least is None if now < 2 else least == pytest.approx(20 - now + 4 * 20)  # a fold has 4/5 of the rows
    assert shares == sorted(set(shares))
    assert shares[9] == pytest.approx(0.5 / 7)
    left.run_ended(0, 20.0)
    assert left.share(one) == pytest.approx(1 / 7)  # before the first move of a fold
    assert left.at_least(move(1, 0), 30.0) == pytest.approx(70)
    for fold in range(5):
        left.run_ended(fold + 1, 40.0 + 20 * fold)
        shares.append(left.share(move(10, fold)))
    assert shares == sorted(shares)
    left.runs_begin(6, 5, 120.0)
    assert left.share(move(10, None, k=20)) == pytest.approx(6 / 7)  # what was done counts, and sizes begin at 10
    assert left.share(move(15, None, k=20)) == pytest.approx(6 / 7 + 0.5 / 7 / 7)
    for fold in range(6):
        left.run_ended(fold, 130.0 + fold)
    assert left.share(move(20, 4, k=20)) == pytest.approx(1 - (1 / 7) ** 2)
    left.runs_begin(1, 5, 140.0)
    assert left.share(move(10, None, k=20)) == pytest.approx(1 - (1 / 7) ** 2 * 0.5)
    assert left.share(move(20, None, k=20)) == 0.99  # the fit is not over


def test_a_search_to_a_given_size_tells_what_is_left():
    """Time goes with the size at first, then faster; a lower bound comes before the estimate."""
    left = TimeLeft()
    left.runs_begin(1, 0, 0.0)
    seen = [move(size, None, k=20, n_folds=0) for size in range(21)]
    assert left.seconds(seen[1], 1.0) is left.at_least(seen[1], 1.0) is None
    assert left.at_least(seen[4], 4.0) == pytest.approx(16)
    assert left.seconds(seen[7], 7.0) is None
    assert left.seconds(seen[10], 10.0) == pytest.approx(10 * (2**1.5 - 1))
    told = [left.seconds(one, 100 * (size / 20) ** 1.5) for size, one in enumerate(seen)]
    assert told[8:20] == pytest.approx([100 * (1 - (size / 20) ** 1.5) for size in range(8, 20)])
    assert told[20] is None  # no size tells what comes after the largest
    second = move(10, None, k=20, n_folds=0, search=1, n_searches=2)
    assert left.seconds(second, 30.0) == pytest.approx(30 * (2 / (1 + 0.5**1.5) - 1))
    report = ProgressReport(io.StringIO())
    with report:
        report(seen[10])
        assert report.line(report._started + 10)[1] == "all rows, size 10 of 20, 10 s so far, about 18 s left"
        report(seen[4])
        assert report.line(report._started + 10)[1] == "all rows, size 4 of 20, 10 s so far, at least 40 s left"


def test_nothing_is_claimed_where_nothing_is_known():
    left = TimeLeft()
    assert left.share(move(3, 1)) is None  # folds of rounds whose number is unknown
    assert left.share(move(3, None, k=None, n_folds=0)) is None
    assert left.share(move(15, None, n_folds=0)) == 0  # backward
    assert left.at_least(move(3, 1), 10.0) is None


def test_no_silence_above_five_seconds(monkeypatch):
    """Where there is no terminal a line comes every few seconds, for an hour too."""
    stream, now = io.StringIO(), [0.0]
    report = ProgressReport(stream)
    waits = []

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds
        return now[0] > 3600

    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(report._closed, "wait", wait)
    with report:
        report._thread.join()
    assert max(waits) <= 5
    assert len(stream.getvalue().splitlines()) == len(waits) - 1 >= 720


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


def test_the_share_that_is_done_leaves_room_for_larger_sizes():
    """Three rounds of which two may be followed by another: all is done at the end of the last search only."""
    left, shares = TimeLeft(), []
    for may_grow in (True, True, False):
        left.runs_begin(6, 5, 0.0, may_grow=may_grow)
        for number in range(6):
            left.run_ended(number, 10.0)
        shares.append(left.share(move(20, 4, k=20)))
    np.testing.assert_allclose(shares, [6 / 13, 6 / 13 + 7 / 13 * 6 / 13, 1 - (7 / 13) ** 2 / 7])


def test_a_fit_that_goes_on_is_not_called_done():
    """Four rounds, then a last search that has reached its largest size and takes far longer than a fold."""
    left, now = TimeLeft(), 0.0
    for one in range(4):
        left.runs_begin(6, 5, now)
        for number in range(6):
            now += 10.0
            left.run_ended(number, now)
            assert left.share(move(10 * (one + 1), 0, k=10 * (one + 1))) <= 0.99
    left.runs_begin(1, 5, now)
    report = ProgressReport(io.StringIO())
    with report:
        report._left = left
        report(move(40, None, k=40))
        share, text = report.line(now + 9)
        assert (share, ", about 1 s left" in text) == (0.99, True)
        for later in (11, 180):
            share, text = report.line(now + later)
            assert share == 0.99
            assert text.endswith("so far")


def test_a_fold_that_takes_longer_than_those_before_leaves_a_lower_bound():
    left = TimeLeft()
    left.runs_begin(6, 5, 0.0)
    for number in range(3):
        left.run_ended(number, 10.0 * (number + 1))
    assert left.seconds(move(5, 2), 39.0) == pytest.approx(31)
    assert left.seconds(move(5, 2), 41.0) is None
    assert left.at_least(move(5, 2), 41.0) == pytest.approx(30)  # two folds and the last search


def test_a_time_limit_that_has_passed_is_not_told():
    report = ProgressReport(io.StringIO(), time_limit=15.0)
    with report:
        report(move(5, None, n_folds=0))
        assert report.line(report._started + 16)[1] == "all rows, size 5 of 10, 16 s so far"


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
    monkeypatch.setattr(module, "LINE_INTERVAL", 0.001)
    stream = io.StringIO() if kind == "lines" else Terminal()
    report = ProgressReport(stream, time_limit=15.0)
    with report:
        report.runs_begin(6, 5)
        assert report(move(5, 1)) is False
        share, text = report.line(report._started + 10)
        assert share == pytest.approx(0.5 / 7)
        assert text == "fold 2 of 5, size 5 of 10, 10 s so far, about 5 s left"
        while "fold 2 of 5" not in stream.getvalue():
            pass
        assert type(report._bar).__name__ == {"rich": "RichBar", "tqdm": "TqdmBar", "own": "Bar"}.get(kind, "NoneType")
    text = stream.getvalue()
    if kind == "own":
        assert "[#....." in text
        assert text.endswith("\r\x1b[K")  # nothing is left on the screen
    assert ("\r" in text) == (kind != "lines")
    if kind == "lines":
        assert "pauca: 7 % done, fold 2 of 5" in text


def test_durations():
    assert [duration(s) for s in (3.4, 59.7, 130, 700, 7300)] == ["3 s", "1 min", "2 min 10 s", "12 min", "2 h 2 min"]


def test_verbose(capsys, monkeypatch):
    """0 prints nothing, however long it takes; 1 shows progress and still calls the callback."""
    monkeypatch.setattr(module, "LINE_INTERVAL", 0.0)
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
    with report, module.showing(1):
        step = module.phase("resampling", 4)
        assert report.line(report._started + 2) == (0.0, "resampling, 1 of 4, 2 s so far")
        step()
        share, text = report.line(report._started + 10)
        assert share == 0.25
        assert text == "resampling, 2 of 4, 10 s so far, about 30 s left"
        step(3)
        assert report.line(report._started + 11) == (0.99, "resampling, 4 of 4, 11 s so far")
        module.phase("writing")
        assert report.line(report._started + 12) == (None, "writing, 12 s so far")
    module.phase("nothing is shown any more", 3)()
    assert report._phase == "writing"


def _fits():
    """A fit of every kind that may take long, as a function of ``verbose``; each is a few milliseconds."""
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(60, 4)), np.tile([0, 1, 2], 20)
    y, A = X[:, 0] + rng.normal(size=60), X.T @ X
    times = np.array([(True, time) for time in rng.exponential(size=60)], dtype=[("event", bool), ("time", float)])
    fits = {
        kind.__name__: (lambda verbose, kind=kind, target=target, k=k: kind(**k, verbose=verbose).fit(X, target))
        for kind, target, k in (
            (SparseRegressor, y, {"k": 2}),
            (SparseClassifier, classes, {"k": 2}),
            (SparseCox, times, {"k": 2}),
            (SparseOrdinalClassifier, classes, {"k": 2}),
            (L1Regressor, y, {"cv": 2}),
            (L1Classifier, classes, {"radius": 5}),
            (SparsePrecision, None, {"k": 2}),
        )
    }
    fits["select"] = lambda verbose: select(
        lambda w: 0.5 * w @ A @ w - y @ X @ w, 2, gradient=lambda w: A @ w - X.T @ y, n_coords=4, verbose=verbose
    )
    if importlib.util.find_spec("numba") is not None:
        fits["StreamRegressor"] = lambda verbose: StreamRegressor(k=2, passes=1, verbose=verbose).fit(X, y)
        fits["StreamClassifier"] = lambda verbose: StreamClassifier(k=2, passes=1, verbose=verbose).fit(X, classes)
        labels = classes.tolist()
        fits["SparseTagger"] = lambda verbose: SparseTagger(k=1, verbose=verbose).fit([X > 0], [labels])
    return fits


@pytest.mark.parametrize("kind", _fits())
def test_every_fit_shows_progress(capsys, monkeypatch, kind):
    """Nothing at 0, lines at 1, and what the search or the stream reports is in them."""
    monkeypatch.setattr(module, "LINE_INTERVAL", 0.0)
    fit, told = _fits()[kind], []
    for name in ("__call__", "step"):
        monkeypatch.setattr(ProgressReport, name, lambda self, *given: told.append(given) is None and False)
    fit(0)
    assert capsys.readouterr() == ("", "")
    assert not told
    fit(1)
    out, err = capsys.readouterr()
    assert (out, "s so far" in err, bool(told)) == ("", True, True)
    for wrong, error in ((-1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="'verbose' parameter"):
            fit(wrong)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="streams need numba")
def test_a_stream_says_how_many_rows_are_left(monkeypatch):
    lines = []
    step = ProgressReport.step

    def note(self, n_steps=1):
        step(self, n_steps)
        lines.append(self.line(self._started + 10)[1])

    monkeypatch.setattr(ProgressReport, "step", note)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    StreamRegressor(k=1, passes=2, keep_rows=100, verbose=1, time_limit=600).fit(X, X[:, 0])
    assert lines[0].startswith("learning rows, 4,097 of 18,000, 10 s so far, about ")
    assert lines[-1].endswith("18,000 of 18,000, 10 s so far")  # no word of 0 s
