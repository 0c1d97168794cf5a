/** Items that wait in lines, one line for each key. */
export interface KeyedLines<Item> {
  /** How many wait in all. */
  readonly size: number;
  /** Adds an item to the end of the line of its key. */
  add(key: string, item: Item): void;
  /** Takes up to so many, from as many lines as possible; items of one key in their order. */
  take(most: number): readonly Item[];
}

/** Makes empty lines. */
export function keyedLines<Item>(): KeyedLines<Item> {
  const lines = new Map<string, Item[]>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(key, item) {
      size += 1;
      const line = lines.get(key);
      if (line === undefined) lines.set(key, [item]);
      else line.push(item);
    },
    take(most) {
      const taken: Item[] = [];
      while (taken.length < most && lines.size > 0) {
        for (const [key, line] of lines) {
          if (taken.length === most) break;
          taken.push(...line.splice(0, 1));
          if (line.length === 0) lines.delete(key);
        }
      }
      size -= taken.length;
      return taken;
    },
  };
}
