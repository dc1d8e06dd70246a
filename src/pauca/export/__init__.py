"""Taking a model away: plain files that need pauca to be read, and SQL, Python and ONNX that do not."""

from pauca.export import onnx
from pauca.export.files import ModelFileError
from pauca.export.model_file import save
from pauca.export.registry import register_kind, register_part

__all__ = ["ModelFileError", "onnx", "register_kind", "register_part", "save"]
