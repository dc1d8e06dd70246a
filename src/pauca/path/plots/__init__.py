"""Pictures of a path."""

from pauca.path.plots.figure import plot_path

__all__ = ["plot_path"]
