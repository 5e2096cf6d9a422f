// Makes elements. A text is always a text node, never HTML.

const SVG = "http://www.w3.org/2000/svg";

// What is invisible, controls a terminal or turns the text around it: the characters that the commands print as numbers, too.
const UNPRINTABLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// The attributes that people read.
const READ = new Set(["title", "aria-label", "placeholder"]);

// Returns a text in which each such character is seen as its number: what is shown has to be what is meant.
export function printable(text) {
  return String(text).replaceAll("\r\n", "\n").replace(UNPRINTABLE, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

// Returns a text on one line, of which no part looks like another line.
export function oneLine(text) {
  return printable(text).replaceAll("\n", "\\n");
}

const isShown = (child) => child !== undefined && child !== null && child !== false;
const nodeOf = (child) => (child instanceof Node ? child : document.createTextNode(printable(child)));

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (!isShown(value)) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (READ.has(name)) element.setAttribute(name, printable(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter(isShown).map(nodeOf));
  return element;
}

// Returns an element with attributes and children; a child that is no node becomes a text.
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// Returns an element of a drawing.
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Puts children in the place of all that an element has. What stays is not touched, so that nobody is interrupted who writes in
// it; and what has the focus hands it on to its like.
export function show(element, ...children) {
  const nodes = children.flat(Infinity).filter(isShown).map(nodeOf);
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const stays = new Set(nodes);
  for (const one of [...element.childNodes]) if (!stays.has(one)) one.remove();
  let place = element.firstChild;
  for (const one of nodes) {
    if (one === place) place = place.nextSibling;
    else element.insertBefore(one, place);
  }
  if (focused && focused !== element && document.activeElement !== focused) passFocus(element, focused);
}

// The words of an element without its numbers, which change.
const words = (one) => (one.getAttribute("aria-label") || one.textContent).replace(/[\d.,]+/g, "");

function passFocus(element, from) {
  const isLike = (one) => one === from || (from.dataset.focus ? one.dataset.focus === from.dataset.focus : one.getAttribute("href") === from.getAttribute("href") && words(one) === words(from));
  [...element.querySelectorAll(from.tagName)].find(isLike)?.focus({ preventScroll: true });
}

// Sets the text of an element if it is another one, so that nothing is read aloud twice.
export function say(element, text) {
  const shown = printable(text);
  if (element.textContent !== shown) element.textContent = shown;
}

// What is to be drawn once no button of the mouse is down, and no finger: a press on an element that is replaced before it
// ends would be no click.
let waiting = null;
addEventListener("pointerdown", () => (waiting ??= new Map()), true);
for (const end of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(end, () => setTimeout(() => {
    const due = waiting ? [...waiting.values()] : [];
    waiting = null;
    for (const draw of due) draw();
  }), true);
}

// Draws now, or after the press that is under way; of several drawings with one key the last one.
export function drawn(key, draw) {
  if (waiting) waiting.set(key, draw);
  else draw();
}

// Lets no tap count for a moment after something went away: what comes into its place is not what was meant.
export function settle(element) {
  element.classList.add("settling");
  clearTimeout(settling.get(element));
  settling.set(element, setTimeout(() => element.classList.remove("settling"), 700));
}
const settling = new WeakMap();

// Shows a message for a while.
export function notice(text, kind) {
  const box = document.getElementById("notices");
  const one = el("div", { class: "notice " + (kind || ""), role: kind === "bad" ? "alert" : null }, text,
    el("button", { class: "plain", "aria-label": "Close", onclick: () => one.remove() }, "×"));
  box.append(one);
  if (kind !== "bad") setTimeout(() => one.remove(), 8000);
}
