import * as z from "zod";
import { ownReason } from "../../runs/outcome.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { OnExisting } from "../call.ts";
import type { Settlement } from "./entries.ts";

const ids = z.array(z.string());

const formerTargeting = z.object({ kind: z.literal("targeting"), _id: z.string(), name: z.string() });

const formerOption = z.object({
  kind: z.literal("option"),
  _id: z.string(),
  targeting: z.string().exactOptional(),
  name: z.string().exactOptional(),
  type: z.enum(["atomic", "collection"]).exactOptional(),
  /** Null for a top-level option. */
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  /** The previous Context IDs that the run changes; for a deleted option, all. */
  held: ids.exactOptional(),
  subOptions: ids.exactOptional(),
});

export type PreviousTargeting = z.infer<typeof formerTargeting>;

export type PreviousOption = z.infer<typeof formerOption>;

export const previousValueLine = z.discriminatedUnion("kind", [formerTargeting, formerOption]);

/** The values before a run, from which an undo plan is made. */
export class PreviousValues {
  readonly #lines = new Map<string, PreviousOption | PreviousTargeting>();

  get size(): number {
    return this.#lines.size;
  }

  option(more: Omit<PreviousOption, "kind">): void {
    const before = this.#lines.get(more._id);
    this.#lines.set(more._id, { ...(before?.kind === "option" && before), kind: "option", ...more });
  }

  record({ _id, name, type, targeting, parent, exposeChildren, childCount }: OptionRecord): void {
    const kind = type ?? (childCount === undefined ? "atomic" : "collection");
    this.option({
      _id,
      name,
      type: kind,
      parent: parent ?? null,
      ...(targeting !== undefined && { targeting }),
      ...(kind === "collection" && { exposeChildren: exposeChildren ?? false }),
    });
  }

  targeting(_id: string, name: string): void {
    this.#lines.set(_id, { kind: "targeting", _id, name });
  }

  *lines(): Generator<string> {
    for (const line of this.#lines.values()) yield `${JSON.stringify(line)}\n`;
  }
}

const EXISTS = ownReason("EXISTS");

/** Returns the outcome of an existing option that stays as it is. */
export function unchangedOption(object: number, _id: string, onExisting: OnExisting): Settlement {
  if (onExisting === "skip") return { object, outcome: "skipped", reason: EXISTS, _id };
  return { object, outcome: "alreadyDone", _id };
}
