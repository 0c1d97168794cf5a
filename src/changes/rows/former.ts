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
  /** Null at the top level. */
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  /** Of the Context IDs that the run changes, those that the option held; of an option that is deleted, all. */
  held: ids.exactOptional(),
  subOptions: ids.exactOptional(),
});

export type FormerTargeting = z.infer<typeof formerTargeting>;

export type FormerOption = z.infer<typeof formerOption>;

export const formerLine = z.discriminatedUnion("kind", [formerTargeting, formerOption]);

/** What was there before a run changed it: what the way back is planned from. */
export class FormerValues {
  readonly #lines = new Map<string, FormerOption | FormerTargeting>();

  get size(): number {
    return this.#lines.size;
  }

  /** Notes what is known of an option, besides what was noted before. */
  option(more: Omit<FormerOption, "kind">): void {
    const before = this.#lines.get(more._id);
    this.#lines.set(more._id, { ...(before?.kind === "option" && before), kind: "option", ...more });
  }

  /** Notes the fields of an option's record. */
  record({ _id, name, type, targeting, parent, exposeChildren, childCount }: OptionRecord): void {
    const kind = type ?? (childCount === undefined ? "atomic" : "collection");
    this.option({
      ...{ _id, name, type: kind, parent: parent ?? null },
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

/** The outcome of an option that exists and is not changed: skipped by choice, or with nothing to be given to it. */
export function leftAsItIs(object: number, _id: string, onExisting: OnExisting): Settlement {
  if (onExisting === "skip") return { object, outcome: "skipped", reason: EXISTS, _id };
  return { object, outcome: "alreadyDone", _id };
}
