"""Models as sheets of points that can be added up by hand."""

from pauca.scoresheets.make_sheet import check_cuts, make_sheet
from pauca.scoresheets.missing_values import of_raw_table
from pauca.scoresheets.rows import SheetRow
from pauca.scoresheets.sheet import ScoreSheet

__all__ = ["ScoreSheet", "SheetRow", "check_cuts", "make_sheet", "of_raw_table"]
