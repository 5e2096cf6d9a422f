// The entries of a conversation as elements.

import { el } from "./dom.js";
import { diffElement, lineDiff } from "./diff.js";

const LONG = 1200;

// Returns a text, folded if it is long.
function text(value, kind) {
  if (value.length <= LONG) return el("pre", { class: kind }, value);
  return el("details", { class: "long" }, el("summary", null, el("pre", { class: kind }, value.slice(0, 600) + " …")), el("pre", { class: kind }, value));
}

// The most telling field of a tool's input.
function about(input) {
  if (typeof input !== "object" || input === null) return "";
  for (const key of ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"]) {
    if (typeof input[key] === "string") return input[key].split("\n")[0].slice(0, 160);
  }
  return "";
}

function edits(name, input) {
  if (typeof input !== "object" || input === null) return null;
  if (typeof input.old_string === "string" && typeof input.new_string === "string") return diffElement(lineDiff(input.old_string, input.new_string));
  if (Array.isArray(input.edits)) return el("div", null, input.edits.map((one) => diffElement(lineDiff(String(one.old_string ?? ""), String(one.new_string ?? "")))));
  if (name === "Write" && typeof input.content === "string") return diffElement(lineDiff("", input.content));
  return null;
}

function tool(entry) {
  const diff = edits(entry.name, entry.input);
  const input = typeof entry.input === "string" ? entry.input : JSON.stringify(entry.input, null, 2);
  return el("details", { class: "entry tool" + (entry.sub ? " sub" : ""), open: diff !== null, "data-tool": entry.id },
    el("summary", null, el("strong", null, entry.name), " ", el("code", null, about(entry.input))),
    diff || el("pre", { class: "input" }, input));
}

export function entryElement(entry) {
  switch (entry.kind) {
    case "prompt":
      return el("div", { class: "entry prompt" }, el("h3", null, "Prompt"), text(entry.text, "prose"));
    case "text":
      return el("div", { class: "entry said" + (entry.sub ? " sub" : "") }, text(entry.text, "prose"));
    case "thinking":
      return el("details", { class: "entry thinking" }, el("summary", null, "Thinking"), el("pre", { class: "prose" }, entry.text));
    case "tool":
      return tool(entry);
    case "result":
      return el("details", { class: "entry result" + (entry.error ? " bad" : "") }, el("summary", null, entry.error ? "Error: " : "Result: ", el("code", null, entry.text.split("\n")[0].slice(0, 160))), el("pre", null, entry.text));
    default:
      return el("p", { class: "entry note" + (entry.error ? " bad" : "") }, entry.text);
  }
}
