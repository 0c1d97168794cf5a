/** How many IDs one chunk holds before it is cut in two. */
const CHUNK = 512;

/**
 * IDs in creation order. ULIDs sort by creation, so the list is kept sorted: adding, removing and jumping to an
 * offset cost about the square root of the size, wherever in the list they happen.
 */
export interface OrderedIds extends Iterable<string> {
  readonly size: number;
  add(id: string): void;
  remove(id: string): void;
  /** At most `limit` IDs from position `offset` on. */
  page(offset: number, limit: number): string[];
}

/** Makes an empty list. */
export function orderedIds(): OrderedIds {
  const chunks: string[][] = [];
  let size = 0;

  /** The chunk that holds `id`, or would. */
  function chunkOf(id: string): number {
    const found = lowerBound(chunks.length, (place) => (chunks[place]?.at(-1) ?? "") < id);
    return Math.max(0, Math.min(found, chunks.length - 1));
  }

  return {
    get size() {
      return size;
    },
    add(id) {
      const place = chunkOf(id);
      const chunk = chunks[place];
      if (chunk === undefined) {
        chunks.push([id]);
        size = 1;
        return;
      }
      const at = lowerBound(chunk.length, (index) => (chunk[index] ?? "") < id);
      if (chunk[at] === id) return;
      chunk.splice(at, 0, id);
      size += 1;
      if (chunk.length > CHUNK) chunks.splice(place + 1, 0, chunk.splice(CHUNK / 2));
    },
    remove(id) {
      const place = chunkOf(id);
      const chunk = chunks[place];
      if (chunk === undefined) return;
      const at = lowerBound(chunk.length, (index) => (chunk[index] ?? "") < id);
      if (chunk[at] !== id) return;
      chunk.splice(at, 1);
      size -= 1;
      if (chunk.length === 0) chunks.splice(place, 1);
    },
    page(offset, limit) {
      const page: string[] = [];
      let skip = offset;
      for (const chunk of chunks) {
        if (page.length >= limit) break;
        if (skip < chunk.length) page.push(...chunk.slice(skip, skip + limit - page.length));
        skip = Math.max(0, skip - chunk.length);
      }
      return page;
    },
    *[Symbol.iterator]() {
      for (const chunk of chunks) yield* chunk;
    },
  };
}

/** The first position of `length` for which `before` no longer holds. */
function lowerBound(length: number, before: (position: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
