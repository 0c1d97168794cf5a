import { LIMITS } from "../../spec/limits.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { bytesInBody, PART_BYTES } from "./checks.ts";

/** No Context ID is in two of these lists. */
export interface ContextWork {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Context IDs that are removed first, because another group of the same call gets them. */
  readonly early?: readonly string[];
  /**
   * Context IDs that are added from the second request on, because another group holds them until its first request.
   */
  readonly late?: readonly string[];
}

/** By how much an option may grow while Context IDs are still to be removed. */
export interface Growth {
  readonly ids: number;
  readonly bytes: number;
}

interface PartRules {
  readonly growth: Growth;
  /** Whether each part either only adds or only removes. */
  readonly isPure?: boolean;
}

/**
 * Divides a change into parts that each fit into one request (management-api 8.1), to be sent in order. Context IDs are
 * added first, as far as `growth` allows; then only as many are removed as the next additions need. So the option never
 * holds much less than before or afterwards.
 */
export function contextParts(work: ContextWork, rules: PartRules): readonly ContextChanges[] {
  const cut = new Cut(work, rules);
  const parts: ContextChanges[] = [];
  for (;;) {
    const part = cut.nextPart(parts.length === 0);
    if (part === undefined) return parts;
    parts.push(part);
  }
}

type PartKind = "add" | "remove";

class Cut {
  readonly #queues: Readonly<Record<PartKind, readonly string[]>>;
  readonly #rules: PartRules;
  /** How many Context IDs of each queue are in a part already. */
  readonly #taken = { add: 0, remove: 0 };
  readonly #early: number;
  /** The position of the first late Context ID. */
  readonly #late: number;
  #grownIds = 0;
  #grownBytes = 0;

  constructor({ add, remove, early = [], late = [] }: ContextWork, rules: PartRules) {
    this.#queues = { add: [...add, ...late], remove: [...early, ...remove] };
    this.#early = early.length;
    this.#late = add.length;
    this.#rules = rules;
  }

  nextPart(isFirst: boolean): ContextChanges | undefined {
    const part: Record<PartKind, string[]> = { add: [], remove: [] };
    let bytes = 0;
    for (;;) {
      const kind = this.#nextKind(part, isFirst);
      const id = kind && this.#queues[kind][this.#taken[kind]];
      if (kind === undefined || id === undefined) break;
      const size = bytesInBody(id);
      const count = part.add.length + part.remove.length;
      if (count > 0 && (count >= LIMITS.requestContextIds.value || bytes + size > PART_BYTES)) break;
      part[kind].push(id);
      bytes += size;
      this.#taken[kind] += 1;
      this.#grow(kind, id);
    }
    const { add, remove } = part;
    if (add.length + remove.length === 0) return undefined;
    return { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) };
  }

  #nextKind(part: Readonly<Record<PartKind, readonly string[]>>, isFirst: boolean): PartKind | undefined {
    const left = { add: this.#left("add"), remove: this.#left("remove") };
    const isEarly = this.#taken.remove < this.#early;
    const isLate = this.#taken.add >= this.#late;
    const mustWait = isFirst && isLate && left.remove + part.add.length + part.remove.length > 0;
    const canAdd = left.add > 0 && !mustWait && this.#hasRoom(left.remove);
    if (this.#rules.isPure) return this.#nextPure(part, { ...left, canAdd });
    if (isEarly || (!canAdd && left.remove > 0)) return "remove";
    return canAdd ? "add" : undefined;
  }

  /**
   * Returns whether the next Context ID is added or removed. A pure part does one of both. The last Context ID is
   * removed at the very end, never before additions.
   */
  #nextPure(
    part: Readonly<Record<PartKind, readonly string[]>>,
    { canAdd, add, remove }: { readonly canAdd: boolean; readonly add: number; readonly remove: number },
  ): PartKind | undefined {
    const canRemove = remove > (add > 0 ? 1 : 0);
    if (part.remove.length > 0) return canRemove ? "remove" : undefined;
    if (canAdd) return "add";
    return part.add.length === 0 && remove > 0 ? "remove" : undefined;
  }

  #left(kind: PartKind): number {
    return this.#queues[kind].length - this.#taken[kind];
  }

  #hasRoom(removesLeft: number): boolean {
    if (removesLeft === 0) return true;
    const { ids, bytes } = this.#rules.growth;
    const next = this.#queues.add[this.#taken.add] ?? "";
    return this.#grownIds < ids && this.#grownBytes + Buffer.byteLength(next, "utf8") <= bytes;
  }

  #grow(kind: PartKind, id: string): void {
    const sign = kind === "add" ? 1 : -1;
    this.#grownIds += sign;
    this.#grownBytes += sign * Buffer.byteLength(id, "utf8");
  }
}
