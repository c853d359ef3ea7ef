// Who trusts whom as a matrix, pixel by pixel: rows receive, columns send. Fluid with a thousand agents.
import { rgb, shade, STEPS, style, unknown } from "./colours.js";

const STRIP = 12; // pixels of the strip above, which has the trust in each sender
const NAMES = { left: 92, top: 76, cell: 14 }; // room for names, where cells are large enough for them; in pixels of the page

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
    Object.assign(this, { ratio: 1, edge: 0, top: STRIP });
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerup", (e) => this.up(e));
    this.canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
  }

  resize() {
    this.ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.box.clientWidth * this.ratio));
    const height = Math.max(1, Math.round(this.box.clientHeight * this.ratio));
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = null;
  }

  /** Where the matrix begins: behind the names of receivers, below those of senders. */
  frame(n) {
    const left = Math.round(NAMES.left * this.ratio);
    const top = STRIP + Math.round(NAMES.top * this.ratio);
    const named = Math.min(this.canvas.width - left, this.canvas.height - top) / n >= NAMES.cell * this.ratio;
    this.edge = named ? left : 0;
    this.top = named ? top : STRIP;
  }

  cell(n) {
    return (Math.min(this.canvas.width - this.edge, this.canvas.height - this.top) / n) * this.view.scale;
  }

  left(n) {
    return this.edge + Math.max(0, (this.canvas.width - this.edge - this.cell(n) * n) / 2);
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
    const y1 = Math.min(height, y + h);
    const x0 = Math.max(this.edge, x);
    for (let j = Math.max(this.top, y); j < y1 && x0 < x1; j++) this.pixels.fill(colour, j * width + x0, j * width + x1);
  }

  draw(model) {
    this.resize();
    this.model = model;
    this.arrange(model);
    this.frame(model.n);
    const { width, height } = this.canvas;
    const context = this.canvas.getContext("2d");
    this.image ??= context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    const colours = Array.from({ length: STEPS + 1 }, (_, i) => pack(rgb(i)));
    const grey = pack(unknown());
    const named = (name) => pack(style(name).match(/\w\w/g).map((h) => parseInt(h, 16)));
    this.pixels.fill(named("--card"));
    const side = Math.round(this.cell(model.n) * model.n); // what has no link
    this.block(Math.floor(this.left(model.n) - this.view.x), Math.floor(this.top - this.view.y), side, side, named("--page"));
    this.fillEdges(model, colours, grey);
    this.fillStrip(model, colours, grey);
    context.putImageData(this.image, 0, 0);
    this.mark(context, model.n);
    if (this.edge > 0) this.write(context, model);
  }

  /** Names of receivers on the left, of senders on top. */
  write(context, model) {
    const cell = this.cell(model.n);
    const { width, height } = this.canvas;
    context.font = `${11 * this.ratio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    this.order.forEach((k, i) => {
      const x = this.left(model.n) - this.view.x + (i + 0.5) * cell;
      const y = this.top - this.view.y + (i + 0.5) * cell;
      context.fillStyle = style(model.isMalicious(k) || model.agent.distrusted[k] ? "--bad" : "--ink");
      if (y > this.top && y < height) {
        context.textAlign = "right";
        context.fillText(model.run.names[k], this.left(model.n) - 6 * this.ratio, y, NAMES.left * this.ratio - 8);
      }
      if (x < this.edge || x > width) return;
      context.save();
      context.translate(x, this.top - STRIP - 5 * this.ratio);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(model.run.names[k], 0, 0, NAMES.top * this.ratio - 8);
      context.restore();
    });
  }

  fillEdges(model, colours, grey) {
    const n = model.n;
    const cell = this.cell(n);
    const size = cell > 6 ? Math.floor(cell) - 1 : Math.max(2, Math.ceil(cell)); // a gap between cells that are large
    const x0 = this.left(n) - this.view.x;
    const y0 = this.top - this.view.y;
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
      const from = Math.max(this.edge, Math.floor(x0 + k * cell));
      const to = Math.min(width, Math.max(from + 1, Math.floor(x0 + (k + 1) * cell) - (cell > 6 ? 1 : 0)));
      for (let j = this.top - STRIP; j < this.top - 3 && to > from; j++) this.pixels.fill(s < 0 ? grey : colours[s], j * width + from, j * width + to);
    }
  }

  mark(context, n) {
    if (this.chosen < 0) return;
    const cell = this.cell(n);
    context.strokeStyle = style("--accent");
    context.lineWidth = 2;
    const x = this.left(n) - this.view.x + this.place[this.chosen] * cell - 2;
    const bottom = Math.min(this.canvas.height - 1, this.top - this.view.y + n * cell + 1);
    if (x >= this.edge - 3) context.strokeRect(x, this.top - STRIP - 1, Math.max(3, cell) + 3, bottom - (this.top - STRIP));
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
    const to = y < this.top ? -1 : Math.floor((y - this.top + this.view.y) / cell);
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
    this.view.y = (y - this.top + this.view.y) * by - (y - this.top);
    this.clamp();
  }

  clamp() {
    const n = this.model?.n ?? 1;
    const side = this.cell(n) * n;
    this.view.x = Math.max(0, Math.min(this.view.x, side - (this.canvas.width - this.edge)));
    this.view.y = Math.max(0, Math.min(this.view.y, side + this.top - this.canvas.height));
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
