"""The one kind of warning the library gives."""

from __future__ import annotations


class PaucaWarning(UserWarning):
    """Something about the data that a person would want to know, and that did not stop the fit."""
