// Editing a crop, a region or a focus point on the image itself.

import { h } from "/dom.js";

const clamped = (value, least, most) => Math.min(Math.max(value, least), most);
const rounded = (value) => Number(value.toFixed(4));

/** What lies on the sheet of a pane. Values are fractions of the image: {x, y} or {x, y, width, height}. */
export class Overlay {
  constructor(kind, name, value, { onchange }) {
    this.kind = kind;
    this.initial = kind === "point" ? { x: 0.5, y: 0.5 } : { x: 0, y: 0, width: 1, height: 1 };
    this.value = value ?? this.initial;
    this.onchange = onchange;
    this.mark = h("div", {
      class: kind === "point" ? "focus" : "crop", tabindex: 0, role: "application",
      "aria-label": kind === "point"
        ? "Focus point: move it with the arrow keys" : `${name}: move it with the arrow keys, resize it with Shift`,
      "aria-roledescription": kind === "point" ? "point" : "rectangle",
    });
    if (kind === "rect") {
      for (const edge of ["nw", "n", "ne", "w", "e", "sw", "s", "se"]) this.mark.append(h("i", { dataset: { edge } }));
    }
    this.element = h("div", { class: "overlay" }, this.mark);
    this.element.addEventListener("pointerdown", (event) => this.drag(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.draw();
  }

  place() { this.draw(); }

  /** Shows a value that was changed elsewhere. */
  show(value) {
    if (this.isDragged) return;
    this.value = value ?? this.initial;
    this.draw();
  }

  draw() {
    const { style } = this.mark;
    const { x, y, width, height } = this.value;
    style.left = `${x * 100}%`;
    style.top = `${y * 100}%`;
    if (this.kind === "rect") [style.width, style.height] = [`${width * 100}%`, `${height * 100}%`];
  }

  change(value) {
    const kept = this.kind === "point"
      ? { x: clamped(value.x, 0, 1), y: clamped(value.y, 0, 1) }
      : this.inside(value);
    this.value = Object.fromEntries(Object.entries(kept).map(([name, number]) => [name, rounded(number)]));
    this.draw();
    this.onchange(this.value);
  }

  inside({ x, y, width, height }) {
    const least = 0.005;
    const [left, top] = [clamped(x, 0, 1 - least), clamped(y, 0, 1 - least)];
    return { x: left, y: top, width: clamped(width, least, 1 - left), height: clamped(height, least, 1 - top) };
  }

  drag(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.mark.focus();
    const bounds = this.element.getBoundingClientRect();
    const at = ({ clientX, clientY }) => ({
      x: clamped((clientX - bounds.left) / bounds.width, 0, 1), y: clamped((clientY - bounds.top) / bounds.height, 0, 1),
    });
    const [start, before, edge] = [at(event), { ...this.value }, event.target.dataset?.edge];
    const isWhole = before.width > 0.995 && before.height > 0.995;
    const isMoved = event.target === this.mark && !isWhole;
    const follow = (moved) => this.change(this.dragged(start, at(moved), before, edge, isMoved));
    this.isDragged = true;
    if (this.kind === "point") this.change(start);
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener("pointermove", follow);
    const end = () => {
      this.element.removeEventListener("pointermove", follow);
      this.isDragged = false;
    };
    this.element.addEventListener("pointerup", end, { once: true });
    this.element.addEventListener("pointercancel", end, { once: true });
  }

  dragged(start, now, before, edge, isMoved) {
    if (this.kind === "point") return now;
    if (isMoved) {
      return {
        ...before, x: clamped(before.x + now.x - start.x, 0, 1 - before.width),
        y: clamped(before.y + now.y - start.y, 0, 1 - before.height),
      };
    }
    let [left, top, right, bottom] = [before.x, before.y, before.x + before.width, before.y + before.height];
    if (!edge) [left, top, right, bottom] = [start.x, start.y, now.x, now.y];
    if (edge?.includes("w")) left = now.x;
    if (edge?.includes("e")) right = now.x;
    if (edge?.includes("n")) top = now.y;
    if (edge?.includes("s")) bottom = now.y;
    return {
      x: Math.min(left, right), y: Math.min(top, bottom), width: Math.abs(right - left), height: Math.abs(bottom - top),
    };
  }

  key(event) {
    const step = event.ctrlKey || event.altKey ? 0.001 : 0.01;
    const [x, y] = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key] ?? [];
    if (x === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const value = { ...this.value };
    if (event.shiftKey && this.kind === "rect") {
      this.change({ ...value, width: value.width + x, height: value.height + y });
    } else {
      const [width, height] = [value.width ?? 0, value.height ?? 0];
      this.change({ ...value, x: clamped(value.x + x, 0, 1 - width), y: clamped(value.y + y, 0, 1 - height) });
    }
  }
}
