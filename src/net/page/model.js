// What is known of the run: built from the lines, one after the other, in bounded memory. Lines come from a file or from agents, so every
// member is checked before it is used.
const SAMPLES = 512; // columns of history; when they are full, every second one goes
const LOG = 2000;
const TEXT = 400;
export const LATEST = 1e8; // seconds, three years: what is later is no time
const SILENT = 10; // seconds without a word
const DISTRUST = 0.25; // a median below it: not trusted
const TRUST = 0.5; // above it: trusted again

const number = (x) => (typeof x === "number" && Number.isFinite(x) ? x : NaN);
const whole = (x, below) => (Number.isInteger(x) && x >= 0 && x < below ? x : -1);
const text = (x) => (typeof x === "string" ? x.slice(0, TEXT) : "");
const array = (x) => (Array.isArray(x) ? x : []);

/** The p-quantile of the finite numbers among the first `count` of a sorted array. */
export function quantile(sorted, count, p) {
  if (count === 0) return NaN;
  const at = p * (count - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, count - 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

export class Model {
  constructor() {
    this.n = 0;
    this.run = null;
    this.epochs = []; // rounds at which the members of the run have changed
    this.time = 0; // of the last line
    this.late = 0; // seconds since it came, as far as the page counts them
    this.ended = "";
    this.log = [];
    this.logCount = 0;
    this.kinds = new Set();
    this.bad = 0;
    this.lines = 0;
    this.clearHistory();
  }

  clearHistory() {
    this.samples = 0;
    this.step = 1;
    this.sampledAt = -1;
    this.sampledTime = NaN;
    this.checked = 0; // agents that have spoken in this turn
    this.turn = 0;
    this.history = { round: [], time: [], metric: [], seconds: [], pace: [], presence: [], trust: [] };
    this.scores = { round: [], value: [], step: 1, seen: 0, name: "" };
  }

  /** Takes one line; true if it was one. */
  apply(line) {
    let o;
    try {
      o = JSON.parse(line);
    } catch {
      o = null;
    }
    const take = o && typeof o === "object" ? this[`on_${o.type}`] : undefined;
    if (typeof take !== "function" || !["run", "status", "event", "score", "end"].includes(o.type)) {
      this.bad++;
      return false;
    }
    this.lines++;
    const time = o.time <= LATEST ? number(o.time) : NaN;
    if (time >= this.time) this.time = time;
    take.call(this, o, time >= 0 ? time : this.time);
    return true;
  }

  // ---- the run ----

  on_run(o, time) {
    const names = array(o.agents).slice(0, 4096).map((name, k) => text(name).slice(0, 64) || `agent ${k}`);
    const n = names.length;
    const among = (list) => new Set(list.filter((k) => whole(k, n) >= 0));
    const before = this.run && this.follows(o, names) ? { n: this.n, agent: this.agent, edges: this.edges, refusals: this.refusals, metric: this.run.metric } : null;
    this.run = { name: text(o.name), rule: text(o.rule), attack: text(o.attack), metric: text(o.metric) || before?.metric || "", rounds: number(o.rounds) || 0, names,
      epoch: number(o.epoch) || 0, malicious: Array.isArray(o.malicious) ? among(o.malicious) : null, removed: among(array(o.removed)) };
    this.n = n;
    this.setEdges(array(o.edges), n);
    const column = (fill) => new Float64Array(n).fill(fill);
    this.agent = { round: column(-1), seen: column(-Infinity), combined: column(0), alone: column(0), skipped: column(0), idle: column(0), weight: column(NaN),
      adapt: column(NaN), wait: column(NaN), combine: column(NaN), received: column(NaN), sent: column(NaN), resident: column(NaN), metric: column(NaN),
      trust: column(NaN), complaints: column(0), told: column(-1), state: new Array(n).fill(""), excluded: new Array(n).fill(false), distrusted: new Array(n).fill(false) };
    this.refusals = Array.from({ length: n }, () => new Map());
    this.unsettled = new Set();
    if (before) this.carryOver(before);
    else {
      this.epochs = [];
      this.clearHistory();
    }
    this.heard = this.agent.round.reduce((count, r, k) => count + (r >= 0 && !this.run.removed.has(k)), 0);
    this.structure = (this.structure || 0) + 1;
  }

  /** The next epoch of the same run: its agents keep their places, new ones come behind them. */
  follows(o, names) {
    return text(o.name) === this.run.name && number(o.epoch) > this.run.epoch && names.length >= this.n && this.run.names.every((name, k) => names[k] === name);
  }

  /** What was known of those who stay. Removed agents are no longer judged, and their metric does not count. */
  carryOver(before) {
    for (const key of Object.keys(this.agent)) for (let k = 0; k < before.n; k++) this.agent[key][k] = before.agent[key][k];
    before.refusals.forEach((causes, k) => { this.refusals[k] = causes; });
    for (let i = 0; i < before.edges.count; i++) {
      const j = this.edgeOf.get(before.edges.to[i] * this.n + before.edges.from[i]);
      if (j !== undefined) for (const key of ["trust", "age", "refused", "cause", "why"]) this.edges[key][j] = before.edges[key][i];
    }
    for (const k of this.run.removed) {
      this.agent.distrusted[k] = false;
      for (const key of ["trust", "metric", "adapt", "wait", "combine"]) this.agent[key][k] = NaN;
    }
    this.epochs.push(this.history.round.at(-1) ?? 0);
  }

  setEdges(list, n) {
    const good = list.filter((e) => Array.isArray(e) && whole(e[0], n) >= 0 && whole(e[1], n) >= 0 && e[0] !== e[1]);
    const count = good.length;
    this.edges = { count, from: new Uint32Array(count), to: new Uint32Array(count), weight: new Float32Array(count), trust: new Float32Array(count).fill(NaN),
      age: new Int16Array(count).fill(-2), refused: new Float64Array(count), cause: new Array(count).fill(""), why: new Array(count).fill("") };
    this.edgeOf = new Map();
    this.outgoing = Array.from({ length: n }, () => []); // edges that lead from an agent to its receivers
    this.incoming = Array.from({ length: n }, () => []);
    good.forEach((e, i) => {
      this.edges.from[i] = e[0];
      this.edges.to[i] = e[1];
      this.edges.weight[i] = number(e[2]) || 0;
      this.edgeOf.set(e[1] * n + e[0], i);
      this.outgoing[e[0]].push(i);
      this.incoming[e[1]].push(i);
    });
  }

  // ---- statuses ----

  on_status(o, time) {
    const k = whole(o.agent, this.n);
    if (k < 0 || this.run.removed.has(k)) return;
    const a = this.agent;
    if (a.round[k] < 0) this.heard++;
    a.round[k] = Math.max(0, number(o.round) || 0);
    a.seen[k] = time;
    a.state[k] = text(o.state).slice(0, 32);
    for (const key of ["combined", "alone", "skipped", "idle", "weight", "resident"]) a[key][k] = number(o[key]);
    [a.adapt[k], a.wait[k], a.combine[k]] = [0, 1, 2].map((i) => number(array(o.seconds)[i]));
    [a.received[k], a.sent[k]] = [0, 1].map((i) => number(array(o.bytes)[i]));
    this.takeMetrics(k, o.metrics);
    for (const peer of array(o.peers)) this.takePeer(k, peer);
    this.maybeSample(k, time);
  }

  takeMetrics(k, metrics) {
    if (!metrics || typeof metrics !== "object") return;
    const names = Object.keys(metrics);
    if (!this.run.metric && names.length) this.run.metric = names[0].slice(0, 32);
    if (Object.hasOwn(metrics, this.run.metric)) this.agent.metric[k] = number(metrics[this.run.metric]);
  }

  takePeer(k, peer) {
    const from = whole(array(peer)[0], this.n);
    const i = from < 0 ? undefined : this.edgeOf.get(k * this.n + from);
    if (i === undefined) return;
    const e = this.edges;
    const refused = number(peer[3]) || 0;
    e.trust[i] = number(peer[1]);
    e.age[i] = Number.isInteger(peer[2]) ? Math.max(-1, Math.min(255, peer[2])) : -1;
    e.cause[i] = text(peer[4]);
    e.why[i] = text(peer[5]);
    if (refused > e.refused[i]) this.countRefused(k, from, e.cause[i] || "refused", refused - e.refused[i]);
    e.refused[i] = refused; // a process that was started again counts from 0
    this.unsettled.add(from);
  }

  countRefused(by, from, cause, more) {
    const causes = this.refusals[from];
    if (causes.size >= 32 && !causes.has(cause)) return;
    causes.set(cause, (causes.get(cause) || 0) + more);
    this.agent.complaints[by] += more;
  }

  /** Judges again those whose trust has changed: once for many statuses. */
  settle(time = this.time) {
    for (const k of this.unsettled ?? []) this.judge(k, time);
    this.unsettled?.clear();
  }

  /** Trust in an agent: the median over its receivers, so that one malicious receiver cannot blacken it. */
  judge(k, time) {
    const a = this.agent;
    const values = [];
    for (const i of this.outgoing[k]) if (!Number.isNaN(this.edges.trust[i])) values.push(this.edges.trust[i]);
    values.sort((x, y) => x - y);
    a.trust[k] = quantile(values, values.length, 0.5);
    if (!a.distrusted[k] && a.trust[k] < DISTRUST) {
      a.distrusted[k] = true;
      this.note(time, "distrusted", k, -1, this.whyNot(k));
    } else if (a.distrusted[k] && a.trust[k] > TRUST) {
      a.distrusted[k] = false;
      this.note(time, "trusted", k, -1, "most neighbours trust it again");
    }
  }

  /** The sentence that most receivers give. */
  whyNot(k) {
    const votes = new Map();
    let best = "";
    for (const i of this.outgoing[k]) {
      const why = this.edges.why[i];
      if (!why) continue;
      votes.set(why, (votes.get(why) || 0) + 1);
      if (!best || votes.get(why) > votes.get(best)) best = why;
    }
    return best;
  }

  // ---- events ----

  note(time, what, agent, by, words) {
    this.log.push({ time, what, agent, by, text: words });
    if (this.kinds.size < 32) this.kinds.add(what);
    this.logCount++;
    if (this.log.length > 1.25 * LOG) this.log.splice(0, this.log.length - LOG);
  }

  on_event(o, time) {
    const what = text(o.what).slice(0, 32) || "event";
    const agent = whole(o.agent, this.n);
    this.note(time, what, agent, whole(o.by, this.n), text(o.text));
    if ((what === "excluded" || what === "proof") && agent >= 0) this.agent.excluded[agent] = true;
  }

  on_end(o) {
    this.ended = text(o.text) || "the run is over";
  }

  on_score(o) {
    const s = this.scores;
    const value = number(o.value);
    s.name = text(o.name).slice(0, 32);
    if (Number.isNaN(value) || s.seen++ % s.step !== 0) return;
    s.round.push(number(o.round) || 0);
    s.value.push(value);
    if (s.round.length === 2 * SAMPLES) {
      s.round = s.round.filter((_, i) => i % 2 === 0);
      s.value = s.value.filter((_, i) => i % 2 === 0);
      s.step *= 2;
    }
  }

  // ---- history ----

  maybeSample(k, time) {
    if (this.agent.told[k] !== this.turn) this.checked++; // whoever speaks more often than the others does not hurry samples along
    this.agent.told[k] = this.turn;
    if (this.checked < this.n - this.run.removed.size && !(time - this.checkedTime > 3)) return; // a word of everybody, or of those who still speak
    this.checked = 0;
    this.turn++;
    this.checkedTime = time;
    this.settle(time);
    const rounds = Float64Array.from(this.agent.round).filter((r, k) => r >= 0 && !this.run.removed.has(k)).sort();
    const progress = Math.floor(quantile(rounds, rounds.length, 0.5));
    if (progress < this.sampledAt + this.step && this.samples > 0) return;
    this.sample(progress, time);
  }

  /** Quantiles, and the median distance from the median, which a few absurd values do not move. */
  spread(values) {
    const honest = Float64Array.from(values).filter((v, k) => !Number.isNaN(v) && this.isBelieved(k)).sort();
    const [low, tenth, middle, ninth, high] = [0, 0.1, 0.5, 0.9, 1].map((p) => quantile(honest, honest.length, p));
    const far = honest.map((v) => Math.abs(v - middle)).sort();
    return [low, tenth, middle, ninth, high, quantile(far, far.length, 0.5)];
  }

  middle(values) {
    const sorted = Float64Array.from(values).filter((v) => !Number.isNaN(v)).sort();
    return quantile(sorted, sorted.length, 0.5);
  }

  presence() {
    const count = [0, 0, 0];
    for (let i = 0; i < this.edges.count; i++) {
      const age = this.edges.age[i];
      if (age >= -1) count[age === 0 ? 0 : age > 0 ? 1 : 2]++;
    }
    const all = count[0] + count[1] + count[2];
    return all ? count.map((c) => (100 * c) / all) : [NaN, NaN, NaN];
  }

  sample(progress, time) {
    const h = this.history;
    const a = this.agent;
    const pace = (time - this.sampledTime) / (progress - this.sampledAt);
    h.round.push(progress);
    h.time.push(time);
    h.metric.push(this.spread(a.metric));
    h.seconds.push([this.middle(a.adapt), this.middle(a.wait), this.middle(a.combine)]);
    h.pace.push(pace > 0 && Number.isFinite(pace) ? pace : NaN);
    h.presence.push(this.presence());
    h.trust.push(Float32Array.from(a.trust));
    this.sampledAt = progress;
    this.sampledTime = time;
    this.samples++;
    if (h.round.length === SAMPLES) {
      for (const key of Object.keys(h)) h[key] = h[key].filter((_, i) => i % 2 === 0);
      this.step = Math.max(2 * this.step, Math.ceil((2 * (h.round[h.round.length - 1] - h.round[0])) / SAMPLES));
    }
  }

  // ---- what the page asks ----

  isMalicious(k) {
    return this.run?.malicious?.has(k) ?? false;
  }

  /** One word for the ring around a node. */
  condition(k) {
    const a = this.agent;
    if (this.run.removed.has(k)) return "removed";
    if (a.excluded[k]) return "excluded";
    if (a.round[k] < 0) return "not heard";
    if (this.ended) return "done";
    if (a.state[k] === "left") return "left";
    if (this.time + this.late - a.seen[k] > SILENT) return "silent";
    return a.state[k] || "heard";
  }

  /** Whose word counts: what an agent says of itself nobody checks, so that of agents that are malicious or not trusted is left out. */
  isBelieved(k) {
    return !this.run.removed.has(k) && !this.isMalicious(k) && !this.agent.distrusted[k] && !this.agent.excluded[k];
  }

  /** Frames that those agents have refused. */
  refused() {
    return this.agent.complaints.reduce((sum, count, k) => sum + (this.isBelieved(k) ? count : 0), 0);
  }

  /** The mean over those agents of the share of their rounds that they were alone: one that exaggerates counts as one. */
  alone() {
    const a = this.agent;
    const shares = this.members().filter((k) => this.isBelieved(k) && a.combined[k] + a.alone[k] > 0).map((k) => a.alone[k] / (a.combined[k] + a.alone[k]));
    return shares.length ? shares.reduce((x, y) => x + y, 0) / shares.length : NaN;
  }

  /** Members of the run, by number. */
  members() {
    return this.run.names.map((_, k) => k).filter((k) => !this.run.removed.has(k));
  }

  /** The round of the last agent, and the one that at least a third of them have reached: a few can say anything. */
  progress() {
    const rounds = Float64Array.from(this.agent.round).filter((r, k) => r >= 0 && this.isBelieved(k)).sort();
    return rounds.length ? [rounds[0], rounds[Math.floor((2 * rounds.length) / 3)]] : [NaN, NaN];
  }

  trustOver(k) {
    return this.history.trust.map((column) => column[k] ?? NaN);
  }
}
