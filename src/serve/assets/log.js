// The log of a run: the last records, older ones on demand, filtered by agent and text.

import { el, notice, say, show } from "./dom.js";
import { get, path } from "./api.js";
import { clock, whole } from "./format.js";

const MOST = 2000;

// The id of an agent. What is not one yet, while it is typed, is not asked for.
const AGENT = /^main(\.[1-9][0-9]*)*$/;

export class LogView {
  constructor(run) {
    this.run = run;
    this.lines = new Map();
    this.found = null;
    this.agent = el("input", { type: "search", placeholder: "main.1", "aria-label": "Only this agent", oninput: () => this.asked() });
    this.text = el("input", { type: "search", placeholder: "text", "aria-label": "Only lines with this text", oninput: () => this.asked() });
    this.older = el("button", { onclick: () => this.loadOlder() }, "Older records");
    this.state = el("span", { class: "quiet", role: "status" });
    this.list = el("ol", { class: "log", reversed: true });
    this.element = el("section", { "aria-label": "Log" }, el("div", { class: "bar" }, this.agent, this.text, this.state), this.list, this.older);
  }

  add(lines) {
    for (const line of lines) this.lines.set(line.seq, line);
    if (this.lines.size > MOST) {
      for (const seq of [...this.lines.keys()].sort((a, b) => a - b).slice(0, this.lines.size - MOST)) this.lines.delete(seq);
    }
    this.soon();
  }

  // Records that the stream left out are asked for by their numbers, until they have come: as many as are kept.
  async gap({ after, before }) {
    after = Math.max(after, before - MOST);
    try {
      while (after + 1 < before && !this.closed) {
        const page = await get(path("runs", this.run, "log") + `?after=${after}&before=${before}&limit=500`);
        if (!page.records.length) break;
        this.add(page.records.map((one) => one.line));
        after = page.records[page.records.length - 1].line.seq;
      }
    } catch {
      setTimeout(() => this.gap({ after, before }), 2000);
    }
  }

  asked() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), 250);
  }

  query(more) {
    const query = new URLSearchParams({ limit: "200", ...more });
    if (AGENT.test(this.agent.value.trim())) query.set("agent", this.agent.value.trim());
    if (this.text.value.trim()) query.set("text", this.text.value.trim());
    return path("runs", this.run, "log") + "?" + query;
  }

  isFiltered() {
    return Boolean(this.agent.value.trim() || this.text.value.trim());
  }

  async search() {
    if (!this.isFiltered()) {
      this.found = null;
      return this.draw();
    }
    try {
      const page = await get(this.query({}));
      this.found = new Map(page.records.map((one) => [one.line.seq, one.line]));
      this.more = page.more;
      this.draw();
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  async loadOlder() {
    const known = this.found || this.lines;
    const first = Math.min(...known.keys());
    try {
      const page = await get(this.query({ before: String(Number.isFinite(first) ? first : 1e15) }));
      for (const one of page.records) known.set(one.line.seq, one.line);
      this.more = page.more;
      this.draw();
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  soon() {
    if (this.due || !this.element.isConnected) return;
    this.due = setTimeout(() => {
      this.due = null;
      this.draw();
    }, 100);
  }

  show() {
    this.draw();
  }

  draw() {
    const agent = this.agent.value.trim(), text = this.text.value.trim().toLowerCase();
    const all = new Map(this.found || this.lines);
    if (this.found) {
      for (const line of this.lines.values()) {
        if ((!agent || line.agent === agent) && (!text || line.text.toLowerCase().includes(text))) all.set(line.seq, line);
      }
    }
    const shown = [...all.values()].sort((a, b) => b.seq - a.seq);
    say(this.state, this.isFiltered() ? `${shown.length} records found` : `the last ${shown.length} records`);
    show(this.list, shown.map((line) => el("li", { class: line.tone, value: line.seq },
      el("span", { class: "seq" }, line.seq),
      el("time", { title: whole(line.at) }, clock(line.at)),
      el("span", { class: "text" }, line.text, (line.shows || []).map((one) => el("q", null, one))))));
    const first = shown.length ? shown[shown.length - 1].seq : 1;
    this.older.hidden = this.found ? !this.more : first <= 1;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.due);
  }
}
