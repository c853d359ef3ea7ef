// Who trusts whom as a matrix, pixel by pixel: rows receive, columns send. Fluid with a thousand agents.
import { rgb, shade, STEPS, style, unknown } from "./colours.js";

const STRIP = 12; // pixels of the strip above, which has the trust in each sender

const pack = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;

export class Matrix {
  constructor(box, onChoose) {
    this.box = box;
    this.canvas = box.querySelector("canvas");
    this.onChoose = onChoose;
    this.view = { scale: 1, x: 0, y: 0 };
    this.chosen = -1;
    this.sorted = false;
    this.drag = null;
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerup", (e) => this.up(e));
    this.canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.box.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.box.clientHeight * ratio));
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = null;
  }

  cell(n) {
    return (Math.min(this.canvas.width, this.canvas.height - STRIP) / n) * this.view.scale;
  }

  left(n) {
    return Math.max(0, (this.canvas.width - this.cell(n) * n) / 2);
  }

  /** Where each agent stands: by number, or those who are not trusted first, which shows their columns side by side. */
  arrange(model) {
    const n = model.n;
    const order = Array.from({ length: n }, (_, k) => k);
    if (this.sorted) order.sort((x, y) => model.agent.distrusted[y] - model.agent.distrusted[x] || x - y);
    this.order = order;
    this.place = new Uint32Array(n);
    order.forEach((k, i) => { this.place[k] = i; });
  }

  block(x, y, w, h, colour) {
    const { width, height } = this.canvas;
    const x1 = Math.min(width, Math.max(0, x + w));
    const y1 = Math.min(height, Math.max(STRIP, y + h));
    for (let j = Math.max(STRIP, y); j < y1; j++) this.pixels.fill(colour, j * width + Math.max(0, x), j * width + x1);
  }

  draw(model) {
    this.resize();
    this.model = model;
    this.arrange(model);
    const { width, height } = this.canvas;
    const context = this.canvas.getContext("2d");
    this.image ??= context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    const colours = Array.from({ length: STEPS + 1 }, (_, i) => pack(rgb(i)));
    const grey = pack(unknown());
    const named = (name) => pack(style(name).match(/\w\w/g).map((h) => parseInt(h, 16)));
    this.pixels.fill(named("--card"));
    const side = Math.round(this.cell(model.n) * model.n); // where there is no link
    this.block(Math.floor(this.left(model.n) - this.view.x), STRIP - Math.floor(this.view.y), side, side, named("--page"));
    this.fillEdges(model, colours, grey);
    this.fillStrip(model, colours, grey);
    context.putImageData(this.image, 0, 0);
    this.mark(context, model.n);
  }

  fillEdges(model, colours, grey) {
    const n = model.n;
    const cell = this.cell(n);
    const size = Math.max(2, Math.ceil(cell));
    const x0 = this.left(n) - this.view.x;
    const y0 = STRIP - this.view.y;
    for (let i = 0; i < model.edges.count; i++) {
      const s = shade(model.edges.trust[i]);
      this.block(Math.floor(x0 + this.place[model.edges.from[i]] * cell), Math.floor(y0 + this.place[model.edges.to[i]] * cell), size, size, s < 0 ? grey : colours[s]);
    }
  }

  fillStrip(model, colours, grey) {
    const n = model.n;
    const cell = this.cell(n);
    const { width } = this.canvas;
    const x0 = this.left(n) - this.view.x;
    for (let k = 0; k < n; k++) {
      const s = shade(model.agent.trust[this.order[k]]);
      const from = Math.max(0, Math.floor(x0 + k * cell));
      const to = Math.min(width, Math.max(from + 1, Math.floor(x0 + (k + 1) * cell)));
      for (let j = 0; j < STRIP - 3 && to > from; j++) this.pixels.fill(s < 0 ? grey : colours[s], j * width + from, j * width + to);
    }
  }

  mark(context, n) {
    if (this.chosen < 0) return;
    const cell = this.cell(n);
    context.strokeStyle = style("--accent");
    context.lineWidth = 2;
    context.strokeRect(this.left(n) - this.view.x + this.place[this.chosen] * cell - 1, 1, Math.max(3, cell) + 2, this.canvas.height - 2);
  }

  spot(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * this.canvas.width) / box.width, ((event.clientY - box.top) * this.canvas.height) / box.height];
  }

  at(event) {
    const n = this.model?.n ?? 0;
    const [x, y] = this.spot(event);
    const cell = this.cell(n || 1);
    const from = Math.floor((x - this.left(n || 1) + this.view.x) / cell);
    const to = y < STRIP ? -1 : Math.floor((y - STRIP + this.view.y) / cell);
    return from >= 0 && from < n && to < n ? [this.order[from], to < 0 ? -1 : this.order[to]] : [-1, -1];
  }

  down(event) {
    this.drag = { x: event.clientX, y: event.clientY, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    const [from, to] = this.at(event);
    if (this.drag) {
      const ratio = this.canvas.width / this.canvas.getBoundingClientRect().width;
      const dx = event.clientX - this.drag.x;
      const dy = event.clientY - this.drag.y;
      this.drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
      if (this.drag.moved) {
        this.view.x -= dx * ratio;
        this.view.y -= dy * ratio;
        Object.assign(this.drag, { x: event.clientX, y: event.clientY });
        this.clamp();
      }
    } else if (from >= 0 && this.model) {
      const i = to >= 0 ? this.model.edgeOf.get(to * this.model.n + from) : undefined;
      const names = this.model.run.names;
      this.canvas.title = i === undefined ? names[from] : `${names[to]} gives ${names[from]} trust ${Number.isNaN(this.model.edges.trust[i]) ? "unknown" : this.model.edges.trust[i].toFixed(2)}`;
    }
  }

  up(event) {
    if (this.drag && !this.drag.moved) this.onChoose(this.at(event)[0]);
    this.drag = null;
  }

  wheel(event) {
    event.preventDefault();
    const [x, y] = this.spot(event);
    this.zoomAt(event.deltaY < 0 ? 1.2 : 1 / 1.2, x, y);
  }

  zoomAt(factor, x, y) {
    const scale = Math.max(1, Math.min(60, this.view.scale * factor));
    const by = scale / this.view.scale;
    const n = this.model?.n ?? 1;
    const before = this.left(n);
    this.view.scale = scale;
    this.view.x = (x - before + this.view.x) * by - (x - this.left(n));
    this.view.y = (y - STRIP + this.view.y) * by - (y - STRIP);
    this.clamp();
  }

  clamp() {
    const n = this.model?.n ?? 1;
    const side = this.cell(n) * n;
    this.view.x = Math.max(0, Math.min(this.view.x, side - this.canvas.width));
    this.view.y = Math.max(0, Math.min(this.view.y, side + STRIP - this.canvas.height));
    if (this.model) this.draw(this.model);
  }

  zoom(factor) {
    if (factor === 0) Object.assign(this.view, { scale: 1, x: 0, y: 0 });
    this.zoomAt(factor || 1, this.canvas.width / 2, this.canvas.height / 2);
  }

  choose(k) {
    this.chosen = k;
  }
}
