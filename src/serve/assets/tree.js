// The tree of agents: many alike are one row, which opens; a filter shows a flat list.

import { el, say, show } from "./dom.js";
import { path } from "./api.js";
import { KINDS, MARKS, count, short, since, usd } from "./format.js";
import { VirtualRows } from "./rows.js";

const FAMILY = 12;
const RANK = { stuck: 0, running: 1, queued: 2, waiting: 3, failed: 4, finished: 5 };

const parentOf = (id) => (id.includes(".") ? id.slice(0, id.lastIndexOf(".")) : null);

// Returns the rows of the tree: agents, and families of many that began in the same state. The ids are sorted, so that parents
// stand before their children.
export function treeRows(agents, sorted, opened) {
  const children = new Map();
  const best = new Map();
  for (const id of sorted) {
    const agent = agents.get(id);
    const parent = parentOf(agent.id);
    const key = parent !== null && agents.has(parent) ? parent : "";
    if (!children.has(key)) children.set(key, []);
    children.get(key).push(agent);
  }
  for (let index = sorted.length - 1; index >= 0; index--) {
    const agent = agents.get(sorted[index]);
    const own = Math.min(RANK[agent.kind], best.get(agent.id) ?? 9);
    best.set(agent.id, own);
    const parent = parentOf(agent.id);
    if (parent) best.set(parent, Math.min(own, best.get(parent) ?? 9));
  }
  const rows = [];
  const visit = (parent, depth) => {
    const own = children.get(parent);
    if (!own) return;
    const groups = new Map();
    for (const agent of own) {
      const began = agent.began || "";
      if (!groups.has(began)) groups.set(began, []);
      groups.get(began).push(agent);
    }
    const ordered = [...groups.entries()].sort(([, a], [, b]) => rank(a, best) - rank(b, best));
    for (const [began, members] of ordered) {
      const order = (a, b) => best.get(a.id) - best.get(b.id);
      if (members.length <= FAMILY) {
        for (const agent of members.slice().sort(order)) one(agent, depth);
        continue;
      }
      const key = parent + "\n" + began;
      const open = opened.has(key);
      rows.push({ family: key, began, members, open, depth });
      const shown = open ? members.slice().sort(order) : members.filter((one) => RANK[one.kind] <= 1 || one.kind === "failed").sort(order).slice(0, FAMILY);
      for (const agent of shown) one(agent, depth + 1);
    }
  };
  const one = (agent, depth) => {
    rows.push({ agent, depth });
    visit(agent.id, depth + 1);
  };
  visit("", 0);
  return rows;
}

function rank(members, best) {
  return members.reduce((low, agent) => Math.min(low, best.get(agent.id)), 9);
}

export function countKinds(members) {
  const counts = {};
  for (const agent of members) counts[agent.kind] = (counts[agent.kind] || 0) + 1;
  return counts;
}

export class AgentTree {
  constructor(run, go) {
    this.run = run;
    this.agents = new Map();
    this.sorted = [];
    this.opened = new Set();
    this.kind = null;
    this.text = "";
    this.rows = new VirtualRows({
      label: "Agents",
      height: 36,
      make: (row) => (row.family !== undefined ? this.family(row) : this.agent(row)),
      open: (row) => (row.family !== undefined ? this.toggle(row, !row.open) : go(path("runs", run, "agents", row.agent.id))),
      toggle: (row, open) => row.family !== undefined && this.toggle(row, open),
    });
    this.search = el("input", { type: "search", placeholder: "agent or state", "aria-label": "Filter agents", oninput: () => {
      this.text = this.search.value.trim().toLowerCase();
      this.update();
    } });
    this.kinds = el("div", { class: "kinds", role: "group", "aria-label": "Only agents of a kind" });
    this.shown = el("span", { class: "quiet", role: "status" });
    this.element = el("section", { class: "tree", "aria-label": "Agents" }, el("div", { class: "bar" }, this.kinds, this.search, this.shown), this.rows.box);
    this.timer = setInterval(() => {
      if (this.rows.isMoving()) return;
      this.rows.dirty = true;
      this.rows.later();
    }, 1000);
  }

  put(agents) {
    let isNew = false;
    for (const agent of agents) {
      isNew ||= !this.agents.has(agent.id);
      this.agents.set(agent.id, agent);
    }
    if (isNew) this.unsorted = true;
    this.soon();
  }

  // Many changes are shown together, a large tree less often, and one that is scrolled once it stands, or after a while.
  soon(waited = 0) {
    if (this.due) return;
    const pause = this.agents.size > 2000 ? 400 : 50;
    this.due = setTimeout(() => {
      this.due = null;
      if (this.rows.isMoving() && waited < 2000) this.soon(waited + pause);
      else this.update();
    }, pause);
  }

  clear() {
    this.agents.clear();
    this.unsorted = true;
  }

  order() {
    if (!this.unsorted) return this.sorted;
    this.unsorted = false;
    const paths = new Map([...this.agents.keys()].map((id) => [id, id.split(".").slice(1).map(Number)]));
    this.sorted = [...paths.keys()].sort((one, other) => {
      const a = paths.get(one), b = paths.get(other);
      for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
      return a.length - b.length;
    });
    return this.sorted;
  }

  update() {
    const counts = countKinds(this.agents.values());
    show(this.kinds, KINDS.filter((kind) => counts[kind] || kind === this.kind).map((kind) => el("button", {
      class: "kind " + kind, "aria-pressed": String(this.kind === kind),
      onclick: () => {
        this.kind = this.kind === kind ? null : kind;
        this.update();
      },
    }, `${MARKS[kind]} ${(counts[kind] || 0).toLocaleString("en")} ${kind}`)));
    let items;
    if (this.kind || this.text) {
      const has = (agent) => (!this.kind || agent.kind === this.kind) && (!this.text || agent.id.includes(this.text) || (agent.state || agent.began || "").toLowerCase().includes(this.text));
      items = this.order().map((id) => this.agents.get(id)).filter(has)
        .sort((a, b) => RANK[a.kind] - RANK[b.kind])
        .map((agent) => ({ agent, depth: 0 }));
      say(this.shown, `${items.length.toLocaleString("en")} of ${this.agents.size.toLocaleString("en")} agents`);
    } else {
      items = treeRows(this.agents, this.order(), this.opened);
      say(this.shown, count(this.agents.size, "agent"));
    }
    this.rows.set(items);
  }

  toggle(row, open) {
    if (open) this.opened.add(row.family);
    else this.opened.delete(row.family);
    this.update();
  }

  agent({ agent, depth }) {
    const quiet = agent.since ? since(agent.since) : "";
    return el("div", { class: "row " + agent.kind, role: "treeitem", "aria-level": depth + 1, "data-depth": Math.min(depth, 8), "data-agent": agent.id },
      el("span", { class: "mark", "aria-hidden": "true" }, MARKS[agent.kind]),
      el("a", { class: "id", href: path("runs", this.run, "agents", agent.id), "data-link": true, tabindex: "-1" }, agent.id),
      el("span", { class: "visually-hidden" }, agent.kind),
      el("span", { class: "state" }, agent.state || ""),
      el("span", { class: "text" }, agent.item ? el("span", { class: "item" }, agent.item + " ") : null, agent.text),
      el("span", { class: "tokens" }, agent.tokens ? short(agent.tokens) + " tok" : ""),
      el("span", { class: "time" }, quiet),
      el("span", { class: "cost" }, agent.cost_usd ? usd(agent.cost_usd) : ""));
  }

  family(row) {
    const counts = countKinds(row.members);
    const words = KINDS.filter((kind) => counts[kind]).map((kind) => `${counts[kind].toLocaleString("en")} ${kind}`).join(" · ");
    const cost = row.members.reduce((sum, agent) => sum + Number(agent.cost_usd), 0);
    return el("div", { class: "row family", role: "treeitem", "aria-level": row.depth + 1, "aria-expanded": String(row.open), "data-depth": Math.min(row.depth, 8) },
      el("span", { class: "mark", "aria-hidden": "true" }, row.open ? "▾" : "▸"),
      el("span", { class: "id" }, `${row.members.length.toLocaleString("en")} agents`),
      el("span", { class: "state" }, row.began),
      el("span", { class: "text" }, words),
      el("span", { class: "cost" }, usd(cost)));
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.due);
    this.rows.close();
  }
}
