"""Custom losses are checked before any work: errors name the broken method, and valid losses always pass."""

import math

import numpy as np
import pytest
from judges import LogCosh

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
)
from pauca.losses.checks import check_loss


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    return X, 3 + X @ [2.0, 0, -1, 0, 0] + rng.standard_normal(60)


class Half(Loss):
    """Half the squared error, sound; each loss below breaks one thing of it."""

    def value(self, y, a):
        return 0.5 * (a - y) ** 2

    def derivative(self, y, a):
        return a - y

    def curvature(self, y, a):
        return np.ones_like(a)


class Mean(Half):
    def value(self, y, a):
        return np.mean(0.5 * (a - y) ** 2)


class Row(Half):
    def derivative(self, y, a):
        return (a - y)[0]


class Constant(Half):
    def curvature(self, y, a):
        return 1.0


class Below(Half):
    def value(self, y, a):
        return 0.5 * a**2 - a * y


class Backwards(Half):
    def derivative(self, y, a):
        return y - a


class Twice(Half):
    def derivative(self, y, a):
        return 2 * (a - y)


class BentDown(Half):
    def curvature(self, y, a):
        return -np.ones_like(a)


class Undefined(Half):
    def value(self, y, a):
        return 0.5 * (a - y) ** 2 + 0 * np.log(a)


class NoSlope(Half):
    def derivative(self, y, a):
        return (a - y) / np.where(a == 0, np.nan, 1)


class NoCurvature(Half):
    def curvature(self, y, a):
        return np.full_like(a, np.inf)


class Bounded(Half):
    """Welsch's: robust, and not convex."""

    def value(self, y, a):
        return 1 - np.exp(-0.5 * (a - y) ** 2)

    def derivative(self, y, a):
        return (a - y) * np.exp(-0.5 * (a - y) ** 2)

    def curvature(self, y, a):
        return np.exp(-0.5 * (a - y) ** 2)


class OneByOne(Half):
    def value(self, y, a):
        return math.fabs(a - y)


class InPlace(Half):
    def value(self, y, a):
        a -= y
        return 0.5 * a**2


class Text(Half):
    def value(self, y, a):
        return np.full(a.shape, "low")


class OtherSlopes(Half):
    def slopes(self, y, a):
        return super().slopes(y, a)._replace(derivative=2 * (a - y))


class TwoStarts(Half):
    def constants(self, y, weights, n_outputs):
        return np.zeros(2 * n_outputs)


class Bent(Half):
    """Insensitive to small errors: a kink to either side of the target."""

    def value(self, y, a):
        return np.maximum(np.abs(a - y) - 0.3, 0.0)

    def derivative(self, y, a):
        return np.sign(a - y) * (np.abs(a - y) > 0.3)

    def curvature(self, y, a):
        return np.zeros_like(a)


class NoStart(Half):
    def constant(self, y, weights):
        return y.middle()


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Mean, r"Mean.value returns float64 for scores of shape \(., 32\), not an array of numbers of shape \(., 32\)"),
        (Row, r"Row.derivative returns an array of shape \(32,\) for scores of shape \(., 32\)"),
        (Constant, "Constant.curvature returns float for scores"),
        (Below, r"Below.value is -.* for target .* at score .*; it must not be negative. Add a constant"),
        (Backwards, r"Backwards.derivative is .* for target .* at score .*, where value rises by .*; they must agree"),
        (Twice, r"Twice.derivative is .*, where value rises by"),
        (BentDown, r"BentDown.curvature is -1 for target .*; it must not be negative\.$"),
        (Undefined, r"Undefined.value is not finite for target .* at score 0, where the search starts"),
        (NoSlope, "NoSlope.derivative is not finite"),
        (NoCurvature, "NoCurvature.curvature is not finite"),
        (Bounded, r"Bounded.derivative falls from .* to .*: the loss is not convex"),
        (OneByOne, r"OneByOne.value fails on arrays of shape \(., 32\) and \(., 32\): "),
        (InPlace, "InPlace.value changes the array it is given"),
        (Text, r"Text.value returns an array of shape \(., 32\) and type <U3 for scores of shape"),
        (OtherSlopes, "OtherSlopes.slopes gives another derivative"),
        (TwoStarts, r"TwoStarts.constants returns an array of shape \(.,\), not an array of numbers"),
        (Bent, r"Bent.derivative jumps from (-1 to 0|0 to 1|-1 to 1) for target .* at score .*: the loss has a kink"),
        (NoStart, "NoStart.constants fails on arrays"),
    ],
)
def test_errors_name_the_broken_method_before_any_work(loss, words, outputs):
    X, y = table()
    moves = []
    model = SparseRegressor(k=2, loss=loss(), callback=moves.append)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y if outputs == 1 else np.column_stack([y, -y]))
    assert moves == []
    assert not hasattr(model, "path_")


def test_the_valid_one_passes():
    X, y = table()
    own, ours = (SparseRegressor(k=2, loss=loss).fit(X, y) for loss in (Half(), "squared_error"))
    np.testing.assert_allclose(own.coef_, ours.coef_, rtol=1e-6)


class Steep(Half):
    """Nearly a kink, but smooth: half the squared error within a thousandth of the target, linear beyond."""

    def value(self, y, a):
        u = np.abs(a - y)
        return np.where(u < 1e-3, 500 * u**2, u - 5e-4)

    def derivative(self, y, a):
        return np.clip(1e3 * (a - y), -1, 1)

    def curvature(self, y, a):
        return 1e3 * (np.abs(a - y) < 1e-3)


def test_a_steep_but_smooth_loss_has_no_kink():
    _, y = table()
    check_loss(Steep(), y[None], np.full(60, 1 / 60), 1)


# Classes.


class Odds(Loss):
    """The logistic loss by hand, sound."""

    classifies = True

    def value(self, y, a):
        return np.logaddexp(0, -y * a)

    def derivative(self, y, a):
        return -y / (1 + np.exp(y * a))

    def curvature(self, y, a):
        return 1 / (2 + np.exp(a) + np.exp(-a))

    def probabilities(self, a):
        upper = 1 / (1 + np.exp(-a[0]))
        return np.stack([1 - upper, upper])


class SignForgotten(Odds):
    def derivative(self, y, a):
        return -1 / (1 + np.exp(y * a))


class OneRow(Odds):
    def probabilities(self, a):
        return super().probabilities(a)[1]


class Shares(Odds):
    def probabilities(self, a):
        return 2 * super().probabilities(a)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (SignForgotten, "SignForgotten.derivative is .* for target -1 .*, where value rises by"),
        (
            OneRow,
            r"OneRow.probabilities returns an array of shape \(32,\) for scores of shape \(1, 32\), not .* \(2, 32\)",
        ),
        (Shares, "Shares.probabilities returns numbers that .* do not sum to one"),
    ],
)
def test_broken_classification_losses(loss, words, classes):
    X, y = table()
    labels = np.digitize(y, [3] if classes == 2 else [2, 4])
    assert SparseClassifier(k=2, loss=Odds()).fit(X, labels).predict_proba(X).shape == (60, classes)
    with pytest.raises(ValueError, match=words):
        SparseClassifier(k=2, loss=loss()).fit(X, labels)


def test_without_classifies_a_loss_is_for_regression():
    class Forgotten(Odds):
        classifies = False

    X, y = table()
    with pytest.raises(ValueError, match=r"loss=Forgotten\(\) is for targets that are numbers; use SparseRegressor"):
        SparseClassifier(k=2, loss=Forgotten()).fit(X, y > 3)


class OwnMultinomial(Multinomial):
    """The multinomial likelihood as if it were the user's; ``part`` of its derivative is forgotten."""

    def __init__(self, part=None):
        self.part = part

    def slopes(self, y, a):
        found = super().slopes(y, a)
        if self.part is not None:
            found.derivative[self.part] += 0.5
        return found

    def derivative(self, y, a):
        return self.slopes(y, a).derivative

    def for_classes(self, n_classes):
        return self


def test_joint_losses():
    X, y = table()
    labels = np.digitize(y, [2, 4])
    assert SparseClassifier(k=2, loss=OwnMultinomial()).fit(X, labels).k_ == 2
    for part in range(3):
        words = r"OwnMultinomial.derivative is .* for class \d at scores \[.*\], where value rises by"
        with pytest.raises(ValueError, match=words):
            SparseClassifier(k=2, loss=OwnMultinomial(part)).fit(X, labels)


# No false alarms: pauca's own losses, in the name of a user, on targets of every kind.

SOUND = [SquaredError(), Huber(), Huber(0.01), AbsoluteError(), Quantile(0.9), Poisson(), LogCosh(), LogLoss(), Hinge()]
SOUND += [SquaredHinge()]


def as_the_users(loss):
    own = type("Own", (type(loss),), {"__module__": "mine"})
    other = own.__new__(own)
    vars(other).update(vars(loss))
    return other


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e8])
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1e-3, 1.0, 300.0, 1e7])
@pytest.mark.parametrize("loss", SOUND, ids=repr)
def test_valid_losses_always_pass(loss, scale, shift):
    rng = np.random.default_rng(1)
    y = shift + scale * rng.standard_normal((2, 100))
    if isinstance(loss, Poisson):
        y = np.floor(np.abs(y)) + (np.arange(100) == 0)
    elif loss.classifies:
        y = np.where(rng.standard_normal((2, 100)) > 0, 1.0, -1.0)
    weights = np.where(np.arange(100) % 7 == 3, 0.0, 0.01)
    check_loss(as_the_users(loss), y, weights / weights.sum(), 2)


def test_rows_without_weight_and_few_rows():
    y = np.array([[1.0, -5.0, 2.0]])
    check_loss(as_the_users(Poisson()), y, np.array([0.5, 0.0, 0.5]), 1)
    check_loss(as_the_users(SquaredError()), y[:, :1], np.ones(1), 1)


def test_only_losses_that_users_wrote_are_checked(monkeypatch):
    def fail(*_):
        raise AssertionError("checked")

    for kind in ("regressor", "classifier"):
        monkeypatch.setattr(f"pauca.estimators.{kind}.check_loss", fail)
    X = np.random.default_rng(0).standard_normal((20, 3))
    SparseRegressor(k=1).fit(X, X[:, 0])
    SparseClassifier(k=1, ridge=0.1).fit(X, X[:, 0] > 0)
    with pytest.raises(AssertionError, match="checked"):
        SparseRegressor(k=1, loss=as_the_users(SquaredError())).fit(X, X[:, 0])


class Asymmetric(Loss):
    """Slope -4 far below the target and +1 far above it, over a width of 0.1: straight lines but for that."""

    def value(self, y, a):
        u = 10 * (a - y)
        return 0.1 * (5 * np.logaddexp(0, u) - 4 * u - 5 * np.log(5) + 4 * np.log(4))

    def derivative(self, y, a):
        return 5 / (1 + np.exp(-np.clip(10 * (a - y), -700, 700))) - 4

    def curvature(self, y, a):
        p = 1 / (1 + np.exp(-np.clip(10 * (a - y), -700, 700)))
        return 50 * p * (1 - p)


@pytest.mark.parametrize("shift", [-1e6, 0.0, 300.0])
def test_targets_far_from_zero_are_found_where_a_loss_has_no_curvature(shift):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    y = shift + 30 * X[:, 1] + 10 * rng.standard_normal(80)
    model = SparseRegressor(k=1, loss=Asymmetric()).fit(X, y)
    assert model.support_.tolist() == [1]
    assert np.mean(model.predict(X) < y) == pytest.approx(0.2, abs=0.03)
    empty = model.at(0)
    assert np.mean(empty.predict(X) < y) == pytest.approx(0.2, abs=0.03)
