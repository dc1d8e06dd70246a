"""scikit-learn's checks for several settings of one class."""

from functools import cache

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

# What these look at (kinds of tables and weights, names, tags, parameters, messages) is handled before anything is
# searched, by code that all settings of a class share: the first of them had best be a quick one.
OF_THE_CLASS = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_attributes",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_matrix",  # check_estimator_sparse_array differs in the container alone
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_partial_fit_n_features",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_regressor_data_not_an_array",
    "check_regressors_no_decision_function",
    "check_requires_y_none",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_set_params",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
    "check_transformer_data_not_an_array",
    "check_transformers_unfitted",
    "check_valid_tag_types",
}


def parametrize_settings(estimators, **options):
    """As ``parametrize_with_checks``; only the first estimator of each class is under the checks of the class."""
    mark = parametrize_with_checks(estimators, **options)
    first = {type(estimator): estimator for estimator in reversed(estimators)}
    names, pairs = mark.args
    kept = []
    for pair in pairs:
        estimator, check = getattr(pair, "values", pair)
        if estimator is first[type(estimator)] or check.func.__name__ not in OF_THE_CLASS:
            kept.append(pair)
    return pytest.mark.parametrize(names, kept, **mark.kwargs | {"ids": cache(mark.kwargs["ids"])})
