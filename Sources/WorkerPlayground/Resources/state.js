// What a reload keeps: the results' fields and the view in the page's address, and the last preset.

/** Milliseconds after which a change is in the address; browsers allow a few changes in a second. */
const patience = 300;
let timer;

/** The state in the address: {results, chosen, mode}; undefined if there is none. */
export function addressed() {
  try {
    const state = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    return Array.isArray(state?.results) && state.results.length > 0 ? state : undefined;
  } catch { return undefined; }
}

/** Writes the state to the address when it has not changed for a moment. */
export function address(state) {
  clearTimeout(timer);
  timer = setTimeout(() => history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(state))}`), patience);
}

/** A value that the browser keeps for the next visit; undefined if there is none. */
export function kept(name) {
  try { return localStorage.getItem(name) ?? undefined; } catch { return undefined; }
}

export function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* Not kept. */ }
}
