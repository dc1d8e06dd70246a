"""Refusing work that the machine cannot hold, before it begins."""

from __future__ import annotations

import os


def require_memory(needed: int, purpose: str, advice: str = "Use a method that grows, or fewer columns.") -> None:
    """Raise ``MemoryError`` with a sentence if ``needed`` bytes exceed the machine's memory, where that can be told."""
    try:
        there_is = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if needed > there_is:
        raise MemoryError(
            f"{purpose} takes about {needed / 1e9:.0f} GB of memory, and there are {there_is / 1e9:.0f} GB. {advice}"
        )
