import { NotSentError } from "../../../api/errors.ts";
import type { EventApi } from "../../../api/events.ts";
import { HeldBackError } from "../../../platform/fence.ts";
import { fenceOf, type Intent, SEND_WINDOW_MS, type Turn } from "../../../runs/turn.ts";

/** The lease is renewed for the next events when its readings are this old, in milliseconds. */
const RENEW_AFTER_MS = SEND_WINDOW_MS / 2;
/**
 * How often an event that was held back is tried again at once: on a machine that is always too slow it cannot be sent.
 */
const HELD_BACK_TRIES = 10;

/**
 * The same API, whose events leave only while the lease of their run is held. They were announced before, so that an
 * event which leaves too late is in doubt for the process that has taken the run over. `track` throws a LeaseLostError
 * there.
 */
export function fencedEvents(api: EventApi, lease: Turn, monotonic: () => number): EventApi {
  let renewing: { readonly since: number; readonly intent: Promise<Intent> } | undefined;
  const renewed = async (): Promise<Intent> => {
    // Where no connection can be made, sending the event throws the error.
    await api.connect?.().catch(() => undefined);
    return lease.renew();
  };
  const latest = (): Promise<Intent> => {
    if (renewing === undefined || monotonic() - renewing.since > RENEW_AFTER_MS) {
      renewing = { since: monotonic(), intent: renewed() };
    }
    return renewing.intent;
  };
  return {
    ...api,
    async track(body, options) {
      for (let tries = 1; ; tries += 1) {
        const intent = await latest();
        const fence = fenceOf([lease], intent, { renew: () => lease.renew(), onLate: () => {} });
        try {
          return await api.track(body, { ...options, fence });
        } catch (thrown) {
          const isHeldBack = thrown instanceof NotSentError && thrown.cause instanceof HeldBackError;
          if (!isHeldBack || tries === HELD_BACK_TRIES) throw thrown;
          renewing = undefined;
        }
      }
    },
  };
}
