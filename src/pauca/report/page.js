"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const slider = byId("size");

  // Text is set as text: no name is ever parsed as HTML.
  const element = (name, text, attributes = {}) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const nameTag = (text) => element("bdi", text.split(/\s+/).join(" ").trim() || "(no name)");

  // Names are indices into data.names: the page holds each name once.
  const cell = (value, column, scope) => {
    const text = typeof value === "number" ? data.names[value] : value;
    const isName = column < data.nameColumns;
    const isHead = scope === "col" || column === data.nameColumns - 1;
    const node = element(isHead ? "th" : "td", undefined, { class: isName ? "name" : "number" });
    if (isHead) node.setAttribute("scope", scope);
    node.append((isName && text) || scope === "col" ? nameTag(text) : text);
    return node;
  };

  const row = (cells, scope) => {
    const node = element("tr");
    node.append(...cells.map((value, column) => cell(value, column, scope)));
    return node;
  };

  const table = (record) => {
    const caption = "The model of " + record.label;
    const node = element("table");
    const head = element("thead");
    const body = element("tbody");
    head.append(row(data.heads, "col"));
    body.append(...record.rows.map((cells) => row(cells, "row")));
    node.append(element("caption", caption), head, body);
    const region = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
    region.append(node);
    return record.note ? [region, element("p", record.note, { class: "note" })] : [region];
  };

  const names = (list) => {
    if (!list.length) return ["none"];
    return list.flatMap((name, i) => [...(i ? [", "] : []), nameTag(data.names[name])]);
  };

  const show = () => {
    const index = Number(slider.value);
    const record = data.sizes[index];
    slider.setAttribute("aria-valuetext", record.label);
    byId("size-now").textContent = record.label;
    byId("current-compared").textContent = record.compared;
    for (const key of ["explained", "score", "cost"]) {
      const target = byId("current-" + key);
      if (target) target.textContent = record[key];
    }
    byId("current-entered").replaceChildren(...names(record.entered));
    byId("current-left").replaceChildren(...names(record.left));
    byId("current-table").replaceChildren(...table(record));
    byId("fewer").disabled = index === 0;
    byId("more").disabled = index === data.sizes.length - 1;
    byId("back").disabled = index === data.start;
    slider.closest("section").classList.toggle("at-chosen", index === data.start);
  };

  const goTo = (index) => {
    slider.value = index;
    slider.dispatchEvent(new Event("input"));
  };

  slider.addEventListener("input", show);
  byId("fewer").addEventListener("click", () => goTo(Number(slider.value) - 1));
  byId("more").addEventListener("click", () => goTo(Number(slider.value) + 1));
  byId("back").addEventListener("click", () => goTo(data.start));
  goTo(data.start); // browsers restore the last position of a slider
})();
