"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("size");
  const sizes = data.sizes.map((record) => record.size);
  const charts = Object.keys(data.figures).map((name) => [document.getElementById("chart-" + name), data.figures[name]]);

  const mark = () => {
    const size = sizes[Number(slider.value)];
    const late = size > (sizes[0] + sizes[sizes.length - 1]) / 2;
    for (const [place] of charts) {
      Plotly.relayout(place, {
        "shapes[0].x0": size,
        "shapes[0].x1": size,
        "annotations[0].x": size,
        "annotations[0].text": size === sizes[data.start] ? "" : "shown: " + size,
        "annotations[0].xanchor": late ? "right" : "left",
      });
    }
  };

  for (const [place, figure] of charts) {
    Plotly.newPlot(place, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    place.on("plotly_click", (event) => {
      const found = sizes.indexOf(event.points[0].x);
      if (found < 0) return;
      slider.value = found;
      slider.dispatchEvent(new Event("input"));
    });
  }
  if (Number(slider.value) !== data.start) mark(); // moved before the curves were there
  slider.addEventListener("input", mark);

  // Paper is narrower than most windows, and curves do not follow by themselves.
  const resize = (size) => charts.forEach(([place]) => Plotly.relayout(place, size));
  window.addEventListener("beforeprint", () => resize({ width: 620, height: 320 }));
  window.addEventListener("afterprint", () => resize({ width: null, height: 360, autosize: true }));
})();
