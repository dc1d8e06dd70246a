"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const slider = byId("size");

  // Text becomes text and nothing else: no name is ever read as HTML.
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const nameOf = (text) => element("bdi", text.split(/\s+/).join(" ").trim() || "(no name)");

  // Names are numbers here: each is in the page once.
  const cell = (given, place, scope) => {
    const text = typeof given === "number" ? data.words[given] : given;
    const isName = place < data.names;
    const isHead = scope === "col" || place === data.names - 1;
    const made = element(isHead ? "th" : "td", undefined, { class: isName ? "name" : "number" });
    if (isHead) made.setAttribute("scope", scope);
    made.append((isName && text) || scope === "col" ? nameOf(text) : text);
    return made;
  };

  const row = (cells, scope) => {
    const made = element("tr");
    made.append(...cells.map((text, place) => cell(text, place, scope)));
    return made;
  };

  const table = (record) => {
    const caption = "The model of " + record.label;
    const made = element("table");
    const head = element("thead");
    const body = element("tbody");
    head.append(row(data.heads, "col"));
    body.append(...record.rows.map((cells) => row(cells, "row")));
    made.append(element("caption", caption), head, body);
    const region = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
    region.append(made);
    return record.hidden ? [region, element("p", record.hidden, { class: "note" })] : [region];
  };

  const names = (list) => {
    if (!list.length) return ["nothing"];
    return list.flatMap((word, place) => [...(place ? [", "] : []), nameOf(data.words[word])]);
  };

  const show = () => {
    const place = Number(slider.value);
    const record = data.sizes[place];
    slider.setAttribute("aria-valuetext", record.label);
    byId("size-now").textContent = record.label;
    byId("here-compared").textContent = record.compared;
    for (const key of ["explained", "score", "price"]) {
      const target = byId("here-" + key);
      if (target) target.textContent = record[key];
    }
    byId("here-entered").replaceChildren(...names(record.entered));
    byId("here-left").replaceChildren(...names(record.left));
    byId("here-table").replaceChildren(...table(record));
    byId("fewer").disabled = place === 0;
    byId("more").disabled = place === data.sizes.length - 1;
    byId("back").disabled = place === data.start;
    slider.closest("section").classList.toggle("at-chosen", place === data.start);
  };

  const goTo = (place) => {
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
  };

  slider.addEventListener("input", show);
  byId("fewer").addEventListener("click", () => goTo(Number(slider.value) - 1));
  byId("more").addEventListener("click", () => goTo(Number(slider.value) + 1));
  byId("back").addEventListener("click", () => goTo(data.start));
  goTo(data.start); // browsers remember where a slider stood
})();
