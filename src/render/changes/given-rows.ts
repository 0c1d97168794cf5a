const LONGEST_TEXT = 300;
const MOST_ENTRIES = 20;
const DEEPEST = 6;

/** What was given, long texts and lists cut, saying so. */
export function shortened(value: unknown, depth = 0): unknown {
  if (typeof value === "string")
    return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  if (Array.isArray(value)) {
    const first = value.slice(0, MOST_ENTRIES).map((entry) => shortened(entry, depth + 1));
    return value.length > MOST_ENTRIES ? [...first, `… (${value.length} entries)`] : first;
  }
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const cut = entries.slice(0, MOST_ENTRIES * 2).map(([field, entry]) => [field, shortened(entry, depth + 1)] as const);
  return Object.fromEntries(cut);
}
