"""What scikit-learn asks of every classifier, asked of SparseOrdinalClassifier."""

import pytest
from sklearn_checks import parametrize_settings

from pauca import SparseOrdinalClassifier

NOT_ORDERED = {
    "check_classifiers_classes": "it fits words, whose order is not known without order=[...]",
    "check_classifiers_train": "it asks for an accuracy of 0.83 on three classes that lie in no order",
}


# The checks fit constant columns, single rows and more features than rows on purpose.
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning", "ignore:No features were selected:UserWarning")
@pytest.mark.usefixtures("array_api")
@parametrize_settings(
    [SparseOrdinalClassifier(k=1, ridge=1e-3), SparseOrdinalClassifier(k=None, method="forward", ridge=1e-3)],
    expected_failed_checks=lambda estimator: NOT_ORDERED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
