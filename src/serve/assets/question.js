// A question with its answers: one tap chooses, or a text is written.

import { el, notice, show } from "./dom.js";
import { act, path } from "./api.js";
import { since, whole } from "./format.js";
import { diffElement, lineDiff } from "./diff.js";

// The tool call that a person is asked to let run: its edits as differences, or else its input.
function callElement(call) {
  const edits = (call.edits || []).map((edit) => el("figure", { class: "edit" }, el("figcaption", null, edit.file), diffElement(lineDiff(edit.old ?? "", edit.new))));
  const input = edits.length ? null : el("pre", { class: "input" }, typeof call.input.value === "string" ? call.input.value : JSON.stringify(call.input.value, null, 2));
  return el("div", { class: "call" },
    call.subagent ? el("p", { class: "quiet" }, `asked by its sub-agent ${call.subagent}`) : null,
    call.reason ? el("p", { class: "quiet" }, call.reason) : null, edits, input,
    call.input.left_out_bytes ? el("p", { class: "bad" }, `${call.input.left_out_bytes} bytes of the input are not shown`) : null);
}

export function questionCard(run, question) {
  const key = question.agent + "/" + question.node;
  const id = "q-" + (run + key).replace(/[^a-zA-Z0-9]/g, "-");
  const card = el("article", { class: "question card", "data-key": key, "aria-labelledby": id });
  const buttons = [];

  async function give(text) {
    for (const button of buttons) button.disabled = true;
    try {
      const told = await act("answer", { run, agent: question.agent, node: question.node, text });
      const answered = el("p", { class: "good", role: "status", tabindex: "-1" }, `${key} is answered${told.locked ? "" : `; the run is not live: raymond resume ${run}`}`);
      show(card, answered);
      answered.focus();
      document.dispatchEvent(new Event("raymond-answered"));
    } catch (error) {
      notice(error.message, "bad");
      for (const button of buttons) button.disabled = false;
    }
  }

  const option = (one) => {
    const button = el("button", { class: "option", onclick: () => give(one.id) }, el("strong", null, one.label || one.id), one.description ? el("span", { class: "quiet" }, one.description) : null);
    buttons.push(button);
    return button;
  };
  let own = null;
  if (question.free) {
    const field = el("textarea", { rows: 2, "aria-label": "A text of your own", placeholder: question.options.length ? "or a text of your own" : "your answer" });
    const send = el("button", { class: "main", onclick: () => (field.value ? give(field.value) : field.focus()) }, "Answer");
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.value) give(field.value);
    });
    buttons.push(send);
    own = el("div", { class: "own" }, field, send);
  }
  show(card,
    el("p", { class: "quiet" }, el("a", { href: path("runs", run), "data-link": true }, run), " · ", el("a", { href: path("runs", run, "agents", question.agent), "data-link": true }, question.agent), " · ", el("span", { title: whole(question.asked_at) }, since(question.asked_at) + " ago"), question.until ? ` · until ${whole(question.until)}` : ""),
    el("h2", { id }, question.header ? el("span", { class: "tag" }, question.header) : null, question.question),
    question.approval ? callElement(question.approval) : null,
    el("div", { class: "options" }, question.options.map(option)), own);
  return card;
}
