// The questions of all runs that wait for a person.

import { drawn, el, notice, oneLine, say, settle, show } from "./dom.js";
import { Feed, act, path } from "./api.js";
import { since } from "./format.js";
import { questionCard } from "./question.js";

// A signal that a program waits for, or an agent that is held or parked, with the command that ends the wait.
function waitCard(wait) {
  const where = el("p", { class: "quiet" }, el("a", { href: path("runs", wait.run), "data-link": true }, wait.run), " · ", el("a", { href: path("runs", wait.run, "agents", wait.agent), "data-link": true }, wait.agent), " · " + since(wait.since));
  const isSignal = wait.label !== undefined;
  const what = wait.kind === "held" ? "is held" : isSignal ? `waits for the signal ${oneLine(wait.label)}${wait.key ? " of " + oneLine(wait.key) : ""}` : "is parked";
  const button = (title, name, body, told) => el("button", { class: "main", onclick: async (event) => {
    event.target.disabled = true;
    try {
      await act(name, body);
      notice(told);
    } catch (error) {
      notice(error.message, "bad");
      event.target.disabled = false;
    }
  } }, title);
  let give = null;
  if (wait.kind === "held") give = button("Release", "release", { run: wait.run, agent: wait.agent }, `${wait.agent} continues`);
  else if (isSignal && wait.key) give = button("Signal", "signal", { label: wait.label, key: wait.key, value: wait.value ?? "" }, `${wait.label} ${wait.key} is asserted`);
  return el("article", { class: "question card" }, where, el("h2", null, what), wait.reason ? el("p", null, wait.reason) : null, el("p", null, el("code", null, wait.command)), give);
}

export function needsView(main) {
  const runs = new Map();
  const cards = new Map();
  const list = el("div", { class: "questions" });
  const empty = el("p", { class: "quiet", role: "status" }, "");
  const others = el("div", { class: "questions" });
  show(main, el("h1", null, "Needs you"), empty, list, others);

  function remove(card) {
    if (!card.isConnected) return;
    card.remove();
    settle(list);
  }

  // A question that somebody answers at this moment keeps its card, and what was written in it.
  function draw() {
    const open = new Set();
    for (const run of runs.values()) {
      for (const question of run.questions || []) {
        const key = `${run.run} ${question.agent}/${question.node} ${question.asked_at}`;
        open.add(key);
        if (cards.has(key)) continue;
        cards.set(key, questionCard(run.run, question));
        list.append(cards.get(key));
      }
    }
    for (const [key, card] of cards) {
      if (open.has(key)) continue;
      cards.delete(key);
      if (!card.dataset.done) remove(card);
      else setTimeout(() => remove(card), 4000);
    }
    const waits = [...runs.values()].flatMap((run) => run.waits || []);
    show(others, waits.length ? el("h2", null, "Other waits") : null, waits.map(waitCard));
    say(empty, open.size || waits.length ? "" : "Nobody waits for a person.");
  }

  let due = null;
  const soon = () => (due ??= requestAnimationFrame(() => {
    due = null;
    drawn(runs, draw);
  }));
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
    refused: () => document.dispatchEvent(new Event("raymond-refused")),
  });
  return { close: () => feed.close() };
}
