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
    else node.setAttribute("data-label", data.heads[column]);
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
    const kind = data.heads.length - data.nameColumns > data.manyNumbers ? "scroll many" : "scroll";
    const region = element("div", undefined, { class: kind, role: "region", tabindex: "0", "aria-label": caption });
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
    charts.forEach((chart) => markSize(chart, record.size, index === data.start));
  };

  // Every chart over the sizes has a line and a text at the size that is shown.
  const charts = [...document.querySelectorAll(".sizes-chart")];
  const sizes = data.sizes.map((record) => record.size);
  const place = (chart) => {
    const { first, last, left, right } = chart.dataset;
    const scale = (Number(right) - Number(left)) / (Number(last) - Number(first) || 1);
    return { scale, toX: (size) => Number(left) + (size - Number(first)) * scale };
  };
  const markSize = (chart, size, chosen) => {
    const x = place(chart).toX(size);
    const late = size > (sizes[0] + sizes[sizes.length - 1]) / 2;
    const line = chart.querySelector("line.now");
    const text = chart.querySelector("text.now");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    text.setAttribute("x", late ? x - 4 : x + 4);
    text.setAttribute("text-anchor", late ? "end" : "start");
    text.textContent = chosen ? "" : "shown: " + size;
  };
  const nearest = (chart, event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
    const distances = sizes.map((size) => Math.abs(place(chart).toX(size) - x));
    return distances.indexOf(Math.min(...distances));
  };

  const goTo = (index) => {
    slider.value = index;
    slider.dispatchEvent(new Event("input"));
  };

  slider.addEventListener("input", show);
  charts.forEach((chart) => chart.addEventListener("click", (event) => goTo(nearest(chart, event))));
  byId("fewer").addEventListener("click", () => goTo(Number(slider.value) - 1));
  byId("more").addEventListener("click", () => goTo(Number(slider.value) + 1));
  byId("back").addEventListener("click", () => goTo(data.start));
  goTo(data.start); // browsers restore the last position of a slider
})();
