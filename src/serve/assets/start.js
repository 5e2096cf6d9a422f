// Starts a workflow that is trusted or was run before, with the inputs that it declares, and asserts facts that programs wait for.

import { el, notice, oneLine, say, show } from "./dom.js";
import { act, get, path } from "./api.js";

let fields = 0;

function field(label, attributes, help) {
  const input = el(attributes.rows ? "textarea" : "input", attributes);
  const refused = el("p", { class: "bad refused", id: `refused-${++fields}`, role: "alert" });
  const tell = (text) => {
    say(refused, text);
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  input.setAttribute("aria-describedby", refused.id);
  input.addEventListener("input", () => tell(""));
  return { input, tell, element: el("div", { class: "field" }, el("label", null, el("span", null, label), input, help ? el("small", { class: "quiet" }, help) : null), refused) };
}

function form(workflow) {
  const inputs = workflow.inputs.map((one) => ({ name: one.name, ...field(oneLine(one.name) + (one.required ? " (needed)" : ""), { rows: one.name === "input" ? 3 : undefined, required: one.required && !one.default, placeholder: one.default ?? "" }, one.description) }));
  if (!workflow.inputs.some((one) => one.name === "input")) inputs.push({ name: "input", ...field("input", { rows: 2 }, "The text for {{input}} in the first state") });
  const budget = field("Budget in dollars", { inputmode: "decimal", placeholder: "none" });
  const model = field("Model", { placeholder: "as the workflow says" });
  const go = el("button", { class: "main" }, "Start");
  return el("form", { class: "card start", "aria-label": workflow.name || workflow.folder, onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    const given = Object.fromEntries(inputs.filter((one) => one.input.value !== "").map((one) => [one.name, one.input.value]));
    try {
      const made = await act("start", { folder: workflow.folder, inputs: given, budget: budget.input.value.trim(), model: model.input.value.trim() });
      history.pushState(null, "", path("runs", made.run));
      dispatchEvent(new PopStateEvent("popstate"));
    } catch (error) {
      const refused = { ...Object.fromEntries(inputs.map((one) => [`inputs.${one.name}`, one])), budget, model }[error.field];
      if (refused) {
        refused.tell(error.message);
        refused.input.focus();
      } else notice(error.message, "bad");
      go.disabled = false;
    }
  } }, el("h2", null, workflow.name || oneLine(workflow.folder.split("/").pop())), workflow.description ? el("p", null, workflow.description) : null, el("p", { class: "quiet path" }, oneLine(workflow.folder)),
    inputs.map((one) => one.element), budget.element, model.element, go);
}

function signal() {
  const label = field("Label", { required: true }), key = field("Key", {}), value = field("Value", { rows: 2 });
  return el("form", { class: "card start", "aria-label": "Signal", onsubmit: async (event) => {
    event.preventDefault();
    try {
      const made = await act("signal", { label: label.input.value, key: key.input.value, value: value.input.value });
      notice(made.changed ? `${made.label} ${made.key} is asserted` : `${made.label} ${made.key} was asserted already`);
    } catch (error) {
      notice(error.message, "bad");
    }
  } }, el("h2", null, "Signal"), el("p", { class: "quiet" }, "A fact that programs wait for."), label.element, key.element, value.element, el("button", { class: "main" }, "Assert"));
}

export function startView(main) {
  const list = el("div", { class: "forms" });
  const state = el("p", { class: "quiet", role: "status" }, "");
  show(main, el("h1", null, "Start"), state, list);
  get("/workflows").then((found) => {
    say(state, found.workflows.length ? "" : "No workflow is known yet. Trust one at a terminal, or run it there once: raymond trust FOLDER");
    show(list, found.workflows.map(form), signal());
  }, (error) => say(state, error.message));
  return { close() {} };
}
