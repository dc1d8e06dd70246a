"""A fitted model as one HTML page, for readers without Python."""

from pauca.report.page import write_report

__all__ = ["write_report"]
