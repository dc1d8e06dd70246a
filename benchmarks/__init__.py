"""Benchmarks of pauca against scikit-learn and abess; run them with ``python -m benchmarks``."""
