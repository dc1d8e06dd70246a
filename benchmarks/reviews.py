"""Film reviews with star ratings (Maas et al. 2011) as sparse matrices of tf-idf weights, prepared once and kept."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.problems import Problem

ARCHIVE = "text/aclImdb_labelled.tar.xz"

# The longest n-grams of each kind of columns.
WORDS, NGRAMS = 1, 3
KEPT = Path(gettempdir()) / "pauca-benchmarks"


def reviews(data: Path, longest: int, part: str = "train") -> Problem:
    """Tf-idf weights of all n-grams up to the ``longest``, rows of norm one, and ratings from 1 to 10.

    The rows are in random order, as those of a stream would be. The columns are those of the training reviews.
    """
    folder = prepared(data, longest)
    X = sparse.csr_matrix(tuple(np.load(folder / f"{part}_{name}.npy") for name in ("data", "indices", "indptr")))
    X.resize(X.shape[0], int(np.load(folder / "width.npy")))
    return Problem(X, np.load(folder / f"{part}_y.npy"))


def prepared(data: Path, longest: int) -> Path:
    """The folder with the arrays of both parts, made where it is not there yet; plain arrays load without a copy."""
    folder = KEPT / f"reviews-{longest}"
    if not (folder / "width.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        vectorizer = TfidfVectorizer(ngram_range=(1, longest))
        for part in ("train", "test"):
            documents, ratings = zip(*texts(data / ARCHIVE, part), strict=True)
            X = vectorizer.fit_transform(documents) if part == "train" else vectorizer.transform(documents)
            order = np.random.default_rng(0).permutation(len(ratings))
            X = X[order]
            arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": np.array(ratings)[order]}
            for name, array in arrays.items():
                np.save(folder / f"{part}_{name}.npy", array)
        np.save(folder / "width.npy", X.shape[1])
    return folder


def texts(archive: Path, part: str) -> Iterator[tuple[str, float]]:
    """Texts and ratings; a file is called ``aclImdb/train/pos/NUMBER_RATING.txt``."""
    if not archive.exists():
        raise SystemExit(f"{archive} is missing: --data takes a folder that holds it.")
    with tarfile.open(archive) as files:
        for entry in files:
            name = Path(entry.name)
            if entry.isfile() and name.parts[1:2] == (part,) and name.parts[2] in {"pos", "neg"}:
                text = files.extractfile(entry)
                assert text is not None
                yield text.read().decode(), float(name.stem.split("_")[1])
