"""The report in a real browser."""

import re
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from pauca import SparseClassifier, SparseRegressor

pytest.importorskip("fcntl", reason="the browser is spoken to through pipes as Unix has them")
from browser import Browser, find_browser

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium here; Debian's package is called chromium")

TABLE = "document.querySelector('#current-table').innerText"
NOW = "document.querySelector('#size-now').textContent"
MARK = "document.querySelector('#chart-explained .wide text.now').textContent"


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        found.size(1400)
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    SparseRegressor().fit(*load_diabetes(return_X_y=True, as_frame=True)).report(file, title="Diabetes")
    return file


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A report whose every name tries to be more than a name."""
    rng = np.random.default_rng(0)
    bad = [f"</script><img src='http://x{j}.invalid/' onerror='window.hurt = {j}'><script>hurt={j}//" for j in range(6)]
    X = pd.DataFrame(rng.standard_normal((80, 6)), columns=bad)
    y = np.array(bad)[np.digitize(X.iloc[:, 0] + X.iloc[:, 1], [-0.5, 0.5])]
    file = tmp_path_factory.mktemp("strange") / "report.html"
    SparseClassifier(k=4, ridge=0.01, costs=np.arange(1.0, 7.0)).fit(X, y).report(file, title=bad[0])
    return file


def test_it_opens_without_errors_or_requests(browser, report, record_property):
    record_property("seconds_to_open", browser.open(report))
    assert browser.errors == []
    assert browser.requests == [report.resolve().as_uri()]
    assert browser.run("document.title") == "Diabetes"
    assert browser.run("document.querySelectorAll('.chart svg').length") >= 4
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_moves_the_slider_and_the_table_follows(browser, report):
    browser.open(report)
    assert browser.run(NOW) == "5 features"
    before = browser.run(TABLE)
    browser.run("document.querySelector('#size').focus()")
    browser.press("ArrowLeft", 37)
    assert browser.run(NOW) == "4 features"
    assert browser.run(TABLE) != before
    assert "bmi" in browser.run(TABLE)
    assert "sex" in before
    assert "sex" not in browser.run(TABLE)
    assert "fewer than chosen" in browser.run("document.querySelector('#current-compared').textContent")
    assert browser.run("document.querySelector('#size').getAttribute('aria-valuetext')") == "4 features"
    assert browser.run(MARK) == "shown: 4"
    browser.press("Home", 36)
    assert browser.run(NOW) == "no features"
    browser.press("End", 35)
    assert browser.run(NOW) == "10 features"
    assert browser.run("document.querySelector('#more').disabled")
    assert browser.errors == []


def test_the_mouse_does_too(browser, report):
    browser.open(report)
    browser.click("#more")
    assert browser.run(NOW) == "6 features"
    browser.click("#fewer")
    browser.click("#fewer")
    assert browser.run(NOW) == "4 features"
    browser.click("#back")
    assert browser.run(NOW) == "5 features"
    browser.click("#size")
    assert browser.run(NOW) == "5 features"  # the middle of ten
    assert browser.errors == []


def test_names_are_never_parsed_as_html(browser, strange):
    browser.open(strange)
    for _ in range(4):
        browser.click("#fewer")
    assert browser.run("typeof window.hurt") == "undefined"
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.errors == []
    assert browser.requests == [strange.resolve().as_uri()]


def test_the_policy_forbids_other_scripts_and_the_network(browser, report):
    browser.open(report)
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hurt = 1'}))"
    )
    assert browser.run("typeof window.hurt") == "undefined"
    assert browser.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in str(error) for error in browser.errors)


@pytest.mark.parametrize("width", [1400, 390])
def test_accessibility(browser, report, strange, width):
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.size(width)
    for file in (report, strange):
        browser.open(file)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.run(f"{axe}; 1")
        found = browser.run(
            "axe.run(document).then(all => all.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))"
        )
        assert found == []
    browser.size(1400)


def test_it_prints(browser, report):
    browser.open(report)
    browser.size(1400)
    content = browser.pdf()
    assert content.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 5
    assert browser.errors == []


def test_names_of_features_are_not_set_letter_by_letter_beside_many_classes(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(140, 2)), columns=["vote", "selfLR"])
    SparseClassifier(k=2, ridge=0.1).fit(X, np.arange(140) % 7).report(tmp_path / "page.html", n_resamples=0)
    browser.open(tmp_path / "page.html")
    for width in (1400, 1200):
        browser.size(width)
        heights = browser.run("[...document.querySelectorAll('#current-table tbody th')].map(one => one.clientHeight)")
        assert len(heights) == 3  # two features and the intercept
        assert max(heights) < 60  # at most two lines
    browser.size(1400)


def test_no_table_and_no_label_of_a_chart_is_cut_off(browser, tmp_path):
    rng, n = np.random.default_rng(0), 150
    X = pd.DataFrame({"studyName": rng.choice(["PAL0708", "PAL0809", "PAL0910"], n)})
    for name in ("Culmen Length (mm)", "Flipper Length (mm)", "BODY MASS WITHOUT FEATHERS", "Delta 15 N (o/oo)"):
        X[name] = rng.normal(200, 14, n)
    score = X["Culmen Length (mm)"] + 20 * (X["studyName"] == "PAL0809") + rng.normal(size=n)
    species = np.array(["Adelie (Pygoscelis adeliae)", "Chinstrap (Pygoscelis antarctica)", "Gentoo (P. papua)"])
    model = SparseClassifier(range(5), ridge=0.01).fit(X, species[np.digitize(score, np.quantile(score, [0.3, 0.6]))])
    model.at(3).report(tmp_path / "page.html", n_resamples=0)
    tables = """[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1)
        .map(one => one.getAttribute('aria-label')).join()"""
    labels = """[...document.querySelectorAll('svg')].flatMap(svg => [...svg.querySelectorAll('text')].filter(text => {
        const all = svg.getBoundingClientRect(), own = text.getBoundingClientRect();
        return own.width && (own.right > all.right + 1 || own.left < all.left - 1);
    })).map(text => text.textContent).join()"""
    for width in (400, 700, 900, 1100, 1200, 1400):
        browser.size(width)
        browser.open(tmp_path / "page.html")
        assert (width, browser.run(tables), browser.run(labels)) == (width, "", "")
    assert "studyName=PAL0809" in browser.run("document.querySelector('#chart-coefficients .wide').textContent")


def test_a_sheet_of_points_fits_a_narrow_window(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "a_name_that_goes_on_and_on_for_ever_and_ever"])
    sheet = SparseClassifier(k=3, ridge=0.01).fit(X, X.sum(axis=1) + rng.standard_normal(200) > 0).to_points(cv=None)
    sheet.save_page(tmp_path / "sheet.html")
    cut_off = """[...document.querySelectorAll('dl div')].filter(one => one.scrollWidth > one.clientWidth + 1).length
        + (document.documentElement.scrollWidth > innerWidth)"""
    try:
        browser.size(400)
        browser.open(tmp_path / "sheet.html")
        assert browser.run("document.querySelectorAll('dl div').length") == len(sheet.totals) + 1
        assert browser.run(cut_off) == 0
    finally:
        browser.size(1400)
