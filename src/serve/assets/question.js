// A question with its answers: one tap chooses, or a text is written.

import { el, notice, oneLine, show } from "./dom.js";
import { act, path } from "./api.js";
import { since, whole } from "./format.js";
import { diffElement, lineDiff } from "./diff.js";

// The lines of a text from which on its length is told, because its end may be below what is seen at once.
const MANY_LINES = 12;

function long(text) {
  const lines = text.split("\n").length;
  return lines > MANY_LINES ? el("p", { class: "warn" }, `${lines} lines: read to the end`) : null;
}

// The input of a call: its command as it is, and the other fields with their names.
function inputElement(input) {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return block(typeof input === "string" ? input : JSON.stringify(input, null, 2));
  return el("dl", { class: "fields" }, Object.entries(input).map(([name, value]) => [el("dt", null, oneLine(name)), el("dd", null, block(typeof value === "string" ? value : JSON.stringify(value, null, 2)))]));
}

function block(text) {
  return [long(text), el("pre", { class: "input", tabindex: "0" }, text)];
}

function editElement(edit) {
  const lines = lineDiff(edit.old ?? "", edit.new);
  const changed = lines.filter(([sign]) => sign !== " ").length;
  return el("figure", { class: "edit" }, el("figcaption", null, oneLine(edit.file)), changed > MANY_LINES ? el("p", { class: "warn" }, `${changed} changed lines: read to the end`) : null, diffElement(lines));
}

// The tool call that a person is asked to let run: its edits as differences, or else its input.
function callElement(call) {
  const edits = (call.edits || []).map(editElement);
  return el("div", { class: "call" },
    call.subagent ? el("p", { class: "quiet" }, `asked by its sub-agent ${oneLine(call.subagent)}`) : null,
    call.reason ? el("p", { class: "quiet" }, call.reason) : null, edits.length ? edits : inputElement(call.input.value),
    call.input.left_out_bytes ? el("p", { class: "bad" }, `${call.input.left_out_bytes} bytes of the input are not shown`) : null);
}

const VERDICTS = { allow: "Allow", "allow-always": "Always allow in this state", "allow-always-in-run": "Always allow in this run", deny: "Deny" };

// The words on the button of an answer: those of an approval are short, and name the rule that is given.
function optionWords(question, one) {
  if (!question.approval || !VERDICTS[one.id]) return [el("strong", null, one.label || one.id), one.description ? el("span", { class: "quiet" }, one.description) : null];
  const rules = (question.approval.rules || []).map((rule) => (rule.content ? `${rule.tool}(${rule.content})` : rule.tool));
  return [el("strong", null, VERDICTS[one.id] || one.label), VERDICTS[one.id] && one.id.startsWith("allow-always") ? el("span", { class: "quiet" }, oneLine("all of " + rules.join(", "))) : null];
}

export function questionCard(run, question) {
  const key = question.agent + "/" + question.node;
  const id = "q-" + (run + key).replace(/[^a-zA-Z0-9]/g, "-");
  const card = el("article", { class: "question card", "data-key": key, "data-asked": question.asked_at, "aria-labelledby": id });
  const buttons = [];

  async function give(text) {
    for (const button of buttons) button.disabled = true;
    try {
      const told = await act("answer", { run, agent: question.agent, node: question.node, asked_at: question.asked_at, text });
      const answered = el("p", { class: "good", role: "status", tabindex: "-1" }, `${key} is answered${told.locked ? "" : `; the run is not live: raymond resume ${run}`}`);
      // The cards below stay where they are: a second tap must not meet the answer to another question.
      card.style.minHeight = `${card.offsetHeight}px`;
      card.dataset.done = "true";
      show(card, answered);
      answered.focus({ preventScroll: true });
      document.dispatchEvent(new Event("raymond-answered"));
    } catch (error) {
      notice(error.message, "bad");
      for (const button of buttons) button.disabled = false;
    }
  }

  const option = (one) => {
    const button = el("button", { class: "option", "data-option": one.id, onclick: () => give(one.id) }, optionWords(question, one));
    buttons.push(button);
    return button;
  };

  // Returns a field for a text, and the button that gives it as the answer.
  function written({ label, placeholder, title, look, answer }) {
    const field = el("textarea", { rows: 2, "aria-label": label, placeholder });
    const go = () => (field.value.trim() ? give(answer(field.value)) : field.focus());
    const send = el("button", { class: look, onclick: go }, title);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !send.disabled) go();
    });
    buttons.push(send);
    return el("div", { class: "own" }, field, send);
  }

  let own = null;
  if (question.free) own = written({ label: "A text of your own", placeholder: question.options.length ? "or a text of your own" : "your answer", title: "Answer", look: "main", answer: (text) => text });
  else if (question.approval) own = written({ label: "Why it is denied", placeholder: "the reason, which the agent sees", title: "Deny, and say why", answer: (text) => "deny: " + text });
  show(card,
    el("p", { class: "quiet" }, el("a", { href: path("runs", run), "data-link": true }, run), " · ", el("a", { href: path("runs", run, "agents", question.agent), "data-link": true }, question.agent), " · ", el("span", { title: whole(question.asked_at) }, since(question.asked_at) + " ago"), question.until ? ` · until ${whole(question.until)}` : ""),
    el("h2", { id }, question.header ? el("span", { class: "tag" }, question.header) : null, question.approval ? `May it run ${oneLine(question.approval.tool)}?` : question.question),
    question.approval ? callElement(question.approval) : null,
    el("div", { class: "options" }, question.options.map(option)), own);
  return card;
}
