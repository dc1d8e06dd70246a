"""
A text classifier in eight words
================================

Counts of words are a sparse matrix, and the chosen columns are words.
"""

# %%
# Reviews are made on the spot: a few words tell good from bad, most do not.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from pauca import SparseClassifier

rng = np.random.default_rng(0)
good, bad = ["lovely", "perfect", "warm", "fresh"], ["broken", "late", "rude", "cold"]
common = [f"word{number}" for number in range(400)]


def review(is_good):
    """A text of thirty words, some of them telling."""
    telling = rng.choice(good if is_good else bad, size=2)
    return " ".join([*rng.choice(common, size=28), *telling])


liked = rng.uniform(size=400) < 0.5
texts = [review(one) for one in liked]
words = CountVectorizer()
X = words.fit_transform(texts)
print(X.shape, type(X).__name__)

# %%
model = SparseClassifier(k=8, ridge=0.01)
model.fit(X, np.where(liked, "good", "bad"), feature_names=words.get_feature_names_out())
for size in (2, 4, 8):
    print(size, model.path_.names(size))

# %%
# What each word says: to the right for "good", to the left for "bad".
coefficients = sorted(model.path_.coefficients(8).items(), key=lambda item: item[1])
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.barh([word for word, _ in coefficients], [value for _, value in coefficients])
axes.axvline(0, color="grey", linewidth=0.8)
axes.set(xlabel="coefficient of a mention of the word")

# %%
# How well eight words tell the two apart, on texts that were held out of the search.
print(model.evaluate().summary())
