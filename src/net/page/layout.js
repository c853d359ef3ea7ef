// Where agents stand whose links are few. The two slowest modes of the graph unfold rings, grids and clusters; from there, stress majorization
// makes distances on the page like those along the links.
const WALKS = 10; // steps of the random walk for each agent
const STEPS = 120; // of majorization

/** Makes a vector orthogonal to others, which have length 1, and gives it length 1. */
function orthogonal(v, others) {
  for (const o of others) {
    let along = 0;
    for (let k = 0; k < v.length; k++) along += v[k] * o[k];
    for (let k = 0; k < v.length; k++) v[k] -= along * o[k];
  }
  const length = Math.sqrt(v.reduce((sum, w) => sum + w * w, 0)) || 1;
  for (let k = 0; k < v.length; k++) v[k] /= length;
}

/** One step of a lazy random walk, which wears the slow modes down least. */
function walk(v, neighbours) {
  return v.map((own, k) => {
    let sum = 0;
    for (const l of neighbours[k]) sum += v[l];
    return neighbours[k].length ? 0.5 * own + (0.5 * sum) / neighbours[k].length : own;
  });
}

function modes(neighbours) {
  const n = neighbours.length;
  const constant = new Array(n).fill(1 / Math.sqrt(n));
  let x = Array.from({ length: n }, (_, k) => Math.cos((2 * Math.PI * k) / n) + 1e-3 * Math.cos(7 * k));
  let y = Array.from({ length: n }, (_, k) => Math.sin((2 * Math.PI * k) / n) + 1e-3 * Math.sin(11 * k));
  for (let i = 0; i < WALKS * n; i++) {
    orthogonal(x, [constant]);
    orthogonal(y, [constant, x]);
    x = walk(x, neighbours);
    y = walk(y, neighbours);
  }
  orthogonal(x, [constant]);
  orthogonal(y, [constant, x]);
  return [x, y];
}

/** Steps along links from one agent to all; what cannot be reached is a little further than the rest. */
function distances(neighbours, from) {
  const far = new Float64Array(neighbours.length).fill(NaN);
  const queue = [from];
  far[from] = 0;
  for (let i = 0; i < queue.length; i++) {
    for (const l of neighbours[queue[i]]) {
      if (Number.isNaN(far[l])) {
        far[l] = far[queue[i]] + 1;
        queue.push(l);
      }
    }
  }
  const most = far[queue.at(-1)] + 2;
  return far.map((d) => (Number.isNaN(d) ? most : d));
}

/** A step of majorization for agent k: the weighted mean of where each other one would like it to be. */
function pull(x, y, goal, k) {
  let sum = 0;
  let toX = 0;
  let toY = 0;
  for (let l = 0; l < x.length; l++) {
    if (l === k) continue;
    const weight = 1 / (goal[l] * goal[l]);
    const apart = Math.sqrt((x[k] - x[l]) ** 2 + (y[k] - y[l]) ** 2) || 1e-9;
    sum += weight;
    toX += weight * (x[l] + (goal[l] * (x[k] - x[l])) / apart);
    toY += weight * (y[l] + (goal[l] * (y[k] - y[l])) / apart);
  }
  x[k] = toX / sum;
  y[k] = toY / sum;
}

/** How far away the closest other agent is, for the crowded quarter of them. */
function crowd(x, y) {
  const near = x.map((_, k) => Math.sqrt(x.reduce((least, _, l) => (l === k ? least : Math.min(least, (x[k] - x[l]) ** 2 + (y[k] - y[l]) ** 2)), Infinity)));
  return near.sort((p, q) => p - q)[Math.floor(near.length / 4)] || 1;
}

/** Positions of all agents, `space` apart at least but where it is very crowded. */
export function spread(model, space) {
  const n = model.n;
  const neighbours = Array.from({ length: n }, () => []);
  for (let i = 0; i < model.edges.count; i++) {
    neighbours[model.edges.to[i]].push(model.edges.from[i]);
    neighbours[model.edges.from[i]].push(model.edges.to[i]);
  }
  const goals = neighbours.map((_, k) => distances(neighbours, k));
  const size = 0.3 * Math.max(...goals.map((row) => Math.max(...row))) * Math.sqrt(n);
  const [x, y] = modes(neighbours).map((mode) => mode.map((v, k) => v * size + 1e-3 * Math.cos(13 * k))); // nobody in the same place
  for (let i = 0; i < STEPS; i++) for (let k = 0; k < n; k++) pull(x, y, goals[k], k);
  const scale = space / crowd(x, y);
  return x.map((v, k) => ({ x: v * scale, y: y[k] * scale }));
}
