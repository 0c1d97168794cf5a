/**
 * The IDs that a name or a Context ID belongs to. Usually one; more where the console made duplicates
 * (management-api 4.2 rule 4).
 */
export type IdIndex = Map<string, readonly string[]>;

/** Adds `id` to those of `text`. */
export function indexId(index: IdIndex, text: string, id: string): void {
  const held = index.get(text);
  index.set(text, held === undefined ? [id] : [...held, id]);
}

/** Removes `id` from those of `text`. */
export function unindexId(index: IdIndex, text: string, id: string): void {
  const held = index.get(text);
  if (held === undefined) return;
  if (held.length > 1) {
    index.set(
      text,
      held.filter((other) => other !== id),
    );
  } else if (held[0] === id) {
    index.delete(text);
  }
}

/** The IDs of `text`, without `except`. */
export function idsBy(index: IdIndex, text: string, except?: string): readonly string[] {
  const held = index.get(text) ?? [];
  return except === undefined ? held : held.filter((id) => id !== except);
}
