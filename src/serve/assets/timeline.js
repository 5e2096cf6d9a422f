// The turns of a run over time: each a bar of waiting, starting, model and tools. It is zoomed by buttons, keys and the wheel.

import { el, say, show } from "./dom.js";
import { get, path } from "./api.js";
import { byLineage, clock, count, span, usd, when } from "./format.js";

const ROW = 18, AXIS = 24;

const KEYS = [["waiting", "waiting"], ["starting", "starting"], ["model", "model"], ["tools", "tools"], ["work", "both, not told apart"], ["failed", "failed"]];

export class TimelineView {
  constructor(run, go) {
    this.run = run;
    this.go = go;
    this.state = el("span", { class: "quiet", role: "status" });
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Turns over time. Plus and minus zoom, left and right move, up and down choose a turn, Enter opens its agent." });
    this.told = el("p", { class: "told", role: "status" }, "");
    const button = (label, text, act) => el("button", { "aria-label": label, onclick: act }, text);
    this.element = el("section", { class: "timeline", "aria-label": "Timeline" },
      el("div", { class: "bar" },
        button("Zoom in", "+", () => this.zoom(0.5)), button("Zoom out", "−", () => this.zoom(2)),
        button("Whole run", "whole run", () => this.whole()), button("Read again", "read again", () => this.load()),
        el("span", { class: "legend" }, KEYS.map(([kind, word]) => el("span", { class: "key " + kind }, word))), this.state),
      el("div", { class: "canvas" }, this.canvas), this.told);
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.2 : 0.83, this.timeAt(event.offsetX));
      else this.move((event.deltaX || event.deltaY) / 400);
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const acts = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "0": () => this.whole(), ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1), Enter: () => this.chosen && this.go(path("runs", run, "agents", this.chosen.agent)) };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("click", (event) => {
      const bar = this.barAt(event);
      if (bar) this.go(path("runs", run, "agents", bar.agent));
    });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.element);
  }

  async show() {
    if (!this.bars) await this.load();
    this.draw();
  }

  async load() {
    try {
      const time = (value) => when(value)?.getTime() ?? null;
      const found = await get(path("runs", this.run, "timeline"));
      this.bars = found.turns.map((one) => ({ ...one, due: time(one.due), begun: time(one.begun), asked: time(one.asked), ended: time(one.ended) }));
      this.inOrder = this.chosen = null;
      const names = [...new Set(this.bars.map((bar) => bar.agent))].sort(byLineage);
      this.lanes = new Map(names.map((name, index) => [name, index]));
      say(this.state, `${count(this.bars.length, "turn")} that ended${found.left_out ? `; ${found.left_out} earlier ones are left out` : ""}`);
      this.whole();
    } catch (error) {
      say(this.state, error.message);
    }
  }

  whole() {
    if (!this.bars?.length) return;
    this.first = Math.min(...this.bars.map((bar) => bar.due));
    this.last = Math.max(...this.bars.map((bar) => bar.ended), this.first + 1000);
    this.draw();
  }

  zoom(factor, at) {
    if (!this.bars?.length) return;
    const middle = at ?? (this.first + this.last) / 2;
    this.first = middle - (middle - this.first) * factor;
    this.last = Math.max(this.first + 20, middle + (this.last - middle) * factor);
    this.draw();
  }

  move(part) {
    const by = (this.last - this.first) * part;
    this.first += by;
    this.last += by;
    this.draw();
  }

  // The room for the names of agents.
  names() {
    return this.width() < 500 ? 76 : 110;
  }

  width() {
    return Math.max(240, this.element.clientWidth - 2);
  }

  timeAt(x) {
    const names = this.names();
    return this.first + ((x - names) / (this.width() - names)) * (this.last - this.first);
  }

  draw() {
    if (!this.bars || !this.element.isConnected) return;
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    const names = this.names(), width = this.width(), height = AXIS + Math.max(1, this.lanes.size) * ROW + 6;
    const ratio = window.devicePixelRatio || 1;
    const most = 16000;
    this.canvas.width = width * ratio;
    this.canvas.height = Math.min(height * ratio, most);
    this.canvas.style.width = width + "px";
    this.canvas.style.height = Math.min(height, most / ratio) + "px";
    const at = this.canvas.getContext("2d");
    at.scale(ratio, ratio);
    at.clearRect(0, 0, width, height);
    const x = (time) => names + ((time - this.first) / (this.last - this.first)) * (width - names);
    // A short time needs parts of seconds.
    const label = (time) => clock(time) + (this.last - this.first < 20000 ? "." + String(Math.floor(time) % 1000).padStart(3, "0") : "");
    at.font = "12px system-ui, sans-serif";
    at.fillStyle = colour("quiet");
    at.strokeStyle = colour("line");
    const ticks = Math.max(1, Math.min(4, Math.floor((width - names) / 175)));
    for (let part = 0; part <= ticks; part++) {
      const time = this.first + ((this.last - this.first) * part) / ticks;
      at.beginPath();
      at.moveTo(x(time), AXIS - 4);
      at.lineTo(x(time), height);
      at.stroke();
      at.textAlign = part === ticks ? "right" : "left";
      at.fillText(label(time), x(time) + (part === ticks ? -3 : 3), 13);
    }
    at.textAlign = "left";
    this.places = [];
    const part = (from, to, y, name) => {
      const left = Math.max(names, x(from)), right = Math.min(width, x(to));
      if (right < names || left > width) return;
      at.fillStyle = colour(name);
      at.fillRect(left, y, Math.max(right - left, 1.5), ROW - 6);
    };
    for (const bar of this.bars) {
      const y = AXIS + this.lanes.get(bar.agent) * ROW + 3;
      const begun = bar.begun ?? bar.asked ?? bar.due;
      const asked = Math.max(begun, bar.asked ?? begun);
      part(bar.due, begun, y, "bar-waiting");
      part(begun, asked, y, "bar-starting");
      // How long the tools ran is known, and not when: theirs is the second part.
      const tools = bar.model_ms === undefined ? null : Math.min(bar.ended, asked + bar.model_ms);
      if (bar.failed || tools === null) part(asked, bar.ended, y, bar.failed ? "bar-failed" : "bar-work");
      else {
        part(asked, tools, y, "bar-model");
        if (tools < bar.ended) part(tools, bar.ended, y, "bar-tools");
      }
      if (bar === this.chosen) {
        at.strokeStyle = colour("text");
        at.lineWidth = 2;
        at.strokeRect(Math.max(names, x(bar.due)) - 1, y - 1, Math.max(3, Math.min(width, x(bar.ended)) - Math.max(names, x(bar.due))) + 2, ROW - 4);
      }
      this.places.push({ bar, y, left: x(bar.due), right: Math.max(x(bar.ended), x(bar.due) + 3) });
    }
    at.clearRect(0, AXIS, names - 4, height);
    at.fillStyle = colour("text");
    const letters = names > 100 ? 15 : 10;
    for (const [name, lane] of this.lanes) at.fillText(name.length > letters ? "…" + name.slice(1 - letters) : name, 2, AXIS + lane * ROW + 13);
  }

  barAt(event) {
    return this.places?.find((place) => event.offsetY >= place.y && event.offsetY < place.y + ROW && event.offsetX >= place.left - 2 && event.offsetX <= place.right + 2)?.bar;
  }

  // Chooses the next turn, or the one before, and shows it.
  choose(step) {
    if (!this.bars?.length) return;
    this.inOrder ??= [...this.bars].sort((one, other) => this.lanes.get(one.agent) - this.lanes.get(other.agent) || one.due - other.due);
    const index = this.inOrder.indexOf(this.chosen) + (this.chosen ? step : step > 0 ? 1 : this.inOrder.length);
    this.chosen = this.inOrder[Math.max(0, Math.min(this.inOrder.length - 1, index))];
    this.tell(this.chosen);
    const box = this.canvas.parentElement, top = AXIS + this.lanes.get(this.chosen.agent) * ROW;
    if (top - ROW < box.scrollTop || top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
    const length = this.last - this.first;
    if (this.chosen.ended < this.first || this.chosen.due > this.last) [this.first, this.last] = [this.chosen.due - length / 2, this.chosen.due + length / 2];
    this.draw();
  }

  point(event) {
    const bar = this.barAt(event);
    this.canvas.style.cursor = bar ? "pointer" : "";
    if (bar) this.tell(bar);
  }

  tell(bar) {
    const begun = bar.begun ?? bar.asked;
    const worked = bar.model_ms === undefined || bar.asked === null ? "" : ` (model ${span(Math.min(bar.model_ms, bar.ended - bar.asked))}, tools ${span(Math.max(0, bar.ended - bar.asked - bar.model_ms))})`;
    say(this.told, `${bar.agent} step ${bar.step}${bar.state ? " in " + bar.state : ""}: ${begun ? `waited ${span(begun - bar.due)}, ` : ""}took ${span(bar.ended - (begun ?? bar.due))}${worked}, ${usd(bar.cost_usd)}${bar.failed ? ", failed" : ""}`);
  }

  close() {
    this.watch.disconnect();
  }
}
