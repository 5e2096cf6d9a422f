// The difference of two texts, line by line.

import { el } from "./dom.js";

const MOST = 400;

// Returns lines with their signs.
export function lineDiff(before, after) {
  const a = before ? before.split("\n") : [], b = after ? after.split("\n") : [];
  if (a.length > MOST || b.length > MOST) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const lines = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push([" ", a[i++], j++]);
    else if (i < a.length && (j >= b.length || table[i + 1][j] >= table[i][j + 1])) lines.push(["-", a[i++]]);
    else lines.push(["+", b[j++]]);
  }
  return lines;
}

const NAMES = { "+": "added", "-": "removed", " ": "same" };

export function diffElement(lines) {
  return el("pre", { class: "diff" }, lines.map(([sign, line]) => el("span", { class: NAMES[sign] }, el("span", { class: "sign" }, sign), line + "\n")));
}

// Returns the parts of a unified diff, as git prints it.
export function unified(text) {
  const lines = text.split("\n").map((line) => {
    const sign = line[0] === "+" && !line.startsWith("+++") ? "+" : line[0] === "-" && !line.startsWith("---") ? "-" : " ";
    return [sign, sign === " " ? line : line.slice(1)];
  });
  return diffElement(lines);
}
