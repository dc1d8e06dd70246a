"""Model files of fitted models."""

import numpy as np


def assert_same_model(a, b):
    """Bit for bit."""
    for left, right in zip(a.path_, b.path_, strict=True):
        for field, value in vars(left).items():
            other = getattr(right, field)
            np.testing.assert_array_equal(value, other, strict=True)
            assert type(value) is type(other), field
            if isinstance(value, np.ndarray):
                assert value.tolist() == other.tolist() or np.isnan(value).any()
    for field in ("moves", "stop", "n_features", "output_names"):
        assert getattr(a.path_, field) == getattr(b.path_, field)
    for field in ("column_names", "group_labels", "owner"):
        assert_same_array(getattr(a.path_, field), getattr(b.path_, field))
    fields = {name for name in vars(a) if name.endswith("_") or name == "_several_outputs"}
    assert fields == {name for name in vars(b) if name.endswith("_") or name == "_several_outputs"}
    for field in fields - {"path_"}:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def assert_same_array(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.dtype.kind == b.dtype.kind
        assert a.tolist() == b.tolist()
