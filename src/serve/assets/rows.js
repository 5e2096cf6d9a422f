// A list of any length of which only the visible rows exist. Arrows move in it.

import { drawn, el, show } from "./dom.js";

// The rows that are kept in reserve above and below the visible ones, and how many of them are made in a frame: no frame makes
// all, so none is late for them.
const SPARE = 24;
const A_FRAME = 12;

export class VirtualRows {
  // `make(item, index)` returns the cells of a row; `open(item)` is called for Enter and a click.
  constructor({ label, height, make, open, toggle, role }) {
    Object.assign(this, { height, make, open, toggle });
    this.items = [];
    [this.first, this.last, this.top] = [0, 0, 0];
    this.drawn = new Map();
    this.active = 0;
    this.space = el("div", { class: "space" });
    this.box = el("div", { class: "rows", tabindex: "0", role: role || "tree", "aria-label": label }, this.space);
    this.scrolledAt = -Infinity;
    this.box.addEventListener("scroll", () => {
      this.scrolledAt = performance.now();
      this.later();
    }, { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("click", (event) => this.click(event));
    this.watch = new ResizeObserver(() => this.later());
    this.watch.observe(this.box);
  }

  set(items) {
    this.items = items;
    this.active = Math.min(this.active, Math.max(0, items.length - 1));
    this.space.style.height = `${items.length * this.height}px`;
    this.dirty = true;
    this.later();
  }

  // Whether somebody scrolls at this moment, so that what can wait does.
  isMoving() {
    return performance.now() - this.scrolledAt < 200;
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      drawn(this, () => this.draw());
    });
  }

  // Returns the rows to have now: the visible ones, those that there are, and some more in reserve, first where it is scrolled to.
  range() {
    const top = Math.min(Math.floor(this.box.scrollTop / this.height), this.items.length);
    const bottom = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height));
    const from = Math.max(0, top - SPARE), to = Math.min(this.items.length, bottom + SPARE);
    let first = top, last = bottom, left = A_FRAME;
    if (!this.dirty && this.first <= bottom && this.last >= top) {
      first = Math.min(top, Math.max(this.first, from));
      last = Math.max(bottom, Math.min(this.last, to));
      left -= Math.max(0, this.first - first) + Math.max(0, last - this.last);
    }
    const isDown = top >= this.top;
    for (const below of [isDown, !isDown]) {
      const more = Math.max(0, Math.min(left, below ? to - last : first - from));
      if (below) last += more;
      else first -= more;
      left -= more;
    }
    this.top = top;
    return { first, last, isWhole: first === from && last === to };
  }

  draw() {
    const { first, last, isWhole } = this.range();
    if (!isWhole) this.later();
    if (!this.dirty && first === this.first && last === this.last) return;
    const isSame = !this.dirty;
    const rows = [];
    for (let index = first; index < last; index++) {
      const known = isSame ? this.drawn.get(index) : null;
      if (known) {
        rows.push(known);
        continue;
      }
      const row = this.make(this.items[index], index);
      row.style.transform = `translateY(${index * this.height}px)`;
      row.dataset.index = index;
      row.id = `${this.box.id || "rows"}-${index}`;
      row.setAttribute("aria-setsize", this.items.length);
      row.setAttribute("aria-posinset", index + 1);
      row.classList.toggle("active", index === this.active);
      rows.push(row);
    }
    show(this.space, rows);
    this.drawn = new Map(rows.map((row) => [Number(row.dataset.index), row]));
    [this.first, this.last, this.dirty] = [first, last, false];
    this.box.setAttribute("aria-activedescendant", `${this.box.id || "rows"}-${this.active}`);
  }

  move(to) {
    this.active = Math.max(0, Math.min(this.items.length - 1, to));
    const top = this.active * this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    const bottom = top + this.height - this.box.clientHeight;
    if (bottom > this.box.scrollTop) this.box.scrollTop = bottom;
    this.dirty = true;
    this.draw();
  }

  key(event) {
    if (event.target !== this.box) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const item = this.items[this.active];
    if (event.key in steps) this.move(this.active + steps[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.move(this.items.length - 1);
    else if (event.key === "Enter" && item) this.open?.(item);
    else if (event.key === "ArrowRight" && item) this.toggle?.(item, true);
    else if (event.key === "ArrowLeft" && item) this.toggle?.(item, false);
    else return;
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("a, button")) return;
    this.active = Number(row.dataset.index);
    this.dirty = true;
    this.draw();
    this.open?.(this.items[this.active]);
  }

  close() {
    this.watch.disconnect();
  }
}
