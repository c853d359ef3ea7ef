// A recorded run, played back by the times of its lines: forwards at any speed; going back begins anew.
import { LATEST, Model } from "./model.js";

const $ = (id) => document.getElementById(id);
const timeOf = (line) => {
  const t = parseFloat(line.slice(line.indexOf('"time":') + 7));
  return t >= 0 && t <= LATEST ? t : 0;
};

export class Replay {
  constructor(onModel) {
    this.onModel = onModel;
    this.clear();
    $("play").addEventListener("click", () => this.toggle());
    $("at").addEventListener("input", () => this.seek((Number($("at").value) / 1000) * this.end));
  }

  clear() {
    this.lines = [];
    this.times = [];
    this.next = 0;
    this.at = 0;
    this.end = 0;
    this.playing = false;
    this.model = new Model();
  }

  add(line) {
    const time = Math.max(timeOf(line), this.end); // never backwards
    this.lines.push(line);
    this.times.push(time);
    this.end = time;
  }

  begin() {
    $("replay").hidden = false;
    this.last = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) this.seek(this.end);
    else this.toggle();
    requestAnimationFrame((now) => this.tick(now));
  }

  toggle() {
    if (!this.playing && this.at >= this.end) this.seek(0);
    this.playing = !this.playing;
    this.show();
  }

  tick(now) {
    if (this.playing) {
      this.at = Math.min(this.end, this.at + ((now - this.last) / 1000) * Number($("speed").value));
      this.playing = this.at < this.end;
      this.advance();
      this.show();
    }
    this.last = now;
    requestAnimationFrame((later) => this.tick(later));
  }

  advance() {
    const from = this.next;
    while (this.next < this.lines.length && this.times[this.next] <= this.at) this.model.apply(this.lines[this.next++]);
    if (this.next > from) this.onModel(this.model);
  }

  seek(time) {
    if (time < this.at) {
      const structure = this.model.structure || 0;
      this.model = new Model();
      this.model.structure = structure; // so that the run is drawn anew
      this.next = 0;
    }
    this.at = time;
    this.advance();
    this.onModel(this.model);
    this.show();
  }

  show() {
    $("play").textContent = this.playing ? "Pause" : "Play";
    $("clock").textContent = `${this.at.toFixed(1)} / ${this.end.toFixed(1)} s`;
    $("at").value = String(this.end > 0 ? Math.round((1000 * this.at) / this.end) : 0);
  }
}
