"""A fitted model as one page for people without Python."""

from pauca.report.page import write_report

__all__ = ["write_report"]
