// Editing on an image itself: a crop, regions, a focus point, and the places of overlays.

import { h } from "/dom.js";

const clamped = (value, least, most) => Math.min(Math.max(value, least), most);
const rounded = (value) => Number(value.toFixed(4));
const percent = (share) => `${Math.round(share * 1000) / 10} %`;

const whole = { x: 0, y: 0, width: 1, height: 1 };
const edges = ["nw", "n", "ne", "w", "e", "sw", "s", "se"];
/** Sides of a rectangle in pixels of the page below which its handles lie around it. */
const smallSide = 72;
/** Pixels of the page that a pointer moves before it draws a new rectangle. */
const drawDistance = 5;

/** How marks of each kind are moved, for those who do not see them. */
const hints = {
  point: "move it with the arrow keys",
  rect: "move it with the arrow keys, resize it with Shift and the arrow keys",
  box: "move it with the arrow keys, change it with Enter",
};

/**
 * What lies on the sheet of a pane: a mark for each item, of which one is chosen and has handles. Items are {key, name, value} with
 * values in fractions of the image: {x, y} of a "point"; {x, y, width, height} of a "rect", and of a "box", which only moves and may
 * lie partly outside. Without a value an item stands in the middle, or covers everything.
 *
 * `onchange(key, value)` is called while a mark moves, and `onchoose(key)` when another one is chosen. With `onadd(value)`, which
 * returns the key of the new item, a rectangle that is drawn outside of the others is a new one; without, it replaces the only one.
 * `onremove(key)` and `onopen(key)` are called when keys ask for it.
 */
export class Overlay {
  constructor(kind, { onchange, onchoose, onadd, onremove, onopen, isList = false }) {
    Object.assign(this, { kind, isList, onchange, onchoose, onadd, onremove, onopen });
    this.items = [];
    this.marks = new Map();
    this.status = h("p", { class: "hidden", role: "status" });
    this.element = h("div", { class: `overlay overlay-${kind}` }, this.status);
    this.element.addEventListener("pointerdown", (event) => this.drag(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("dblclick", () => this.onopen?.(this.chosen));
    this.element.addEventListener("focusin", (event) => this.choose(event.target.dataset.key));
  }

  /** The mark that is chosen; undefined if there is none. */
  get mark() { return this.marks.get(this.chosen); }
  get value() { return this.items.find(({ key }) => key === this.chosen)?.value ?? this.initial; }
  get initial() { return this.kind === "point" ? { x: 0.5, y: 0.5 } : whole; }

  place() { this.draw(); }

  /** Shows items with the values that they have now, and which of them is chosen. */
  show(items, chosen) {
    const moved = this.isDragged && this.value;
    this.items = items.map(({ value, ...item }) => ({ ...item, value: value ?? this.initial }));
    this.chosen = chosen;
    const item = this.items.find(({ key }) => key === chosen);
    // The pointer is ahead of what has been set.
    if (moved && item) item.value = moved;
    for (const [key, mark] of this.marks) {
      if (items.some((one) => one.key === key)) continue;
      mark.remove();
      this.marks.delete(key);
    }
    for (const { key } of items) if (!this.marks.has(key)) this.add(key);
    this.draw();
  }

  add(key) {
    const shape = this.kind === "point" ? "focus" : this.isList ? "area" : "crop";
    const mark = h("div", { class: shape, tabindex: 0, role: "application", dataset: { key } });
    if (this.kind === "rect") for (const edge of edges) mark.append(h("i", { dataset: { edge } }));
    this.marks.set(key, mark);
    this.element.append(mark);
  }

  choose(key) {
    if (!key || key === this.chosen || !this.marks.has(key)) return;
    this.chosen = key;
    this.draw();
    this.onchoose?.(key);
  }

  draw() {
    const { clientWidth, clientHeight } = this.element;
    for (const { key, name, value: { x, y, width, height } } of this.items) {
      const mark = this.marks.get(key);
      const { style } = mark;
      style.left = `${x * 100}%`;
      style.top = `${y * 100}%`;
      mark.setAttribute("aria-label", `${name}: ${hints[this.kind]}`);
      mark.setAttribute("aria-roledescription", this.kind === "point" ? "point" : "rectangle");
      mark.classList.toggle("is-chosen", key === this.chosen);
      if (this.kind === "point") continue;
      [style.width, style.height] = [`${width * 100}%`, `${height * 100}%`];
      mark.classList.toggle("is-small", Math.min(width * clientWidth, height * clientHeight) < smallSide);
      if (this.isList) mark.dataset.name = name;
    }
  }

  /** Moves the chosen mark. */
  change(value) {
    const item = this.items.find(({ key }) => key === this.chosen);
    if (!item) return;
    const kept = this.kind === "point" ? { x: clamped(value.x, 0, 1), y: clamped(value.y, 0, 1) }
      : this.kind === "rect" ? this.inside(value) : this.near(value);
    item.value = Object.fromEntries(Object.entries(kept).map(([name, number]) => [name, rounded(number)]));
    this.draw();
    this.onchange(item.key, item.value);
  }

  inside({ x, y, width, height }) {
    const least = 0.005;
    const [left, top] = [clamped(x, 0, 1 - least), clamped(y, 0, 1 - least)];
    return { x: left, y: top, width: clamped(width, least, 1 - left), height: clamped(height, least, 1 - top) };
  }

  /** At least a part of it stays in view. */
  near({ x, y, width, height }) {
    const least = 0.02;
    return { x: clamped(x, Math.min(least - width, 0), 1 - least), y: clamped(y, Math.min(least - height, 0), 1 - least), width, height };
  }

  drag(event) {
    if (event.button !== 0 || this.isDragged) return;
    event.preventDefault();
    event.stopPropagation();
    const bounds = this.element.getBoundingClientRect();
    const at = ({ clientX, clientY }) => ({ x: (clientX - bounds.left) / bounds.width, y: (clientY - bounds.top) / bounds.height });
    const start = at(event);
    const pressed = event.target.closest("[data-key]");
    if (pressed) this.choose(pressed.dataset.key);
    let step;
    if (this.kind === "rect" && this.isList && !pressed) {
      step = this.drawing(start, event);
    } else {
      if (!this.mark || (this.kind === "box" && !pressed)) return;
      const [before, edge] = [{ ...this.value }, event.target.dataset.edge];
      const isWhole = before.width > 0.995 && before.height > 0.995;
      const isMoved = this.kind === "box" || (event.target === this.mark && !isWhole);
      step = (now) => this.change(this.dragged(start, now, before, edge, isMoved));
    }
    this.mark?.focus({ preventScroll: true });
    this.isDragged = true;
    if (this.kind === "point") this.change(start);
    this.element.setPointerCapture(event.pointerId);
    const follow = (moved) => { if (moved.pointerId === event.pointerId) step(at(moved), moved); };
    const end = (ended) => {
      if (ended.pointerId !== event.pointerId) return;
      this.element.removeEventListener("pointermove", follow);
      this.element.removeEventListener("pointerup", end);
      this.element.removeEventListener("pointercancel", end);
      this.isDragged = false;
      this.mark?.focus({ preventScroll: true });
      this.onend?.();
    };
    this.element.addEventListener("pointermove", follow);
    this.element.addEventListener("pointerup", end);
    this.element.addEventListener("pointercancel", end);
  }

  /** Draws a new rectangle once the pointer has moved. */
  drawing(start, { clientX, clientY }) {
    let key;
    return (now, moved) => {
      const value = this.inside(this.dragged(start, now));
      if (key) return this.change(value);
      if (Math.hypot(moved.clientX - clientX, moved.clientY - clientY) >= drawDistance) key = this.onadd(value);
    };
  }

  dragged(start, at, before, edge, isMoved) {
    if (this.kind === "point") return at;
    if (this.kind === "box") return { ...before, x: before.x + at.x - start.x, y: before.y + at.y - start.y };
    const now = { x: clamped(at.x, 0, 1), y: clamped(at.y, 0, 1) };
    if (isMoved) {
      return {
        ...before, x: clamped(before.x + now.x - start.x, 0, 1 - before.width),
        y: clamped(before.y + now.y - start.y, 0, 1 - before.height),
      };
    }
    let [left, top, right, bottom] = edge
      ? [before.x, before.y, before.x + before.width, before.y + before.height] : [start.x, start.y, now.x, now.y];
    if (edge?.includes("w")) left = now.x;
    if (edge?.includes("e")) right = now.x;
    if (edge?.includes("n")) top = now.y;
    if (edge?.includes("s")) bottom = now.y;
    return {
      x: Math.min(left, right), y: Math.min(top, bottom), width: Math.abs(right - left), height: Math.abs(bottom - top),
    };
  }

  key(event) {
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      event.stopPropagation();
      return this.onremove?.(this.chosen);
    }
    if (event.key === "Enter" && this.onopen) {
      event.preventDefault();
      return this.onopen(this.chosen);
    }
    const step = event.ctrlKey || event.altKey ? 0.001 : 0.01;
    const [x, y] = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key] ?? [];
    if (x === undefined || !this.mark) return;
    event.preventDefault();
    event.stopPropagation();
    const { value } = this;
    const [width, height] = [value.width ?? 0, value.height ?? 0];
    if (event.shiftKey && this.kind === "rect") this.change({ ...value, width: width + x, height: height + y });
    else if (this.kind === "box") this.change({ ...value, x: value.x + x, y: value.y + y });
    else this.change({ ...value, x: clamped(value.x + x, 0, 1 - width), y: clamped(value.y + y, 0, 1 - height) });
    this.announce();
  }

  /** Says where the chosen mark is. */
  announce() {
    const { x, y, width, height } = this.value;
    this.status.textContent = `${percent(x)} from the left, ${percent(y)} from the top`
      + (this.kind === "rect" ? `, ${percent(width)} wide, ${percent(height)} high` : "");
  }
}
