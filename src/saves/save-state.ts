import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import { type RunForm, type RunView, SingleObjectState } from "../runs/kind.ts";
import { ownReason, type Reason, stopEntry } from "../runs/outcome.ts";

const at = z.number();
const text = z.string().optional();
const count = z.number();
const some = count.exactOptional();

const place = { saveTo: z.string(), folders: z.array(z.string()), delimiter: text };

const listAsked = z.object({
  targetingId: z.string(),
  parent: text,
  search: text,
  contextIds: z.array(z.string()).optional(),
  empty: z.boolean().optional(),
  fresh: z.boolean().optional(),
  ...place,
});
export type ListAsked = Fixed<z.infer<typeof listAsked>>;

const optionAsked = z.object({ optionId: z.string(), targetingId: text, ...place });
export type OptionAsked = Fixed<z.infer<typeof optionAsked>>;

/** A call in its stored form, with everything that another process needs to finish it. */
const saveCall = z.discriminatedUnion("tool", [
  z.object({ tool: z.literal("list_options"), input: listAsked }),
  z.object({ tool: z.literal("get_option"), input: optionAsked }),
]);
export type SaveCall = Fixed<z.infer<typeof saveCall>>;

const optionSummary = z.object({
  _id: z.string(),
  name: z.string(),
  type: text,
  parent: text,
  contextCount: count.optional(),
  childCount: count.optional(),
});
export type OptionSummary = Fixed<z.infer<typeof optionSummary>>;

const saved = z.object({
  savedTo: z.string(),
  base: z.string().exactOptional(),
  /** How many objects were saved. For a single option, only `options` and `contextIds` are present. */
  counts: z.object({ options: count, contextIds: count, groups: some, subOptions: some, withoutContexts: some }),
  largest: z.array(optionSummary).exactOptional(),
  option: optionSummary.exactOptional(),
  total: some,
});
export type Saved = Fixed<z.infer<typeof saved>>;

/** One line of the journal. Applying all lines in order gives the present state of the run. */
const saveEntry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("begin"), saveTo: z.string(), at }),
  z.object({ t: z.literal("saved"), saved, at }),
  stopEntry,
  z.object({ t: z.literal("resume"), at }),
]);
export type SaveEntry = Fixed<z.infer<typeof saveEntry>>;

export const SAVE_FORM: RunForm<SaveCall, SaveEntry> = {
  name: "saves",
  tools: ["list_options", "get_option"],
  call: saveCall,
  entry: saveEntry,
  line: (entry) => [JSON.stringify(entry)],
};

export class SaveState extends SingleObjectState implements RunView<SaveEntry> {
  saved: Saved | undefined;
  #reason: Reason | undefined;

  apply(entry: SaveEntry): void {
    this.updatedAt = entry.at;
    switch (entry.t) {
      case "begin":
        this.objects = [{ index: 0, name: entry.saveTo }];
        return;
      case "saved":
        this.saved = entry.saved;
        this.outcome = "succeeded";
        return;
      case "stop":
        this.stopped = { cause: entry.cause };
        if (this.outcome !== "pending") return;
        this.outcome = entry.cause === "ended" ? "failed" : "notApplied";
        this.#reason = entry.reason ?? ownReason(entry.cause === "cancelled" ? "CANCELLED" : "INTERRUPTED");
        return;
      case "resume":
        this.stopped = undefined;
        if (this.outcome === "notApplied") this.outcome = "pending";
        this.#reason = undefined;
        return;
    }
  }

  reason(): Reason | undefined {
    return this.#reason;
  }
}
