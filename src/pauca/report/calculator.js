"use strict";
(() => {
  const model = JSON.parse(document.getElementById("data").textContent).calculator;
  if (!model) return;
  const fields = [...document.querySelectorAll("#calculator input")];
  const result = document.getElementById("calculated");
  const outside = document.getElementById("outside");
  const names = [...document.querySelectorAll("#calculator label")].map((label) => label.textContent);

  const logistic = (score) => (score >= 0 ? 1 / (1 + Math.exp(-score)) : Math.exp(score) / (1 + Math.exp(score)));
  const softmax = (scores) => {
    const top = Math.max(...scores);
    const parts = scores.map((score) => Math.exp(score - top));
    const total = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / total);
  };
  // Classes in an order: the chance to lie at or below each threshold, and the differences between these.
  const ordered = (score) => {
    const below = [...model.thresholds.map((threshold) => logistic(threshold - score)), 1];
    return below.map((share, i) => share - (i ? below[i - 1] : 0));
  };
  const percent = (share) => (100 * share).toFixed(1) + "\u00a0%";
  const plain = (number) => Number(number.toPrecision(5)).toString().replace("-", "\u2212");

  const probabilities = (scores) => {
    if (model.link === "log_loss") return [1 - logistic(scores[0]), logistic(scores[0])];
    if (model.link === "softmax") return softmax(scores);
    return model.link === "cumulative" ? ordered(scores[0]) : null;
  };

  const classText = (scores) => {
    const shares = probabilities(scores);
    if (!shares) {
      const best = scores.length > 1 ? scores.indexOf(Math.max(...scores)) : Number(scores[0] > 0);
      return "Predicted class: " + model.classes[best];
    }
    if (shares.length > 2) return model.classes.map((name, i) => name + " " + percent(shares[i])).join(", ");
    const told = model.classes[Number(shares[1] >= model.threshold)];
    return "Probability of " + model.classes[1] + ": " + percent(shares[1]) +
      ". At the threshold of " + model.threshold + " this is predicted as " + told + ".";
  };

  const inverseLink = { identity: (a) => a, exp: Math.exp, inverse: (a) => 1 / Math.max(a, 0) };
  const numberText = (scores) => {
    const values = scores.map((score) => plain(inverseLink[model.link](score)));
    if (!model.outputs) return "Prediction: " + values[0];
    return "Prediction: " + model.outputs.map((name, i) => name + " " + values[i]).join(", ");
  };

  const show = () => {
    const values = fields.map((field) => (field.value.trim() === "" ? NaN : Number(field.value)));
    const missing = names.filter((_, i) => !Number.isFinite(values[i]));
    if (missing.length) {
      result.textContent = "Type a number for " + missing.join(", ") + ".";
      outside.hidden = true;
      return;
    }
    const scores = model.coef.map((row, c) => row.reduce((sum, w, j) => sum + w * values[j], model.intercept[c]));
    result.textContent = model.classes ? classText(scores) : numberText(scores);
    result.dataset.scores = JSON.stringify(scores);
    const beyond = model.ranges
      ? names.filter((_, i) => values[i] < model.ranges[i][0] || values[i] > model.ranges[i][1])
      : [];
    outside.hidden = !beyond.length;
    outside.textContent = beyond.length ? "Outside of what the fit has seen, so do not rely on it: " + beyond.join(", ") : "";
  };

  fields.forEach((field) => field.addEventListener("input", show));
  show();
})();
