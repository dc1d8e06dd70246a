"""Every table and figure of the five papers once more: ``python -m benchmarks.papers --data FOLDER``."""
