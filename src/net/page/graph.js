// The graph of agents, by Cytoscape.js: up to 200 of them.
import cytoscape from "cytoscape";
import { css, shade, style } from "./colours.js";

const CURVED = 40; // agents up to which each direction of a link has a line of its own

export class Graph {
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.cy = null;
    this.shown = -1;
  }

  sheet() {
    const ink = style("--ink");
    const edge = this.curved ? { "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.7, "target-arrow-color": "data(colour)" } : { "curve-style": "haystack" };
    return [
      { selector: "node", style: { "background-color": "data(colour)", width: "data(size)", height: "data(size)", label: "data(name)", color: ink, "font-size": this.font, "text-valign": "bottom",
        "text-margin-y": 3, "border-width": 2, "border-color": style("--ring"), "text-outline-color": style("--card"), "text-outline-width": 2, "min-zoomed-font-size": 7 } },
      { selector: "node[?malicious]", style: { shape: "diamond", "border-width": 3, "border-color": style("--bad") } },
      { selector: "node[condition = 'alone'], node[condition = 'idle'], node[condition = 'gathering']", style: { "border-style": "dashed", "border-color": ink } },
      { selector: "node[condition = 'silent'], node[condition = 'left'], node[condition = 'not heard']", style: { "border-style": "dotted", "border-color": style("--soft"), "background-opacity": 0.45 } },
      { selector: "node[condition = 'excluded']", style: { "border-style": "double", "border-width": 7, "border-color": style("--bad") } },
      { selector: "edge", style: { ...edge, "line-color": "data(colour)", width: "data(width)", opacity: "data(opacity)" } },
      { selector: "edge[?refused]", style: this.curved ? { "line-style": "dashed" } : {} },
      { selector: "node:selected", style: { "underlay-color": style("--accent"), "underlay-opacity": 0.3, "underlay-padding": 8, "underlay-shape": "ellipse" } },
    ];
  }

  /** In circles up to 24 agents and where links are many, otherwise by forces, from a circle: the same picture every time. */
  layout(model) {
    const dense = model.edges.count > 0.4 * model.n * (model.n - 1);
    if (model.n <= 24 || dense) return { name: "circle", padding: 30, animate: false };
    return { name: "cose", padding: 20, animate: false, randomize: false, nodeRepulsion: () => 9000, idealEdgeLength: () => 50, numIter: model.n > 100 ? 300 : 800 };
  }

  build(model) {
    this.cy?.destroy();
    this.curved = model.n <= CURVED;
    this.font = model.n <= 30 ? 11 : 8;
    const size = model.n <= 12 ? 38 : model.n <= 40 ? 28 : model.n <= 100 ? 18 : 12;
    const nodes = model.run.names.map((name, k) => ({ group: "nodes", data: { id: `n${k}`, k, name, malicious: model.isMalicious(k), colour: css(-1), size, condition: "" },
      position: { x: 400 * Math.cos((2 * Math.PI * k) / model.n), y: 400 * Math.sin((2 * Math.PI * k) / model.n) } }));
    this.pairs = this.links(model);
    const edges = this.pairs.map((p, i) => ({ group: "edges", data: { id: `e${i}`, source: `n${p.from}`, target: `n${p.to}`, colour: css(-1), width: 1, opacity: 0.4, refused: false } }));
    this.cy = cytoscape({ container: this.box, elements: [...nodes, ...edges], style: this.sheet(), layout: this.layout(model), minZoom: 0.1, maxZoom: 5,
      boxSelectionEnabled: false, autounselectify: true, hideEdgesOnViewport: model.n > 100, pixelRatio: "auto" });
    this.cy.on("tap", "node", (event) => this.onChoose(event.target.data("k")));
    this.cy.on("tap", (event) => event.target === this.cy && this.onChoose(-1));
    this.cy.on("mouseover", "node", () => { this.box.style.cursor = "pointer"; });
    this.cy.on("mouseout", "node", () => { this.box.style.cursor = ""; });
    this.drawn = { node: new Int16Array(model.n).fill(-9), edge: new Int16Array(this.pairs.length).fill(-9), condition: new Array(model.n).fill("") };
    this.nodes = model.run.names.map((_, k) => this.cy.getElementById(`n${k}`));
    this.lines = this.pairs.map((_, i) => this.cy.getElementById(`e${i}`));
    this.shown = model.structure;
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
        if (s !== this.drawn.node[k]) this.nodes[k].data("colour", css(s));
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
    const width = (this.curved ? 1.4 : 1) + Math.min(2, 5 * model.edges.weight[pair.edges[0]]);
    this.lines[i].data({ colour: css(s), refused: low, width: low ? width : 0.8 * width, opacity: low ? 0.9 : this.curved ? 0.5 : 0.35 });
  }

  choose(k) {
    if (!this.cy) return;
    this.cy.autounselectify(false);
    this.cy.$(":selected").unselect();
    if (k >= 0) this.nodes[k].select();
    this.cy.autounselectify(true);
  }

  restyle() {
    if (!this.cy) return;
    this.drawn.node.fill(-9);
    this.drawn.edge.fill(-9);
    this.cy.style(this.sheet());
  }

  zoom(factor) {
    const centre = { x: this.box.clientWidth / 2, y: this.box.clientHeight / 2 };
    if (factor === 0) this.cy?.fit(undefined, 30);
    else this.cy?.zoom({ level: this.cy.zoom() * factor, renderedPosition: centre });
  }

  resize() {
    this.cy?.resize();
    this.cy?.fit(undefined, 30);
  }
}
