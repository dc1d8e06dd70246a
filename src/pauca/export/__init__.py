"""Exporting a model: model files for ``pauca.load``, and SQL, Python and ONNX, which run without pauca."""

from pauca.export import onnx
from pauca.export.json_files import ModelFileError
from pauca.export.json_values import register_class
from pauca.export.model_file import load as load
from pauca.export.model_file import register_estimator, save

__all__ = ["ModelFileError", "onnx", "register_class", "register_estimator", "save"]
