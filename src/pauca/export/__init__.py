"""Taking a model away: plain files that need pauca to be read, and SQL, Python and ONNX that do not."""

from pauca.export.errors import ModelFileError
from pauca.export.model_file import load, save
from pauca.export.registry import register_kind, register_part

__all__ = ["ModelFileError", "load", "register_kind", "register_part", "save"]
