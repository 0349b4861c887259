// The few helpers that all modules build their elements with.

/** Creates an element. Properties that begin with "on" are listeners, those in `dataset` data, others attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "text") element.textContent = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

export const $ = (id) => document.getElementById(id);

/** A name that no other page has. */
export const uniqueName = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");

let count = 0;
/** A new id for an element that another one refers to. */
export const newID = (name = "e") => `${name}-${++count}`;

/**
 * Makes buttons that exclude each other, of which arrow keys choose the next.
 * `items` are {value, label, title, disabled}; `choose` is called with the value.
 */
export function choices(container, items, choose, role = "radio") {
  const state = role === "tab" ? "aria-selected" : "aria-checked";
  const buttons = items.map((item) => h("button", {
    type: "button", role, title: item.title, disabled: item.disabled, text: item.label,
    "aria-label": item.name, onclick: () => choose(item.value), dataset: { value: item.value },
  }));
  container.replaceChildren(...buttons);
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const usable = buttons.filter((button) => !button.disabled);
    const index = usable.indexOf(document.activeElement);
    if (!step || index < 0) return;
    event.preventDefault();
    const next = usable[(index + step + usable.length) % usable.length];
    next.focus();
    next.click();
  });
  return (value) => {
    let hasStop = false;
    for (const button of buttons) {
      const isChosen = button.dataset.value === String(value);
      button.setAttribute(state, isChosen);
      button.tabIndex = isChosen ? 0 : -1;
      hasStop ||= isChosen;
    }
    if (!hasStop && buttons[0]) buttons[0].tabIndex = 0;
  };
}

/**
 * Lets the arrow keys move a slider from 0 to 1000 by a hundredth, or by as much as its value needs to change; with Shift by
 * as little. `valueAt` returns the value of a place.
 */
export function moveByKeys(slider, valueAt) {
  slider.addEventListener("keydown", (event) => {
    const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const start = Number(slider.value);
    let place = start + direction * (event.shiftKey ? 1 : 10);
    while (place > 0 && place < 1000 && valueAt(place) === valueAt(start)) place += direction;
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
  });
}

/** Between a number and its unit, which stay on one line. */
const space = "\u00a0";
const units = ["B", "kB", "MB", "GB"];
/** A number of bytes for people, in powers of 1000. */
export function bytes(count) {
  let [value, unit] = [count, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 ? value : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}${space}${units[unit]}`;
}

export const mebibytes = (count) => `${(count / 1048576).toFixed(count < 104857600 ? 1 : 0)}${space}MiB`;
export const milliseconds = (value) => `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${space}ms`;

/** The change from one number to another, as in "−87 %". */
export function change(from, to) {
  const percent = (to / from - 1) * 100;
  if (Math.abs(percent) < 0.05) return "±0 %";
  const digits = Math.abs(percent) < 9.95 ? 1 : 0;
  return `${percent > 0 ? "+" : "−"}${Math.abs(percent).toFixed(digits)} %`;
}

/** A message of the worker, with its numbers of bytes as people read them. */
export const readable = (message) => message.replace(
  /(?<=_bytes of )\d{4,}\b|\b\d{4,}(?= of \d+ bytes)|\b\d{4,} bytes/g, (text) => bytes(Number.parseInt(text, 10)));

/** Messages that are shown at the same time. */
const maxToasts = 4;

/** Shows a sentence for some seconds, below those that are shown already. */
export function toast(text) {
  const list = $("toast");
  let element = [...list.children].find((shown) => shown.textContent === text);
  if (!element) {
    element = h("p", { text, title: "Dismiss", onclick: () => element.remove() });
    list.append(element);
    while (list.children.length > maxToasts) list.firstChild.remove();
  }
  clearTimeout(element.timer);
  element.timer = setTimeout(() => element.remove(), 4000 + 40 * text.length);
}
