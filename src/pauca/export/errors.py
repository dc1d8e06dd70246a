"""What goes wrong between a model and its file."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A model that cannot be written to a file, or a file that is not a whole and sound model.

    The message says what is wrong, and where in the file: ``model.json: models[3].coef: ...``.
    """
