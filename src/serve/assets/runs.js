// All runs of the directory.

import { drawn, el, notice, say, show } from "./dom.js";
import { Feed, get } from "./api.js";
import { count, since, usd, whole } from "./format.js";

export function runsView(main) {
  const runs = new Map();
  let older = [], more = 0;
  const list = el("div", { class: "runs", role: "list" });
  const empty = el("p", { class: "quiet" }, "");
  const next = el("button", { hidden: true, onclick: loadOlder }, "Older runs");
  show(main, el("h1", null, "Runs"), empty, list, next);

  function card(run) {
    const name = el("a", { href: "/runs/" + encodeURIComponent(run.run), "data-link": true, class: "name" }, run.run);
    const parts = [el("span", { class: "status " + run.status }, run.status)];
    const age = el("span", { class: "age", title: "started " + whole(run.started_at) }, since(run.started_at));
    parts.push(age);
    if (run.error) return el("article", { role: "listitem", class: "run" }, name, parts, el("p", { class: "bad" }, run.error));
    const all = run.live + run.finished;
    const done = all ? Math.round((100 * run.finished) / all) : 0;
    const hours = (Date.now() - new Date(run.started_at)) / 3600e3;
    const rate = run.status === "running" && hours > 0.02 ? `${usd(run.total_cost_usd / hours)}/h` : "";
    const bar = el("progress", { max: 100, value: done, "aria-label": `${done}% of the agents have ended` });
    const needs = (run.questions_open || 0) + (run.parked || 0);
    return el("article", { role: "listitem", class: "run" + (needs ? " needs" : "") }, name, parts,
      el("div", { class: "progress" }, bar, el("span", null, `${count(run.live, "live agent")}, ${run.finished} ended`),
        run.failed_agents ? el("span", { class: "bad" }, `${run.failed_agents} failed`) : null),
      el("div", { class: "money" }, usd(run.total_cost_usd), run.budget_usd ? ` of ${usd(run.budget_usd)}` : "", rate ? el("span", { class: "quiet" }, " " + rate) : null),
      needs ? el("a", { class: "needs-link", href: "/needs-you", "data-link": true }, run.questions_open ? count(run.questions_open, "question") : count(run.parked, "parked agent")) : null,
      run.reason ? el("p", { class: "quiet reason" }, run.reason) : null);
  }

  function draw() {
    const all = [...runs.values()].sort((a, b) => (a.started_at < b.started_at ? 1 : -1)).concat(older.filter((run) => !runs.has(run.run)));
    say(empty, all.length ? "" : "There is no run here yet. Start one: raymond run PATH");
    show(list, all.map(card));
    next.hidden = more <= 0;
  }

  async function loadOlder() {
    try {
      const page = await get(`/runs?offset=${runs.size + older.length}&limit=100`);
      older = older.concat(page.runs);
      more = page.more;
      draw();
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  let due = null;
  const soon = () => {
    due ??= requestAnimationFrame(() => {
      due = null;
      drawn(runs, draw);
    });
  };
  const feed = new Feed("/events", {
    reset: () => runs.clear(),
    run: (run) => {
      runs.set(run.run, run);
      soon();
    },
    gone: (run) => {
      runs.delete(run);
      soon();
    },
    whole: soon,
    failure: (text) => say(empty, text),
    refused: () => document.dispatchEvent(new Event("raymond-refused")),
  });
  get("/runs?offset=100&limit=1").then((page) => {
    more = page.more + page.runs.length;
    soon();
  }, () => {});
  const timer = setInterval(soon, 10000);
  return { close: () => { feed.close(); clearInterval(timer); } };
}
