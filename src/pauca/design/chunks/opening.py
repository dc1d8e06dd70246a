"""What can be read in chunks: recognised by the names of modules, so that nothing is imported for it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pauca.design.chunks.base import DEFAULT_MEMORY, ChunkError, Chunks, check_chunk
from pauca.design.chunks.sources import ArrayChunks, ChainedChunks, FunctionChunks, as_block, check_names, names_of
from pauca.wording import quoted

# Memory maps are read in chunks if they are larger than this: below it, all of them may as well be held.
MAPPED_ABOVE = 1 << 28

UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def as_chunks(X: Any) -> Chunks | None:
    """A table as chunks of rows, if it is of a kind that is not held in memory; None for all others."""
    if isinstance(X, Chunks):
        return X
    if isinstance(X, np.memmap):
        return ArrayChunks(X) if X.ndim == 2 and X.nbytes > MAPPED_ABOVE else None
    home = type(X).__module__.partition(".")[0]
    if is_dask(X):
        from pauca.design.chunks.cluster import DaskChunks

        return DaskChunks.of(X)
    if home in {"zarr", "h5py"} and hasattr(X, "shape"):
        return ArrayChunks(X)
    if is_lazy_frame(X):
        from pauca.design.chunks.parquet import FrameChunks

        return FrameChunks(X)
    return None


def is_dask(X: Any) -> bool:
    """Whether this is an array, series or frame of Dask."""
    return type(X).__module__.partition(".")[0] in {"dask", "dask_expr"}


def scan(
    source: Any,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    memory: int | str = DEFAULT_MEMORY,
) -> Any:
    """Open a table that is larger than memory, to be read in chunks of rows.

    Parameters
    ----------
    source : str, path, list of them, callable, or array
        Files: Parquet (``"rows/*.parquet"``, a folder, or a list), ``.npy`` of two dimensions, or a Zarr folder;
        several files are one table, one below the other, in the order of their names. A callable without arguments
        returns the chunks of one pass over the rows (arrays or frames), or pairs of a chunk and its targets. An array
        is one that can be sliced by rows, such as a memory map, or a lazy frame of polars.
    target : str or None, default=None
        The column to predict, of tables whose columns have names. It is read into memory at once.
    columns : list of str or None, default=None
        The columns to choose from; None: all but the target.
    memory : int or str, default="512MB"
        Bytes that reading may take, such as ``"2GB"``.

    Returns
    -------
    X : Chunks
        To be given to ``fit`` and ``predict`` as any other table. ``X.passes`` counts how often it was read.
    y : ndarray of shape (n_samples,)
        Only where there is a ``target``, or where the callable returns pairs.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import pauca
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "X.npy")
    ...     np.save(path, rng.standard_normal((1000, 20)))
    ...     X = pauca.scan(path)
    ...     y = 2 * np.load(path)[:, 3] + rng.standard_normal(1000)
    ...     model = pauca.SparseRegressor(k=1).fit(X, y)
    >>> model.support_.tolist(), X.passes
    ([3], 1)
    """
    limit = parse_bytes(memory)
    if callable(source):
        return _from_function(source, target, limit)
    if isinstance(source, Iterator):
        raise TypeError("An iterator can be read only once; give scan a function that makes it, such as lambda: ....")
    paths = _paths_of(source)
    if paths and _kind(paths[0]) == "parquet":
        return _from_frame(paths, target, columns, limit)
    if is_lazy_frame(source):
        return _from_frame(source, target, columns, limit)
    if target is not None or columns is not None:
        raise ValueError("target and columns are names; the columns of this table have none. Give y to fit instead.")
    if paths:
        parts = [_array(path, limit) for path in paths]
        return parts[0] if len(parts) == 1 else ChainedChunks(parts, limit)
    chunks = as_chunks(source) or (ArrayChunks(source) if hasattr(source, "shape") else None)
    if chunks is None:
        raise TypeError(f"scan reads files, arrays, lazy frames and functions, not {type(source).__name__}.")
    chunks.memory = limit
    return chunks


def parse_bytes(memory: int | str) -> int:
    """A number of bytes, such as 4_000_000 or "4GB"."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", memory, re.IGNORECASE)
        if found is None:
            raise ValueError(f"memory must be a number of bytes such as '4GB' or '500MB'; got {memory!r}.")
        memory = int(float(found[1]) * (1 << UNITS[found[2].upper()]))
    if isinstance(memory, bool) or memory < 1 << 20:
        raise ValueError(f"memory must be at least 1 MB; got {memory!r}.")
    return int(memory)


def is_lazy_frame(X: Any) -> bool:
    """Whether this is a lazy frame of polars."""
    return type(X).__module__.partition(".")[0] == "polars" and not hasattr(X, "shape")


def _from_frame(source: Any, target: str | None, columns: Sequence[str] | None, memory: int) -> Any:
    from pauca.design.chunks.parquet import open_files, open_frame

    how = (target, columns, memory)
    return open_files(source, *how) if isinstance(source, list) else open_frame(source, *how)


def _paths_of(source: Any) -> list[str]:
    """The files that a path, a pattern or a list of them names; nothing for anything else."""
    if isinstance(source, str | os.PathLike):
        source = [source]
    if not isinstance(source, list | tuple) or not all(isinstance(one, str | os.PathLike) for one in source):
        return []
    paths = [path for one in source for path in _paths(one)]
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ChunkError(f"Files of several kinds cannot be one table: {', '.join(sorted(kinds))}.")
    return paths


def _paths(source: str | os.PathLike[str]) -> list[str]:
    path = os.fspath(source)
    if os.path.isdir(path) and not _is_zarr(path):
        path = os.path.join(glob.escape(path), "*.parquet")
    found = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
    if not found or not all(os.path.exists(one) for one in found):
        raise FileNotFoundError(f"There is no file {source!s}.")
    return found


def _is_zarr(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zarray"))


def _kind(path: str) -> str:
    if _is_zarr(path):
        return "zarr"
    end = os.path.splitext(path)[1].lower()
    known = {".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".zarr": "zarr"}
    if end not in known:
        raise ChunkError(f"{path}: scan reads files that end in {quoted(sorted(known))}.")
    return known[end]


def _array(path: str, memory: int) -> ArrayChunks:
    if _kind(path) == "zarr":
        import zarr

        return ArrayChunks(zarr.open_array(path, mode="r"), memory=memory)
    try:
        return ArrayChunks(np.load(path, mmap_mode="r", allow_pickle=False), memory=memory)
    except (ValueError, EOFError) as error:
        if isinstance(error, ChunkError):
            raise
        raise ChunkError(f"{path} cannot be read as an array of numbers: it is damaged, or no .npy file.") from error


def _from_function(function: Callable[[], Iterable[Any]], target: str | None, memory: int) -> Any:
    """Count the rows of a function's chunks, and gather their targets, in a pass of its own."""
    if target is not None:
        raise ValueError("Of a function's chunks the target has no name: return pairs of a chunk and its targets.")
    n_rows, targets, first, names = 0, [], None, None
    for number, item in enumerate(function()):
        chunk, y = item if isinstance(item, tuple) else (item, None)
        block = as_block(chunk)
        first = block if first is None else first
        check_chunk(block, number, first.shape[-1] if first.ndim == 2 else 0, first.dtype)
        names = names_of(chunk) if number == 0 else names
        check_names(chunk, number, names)
        n_rows += len(block)
        if y is not None:
            targets.append(np.asarray(y))
            if len(targets[-1]) != len(block):
                raise ChunkError(f"Chunk {number} of X has {len(block)} rows and {len(targets[-1])} targets.")
    if first is None:
        raise ChunkError("The function returned no chunks.")
    chunks = FunctionChunks(function, n_rows, first, names=names, memory=memory)
    chunks.passes += 1
    return (chunks, np.concatenate(targets)) if targets else chunks
