"""Sensors: how many of them a given error takes, by selection and by an L1 penalty."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import t
from sklearn.model_selection import KFold

from benchmarks.activities import Home, house_d, kasteren, made_up
from benchmarks.report import Figure
from benchmarks.rival_crf import Penalised
from pauca import PaucaWarning, Progress, SparseTagger
from pauca.crf.chain_inference import ChainInference
from pauca.crf.objective import ChainCRF
from pauca.crf.observations import Observations
from pauca.custom.fit_cache import FitCache
from pauca.custom.objective import CustomProblem

# Numbers of sensors at which errors are reported, and by how much the error of all sensors may be missed.
SIZES = (2, 3, 4, 5, 6, 8, 10, 12)
FEW = (3, 5, 8)
WITHIN = 0.01

# A search by weight goes on until it uses so many sensors more than are reported: FoBa may remove some of them.
FURTHER = 2

# How sure it should be that we are behind before it counts.
SURE = 0.95

OURS, RIVAL = "FoBa by sensor", "L1 refitted by sensor"


def sensors(quick: bool, data: Path) -> Iterator[Figure]:
    """Error on days held out, by number of sensors: mean and standard error over folds, which are the same for all.

    By sensor: all weights of the chosen sensors are fitted. By weight: single weights are chosen, a sensor counts as
    used if any of its weights is. Of the models that use at most the reported number of sensors, the one with most
    weights counts; the search goes on until it uses two sensors more than the largest number reported, however many
    weights that takes. L1 refitted: CRFsuite with an L1 penalty of the strength that leaves the reported number of
    sensors (by bisection; where eight trials do not hit the number, the sensors with the largest weights stay of the
    next larger model), and then all weights of these sensors (by sensor), or those that L1 has left (by weight),
    without L1.

    Errors are those of the most probable sequence of labels (Viterbi), unless it says "one by one": then every position
    has the label that is most probable there. The likelihood, which all ways go by, counts a long stretch that is
    mistaken as a whole like one or two short ones; the error counts its minutes. So a set of sensors can be better in
    the first and far worse in the second, on the days it was fitted on as well.

    Sensors needed: the smallest reported number with an error at most one point above that of all sensors, the median
    over folds; a fold that never gets there counts as needing more than the largest number. Points behind L1 are paired
    by fold; in the mean over all numbers of sensors they should be no more than chance brings in one case of twenty.
    """
    homes = [made_up(40, 500), kasteren(data), house_d(data), house_d(data, unlabelled=True)]
    n_folds, sizes = (3, FEW) if quick else (5, SIZES)
    jobs = [
        delayed(_fold)(home.days(fit), home.days(test), tuple(size for size in sizes if size <= home.X[0].shape[1]))
        for home in homes
        for fit, test in KFold(n_folds, shuffle=True, random_state=0).split(home.X)
    ]
    folds: list[Fold] = Parallel(n_jobs=2)(jobs)
    for i, home in enumerate(homes):
        yield from _figures(home, folds[i * n_folds : (i + 1) * n_folds])


class Wrong(NamedTuple):
    """Shares of labels that are wrong."""

    together: float
    """In the most probable sequence."""
    one_by_one: float
    """Where each label is the most probable at its position."""


class Fold(NamedTuple):
    """What the days held out in one fold have shown."""

    none: Wrong
    all: Wrong
    ways: dict[str, dict[int, Wrong]]
    """By way and number of sensors."""


class Refits:
    """Models on given weights, fitted on some days as those of a path are, and judged on others."""

    def __init__(self, fit: Home, test: Home) -> None:
        self._labels, codes = np.unique(np.concatenate(fit.y), return_inverse=True)
        self.shape = fit.X[0].shape[1], len(self._labels)
        ridge = 1.0 / len(codes)
        data = Observations.from_distinct_rows(np.vstack(fit.X), _bounds(fit))
        self._field = ChainCRF(data, codes, self.shape[1], ridge=ridge, ridge_transitions=ridge, by_weight=True)
        self._fits = FitCache(CustomProblem(self._field))
        self._near = self._fits.null
        self._test = Observations.from_rows(np.vstack(test.X), _bounds(test))
        self._truth = np.concatenate(test.y)

    def wrong(self, chosen: np.ndarray) -> Wrong:
        """What a model gets wrong; its weights are given by truth values of shape (sensors, labels)."""
        # The model before is where the search for this one begins.
        self._near = self._fits.polished(self._fits.trial(frozenset(np.flatnonzero(chosen).tolist()), self._near))
        weights, transitions, biases = self._field.parameters(self._fits.point(self._near))
        scores = self._test.scores(weights) + biases
        inference = ChainInference(self._test, len(biases))
        together = inference.viterbi(scores, transitions)
        one_by_one = inference.expectations(scores, transitions, by_position=True).marginals.argmax(axis=1)
        return Wrong(*(float(np.mean(self._labels[found] != self._truth)) for found in (together, one_by_one)))


def _fold(fit: Home, test: Home, sizes: tuple[int, ...]) -> Fold:
    refits, rival = Refits(fit, test), Penalised(fit)
    none = refits.wrong(np.zeros(refits.shape, dtype=bool))
    ways = {
        "forward by sensor": _by_sensor(fit, test, sizes, "forward"),
        OURS: _by_sensor(fit, test, sizes, "foba"),
        "forward by weight": _by_weight(fit, test, sizes, "forward"),
        "FoBa by weight": _by_weight(fit, test, sizes, "foba"),
    }
    left = {size: rival.weights(size) != 0 for size in sizes}
    whole = {size: np.repeat(some.any(axis=1, keepdims=True), some.shape[1], axis=1) for size, some in left.items()}
    ways["L1 refitted by weight"] = {size: refits.wrong(some) for size, some in left.items()}
    ways[RIVAL] = {size: refits.wrong(some) for size, some in whole.items()}
    return Fold(none, refits.wrong(np.ones(refits.shape, dtype=bool)), ways)


def _by_sensor(fit: Home, test: Home, sizes: tuple[int, ...], method: str) -> dict[int, Wrong]:
    tagger = _fitted(SparseTagger(k=max(sizes), method=method), fit)
    return {size: _wrong(tagger.at(size), test) for size in sizes}


def _by_weight(fit: Home, test: Home, sizes: tuple[int, ...], method: str) -> dict[int, Wrong]:
    n_labels = len(np.unique(np.concatenate(fit.y)))
    used: list[int] = []

    def stop_early(progress: Progress) -> bool:
        sensor = int(progress.move[1]) // n_labels  # type: ignore[arg-type]
        (used.append if progress.move[0] == "add" else used.remove)(sensor)
        return len(set(used)) >= max(sizes) + FURTHER

    everything = fit.X[0].shape[1] * n_labels
    tagger = _fitted(SparseTagger(k=everything, unit="weight", method=method, callback=stop_early), fit)
    models = [tagger.at(size) for size in tagger.path_.sizes]
    return {size: _wrong([one for one in models if len(one.support_) <= size][-1], test) for size in sizes}


def _fitted(tagger: SparseTagger, home: Home) -> SparseTagger:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        return tagger.fit(home.X, home.y)


def _wrong(model: SparseTagger, test: Home) -> Wrong:
    one_by_one = model.classes_[np.vstack(model.predict_marginals(test.X)).argmax(axis=1)]
    return Wrong(1.0 - model.score(test.X, test.y), float(np.mean(one_by_one != np.concatenate(test.y))))


def _bounds(home: Home) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(one) for one in home.y])])


def _figures(home: Home, folds: list[Fold]) -> Iterator[Figure]:
    labels, sizes = np.concatenate(home.y), list(folds[0].ways[OURS])
    about = f"{home.name}, {len(labels)} x {len(np.unique(labels))} x {home.X[0].shape[1]}, {len(folds)} folds"
    yield _mean(about, "error of no sensors", [one.none.together for one in folds])
    yield _mean(about, "error of all sensors", [one.all.together for one in folds])
    yield _mean(about, "error of all sensors, one by one", [one.all.one_by_one for one in folds])
    for way in folds[0].ways:
        problem = f"{home.name}, {way}"
        for size in sizes:
            yield _mean(problem, f"error of {size} sensors", [one.ways[way][size].together for one in folds])
        yield _mean(problem, "mean error", np.mean(_table(folds, way, "together"), axis=1).tolist())
        yield _mean(problem, "mean error, one by one", np.mean(_table(folds, way, "one_by_one"), axis=1).tolist())
        yield _needed(problem, folds, way)
    problem = f"{home.name}, {OURS}"
    behind = _table(folds, OURS, "together") - _table(folds, RIVAL, "together")
    for size, points in zip(sizes, behind.T.tolist(), strict=True):
        yield _mean(problem, f"points behind L1, {size} sensors", points, unit="")
    singly = _table(folds, OURS, "one_by_one") - _table(folds, RIVAL, "one_by_one")
    for name, points in (("mean", behind.mean(axis=1).tolist()), ("mean, one by one", singly.mean(axis=1).tolist())):
        chance = float(t.ppf(SURE, len(folds) - 1)) * _standard_error(points)
        yield _mean(problem, f"points behind L1, {name}", points, unit="")._replace(limit=round(chance, 2))


def _table(folds: list[Fold], way: str, figure: str) -> np.ndarray:
    """Errors by fold and number of sensors."""
    return np.array([[getattr(wrong, figure) for wrong in one.ways[way].values()] for one in folds])


def _needed(problem: str, folds: list[Fold], way: str) -> Figure:
    """Sensors that half of the folds make do with."""
    most = max(folds[0].ways[way])
    needed = []
    for fold in folds:
        good = [size for size, wrong in fold.ways[way].items() if wrong.together <= fold.all.together + WITHIN]
        needed.append(min(good, default=most + 1))
    median = sorted(needed)[len(needed) // 2]
    return Figure(problem, "sensors needed", median, unit=" or more" if median > most else "", digits=0)


def _mean(problem: str, name: str, shares: list[float], unit: str = " %") -> Figure:
    name = f"{name} (± {_standard_error(shares):.1f})"
    return Figure(problem, name, 100 * float(np.mean(shares)), unit=unit, digits=1)


def _standard_error(shares: list[float]) -> float:
    """The standard error of a mean, in points."""
    return 100 * float(np.std(shares, ddof=1)) / len(shares) ** 0.5
