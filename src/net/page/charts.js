// Curves over rounds, by uPlot.
import uPlot from "uplot";
import { style } from "./colours.js";

const names = { msd_db: "mean square deviation, dB", msd: "mean square deviation, dB", accuracy: "accuracy" };
export const metricName = (name) => names[name] ?? name;

const axis = () => ({ stroke: style("--soft"), grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", size: 46 });

/** A chart whose series are { label, colour, width, dash }, those without a label being the edges of bands; bands are pairs of their places with a fill. */
export class Chart {
  constructor(box, series, bands = [], scale = {}) {
    Object.assign(this, { box, series, bands, scale });
    this.data = [[], ...series.map(() => [])];
    this.make();
  }

  make() {
    this.plot?.destroy();
    this.box.replaceChildren(this.legend());
    const line = (s) => ({ stroke: style(s.colour), width: s.width ?? 2, dash: s.dash, points: { show: false }, spanGaps: true });
    this.plot = new uPlot({
      width: Math.max(120, this.box.clientWidth), height: this.box.classList.contains("small") ? 130 : 190,
      legend: { show: false }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: this.scale },
      axes: [{ ...axis(), size: 26 }, axis()],
      series: [{ label: "round" }, ...this.series.map(line)],
      bands: this.bands.map(([a, b, fill]) => ({ series: [a, b], fill: style(fill) })),
    }, this.data, this.box);
  }

  /** A key of those that have a label. */
  legend() {
    const list = document.createElement("p");
    list.className = "lines";
    for (const s of this.series.filter((one) => one.label)) {
      const mark = document.createElement("span");
      mark.className = s.dash ? "stroke dashes" : "stroke";
      mark.style.borderColor = style(s.colour);
      const item = document.createElement("span");
      item.append(mark, s.label);
      list.append(item);
    }
    return list;
  }

  set(data) {
    this.data = data.map((column) => column.map((v) => (Number.isFinite(v) ? v : null)));
    this.plot.setData(this.data);
  }

  resize() {
    const width = Math.max(120, this.box.clientWidth);
    if (Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.plot.height });
  }
}
