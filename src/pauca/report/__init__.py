"""A fitted model as one HTML page, for readers without Python."""

from pauca.report.model_data import Findings
from pauca.report.page import check_page_name, check_page_path, write_report

__all__ = ["Findings", "check_page_name", "check_page_path", "write_report"]
