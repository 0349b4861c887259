// Lists of messages, such as regions and overlays: the fields of each element, and buttons to add and remove them.

import { h, newID } from "/dom.js";
import { label, sentence, valueAt } from "/model.js";

/** What an added element has: a rectangle in the middle of the image, where it has one; or a text, where it can be one. */
export function started(state, field) {
  const { contract } = state;
  const rect = contract.rectOf(field);
  if (rect) return state.image ? { [rect.name]: state.fromFractions({ x: 0.25, y: 0.25, width: 0.5, height: 0.5 }, "rect") } : {};
  if (!contract.isPlaced(field) || !contract.fieldsOf(field.typeName).some(({ name }) => name === "text")) return {};
  return { unit: "RECT_UNIT_FRACTIONS", text: { text: "Your text", relative_size: 0.1 } };
}

/** The fields of a message at a path: elements, and a function that shows their values. `make` makes the control of one. */
function fieldsOf({ path, typeName, state, make }) {
  const fields = state.contract.fieldsOf(typeName);
  // Messages follow the first field, which they often stand for.
  const isGroup = (field) => field.type === "message" && !field.isRepeated && state.contract.shape(field) === "json";
  const rows = [fields[0], ...fields.slice(1).filter(isGroup), ...fields.slice(1).filter((field) => !isGroup(field))].map((field) => {
    const [inner, id] = [[...path, field.name], newID("inner")];
    if (isGroup(field)) {
      const group = fieldsOf({ path: inner, typeName: field.typeName, state, make });
      const element = h("details", { class: "parameters", open: valueAt(state.effective, inner) !== undefined },
        h("summary", { text: label(field.name), title: sentence(field.comment) }), ...group.elements);
      return { inner, element, show: group.show };
    }
    const control = make({ id, path: inner, field, state });
    const name = control.isGroup
      ? h("span", { class: "label", id: `${id}-label`, text: label(field.name), title: sentence(field.comment) })
      : h("label", { for: id, text: label(field.name), title: sentence(field.comment) });
    const element = h("div", { class: `field-${state.contract.shape(field)}` }, h("div", { class: "field-head" }, name),
      h("div", { class: "field-body" }, control.element));
    return {
      inner, element,
      show: (effective) => {
        const value = valueAt(effective, inner);
        control.update(value, value !== undefined);
      },
    };
  });
  return { elements: rows.map((row) => row.element), show: (effective) => rows.forEach((row) => row.show(effective)) };
}

export function messageList({ id, path, field, state }, make) {
  const one = label(field.name).replace(/s$/, "");
  const list = h("ol", { class: "chain" });
  const add = h("button", {
    id, type: "button", class: "plain", text: `Add ${/^[AEIOU]/.test(one) ? "an" : "a"} ${one.toLowerCase()}`,
    onclick: () => {
      const index = current().length;
      change([...current(), started(state, field)]);
      const edit = list.children[index]?.querySelector(".on-image");
      if (edit && state.image) edit.click(); else list.children[index]?.querySelector("input, select, button")?.focus();
    },
  });
  let items = [];

  const current = () => valueAt(state.effective, path) ?? [];
  const change = (values) => state.set(path, values.length > 0 ? values : undefined);

  function remove(index) {
    if (state.editing?.startsWith(`${path.join(".")}.`)) state.edit(state.editing.split("."));
    change(current().filter((_, place) => place !== index));
    (list.querySelectorAll(".chain-head .why")[Math.min(index, items.length - 1)] ?? add).focus();
  }

  function item(index) {
    const { elements, show } = fieldsOf({ path: [...path, String(index)], typeName: field.typeName, state, make });
    const place = state.contract.isPlaced(field) && h("button", {
      type: "button", class: "plain on-image", "aria-pressed": "false", text: "Drag on the result",
      onclick: () => state.edit([...path, String(index)]),
    });
    const element = h("li", {},
      h("div", { class: "chain-head" }, h("strong", { text: `${one} ${index + 1}` }), h("button", {
        type: "button", class: "why", text: "×", "aria-label": `Remove ${one.toLowerCase()} ${index + 1}`, onclick: () => remove(index),
      })), place || undefined, ...elements);
    return {
      element,
      show: (effective) => {
        show(effective);
        if (place) place.setAttribute("aria-pressed", state.editing === `${path.join(".")}.${index}`);
      },
    };
  }

  return {
    element: h("div", {}, list, add),
    update(value) {
      const count = value?.length ?? 0;
      if (items.length !== count) {
        items = Array.from({ length: count }, (_, index) => item(index));
        list.replaceChildren(...items.map(({ element }) => element));
      }
      for (const { show } of items) show(state.effective);
    },
  };
}
