"""
A text classifier in twenty words
=================================

Counts of words are a sparse matrix, and the chosen columns are words.
"""

# %%
# Reviews are made on the spot. Ten words are more common where a guest was pleased, ten where not; most say nothing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from pauca import SparseClassifier

rng = np.random.default_rng(0)
good = ["lovely", "perfect", "warm", "fresh", "quiet", "kind", "clean", "sunny", "tasty", "cosy"]
bad = ["broken", "late", "rude", "cold", "noisy", "dirty", "stale", "cramped", "dull", "smelly"]
common = [f"word{number}" for number in range(400)]


def review(is_good):
    """A text of forty words: of its three telling ones four in five are of the right kind."""
    of_good = rng.uniform(size=3) < (0.8 if is_good else 0.2)
    telling = [rng.choice(good if one else bad) for one in of_good]
    return " ".join([*rng.choice(common, size=37), *telling])


liked = rng.uniform(size=1200) < 0.5
texts = [review(one) for one in liked]
words = CountVectorizer()
X = words.fit_transform(texts)
print(X.shape, type(X).__name__)

# %%
model = SparseClassifier(k=20, ridge=0.01)
model.fit(X, np.where(liked, "pleased", "not pleased"), feature_names=words.get_feature_names_out())
for size in (2, 5, 10):
    print(size, model.path_.names(size))

# %%
# What each of the twenty words says: to the right for "pleased", to the left for "not pleased".
coefficients = sorted(model.path_.coefficients(20).items(), key=lambda item: item[1])
figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
axes.barh([word for word, _ in coefficients], [value for _, value in coefficients])
axes.axvline(0, color="grey", linewidth=0.8)
axes.set(xlabel="coefficient of a mention of the word")

# %%
# How well twenty words tell the two apart, on texts that were held out of the search.
print(model.evaluate().summary())
