// The graph of agents, by Cytoscape.js: up to 200 of them.
import cytoscape from "cytoscape";
import { css, shade, style } from "./colours.js";
import { spread } from "./layout.js";

export const CURVED = 40; // agents up to which each direction of a link has a line of its own
const LEAST = 9; // pixels of the page that names have at least as long as the whole graph is shown
const NAMED = 40; // up to which all names are shown; beyond, those of agents that are malicious, not trusted or chosen

/** A name in the graph; the list, the card and the pointer on an agent have all of it. Of many long ones that are alike, the end tells which. */
const short = (name, most) => (name.length > most ? `${name.slice(0, most / 2)}\u2026${name.slice(1 - most / 2)}` : name);

export class Graph {
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.cy = null;
    this.shown = -1;
    this.chosen = -1;
    this.held = false; // somebody has moved or zoomed the picture: it stays as it is
  }

  sheet() {
    const ink = style("--ink");
    const edge = this.curved ? { "curve-style": "bezier", "control-point-step-size": 14, "target-arrow-shape": "triangle", "arrow-scale": 0.65, "target-arrow-color": "data(colour)" } : { "curve-style": "haystack" };
    return [
      { selector: "node", style: { "background-color": "data(colour)", width: "data(size)", height: "data(size)", label: "data(label)", color: ink, "font-size": this.letters,
        "font-family": "system-ui, sans-serif", "text-halign": "data(halign)", "text-valign": "data(valign)", "text-margin-x": "data(mx)", "text-margin-y": "data(my)",
        "border-width": 2, "border-color": style("--ring"), "text-outline-color": style("--card"), "text-outline-width": 2.5, "z-index": 1 } },
      { selector: "node[?malicious]", style: { shape: "diamond", width: "data(large)", height: "data(large)", "border-width": 2.5, "border-color": style("--bad"), color: style("--bad"), "font-weight": "bold", "z-index": 2 } },
      { selector: "node[condition = 'alone'], node[condition = 'idle'], node[condition = 'gathering']", style: { "border-style": "dashed", "border-color": ink } },
      { selector: "node[condition = 'silent'], node[condition = 'left'], node[condition = 'not heard'], node[condition = 'removed']", style: { "border-style": "dotted", "border-color": style("--soft"), "background-opacity": 0.4 } },
      { selector: "node[condition = 'removed']", style: { "background-opacity": 0.1, color: style("--soft"), "font-weight": "normal" } },
      { selector: "node[condition = 'excluded']", style: { "border-style": "double", "border-width": 7, "border-color": style("--bad") } },
      { selector: "edge", style: { ...edge, "line-color": "data(colour)", width: "data(width)", opacity: "data(opacity)", "z-index": 1 } },
      { selector: "edge[?refused]", style: { "z-index": 2, ...(this.curved ? { "line-style": "dashed", "line-dash-pattern": [6, 4] } : {}) } },
      { selector: "edge.aside", style: { opacity: this.curved ? 0.1 : 0.07 } },
      { selector: "edge.aside[?refused]", style: { opacity: 0.35 } },
      { selector: "node:selected", style: { "underlay-color": style("--accent"), "underlay-opacity": 0.3, "underlay-padding": 8, "underlay-shape": "ellipse" } },
    ];
  }

  /** The area of a node grows with the weight that its receivers give it. */
  sizes(model) {
    const weight = model.outgoing.map((list) => list.reduce((sum, i) => sum + model.edges.weight[i], 0));
    const mean = weight.reduce((sum, w) => sum + w, 0) / model.n || 1;
    return weight.map((w) => this.size * Math.max(0.7, Math.min(1.3, Math.sqrt(w / mean))));
  }

  /** In a circle up to 40 agents and where links are many, otherwise as the links pull: the same picture every time. */
  positions(model) {
    const dense = model.edges.count > 0.4 * model.n * (model.n - 1);
    this.round = model.n <= NAMED || dense;
    const angle = (k) => (2 * Math.PI * k) / model.n - Math.PI / 2;
    const room = 0.5 * Math.min(this.box.clientWidth - 190, this.box.clientHeight - 80); // beside the names
    const radius = Math.max(room, (model.n * this.size) / 4);
    return this.round ? model.run.names.map((_, k) => ({ x: radius * Math.cos(angle(k)), y: radius * Math.sin(angle(k)) })) : spread(model, 2.1 * this.size);
  }

  /** Names stand outwards, where there are the fewest links. */
  label(at) {
    const far = Math.hypot(at.x, at.y) || 1;
    const [dx, dy] = [at.x / far, at.y / far];
    const place = (d, low, high) => (d < -0.38 ? low : d > 0.38 ? high : "center");
    const corner = Math.abs(dx) > 0.38 && Math.abs(dy) > 0.38 ? -0.11 * this.size : 4; // in the corner of its box a name would be far away
    return { halign: place(dx, "left", "right"), valign: place(dy, "top", "bottom"), mx: Math.sign(dx) * (Math.abs(dx) > 0.38 ? corner : 0), my: Math.sign(dy) * (Math.abs(dy) > 0.38 ? corner : 0) };
  }

  build(model) {
    this.cy?.destroy();
    this.curved = model.n <= CURVED;
    this.font = this.letters = model.n <= 30 ? 12 : 11;
    this.size = model.n <= 12 ? 36 : model.n <= 40 ? 28 : model.n <= 100 ? 17 : 11;
    this.named = model.n <= NAMED;
    this.most = this.letterCount();
    const at = this.positions(model);
    const size = this.sizes(model);
    const nodes = model.run.names.map((name, k) => ({ group: "nodes", position: at[k], data: { id: `n${k}`, k, name, label: this.named || model.isMalicious(k) ? short(name, this.most) : "", malicious: model.isMalicious(k),
      colour: css(-1), size: size[k], large: 1.25 * size[k], condition: "", ...this.label(at[k]) } }));
    this.pairs = this.links(model);
    const edges = this.pairs.map((p, i) => ({ group: "edges", data: { id: `e${i}`, source: `n${p.from}`, target: `n${p.to}`, colour: css(-1), width: 1, opacity: 0.3, refused: false } }));
    this.cy = cytoscape({ container: this.box, elements: [...nodes, ...edges], style: this.sheet(), layout: { name: "preset", padding: 18 }, minZoom: 0.1, maxZoom: 5,
      boxSelectionEnabled: false, autounselectify: true, hideEdgesOnViewport: model.n > 100, pixelRatio: "auto" });
    this.listen();
    this.drawn = { node: new Int16Array(model.n).fill(-9), edge: new Int16Array(this.pairs.length).fill(-9), condition: new Array(model.n).fill("") };
    this.nodes = model.run.names.map((_, k) => this.cy.getElementById(`n${k}`));
    this.lines = this.pairs.map((_, i) => this.cy.getElementById(`e${i}`));
    this.shown = model.structure;
    this.fit();
    this.choose(this.chosen < model.n ? this.chosen : -1);
  }

  listen() {
    this.held = false;
    this.cy.on("scrollzoom pinchzoom dragpan", () => { this.held = true; });
    this.cy.on("tap", "node", (event) => this.onChoose(event.target.data("k")));
    this.cy.on("tap", (event) => event.target === this.cy && this.onChoose(-1));
    this.cy.on("mouseover", "node", (event) => {
      this.box.style.cursor = "pointer";
      event.target.data("label", event.target.data("name"));
    });
    this.cy.on("mouseout", "node", (event) => {
      this.box.style.cursor = "";
      this.relabel(event.target);
    });
  }

  /** Letters of a name: few where the picture is narrow. */
  letterCount() {
    return this.box.clientWidth < 500 ? 12 : 16;
  }

  /** Whether a name is always shown. */
  relabel(node) {
    const shown = this.named || node.data("malicious") || node.data("distrusted") || node.data("k") === this.chosen;
    node.data("label", shown ? short(node.data("name"), this.most) : "");
  }

  /** Lines to draw: one per link, or one for both directions where there are many agents. */
  links(model) {
    const pairs = [];
    for (let i = 0; i < model.edges.count; i++) {
      const from = model.edges.from[i];
      const to = model.edges.to[i];
      const back = this.curved ? undefined : model.edgeOf.get(from * model.n + to);
      if (back === undefined) pairs.push({ from, to, edges: [i] });
      else if (from < to) pairs.push({ from, to, edges: [i, back] });
    }
    return pairs;
  }

  draw(model) {
    if (this.shown !== model.structure) this.build(model);
    this.cy.batch(() => {
      for (let k = 0; k < model.n; k++) {
        const s = shade(model.agent.trust[k]);
        const condition = model.condition(k);
        if (s !== this.drawn.node[k]) {
          this.nodes[k].data({ colour: css(s), distrusted: model.agent.distrusted[k] });
          this.relabel(this.nodes[k]);
        }
        if (condition !== this.drawn.condition[k]) this.nodes[k].data("condition", condition);
        this.drawn.node[k] = s;
        this.drawn.condition[k] = condition;
      }
      this.pairs.forEach((pair, i) => this.drawLine(model, pair, i));
    });
  }

  drawLine(model, pair, i) {
    let least = NaN;
    for (const e of pair.edges) if (!(model.edges.trust[e] >= least)) least = Number.isNaN(model.edges.trust[e]) ? least : model.edges.trust[e];
    const s = shade(least);
    if (s === this.drawn.edge[i]) return;
    this.drawn.edge[i] = s;
    const low = s >= 0 && s < 10;
    const width = (this.curved ? 1.3 : 1) + Math.min(1.5, 4 * model.edges.weight[pair.edges[0]]);
    this.lines[i].data({ colour: css(s), refused: low, width: low ? width : 0.7 * width, opacity: low ? 0.95 : 0.32 });
  }

  /** The agent's own links stand out. */
  choose(k) {
    const before = this.chosen;
    this.chosen = k;
    if (!this.cy) return;
    this.cy.autounselectify(false);
    this.cy.$(":selected").unselect();
    this.cy.edges().toggleClass("aside", k >= 0);
    if (k >= 0) {
      this.nodes[k].select();
      this.nodes[k].connectedEdges().removeClass("aside");
    }
    this.cy.autounselectify(true);
    for (const one of [before, k]) if (one >= 0 && one < this.nodes.length) this.relabel(this.nodes[one]);
  }

  /** The whole graph. Names of very small pictures would be too small to read, so their letters grow as the picture shrinks. */
  fit() {
    if (!this.cy) return;
    this.cy.fit(undefined, 18);
    for (let i = 0; i < 2; i++) { // larger names need more room
      this.letters = Math.max(this.font, LEAST / this.cy.zoom());
      this.cy.style().selector("node").style({ "font-size": this.letters }).update();
      this.cy.fit(undefined, 18);
    }
  }

  restyle() {
    if (!this.cy) return;
    this.drawn.node.fill(-9);
    this.drawn.edge.fill(-9);
    this.cy.style(this.sheet());
  }

  zoom(factor) {
    const centre = { x: this.box.clientWidth / 2, y: this.box.clientHeight / 2 };
    this.held = factor !== 0;
    if (this.held) this.cy?.zoom({ level: this.cy.zoom() * factor, renderedPosition: centre });
    else this.fit();
  }

  resize() {
    this.cy?.resize();
    if (this.cy && this.most !== this.letterCount()) {
      this.most = this.letterCount();
      this.nodes.forEach((node) => this.relabel(node));
    }
    if (!this.held) this.fit();
  }
}
