import type { Counts, Reason, Standing } from "../../runs/outcome.ts";
import type { Settlement } from "../rows/entries.ts";
import type { ObjectList } from "../rows/object-list.ts";

/** Where each object of a run stands, why, and which ID it has. */
export class Outcomes {
  readonly #objects: ObjectList;
  readonly #standing: Standing[] = [];
  readonly #ids: (string | undefined)[] = [];
  readonly #reasons = new Map<number, Reason>();
  readonly #counts: { -readonly [Field in keyof Counts]: Counts[Field] } = {
    pending: 0,
    succeeded: 0,
    alreadyDone: 0,
    failed: 0,
    notApplied: 0,
    unknown: 0,
  };

  /** Follows the objects of the list; those that are added to it later once `follow` is called. */
  constructor(objects: ObjectList) {
    this.#objects = objects;
    this.follow();
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  standing(object: number): Standing {
    return this.#standing[object] ?? "pending";
  }

  reason(object: number): Reason | undefined {
    return this.#reasons.get(object);
  }

  /** The ID of an object: as the service gave it, else as the caller did. */
  idOf(object: number): string | undefined {
    return this.#ids[object] ?? this.#objects.idOf(object);
  }

  giveId(object: number, id: string): void {
    this.#ids[object] = id;
  }

  /** Begins to follow the objects that were added to the list. */
  follow(): void {
    for (let object = this.#standing.length; object < this.#objects.length; object += 1) {
      this.#standing.push("pending");
      this.#ids.push(undefined);
      this.#counts.pending += 1;
    }
  }

  /** Gives an object its outcome. The first one stays, but for `notApplied`. */
  settle({ object, outcome, reason, _id }: Settlement): void {
    const before = this.#standing[object];
    if (before === outcome || (before !== "pending" && before !== "notApplied")) return;
    this.#move(object, before, outcome);
    if (reason !== undefined) this.#reasons.set(object, reason);
    if (_id !== undefined) this.giveId(object, _id);
  }

  /** Makes the outcome of an object `unknown` again. */
  doubt(object: number, reason: Reason): void {
    const before = this.#standing.at(object);
    if (before === undefined || before === "pending" || before === "unknown") return;
    this.#move(object, before, "unknown");
    this.#reasons.set(object, reason);
  }

  /** Makes an object that did not succeed pending again. */
  reopen(object: number): void {
    const before = this.#standing[object];
    if (before !== "unknown" && before !== "notApplied" && before !== "failed") return;
    this.#move(object, before, "pending");
    this.#reasons.delete(object);
  }

  #move(object: number, from: Standing, to: Standing): void {
    this.#counts[from] = (this.#counts[from] ?? 0) - 1;
    this.#counts[to] = (this.#counts[to] ?? 0) + 1;
    this.#standing[object] = to;
  }
}
