"""What the page says of predictions, effects and intervals, and its calculator."""

import json
import pickle
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import pauca
from pauca import (
    L1Classifier,
    L1Regressor,
    SparseClassifier,
    SparseCox,
    SparseOrdinalClassifier,
    SparseRegressor,
    __version__,
)
from pauca.report.formatting import whole_percent
from pauca.report.size_explorer import score_text
from pauca.results.choice import Choice

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
    model.report(tmp_path / "page.html", X[400:], y[400:], threshold=0.3, n_resamples=20)
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


def test_classes_have_names_for_people(tumours, tmp_path):
    X, y = tumours
    model = SparseClassifier(k=2, ridge=0.1).fit(X[:200], (y[:200] == "malignant").astype(int))
    names = ["healthy", "has cancer"]
    model.report(tmp_path / "page.html", n_resamples=5, class_names=names)
    said = words(tmp_path / "page.html")
    assert said.startswith("Classifying has cancer against healthy")
    assert "the odds of has cancer" in said
    assert "Sensitivity: rows of has cancer predicted as such" in said
    assert "has cancer is predicted where its probability is at least 0.5" in said
    assert "class 1" not in said
    assert model.to_points(cv=None, outcome="cancer").to_html().count("isk of cancer") >= 1
    no_names = (
        ["well", None],
        ["well", ""],
        ["well", " "],
        ["well", 5],
        [0, 1],
        5,
        "",
        "no",
        {"a", "b"},
        {"a": 1, "b": 2},
    )
    for wrong in ("cancer", ["one"], ["same", "same"], iter(names), np.array(names)[:, None], *no_names):
        with pytest.raises(
            ValueError, match=r"class_names must be a list of 2 .*, one for each of 0, 1, in this order"
        ):
            model.report(tmp_path / "page.html", class_names=wrong)
    for fine in (tuple(names), np.array(names), pd.Series(names, index=[7, 3]), pd.Index(names)):
        assert model._class_names(fine) == names
    with pytest.raises(TypeError, match="outcome"):
        model.to_points(cv=None, outcome=5)
    with pytest.raises(ValueError, match="outcome"):
        model.to_points(cv=None, outcome="")
    with pytest.raises(ValueError, match="class_names are for classifiers"):
        SparseRegressor(k=1).fit(X[:50], X.iloc[:50, 0]).report(tmp_path / "page.html", class_names=names)


@pytest.mark.parametrize("model", [SparseOrdinalClassifier(k=1), L1Classifier(radius=1.0)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_classifiers_have_names_of_classes_for_people(model, n_classes, tmp_path):
    X = np.random.default_rng(0).standard_normal((90, 3))
    y = np.digitize(X[:, 1] + X[:, 2], [-0.5, 0.5][: n_classes - 1]) + 41
    names = ["mild", "bad", "dire"][:n_classes]
    model.fit(X, y).report(tmp_path / "page.html", class_names=names)
    said = words(tmp_path / "page.html")
    assert all(name in said for name in names)
    assert not any(f" {label}" in said for label in model.classes_)
    with pytest.raises(ValueError, match="class_names must be a list of"):
        model.report(tmp_path / "page.html", class_names=set(names))


def test_rows_that_chose_the_model_are_called_optimistic(tumours, tmp_path):
    model = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(*tumours)
    model.report(tmp_path / "page.html", n_resamples=0)
    said = words(tmp_path / "page.html")
    assert "Optimistic: measured by 5-fold cross-validation on 569 rows" in said
    assert "AUC (held-out rows, optimistic)" in said
    assert "in Python report(..., nested=True), in a shell pauca fit --report PAGE.html --nested) or a test set" in said
    tile = "deviance explained on held-out rows (optimistic: these folds chose the size), ± one standard error"
    assert tile in said
    model.at(1).report(tmp_path / "page.html", n_resamples=0)
    assert "(optimistic: these folds compared sizes), ± one" in words(tmp_path / "page.html")
    assert "of 5 folds" in said
    assert "% interval of the ratio" not in said


def test_numbers_have_differences_and_errors(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = SparseRegressor(k=2).fit(X, y)
    model.report(tmp_path / "page.html", n_resamples=50)
    said = words(tmp_path / "page.html")
    change = 5 * model.coef_[list(X).index("bmi")]
    assert f"bmi 5 more {change:.3g} higher" in said
    assert "size and ridge were given" in said
    assert "So they differ: a little as a rule" in said
    assert f"{model.evaluate().errors.rmse:.2f}" in said


def test_a_page_of_rates_says_per_what(tmp_path):
    rng = np.random.default_rng(0)
    X, exposure = rng.standard_normal((200, 4)), rng.uniform(1, 20, 200)
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 1]))
    model = SparseRegressor(k=1, loss="poisson").fit(X[:100], y[:100], exposure=exposure[:100])
    model.report(tmp_path / "page.html", X=X[100:], y=y[100:], exposure=exposure[100:], n_resamples=0)
    said, found = words(tmp_path / "page.html"), model.evaluate(X[100:], y[100:], exposure=exposure[100:])
    assert said.count("Predictions are rates per unit of exposure") == 2  # at the model, and at the calculator
    assert f"D²: share of the deviance explained {found.errors.d2:.3f}" in said
    assert f"D² (test rows) {found.errors.d2:.3f}" in said


def test_a_file_of_a_model_has_a_page_without_measurements(tumours, tmp_path):
    model = SparseClassifier(k=3, ridge=0.01).fit(*tumours)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    again.report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "files of models hold no rows" in said
    assert "was not measured" in said
    assert "What each feature does" in said
    assert f"It was fitted to 569 rows: {(tumours[1] == 'benign').sum()} of benign" in said
    assert "No values were missing" in said
    ratio = np.exp(model.coef_[0, model.support_[0]] * 5)
    assert f"{ratio:.2f}" in said  # steps as on the page of the fit, which the file keeps
    again.report(tmp_path / "page.html", X=tumours[0], y=tumours[1])
    assert "test rows" in words(tmp_path / "page.html")


def test_a_file_keeps_the_figures_that_chose_the_model(tumours, tmp_path):
    model = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(*tumours)
    model.save(tmp_path / "model.json")
    pauca.load(tmp_path / "model.json").report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "Optimistic: these figures were kept when the model was fitted" in said
    assert f"AUC {model.path_.choice.held_out['auc']:.3f}" in said


def test_a_model_without_rows_says_what_is_not_known(tumours, tmp_path):
    again = pickle.loads(pickle.dumps(SparseClassifier(k=2, ridge=0.01).fit(*tumours)))
    again.report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "all changes are by 1" in said
    assert "Numbers start at 0" in said


def shops(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Paris", "Lyon", "Nice"], n, p=[0.5, 0.3, 0.2]).astype(object),
            "area": rng.integers(20, 200, n).astype(float),
            "open": rng.random(n) < 0.4,
            "age": rng.normal(40, 10, n).round(1),
        }
    )
    sales = frame["city"].map({"Paris": 0, "Lyon": 3, "Nice": -2}) + frame["area"] / 50 + 2.0 * frame["open"]
    frame.loc[::11, "city"] = None
    frame.loc[::7, "area"] = np.nan
    return frame, (sales + frame["age"] / 40 + rng.normal(size=n)).to_numpy()


def test_a_page_of_a_raw_table_speaks_of_its_columns(tmp_path):
    X, y = shops()
    SparseRegressor(k=4, missing="category").fit(X, y).report(tmp_path / "page.html", n_resamples=5)
    said = words(tmp_path / "page.html")
    assert "4 of 4 columns" in said
    assert "group" not in said.lower()
    assert "Lyon instead of Paris" in said
    assert f"missing instead of {X['area'].median():.6g}" in said
    assert "Baseline: city=Paris" in said
    assert "A category counts as one column" in said
    assert f"city in {X['city'].isna().sum()} rows and area in {X['area'].isna().sum()} rows" in said
    assert "numbers they were replaced by medians, and marked by terms of their own; in categories they are a" in said
    assert "most frequent levels" not in said
    SparseRegressor(k=4, missing="median").fit(X, y).report(tmp_path / "page.html", n_resamples=0)
    said = words(tmp_path / "page.html")
    assert "They were replaced by medians and most frequent levels." in said
    assert "terms of their own" not in said


def test_every_class_has_its_column(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    y = np.array([f"class {letter}" for letter in "ABCDEFGH"])[np.digitize(X["a"], np.linspace(-1.5, 1.5, 7))]
    SparseClassifier(k=2, ridge=0.1).fit(X, y).report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "Feature class A class B class C class D class E class F class G class H Importance" in said


def test_classes_are_explained_in_words(tmp_path):
    """What multiplies the probability of a class, compared with the geometric mean of all, is on the page."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Paris", "Lyon"], 300, p=[0.7, 0.3])
    X = pd.DataFrame({"size": rng.integers(0, 10, 300).astype(float), "city": city})
    y = np.where(X["city"] == "Lyon", "fish", np.where(X["size"] > 5, "cheese", "bread"))
    model = SparseClassifier(k=2, ridge=0.1).fit(X, y)
    model.report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "What speaks for each class" in said
    rows = pd.DataFrame({"size": [3.0, 4.0], "city": ["Paris", "Paris"]})
    logs = np.log(model.predict_proba(rows))
    ratio = np.exp(np.diff(logs - logs.mean(axis=1, keepdims=True), axis=0))[0]
    section = said[said.index("Class More likely Less likely") :]
    bread = section[section.index("bread") : section.index("cheese")]
    assert float(re.search(r"size, 1 more : ([\d.]+) times", bread)[1]) == pytest.approx(ratio[0], rel=0.01)
    assert "city, Lyon instead of Paris :" in section
    SparseClassifier(k=1, ridge=0.1).fit(X, y == "fish").report(tmp_path / "two.html")
    assert "What speaks for each class" not in words(tmp_path / "two.html")


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
def test_the_calculator_has_the_probability_of_an_event(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=150).round(2), "dose": rng.normal(size=150).round(2)})
    hospital = np.where(np.arange(150) % 3, "north", "south")
    days = rng.exponential(np.exp(-X["age"])) * np.where(hospital == "north", 3, 1)
    model = SparseCox(k=2).fit(X.assign(days=days, died=days < 4), event="died", time="days", strata=hospital)
    model.save(tmp_path / "model.json")
    for fitted in (model, pauca.load(tmp_path / "model.json")):
        fitted.report(tmp_path / "page.html", event_name="death", **({"n_resamples": 0} if fitted is model else {}))
        browser.open(tmp_path / "page.html")
        assert "1.00 times that of the first row" in browser.run("document.getElementById('calculated').textContent")
        start = X.median().to_numpy()
        for stratum, name in enumerate(["north", "south"]):
            for until in (0.1, 1.5):
                browser.run(f"document.getElementById('until').value = {until}")
                browser.run(f"document.getElementById('stratum').value = {stratum}")
                (score,), text = typed(browser, X.iloc[4].tolist())
                assert score == pytest.approx(model.predict(X.iloc[[4]])[0], rel=1e-12)
                hazard = float(browser.run("document.getElementById('calculated').dataset.hazard"))
                expected = model.predict_cumulative_hazard_function(X.iloc[[4]], [until], strata=[name])[0, 0]
                assert hazard == pytest.approx(expected, rel=1e-12)
                assert f"Probability of death by time {until}: {-100 * np.expm1(-expected):.1f}" in text
                ratio = np.exp(score - model.coef_ @ start)
                said = re.search(r"(\S+) times that of the first row", text)
                assert float(said[1]) == pytest.approx(ratio, rel=5e-3)
        browser.run("document.getElementById('until').value = 1000")
        typed(browser, X.iloc[4].tolist())
        assert browser.run("document.getElementById('outside').textContent").endswith(": time")
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


@needs_browser
@pytest.mark.parametrize("missing", ["category", "median", "error"])
def test_the_calculator_asks_for_the_columns_of_a_raw_table(browser, tmp_path, missing):
    X, y = shops()
    if missing == "error":
        X = X.fillna({"city": "Paris", "area": 50.0})
    model = SparseRegressor(k=4, missing=missing).fit(X, y)
    model.save(tmp_path / "model.json")
    for fitted in (model, pauca.load(tmp_path / "model.json")):
        fitted.report(tmp_path / "page.html", **({"n_resamples": 0} if fitted is model else {}))
        browser.size(1200)
        browser.open(tmp_path / "page.html")
        controls = "[...document.querySelectorAll('#calculator label')].map(one => one.textContent)"
        assert browser.run(controls) == ["city", "area", "open", "age"]
        offered = browser.run("[...document.getElementById('value-0').options].map(one => one.text)")
        assert offered == ["Lyon", "Nice", "Paris", *(["(missing)"] if missing != "error" else [])]
        start = pd.DataFrame(
            {"city": ["Paris"], "area": [X["area"].median()], "open": [False], "age": [X["age"].median()]}
        )
        first = json.loads(browser.run("document.getElementById('calculated').dataset.scores"))
        assert first == pytest.approx(model.predict(start).tolist(), rel=1e-5)  # six digits in the fields
        for row in (3, 7, 11, 14):
            one = X.iloc[[row]]
            city = one["city"].iloc[0]
            chosen = [offered.index("(missing)" if pd.isna(city) else city), one["area"].iloc[0]]
            chosen = ["" if isinstance(value, float) and np.isnan(value) else str(value) for value in chosen]
            scores, _ = typed(browser, [*chosen, str(int(one["open"].iloc[0])), str(one["age"].iloc[0])])
            assert scores == pytest.approx(model.predict(one).tolist(), rel=1e-12)
        if missing == "error":
            typed(browser, ["0", "", "0", "40"])
            assert "Type a number for area" in browser.run("document.getElementById('calculated').textContent")
        assert browser.errors == []


def test_a_page_of_times_speaks_of_hazard_ratios(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.integers(1, 4, 200), "other": rng.integers(1, 4, 200)}).astype(float)
    time = rng.exponential(np.exp(-1.2 * X["grade"]))
    y = np.array(list(zip(time < 1, np.minimum(time, 1), strict=True)), dtype=[("event", bool), ("time", float)])
    model = SparseCox(k=1).fit(X, y)
    model.n_rows_dropped_ = 29
    model.report(tmp_path / "page.html")
    said = words(tmp_path / "page.html")
    assert "Time until the event with 1 of 2 features" in said
    assert f"grade 1 more multiplied by {np.exp(model.coef_[0]):.2f}" in said
    assert "the logarithm of the hazard" in said
    assert f"fitted to 200 rows with {y['event'].sum()} events. 29 other rows were left out" in said
    lower, upper = np.exp(model.inference("bootstrap").to_frame().loc["grade", ["lower", "upper"]])
    assert f"{lower:.2f} to {upper:.2f}" in said
    assert "features are listed" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The probability is that of the event by the time that is typed" in said
    assert f"Written on {date.today().isoformat()} with pauca {__version__}." in said
    # Curves are those of the test rows where there are such: 40 rows of all 200.
    assert "The rows of the training data in groups" in said
    model.report(tmp_path / "page.html", X=X[:40], y=y[:40], n_resamples=0)
    said = words(tmp_path / "page.html")
    assert "The test rows in groups" in said
    assert "on new rows both" not in said
    assert f"fitted to 200 rows with {y['event'].sum()} events" in said
    grade = X["grade"][:40]
    assert f"high risk {np.count_nonzero(grade == 3)} {y['event'][:40][grade == 3].sum()} " in said


def test_a_class_that_is_never_predicted_is_said_in_words(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    y = np.where(rng.random(300) < 1 / (1 + np.exp(3 - 0.4 * X["a"])), "yes", "no")
    model = SparseClassifier(k=1, ridge=0.1).fit(X, y)
    assert not model.evaluate().confusion.predictive_value.of
    model.report(tmp_path / "page.html", n_resamples=5)
    said = words(tmp_path / "page.html")
    assert "Of those predicted yes, right none was predicted so" in said
    assert "nan" not in said.lower().split()
    assert "no more than by always predicting no, the more frequent class" in said


def test_intervals_of_rare_levels_are_not_to_be_trusted(tmp_path):
    rng = np.random.default_rng(0)
    site = np.where(np.arange(300) < 3, "rare", np.where(np.arange(300) < 120, "north", "south")).astype(object)
    age = rng.normal(size=300)
    y = rng.random(300) < 1 / (1 + np.exp(-age - (site == "north")))
    y[:3] = False
    model = SparseClassifier(k=2, ridge=0.01).fit(pd.DataFrame({"site": site, "age": age}), y)
    found = model.inference("bootstrap", n_resamples=10)
    assert found.rare == ("site=rare",)
    assert "The interval of site=rare cannot be trusted" in found.summary()
    model.report(tmp_path / "page.html", n_resamples=10)
    assert "The interval of site=rare cannot be trusted" in words(tmp_path / "page.html")
    assert model.inference().rare == ()


def test_an_error_that_reaches_beyond_all_is_said_to_end_there():
    mean, error = np.array([0.0, 0.9158]), np.array([0.0, 0.1761])
    choice = Choice(0.25, "explained", np.arange(2), mean, error, np.tile(mean, (5, 1)), 1)
    assert score_text(choice, 1).replace("\N{NO-BREAK SPACE}", " ") == "91.6 % (± 17.6, at most 100 %)"
    error[1] = 0.05
    assert "at most" not in score_text(choice, 1)


def test_shares_below_100_percent_are_never_called_so():
    texts = [whole_percent(share) for share in (0.3512, 0.9949, 1 - 0.00428, 0.9994, 1 - 8.5e-8, 1.0, 1.25)]
    said = [text.replace("\N{NO-BREAK SPACE}", " ") for text in texts]
    assert said == ["35 %", "99 %", "99.6 %", "99.9 %", "nearly 100 %", "100 %", "125 %"]


def test_a_rare_level_has_its_odds_lowered_by_less_than_all_of_them(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"exposed": rng.integers(0, 2, 4000), "age": rng.normal(size=4000)})
    y = (X["exposed"] == 0) & (rng.random(4000) < 0.7)
    y[np.flatnonzero(X["exposed"])[:15]] = True
    model = SparseClassifier(k=1).fit(X, y)
    model.report(tmp_path / "page.html", n_resamples=0)
    ratio = float(np.exp(model.coef_.ravel()[model.support_[0]]))
    assert 0.0005 < ratio < 0.005
    assert f"{100 * (1 - ratio):.1f} % lower (ratio {ratio:.3g})" in words(tmp_path / "page.html")


def test_large_categories_and_long_names_do_not_bury_the_page(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"part_of_the_whole_town": [f"quarter_number_{j:02}" for j in rng.integers(0, 12, 300)]})
    X["area"] = rng.uniform(20, 90, 300)
    model = SparseRegressor(k=2).fit(X, X["area"] + X.iloc[:, 0].str[-2:].astype(float) + rng.normal(size=300))
    model.report(tmp_path / "page.html", n_resamples=0)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "part_<wbr>of_<wbr>the_<wbr>whole_<wbr>town=quarter_<wbr>number_<wbr>03" in page
    said = words(tmp_path / "page.html")
    assert "and 6 more" in said
    assert "Of large columns the largest coefficients are shown; the next table has all terms." in said
    every = page[page.index("What each term does") : page.index("How good are")].replace("<wbr>", "")
    assert all(name in every for name in model.get_feature_names_out())


def test_a_page_of_ordered_classes_has_odds_ratios_and_thresholds(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)).round(2), columns=["age", "dose", "noise"])
    y = np.array(["none", "mild", "strong"])[np.digitize(X["age"] - X["dose"] + rng.logistic(size=200), [-0.5, 0.5])]
    model = SparseOrdinalClassifier(k=2, ridge=0.1, order=["none", "mild", "strong"]).fit(X, y)
    model.report(tmp_path / "page.html", n_resamples=20)
    said = words(tmp_path / "page.html")
    ratios = np.exp(model.coef_)
    assert "Effect on the odds of a higher class" in said
    assert f"age 1 more {100 * (ratios[0] - 1):.0f} % higher (ratio {ratios[0]:.2f})" in said
    assert f"dose 1 more {100 * (1 - ratios[1]):.0f} % lower (ratio {ratios[1]:.2f})" in said
    lower, upper = np.exp(model.inference("bootstrap", n_resamples=20).to_frame().loc["age", ["lower", "upper"]])
    assert f"{lower:.2f} to {upper:.2f}" in said
    low, high = (f"{threshold:.4g}".replace("-", "\N{MINUS SIGN}") for threshold in model.thresholds_)
    assert f"none | mild {low}, mild | strong {high}." in said


def test_a_folder_that_does_not_exist_is_named_before_any_work(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3))
    path = tmp_path / "none" / "page.html"
    words_of_error = f"^{re.escape(str(path))} cannot be written: there is no folder {re.escape(str(path.parent))}$"
    sparse, l1 = SparseRegressor(k=1).fit(X, X[:, 0]), L1Regressor(radius=1).fit(X, X[:, 0])
    monkeypatch.setattr(SparseRegressor, "evaluate", lambda *given, **named: pytest.fail("work was done"))
    for model in (sparse, l1):
        with pytest.raises(FileNotFoundError, match=words_of_error):
            model.report(path)
