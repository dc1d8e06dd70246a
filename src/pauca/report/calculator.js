"use strict";
(() => {
  const model = JSON.parse(document.getElementById("data").textContent).calculator;
  if (!model) return;
  const controls = [...document.querySelectorAll("#calculator [id^='value-']")];
  const until = document.getElementById("until");
  const stratum = document.getElementById("stratum");
  const result = document.getElementById("calculated");
  const outside = document.getElementById("outside");
  const names = [...document.querySelectorAll("#calculator label[for^='value-']")].map((label) => label.textContent);

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
    const label = model.classes[Number(shares[1] >= model.threshold)];
    return "Probability of " + model.classes[1] + ": " + percent(shares[1]) +
      ". At the threshold of " + model.threshold + " this is predicted as " + label + ".";
  };

  const inverseLink = { identity: (a) => a, exp: Math.exp, inverse: (a) => 1 / Math.max(a, 0) };
  const numberText = (scores) => {
    const values = scores.map((score) => plain(inverseLink[model.link](score)));
    if (!model.outputs) return "Prediction: " + values[0];
    return "Prediction: " + model.outputs.map((name, i) => name + " " + values[i]).join(", ");
  };

  // Times to an event: the probability by a time, and the hazard compared with that of the first row.
  let first = null;
  const hazardText = (score) => {
    const ratio = "Risk at any time (hazard): " + Math.exp(score - first).toPrecision(3) + " times that of the first row.";
    if (!until) return ratio;
    const time = Number(until.value);
    if (until.value.trim() === "" || !(time >= 0)) return "Type a time, of 0 or more. " + ratio;
    const place = stratum ? Number(stratum.value) : 0;
    const known = model.baseline.times[place].filter((event) => event <= time).length;
    const hazard = known ? model.baseline.hazard[place][known - 1] : 0;
    result.dataset.hazard = hazard * Math.exp(score);
    const share = percent(-Math.expm1(-hazard * Math.exp(score)));
    return "Probability of " + model.event + " by time " + plain(time) + ": " + share + ". " + ratio;
  };

  // What a field gives to the terms of the formula; null where a number is needed and there is none.
  const fill = (field, control, values) => {
    const text = control.value.trim();
    const chosen = field.list ? Number(text) : null;
    const missing = field.list ? chosen === field.missing : text === "" && !control.validity.badInput;
    const number = field.list ? (field.numbers && !missing ? field.numbers[chosen] : NaN) : text === "" ? NaN : Number(text);
    if (!field.list && !Number.isFinite(number) && !(missing && field.optional)) return null;
    for (const [place, kind, wanted, stands] of field.terms) {
      if (kind === "missing") values[place] = Number(missing);
      else if (missing) values[place] = stands;
      else values[place] = kind === "level" ? Number(chosen === wanted) : number;
    }
    return number;
  };

  const show = () => {
    const values = new Array(model.coef[0].length).fill(0);
    const numbers = model.fields.map((field, i) => fill(field, controls[i], values));
    const lacking = names.filter((_, i) => numbers[i] === null);
    if (lacking.length) {
      result.textContent = "Type a number for " + lacking.join(", ") + ".";
      outside.hidden = true;
      return;
    }
    const scores = model.coef.map((row, c) => row.reduce((sum, w, j) => sum + w * values[j], model.intercept[c]));
    first ??= scores[0];
    if (model.link === "log_hazard") result.textContent = hazardText(scores[0]);
    else result.textContent = model.classes ? classText(scores) : numberText(scores);
    result.dataset.scores = JSON.stringify(scores);
    const beyond = names.filter((_, i) => {
      const range = model.fields[i].range;
      return range && (numbers[i] < range[0] || numbers[i] > range[1]);
    });
    if (until && Number(until.value) > Number(until.max)) beyond.push("time");
    outside.hidden = !beyond.length;
    outside.textContent = beyond.length ? "Outside of what the fit has seen, so do not rely on it: " + beyond.join(", ") : "";
  };

  [...controls, until, stratum].filter((control) => control).forEach((control) => control.addEventListener("input", show));
  show();
})();
