// One agent: its conversation, step by step, and what it lives with.

import { drawn, el, oneLine, say, show } from "./dom.js";
import { Feed, get, path } from "./api.js";
import { count, since, usd, whole } from "./format.js";
import { entryElement } from "./conversation.js";
import { unified } from "./diff.js";
import { showAgentActions } from "./actions.js";

export function agentView(main, run, agent) {
  const status = el("span", { class: "status" });
  const sentence = el("p", { class: "why", role: "status" });
  const actions = el("div", { class: "actions" });
  const steps = el("ol", { class: "steps" });
  const live = el("div", { class: "conversation" });
  const writing = el("div", { class: "entry said writing", hidden: true, "aria-live": "off" }, el("pre", { class: "prose" }));
  const doing = el("p", { class: "quiet doing", role: "status" });
  const liveTitle = el("h2", null, "The last turn");
  const side = el("aside", { "aria-label": "About the agent" });
  show(main,
    el("p", { class: "crumbs" }, el("a", { href: path("runs", run), "data-link": true }, run)),
    el("div", { class: "head" }, el("h1", null, agent), status, actions), sentence,
    el("div", { class: "two" },
      el("div", null, el("h2", null, "Steps"), steps, el("section", { "aria-label": "The last turn" }, liveTitle, live, writing, doing)), side));
  const items = new Map(), turns = new Map();
  let current = null, timer = null, sideShown = null, tree = null;

  async function load() {
    try {
      const found = await get(path("runs", run, "agents", agent));
      drawn(steps, () => draw(found));
    } catch (error) {
      say(sentence, error.message);
    }
  }

  function draw(found) {
    const now = found.now;
    const word = now ? (now.status || "live") : found.status || (found.error ? "failed" : "finished");
    say(status, word);
    status.className = "status " + word;
    const untold = (found.untold || []).map((text) => `It ended before it was told: ${text}`);
    const end = now ? (now.sentence === word ? "" : now.sentence) : found.result ?? found.error ?? "";
    say(sentence, [end, ...untold].join("\n"));
    sentence.className = now || found.error ? "why" : "came";
    showAgentActions(actions, run, agent, found);
    drawSteps(found);
    drawSide(found);
  }

  function drawSteps(found) {
    show(steps, found.earlier_steps ? el("li", { class: "quiet" }, `${count(found.earlier_steps, "earlier step")} not shown: raymond show ${run} ${agent}`) : null,
      found.steps.map((step) => {
        const item = items.get(step.step) || el("li", { value: step.step });
        items.set(step.step, item);
        show(item, el("div", { class: "step" }, el("strong", null, step.state), el("span", { class: "quiet", title: whole(step.since) }, ` ${since(step.since)} ago`), el("span", { class: "cost" }, usd(step.cost_usd))),
          step.turns.map((turn, index) => turnElement(turn, index, step.turns)));
        return item;
      }));
  }

  // A turn that is shown already stays as it is, with what was opened in it.
  function turnElement(turn, index, all) {
    if (index > 0 && all[index - 1].turn === turn.turn) return el("p", { class: "quiet" }, turn.event);
    const key = `${turn.step}-${turn.turn}`;
    const known = turns.get(key);
    if (known?.event === turn.event) return known.element;
    const box = el("div");
    const details = el("details", { "data-turn": key, ontoggle: () => details.open && !box.childElementCount && loadTurn(turn, box) },
      el("summary", { "data-focus": key }, `turn ${turn.turn + 1}`, turn.evaluator ? ` evaluator ${turn.evaluator}` : "", " ", el("span", { class: "quiet" }, turn.event === "due" ? "not ended" : turn.event.replaceAll("_", " "))), box);
    if (known?.element.open) details.open = true;
    turns.set(key, { event: turn.event, element: details });
    return details;
  }

  async function loadTurn(turn, box) {
    say(box, "");
    let from = 0;
    try {
      for (;;) {
        const page = await get(path("runs", run, "agents", agent, "turns", turn.step, turn.turn) + "?from=" + from);
        if (page.left_out && !from) box.append(el("p", { class: "quiet" }, `${page.left_out} earlier entries are left out`));
        box.append(...page.entries.map(entryElement));
        from += page.entries.length;
        if (!page.entries.length || from >= page.all) break;
      }
      if (!box.childElementCount) box.append(el("p", { class: "quiet" }, "This turn has left no stream."));
    } catch (error) {
      box.append(el("p", { class: "bad" }, error.message));
    }
  }

  function drawSide(found) {
    const now = found.now || {};
    const values = (title, map) => map && Object.keys(map).length ? el("section", null, el("h2", null, title), el("dl", null, Object.entries(map).map(([name, value]) => [el("dt", null, oneLine(name)), el("dd", null, el("pre", null, typeof value === "string" ? value : JSON.stringify(value)))]))) : null;
    const facts = { state: now.state, step: now.step, session: now.session, directory: now.directory, host: now.host, "cost": usd(found.cost_usd), parent: found.parent };
    const kept = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined && value !== null && value !== ""));
    const text = JSON.stringify([kept, now.variables, now.born_with, now.stack, now.worktree]);
    if (text === sideShown) return;
    sideShown = text;
    tree = now.worktree ? tree ?? worktree() : null;
    show(side, values("Now", kept), values("Variables", now.variables), values("Born with", now.born_with),
      now.stack?.length ? el("section", null, el("h2", null, "Stack"), el("ol", null, now.stack.map((frame) => el("li", null, frame.state)))) : null,
      tree);
  }

  function worktree() {
    const box = el("div");
    const details = el("details", { ontoggle: async () => {
      if (!details.open) return;
      try {
        const found = await get(path("runs", run, "agents", agent, "diff"));
        show(box, el("p", { class: "quiet" }, `against ${found.base}${found.cut ? "; the end is left out" : ""}`), found.diff ? unified(found.diff) : found.untracked.length ? null : el("p", null, "Nothing has changed."), found.untracked.length ? el("div", null, el("h3", null, "New files"), el("ul", { class: "files" }, found.untracked.map((file) => el("li", null, oneLine(file))))) : null);
      } catch (error) {
        show(box, el("p", { class: "bad" }, error.message));
      }
    } }, el("summary", null, "Changes in its worktree"), box);
    return el("section", null, el("h2", null, "Worktree"), details);
  }

  const atEnd = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
  const feed = new Feed(path("runs", run, "agents", agent, "events"), {
    reset: () => show(live),
    turn: (turn) => {
      current = turn.step;
      show(live);
      say(liveTitle, turn.step === null ? "No turn has begun yet" : `The last turn: step ${turn.step}, turn ${turn.turn + 1}`);
      load();
    },
    entries: (page) => {
      const follow = atEnd();
      while (live.childElementCount > page.from) live.lastElementChild.remove();
      live.append(...page.entries.map(entryElement));
      if (follow && current !== null) window.scrollTo(0, document.body.scrollHeight);
    },
    writing: (now) => {
      writing.hidden = !now?.text;
      say(writing.firstElementChild, now?.text || "");
      say(doing, now?.doing && !now.ended ? now.doing : "");
      if (now?.ended) load();
    },
    refused: () => document.dispatchEvent(new Event("raymond-refused")),
  });
  load();
  timer = setInterval(() => !document.hidden && load(), 5000);
  return { close: () => { feed.close(); clearInterval(timer); } };
}
