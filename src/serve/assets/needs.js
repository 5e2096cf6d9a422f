// The questions of all runs that wait for a person.

import { el, say, show } from "./dom.js";
import { Feed } from "./api.js";
import { questionCard } from "./question.js";

export function needsView(main) {
  const runs = new Map();
  const cards = new Map();
  const list = el("div", { class: "questions" });
  const empty = el("p", { class: "quiet", role: "status" }, "");
  const parked = el("div");
  show(main, el("h1", null, "Needs you"), empty, list, parked);

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
      const isDone = card.querySelector(".good");
      if (!isDone) card.remove();
      else setTimeout(() => card.remove(), 4000);
    }
    say(empty, open.size ? "" : "Nobody waits for an answer.");
    const waiting = [...runs.values()].filter((run) => run.parked);
    show(parked, waiting.length ? el("h2", null, "Parked agents") : null,
      waiting.map((run) => el("p", null, el("a", { href: "/runs/" + encodeURIComponent(run.run), "data-link": true }, run.run), ` ${run.parked === 1 ? "has an agent" : `has ${run.parked} agents`} that ${run.parked === 1 ? "waits" : "wait"} for a person. ${run.reason || ""}`)));
  }

  let due = null;
  const soon = () => (due ??= requestAnimationFrame(() => {
    due = null;
    draw();
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
