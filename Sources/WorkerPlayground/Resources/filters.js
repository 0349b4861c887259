// The chain of filters: order, intensity and parameters of each.

import { h, moveByKeys, newID } from "/dom.js";
import { label } from "/model.js";

const shown = (value) => String(Number(value.toFixed(value < 10 ? 2 : 1)));

/** A slider with its number. `set` is called while it moves. */
function slider({ name, title, least, most, isWhole, value, set }) {
  const id = newID("filter");
  const valueAt = (place) => {
    const exact = least + (most - least) * (place / 1000);
    return Number(shown(isWhole ? Math.round(exact) : exact));
  };
  const range = h("input", {
    id, type: "range", min: 0, max: 1000, step: 1,
    oninput: () => {
      const number = valueAt(Number(range.value));
      show(number);
      set(number);
    },
  });
  moveByKeys(range, valueAt);
  const box = h("input", {
    type: "number", min: least, max: most, step: isWhole ? 1 : "any", "aria-label": name,
    oninput: () => { if (box.value !== "") { show(Number(box.value), true); set(Number(box.value)); } },
  });
  function show(number, isTyped = false) {
    const share = (number - least) / (most - least);
    if (!isTyped) box.value = shown(number);
    range.value = Math.round(share * 1000);
    range.style.setProperty("--share", Math.min(Math.max(share, 0), 1));
    range.setAttribute("aria-valuetext", shown(number));
  }
  show(value);
  return h("div", { class: "dial" }, h("label", { for: id, text: name, title }), range, box);
}

export function filterChain({ id, path, state }) {
  const list = h("ol", { class: "chain", "aria-label": "Filters in the order of their application" });
  const picker = h("div", { class: "picker", hidden: true }, ...state.contract.filters.map((filter) => h("button", {
    type: "button", text: label(filter.name), title: filter.summary,
    onclick: () => {
      change([...current(), { name: filter.name, intensity: 1, parameters: {} }]);
      open.add(current().length - 1);
      picker.hidden = true;
      add.setAttribute("aria-expanded", "false");
      list.lastElementChild?.querySelector("input")?.focus();
    },
  })));
  const add = h("button", {
    id, type: "button", class: "plain", text: "Add a filter", "aria-expanded": "false",
    onclick: () => {
      picker.hidden = !picker.hidden;
      add.setAttribute("aria-expanded", !picker.hidden);
      if (!picker.hidden) picker.querySelector("button").focus();
    },
  });
  picker.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    add.click();
    add.focus();
  });
  const open = new Set();
  let drawn = "";

  const current = () => state.effective[path[0]] ?? [];
  /** Changes values while a slider moves: its elements stay. */
  const adjust = (filters) => {
    drawn = structure(filters);
    state.set(path, filters);
  };
  const change = (filters) => state.set(path, filters.length > 0 ? filters : undefined);
  const structure = (filters) => JSON.stringify(filters);

  function move(from, to) {
    const filters = [...current()];
    if (to < 0 || to >= filters.length || from === to) return;
    filters.splice(to, 0, ...filters.splice(from, 1));
    open.clear();
    drawn = "";
    change(filters);
    list.children[to]?.querySelector(".grip")?.focus();
  }

  function item(filter, index) {
    const known = state.contract.filters.find((row) => row.name === filter.name);
    const set = (values) => adjust(current().map((other, place) => (place === index ? { ...other, ...values } : other)));
    const grip = h("button", {
      type: "button", class: "grip", title: "Drag, or press the arrow keys, to change the order",
      "aria-label": `${label(filter.name)}, place ${index + 1} of ${current().length}: move with the arrow keys`,
      onkeydown: (event) => {
        const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        move(index, index + step);
      },
      onpointerdown: (event) => drag(event, index),
    });
    const parameters = known?.parameters.map((parameter) => slider({
      name: label(parameter.name), title: parameter.summary, least: parameter.minimum, most: parameter.maximum,
      isWhole: parameter.isWhole, value: filter.parameters?.[parameter.name] ?? parameter.defaultValue,
      set: (value) => set({ parameters: { ...current()[index].parameters, [parameter.name]: value } }),
    })) ?? [];
    return h("li", {},
      h("div", { class: "chain-head" }, grip, h("strong", { text: label(filter.name), title: known?.summary }),
        h("button", {
          type: "button", class: "why", text: "×", "aria-label": `Remove ${filter.name}`,
          onclick: () => {
            change(current().filter((_, place) => place !== index));
            (list.querySelectorAll(".chain-head .why")[Math.min(index, list.children.length - 1)] ?? add).focus();
          },
        })),
      slider({ name: "Intensity", title: known?.summary, least: 0, most: 1, value: filter.intensity ?? 0, set: (intensity) => set({ intensity }) }),
      parameters.length > 0 && h("details", {
        class: "parameters", open: open.has(index),
        ontoggle: (event) => { event.target.open ? open.add(index) : open.delete(index); },
      }, h("summary", { text: `${parameters.length} ${parameters.length === 1 ? "parameter" : "parameters"}` }), ...parameters) || undefined);
  }

  function drag(event, from) {
    event.preventDefault();
    const grip = event.currentTarget;
    const moved = grip.closest("li");
    grip.setPointerCapture(event.pointerId);
    moved.classList.add("is-dragged");
    let to = from;
    const follow = ({ clientY }) => {
      moved.style.transform = `translateY(${clientY - event.clientY}px)`;
      const others = [...list.children];
      to = others.filter((other, index) => {
        const box = other.getBoundingClientRect();
        return index !== from && clientY > box.top + box.height / 2;
      }).length;
      others.forEach((other, index) => {
        other.classList.toggle("is-target", index !== from && index === to);
      });
    };
    const end = () => {
      grip.removeEventListener("pointermove", follow);
      moved.style.transform = "";
      moved.classList.remove("is-dragged");
      for (const other of list.children) other.classList.remove("is-target");
      move(from, to);
    };
    grip.addEventListener("pointermove", follow);
    grip.addEventListener("pointerup", end, { once: true });
    grip.addEventListener("pointercancel", end, { once: true });
  }

  return {
    element: h("div", {}, list, add, picker),
    update(value) {
      const filters = value ?? [];
      add.disabled = filters.length >= state.contract.maxFilterCount;
      if (structure(filters) === drawn) return;
      drawn = structure(filters);
      list.replaceChildren(...filters.map(item));
    },
  };
}
