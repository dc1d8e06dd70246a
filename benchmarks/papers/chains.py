"""Liu, Fujimaki and Ye (2014), section 5 and appendix D.2: conditional random fields on chains."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.activities import TABLE_1, Home, house_d, kasteren, made_up
from benchmarks.papers.page import DEFAULT, Claim, Item, Panel, Result, Table
from benchmarks.papers.smooth_foba import RATIO_HEADER, ratio_rows
from benchmarks.synthetic import FOBA_GDT, FOBA_OBJ, FORWARD_GDT, FORWARD_OBJ
from pauca import Progress, SparseTagger
from pauca.crf import published_tagger

N_LABELS = 4
STATES = (2, 3, 4, 5)
"""Four observations with so many values each beside 0, which says nothing: with 4 labels the paper's 56 weights."""
N_POSITIONS = 800
ACTIVITIES = (
    "sleeping", "out of home", "using computer", "relaxing", "eating", "cooking", "showering", "no event",
    "using toilet", "hygiene", "dishwashing", "beverages", "bath cleaning", "others",
)  # fmt: skip
"""Table 1."""
NAMES = (FOBA_OBJ, FORWARD_OBJ, FOBA_GDT, FORWARD_GDT)
L1 = "L1-CRF"
PUBLISHED_TIMES = {
    10: (1.02, 0.52, 39.5, 18.8),
    15: (1.85, 1.05, 55.3, 26.5),
    20: (2.51, 1.53, 68.9, 33.3),
    25: (3.86, 2.00, 80.6, 39.1),
    30: (5.13, 3.00, 90.4, 43.9),
}
"""FoBa-gdt, Forward-gdt, FoBa-obj and Forward-obj, in seconds, by the number of weights."""

# All weights of a chosen sensor are free by default; single weights are what the paper counts.
TAGGERS = {
    FOBA_OBJ: {"rule": "objective"},
    FORWARD_OBJ: {"rule": "objective", "backward": False},
    FOBA_GDT: {"rule": "gradient"},
    FORWARD_GDT: {"rule": "gradient", "backward": False},
}


def figure4(quick: bool, data: Path) -> Result:
    """Errors, objective and times over the number of weights, on chains of the paper's generator."""
    sizes, runs = ((2, 4), 1) if quick else ((10, 15, 20, 25, 30), 20)
    names = (*NAMES, DEFAULT)
    found: dict[str, list[list[list[float]]]] = {name: [] for name in names}
    for seed in range(runs):
        train, test = (chains(2 * seed + part, 80 if quick else N_POSITIONS) for part in (0, 1))
        for name in names:
            found[name].append(_measured(name, train, test, sizes))
    mean = {name: np.nanmean(found[name], axis=0) for name in names}
    titles = ("training error", "test error", "objective value")
    x = [float(size) for size in sizes]
    panels = [
        Panel(title, "weights", title, {name: (x, mean[name][:, i].tolist()) for name in names})
        for i, title in enumerate(titles)
    ]
    rows = [
        [str(size), *(" / ".join(f"{mean[name][row, i]:.3f}" for i in range(3)) for name in names)]
        for row, size in enumerate(sizes)
    ]
    errors = Table(f"Figure 4: {', '.join(titles)}", ["weights", *names], rows)
    text = (
        f"{runs} runs on sequences of Schmidt's crfChain, the generator of the paper, with {N_POSITIONS} positions to "
        "fit and as many to test: four observations, of which each value from 1 to 4 speaks for the label of the same "
        "number, ten times as loud as the one before it; 56 weights. pauca's default, here by weight, has biases and a "
        "ridge, which its objective includes."
    )
    return Result(text, _claims4(sizes, mean), [errors, _times(sizes, mean)], panels)


def _claims4(sizes: tuple[int, ...], mean: dict[str, np.ndarray]) -> list[Claim]:
    gaps = mean[FOBA_GDT][:, :3] - mean[FOBA_OBJ][:, :3]
    few, many = gaps[0], gaps[-1]
    parts = ("training error", "test error", "objective")
    measured = "FoBa-gdt less FoBa-obj at {} weights: " + ", ".join(f"{part} {{:+.4f}}" for part in parts)
    near = float(np.abs(mean[FOBA_OBJ][:, 2] / mean[FORWARD_OBJ][:, 2] - 1).max())
    gain = mean[FORWARD_GDT][0, :3] - mean[FOBA_GDT][0, :3]
    ratio = mean[FOBA_OBJ][:, 3] / mean[FOBA_GDT][:, 3]
    return [
        Claim("with few weights, ranking by objectives has the lower objective and errors",
              measured.format(sizes[0], *few), bool(np.all(few > 0))),
        Claim("the difference falls with the number of weights",
              measured.format(sizes[-1], *many), bool(np.all(np.abs(many) <= np.abs(few)))),
        Claim("FoBa-obj is close to Forward-obj", f"objectives differ by {100 * near:.2f} % at most", near < 0.02),
        Claim("FoBa-gdt is better than Forward-gdt with few weights", f"at {sizes[0]} weights its objective is "
              f"{gain[2]:.4f} lower, its training error {gain[0]:.4f}, its test error {gain[1]:.4f}",
              bool(gain[2] > 0.005 * mean[FOBA_GDT][0, 2])),
        Claim("FoBa-gdt is much faster than FoBa-obj, 18 to 39 times",
              f"{ratio.min():.0f} to {ratio.max():.0f} times", bool(ratio.min() > 5)),
    ]  # fmt: skip


def _times(sizes: tuple[int, ...], mean: dict[str, np.ndarray]) -> Table:
    order = (FOBA_GDT, FORWARD_GDT, FOBA_OBJ, FORWARD_OBJ)
    rows = []
    for i, size in enumerate(sizes):
        printed = dict(zip(order, PUBLISHED_TIMES.get(size, ()), strict=False))
        rows += ratio_rows(size, printed, {name: float(mean[name][i, 3]) for name in (*order, DEFAULT)})
    return Table("Table 3, bottom: times over that of FoBa-gdt", ["weights", *RATIO_HEADER[1:]], rows)


def chains(seed: int, n_positions: int) -> Home:
    """Sequences like those of crfChain (M. Schmidt, 2008): labels that follow their observations and one another.

    An observation has a value from 0 to its number of states, each as likely. The label of a position is drawn with
    odds that sum, over the observations of value v = 1 to 4, to 10^(v - 1) for label v; the label before it has at
    least a tenth of the largest odds, and so has the end of the sequence (half of them after label 4).
    """
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(states + 1, size=n_positions) for states in STATES])
    X: list[np.ndarray] = []
    y: list[np.ndarray] = []
    begin, labels = 0, list[int]()
    for t in range(n_positions):
        odds = np.array([10.0 ** (v - 1) * np.sum(values[t] == v) for v in range(1, N_LABELS + 1)])
        end = 0.0
        if labels:
            end = odds.max() / (2 if labels[-1] == N_LABELS - 1 else 10)
            odds[labels[-1]] = max(odds[labels[-1]], odds.max() / 10)
        if not odds.any():
            odds[:] = 1.0
        label = int(rng.choice(N_LABELS + 1, p=np.append(odds, end) / (odds.sum() + end)))
        if label < N_LABELS:
            labels.append(label)
        if (label == N_LABELS or t == n_positions - 1) and labels:
            X.append(_indicators(values[begin : begin + len(labels)]))
            y.append(np.array(labels))
        if label == N_LABELS:
            begin, labels = t + 1, []
    return Home("crfChain", X, y)


def _indicators(values: np.ndarray) -> np.ndarray:
    """One column for each value but 0 of each observation."""
    return np.hstack([values[:, [i]] == np.arange(1, states + 1) for i, states in enumerate(STATES)]).astype(float)


def _measured(name: str, train: Home, test: Home, sizes: tuple[int, ...]) -> list[list[float]]:
    """Training error, test error, objective and seconds at each size."""
    arrived: dict[int, float] = {}

    def watch(progress: Progress) -> None:
        arrived.setdefault(progress.size, process_time() - start)

    largest = sizes[-1]
    if name == DEFAULT:
        tagger = SparseTagger(largest, unit="weight", callback=watch)
    else:
        tagger = published_tagger(largest, callback=watch, **TAGGERS[name])
    start = process_time()
    tagger.fit(train.X, train.y)
    found = []
    for size in sizes:
        model = tagger.at(min(size, max(tagger.path_.sizes)))
        errors = [1 - model.score(part.X, part.y) for part in (train, test)]
        found.append([*errors, float(model.objective_), arrived.get(size, np.nan)])
    return found


def figure2(quick: bool, data: Path) -> Result:
    """Test error over the number of sensors in use, and by activity."""
    homes = [made_up(4, 200, n_sensors=10)] if quick else [made_up(90, 1000), kasteren(data), house_d(data)]
    most = 4 if quick else 20
    panels, by_activity, tables, claims = [], [], [], []
    for home in homes:
        half = np.arange(len(home.X)) % 2 == 0
        train, test = home.days(np.flatnonzero(half)), home.days(np.flatnonzero(~half))
        curves, models = _sensor_curves(train, test, min(most, home.X[0].shape[1]))
        panels.append(Panel(home.name, "sensors", "test error", curves))
        by_activity.append(_activity_panel(home, test, models, 4 if quick else 15))
        tables.append(_curve_table(home, curves))
        tables.append(_activities(home, test, models[FOBA_GDT], (2, 4) if quick else (10, 15)))
        claims += _claims2(home, curves, models)
    text = (
        "The recordings of the paper are not public. A made-up home with the frequencies of its Table 1 stands for "
        "them, and two public recordings in minutes; every other day is held out. Weights are chosen as printed, with "
        "a ridge of 1e-4, for without one they diverge; a sensor is in use if any of its weights is, and of the models "
        "with so many sensors the one with the most weights counts. L1-CRF is CRFsuite with an L1 penalty, the weights "
        "it leaves refitted. pauca's default chooses whole sensors."
    )
    return Result(text, claims, tables, panels + by_activity)


Curves = dict[str, tuple[list[float], list[float]]]
BySensors = dict[int, SparseTagger]
"""A model for each number of sensors in use."""


def _claims2(home: Home, curves: Curves, models: dict[str, BySensors]) -> list[Claim]:
    foba, forward = (dict(zip(*curves[name], strict=True)) for name in (FOBA_GDT, FORWARD_GDT))
    enough = min(*foba.values(), *forward.values()) + 0.01
    need = [min((int(k) for k, error in one.items() if error <= enough), default=0) for one in (foba, forward)]
    both = sorted(set(foba) & set(forward))
    lower, higher = (sum(sign * (foba[k] - forward[k]) < 0 for k in both) for sign in (1, -1))
    weights = [np.mean([_n_weights(models[name][int(k)]) for k in both]) for name in (FOBA_GDT, FORWARD_GDT)]
    claims = [
        Claim(f"errors fall with the number of sensors ({home.name})",
              f"FoBa-gdt from {foba[min(foba)]:.3f} to {foba[max(foba)]:.3f}",
              foba[max(foba)] < foba[min(foba)] - 0.02),
        Claim(f"FoBa-gdt comes to its best error with fewer sensors than Forward-gdt ({home.name})",
              f"within a point of the better one's best with {need[0]} and {need[1]}; its error is lower with {lower} "
              f"and higher with {higher} of {len(both)} numbers of sensors", 0 < need[0] < need[1]),
        Claim(f"FoBa-gdt uses fewer weights than Forward-gdt with as many sensors ({home.name})",
              f"{weights[0]:.1f} and {weights[1]:.1f} in the mean", bool(weights[0] < 0.98 * weights[1])),
    ]  # fmt: skip
    if L1 in curves:
        penalised = dict(zip(*curves[L1], strict=True))
        better = sum(foba[k] <= penalised[k] for k in penalised if k in foba)
        measured = f"its error is not higher with {better} of {len(penalised)} numbers of sensors"
        claims.append(Claim(f"FoBa-gdt is better than L1-CRF ({home.name})", measured, better > len(penalised) / 2))
    return claims


def _n_weights(model: SparseTagger) -> int:
    return int(np.count_nonzero(model.coef_))


def _sensor_curves(train: Home, test: Home, most: int) -> tuple[Curves, dict[str, BySensors]]:
    models = {name: _by_weight(train, most, backward=name == FOBA_GDT) for name in (FOBA_GDT, FORWARD_GDT)}
    curves = {
        name: _curve({size: 1 - model.score(test.X, test.y) for size, model in found.items()})
        for name, found in models.items()
    }
    penalised = _l1(train, test, most)
    if penalised:
        curves[L1] = _curve(penalised)
    default = SparseTagger(most).fit(train.X, train.y)
    sizes = [size for size in default.path_.sizes if size]
    models[DEFAULT] = {size: default.at(size) for size in sizes}
    curves[DEFAULT] = _curve({size: 1 - model.score(test.X, test.y) for size, model in models[DEFAULT].items()})
    return curves, models


def _curve(errors: dict[int, float]) -> tuple[list[float], list[float]]:
    return [float(size) for size in sorted(errors)], [errors[size] for size in sorted(errors)]


def _by_weight(train: Home, most: int, *, backward: bool) -> BySensors:
    """For every number of sensors in use the largest model, until there are ``most``."""
    n_labels = len(np.unique(np.concatenate(train.y)))
    used: list[int] = []

    def watch(progress: Progress) -> bool:
        sensor = int(progress.move[1]) // n_labels  # type: ignore[arg-type]
        (used.append if progress.move[0] == "add" else used.remove)(sensor)
        return len(set(used)) > most

    options = {"ridge": 1e-4, "ridge_transitions": 1e-4, "exact_refits": False, "callback": watch}
    limit = min(120, train.X[0].shape[1] * n_labels)
    tagger = published_tagger(limit, backward=backward, **options).fit(train.X, train.y)
    models: BySensors = {}
    for size in tagger.path_.sizes:
        model = tagger.at(size)
        if 0 < len(model.support_) <= most:
            models[len(model.support_)] = model
    return models


def _l1(train: Home, test: Home, most: int) -> dict[int, float]:
    """Errors with the weights that an L1 penalty leaves, refitted; nothing where CRFsuite is not installed."""
    try:
        from benchmarks.rival_crf import Penalised
        from benchmarks.sensors import Refits
    except ImportError:
        return {}
    rival, refits = Penalised(train), Refits(train, test)
    return {k: refits.wrong(rival.weights(k) != 0).together for k in (2, 4, 6, 8, 10, 12, 15, 20) if k <= most}


def _curve_table(home: Home, curves: Curves) -> Table:
    sizes = sorted({int(size) for x, _ in curves.values() for size in x})
    rows = []
    for size in sizes:
        cells = [dict(zip(x, y, strict=True)).get(float(size)) for x, y in curves.values()]
        rows.append([str(size), *("" if cell is None else f"{cell:.3f}" for cell in cells)])
    return Table(f"Figure 2, top, {home.name}: test errors", ["sensors", *curves], rows)


def _activity_panel(home: Home, test: Home, models: dict[str, BySensors], most: int) -> Panel:
    """The bottom of Figure 2: errors by activity with the same number of sensors, activities as in the table."""
    labels, truth = np.unique(np.concatenate(home.y)), np.concatenate(test.y)
    places = [i for i, label in enumerate(labels) if np.any(truth == label)]
    curves: Curves = {}
    for name in (FOBA_GDT, FORWARD_GDT, DEFAULT):
        found = np.concatenate(models[name][max(k for k in models[name] if k <= most)].predict(test.X))
        errors = [float(np.mean(found[truth == labels[i]] != labels[i])) for i in places]
        curves[name] = ([float(i + 1) for i in places], errors)
    return Panel(f"{home.name}, at most {most} sensors", "activity, by its row in the table", "test error", curves)


def _activities(home: Home, test: Home, models: BySensors, sizes: tuple[int, ...]) -> Table:
    """Table 1 and the bottom of Figure 2: how often each activity occurs, and how often it is mistaken."""
    labels = np.unique(np.concatenate(home.y))
    truth = np.concatenate(test.y)
    chosen = {size: models[max(one for one in models if one <= size)] for size in sizes if min(models) <= size}
    predicted = {size: np.concatenate(model.predict(test.X)) for size, model in chosen.items()}
    rows = []
    for i, label in enumerate(labels):
        here = truth == label
        errors = [f"{np.mean(found[here] != label):.3f}" if here.any() else "-" for found in predicted.values()]
        printed = home.name == "made up" and len(labels) == len(TABLE_1)
        name, published = (ACTIVITIES[i], f"{TABLE_1[i]:g}K") if printed else (str(label), "")
        rows.append([name, published, str(sum(int(np.sum(one == label)) for one in home.y)), *errors])
    header = [
        "activity",
        "Table 1, positions to fit",
        "our positions",
        *(f"error, {len(m.support_)} sensors" for m in chosen.values()),
    ]
    sensors = "; ".join(f"{len(m.support_)}: {', '.join(map(str, m.sensors_.tolist()))}" for m in chosen.values())
    return Table(f"Figure 2, bottom, {home.name} (sensors chosen: {sensors})", header, rows)


ITEMS = {
    "liu-figure4": Item("Liu, Fujimaki and Ye (2014), Figure 4 and Table 3, bottom: synthetic chains", figure4),
    "liu-figure2": Item("Liu, Fujimaki and Ye (2014), Figure 2, Tables 1 and 2: sensors of activities", figure2),
}
