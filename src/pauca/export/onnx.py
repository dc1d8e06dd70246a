"""A model as ONNX, through skl2onnx, alone or inside a scikit-learn pipeline. All is reckoned in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.export.formula import Formula, formula_of
from pauca.export.registry import KINDS


def register() -> None:
    """Tell skl2onnx how to convert pauca's estimators, so that it can convert pipelines that hold them.

    Call it once before ``skl2onnx.to_onnx(pipeline, ...)``. ``model.to_onnx()`` does so by itself.
    """
    skl2onnx = _skl2onnx()
    for kind in KINDS.values():
        if hasattr(kind.estimator, "to_onnx"):
            classifies = hasattr(kind.estimator, "decision_function")
            skl2onnx.update_registered_converter(
                kind.estimator,
                f"Pauca{kind.name}",
                _declare_classes if classifies else _declare_numbers,
                _convert,
                options={"zipmap": [True, False, "columns"]} if classifies else None,
            )


def to_onnx(estimator: Any) -> Any:
    """The model as an ``onnx.ModelProto`` with one input, X, of double precision."""
    register()
    skl2onnx = _skl2onnx()
    from skl2onnx.common.data_types import DoubleTensorType

    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "classes_") else None
    types = [("X", DoubleTensorType([None, estimator.n_features_in_]))]
    return skl2onnx.convert_sklearn(estimator, initial_types=types, options=options)


def _skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install skl2onnx, or pauca with its extra [onnx]") from error
    return skl2onnx


class _Graph:
    """Nodes put one after the other; each is told by its type, inputs and attributes, and answers its output's name."""

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
    rows = operator.inputs[0].get_first_dimension()
    labels = StringTensorType if _labels(formula).dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(labels([rows]))
    width = len(formula.intercept) if formula.link is None else len(formula.classes or [])
    operator.outputs[1].set_type(_float_type(operator)([rows, width]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Put the formula into the graph."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    formula = formula_of(operator.raw_operator)
    graph = _Graph(scope, container)
    scores = _scores(graph, formula, operator.inputs[0].full_name)
    made = scores
    if formula.link == "exp":
        made = graph.node("Exp", scores)
    if formula.link == "softmax":
        made = graph.node("Softmax", scores, axis=1)
    if formula.link == "log_loss":
        upper = graph.node("Sigmoid", scores)
        made = graph.node("Concat", graph.node("Sub", graph.constant(np.ones(1)), upper), upper, axis=1)
    if formula.classes is not None:
        labels = graph.constant(_labels(formula))
        graph.node("Gather", labels, _places(graph, formula, scores), into=operator.outputs[0].full_name, axis=0)
    precise = isinstance(operator.inputs[0].type, DoubleTensorType)
    kind = TensorProto.DOUBLE if precise else TensorProto.FLOAT
    graph.node("Cast", made, into=operator.outputs[-1].full_name, to=kind)


def _scores(graph: _Graph, formula: Formula, rows: str) -> str:
    """The linear scores, shape (n, C); whatever the input's type, they are summed in double precision."""
    from onnx import TensorProto

    chosen = graph.node("Gather", rows, graph.constant(np.array(formula.columns, dtype=np.int64)), axis=1)
    numbers = graph.node("Cast", chosen, to=TensorProto.DOUBLE)
    products = graph.node("MatMul", numbers, graph.constant(formula.coef.T.astype(np.float64)))
    return graph.node("Add", products, graph.constant(formula.intercept.astype(np.float64)))


def _places(graph: _Graph, formula: Formula, scores: str) -> str:
    """Places of the predicted classes among all classes, shape (n,)."""
    from onnx import TensorProto

    if len(formula.intercept) > 1:
        return graph.node("ArgMax", scores, axis=1, keepdims=0)
    positive = graph.node("Greater", scores, graph.constant(np.zeros(1)))
    flat = graph.node("Reshape", positive, graph.constant(np.array([-1], dtype=np.int64)))
    return graph.node("Cast", flat, to=TensorProto.INT64)


def _labels(formula: Formula) -> np.ndarray:
    """The classes as ONNX knows them: strings, or whole numbers, as which truth values go too."""
    classes = formula.classes or []
    if all(isinstance(label, str) for label in classes):
        return np.array(classes, dtype=object)
    if all(not isinstance(label, str) and float(label).is_integer() for label in classes):
        return np.array(classes, dtype=np.int64)
    raise ValueError(f"ONNX knows classes that are strings or whole numbers; these are {classes!r}.")


def _float_type(operator: Any) -> Any:
    """The type of what comes out: that of the input, if it is one of floating-point numbers."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return DoubleTensorType if isinstance(operator.inputs[0].type, DoubleTensorType) else FloatTensorType
