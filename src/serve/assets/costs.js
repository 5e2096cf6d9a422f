// The costs of a run: by state and by model, in all and over time.

import { el, say, show, svg } from "./dom.js";
import { get, path } from "./api.js";
import { clock, short, usd, when } from "./format.js";

const W = 640, H = 150, LEFT = 52, BOTTOM = 20;

export class CostsView {
  constructor(run) {
    this.run = run;
    this.state = el("p", { class: "quiet", role: "status" }, "");
    this.body = el("div", { class: "costs" });
    this.element = el("section", { "aria-label": "Costs" }, el("div", { class: "bar" }, el("button", { onclick: () => this.load() }, "read again"), this.state), this.body);
  }

  async show() {
    if (!this.loaded) await this.load();
  }

  async load() {
    try {
      const [costs, times] = await Promise.all([get(path("runs", this.run, "costs")), get(path("runs", this.run, "cost-times"))]);
      this.loaded = true;
      say(this.state, costs.scripted ? "The costs are those of a script or a cassette: nothing was paid." : "");
      show(this.body,
        el("div", { class: "pair" }, chart("by state", times, times.states), chart("by model", times, times.models)),
        table("State", costs.states, "state"), table("Model", costs.models, "model"), table("Agent", costs.agents.slice(0, 30), "agent"));
    } catch (error) {
      say(this.state, error.message);
    }
  }
}

// Draws the sums so far, one area on the other.
function chart(title, times, series) {
  const spans = series[0]?.usd.length || 0;
  if (!spans) return el("p", { class: "quiet" }, `Nothing was spent yet, ${title}.`);
  const sums = series.map((one) => {
    let sum = 0;
    return one.usd.map((amount) => (sum += amount));
  });
  const most = sums.reduce((all, one) => all + one[spans - 1], 0) || 1;
  const x = (index) => LEFT + (index / Math.max(1, spans - 1)) * (W - LEFT - 4);
  const y = (amount) => 6 + (1 - amount / most) * (H - BOTTOM - 6);
  const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Costs over time ${title}, ${usd(most)} in all`, class: "chart" });
  for (const part of [0, 0.5, 1]) {
    root.append(svg("line", { x1: LEFT, x2: W, y1: y(most * part), y2: y(most * part) }), svg("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }, usd(most * part)));
  }
  const began = when(times.began)?.getTime() ?? 0;
  for (const part of [0, 1]) root.append(svg("text", { x: x(part * (spans - 1)), y: H - 4, "text-anchor": part ? "end" : "start" }, clock(began + part * spans * times.span_ms)));
  let below = new Array(spans).fill(0);
  sums.forEach((one, place) => {
    const above = one.map((amount, index) => amount + below[index]);
    const up = above.map((amount, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(amount).toFixed(1)}`).join("");
    const down = below.map((amount, index) => `L${x(index).toFixed(1)} ${y(amount).toFixed(1)}`).reverse().join("");
    root.append(svg("path", { class: "series-" + (place % 8), d: up + down + "Z" }, svg("title", null, `${series[place].name}: ${usd(one[spans - 1])}`)));
    below = above;
  });
  const key = el("ul", { class: "key-list" }, series.map((one, place) => el("li", null, el("i", { class: "series-" + (place % 8), "aria-hidden": "true" }), `${one.name} ${usd(sums[place][spans - 1])}`)));
  return el("figure", null, el("figcaption", null, "Over time, " + title), root, key);
}

function table(title, lines, name) {
  if (!lines.length) return null;
  return el("div", { class: "scroll" }, el("table", null,
    el("thead", null, el("tr", null, [title, "cost", "share", "turns", "failed", "tokens in", "out", "from cache"].map((head, index) => el("th", { scope: "col", class: index ? "number" : null }, head)))),
    el("tbody", null, lines.map((line) => el("tr", null,
      el("th", { scope: "row" }, line[name] ?? "not known"),
      el("td", { class: "number" }, usd(line.cost_usd)),
      el("td", { class: "number" }, `${Math.round(line.share * 100)} %`),
      el("td", { class: "number" }, line.turns), el("td", { class: "number" + (line.failed ? " bad" : "") }, line.failed),
      el("td", { class: "number" }, short(line.input_tokens)), el("td", { class: "number" }, short(line.output_tokens)), el("td", { class: "number" }, short(line.cache_read_tokens)))))));
}

