"""Model files changed at random: they load, or raise ``ModelFileError``, in little time and memory."""

from __future__ import annotations

import copy
import json
import os
import resource
import tempfile
import time
import warnings
from functools import cache

import numpy as np

import pauca
from pauca.export.model_file import _bytes, _checksum

MOST_SECONDS = 1.0
MOST_BYTES = 100 << 20


@cache
def model_files():
    """Files of models of every kind, as text."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = X[:, 0] - X[:, 2] + 0.3 * rng.standard_normal(40)
    names = ["age", 'the "bmi"', "größe", "x\n4"]
    frame = __import__("pandas").DataFrame(X, columns=names)
    survival = np.array([(value > -1, np.exp(-value)) for value in y], dtype=[("event", bool), ("time", float)])
    sequences = [X[i : i + 5] for i in range(0, 40, 5)], [(y[i : i + 5] > 0).tolist() for i in range(0, 40, 5)]
    models = [
        pauca.SparseRegressor(k=2).fit(frame, y),
        pauca.SparseRegressor(cv=2).fit(frame, y),
        pauca.SparseRegressor(k=2, loss="poisson", bounds=(0, None)).fit(X, np.floor(np.exp(y))),
        pauca.SparseRegressor(k=1, feature_groups=list("aabb"), costs={"a": 1, "b": 2}, budget=5).fit(X, np.c_[y, -y]),
        pauca.SparseClassifier(k=2).fit(frame, np.where(y > 0, "yes", "no")),
        pauca.SparseClassifier(k=2, loss="hinge").fit(X, np.digitize(y, [-1, 1])),
        pauca.SparseCox(k=2).fit(frame, survival),
        pauca.SparseOrdinalClassifier(k=2).fit(X, np.digitize(y, [-1, 1])),
        pauca.L1Regressor(radius=1.0).fit(frame, y),
        pauca.L1Classifier(cv=2).fit(X, y > 0),
        pauca.StreamRegressor(k=2).fit(X, y),
        pauca.StreamClassifier(k=2).fit(frame, y > 0),
        pauca.SparsePrecision(k=2).fit(frame),
        pauca.SparseTagger(k=1).fit(*sequences),
        pauca.SparseTagger(k=2, unit="weight", ridge=0.1).fit(*sequences),
        pauca.select(
            lambda w: float(np.mean((y - X @ w) ** 2)), 2, gradient=lambda w: X.T @ (X @ w - y) / 20, n_coords=4
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        found = []
        for model in models:
            model.save(path)
            with open(path, "rb") as file:
                found.append(file.read())
    return found


VALUES = [
    *(0, -1, 1, 2, 10**6, 10**30, -(10**30), 1e308, -1e308, 5e-324, 0.5, "", "a", "nan", "inf", None, True, False),
    *([], {}, [[]], [1, 2, 3], {"float": "inf"}, {"float": "nan"}, {"dict": []}, "\x1b[2J", "\ud800", "x" * 10_000),
    *([0] * 100_000, [[0] * 300 for _ in range(300)]),
]


def mutated(content, rng):
    """A file with some bytes changed, or with some values changed and a checksum that is right again."""
    if rng.random() < 0.3:
        return _changed_bytes(content, rng)
    document = json.loads(content)
    for _ in range(int(rng.integers(1, 4))):
        _change(document, rng)
    document.pop("checksum", None)
    try:
        return _bytes({**document, "checksum": _checksum(document)})
    except (ValueError, TypeError, UnicodeError, RecursionError):
        return json.dumps(document).encode("utf-8", "replace")


def _changed_bytes(content, rng):
    changed = bytearray(content)
    if rng.random() < 0.3:
        return bytes(changed[: int(rng.integers(len(changed)))])
    for _ in range(int(rng.integers(1, 6))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    if rng.random() < 0.1:
        place = int(rng.integers(len(changed)))
        changed[place:place] = rng.choice([b"[" * 50_000, b"0" * 100_000, b'{"a":' * 20_000, b"9" * 5000])
    return bytes(changed)


def _change(document, rng):
    """Change one value at a random place: replace, remove, repeat or swap it."""
    places = list(_places(document))
    holder, key = places[int(rng.integers(len(places)))]
    draw = rng.random()
    value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])  # it may be changed in its turn
    if draw < 0.6:
        holder[key] = value
    elif draw < 0.75:
        del holder[key]
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]) if draw < 0.9 else value)
    else:
        holder[rng.choice(["more", "k", "coef", "models", "class", str(key)])] = copy.deepcopy(holder[key])


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def trial(seed):
    """Load one file, and use the model if it loads."""
    rng = np.random.default_rng([7, seed])
    files = model_files()
    number = int(rng.integers(len(files)))
    content = mutated(files[number], rng)
    finds = []
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with tempfile.NamedTemporaryFile(suffix=".json") as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        file.write(content)
        file.flush()
        try:
            model = pauca.load(file.name)
        except pauca.ModelFileError:
            model = None
        except Exception as error:
            finds.append(("load", f"file {number}: {type(error).__name__}: {error}"[:300]))
            model = None
    seconds = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if seconds > MOST_SECONDS:
        finds.append(("slow", f"file {number}: {seconds:.1f} s"))
    if grown > MOST_BYTES:
        finds.append(("memory", f"file {number}: {grown >> 20} MB"))
    if model is not None:
        _use(model, number, finds)
    return ("refused" if model is None else "loaded"), finds


def _use(model, number, finds):
    """What a valid file holds can be shown, saved and used."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, use in (
            ("summary", lambda: model.summary(model.sizes[-1]) if isinstance(model, pauca.Path) else model.summary()),
            ("save", lambda: model.save(os.path.join(folder, "again.json"))),
        ):
            try:
                use()
            except (pauca.ModelFileError, ValueError) as error:
                if type(error) not in (pauca.ModelFileError, ValueError):
                    finds.append((name, f"file {number}: {type(error).__name__}: {error}"[:300]))
            except Exception as error:
                finds.append((name, f"file {number}: {type(error).__name__}: {error}"[:300]))
