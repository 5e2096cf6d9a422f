// Makes elements. A text is always a text node, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
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

// Puts children in the place of all that an element has.
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

// Sets the text of an element if it is another one, so that nothing is read aloud twice.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
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

// Shows a message for a while.
export function notice(text, kind) {
  const box = document.getElementById("notices");
  const one = el("div", { class: "notice " + (kind || "") }, text,
    el("button", { class: "plain", "aria-label": "Close", onclick: () => one.remove() }, "×"));
  box.append(one);
  if (kind !== "bad") setTimeout(() => one.remove(), 8000);
}
