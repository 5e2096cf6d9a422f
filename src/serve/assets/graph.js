// The workflow of a run, with the agents on it.

import { el, say, show, svg } from "./dom.js";
import { get, path } from "./api.js";
import { KINDS } from "./format.js";
import { countKinds } from "./tree.js";

const LINE = 17;

export class GraphView {
  constructor(run, tree) {
    this.run = run;
    this.tree = tree;
    this.badges = new Map();
    this.state = el("p", { class: "quiet", role: "status" }, "The picture is made.");
    this.box = el("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Picture of the workflow" });
    this.table = el("table", { class: "visually-hidden" });
    this.others = el("ul", { class: "others", "aria-label": "Agents in states that are not in the picture" });
    this.element = el("section", { "aria-label": "Graph" }, this.state, this.box, this.others, this.table);
  }

  async show() {
    this.visible = true;
    if (this.drawn) return this.update();
    try {
      this.draw(await get(path("runs", this.run, "graph")));
      say(this.state, "");
      this.update();
    } catch (error) {
      say(this.state, error.message);
    }
  }

  hide() {
    this.visible = false;
  }

  changed() {
    if (!this.visible || this.due) return;
    this.due = setTimeout(() => {
      this.due = null;
      this.update();
    }, 500);
  }

  draw(picture) {
    this.drawn = true;
    const margin = 30;
    const root = svg("svg", {
      viewBox: `${-margin} ${-margin} ${picture.width + 2 * margin} ${picture.height + 2 * margin}`,
      width: picture.width + 2 * margin, height: picture.height + 2 * margin, role: "img", "aria-label": "The states of the workflow and the ways between them",
    });
    for (const edge of picture.edges) {
      root.append(svg("path", { class: "edge " + edge.look, d: edge.path }));
      if (edge.head) root.append(svg("path", { class: "arrow " + edge.look, d: edge.head }));
      if (edge.label) root.append(svg("text", { class: "edge-label", x: edge.label_at[0], y: edge.label_at[1] + 4 }, edge.label));
    }
    for (const node of picture.nodes) {
      const [left, top] = [node.x - node.width / 2, node.y - node.height / 2];
      const group = svg("g", { class: "node " + node.form });
      if (node.form === "start") group.append(svg("circle", { cx: node.x, cy: node.y, r: 7 }));
      else group.append(svg("rect", { x: left, y: top, width: node.width, height: node.height, rx: node.form === "end" ? node.height / 2 : 7 }));
      node.lines.forEach((line, index) => group.append(svg("text", { x: node.x, y: node.y + 4.5 + (index - (node.lines.length - 1) / 2) * LINE }, line)));
      const badge = svg("g", { class: "agents" });
      group.append(badge);
      root.append(group);
      this.badges.set(node.id, { badge, group, right: left + node.width, top, name: node.lines[0] || node.id });
    }
    show(this.box, root, picture.hidden ? el("p", { class: "quiet" }, `${picture.hidden} more states are not shown.`) : null);
  }

  update() {
    const at = new Map();
    for (const agent of this.tree.agents.values()) {
      if (!agent.state) continue;
      // A state that no policy leads to is not in the picture.
      const state = this.placeOf(agent.state) ?? agent.state;
      if (!at.has(state)) at.set(state, []);
      at.get(state).push(agent);
    }
    const rows = [];
    for (const [id, { badge, group, right, top, name }] of this.badges) {
      const counts = countKinds(at.get(id) || []);
      const kinds = KINDS.filter((kind) => counts[kind]);
      group.classList.toggle("busy", kinds.length > 0);
      let x = right;
      const parts = [];
      for (const kind of kinds.slice().reverse()) {
        const text = String(counts[kind]);
        const width = 12 + text.length * 7;
        x -= width;
        parts.push(svg("g", { class: "pill " + kind }, svg("title", null, `${text} ${kind}`),
          svg("rect", { x: x + 6, y: top - 11, width: width - 2, height: 18, rx: 9 }),
          svg("text", { x: x + 5 + width / 2, y: top + 2 }, text)));
      }
      badge.replaceChildren(...parts);
      if (kinds.length) rows.push(el("tr", null, el("th", { scope: "row" }, name), el("td", null, kinds.map((kind) => `${counts[kind]} ${kind}`).join(", "))));
    }
    const others = [...at].filter(([state]) => !this.badges.has(state));
    show(this.others, others.map(([state, members]) => {
      const counts = countKinds(members);
      return el("li", null, el("span", { class: "state" }, state), KINDS.filter((kind) => counts[kind]).map((kind) => el("span", { class: "kind " + kind }, `${counts[kind]} ${kind}`)));
    }));
    show(this.table, el("caption", null, "Agents by state"), el("tbody", null, rows));
  }

  // The place of an agent is a state, or a node in one.
  placeOf(state) {
    if (!state) return null;
    if (this.badges.has(state)) return state;
    const node = state.split("#").pop();
    if (this.badges.has(node)) return node;
    const file = state.split("#")[0];
    return this.badges.has(file) ? file : this.badges.has(file.split("/").pop()) ? file.split("/").pop() : null;
  }

  close() {
    clearTimeout(this.due);
  }
}
