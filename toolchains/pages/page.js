// Draws the plots of a page with Chart.js, and sorts its tables. It is XML text, too: no ampersand.
"use strict";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(canvas, plot) {
  const grid = {color: colour("--line")};
  // Each bar has its name; times, of which there may be many, need not.
  const ticks = {color: colour("--mild"), autoSkip: !plot.lying};
  const axis = (text, log) => ({
    grid, ticks, stacked: plot.stacked, ...(log ? {type: "logarithmic"} : {beginAtZero: true}),
    title: {display: Boolean(text), text, color: colour("--mild")},
  });
  const datasets = plot.series.map((series, at) => ({
    label: series.name,
    data: series.values,
    backgroundColor: colour(`--plot-${at % 7 + 1}`),
    borderColor: colour(`--plot-${at % 7 + 1}`),
    borderWidth: plot.kind === "line" ? 2 : 0,
    pointRadius: 3,
  }));
  return new Chart(canvas, {
    type: plot.kind,
    data: {labels: plot.labels, datasets},
    options: {
      animation: false,
      maintainAspectRatio: false,
      indexAxis: plot.lying ? "y" : "x",
      scales: {x: axis(plot.x), y: axis(plot.y, plot.log)},
      plugins: {
        legend: {display: datasets.length > 1, labels: {color: colour("--text")}},
      },
    },
  });
}

let charts = [];
function drawAll() {
  charts.forEach(chart => chart.destroy());
  const plots = JSON.parse(document.getElementById("plots").textContent);
  charts = plots.map((plot, at) => draw(document.getElementById(`plot-${at}`), plot));
}

function sort(head) {
  const table = head.closest("table");
  const column = [...head.parentNode.cells].indexOf(head);
  const down = head.getAttribute("aria-sort") === "descending";
  [...head.parentNode.cells].forEach(cell => cell.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "ascending" : "descending");
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => value(a).localeCompare(value(b), "en", {numeric: true});
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => down ? order(a, b) : order(b, a)));
}

for (const button of document.querySelectorAll("table.sorted th button")) {
  button.addEventListener("click", () => sort(button.closest("th")));
}
if (document.getElementById("plots")) {
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}
