"""A model as ONNX through skl2onnx, alone or in a scikit-learn pipeline. It computes in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.export.formula import Formula, formula_of
from pauca.export.model_file import KINDS


def register() -> None:
    """Register the converters of pauca's estimators with skl2onnx, so that it can convert pipelines.

    Call it once before ``skl2onnx.to_onnx(pipeline, ...)``. ``model.to_onnx()`` calls it itself.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    skl2onnx = _skl2onnx()
    for kind in KINDS.values():
        if hasattr(kind.estimator, "to_onnx"):
            classifies = any(hasattr(kind.estimator, name) for name in ("decision_function", "predict_proba"))
            skl2onnx.update_registered_converter(
                kind.estimator,
                f"Pauca{kind.name}",
                _declare_classes if classifies else _declare_numbers,
                _convert,
                options={"zipmap": [True, False, "columns"]} if classifies else None,
            )


def to_onnx(estimator: Any) -> Any:
    """The model as an ``onnx.ModelProto`` with one input X in double precision."""
    register()
    skl2onnx = _skl2onnx()
    from skl2onnx.common.data_types import DoubleTensorType

    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "classes_") else None
    types = [("X", DoubleTensorType([None, estimator.path_.n_features]))]
    return skl2onnx.convert_sklearn(estimator, initial_types=types, options=options)


def _skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx; install it with: pip install skl2onnx onnxruntime") from error
    return skl2onnx


class _Graph:
    """Adds nodes and constants to the graph; each method returns the name of the new output."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope = scope
        self._container = container

    def node(self, kind: str, *inputs: str, into: str | None = None, **attributes: Any) -> str:
        output = into or self._scope.get_unique_variable_name(f"pauca_{kind.lower()}")
        name = self._scope.get_unique_operator_name(f"pauca_{kind}")
        self._container.add_node(kind, list(inputs), output, name=name, **attributes)
        return output

    def constant(self, array: np.ndarray) -> str:
        from onnx import helper

        name = self._scope.get_unique_variable_name("pauca_constant")
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        values = [text.encode("utf-8") for text in array.tolist()] if array.dtype.kind == "O" else array.ravel()
        self._container.add_initializer(name, kind, array.shape, values)
        return name


def _declare_numbers(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(_float_type(operator)([rows, len(formula_of(operator.raw_operator).intercept)]))


def _declare_classes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    formula = formula_of(operator.raw_operator)
    if formula.thresholds is not None:
        raise ValueError("Ordered classes have no ONNX form yet; use to_python() or to_sql().")
    rows = operator.inputs[0].get_first_dimension()
    labels = StringTensorType if _labels(formula).dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(labels([rows]))
    width = len(formula.intercept) if formula.link is None else len(formula.classes or [])
    operator.outputs[1].set_type(_float_type(operator)([rows, width]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the formula to the graph."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    formula = formula_of(operator.raw_operator)
    graph = _Graph(scope, container)
    scores = _scores(graph, formula, operator.inputs[0].full_name)
    output_values = scores
    if formula.link == "exp":
        output_values = graph.node("Exp", scores)
    if formula.link == "inverse":
        output_values = graph.node("Reciprocal", graph.node("Relu", scores))
    if formula.link == "softmax":
        output_values = graph.node("Softmax", scores, axis=1)
    if formula.link == "log_loss":
        upper = graph.node("Sigmoid", scores)
        output_values = graph.node("Concat", graph.node("Sub", graph.constant(np.ones(1)), upper), upper, axis=1)
    if formula.classes is not None:
        labels = graph.constant(_labels(formula))
        graph.node("Gather", labels, _class_indices(graph, formula, scores), into=operator.outputs[0].full_name, axis=0)
    precise = isinstance(operator.inputs[0].type, DoubleTensorType)
    kind = TensorProto.DOUBLE if precise else TensorProto.FLOAT
    graph.node("Cast", output_values, into=operator.outputs[-1].full_name, to=kind)


def _scores(graph: _Graph, formula: Formula, rows: str) -> str:
    """The linear scores, shape (n, C), in double precision whatever the type of the input."""
    from onnx import TensorProto

    chosen = graph.node("Gather", rows, graph.constant(np.array(formula.columns, dtype=np.int64)), axis=1)
    numbers = graph.node("Cast", chosen, to=TensorProto.DOUBLE)
    products = graph.node("MatMul", numbers, graph.constant(formula.coef.T.astype(np.float64)))
    return graph.node("Add", products, graph.constant(formula.intercept.astype(np.float64)))


def _class_indices(graph: _Graph, formula: Formula, scores: str) -> str:
    """Indices of the predicted classes, shape (n,)."""
    from onnx import TensorProto

    if len(formula.intercept) > 1:
        return graph.node("ArgMax", scores, axis=1, keepdims=0)
    positive = graph.node("Greater", scores, graph.constant(np.zeros(1)))
    flat = graph.node("Reshape", positive, graph.constant(np.array([-1], dtype=np.int64)))
    return graph.node("Cast", flat, to=TensorProto.INT64)


def _labels(formula: Formula) -> np.ndarray:
    """The classes as ONNX has them: strings or integers, which include booleans."""
    classes = formula.classes or []
    if all(isinstance(label, str) for label in classes):
        return np.array(classes, dtype=object)
    if all(not isinstance(label, str) and float(label).is_integer() for label in classes):
        return np.array(classes, dtype=np.int64)
    raise ValueError(f"ONNX only has classes that are strings or integers; got {classes!r}.")


def _float_type(operator: Any) -> Any:
    """The type of the output: double for double inputs, otherwise float."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return DoubleTensorType if isinstance(operator.inputs[0].type, DoubleTensorType) else FloatTensorType
