// The page: lines come in, the views are drawn at most once per frame, and no more than a few times a second.
import { Chart, metricFactor, metricText, metricTitle, metricUnit, range, timeUnit } from "./charts.js";
import { css, isDark, shade, STEPS } from "./colours.js";
import { CURVED, Graph } from "./graph.js";
import { Matrix } from "./matrix.js";
import { Model } from "./model.js";
import { Replay } from "./replay.js";

const GRAPH_MOST = 200;
const LIST_MOST = 60;
const LOG_MOST = 150;
const PERIOD = 250; // ms between drawings
const PATIENCE = 15000; // ms until an empty page asks why

const $ = (id) => document.getElementById(id);
const page = { model: new Model(), view: "", chosen: -1, dirty: true, drawn: 0, replaying: false, settled: false, came: 0, frames: 0 };

/** An element with a class and a text: everything that is shown goes through here or textContent. */
function element(tag, text, name) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
}

const show = (x, digits = 3) => (Number.isFinite(x) ? Number(x.toPrecision(digits)).toString() : "–");
const bytes = (x) => {
  if (!Number.isFinite(x)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (x >= 1000 && i < units.length - 1) (x /= 1000), i++;
  return `${show(x)} ${units[i]}`;
};
const duration = (x) => {
  const [unit, factor] = timeUnit(x);
  return Number.isFinite(x) ? `${show(x * factor)} ${unit}` : "–";
};
const tenth = (x) => Math.round(10 * x) / 10;
const fixed = (x) => (Number.isFinite(x) ? x.toFixed(2) : "–");
const percent = (x) => (Number.isFinite(x) ? `${show(100 * x, 3)} %` : "–");
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const names = (m, list, most = 6) => list.slice(0, most).map((k) => m.run.names[k]).join(", ") + (list.length > most ? ` and ${list.length - most} more` : "");
const put = (id, text) => {
  if ($(id).textContent !== text) $(id).textContent = text;
};

function swatch(trust) {
  const s = element("span", undefined, "swatch");
  s.style.backgroundColor = css(shade(trust));
  return s;
}

// ---- the top ----

function drawTop(m) {
  const [least, most] = m.progress();
  const a = m.agent;
  const alone = m.alone();
  const score = m.scores.value.at(-1);
  const last = m.history.metric.at(-1);
  const metric = (score !== undefined && m.scores.name) || m.run.metric;
  const members = m.n - m.run.removed.size;
  const distrusted = a.distrusted.filter(Boolean).length;
  const facts = [plural(members, "agent"), m.run.malicious ? `${m.run.malicious.size} malicious` : "", plural(m.edges.count, "link"), `rule ${m.run.rule || "unknown"}`,
    m.run.attack ? `attack ${m.run.attack}` : "", m.run.epoch > 1 ? `epoch ${m.run.epoch}` : ""];
  put("run-name", m.run.name);
  put("run-facts", facts.filter(Boolean).join(" · "));
  put("tile-round", Number.isNaN(most) ? "–" : `${least === most ? most : `${least}–${most}`}${m.run.rounds ? ` / ${m.run.rounds}` : ""}`);
  put("tile-metric-name", metricTitle(metric) || "Metric");
  put("tile-metric", metricText(metric, score ?? last?.[2] ?? NaN));
  put("tile-heard", `${m.heard} / ${members}`);
  put("tile-alone", Number.isNaN(alone) ? "–" : `${show(100 * alone, 2)} %`);
  put("tile-refused", String(m.refused()));
  put("tile-distrusted", String(distrusted));
  $("tile-bad").classList.toggle("alarm", distrusted > 0);
}

/** What the colours say, in a sentence. */
function verdict(m) {
  const all = m.members();
  const bad = all.filter((k) => m.agent.distrusted[k]);
  if (!m.heard) return ["wait", "", performance.now() > PATIENCE && !page.replaying ? "No agent has been heard yet. Are its broker and its agents running?" : "Waiting for the first reports of agents…"];
  if (!all.some((k) => !Number.isNaN(m.agent.trust[k]))) return ["wait", "", "No models have been combined yet."];
  if (!m.run.malicious) return bad.length ? ["bad", `Not trusted by their neighbours: ${names(m, bad)}.`, ""] : ["good", "", "All agents are trusted by their neighbours."];
  const marked = all.filter((k) => m.isMalicious(k));
  const found = marked.filter((k) => m.agent.distrusted[k]);
  const wronged = bad.filter((k) => !m.isMalicious(k));
  const also = wronged.length ? ` Honest, but not trusted: ${names(m, wronged)}.` : "";
  if (!marked.length) return wronged.length ? ["bad", "", also.trim()] : ["good", "", "No agent is malicious, and all are trusted."];
  if (marked.every((k) => Number.isNaN(m.agent.trust[k]))) return [also ? "bad" : "good", "", `No malicious agent's model has been combined.${also}`];
  if (!found.length) return [also ? "bad" : "good", "", `${marked.length === 1 ? "The malicious agent is" : `All ${marked.length} malicious agents are`} still trusted.${also}`];
  const some = found.length === 1 ? "agent has" : "agents have";
  const who = found.length < marked.length ? `${found.length} of ${marked.length} malicious agents found out`
    : `${marked.length === 1 ? "The" : marked.length === 2 ? "Both" : `All ${marked.length}`} malicious ${some} been found out`;
  return [wronged.length ? "bad" : "found", `${who}:`, ` ${names(m, found)}. ${wronged.length ? also.trim() : "No honest agent is distrusted."}`];
}

function drawVerdict(m) {
  const [tone, strong, words] = verdict(m);
  const quiet = m.heard && m.late > 0 && m.members().every((k) => ["silent", "not heard"].includes(m.condition(k)));
  const rest = page.lost ? `${words} This is the last known state: reef dash does not answer.` : quiet ? `${words} Nobody has been heard lately: is the broker running?` : words;
  if ($("verdict").textContent === strong + rest) return;
  $("verdict").dataset.tone = page.lost || quiet ? "wait" : tone;
  const line = element("span");
  if (strong) line.append(element("b", strong));
  line.append(rest);
  $("verdict").replaceChildren(line);
}

function drawState(m) {
  const text = page.lost ? "connection lost" : m.ended || (m.heard && m.members().every((k) => m.agent.state[k] === "left")) ? "ended" : !m.run ? "waiting" : page.replaying ? "replay" : "live";
  put("state", text);
  $("state").dataset.state = text;
  document.title = m.run ? `Reef: ${m.run.name}` : "Reef: live";
}

// ---- agents ----

function order(m) {
  const find = $("find").value.trim().toLowerCase();
  const list = [];
  for (let k = 0; k < m.n; k++) if (!find || m.run.names[k].toLowerCase().includes(find)) list.push(k);
  if (m.n > LIST_MOST) {
    const key = (k) => (Number.isNaN(m.agent.trust[k]) ? 2 : m.agent.trust[k]);
    list.sort((x, y) => key(x) - key(y) || x - y);
  }
  return list;
}

function agentRow() {
  const row = element("tr");
  const name = element("td");
  const button = element("button", "", "link");
  button.type = "button";
  button.addEventListener("click", () => choose(Number(row.dataset.agent)));
  name.append(swatch(NaN), button, element("span", "malicious", "mark"));
  row.append(name, element("td", "", "number"), element("td", "", "number"), element("td", "", "state"));
  return row;
}

function drawAgents(m) {
  const list = order(m);
  const body = $("agent-rows");
  const count = Math.min(list.length, LIST_MOST);
  while (body.children.length < count) body.append(agentRow());
  while (body.children.length > count) body.lastChild.remove();
  for (let i = 0; i < count; i++) fillRow(m, body.children[i], list[i]);
  $("agents-empty").hidden = count > 0;
  put("agents-empty", m.n ? "No agent has a matching name." : "No agents are known yet.");
  put("agents-more", list.length > count ? `${count} of ${list.length} agents, least trusted first` : "");
}

function fillRow(m, row, k) {
  const [name, trust, round, state] = row.children;
  const [colour, button, mark] = name.children;
  row.dataset.agent = k;
  row.dataset.trust = show(m.agent.trust[k]);
  row.dataset.shade = shade(m.agent.trust[k]);
  row.classList.toggle("chosen", k === page.chosen);
  row.classList.toggle("gone", m.run.removed.has(k));
  colour.style.backgroundColor = css(shade(m.agent.trust[k]));
  if (button.textContent !== m.run.names[k]) button.textContent = m.run.names[k];
  button.setAttribute("aria-pressed", String(k === page.chosen));
  mark.hidden = !m.isMalicious(k);
  trust.textContent = fixed(m.agent.trust[k]);
  round.textContent = m.agent.round[k] < 0 ? "–" : m.agent.round[k];
  state.textContent = m.condition(k);
}

// ---- one agent ----

function facts(m, k) {
  const a = m.agent;
  const ago = m.time + m.late - a.seen[k];
  const count = (x) => (Number.isFinite(x) ? String(x) : "–");
  return [
    ["State", m.condition(k)],
    ["Known to be", m.run.malicious ? (m.isMalicious(k) ? "malicious" : "honest") : "–"],
    ["Last seen", Number.isFinite(ago) ? (ago < 1 ? "now" : `${show(ago, 2)} s ago`) : "never"],
    ["Round", a.round[k] < 0 ? "–" : String(a.round[k])],
    ["Rounds combined", count(a.combined[k])],
    ["Rounds alone", count(a.alone[k])],
    ["Idle / skipped", `${count(a.idle[k])} / ${count(a.skipped[k])}`],
    ["Weight heard", percent(a.weight[k])],
    [metricTitle(m.run.metric) || "Metric", metricText(m.run.metric, a.metric[k])],
    ["Received", bytes(a.received[k])],
    ["Sent", bytes(a.sent[k])],
    ["Memory", bytes(a.resident[k])],
  ];
}

function whyText(m, k) {
  const a = m.agent;
  if (m.run.removed.has(k)) return "Removed from the run by the coordinator.";
  if (a.excluded[k]) return "Excluded: a proof shows that it signed two models for one round.";
  if (Number.isNaN(a.trust[k])) return "No agent has combined its model yet.";
  const why = m.whyNot(k);
  if (a.trust[k] < 0.5) return why ? `Not trusted. ${why[0].toUpperCase()}${why.slice(1)}.` : "Not trusted: most neighbours gave its model little or no weight.";
  return "Trusted: most neighbours give it its fair share.";
}

/** Changes seldom, so that it can be said aloud. */
function trustWord(m, k) {
  if (m.run.removed.has(k)) return "removed";
  if (m.agent.excluded[k]) return "excluded";
  return Number.isNaN(m.agent.trust[k]) ? "trust not known yet" : m.agent.distrusted[k] ? "not trusted" : "trusted";
}

function fill(list, rows) {
  list.replaceChildren(...rows);
}

function drawDetail(m) {
  const k = page.chosen;
  put("chosen-text", k < 0 ? "" : `${m.run.names[k]}: ${trustWord(m, k)}.`);
  $("chosen-link").hidden = k < 0;
  $("detail").hidden = k < 0;
  document.querySelector("main").classList.toggle("picked", k >= 0);
  if (k < 0) return;
  put("detail-title", m.run.names[k]);
  put("detail-why", whyText(m, k));
  $("detail-why").classList.toggle("bad", m.agent.excluded[k] || m.agent.trust[k] < 0.5);
  fill($("detail-facts"), facts(m, k).map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
  const refused = [...m.refusals[k]].sort((x, y) => y[1] - x[1]);
  fill($("detail-refused"), refused.length ? refused.map(([cause, count]) => element("li", `${cause}: ${count}`)) : [element("li", "None.")]);
  fill($("detail-peers"), peers(m, k));
  charts.trust.resize();
  charts.trust.set([m.history.round, m.trustOver(k), m.history.round.map(() => 1)]);
}

function peers(m, k) {
  const both = new Map();
  for (const i of m.outgoing[k]) both.set(m.edges.to[i], [i, undefined]);
  for (const i of m.incoming[k]) both.set(m.edges.from[i], [both.get(m.edges.from[i])?.[0], i]);
  return [...both].slice(0, LIST_MOST).map(([peer, [out, back]]) => {
    const row = element("tr");
    const cell = (i) => {
      const c = element("td", undefined, "number");
      const trust = i === undefined ? NaN : m.edges.trust[i];
      c.append(swatch(trust), fixed(trust));
      return c;
    };
    row.append(element("td", m.run.names[peer]), cell(out), cell(back));
    return row;
  });
}

// ---- curves ----

const charts = {};

function makeCharts() {
  charts.curve = new Chart($("chart-curve"), [
    { colour: "--soft", width: 0.5 }, { colour: "--a", width: 0.5 }, { label: "median of agents", colour: "--a" },
    { colour: "--a", width: 0.5 }, { colour: "--soft", width: 0.5 }, { label: "whole network", colour: "--b", dash: [6, 4], optional: true },
  ], { bands: [[1, 5, "--band-wide"], [2, 4, "--band"]], scale: { range: (_, low, high) => curveRange(low, high) } });
  charts.times = new Chart($("chart-times"), [
    { label: "round", colour: "--ink" }, { label: "adapt", colour: "--a" }, { label: "wait", colour: "--b" }, { label: "combine", colour: "--c", dash: [5, 3] },
  ], { scale: { range: (_, low, high) => [0, Math.max(high, 1e-4) * 1.08] } });
  charts.presence = new Chart($("chart-presence"), [
    { label: "fresh", colour: "--a" }, { label: "old", colour: "--c", dash: [5, 3] }, { label: "missing", colour: "--b" },
  ], { scale: { range: () => [0, 103] }, unit: "% of models" });
  charts.trust = new Chart($("chart-trust"), [{ label: "median", colour: "--a", steps: true }, { label: "fair share", colour: "--soft", width: 1, dash: [4, 4] }],
    { scale: { range: (_, low, high) => [0, Math.max(1.1, high * 1.05)] }, height: 145 });
}

/** Lines in the middle are seen whole; edges of the bands as far as they are near these, since any agent can report any number. */
let curveLimits = [-Infinity, Infinity];
function limitCurve(middle, far, scores) {
  const finite = [...middle, ...scores].filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = high - low + 10 * Math.max(0, ...far.filter(Number.isFinite));
  curveLimits = finite.length && room > 0 ? [low - room, high + room] : [-Infinity, Infinity];
}

function curveRange(low, high) {
  if (low === null || high === null) return [0, 1];
  return range(Math.max(low, curveLimits[0]), Math.min(high, curveLimits[1]));
}

/** Scores of the whole network at the rounds of the samples. */
function scoresAt(m) {
  const out = [];
  let j = 0;
  for (const round of m.history.round) {
    while (j + 1 < m.scores.round.length && m.scores.round[j + 1] <= round) j++;
    out.push(m.scores.round.length && m.scores.round[j] <= round ? m.scores.value[j] : NaN);
  }
  return out;
}

function drawCharts(m) {
  const h = m.history;
  const column = (list, i) => list.map((row) => row[i]);
  const factor = metricFactor(m.run.metric || m.scores.name);
  const scores = scoresAt(m).map((v) => v * factor);
  const spread = [4, 3, 2, 1, 0].map((i) => column(h.metric, i).map((v) => v * factor));
  const name = m.run.metric || m.scores.name;
  limitCurve(spread[2], column(h.metric, 5).map((v) => v * factor), scores);
  charts.curve.set([h.round, ...spread, scores], name ? `${metricTitle(name).toLowerCase()}${metricUnit(name) ? `, ${metricUnit(name)}` : ""}` : "");
  const [unit, times] = timeUnit(h.pace.reduce((most, v) => (v > most ? v : most), 0));
  charts.times.set([h.round, h.pace.map((v) => v * times), ...[0, 1, 2].map((i) => column(h.seconds, i).map((v) => v * times))], unit);
  charts.presence.set([h.round, ...[0, 1, 2].map((i) => column(h.presence, i))]);
  const now = h.metric.at(-1);
  const honest = m.run.malicious ? "honest agents" : "agents";
  put("curve-hint", now && Number.isFinite(now[2]) ? `Over ${honest}: median ${metricText(name, now[2])}, from ${metricText(name, now[0])} to ${metricText(name, now[4])}. Bands: 10 to 90 % of them, and all.`
    : Number.isFinite(scores.at(-1)) ? `Network: ${metricText(name, scores.at(-1) / factor)}` : "Agents have not reported a metric yet.");
  put("times-hint", h.pace.length > 1 ? `The last rounds took ${duration(h.pace.at(-1))} each; medians over agents.` : "No round has ended yet.");
  const here = h.presence.at(-1);
  put("presence-hint", here && Number.isFinite(here[0]) ? `Last round: ${tenth(here[0])} % fresh, ${tenth(here[1])} % old, ${tenth(here[2])} % missing.` : "No models have been combined yet.");
}

// ---- events ----

let logged = "";
function drawLog(m) {
  const kind = $("log-kind").value;
  const find = $("log-find").value.trim().toLowerCase();
  const key = `${m.logCount} ${kind} ${find} ${m.structure}`;
  if (key === logged) return;
  logged = key;
  for (const word of m.kinds) if (![...$("log-kind").options].some((o) => o.value === word)) $("log-kind").append(new Option(word, word));
  const name = (k) => (k >= 0 ? m.run?.names[k] ?? "" : "");
  const hit = (e) => (!kind || e.what === kind) && (!find || `${e.what} ${name(e.agent)} ${name(e.by)} ${e.text}`.toLowerCase().includes(find));
  const rows = [];
  let hits = 0;
  for (let i = m.log.length - 1; i >= 0; i--) {
    const e = m.log[i];
    if (!hit(e) || ++hits > LOG_MOST) continue;
    const row = element("tr");
    row.dataset.what = e.what;
    const what = element("td");
    what.append(element("span", e.what, "what"));
    if (name(e.agent)) what.append(` ${name(e.agent)}`);
    if (name(e.by) && e.by !== e.agent) what.append(element("span", ` reported by ${name(e.by)}`, "by"));
    if (e.text) what.append(element("span", e.text, "text"));
    row.append(element("td", `${e.time.toFixed(1)} s`, "number"), what);
    rows.push(row);
  }
  fill($("log-rows"), rows);
  $("log-empty").hidden = rows.length > 0;
  put("log-empty", m.logCount ? "No event matches." : "Nothing has happened yet.");
  put("log-more", hits > LOG_MOST || hits < m.logCount ? `${Math.min(hits, LOG_MOST)} of ${hits} matching events shown; ${m.logCount} events so far` : "");
}

// ---- the network ----

const graph = new Graph($("graph"), choose);
const matrix = new Matrix($("matrix"), choose);

function setView(view) {
  page.view = view;
  $("graph").hidden = view !== "graph";
  $("matrix").hidden = view !== "matrix";
  $("order").hidden = view !== "matrix";
  $("view-graph").setAttribute("aria-pressed", String(view === "graph"));
  $("view-matrix").setAttribute("aria-pressed", String(view === "matrix"));
  drawLegend();
  page.dirty = true;
}

function setOrder(sorted) {
  matrix.sorted = sorted;
  $("order").setAttribute("aria-pressed", String(sorted));
  page.dirty = page.now = true;
}

function drawLegend() {
  const bar = element("span", undefined, "bar");
  for (let s = 0; s <= STEPS; s += 4) {
    const step = element("span");
    step.style.backgroundColor = css(s);
    bar.append(step);
  }
  const item = (name, text) => {
    const i = element("span", undefined, "item");
    i.append(element("span", undefined, `key ${name}`), text);
    return i;
  };
  const scale = element("span", undefined, "item");
  scale.append("no trust", bar, "full share");
  const unknown = element("span", undefined, "item");
  unknown.append(swatch(NaN), "unknown");
  const marked = page.model.run?.malicious ? [item("diamond", "known to be malicious")] : [];
  const shapes = page.view === "graph" ? [item("line", "trusted link"), item(page.model.n > CURVED ? "line full" : "line cut", "hardly any weight"), ...marked, item("dashed", "alone or idle"), item("dotted", "silent, left or removed"), item("double", "excluded")]
    : [element("span", "rows receive, columns send; the strip on top is the median trust in each sender", "item")];
  fill($("legend"), [scale, unknown, ...shapes]);
}

function describe(m) {
  const bad = [];
  for (let k = 0; k < m.n && bad.length < 12; k++) if (m.agent.distrusted[k]) bad.push(m.run.names[k]);
  const text = `${m.n} agents; not trusted: ${bad.length ? bad.join(", ") : "nobody"}. The list of agents says the same in text. Arrow keys select an agent.`;
  for (const id of ["graph", "matrix"]) if ($(id).getAttribute("aria-label") !== text) $(id).setAttribute("aria-label", text);
}

function drawNetwork(m) {
  if (page.structure !== m.structure) {
    page.structure = m.structure;
    if (page.members !== undefined && page.members !== m.run.name) choose(-1); // another run at the same address
    if (page.members === m.run.name && m.n <= GRAPH_MOST) drawLegend(); // the next epoch: the view stays
    else setView(m.n > GRAPH_MOST ? "matrix" : "graph");
    page.members = m.run.name;
    setOrder(m.edges.count < 0.1 * m.n * m.n);
    $("view-graph").disabled = m.n > GRAPH_MOST;
    $("view-graph").title = m.n > GRAPH_MOST ? `The graph is drawn for up to ${GRAPH_MOST} agents` : "";
  }
  if (page.view === "graph") graph.draw(m);
  else matrix.draw(m);
  describe(m);
}

function choose(k) {
  const back = k < 0 && $("detail").contains(document.activeElement) ? page.chosen : -1;
  page.chosen = k;
  // The button that was pressed goes away with the card: the keyboard stays where the agent was chosen.
  if (back >= 0) (document.querySelector(`[data-agent='${back}'] button`) ?? $(page.view)).focus();
  graph.choose(k);
  matrix.choose(k);
  page.dirty = true;
  page.now = true;
}

function onKey(event) {
  const n = page.model.n;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step && n) {
    event.preventDefault();
    choose(page.chosen < 0 ? (step > 0 ? 0 : n - 1) : (page.chosen + step + n) % n);
  }
}

// ---- drawing ----

function draw(now) {
  page.frames++;
  requestAnimationFrame(draw);
  if (!page.replaying && now - page.drawn > 1000) page.dirty = true; // that nothing comes is to be seen, too
  if (!page.dirty || (now - page.drawn < PERIOD && !page.now)) return;
  const m = page.model;
  page.dirty = page.now = false;
  m.late = page.settled && !page.replaying && !m.ended ? Math.max(0, (now - page.came) / 1000) : 0;
  page.drawn = now;
  drawState(m);
  if (!m.run) return;
  m.settle();
  if (page.chosen >= m.n) page.chosen = -1;
  drawNetwork(m);
  drawVerdict(m);
  drawTop(m);
  drawAgents(m);
  drawDetail(m);
  drawCharts(m);
  drawLog(m);
}

function redress() {
  $("theme").textContent = isDark() ? "Light" : "Dark";
  graph.restyle();
  for (const chart of Object.values(charts)) chart.make();
  drawLegend();
  page.dirty = page.now = true;
}

function wire() {
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    redress();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  for (const id of ["find", "log-find", "log-kind"]) $(id).addEventListener("input", () => { page.dirty = page.now = true; });
  $("view-graph").addEventListener("click", () => setView("graph"));
  $("view-matrix").addEventListener("click", () => setView("matrix"));
  $("order").addEventListener("click", () => setOrder(!matrix.sorted));
  $("detail-close").addEventListener("click", () => choose(-1));
  $("chosen-link").addEventListener("click", (event) => {
    event.preventDefault(); // the address stays as it is
    $("detail").scrollIntoView();
    $("detail-title").focus({ preventScroll: true });
  });
  const zoom = (factor) => (page.view === "graph" ? graph : matrix).zoom(factor);
  $("zoom-in").addEventListener("click", () => zoom(1.3));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  $("zoom-fit").addEventListener("click", () => zoom(0));
  for (const id of ["graph", "matrix"]) $(id).addEventListener("keydown", onKey);
  document.addEventListener("keydown", (event) => event.key === "Escape" && page.chosen >= 0 && choose(-1));
  new ResizeObserver(() => {
    graph.resize();
    for (const chart of Object.values(charts)) chart.resize();
    page.dirty = page.now = true;
  }).observe(document.querySelector("main"));
}

// ---- lines ----

function listen() {
  const source = new EventSource("events");
  const replay = new Replay((model) => {
    page.model = model;
    page.dirty = true;
  });
  source.addEventListener("message", (event) => {
    if (event.data.startsWith('{"type":"hello"')) {
      const structure = page.model.structure;
      page.model = new Model();
      page.model.structure = structure; // so that what follows is drawn anew, whatever it is
      page.settled = false;
      page.replaying = event.data.includes('"replay":true');
      page.lost = false;
      replay.clear();
    } else if (event.data === '{"type":"now"}') {
      page.settled = true;
      if (page.replaying) {
        source.close();
        replay.begin();
      }
    } else if (page.replaying) {
      replay.add(event.data);
    } else {
      page.model.apply(event.data);
      page.came = performance.now();
    }
    page.dirty = true;
  });
  source.addEventListener("error", () => {
    page.lost = true; // the browser connects again, and then everything comes from the beginning
    page.dirty = true;
  });
}

window.reefDash = page; // for tests and for whoever looks at the numbers in the console
page.graph = graph;
page.charts = charts;
makeCharts();
wire();
setView("graph");
redress();
listen();
requestAnimationFrame(draw);
