// The actions on a run and on an agent. Each is an entry: when it can be taken, and what it does.

import { el, notice, show } from "./dom.js";
import { act, path } from "./api.js";
import { usd } from "./format.js";

// Asks before something that cannot be undone.
function confirmed(text, act) {
  const dialog = el("dialog", { "aria-label": text },
    el("form", { method: "dialog" }, el("p", null, text),
      el("div", { class: "actions" }, el("button", { value: "no" }, "No"), el("button", { value: "yes", class: "main" }, "Yes"))));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue === "yes") act();
  });
  document.body.append(dialog);
  dialog.showModal();
}

// Asks for a text, and acts with it.
function written(title, act) {
  const field = el("textarea", { rows: 4, "aria-label": title, required: true });
  const dialog = el("dialog", { "aria-label": title },
    el("form", { method: "dialog" }, el("p", null, title), field,
      el("div", { class: "actions" }, el("button", { value: "no", formnovalidate: true }, "Cancel"), el("button", { value: "yes", class: "main" }, "Send"))));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue === "yes" && field.value.trim()) act(field.value);
  });
  document.body.append(dialog);
  dialog.showModal();
}

async function tell(name, body, told) {
  try {
    const answer = await act(name, body);
    notice(told(answer));
    return answer;
  } catch (error) {
    notice(error.message, "bad");
    return null;
  }
}

const OF_RUN = [
  {
    title: "Stop",
    can: (run, now) => now.held && now.status === "running",
    act: (run) => confirmed(`Stop ${run} once its running turns have finished?`, () => tell("stop", { run }, (told) => told.asked ? `${run} stops once its running turns have finished` : `${run} is ${told.status}`)),
  },
  {
    title: "Retry failed",
    can: (run, now) => now.counts.failed > 0,
    act: async (run) => {
      const plan = await tell("retry", { run, dry_run: true }, (told) => `${told.agents.length} agents would live again`);
      if (plan) confirmed(`Let ${plan.agents.length === 1 ? "1 agent" : plan.agents.length + " agents"} live again, for up to about ${usd(plan.estimated_cost_usd)}?`, () => tell("retry", { run }, () => `${run} retries its failed agents`));
    },
  },
];

const later = (told, text) => told.is_live ? text : `${text}, once the run is resumed`;

const OF_AGENT = [
  {
    title: "Tell",
    can: (found) => Boolean(found.now),
    act: (run, agent) => written(`Message to ${agent}`, (text) => tell("tell", { run, agent, text }, (told) => later(told, `${agent} gets the message with its next request to the model`))),
  },
  {
    title: "Hold",
    can: (found) => Boolean(found.now) && !found.now.held,
    act: (run, agent) => tell("hold", { run, agent }, (told) => later(told, `${agent} starts nothing new`)),
  },
  {
    title: "Release",
    can: (found) => Boolean(found.now) && found.now.held,
    act: (run, agent) => tell("release", { run, agent }, (told) => later(told, `${agent} continues`)),
  },
  {
    title: "End",
    can: (found) => Boolean(found.now),
    act: (run, agent) => confirmed(`End ${agent} as failed? Waiting agents are notified.`, () => tell("stop-agent", { run, agent }, (told) => later(told, `${agent} ends`))),
  },
  {
    title: "Retry",
    can: (found) => found.status === "failed",
    act: (run, agent) => confirmed(`Let ${agent} live again where it failed?`, () => tell("retry", { run, agent }, (told) => `${told.agents.length === 1 ? "1 agent lives" : told.agents.length + " agents live"} again`)),
  },
  {
    title: "Branch here",
    can: (found) => found.steps.length > 0,
    act: (run, agent, found) => {
      const at = `${agent}#${found.steps[found.steps.length - 1].step}`;
      confirmed(`Start a run that continues before ${at}? It costs what its turns cost.`, async () => {
        const made = await tell("branch", { run, at }, (told) => `${told.run} has begun`);
        if (!made) return;
        history.pushState(null, "", path("runs", made.run));
        dispatchEvent(new PopStateEvent("popstate"));
      });
    },
  },
];

// Shows a button for each action that can be taken. One that is there already stays, with the focus that it may get back from a dialog.
function buttons(box, actions, act) {
  const known = new Map([...box.children].map((one) => [one.textContent, one]));
  show(box, actions.map((one) => {
    const button = known.get(one.title) || el("button", null, one.title);
    button.onclick = () => act(one);
    return button;
  }));
}

export function showRunActions(box, run, now) {
  buttons(box, OF_RUN.filter((one) => one.can(run, now)), (one) => one.act(run));
}

export function showAgentActions(box, run, agent, found) {
  buttons(box, OF_AGENT.filter((one) => one.can(found)), (one) => one.act(run, agent, found));
}
