import { NotSentError } from "../../src/api/errors.ts";
import type { ManagementApi } from "../../src/api/management.ts";
import type { ProjectLock } from "../../src/runs/backend.ts";
import { HeldBackError, LeaseLostError } from "../../src/runs/turn.ts";
import type { Random } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** How likely it is that a process is suspended before a request, and how likely that it has lost its lease by then. */
const SHARE = 0.04;
/** Longer than the two seconds within which a request must be sent after it was announced. */
const STANDSTILL_MS = 2500;

/**
 * Makes processes stop now and then, as if suspended. Their requests are then held back, or another process has the
 * lease.
 */
export function standingStill(
  { lock, api }: { readonly lock: ProjectLock; readonly api: ManagementApi },
  { time, random, isOn }: { readonly time: VirtualTime; readonly random: Random; readonly isOn: () => boolean },
): { readonly lock: ProjectLock; readonly api: ManagementApi } {
  return {
    lock: {
      hold: (project, work, signal) =>
        lock.hold(
          project,
          (turn) => {
            const losing = new AbortController();
            return work({
              ...turn,
              lost: losing.signal,
              renew: async () => {
                if (isOn() && random.chance(SHARE)) losing.abort(new LeaseLostError("another process has the turn"));
                losing.signal.throwIfAborted();
                return turn.renew();
              },
            });
          },
          signal,
        ),
    },
    api: {
      ...api,
      bulk: async (operation, items, options) => {
        if (isOn() && random.chance(SHARE)) time.advance(STANDSTILL_MS);
        try {
          options?.fence?.mayLeave();
        } catch (cause) {
          if (!(cause instanceof HeldBackError)) throw cause;
          throw new NotSentError({ operation, reason: cause.message }, { cause });
        }
        return api.bulk(operation, items, options);
      },
    },
  };
}
