"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("size");
  const sizes = data.sizes.map((record) => record.size);
  const charts = Object.keys(data.figures).map((name) => [document.getElementById("chart-" + name), data.figures[name]]);

  const markSize = () => {
    const size = sizes[Number(slider.value)];
    const late = size > (sizes[0] + sizes[sizes.length - 1]) / 2;
    for (const [chart] of charts) {
      Plotly.relayout(chart, {
        "shapes[0].x0": size,
        "shapes[0].x1": size,
        "annotations[0].x": size,
        "annotations[0].text": size === sizes[data.start] ? "" : "shown: " + size,
        "annotations[0].xanchor": late ? "right" : "left",
      });
    }
  };

  for (const [chart, figure] of charts) {
    Plotly.newPlot(chart, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    chart.on("plotly_click", (event) => {
      const index = sizes.indexOf(event.points[0].x);
      if (index < 0) return;
      slider.value = index;
      slider.dispatchEvent(new Event("input"));
    });
  }
  if (Number(slider.value) !== data.start) markSize(); // the slider moved before the charts were ready
  slider.addEventListener("input", markSize);

  // Paper is narrower than most windows, and charts do not resize by themselves.
  const resize = (size) => charts.forEach(([chart]) => Plotly.relayout(chart, size));
  window.addEventListener("beforeprint", () => resize({ width: 620, height: 320 }));
  window.addEventListener("afterprint", () => resize({ width: null, height: 360, autosize: true }));
})();
