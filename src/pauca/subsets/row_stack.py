"""Rows of one length, stacked as arrays that grow at the end and share their memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Rows for which a new buffer has room beyond those it starts with.
SPARE_ROWS = 16


@dataclass(eq=False)
class _Buffer:
    """Memory for rows, of which the first ``used`` hold some."""

    memory: np.ndarray
    used: int


class RowStack:
    """A stack of rows, shape (k, d), that never changes: a row more makes another stack.

    The other stack is in the same memory, behind this one's last row, unless another row is there already.
    """

    def __init__(self, buffer: _Buffer, size: int, own_bytes: int) -> None:
        self._buffer = buffer
        self.array = buffer.memory[:size]
        self.own_bytes = own_bytes
        """Bytes that were taken for this stack and not for one before it."""

    @classmethod
    def empty(cls, width: int) -> RowStack:
        """No rows yet."""
        return cls(_Buffer(np.empty((SPARE_ROWS, width)), 0), 0, 8 * SPARE_ROWS * width)

    @classmethod
    def holding(cls, rows: np.ndarray) -> RowStack:
        """The rows of an array, which is shared."""
        return cls(_Buffer(rows, len(rows)), len(rows), rows.nbytes)

    def appended(self, row: np.ndarray) -> RowStack:
        """With a row more."""
        size, own = len(self.array), 0
        buffer = self._buffer
        if buffer.used > size or size == len(buffer.memory):
            buffer = _Buffer(np.empty((2 * size + SPARE_ROWS, len(row))), size)
            buffer.memory[:size], own = self.array, buffer.memory.nbytes
        buffer.memory[size] = row
        buffer.used = size + 1
        return RowStack(buffer, size + 1, own)

    def without(self, position: int, *, in_place: bool) -> RowStack:
        """Without one of the rows; ``in_place`` where this stack is not used again."""
        size, rows = len(self.array) - 1, self.array
        if in_place and self._buffer.used == size + 1:
            for later in range(position, size):
                rows[later] = rows[later + 1]
            self._buffer.used = size
            return RowStack(self._buffer, size, self.own_bytes)
        memory = np.empty((size + SPARE_ROWS, rows.shape[1]))
        memory[:position], memory[position:size] = rows[:position], rows[position + 1 :]
        return RowStack(_Buffer(memory, size), size, memory.nbytes)
