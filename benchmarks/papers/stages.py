"""Li, Yang, Zhang and Jin (2017), Figures 1 and 2: SGD and epoch SGD, two kinds of draws, one stage and two.

Their data, E2006, cannot be had; film reviews with star ratings stand for it, and a synthetic set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.papers.page import DEFAULT, Claim, Item, Panel, Result, Table
from benchmarks.problems import Problem
from benchmarks.reviews import WORDS, reviews
from pauca import StreamRegressor
from pauca.losses import SquaredError
from pauca.sgd import EpochSGD
from pauca.sparsification import draw

SGD, EPOCHS, FULL = "SGD", "epoch SGD", "full model"
MAGNITUDE, MOMENTS = "MG: by magnitude", "DD: by moments"
ONE_STAGE, TWO_STAGES = "SpS: one stage", "SpT: two stages (DD)"
RATES = (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001)
"""Step sizes that the paper compares; ours are these times the inverse mean square of a row's norm."""
PARTS = (7, 31, 127)
"""The first epoch is one of so many parts of the rows: after 3, 5 or 7 epochs a pass is over."""
MULTIPLES = (1.0, 10.0, 100.0, 300.0)
"""Radii as multiples of the largest target; the paper takes 1."""
NO_END = 2**53
LARGEST_REFIT = 1000
ORDERS = 10
"""Orders of the rows over which the first stage is compared: differences are of the size of the noise."""
TUNED_ON = 8000
"""Settings are chosen on so many rows."""


class Text(NamedTuple):
    """Training and test rows; targets are less the training mean, for the models have no intercept."""

    name: str
    train: Problem
    test: Problem


class Setting(NamedTuple):
    """A radius, a step size and the length of the first epoch."""

    radius: float
    rate: float
    first: int


def texts(quick: bool, data: Path) -> Iterator[Text]:
    """The data sets; the quick one is small and synthetic."""
    yield synthetic(600, 200) if quick else synthetic(16_000, 5_000)
    if not quick:
        train, test = reviews(data, WORDS), reviews(data, WORDS, "test")
        mean = train.y.mean()
        yield Text("reviews", Problem(train.X, train.y - mean), Problem(test.X, test.y - mean))


@cache
def synthetic(n: int, d: int) -> Text:
    """Words of Zipf frequencies in rows of norm one; a target of 200 words, some of them rare, and noise."""
    rng = np.random.default_rng(0)
    chance = np.minimum(0.5, 8.0 / (1.0 + np.arange(d)))
    X = sparse.csr_matrix(rng.random((n + n // 4, d)) < chance, dtype=np.float64)
    X = X.multiply(1 / np.maximum(1.0, np.sqrt(X.sum(axis=1)))).tocsr()
    coef = np.zeros(d)
    chosen = rng.choice(min(d, 1000), size=min(200, d // 2), replace=False)
    coef[chosen] = rng.standard_normal(len(chosen)) * 2
    y = X @ coef
    y = y - y[:n].mean() + 0.5 * y.std() * rng.standard_normal(len(y))
    return Text("synthetic", Problem(X[:n], y[:n]), Problem(X[n:], y[n:]))


def figure1_left(quick: bool, data: Path) -> Result:
    """RMSE on test rows after each epoch of one pass, over several orders of the rows."""
    panels, rows, claims = [], [], []
    orders = 2 if quick else ORDERS
    for text in texts(quick, data):
        first = tuned(text, EPOCHS, quick).first
        found, at_printed = ({name: _passes(text, name, first, quick, orders, radii) for name in (SGD, EPOCHS)}
                             for radii in (MULTIPLES, (1.0,)))  # fmt: skip
        epochs = [float(epoch) for epoch in range(1, found[SGD].shape[1] + 1)]
        curves = {name: (epochs, errors.mean(axis=0).tolist()) for name, errors in found.items()}
        for name, errors in found.items():
            radius = tuned(text, name, quick).radius
            rows.append(
                [text.name, name, f"{at_printed[name][:, -1].mean():.3f}", f"{radius:.3g}", _with_error(errors)]
            )
        rows.append([text.name, "no model", f"{_rmse(text.test.y):.3f}", "", ""])
        model = StreamRegressor(k=None, random_state=0).fit(*text.train)
        ours = _rmse(model.predict(text.test.X) - text.test.y)
        curves[DEFAULT] = (epochs, [ours] * len(epochs))
        rows.append([text.name, f"{DEFAULT}, 5 passes", "", f"{model.radius_:.3g}", f"{ours:.3f}"])
        panels.append(Panel(text.name, "epoch", "test RMSE", curves))
        claims.append(_faster(text.name, found))
    text_of = (
        "Radius, step size and first epoch are chosen on held-out rows of the first 8000; averages of iterates, one "
        f"pass over the rows in each of {orders} orders, whose mean is drawn. With the paper's radius, the largest "
        "target, models are hardly better than none (third column), so the radius is chosen too."
    )
    header = ["data", "method", "RMSE, B = max |y|", "B chosen", "RMSE after one pass"]
    return Result(text_of, claims, [Table("Figure 1, left", header, rows)], panels)


def _with_error(errors: np.ndarray) -> str:
    last = errors[:, -1]
    return f"{last.mean():.3f} ± {last.std(ddof=1) / np.sqrt(len(last)):.3f}"


def _faster(name: str, found: dict[str, np.ndarray]) -> Claim:
    """Whether epoch SGD has the lower error, after each epoch and after the pass, by more than two standard errors."""
    difference = found[SGD] - found[EPOCHS]
    mean, error = difference.mean(axis=0), difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    lower = int(np.sum(mean > 2 * error))
    after = f"after the pass it is {abs(mean[-1]):.4f} ± {error[-1]:.4f} {'lower' if mean[-1] > 0 else 'higher'}"
    measured = f"its error is lower after {lower} of {len(mean)} epochs; {after}"
    return Claim(f"epoch SGD lowers the error faster than SGD ({name})", measured, bool(mean[-1] > 2 * error[-1]))


def _passes(text: Text, name: str, first: int, quick: bool, orders: int, multiples: tuple[float, ...]) -> np.ndarray:
    """Test errors by order of the rows and epoch; epochs double from ``first``, of which SGD itself knows nothing."""
    setting = tuned(text, name, quick, multiples)
    return np.array([_after_epochs(text, setting, name, first, seed) for seed in range(orders)])


def _after_epochs(text: Text, setting: Setting, name: str, first: int, seed: int) -> list[float]:
    learner = _learner(text, setting, name)
    order = np.random.default_rng(seed).permutation(len(text.train.y))
    X, y = text.train.X[order], text.train.y[order]
    begin, length, errors = 0, first, []
    while begin < len(y):
        end = min(begin + length, len(y))
        learner.learn(X[begin:end], y[begin:end])
        begin, length = end, 2 * length
        errors.append(_rmse(text.test.X @ learner.average[0] - text.test.y))
    return errors


def _learner(text: Text, setting: Setting, name: str) -> EpochSGD:
    first = setting.first if name == EPOCHS else NO_END
    options = {"learning_rate": setting.rate, "first_epoch": first, "fit_intercept": False}
    return EpochSGD(text.train.X.shape[1], SquaredError(), setting.radius, **options)  # type: ignore[arg-type]


FOUND: dict[tuple[str, int, str, float], tuple[float, Setting]] = {}
"""Errors and settings that were found already, by data, rows, method and radius: the figures share them."""


def tuned(text: Text, name: str, quick: bool, multiples: tuple[float, ...] = MULTIPLES) -> Setting:
    """The setting with the least error on every fifth training row."""
    found = []
    for multiple in multiples:
        key = text.name, len(text.train.y), name, multiple
        if key not in FOUND:
            FOUND[key] = _tuned_at(text, name, quick, multiple)
        found.append(FOUND[key])
    return min(found, key=lambda pair: pair[0])[1]


def _tuned_at(text: Text, name: str, quick: bool, multiple: float) -> tuple[float, Setting]:
    """The least error, and the setting that has it, with one radius, on the first rows; a fifth is held out."""
    X, y = text.train
    held = np.arange(min(len(y), TUNED_ON)) % 5 == 0
    rows, others = np.flatnonzero(~held), np.flatnonzero(held)
    part = text._replace(train=Problem(X[rows], y[rows]), test=Problem(X[others], y[others]))
    scale = 20 * len(y) / max(X.multiply(X).sum(), 1.0)  # rows of norm one take steps of up to two
    rates = RATES[::3] if quick else RATES
    firsts = [max(1, len(y) // parts) for parts in (PARTS if name == EPOCHS else PARTS[:1])]
    radius = multiple * float(np.abs(y).max())
    found = []
    for setting in (Setting(radius, rate * scale, first) for rate in rates for first in firsts):
        learner = _learner(part, setting, name)
        learner.learn(*part.train)
        found.append((_rmse(part.test.X @ learner.average[0] - part.test.y), setting))
    return min(found, key=lambda pair: pair[0])


def figure1_right(quick: bool, data: Path) -> Result:
    """RMSE of 100 draws of K coefficients each, without a refit."""
    panels, rows = [], []
    for text in texts(quick, data):
        sizes, draws = ((10, 50), 5) if quick else ((50, 100, 200, 500, 1000, 2000, 5000), 100)
        learner = _stage_one(text, quick)
        coef, moments = learner.average[0], learner.moments
        full = _rmse(text.test.X @ coef - text.test.y)
        drawn: dict[str, list[float]] = {
            MAGNITUDE: [_drawn(text, coef, moments, k, "magnitude", draws) for k in sizes],
            MOMENTS: [_drawn(text, coef, moments, k, "moments", draws) for k in sizes],
            FULL: [full] * len(sizes),
        }
        ours = dict(zip(sizes, (error for _, error in _default(text, sizes)), strict=False))
        for i, k in enumerate(sizes):
            default = f"{ours[k]:.3f}" if k in ours else ""
            rows.append([text.name, str(k), *(f"{values[i]:.3f}" for values in drawn.values()), default])
        x = [float(k) for k in sizes]
        curves = {name: (x, values) for name, values in drawn.items()}
        curves[DEFAULT] = ([float(k) for k in ours], list(ours.values()))
        panels.append(Panel(text.name, "K", "test RMSE", curves, "x", [FULL]))
    text_of = (
        f"Means of {draws} draws, without a refit. pauca's default keeps the K largest coefficients, weighted by "
        "moments, and refits them: far fewer are enough. A refit of more than a thousand is left out."
    )
    claims = []
    for panel in panels:
        magnitude, moments = (panel.curves[name][1] for name in (MAGNITUDE, MOMENTS))
        lower = sum(m < g for m, g in zip(moments, magnitude, strict=True))
        falls = all(np.all(np.diff(values) < 0) for values in (magnitude, moments))
        claims.append(
            Claim(f"errors fall with K ({panel.title})", f"{'always' if falls else 'not always'}", bool(falls))
        )
        measured = f"lower at {lower} of {len(moments)} K"
        claims.append(Claim(f"DD is better than MG at every K ({panel.title})", measured, lower == len(moments)))
        near = moments[-1] / panel.curves[FULL][1][-1]
        measured = f"at K = {sizes[-1]} its error is {near:.2f} times that of the full model"
        claims.append(
            Claim(f"DD with 500 to 5000 draws almost matches the full model ({panel.title})", measured, near < 1.05)
        )
    header = ["data", "K", MAGNITUDE, MOMENTS, FULL, DEFAULT]
    return Result(text_of, claims, [Table("Figure 1, right: mean RMSE", header, rows)], panels)


def _stage_one(text: Text, quick: bool) -> EpochSGD:
    learner = _learner(text, tuned(text, EPOCHS, quick), EPOCHS)
    learner.learn(*text.train)
    return learner


def _drawn(text: Text, coef: np.ndarray, moments: np.ndarray, k: int, truncation: str, draws: int) -> float:
    rng = np.random.default_rng(k)
    errors = []
    for _ in range(draws):
        drawn, w = draw(coef, moments, k, truncation, rng), np.zeros(len(coef))
        w[drawn.support] = drawn.values
        errors.append(_rmse(text.test.X @ w - text.test.y))
    return float(np.mean(errors))


def _default(text: Text, sizes: tuple[int, ...]) -> list[tuple[int, float]]:
    """Features and errors of the default at some sizes; the first stage is learned once.

    A refit of thousands of features takes minutes, and more than a thousand are hardly few: larger sizes are left out.
    """
    sizes = tuple(k for k in sizes if k <= LARGEST_REFIT)
    model = StreamRegressor(k=sizes[0], random_state=0).fit(*text.train)
    found = []
    for k in sizes:
        model.set_params(k=k).finish(*text.train)
        found.append((model.k_, _rmse(model.predict(text.test.X) - text.test.y)))
    return found


def figure2(quick: bool, data: Path) -> Result:
    """RMSE against the share of features in use: one stage with small radii, and two stages."""
    panels, rows = [], []
    for text in texts(quick, data):
        d = text.train.X.shape[1]
        largest = float(np.abs(text.train.y).max())
        multiples = (0.1, 1.0) if quick else (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
        single = []
        for multiple in multiples:
            setting = tuned(text, SGD, quick, multiples=(multiple,))
            learner = _learner(text, setting, SGD)
            learner.learn(*text.train)
            coef = learner.last[0]
            single.append((np.count_nonzero(coef) / d, _rmse(text.test.X @ coef - text.test.y)))
            rows.append(
                [text.name, ONE_STAGE, f"B = {multiple * largest:.3g}", f"{single[-1][0]:.2%}", f"{single[-1][1]:.3f}"]
            )
        learner = _stage_one(text, quick)
        coef, moments = learner.average[0], learner.moments
        sizes = (10, 50) if quick else (50, 100, 200, 500, 1000, 2000, 5000)
        double = [
            (len(draw(coef, moments, k, "moments", np.random.default_rng(k)).support) / d,
             _drawn(text, coef, moments, k, "moments", 3 if quick else 20))
            for k in sizes
        ]  # fmt: skip
        ours = [(k / d, error) for k, error in _default(text, sizes)]
        for name, points in ((TWO_STAGES, double), (DEFAULT, ours)):
            rows += [
                [text.name, name, f"K = {k}", f"{x:.2%}", f"{y:.3f}"] for k, (x, y) in zip(sizes, points, strict=False)
            ]
        curves = {
            name: ([float(x) for x, _ in points], [y for _, y in points])
            for name, points in ((ONE_STAGE, sorted(single)), (TWO_STAGES, double), (DEFAULT, ours))
        }
        panels.append(Panel(text.name, "share of features in use", "test RMSE", curves, "x"))
    claims = []
    for panel in panels:
        single, double = panel.curves[ONE_STAGE], panel.curves[TWO_STAGES]
        best = min(single[1])
        share = single[0][single[1].index(best)]
        enough = min((x for x, y in zip(*double, strict=True) if y <= best), default=None)
        measured = (
            f"one stage comes to {best:.3f} with {share:.2%} of the features, two stages "
            f"{'never do' if enough is None else f'with {enough:.2%}'}; {_beaten(double, single)} of {len(double[0])} "
            "models of two stages are beaten by one of a single stage that is no larger"
        )
        holds = enough is not None and enough < share / 2
        published = f"two stages predict better than one with a much sparser model ({panel.title})"
        claims.append(Claim(published, measured, bool(holds)))
    text_of = (
        "One stage is SGD in a ball of radius B, its last iterate; two stages are epoch SGD and K draws by moments, "
        f"means of {3 if quick else 20} draws."
    )
    header = ["data", "method", "setting", "features in use", "RMSE"]
    return Result(text_of, claims, [Table("Figure 2", header, rows)], panels)


def _beaten(ours: tuple[list[float], list[float]], theirs: tuple[list[float], list[float]]) -> int:
    """How many of our models are beaten, with no more features, by one of theirs."""
    points = list(zip(*theirs, strict=True))
    return sum(any(x <= size and y < error for x, y in points) for size, error in zip(*ours, strict=True))


def _rmse(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


ITEMS = {
    "li-figure1-left": Item("Li, Yang, Zhang and Jin (2017), Figure 1, left: the first stage", figure1_left),
    "li-figure1-right": Item("Li, Yang, Zhang and Jin (2017), Figure 1, right: the second stage", figure1_right),
    "li-figure2": Item("Li, Yang, Zhang and Jin (2017), Figure 2: one stage and two", figure2),
}
