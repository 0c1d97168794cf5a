import type { ManagementApi } from "../../api/management.ts";
import { inPieces } from "../../files/pieces.ts";
import { placedOptions, withContexts } from "../../reading/saved-options.ts";
import type { Driving } from "../../runs/kind.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { Plan } from "./plan.ts";

/**
 * Keeps what a run takes away as the part `removed`, NDJSON that `bulk_add_options` or `update_contexts` reads from a
 * file, and what was there before as the part `former`. What is deleted is read for it, each option once. Throws the
 * ApiError of a read: then nothing may be deleted.
 */
export async function keepFormer(
  plan: Pick<Plan, "removed" | "former">,
  { lease, keep, signal }: Keeping,
  api: ManagementApi,
): Promise<void> {
  if (plan.removed.length > 0) {
    await lease.renew();
    await keep("removed", inPieces(removedLines(plan, api, signal)));
  }
  if (plan.former.size > 0) await keep("former", inPieces(plan.former.lines()));
}

/** What of a run that is driven keeps its parts. */
type Keeping = Pick<Driving<unknown, unknown, unknown>, "lease" | "keep" | "signal">;

/** Options are noted as they were once they are read. */
async function* removedLines(
  { removed, former }: Pick<Plan, "removed" | "former">,
  api: ManagementApi,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (const one of removed) {
    if (one.kind === "row") yield `${JSON.stringify(one.row)}\n`;
    else {
      const options = one.kind === "options" ? one.options : placedOptions(api, one._id, signal);
      const within = one.kind === "targeting" ? { targeting: one._id } : {};
      const note = (option: OptionRecord, held: readonly string[]): void => {
        former.record({ ...option, ...within });
        former.option({ _id: option._id, held: [...held] });
      };
      for await (const row of withContexts(api, options, signal, undefined, note)) yield `${JSON.stringify(row)}\n`;
    }
  }
}
