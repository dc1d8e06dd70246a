"""What goes wrong between a model and its file."""

from __future__ import annotations

import contextlib
import os
import secrets


class ModelFileError(ValueError):
    """A model that cannot be written to a file, or a file that is not a whole and sound model.

    The message says what is wrong, and where in the file: ``model.json: models[3].coef: ...``.
    """


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file such that whoever looks sees the old one or the new one, whatever interrupts the writing."""
    target = os.path.realpath(path)  # the file a link points to is replaced, not the link
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        # Not tempfile: it makes files that nobody else may read, where this one is to be read like any other.
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Let the new name survive a power cut too, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
