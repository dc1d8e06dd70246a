"""What the page says of predictions, effects and intervals, and its calculator."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import pauca
from pauca import SparseClassifier, SparseRegressor

pytest.importorskip("fcntl", reason="the browser is spoken to through pipes as Unix has them")
from browser import Browser, find_browser


def words(file):
    text = re.sub(r"<(script|style).*?</\1>", " ", file.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", text).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, 20:], y.map({0: "malignant", 1: "benign"})


def test_two_classes_are_measured_in_the_words_of_medicine(tumours, tmp_path):
    X, y = tumours
    model = SparseClassifier(k=3, ridge=0.01).fit(X[:400], y[:400])
    model.report(tmp_path / "page.html", X=X[400:], y=y[400:], threshold=0.3, n_resamples=20)
    said, found = words(tmp_path / "page.html"), model.evaluate(X[400:], y[400:], threshold=0.3)
    assert "Measured on 169 test rows" in said
    assert "Optimistic" not in said
    assert "optimistic" not in said
    assert f"AUC (test rows) {found.ranking.auc:.3f}" in said
    assert "of 5 folds" in said
    share = found.confusion.sensitivity
    assert f"predicted as such {100 * share.value:.1f} % ({share.count} of {share.of})" in said
    assert "Brier score" in said
    assert "Calibration" in said
    assert "at least 0.3" in said
    assert f"{(y[:400] == 'malignant').sum()} of malignant" in said
    ratio = np.exp(model.coef_[0, model.support_[0]] * 5)
    assert "the odds of malignant" in said
    assert f"{ratio:.2f}" in said
    assert "the intervals are too narrow" in said


def test_rows_that_chose_the_model_are_called_optimistic(tumours, tmp_path):
    model = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(*tumours)
    model.report(tmp_path / "page.html", n_resamples=0)
    said = words(tmp_path / "page.html")
    assert "Optimistic: measured by 5-fold cross-validation on 569 rows" in said
    assert "AUC (rows held out, optimistic)" in said
    assert "of 5 folds" in said
    assert "% interval of the ratio" not in said


def test_numbers_have_differences_and_errors(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = SparseRegressor(k=2).fit(X, y)
    model.report(tmp_path / "page.html", n_resamples=50)
    said = words(tmp_path / "page.html")
    change = 5 * model.coef_[list(X).index("bmi")]
    assert f"bmi 5 more {change:.3g} higher" in said
    assert "size and ridge were set beforehand" in said
    assert f"{model.evaluate().errors.rmse:.2f}" in said


def test_a_file_of_a_model_has_a_page_without_measurements(tumours, tmp_path):
    model = SparseClassifier(k=3, ridge=0.01).fit(*tumours)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    again.report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "How good are the predictions?" not in said
    assert "was not measured" in said
    assert "What each feature does" in said
    again.report(tmp_path / "page.html", X=tumours[0], y=tumours[1])
    assert "test rows" in words(tmp_path / "page.html")


def test_pages_are_small(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((300, 200)), columns=[f"a name as long as they come, {j}" for j in range(200)])
    model = SparseRegressor(k=200, method="foba").fit(X, X @ rng.standard_normal(200) + rng.standard_normal(300))
    model.at(50).report(tmp_path / "page.html", n_resamples=2)
    assert (tmp_path / "page.html").stat().st_size < 1.5e6


pytest.importorskip("fcntl", reason="the browser is spoken to through pipes as Unix has them")

needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium here; Debian's package is called chromium"
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


def typed(browser, row):
    for place, value in enumerate(row):
        browser.run(
            f"(() => {{ const f = document.getElementById('value-{place}'); f.value = {value!r}; "
            "f.dispatchEvent(new Event('input')); })()"
        )
    scores = json.loads(browser.run("document.getElementById('calculated').dataset.scores"))
    return scores, browser.run("document.getElementById('calculated').textContent")


@needs_browser
@pytest.mark.parametrize("kind", ["two classes", "three classes", "counts"])
def test_the_calculator_predicts_as_the_model_does(browser, tmp_path, kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((120, 5)).round(3), columns=["<b>a</b>", "b", "c", "d", "e"])
    score = X.iloc[:, 0] - X["b"] + rng.standard_normal(120)
    if kind == "counts":
        model = SparseRegressor(k=2, loss="poisson").fit(X, rng.poisson(np.exp(score / 2)))
    else:
        cuts = [0.0] if kind == "two classes" else [-0.7, 0.7]
        model = SparseClassifier(k=2, ridge=0.01).fit(X, np.array(["low", "mid", "high"])[np.digitize(score, cuts)])
    model.report(tmp_path / "page.html", n_resamples=0)
    browser.size(1200)
    browser.open(tmp_path / "page.html")
    row = X.iloc[[7]]
    scores, text = typed(browser, row.iloc[0, model.support_].tolist())
    assert scores == pytest.approx(model._scores(row)[0].tolist(), rel=1e-12)
    if kind == "counts":
        assert f"{model.predict(row)[0]:.5g}" in text
    else:
        assert all(f"{100 * share:.1f}" in text for share in model.predict_proba(row)[0][1:])
    _, text = typed(browser, [99.0, 0.0])
    assert "<b>a</b>" in browser.run("document.getElementById('outside').textContent")
    browser.run(
        "(() => { const f = document.getElementById('value-1'); f.value = ''; f.dispatchEvent(new Event('input')); })()"
    )
    assert "Type a number for b" in browser.run("document.getElementById('calculated').textContent")
    assert browser.errors == []


@needs_browser
def test_a_narrow_screen_shows_every_column(browser, tumours, tmp_path):
    model = SparseClassifier(k=3, ridge=0.01).fit(*tumours)
    model.report(tmp_path / "page.html", n_resamples=20)
    browser.size(375)
    browser.open(tmp_path / "page.html")
    assert browser.run("document.documentElement.scrollWidth") == 375
    beyond = (
        "[...document.querySelectorAll('td, th')].filter(cell => { const box = cell.getBoundingClientRect(); "
        "return cell.closest('tbody') && box.width && (box.left < 0 || box.right > innerWidth); }).length"
    )
    assert browser.run(beyond) == 0
    assert browser.run("getComputedStyle(document.querySelector('.effects td'), '::before').content") != "none"
    browser.size(1400)
