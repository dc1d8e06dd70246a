"""What is said of proofs: of another ridge than the model's, of time, and where nothing is proved."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import pauca
from pauca import SparseRegressor
from pauca.cli import main
from pauca.clock import OutOfTime
from pauca.losses import Loss
from pauca.relaxations.size_proof import SizeProof
from pauca.results.instructions import ON_PAGE, in_shell
from problems import ar_problem


def test_at_another_ridge_than_that_of_the_search_nothing_is_proved_of_the_model(tmp_path: Path):
    X, y = ar_problem(60, 12, 5, rho=0.95, snr=1.0, seed=1)
    model = SparseRegressor(k=6, ridge=0, search_ridge=0.3).fit(X, y)
    proved = "Proved to be the best of all 924 subsets of 6 features at ridge 0.3, the ridge of the search."
    shown = "The model shown has ridge 0, at which another set may be better"
    assert model.certificate_.message(6) == f"{proved} {shown}: a fit with k=6 and ridge=0 searches at that ridge."
    assert model.certificate_.message(6) in model.summary()
    assert f"{shown}: pauca fit --k 6 --ridge 0 searches at that ridge." in model.summary(in_shell())
    assert f"{proved} {shown}." in model.summary(ON_PAGE)
    assert model.certificate_.overview.endswith(" The models shown have ridge 0, at which others may be better.")
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").certificate_ == model.certificate_
    there = SparseRegressor(k=6, ridge=0).fit(X, y)
    assert there.certificate_.message(6) == "Proved to be the best of all 924 subsets of 6 features."
    assert there.objective_ < model.objective_  # the sentence is not idle


def test_time_that_ends_a_proof_is_told(monkeypatch, tmp_path: Path):
    X, y = ar_problem(100, 50, 20, rho=0.95, snr=1.0, seed=2)
    model = SparseRegressor(k=8, ridge=1e-4).fit(X, y)
    turns = itertools.count()
    with monkeypatch.context() as patched:
        patched.setattr("pauca.estimators.certify.time.monotonic", lambda: float(next(turns)))
        certificate = model.certify(4)  # the limit is the first argument too
        pool = model.pool(0.1, time_limit=2)
    assert certificate.stopped_after == 4.0
    assert not certificate.proved[8]
    stopped = "Stopped after 4 s; time_limit= allows more."
    assert certificate.message(8).endswith(f" (lower bound). {stopped}")
    assert stopped in certificate.overview
    assert stopped not in "".join(certificate.message(size) for size in certificate.sizes if certificate.proved[size])
    assert "Stopped after 4 s; --certify with more seconds allows more." in model.summary(in_shell())
    assert not pool.complete
    assert "there may be others. Stopped after 2 s; time_limit= allows more." in str(pool)
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").certificate_ == certificate
    narrow = SparseRegressor(k=2).fit(X[:, :9], y)
    assert narrow.certify(60).stopped_after is None
    assert "Stopped" not in str(narrow.pool(0.1, time_limit=60))


def test_time_that_ends_a_proof_within_a_bound_is_told(monkeypatch):
    X, y = ar_problem(80, 10, 3, seed=5)[:2]
    model = pauca.SparseClassifier(k=4, ridge=0.05, method="forward").fit(X, y > np.median(y))

    def out_of_time():
        raise OutOfTime

    monkeypatch.setattr("pauca.relaxations.smooth.check_time", out_of_time)
    assert model.certify(7).message(4).endswith("Stopped after 7 s; time_limit= allows more.")


def test_nothing_is_proved_for_a_reason(monkeypatch):
    X, y = ar_problem(12, 60, 3, seed=0)[:2]
    model = SparseRegressor(k=4, ridge=1e-6).fit(X, y)
    turns = itertools.count()
    with monkeypatch.context() as patched:
        patched.setattr("pauca.estimators.certify.time.monotonic", lambda: float(next(turns)))
        certificate = model.certify(1)
    said = (
        "Nothing is proved of the models of 4 features: the lower bound is next to zero, which is common at ridge 1e-06"
    )
    assert certificate.message(4).startswith(
        f"{said} where columns outnumber rows; ridge=0.3 on standardised columns has a chance."
    )
    assert "--ridge 0.3 on standardised columns has a chance." in model.summary(in_shell())
    large = replace(certificate, ridge=0.5)
    assert "and a larger ridge would raise it" in large.message(4)
    tiny = replace(certificate, proofs={4: SizeProof(1.0, 1e-9, nodes=3)})
    assert tiny.message(4).endswith("has a chance.")  # rather than that no model is better by more than 100 %


def test_where_columns_outnumber_rows_a_ridge_is_named_that_may_do():
    X, y = ar_problem(20, 30, 3, seed=0)[:2]
    assert "ridge=0.3 on standardised columns" in SparseRegressor(k=2).fit(X, y).certify().reason
    twice = np.column_stack([X[:, :5], X[:, 0] + X[:, 1]])
    assert "ridge=0.001" in SparseRegressor(k=2).fit(twice, y).certify().reason


def two_and_three_levels(levels: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    table["colour"] = np.array(["red", "green", "blue"])[rng.integers(levels, size=60)]
    table["y"] = table["a"] + (table["colour"] == "red") + 0.1 * rng.normal(size=60)
    return table


def test_text_of_two_levels_is_proved_and_of_three_is_not():
    two, three = two_and_three_levels(2), two_and_three_levels(3)
    assert SparseRegressor(k=2).fit(two.drop(columns="y"), two["y"]).certify().proved[2]
    reason = SparseRegressor(k=2).fit(three.drop(columns="y"), three["y"]).certify().reason
    assert "columns of text with three or more levels" in reason


def test_the_command_line_says_once_that_there_is_no_bound(tmp_path: Path, capsys):
    two_and_three_levels(3).to_csv(tmp_path / "table.csv", index=False)
    arguments = [str(tmp_path / "table.csv"), "--target", "y", "--k", "2", "--certify", "5", "--quiet"]
    assert main(["fit", *arguments, "--out", str(tmp_path / "model.json")]) == 0
    assert capsys.readouterr().out.count("No lower bound is known") == 1
    assert main(["path", str(tmp_path / "model.json")]) == 0
    said = capsys.readouterr().out
    assert "objective" in said
    assert "lower_bound" not in said
    assert "inf" not in said


def test_a_loss_without_a_conjugate_is_told_so_with_and_without_a_ridge():
    class LogCosh(Loss):
        def value(self, y, a):
            return np.logaddexp(a - y, y - a) - np.log(2)

        def derivative(self, y, a):
            return np.tanh(a - y)

        def curvature(self, y, a):
            return 1 - np.tanh(a - y) ** 2

    X = np.random.default_rng(0).standard_normal((40, 4))
    for ridge in (0.0, 0.01):
        model = SparseRegressor(k=2, loss=LogCosh(), ridge=ridge).fit(X, X[:, 0] - X[:, 2])
        assert "the method conjugate(y, t)" in model.certify(time_limit=5).message(2)
