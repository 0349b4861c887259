// Editing fields on the image or the result: what is edited, and how its values become places there.

import { toast } from "/dom.js";
import { label, valueAt } from "/model.js";
import { Overlay } from "/overlay.js";
import { OverlaySizes, boxOf, placeOf } from "/placing.js";

/** Pixels of the page within which a dragged overlay comes to lie at a side or in the center. */
const snapDistance = 6;

const names = { point: "Focus point", rect: "Crop" };

export class Editing {
  /** `app` is the page; `upload` sends a file to the worker. */
  constructor(app, { upload }) {
    this.app = app;
    this.path = undefined;
    this.overlay = undefined;
    this.lastSizes = new Map();
    this.sizes = new OverlaySizes({
      page: app.page, upload, process: (...call) => app.process(...call), changed: () => app.update(),
    });
  }

  /** The name of the field that is edited, such as "regions.0.area"; undefined if none is. */
  get name() { return this.path?.join("."); }
  /** "point" and "rect" are places in the image, "box" in the result. */
  get kind() { return this.path && this.kindOf(this.path); }
  get isInList() { return this.path?.length > 1; }
  get isOnResult() { return this.kind === "box"; }

  kindOf(path) {
    const shape = this.app.contract.shape(this.app.contract.fieldAt(path));
    return shape === "list" ? "box" : shape;
  }

  /** Begins to edit a field, or ends it if it is the one that is edited. */
  toggle(path) {
    const { app } = this;
    if (path && !app.image) return toast("Add an image first.");
    const former = this.path;
    const hadFocus = this.overlay?.element.contains(document.activeElement);
    const isSame = path === undefined || path.join(".") === this.name;
    const isOther = !isSame && former?.[0] === path[0];
    this.path = isSame ? undefined : path;
    if (!isOther) this.exchange();
    app.update();
    if (this.isInList && !isOther) app.controls.reveal(path[0], Number(path[1]));
    this.isFocusDue = this.path !== undefined;
    if (this.path) this.focus();
    else if (hadFocus && former) document.querySelector(`#tools [data-path=${former[0]}]`)?.focus({ preventScroll: true });
  }

  /** Moves the focus to the first text of an element among the controls. */
  open([name, index]) {
    const element = this.app.controls.reveal(name, Number(index));
    const box = [...element?.querySelectorAll(".field-string :is(input, textarea)") ?? []].find(({ value }) => value !== "");
    box?.focus();
    box?.select();
  }

  /** Moves the focus to the chosen mark, once there is one, unless a person writes meanwhile. */
  focus() {
    if (!this.isFocusDue || !this.overlay.mark?.isConnected) return;
    this.isFocusDue = false;
    if (!document.activeElement?.matches("input, select, textarea")) this.overlay.mark.focus({ preventScroll: true });
  }

  /** Begins with a list: with its first element that has a place, or with a new one. */
  toggleList(field) {
    const { app } = this;
    if (this.path?.[0] === field.name) return this.toggle(undefined);
    if (!app.image) return toast("Add an image first.");
    const paths = this.paths(field.name);
    if (paths.length > 0) return this.toggle(paths[0]);
    const elements = app.effective[field.name] ?? [];
    app.set([field.name], [...elements, app.started(field)]);
    this.toggle(this.pathOf(field.name, elements.length));
  }

  /** The path of the place of an element. */
  pathOf(name, index) {
    const rect = this.app.contract.rectOf(this.app.contract.fieldAt([name]));
    return rect ? [name, String(index), rect.name] : [name, String(index)];
  }

  /** The paths of the places of a list's elements. */
  paths(name) {
    const hasRect = this.app.contract.rectOf(this.app.contract.fieldAt([name]));
    return (this.app.effective[name] ?? []).map((element, index) => [element, this.pathOf(name, index)])
      .filter(([element, path]) => !hasRect || element[path[2]]).map(([, path]) => path);
  }

  exchange() {
    const { app, kind } = this;
    this.overlay?.element.remove();
    this.overlay = undefined;
    this.lastSizes.clear();
    if (!this.path) return;
    app.stage.setZoom("fit");
    this.overlay = new Overlay(kind, {
      isList: this.isInList,
      onchange: (key, value) => this.change(key.split("."), value),
      onchoose: (key) => {
        this.path = key.split(".");
        app.update();
      },
      onadd: (value) => this.add(value),
      onremove: (key) => this.remove(key?.split(".")),
      onopen: kind === "box" ? (key) => this.open(key?.split(".")) : undefined,
    });
    this.overlay.onend = () => this.show();
    if (!this.isOnResult) app.refreshSource();
  }

  /** Shows the present values; ends when what was edited is gone. Returns whether it has ended. */
  show() {
    if (!this.path || !this.overlay) return false;
    const { app } = this;
    const parent = this.path.slice(0, this.isInList ? 2 : 1);
    if (this.isInList && (valueAt(app.effective, parent) === undefined || (this.path.length > 2 && !valueAt(app.effective, this.path)))) {
      this.toggle(undefined);
      return true;
    }
    this.overlay.show(this.items(), this.name);
    return false;
  }

  /** The marks of what is edited, and of the other elements of its list. */
  items() {
    const { app, kind } = this;
    if (!app.image) return [];
    if (!this.isInList) {
      const value = this.toFractions(valueAt(app.effective, this.path), kind);
      return [{ key: this.name, name: names[kind], value: value ?? (kind === "point" ? this.middle : undefined) }];
    }
    const one = label(this.path[0]).replace(/s$/, "");
    return this.paths(this.path[0]).map((path) => {
      const value = valueAt(app.effective, path);
      return { key: path.join("."), name: `${one} ${Number(path[1]) + 1}`, value: kind === "box" ? this.box(value, path[1]) : this.toFractions(value, kind) };
    }).filter(({ value }) => value);
  }

  change(path, value) {
    const { app } = this;
    if (this.kindOf(path) !== "box") return app.set(path, this.fromFractions(value, this.kindOf(path)));
    const { width, height } = this.result;
    const near = this.overlay.isDragged ? snapDistance * width / Math.max(this.overlay.element.clientWidth, 1) : 0;
    const overlay = valueAt(app.effective, path);
    const { word, x, y } = placeOf(overlay, value, { width, height }, near);
    const gravity = app.contract.enums[this.gravityField(path).typeName].find((choice) => choice.word === word).name;
    app.set(path, { ...overlay, gravity, x, y });
  }

  add(value) {
    const { app } = this;
    const [name] = this.path;
    const index = app.effective[name]?.length ?? 0;
    const path = this.pathOf(name, index);
    this.path = path;
    app.set([name], [...app.effective[name] ?? [], { [path.at(-1)]: this.fromFractions(value, "rect") }]);
    return path.join(".");
  }

  /** Removes an element of a list, or the value of a field. */
  remove(path = this.path) {
    const { app } = this;
    if (!path) return;
    if (path.length === 1) return app.set(path, undefined);
    const [name, index] = path;
    const rest = (app.effective[name] ?? []).filter((_, place) => place !== Number(index));
    if (rest.length === 0) this.toggle(undefined);
    else this.path = this.pathOf(name, Math.min(Number(index), rest.length - 1));
    app.set([name], rest.length > 0 ? rest : undefined);
    this.overlay?.mark?.focus({ preventScroll: true });
  }

  place() {
    this.overlay?.place();
    this.focus();
  }

  /** Whether there is something to remove. */
  get canRemove() { return this.path !== undefined && valueAt(this.app.effective, this.path) !== undefined; }

  /** What to do, in a few words. */
  get hint() {
    const { effective } = this.app;
    switch (this.kind) {
      case "box": return this.items().length > 0 ? "drag it; Enter or a double click changes it" : this.app.variant.error ? "no result" : "waiting for the worker …";
      case "rect": return this.isInList ? "drag to hide a part of the image" : "drag to crop";
      default:
        return /FILL/.test(effective.resize_mode ?? "") && effective.max_width && effective.max_height
          ? "drag to what must stay in view" : "takes effect with max width, max height and the resize mode fill";
    }
  }

  // MARK: Places in the image

  /** The sides of the image as requested: turned by a quarter they are swapped. */
  get sides() {
    const { width, height } = this.app.image.info;
    return (this.app.effective.rotation ?? 0) % 180 === 0 ? [width, height] : [height, width];
  }

  toFractions(value, kind) {
    if (!value) return undefined;
    const [width, height] = kind === "point" || usesFractions(value) ? [1, 1] : this.sides;
    const point = { x: (value.x ?? 0) / width, y: (value.y ?? 0) / height };
    return kind === "point" ? point : { ...point, width: (value.width ?? 0) / width, height: (value.height ?? 0) / height };
  }

  /** The middle of what the result shows; undefined if it is not known. */
  get middle() {
    const { kept, sides: [width, height] } = this.app.findings ?? { sides: [] };
    return kept && { x: (kept.x + kept.width / 2) / width, y: (kept.y + kept.height / 2) / height };
  }

  fromFractions(value, kind) {
    const { unit } = this.app;
    if (kind === "point") return value;
    if (/FRACTIONS/.test(unit)) return { unit, ...value };
    const [width, height] = this.sides;
    const [x, y] = [Math.round(value.x * width), Math.round(value.y * height)];
    return {
      unit, x, y, width: Math.max(1, Math.min(Math.round(value.width * width), width - x)),
      height: Math.max(1, Math.min(Math.round(value.height * height), height - y)),
    };
  }

  /** A rectangle of the configuration in pixels of the image. */
  inPixels(value) {
    const { x, y, width, height } = this.toFractions(value, "rect");
    const [across, down] = this.sides;
    return { x: x * across, y: y * down, width: width * across, height: height * down };
  }

  // MARK: Places in the result

  /** The size of the newest result, in which overlays have their places. */
  get result() { return this.app.variant.result?.report.output; }

  gravityField([name]) {
    const { contract } = this.app;
    return contract.fieldsOf(contract.fieldAt([name]).typeName).find((field) => field.name === "gravity");
  }

  /** The box of an overlay; while its size is not known, with that of the overlay that was at its index. */
  box(overlay, index) {
    const { result } = this;
    if (!result) return undefined;
    const size = this.sizes.size(overlay, result) ?? this.lastSizes.get(index);
    if (!size) return undefined;
    this.lastSizes.set(index, size);
    const { contract } = this.app;
    return boxOf(overlay, contract.word(this.gravityField(this.path).typeName, overlay.gravity ?? "GRAVITY_CENTER"), size, result);
  }
}

/** Pixels are the default of the contract. */
const usesFractions = ({ unit }) => /FRACTIONS/.test(unit ?? "");
