import { LIMITS } from "../../spec/limits.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { bytesInBody, PART_BYTES } from "./checks.ts";

/** The Context IDs to add to and remove from an option; none occurs twice. */
export interface ContextWork {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Taken away before all others: another group of the same call gets them. */
  readonly early?: readonly string[];
  /** Added from the second request on: another group of the same call holds them until its first one. */
  readonly late?: readonly string[];
}

/** By how much an option may grow beyond its present size while there are Context IDs left to remove. */
export interface Growth {
  readonly ids: number;
  readonly bytes: number;
}

/** How a change is cut into parts. */
interface PartRules {
  readonly growth: Growth;
  /** Whether a part only adds or only takes away. */
  readonly isPure?: boolean;
}

/**
 * Cuts a change into parts that each fit into one request (management-api 8.1), to be sent one after another. It adds
 * as much as the growth allows before it takes away, and takes away just what makes room for the rest, so that the
 * option never holds much less than before or afterwards. Every part but the last is full, so that none more is needed
 * than the Context IDs come to, unless early and late ones or pure parts ask for it.
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
  /** How many of each queue were taken. */
  readonly #taken = { add: 0, remove: 0 };
  readonly #early: number;
  /** Where late ones begin among those that are added. */
  readonly #late: number;
  /** By how much the option has grown, in Context IDs and bytes. */
  #grownIds = 0;
  #grownBytes = 0;

  constructor({ add, remove, early = [], late = [] }: ContextWork, rules: PartRules) {
    this.#queues = { add: [...add, ...late], remove: [...early, ...remove] };
    this.#early = early.length;
    this.#late = add.length;
    this.#rules = rules;
  }

  /** The next part; undefined once nothing is left. */
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
   * Adds or removes only, as the part has begun. The last Context ID to remove is left to the end, so that the option
   * is never empty.
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

  /** Whether one more may be added: always once nothing is left to be taken away. */
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
