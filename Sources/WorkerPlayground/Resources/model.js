// What the page knows of the contract: nothing by name where a rule can tell.

const root = "ProcessingConfiguration";

/** The groups of the controls: a field belongs to the first whose pattern matches its name. */
const groups = [
  { title: "Size", pattern: /^(max_width|max_height|resize_mode)/, isGeometry: true },
  { title: "Format and bytes", pattern: /^(preferred_format|accept|auto_effort|compression_quality|max_bytes)$/ },
  { title: "Filters", pattern: /^filters$|^sharpen/ },
  { title: "Regions", pattern: /^regions$/, isClosed: true },
  { title: "Overlays", pattern: /^overlays$/, isClosed: true },
  { title: "Framing", pattern: /gravity|focus|face|crop|trim|^pad|^extend|background/, isGeometry: true, isClosed: true },
  { title: "Orientation", pattern: /rotat|flip/, isGeometry: true, isClosed: true },
  { title: "Scale", pattern: /^scale|^zoom|^min_|upscale|^resampling|^exact|^resize_in/, isGeometry: true, isClosed: true },
  { title: "Similarity and compression", pattern: /format|quality|bytes|similarity|smaller|larger|always/, isClosed: true },
  { title: "Frames", pattern: /frame/, isClosed: true },
  { title: "Metadata and damage", pattern: /metadata|^keep_|color_space|^gain_map|tolerate|damage|^facts/, isClosed: true },
  { title: "More", pattern: /./, isClosed: true },
];

/** Fields of a list's elements of which the worker takes one alone: by the one that is set, those that it replaces. */
const exclusive = {
  overlays: {
    image: ["text"], text: ["image", "scale", "width", "height"], "text.size": ["text.relative_size"],
    "text.relative_size": ["text.size"], scale: ["width", "height"], width: ["scale"], height: ["scale"],
  },
};

/** The paths in an element of a list that a field at `path` of the element replaces. */
export const excludedBy = (list, path) => path.flatMap((_, index) => exclusive[list]?.[path.slice(0, index + 1).join(".")] ?? [])
  .map((other) => other.split("."));

const acronyms = { jpeg: "JPEG", png: "PNG", webp: "WebP", avif: "AVIF", gif: "GIF", jxl: "JPEG XL", heic: "HEIC", raw: "RAW", hwc: "HWC", chw: "CHW" };

/** A name of the contract for people: "max_width" becomes "Max width". */
export function label(name) {
  const words = name.split("_").map((word) => acronyms[word] ?? word);
  return words.join(" ").replace(/^./, (letter) => letter.toUpperCase());
}

/** The first sentence of a comment. */
export const sentence = (comment) => (comment.replace(/\s+/g, " ").match(/^.*?\.(?=\s|$)/) ?? [comment])[0];

/** A comment without the breaks of its lines, except before the items of a list. */
export const paragraphs = (comment) => comment.replace(/[ \t]*\n(?!- )\s*/g, " ").trim();

export class Contract {
  constructor(description, presets) {
    Object.assign(this, description);
    this.presets = presets;
    this.fields = this.messages[root];
  }

  fieldsOf(message) { return this.messages[message] ?? []; }
  option(path) { return this.options[path.join(".")]; }

  /** The field at a path, in which numbers are places in lists. */
  fieldAt(path) {
    return path.filter((name) => !/^\d+$/.test(name)).reduce(
      (field, name) => (field ? this.fieldsOf(field.typeName) : this.fields).find((known) => known.name === name), undefined);
  }

  preset(name) { return this.presets.find((preset) => preset.name === name)?.configuration ?? {}; }

  /** The groups with their fields. A message of options is a group of its own. */
  get groups() {
    const fields = this.fields.filter((field) => !this.isOptions(field));
    const listed = groups.map((group) => ({
      ...group, fields: fields.filter((field) => groups.find(({ pattern }) => pattern.test(field.name)) === group),
    }));
    const options = this.fields.filter((field) => this.isOptions(field)).map((field) => ({
      title: label(field.name), format: acronyms[field.name] && field.name, isClosed: true, path: [field.name],
      fields: this.fieldsOf(field.typeName),
    }));
    const rest = listed.findIndex((group) => group.title === "Metadata and damage");
    return [...listed.slice(0, rest), ...options, ...listed.slice(rest)].filter((group) => group.fields.length > 0);
  }

  /** Whether the field is a message whose fields are set one by one. */
  isOptions(field) {
    const fields = this.fieldsOf(field.typeName);
    return field.type === "message" && !field.isRepeated && fields.length > 0 && fields.every((inner) => inner.isOptional || inner.isRepeated);
  }

  /** What kind of value a message is, by its fields. */
  shape(field) {
    if (field.type !== "message") return field.isRepeated ? "json" : field.type;
    const names = new Set(this.fieldsOf(field.typeName).map((inner) => inner.name));
    const has = (...wanted) => wanted.every((name) => names.has(name));
    if (field.isRepeated) return has("name", "intensity", "parameters") ? "filters" : "list";
    if (has("red", "green", "blue")) return "color";
    if (has("x", "y", "width", "height")) return "rect";
    if (has("x", "y")) return "point";
    return this.isOptions(field) ? "options" : "json";
  }

  /** The field of a message that is a rectangle; undefined if it has none. */
  rectOf(field) { return this.fieldsOf(field.typeName).find((inner) => this.shape(inner) === "rect"); }

  /** Whether the elements of a list have a place that is set on the result: a gravity, and offsets from there. */
  isPlaced(field) {
    const names = this.fieldsOf(field.typeName).map(({ name }) => name);
    return ["gravity", "x", "y"].every((name) => names.includes(name));
  }

  /** Whether a field is edited on the image or on the result. */
  isEdited(field) {
    const shape = this.shape(field);
    return shape === "rect" || shape === "point" || (shape === "list" && (this.rectOf(field) !== undefined || this.isPlaced(field)));
  }

  /** The configuration of a preset with fields replaced, as the worker replaces them. */
  merged(preset, overrides) {
    const all = { ...preset, ...overrides };
    for (const field of this.fields) {
      const { name } = field;
      if (this.isOptions(field) && preset[name] && overrides[name]) all[name] = { ...preset[name], ...overrides[name] };
      if (field.isRepeated && overrides[name]?.length === 0) all[name] = preset[name];
      if (all[name] === undefined) delete all[name];
    }
    return all;
  }

  /** The fields of a configuration that say where each pixel comes from. */
  geometry(configuration) {
    const kept = groups.filter((group) => group.isGeometry);
    const isKept = (name) => /^tolerate/.test(name) || groups.find(({ pattern }) => pattern.test(name))?.isGeometry;
    return Object.fromEntries(Object.entries(configuration).filter(([name]) => kept.length > 0 && isKept(name)));
  }

  /** The text after "Default:" in a field's comment. */
  defaultText(field) {
    const match = field.comment.replace(/\s+/g, " ").match(/Default: ((?:[^.]|\.\d)*)\./);
    return match ? match[1] : "";
  }

  /** The default as a value of the field; undefined if it is none. */
  defaultValue(field) {
    const text = this.defaultText(field);
    if (field.type === "bool") return text.startsWith("true");
    if (field.type === "enum") return this.enums[field.typeName].find((choice) => choice.word === text.toLowerCase())?.name;
    const number = Number.parseFloat(text);
    return /int|double|float/.test(field.type) && Number.isFinite(number) ? number : undefined;
  }

  /** The part of a configuration from elsewhere that has the names and types of the contract. */
  checked(values, typeName = root) {
    const one = (field, value) => {
      if (field.isRepeated) {
        const isKnown = (element) => element !== undefined
          && (this.shape(field) !== "filters" || this.filters.some(({ name }) => name === element.name));
        return Array.isArray(value) ? value.map((element) => one({ ...field, isRepeated: false }, element)).filter(isKnown) : undefined;
      }
      switch (field.type) {
        case "message": return isRecord(value) ? this.checked(value, field.typeName) : undefined;
        case "enum": return this.enums[field.typeName].some(({ name }) => name === value) ? value : undefined;
        case "map": return isRecord(value) ? Object.fromEntries(Object.entries(value).filter(([, number]) => Number.isFinite(number))) : undefined;
        case "bool": return typeof value === "boolean" ? value : undefined;
        case "string": return typeof value === "string" ? value : undefined;
        default: return Number.isFinite(value) ? value : undefined;
      }
    };
    if (!isRecord(values)) return {};
    return Object.fromEntries(this.fieldsOf(typeName).map((field) => [field.name, one(field, values[field.name])])
      .filter(([, value]) => value !== undefined));
  }

  /** What a result begins with: a quality at which photographs get smaller, unless its preset chooses one. */
  starting(presetName) {
    const preset = this.preset(presetName);
    const isChosen = preset.compression_quality < 1 || preset.target_similarity !== undefined || preset.max_bytes !== undefined;
    return isChosen || this.takesOnlyPresets ? {} : { compression_quality: 0.8 };
  }

  word(typeName, value) {
    const choice = this.enums[typeName]?.find((known) => known.name === value);
    return choice ? choice.word : String(value);
  }
}

const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** The value at a path; undefined if it is not set. */
export const valueAt = (record, path) => path.reduce((value, name) => value?.[name], record);

/** A copy of a record or a list with the value at a path replaced, or removed from its record if it is undefined. */
export function replaced(record, [name, ...rest], value) {
  const copy = Array.isArray(record) ? [...record] : { ...record };
  const inner = rest.length > 0 ? replaced(copy[name] ?? {}, rest, value) : value;
  const isEmpty = rest.length > 0 && Object.keys(inner).length === 0;
  if (Array.isArray(copy)) copy[name] = inner ?? {};
  else if (inner === undefined || isEmpty) delete copy[name];
  else copy[name] = inner;
  return copy;
}
