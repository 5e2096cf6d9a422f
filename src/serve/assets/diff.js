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

const NAMES = { "+": "added", "-": "removed", " ": "same", "@": "head" };

export function diffElement(lines) {
  return el("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": "Difference" }, lines.map(([sign, line]) => el("span", { class: NAMES[sign] }, el("span", { class: "sign" }, sign === "@" ? " " : sign), line + "\n")));
}

// Returns the lines of a unified diff, as git prints it, with their signs. A hunk says how many lines are its own, so that no line
// of a file looks like a head, and no head like a line.
export function unifiedLines(text) {
  let before = 0, after = 0;
  return text.split("\n").map((line) => {
    if (before <= 0 && after <= 0) {
      const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (hunk) [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      return ["@", line];
    }
    const sign = line[0] === "+" || line[0] === "-" ? line[0] : " ";
    if (line[0] === "\\") return ["@", line];
    if (sign !== "+") before--;
    if (sign !== "-") after--;
    return [sign, line.slice(1)];
  });
}

export function unified(text) {
  return diffElement(unifiedLines(text));
}
