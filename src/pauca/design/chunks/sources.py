"""Tables in files, and anything else that can be read in chunks of rows on this machine."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.design.chunks.base import DEFAULT_MEMORY, ChunkError, Chunks, read_ahead
from pauca.wording import quoted


class FileStamps:
    """Sizes and times of files, and of all files in folders, to notice when one changes or vanishes between passes."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._stamps = {path: self._stamp(path) for path in paths}

    @classmethod
    def _stamp(cls, path: str) -> Any:
        try:
            if os.path.isdir(path):
                return {entry.name: cls._stamp(entry.path) for entry in os.scandir(path)}
            found = os.stat(path)
        except OSError as error:
            raise ChunkError(f"{path} cannot be read any more: {error.strerror}. Nothing was fitted.") from error
        return found.st_size, found.st_mtime_ns

    def check(self) -> None:
        """Raise an error if a file is not as it was."""
        for path, before in self._stamps.items():
            if self._stamp(path) != before:
                raise ChunkError(f"{path} changed while it was read. Nothing was fitted; open it again.")


class ArrayChunks(Chunks):
    """An array that can be sliced by rows: a memory map, a ``.npy`` file, a Zarr array, a dataset of HDF5."""

    def __init__(self, array: Any, names: Sequence[str] | None = None, memory: int = DEFAULT_MEMORY) -> None:
        if len(array.shape) != 2:
            raise ChunkError(f"X must have two dimensions; this array has {len(array.shape)}.")
        super().__init__(array.shape[0], array.shape[1], array.dtype, names, memory)
        self._array = array
        self._stamps = FileStamps(_paths_of(array))

    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        self._stamps.check()
        blocks = self._blocks(features)
        # The system reads ahead of a memory map.
        return blocks if isinstance(self._array, np.ndarray) else read_ahead(blocks)

    def _blocks(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        step = self._step()
        for start in range(0, self.n_rows, step):
            block = np.asarray(self._array[start : start + step])
            yield block if features is None else block[:, features]
            _release(self._array)

    def _step(self) -> int:
        """Rows of a chunk: whole chunks of the store, where it has such."""
        step, stored = self.rows_per_chunk, getattr(self._array, "chunks", None)
        own = int(stored[0]) if isinstance(stored, tuple) and stored else 1
        return step // own * own if step >= own else step


def _paths_of(array: Any) -> list[str]:
    """The file of a memory map or the folder of a Zarr array on this machine; nothing where that is not known."""
    place = array.filename if isinstance(array, np.memmap) else getattr(getattr(array, "store", None), "root", None)
    return [str(place)] if isinstance(place, str | os.PathLike) and os.path.exists(place) else []


def _release(array: Any) -> None:
    """Give back the memory of the pages of a read-only memory map that were read."""
    if not isinstance(array, np.memmap) or array.mode != "r":
        return
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


class FunctionChunks(Chunks):
    """Chunks that a function makes: it is called for every pass, and returns arrays or frames one after the other."""

    def __init__(self, function: Callable[[], Iterable[Any]], n_rows: int, first: np.ndarray, **how: Any) -> None:
        super().__init__(n_rows, first.shape[1], first.dtype, **how)
        self._function = function

    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        return read_ahead(self._blocks(features))

    def _blocks(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        step = self.rows_per_chunk
        for number, item in enumerate(self._function()):
            chunk = item[0] if isinstance(item, tuple) else item
            check_names(chunk, number, self.names)
            block = as_block(chunk)
            # A large chunk is worked on in pieces, as its conversion takes memory too.
            for start in range(0, max(1, len(block)), step):
                piece = block[start : start + step]
                yield piece if features is None or not isinstance(piece, np.ndarray) else piece[:, features]


def names_of(chunk: Any) -> list[str] | None:
    """The names of the columns of a frame."""
    return [str(name) for name in getattr(chunk, "columns", ())] or None


def check_names(chunk: Any, number: int, names: list[str] | None) -> None:
    """Raise an error for a frame whose columns are not those of the first one, in their order."""
    found = names_of(chunk)
    if found != names:
        raise ChunkError(
            f"Chunk {number} of X has the columns {quoted(found or [])}, and the first one {quoted(names or [])}."
        )


def as_block(chunk: Any) -> Any:
    """A chunk as an array; what is none is named by the check of chunks."""
    return chunk if issparse(chunk) else np.asarray(chunk)


class ChainedChunks(Chunks):
    """Several tables with the same columns, one below the other."""

    def __init__(self, parts: Sequence[Chunks], memory: int = DEFAULT_MEMORY) -> None:
        first = parts[0]
        for number, part in enumerate(parts):
            for what, one, other in (
                ("columns", part.n_features, first.n_features),
                ("names of columns", part.names, first.names),
                ("type", str(part.dtype), str(first.dtype)),
            ):
                if one != other:
                    raise ChunkError(f"Part {number} of X has other {what} than the first: {one}, not {other}.")
        super().__init__(sum(part.n_rows for part in parts), first.n_features, first.dtype, first.names, memory)
        self._parts = list(parts)

    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        for part in self._parts:
            for _, block in part._checked(features):
                yield block
