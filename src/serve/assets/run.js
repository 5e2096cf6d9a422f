// One run: its headline, and the parts of it.

import { drawn, el, notice, say, settle, show } from "./dom.js";
import { Feed, get, path } from "./api.js";
import { count, since, usd, whole } from "./format.js";
import { AgentTree } from "./tree.js";
import { LogView } from "./log.js";
import { GraphView } from "./graph.js";
import { TimelineView } from "./timeline.js";
import { CostsView } from "./costs.js";
import { showRunActions } from "./actions.js";
import { questionCard } from "./question.js";

const PARTS = [["agents", "Agents"], ["graph", "Graph"], ["timeline", "Timeline"], ["costs", "Costs"], ["log", "Log"]];

export function runView(main, run) {
  const go = (where) => {
    history.pushState(null, "", where);
    dispatchEvent(new PopStateEvent("popstate"));
  };
  const status = el("span", { class: "status" });
  const facts = el("p", { class: "facts" });
  const why = el("p", { class: "why", role: "status" });
  const actions = el("div", { class: "actions" });
  const asks = el("div", { class: "asks" });
  const tree = new AgentTree(run, go);
  const log = new LogView(run);
  const views = { agents: { element: tree.element }, log, graph: new GraphView(run, tree), timeline: new TimelineView(run, go), costs: new CostsView(run) };
  const panel = el("div", { role: "tabpanel", id: "panel", "aria-labelledby": "tab-agents" });
  const tabs = el("div", { role: "tablist", "aria-label": "Parts of the run", class: "tabs" });
  let part = null, headline = null;

  for (const [name, title] of PARTS) {
    tabs.append(el("button", { role: "tab", id: "tab-" + name, "aria-controls": "panel", onclick: () => open(name) }, title));
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = PARTS.map(([name]) => name);
    open(names[(names.indexOf(part) + step + names.length) % names.length]);
    document.getElementById("tab-" + part).focus();
  });

  function open(name) {
    if (part === name) return;
    views[part]?.hide?.();
    part = name;
    for (const [other] of PARTS) {
      const tab = tabs.querySelector("#tab-" + other);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", "tab-" + name);
    show(panel, views[name].element);
    views[name].show?.();
    history.replaceState(null, "", name === "agents" ? location.pathname : "#" + name);
  }

  show(main,
    el("div", { class: "head" }, el("h1", null, run), status, actions),
    facts, why, asks, tabs, panel);

  function head(now) {
    const before = headline;
    headline = now;
    say(status, now.status);
    status.className = "status " + now.status;
    const c = now.counts;
    const all = Object.values(c).reduce((sum, one) => sum + one, 0);
    const done = c.finished + c.failed;
    show(facts,
      el("span", null, count(all, "agent"), `, ${done.toLocaleString("en")} ended`),
      el("span", null, usd(now.total_cost_usd), now.budget_usd ? ` of ${usd(now.budget_usd)}` : " spent"),
      rate(now),
      now.started_at ? el("span", { title: "started " + whole(now.started_at) }, since(now.started_at) + " old") : null,
      now.refused_tools ? el("span", { class: "warn" }, count(now.refused_tools, "refused tool")) : null,
      el("span", { class: "quiet", title: now.scope_dir }, "record " + now.seq.toLocaleString("en")));
    say(why, now.pause ? "paused: " + now.pause : now.limited_until ? "usage limit until " + whole(now.limited_until) : now.status === "interrupted" ? `not live: raymond resume ${run} resumes it` : "");
    drawn(actions, () => showRunActions(actions, run, now));
    if (now.questions !== before?.questions || (now.questions && now.seq !== before?.seq)) questions();
    for (const view of Object.values(views)) view.changed?.(now);
  }

  // What it has cost an hour so far, once that says something.
  function rate(now) {
    const hours = (Date.now() - new Date(now.started_at)) / 3600e3;
    return now.status === "running" && hours > 0.02 ? el("span", { class: "quiet" }, `${usd(now.total_cost_usd / hours)}/h`) : null;
  }

  async function questions() {
    if (!headline?.questions) return show(asks);
    try {
      const found = (await get("/questions")).find((one) => one.run === run);
      const known = new Map([...asks.children].map((child) => [`${child.dataset.key} ${child.dataset.asked}`, child]));
      const card = (question) => known.get(`${question.agent}/${question.node} ${question.asked_at}`) || questionCard(run, question);
      const cards = (found?.questions || []).slice(0, 5).map(card);
      if ([...known.values()].some((one) => !cards.includes(one))) settle(asks);
      show(asks, cards,
        headline.questions > 5 ? el("p", null, el("a", { href: "/needs-you", "data-link": true }, "all questions")) : null);
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  const feed = new Feed(path("runs", run, "events"), {
    reset: () => tree.clear(),
    run: head,
    agents: (rows) => tree.put(rows),
    log: (lines) => log.add(lines),
    log_gap: (gap) => log.gap(gap),
    unreadable: (text) => {
      say(why, text);
      feed.close();
    },
    refused: () => document.dispatchEvent(new Event("raymond-refused")),
  });
  get(path("runs", run, "agents") + "?limit=1").catch((error) => say(why, error.message));
  const asked = location.hash.slice(1);
  open(PARTS.some(([name]) => name === asked) ? asked : "agents");
  return {
    close: () => {
      feed.close();
      tree.close();
      for (const view of Object.values(views)) view.close?.();
    },
  };
}
