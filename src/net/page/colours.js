// Trust as colour: orange for none over grey to blue for a full share, which people with any kind of colour vision tell apart; every
// meaning is also given by shape, line or number.
const stops = {
  light: [[0, [196, 78, 0]], [0.5, [176, 180, 186]], [1, [0, 100, 170]]],
  dark: [[0, [240, 130, 40]], [0.5, [120, 128, 140]], [1, [86, 180, 245]]],
};
export const STEPS = 40;
const tables = {};

export function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function mix(table, t) {
  let i = 1;
  while (i < table.length - 1 && t > table[i][0]) i++;
  const [x0, c0] = table[i - 1];
  const [x1, c1] = table[i];
  const s = (t - x0) / (x1 - x0);
  return c0.map((v, j) => Math.round(v + s * (c1[j] - v)));
}

function table() {
  const name = isDark() ? "dark" : "light";
  tables[name] ??= Array.from({ length: STEPS + 1 }, (_, i) => mix(stops[name], i / STEPS));
  return tables[name];
}

/** Which of the STEPS + 1 colours; -1: not known. */
export const shade = (trust) => (Number.isNaN(trust) ? -1 : Math.round(STEPS * Math.max(0, Math.min(1, trust))));
export const unknown = () => (isDark() ? [62, 70, 82] : [218, 222, 228]);
export const rgb = (s) => (s < 0 ? unknown() : table()[s]);
export const css = (s) => `rgb(${rgb(s).join(",")})`;
export const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
