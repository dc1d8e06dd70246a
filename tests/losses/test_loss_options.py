"""Options, targets, names and offsets of losses, and the errors about invalid ones."""

import pickle

import numpy as np
import pytest
from judges import LogCosh
from loss_rows import LOSSES, least
from scipy.stats import nbinom

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Envelope,
    Gamma,
    GammaInverseLink,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
    resolve,
)
from pauca.losses.offset import with_offset, without_offset


class OwnForClasses(LogCosh):
    classifies = True


# Options, targets, names.


def test_huber_takes_its_threshold_from_the_target():
    y = np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0]])
    weights = np.full(7, 1 / 7)
    # The median is 3, the deviations from it are 0, 1, 1, 2, 2, 3, 97.
    assert Huber().tuned(y, weights).threshold == pytest.approx(1.345 * 2 / 0.67449, rel=1e-5)
    repeated, count = np.array([[0.0, 1.0, 2.0, 3.0, 9.0]]), np.array([1, 0, 2, 1, 3])
    assert Huber().tuned(repeated, count / 7).threshold == pytest.approx(
        Huber().tuned(np.repeat(repeated, count, axis=1), weights).threshold
    )
    fixed = Huber(2.0)
    assert fixed.tuned(y, weights) is fixed
    mostly = np.array([[5.0, 5.0, 5.0, 5.0, 7.0]])
    assert Huber().tuned(mostly, np.full(5, 0.2)).threshold == pytest.approx(1.345 * np.sqrt(0.8))
    assert Huber().tuned(np.full((1, 3), 5.0), np.full(3, 1 / 3)).threshold == 1.0
    with pytest.raises(ValueError, match="tuned"):
        Huber().value(y, y)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda bad=bad: Huber(bad) for bad in (0.0, -1.0, np.inf, np.nan)),
        *(lambda bad=bad: Tweedie(bad) for bad in (1, 2, 0, np.nan)),
        *(lambda bad=bad: NegativeBinomial(bad) for bad in (0, -1, np.inf, np.nan)),
        *(lambda bad=bad: Quantile(bad) for bad in (0.0, 1.0, -0.5, np.nan)),
        *(
            lambda kind=kind, bad=bad: kind(accuracy=bad)
            for kind in (AbsoluteError, Quantile, Hinge)
            for bad in (0, 1, np.nan)
        ),
    ],
)
def test_invalid_options(make):
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize(
    ("loss", "good", "bad", "words"),
    [
        *(
            (loss, [-1.0, 1.0], bad, "-1 and 1")
            for loss in (LogLoss(), Hinge(), SquaredHinge(), Envelope(Hinge(), 2.0))
            for bad in ([0.0, 1.0], [-1.0, 2.0], [np.nan, 1.0])
        ),
        (Poisson(), [0.0, 0.5, 3.0], [1.0, -1.0], "its minimum is -1"),
        (Poisson(), [0.0, 1e9], [0.0, 0.0], "positive count"),
        (Gamma(), [0.1, 5.0], [1.0, 0.0], "its minimum is 0.*tweedie"),
        (GammaInverseLink(), [0.1, 5.0], [1.0, -2.0], "its minimum is -2"),
        (Tweedie(), [0.0, 0.1], [1.0, -2.0], "its minimum is -2"),
        (Tweedie(), [0.0, 0.1], [0.0, 0.0], "positive amount"),
        (NegativeBinomial(), [0.0, 3.0], [1.0, 0.5], "y holds 0.5.*exposure"),
        (NegativeBinomial(), [0.0, 3.0], [1.0, -1.0], "its minimum is -1"),
        (Multinomial(), [0.0, 2.0], [-1.0, 0.0], "0, 1, 2"),
        (Multinomial(), [0.0, 2.0], [0.5, 1.0], "0, 1, 2"),
    ],
)
def test_invalid_targets(loss, good, bad, words):
    loss.check_target(np.array(good))
    with pytest.raises(ValueError, match=words):
        loss.check_target(np.array(bad))


@pytest.mark.parametrize("name", ["squared_error", "huber", "absolute_error", "quantile 0.1", "own"])
def test_other_losses_take_any_number(name):
    LOSSES[name].loss.check_target(np.array([-1e9, 0.0, 0.5]))


@pytest.mark.parametrize(
    ("name", "kind", "classes"),
    [
        ("squared_error", SquaredError, False),
        ("huber", Huber, False),
        ("absolute_error", AbsoluteError, False),
        ("quantile", Quantile, False),
        ("poisson", Poisson, False),
        ("gamma", Gamma, False),
        ("tweedie", Tweedie, False),
        ("negative_binomial", NegativeBinomial, False),
        ("log_loss", LogLoss, True),
        ("hinge", Hinge, True),
        ("squared_hinge", SquaredHinge, True),
    ],
)
def test_names_and_objects_are_resolved_and_errors_name_the_other_estimator(name, kind, classes):
    loss = resolve(name, classes=classes)
    assert type(loss) is kind
    assert resolve(loss, classes=classes) is loss
    own = OwnForClasses() if classes else LogCosh()
    assert resolve(own, classes=classes) is own
    right = "SparseClassifier" if classes else "SparseRegressor"
    for wrong in (name, loss, own):
        with pytest.raises(ValueError, match=f"use {right}"):
            resolve(wrong, classes=not classes)


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("wrong", ["squares", "", None, 3, np.abs, ["log_loss"]], ids=repr)
def test_errors_about_unknown_losses_list_the_names(wrong, classes):
    name = "log_loss" if classes else "squared_error"
    with pytest.raises(ValueError, match=f"loss must be one of .*'{name}'"):
        resolve(wrong, classes=classes)


def test_multinomial_is_for_classification():
    assert resolve(Multinomial(), classes=True) == Multinomial()
    with pytest.raises(ValueError, match="use SparseClassifier"):
        resolve(Multinomial(), classes=False)


def test_estimators_raise_the_same_errors():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="use SparseRegressor"):
        SparseClassifier(k=1, loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match="use SparseClassifier"):
        SparseRegressor(k=1, loss=Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="must not be negative"):
        SparseRegressor(k=1, loss="poisson").fit(X, y - 1)


@pytest.mark.parametrize("wrong", [Huber, LogLoss])
def test_errors_about_a_class_instead_of_an_object(wrong):
    with pytest.raises(ValueError, match=rf"an object, not a class: write {wrong.__name__}\(\)"):
        resolve(wrong, classes=True)


# Offsets.


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "negative binomial", "log_loss", "own", "huber"])
def test_an_offset_is_added_to_the_score(name):
    rng = np.random.default_rng(3)
    row = LOSSES[name]
    y, a = rng.choice(row.targets, (2, 40)), rng.standard_normal((2, 40))
    offset, weights = rng.standard_normal(40), np.full(40, 1 / 40)
    loss, pairs = with_offset(row.loss, y, offset)
    np.testing.assert_allclose(loss.value(pairs, a), row.loss.value(y, a + offset), rtol=1e-12, atol=1e-14)
    for found, expected in zip(loss.slopes(pairs, a), row.loss.slopes(y, a + offset), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.held_out(pairs, a), row.loss.held_out(y, a + offset), rtol=1e-12, atol=1e-14)
    if row.domain is not None:
        t = loss.derivative(pairs, a)
        np.testing.assert_allclose(loss.value(pairs, a) + loss.conjugate(pairs, t), t * a, atol=1e-9)
    best = least(lambda c: loss.value(np.repeat(pairs[:1].T, len(c), 1), c[None]).T @ weights, -15.0, 15.0)
    start = weights @ loss.value(pairs[0], np.full(40, loss.constant(pairs[0], weights)))
    if name not in ("own", "huber"):
        assert start == pytest.approx(best, abs=1e-9)
    assert without_offset(loss) == row.loss
    assert loss.flat == row.loss.flat
    assert loss.may_diverge == row.loss.may_diverge
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_the_dispersion_is_the_likeliest_one():
    rng = np.random.default_rng(0)
    mean = np.exp(rng.standard_normal(4000))
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + mean)).astype(float)[None]
    weights = rng.random(4000)
    weights /= weights.sum()
    found = NegativeBinomial().tuned_at(y, np.log(mean)[None], weights).dispersion

    def likelihood(d):
        return -weights @ nbinom.logpmf(y[0], 1 / d, 1 / (1 + d * mean))

    assert found == pytest.approx(0.5, abs=0.1)
    assert likelihood(found) <= min(likelihood(found * 1.001), likelihood(found / 1.001))
    exact = NegativeBinomial(0.7)
    assert exact.tuned_at(y, np.log(mean)[None], weights) is exact
    # Counts that vary less than Poisson's have next to no dispersion, and those of an offset that explains them.
    assert NegativeBinomial().tuned(np.array([[3.0, 4.0, 5.0]]), np.full(3, 1 / 3)).dispersion == 1e-5
    loss, pairs = with_offset(NegativeBinomial(), np.round(1000 * mean)[None], np.log(mean))
    assert loss.tuned(pairs, weights).loss.dispersion == 1e-5
    with pytest.raises(ValueError, match="tuned"):
        NegativeBinomial().value(y, y)
