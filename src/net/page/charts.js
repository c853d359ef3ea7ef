// Curves over rounds, by uPlot.
import uPlot from "uplot";
import { style } from "./colours.js";

/** What is known of metrics: their name in words, their unit, and what they are multiplied by to be shown. */
const metrics = {
  msd_db: { title: "Mean square deviation", unit: "dB", factor: 1, digits: 1 },
  msd: { title: "Mean square deviation", unit: "dB", factor: 1, digits: 1 },
  accuracy: { title: "Accuracy", unit: "%", factor: 100, digits: 1 },
};
const known = (name) => (Object.hasOwn(metrics, name) ? metrics[name] : { title: name, unit: "", factor: 1 });
export const metricTitle = (name) => known(name).title;
export const metricUnit = (name) => known(name).unit;
export const metricFactor = (name) => known(name).factor;

/** A number as it is printed: with a true minus sign. */
export const sign = (text) => text.replace(/^-/, "\u2212");

export function metricText(name, value) {
  if (!Number.isFinite(value)) return "\u2013";
  const { unit, factor, digits } = known(name);
  const x = value * factor;
  const number = digits === undefined ? Number(x.toPrecision(4)).toString() : x.toFixed(digits);
  return sign(number) + (unit ? ` ${unit}` : "");
}

/** The unit in which times of this length read well, and what seconds are multiplied by. */
export function timeUnit(seconds) {
  if (seconds >= 1 || !(seconds > 0)) return ["s", 1];
  return seconds >= 1e-3 ? ["ms", 1e3] : ["\u00b5s", 1e6];
}

/** What an axis shows for values from low to high: a little more. */
export const range = (low, high) => uPlot.rangeNum(low, high, 0.1, true);

const font = "11px system-ui, sans-serif";
const axis = (label) => ({ stroke: style("--soft"), grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false }, font, label, labelFont: font, labelSize: 16, labelGap: 0, gap: 4 });

/** Pixels right of the plot: half of the number of the last round stands there. */
const beside = (plot) => Math.max(8, 2 + 3.6 * String(Math.ceil(plot.scales.x?.max ?? 0)).length);

/** A chart whose series are { label, colour, width, dash, steps }, those without a label being the edges of bands; bands are pairs of their places with a fill. */
export class Chart {
  constructor(box, series, { bands = [], scale = {}, height = 205, unit = "" } = {}) {
    Object.assign(this, { box, series, bands, scale, height, unit });
    this.data = [[], ...series.map(() => [])];
    this.empty = new Set();
    this.box.classList.add("blank");
    this.make();
  }

  make() {
    this.plot?.destroy();
    this.box.replaceChildren(this.legend());
    const line = (s) => ({ stroke: style(s.colour), width: s.width ?? 2, dash: s.dash, points: { show: false }, spanGaps: true, ...(s.steps ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) });
    this.plot = new uPlot({
      width: Math.max(120, this.box.clientWidth), height: this.height, padding: [8, beside, 0, 0],
      legend: { show: false }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: this.scale },
      axes: [{ ...axis("round"), size: 22, values: (_, ticks) => ticks.map((v) => (Number.isInteger(v) ? String(v) : "")) },
        { ...axis(this.unit || undefined), size: 36, values: (_, ticks) => ticks.map((v) => sign(Number(v.toPrecision(6)).toString())) }],
      series: [{ label: "round" }, ...this.series.map(line)],
      bands: this.bands.map(([a, b, fill]) => ({ series: [a, b], fill: style(fill) })),
    }, this.data, this.box);
  }

  /** A key of those that have a label, and something to show. */
  legend() {
    const list = document.createElement("p");
    list.className = "lines";
    this.series.forEach((s, i) => {
      if (!s.label || this.empty.has(i)) return;
      const mark = document.createElement("span");
      mark.className = s.dash ? "stroke dashes" : "stroke";
      mark.style.borderColor = style(s.colour);
      const item = document.createElement("span");
      item.append(mark, s.label);
      list.append(item);
    });
    return list;
  }

  /** unit: of the numbers, beside their axis. */
  set(data, unit = this.unit) {
    this.data = data.map((column) => column.map((v) => (Number.isFinite(v) ? v : null)));
    const empty = new Set(this.series.map((_, i) => i).filter((i) => this.series[i].optional && this.data[i + 1].every((v) => v === null)));
    this.box.classList.toggle("blank", this.data.slice(1).every((column) => column.every((v) => v === null)));
    const same = unit === this.unit && empty.size === this.empty.size;
    this.unit = unit;
    this.empty = empty;
    if (same) this.plot.setData(this.data);
    else this.make();
  }

  resize() {
    const width = Math.max(120, this.box.clientWidth);
    if (Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.plot.height });
  }
}
