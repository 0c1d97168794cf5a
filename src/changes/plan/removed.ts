import type { ManagementApi } from "../../api/management.ts";
import { inPieces } from "../../files/pieces.ts";
import type { Clock } from "../../platform/clock.ts";
import { placedOptions, savedOption, withContexts } from "../../reading/saved-options.ts";
import type { Driving } from "../../runs/kind.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { Plan } from "./plan.ts";

/** How long what was read for a plan counts as what is there, in milliseconds: a person may take longer to agree. */
const FRESH_MS = 60_000;

/**
 * Keeps what a run takes away as the part `removed`, NDJSON that `bulk_add_options` or `update_contexts` reads from a
 * file, and what was there before as the part `former`. What is deleted is read for it, each option once, unless it was
 * just read for the plan. Throws the ApiError of a read: then nothing may be deleted.
 */
export async function keepFormer(
  plan: Pick<Plan, "removed" | "former" | "madeAt">,
  { lease, keep, signal }: Keeping,
  { api, clock }: { readonly api: ManagementApi; readonly clock: Pick<Clock, "now"> },
): Promise<void> {
  if (plan.removed.length > 0) {
    await lease.renew();
    const isFresh = plan.madeAt !== undefined && clock.now() - plan.madeAt <= FRESH_MS;
    await keep("removed", inPieces(removedLines(plan, isFresh, api, signal)));
  }
  if (plan.former.size > 0) await keep("former", inPieces(plan.former.lines()));
}

/** What of a run that is driven keeps its parts. */
type Keeping = Pick<Driving<unknown, unknown, unknown>, "lease" | "keep" | "signal">;

/** Options are noted as they were once they are read. */
async function* removedLines(
  { removed, former }: Pick<Plan, "removed" | "former">,
  isFresh: boolean,
  api: ManagementApi,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (const one of removed) {
    if (one.kind === "row") yield `${JSON.stringify(one.row)}\n`;
    else if (isFresh && one.kind === "options" && one.areRead) {
      // They are noted as former values already.
      for (const placed of one.options) yield `${JSON.stringify(savedOption(placed, placed.contexts))}\n`;
    } else {
      const options = one.kind === "options" ? one.options : placedOptions(api, one._id, signal);
      const within = one.kind === "targeting" ? { targeting: one._id } : {};
      const note = (option: OptionRecord, held: readonly string[]): void => {
        former.record({ ...option, ...within });
        former.option({ _id: option._id, held: [...held] });
      };
      for await (const read of withContexts(api, options, signal, undefined, note)) {
        yield `${JSON.stringify(savedOption(read, read.contexts))}\n`;
      }
    }
  }
}
