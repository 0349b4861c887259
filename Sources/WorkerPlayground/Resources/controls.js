// The controls: one for each field of the contract, made from its description.

import { $, choices, h, moveByKeys, newID } from "/dom.js";
import { filterChain } from "/filters.js";
import { messageList } from "/lists.js";
import { label, paragraphs, sentence, valueAt } from "/model.js";

const compass = ["north_west", "north", "north_east", "west", "center", "east", "south_west", "south", "south_east"];

/**
 * The form of all fields. `state` has: contract, overrides, preset (its configuration), effective (both merged), image
 * (of its sides and bytes), set(path, value), edit(path) to edit a place on the image itself, and overlayNames and
 * addOverlayImage(file) for images that overlays name.
 */
export class Controls {
  constructor(form, state) {
    this.form = form;
    this.state = state;
    this.rows = [];
    this.nothing = h("p", { class: "nothing", role: "status", hidden: true, text: "No field matches." });
    form.replaceChildren(...state.contract.groups.map((group) => this.group(group)), this.nothing);
    form.addEventListener("submit", (event) => event.preventDefault());
    $("search").addEventListener("input", () => this.search($("search").value.trim().toLowerCase()));
  }

  group(group) {
    const count = h("span", { class: "count" });
    const rows = group.fields.map((field) => this.row([...(group.path ?? []), field.name], field));
    const details = h("details", { open: !group.isClosed },
      h("summary", {}, h("span", { text: group.title }), count), ...rows.map((row) => row.element));
    this.rows.push(...rows.map((row) => ({ ...row, group, count, details })));
    return details;
  }

  row(path, field) {
    const id = newID("field");
    const shape = this.state.contract.shape(field);
    const control = make({ id, path, field, state: this.state });
    const help = h("p", { class: "help", id: `${id}-help`, hidden: true }, paragraphs(field.comment),
      h("code", { text: path.join(".") }));
    const error = h("p", { class: "error", role: "alert", hidden: true });
    const why = h("button", {
      type: "button", class: "why", "aria-expanded": "false", "aria-controls": `${id}-help`, text: "?",
      "aria-label": `About ${path.join(".")}`, title: sentence(field.comment),
      onclick: () => {
        help.hidden = !help.hidden;
        why.setAttribute("aria-expanded", !help.hidden);
      },
    });
    const unset = h("button", {
      type: "button", class: "unset", hidden: true, "aria-label": `Reset ${path.join(".")}`, text: "reset",
      onclick: () => this.state.set(path, undefined),
    });
    const name = control.isGroup
      ? h("span", { class: "label", id: `${id}-label`, text: label(field.name) })
      : h("label", { for: id, text: label(field.name) });
    const element = h("div", { class: `field field-${shape}`, dataset: { path: path.join(".") } },
      h("div", { class: "field-head" }, name, why, unset),
      h("div", { class: "field-body" }, control.element), error, help);
    return { path, field, element, control, unset, error };
  }

  /** Shows the present values. */
  update() {
    const { state } = this;
    const counts = new Map();
    for (const row of this.rows) {
      const override = valueAt(state.overrides, row.path);
      const isSet = override !== undefined;
      row.element.classList.toggle("is-set", isSet);
      row.unset.hidden = !isSet;
      row.control.update(valueAt(state.effective, row.path), isSet);
      counts.set(row.count, (counts.get(row.count) ?? 0) + (isSet ? 1 : 0));
      if (row.group.format) row.details.classList.toggle("is-idle", !isInUse(row.group.format, state));
    }
    for (const [element, count] of counts) {
      element.textContent = count > 0 ? count : "";
      element.title = count > 0 ? `${count} set` : "";
    }
  }

  /** Shows an error at the field that it names. */
  showError(error) {
    const name = error?.field?.replace(/^configuration\./, "") ?? "";
    for (const row of this.rows) {
      const path = row.path.join(".");
      const isMeant = error !== undefined && (name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}[`));
      row.error.hidden = !isMeant;
      row.error.textContent = isMeant ? error.message : "";
      if (isMeant) row.details.open = true;
    }
  }

  /** Opens the group of a field, and brings the element of a list at `index` into view where the controls scroll by themselves. */
  reveal(name, index) {
    const row = this.rows.find(({ path }) => path.join(".") === name);
    if (!row) return undefined;
    row.details.open = true;
    const element = row.element.querySelectorAll(".chain > li")[index] ?? row.element;
    const pane = this.form.parentElement;
    if (pane.scrollHeight > pane.clientHeight) {
      const head = pane.firstElementChild.getBoundingClientRect();
      pane.scrollTop += element.getBoundingClientRect().top - head.bottom - 8;
    }
    return element;
  }

  search(text) {
    for (const row of this.rows) {
      const words = `${row.path.join(".")} ${label(row.field.name)} ${row.field.comment}`.toLowerCase();
      row.element.hidden = text !== "" && !words.includes(text);
    }
    for (const details of this.form.querySelectorAll(":scope > details")) {
      const hasFields = [...details.querySelectorAll(".field")].some((element) => !element.hidden);
      details.hidden = !hasFields;
      if (text !== "" && hasFields) details.open = true;
    }
    this.nothing.hidden = this.rows.some((row) => !row.element.hidden);
  }
}

/** The control of a field. */
function make(given) {
  const shape = given.state.contract.shape(given.field);
  return (makers[shape] ?? makers[/int|double|float/.test(shape) ? "number" : "json"])(given);
}

/** Whether options of a format have an effect, as far as the page knows. */
function isInUse(format, { effective, image, contract }) {
  const field = contract.fields.find((known) => known.name === "preferred_format");
  const word = contract.word(field?.typeName, effective.preferred_format ?? "");
  if (format === "tensor") return word === "raw";
  return word === format || word === "auto" || (word === "original" || word === "") && image?.info.format === format;
}

const shown = (value) => (value === undefined ? "" : String(Number(Number(value).toPrecision(6))));

const isWholeNumber = ({ type }) => type !== "double" && type !== "float";

/** The range of a number in a list, which has no option, by its comment: [least, most]; undefined if there is none. */
function commented(field) {
  const text = field.comment.replace(/\s+/g, " ");
  const found = text.match(/(-?\d+(?:\.\d+)?) to (\d+(?:\.\d+)?)/);
  if (found) return [Number(found[1]), Number(found[2])];
  const most = text.match(/above 0 and at most (\d+(?:\.\d+)?)/);
  return most ? [0.01, Number(most[1])] : undefined;
}

/** The range of a slider: [least, most, isLogarithmic]; undefined if a slider is of no use. */
function sliderRange(field, option, image) {
  const name = field.name;
  if (!option && !isWholeNumber(field)) {
    const [least, most] = commented(field) ?? [];
    // A distance in either direction has no slider.
    return least >= 0 ? [least, most, most - least > 1000] : undefined;
  }
  const least = option?.minimum ?? 0;
  let most = option?.maximum;
  if (/(^|_)bytes$/.test(name)) return [1000, Math.max(image?.bytes ?? 0, 1_000_000), true];
  if (/width|height/.test(name)) most = Math.max(image?.info.width ?? 0, image?.info.height ?? 0, 2000);
  if (most === undefined) return field.type === "double" && least > 0 ? [least, least * 8, false] : undefined;
  return [Math.max(least, /width|height/.test(name) ? 16 : least), most, most - least > 1000];
}

/** What is added to the numbers of a range, so that one from 0 has a logarithm. */
const offset = ([least]) => (least > 0 ? 0 : 1 - least);

/** The value at a share of a slider's range. */
function valueAtShare(range, share) {
  const [least, most, isLogarithmic] = range;
  const added = offset(range);
  return isLogarithmic ? (least + added) * ((most + added) / (least + added)) ** share - added : least + (most - least) * share;
}

/** The share of a slider's range at which a value is. */
function shareOfValue(range, value) {
  const [least, most, isLogarithmic] = range;
  const added = offset(range);
  const within = Math.min(Math.max(value, least), most);
  return isLogarithmic ? Math.log((within + added) / (least + added)) / Math.log((most + added) / (least + added)) : (within - least) / (most - least);
}

const makers = {
  number({ id, path, field, state }) {
    const option = state.contract.option(path);
    if (option?.choices.length > 0) return segments({ id, path, field, state }, option.choices.map((value) => ({ value, label: String(value) })));
    const isWhole = isWholeNumber(field);
    const read = (text) => (text.trim() === "" || !Number.isFinite(Number(text)) ? undefined : Number(text));
    const box = h("input", {
      id, type: "number", inputmode: isWhole ? "numeric" : "decimal", min: option?.minimum, max: option?.maximum,
      step: isWhole ? 1 : "any", "aria-describedby": `${id}-help`,
      oninput: () => state.set(path, read(box.value)),
    });
    const valueAt = (place) => {
      const range = sliderRange(field, option, state.image);
      const [least, most] = range;
      const value = valueAtShare(range, place / 1000);
      return isWhole ? Math.round(value) : Number(value.toFixed(most - least > 4 ? 2 : 3));
    };
    const slider = h("input", {
      type: "range", min: 0, max: 1000, step: 1, "aria-label": label(field.name), tabindex: 0,
      oninput: () => state.set(path, valueAt(Number(slider.value))),
    });
    moveByKeys(slider, valueAt);
    return {
      element: h("div", { class: "number" }, slider, box),
      update(value, isSet) {
        const known = value ?? state.contract.defaultValue(field);
        const range = sliderRange(field, option, state.image);
        slider.hidden = range === undefined;
        if (document.activeElement !== box) box.value = isSet ? shown(value) : "";
        box.placeholder = known === undefined ? "none" : shown(known);
        if (!range) return;
        const share = shareOfValue(range, known ?? range[1]);
        slider.value = Math.round(share * 1000);
        slider.style.setProperty("--share", share);
        slider.setAttribute("aria-valuetext", known === undefined ? "none" : shown(known));
        slider.classList.toggle("is-ghost", !isSet);
      },
    };
  },

  bool({ id, path, field, state }) {
    let isOn = false;
    const button = h("button", {
      id, type: "button", role: "switch", class: "switch", "aria-describedby": `${id}-help`,
      onclick: () => state.set(path, !isOn),
    }, h("i"));
    return {
      element: button,
      update(value) {
        isOn = value ?? state.contract.defaultValue(field) ?? false;
        button.setAttribute("aria-checked", isOn);
      },
    };
  },

  enum({ id, path, field, state }) {
    const known = state.contract.enums[field.typeName];
    if (compass.every((word) => known.some((choice) => choice.word === word))) return pad({ id, path, field, state });
    const items = known.map((choice) => ({
      value: choice.name, label: choice.word.replaceAll("_", " "), title: sentence(choice.comment), comment: choice.comment,
    }));
    if (items.reduce((length, item) => length + item.label.length + 3, 0) <= 40) return segments({ id, path, field, state }, items);
    const select = h("select", { id, "aria-describedby": `${id}-help`, onchange: () => state.set(path, select.value || undefined) },
      ...items.map((item) => h("option", { value: item.value, text: item.label, title: item.title })));
    const note = h("p", { class: "note" });
    return {
      element: h("div", {}, select, note),
      update(value) {
        const chosen = value ?? state.contract.defaultValue(field) ?? "";
        if (chosen === "" && !select.querySelector("option[value='']")) select.prepend(h("option", { value: "", text: "not set" }));
        select.value = chosen;
        note.textContent = items.find((item) => item.value === chosen)?.title ?? "";
      },
    };
  },

  color({ id, path, field, state }) {
    const words = { black: { red: 0, green: 0, blue: 0 }, white: { red: 255, green: 255, blue: 255 } };
    const standard = state.contract.defaultText(field).split(",")[0];
    const text = (color) => `#${["red", "green", "blue"].map((name) => Number(color[name] ?? 0).toString(16).padStart(2, "0")).join("")}`;
    const box = h("input", {
      id, type: "color", "aria-describedby": `${id}-help`,
      oninput: () => {
        const [red, green, blue] = [1, 3, 5].map((start) => Number.parseInt(box.value.slice(start, start + 2), 16));
        state.set(path, { red, green, blue });
      },
    });
    const name = h("code");
    return {
      element: h("div", { class: "color" }, box, name),
      update(value) {
        box.value = text(value ?? words[standard] ?? words.white);
        name.textContent = value || words[standard] ? box.value : "none";
      },
    };
  },

  point: (given) => place(given, ["x", "y"]),
  rect: (given) => place(given, ["x", "y", "width", "height"]),
  filters: (given) => filterChain(given),
  list: (given) => messageList(given, make),

  string({ id, path, field, state }) {
    if (field.name === "image") return imageName({ id, path, state });
    const standard = state.contract.defaultText(field).replace(/^"(.*)"$/, "$1");
    const given = {
      id, placeholder: /^\w[\w, ]{0,23}$/.test(standard) ? standard : undefined, "aria-describedby": `${id}-help`,
      oninput: () => state.set(path, box.value || undefined),
    };
    // A text may have several lines.
    const box = field.name === "text" ? h("textarea", { rows: 2, ...given }) : h("input", { type: "text", ...given });
    return { element: box, update(value) { if (document.activeElement !== box) box.value = value ?? ""; } };
  },

  /** What has no control of its own is written as the contract's JSON. */
  json({ id, path, state }) {
    const box = h("textarea", {
      id, rows: 3, spellcheck: "false", "aria-describedby": `${id}-help`,
      onchange: () => {
        try {
          state.set(path, box.value.trim() === "" ? undefined : JSON.parse(box.value));
          box.removeAttribute("aria-invalid");
        } catch { box.setAttribute("aria-invalid", "true"); }
      },
    });
    return {
      element: box,
      update(value) { if (document.activeElement !== box) box.value = value === undefined ? "" : JSON.stringify(value); },
    };
  },
};

/** The name of an image for overlays: one of this page, or of the worker's directory. */
function imageName({ id, path, state }) {
  const names = h("datalist", { id: `${id}-names` });
  const box = h("input", {
    id, type: "text", list: names.id, placeholder: "a name of --overlays", oninput: () => state.set(path, box.value || undefined),
  });
  const files = h("input", {
    type: "file", hidden: true, accept: "image/*,.avif,.heic,.heif,.jxl",
    onchange: async () => {
      const name = files.files.length > 0 && await state.addOverlayImage(files.files[0]);
      files.value = "";
      if (name) state.set(path, name);
    },
  });
  const open = h("button", { type: "button", class: "plain", text: "Open a file", onclick: () => files.click() });
  return {
    element: h("div", { class: "image-name" }, box, open, names, files),
    update(value) {
      if (document.activeElement !== box) box.value = value ?? "";
      if (names.dataset.listed === state.overlayNames.join()) return;
      names.dataset.listed = state.overlayNames.join();
      names.replaceChildren(...state.overlayNames.map((name) => h("option", { value: name })));
    },
  };
}

/** Buttons of which one is chosen. */
function segments({ id, path, field, state }, items) {
  const group = h("div", { class: "segments", role: "radiogroup", "aria-labelledby": `${id}-label` });
  const show = choices(group, items, (value) => state.set(path, value));
  const note = h("p", { class: "note" });
  return {
    isGroup: true,
    element: h("div", {}, group, note),
    update(value) {
      const chosen = value ?? state.contract.defaultValue(field) ?? items[0].value;
      show(chosen);
      note.textContent = items.find((item) => String(item.value) === String(chosen))?.title ?? "";
    },
  };
}

/** The nine places of a gravity, and other choices below them; what is drawn on a result has none of these. */
function pad({ id, path, field, state }) {
  const known = state.contract.enums[field.typeName];
  const group = h("div", { class: "pad", role: "radiogroup", "aria-labelledby": `${id}-label` });
  const isDrawn = path.length > 1;
  const others = known.map((value) => value.word).filter((word) => !compass.includes(word) && word !== "unspecified" && !isDrawn);
  const buttons = [...compass, ...others].map((word) => {
    const choice = known.find((value) => value.word === word);
    return h("button", {
      type: "button", role: "radio", "aria-label": word.replaceAll("_", " "), title: sentence(choice.comment),
      dataset: { value: choice.name }, onclick: () => state.set(path, choice.name),
    }, compass.includes(word) ? h("i") : h("span", { text: word.replaceAll("_", " ") }));
  });
  for (const button of buttons.slice(compass.length)) button.className = "pad-word";
  group.append(...buttons);
  group.addEventListener("keydown", (event) => {
    const index = buttons.indexOf(document.activeElement);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -3, ArrowDown: 3 }[event.key];
    if (!step) return;
    event.preventDefault();
    const isWord = index >= compass.length;
    const isOverEdge = !isWord && (event.key === "ArrowLeft" && index % 3 === 0 || event.key === "ArrowRight" && index % 3 === 2);
    // Below the places, words follow one another.
    const next = isOverEdge ? undefined : buttons[isWord ? index + Math.sign(step) : Math.min(index + step, compass.length)];
    if (!next) return;
    next.focus();
    next.click();
  });
  const name = h("span", { class: "note" });
  return {
    isGroup: true,
    element: h("div", { class: "pad-row" }, group, name),
    update(value) {
      const chosen = value ?? state.contract.defaultValue(field);
      for (const button of buttons) {
        button.setAttribute("aria-checked", button.dataset.value === chosen);
        button.tabIndex = button.dataset.value === chosen ? 0 : -1;
      }
      name.textContent = state.contract.word(field.typeName, chosen).replaceAll("_", " ");
    },
  };
}

/** A point or rectangle: numbers, and a button to choose it on the image. */
function place({ id, path, field, state }, names) {
  const unit = state.contract.fieldsOf(field.typeName).find((inner) => inner.type === "enum");
  const boxes = names.map((name) => h("input", {
    type: "number", step: "any", min: 0, "aria-label": `${label(field.name)}: ${name}`, placeholder: name,
    oninput: () => {
      const value = Object.fromEntries(names.map((key, index) => [key, Number(boxes[index].value || 0)]));
      state.set(path, unit ? { unit: valueAt(state.effective, path)?.unit ?? state.unit, ...value } : value);
    },
  }));
  const edit = h("button", {
    id, type: "button", class: "plain on-image", "aria-pressed": "false", text: "On the image", onclick: () => state.edit(path),
  });
  const units = unit && h("select", {
    "aria-label": `${label(field.name)}: unit`, onchange: () => state.changeUnit(path, units.value),
  }, ...state.contract.enums[unit.typeName].map((choice) => h("option", { value: choice.name, text: choice.word })));
  return {
    element: h("div", { class: "place" }, h("div", { class: "place-numbers" }, ...boxes), h("div", { class: "place-end" }, edit, units)),
    update(value) {
      names.forEach((name, index) => {
        if (document.activeElement !== boxes[index]) boxes[index].value = value === undefined ? "" : shown(value[name] ?? 0);
      });
      if (units) units.value = value?.unit ?? state.unit;
      edit.setAttribute("aria-pressed", state.editing === path.join("."));
    },
  };
}
