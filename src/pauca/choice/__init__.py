"""Choosing a size: rules that weigh scores, criteria that need no folds, and how far to look."""

from pauca.choice.criteria import criterion_values, penalised
from pauca.choice.reach import Reach
from pauca.choice.rules import choose_by_criterion, choose_by_folds

__all__ = ["Reach", "choose_by_criterion", "choose_by_folds", "criterion_values", "penalised"]
