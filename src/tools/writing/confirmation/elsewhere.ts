import type { ChangeHeader } from "../../../changes/changes.ts";
import { CONFIRMATION_MS, lossDigest } from "../../../changes/confirmation.ts";
import type { Plan } from "../../../changes/plan/plan.ts";
import { type Effect, effectText } from "../../../render/changes/effect.ts";
import { changesOf } from "../../apis.ts";
import type { ToolContext } from "../../context.ts";
import { effectOf } from "./effect-of.ts";

/** Where a run is approved that does not wait for the page, and until when. */
interface Elsewhere {
  readonly effect: Effect;
  readonly elsewhere: "client" | "token";
  /** Milliseconds since 1970. */
  readonly until: number;
}

/**
 * Keeps a run that is approved in the client or with a token: the page shows what it would do, where it is approved and
 * until when. One that waits for the page already stays as it is, and so does a plan, which is listed as one.
 */
export async function keepElsewhere(
  header: ChangeHeader,
  plan: Plan,
  { effect, elsewhere, until }: Elsewhere,
  context: Pick<ToolContext, "changes">,
): Promise<void> {
  const digest = lossDigest(plan.losses);
  const waits = { digest, effect: effectText(effect), parts: effect.parts, until, elsewhere };
  const isShown = plan.facts.waits !== undefined || header.call.tool === "apply_plan";
  plan.facts = { ...plan.facts, effect: effect.sentence, ...(!isShown && { waits }) };
  await changesOf(context).propose(header, plan);
}

/** Lets the agent ask for the token of a run whose call has answered; where no token is given, its client may ask again. */
export function tokenLater(context: ToolContext) {
  return async (header: ChangeHeader, plan: Plan): Promise<void> => {
    const { confirm, clock } = context;
    const isToken = confirm !== "strict";
    // A token may be asked for until the last of these minutes, and is valid for as long again.
    const until = clock.now() + (isToken ? 2 : 1) * CONFIRMATION_MS;
    const effect = await effectOf(header, plan, context);
    await keepElsewhere(header, plan, { effect, elsewhere: isToken ? "token" : "client", until }, context);
    if (isToken) changesOf(context).remember(header.runId, plan.losses);
  };
}
