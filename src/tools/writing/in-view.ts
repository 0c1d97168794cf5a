import { createHmac, timingSafeEqual } from "node:crypto";
import type { ToolContext, ToolServices } from "../context.ts";
import type { ToolAnswer } from "../definition.ts";

/** What a person decides about in a view: a run, and what exactly it would do. */
export interface InView {
  readonly runId: string;
  /** A text that changes with the effect. */
  readonly digest: string;
}

type Sealing = Pick<ToolContext, "sealKey" | "caller">;

/** Whether a decision in a view counts by the settings: hosts alone keep the model from deciding there. */
export function mayDecideInView({ confirm, trustViews }: Pick<ToolServices, "confirm" | "trustViews">): boolean {
  return confirm !== "strict" || trustViews;
}

/** What a view is given with which a person decides: the secret is made for this run, its effect and this caller. */
export async function decisionFor(about: InView, sealing: Sealing): Promise<NonNullable<ToolAnswer["decision"]>> {
  return { runId: about.runId, secret: (await secretOf(about, sealing)).toString("base64url") };
}

/** Whether a secret is the one that was given for this run, its effect and this caller. */
export async function isSecretFor(about: InView, given: string, sealing: Sealing): Promise<boolean> {
  const [bytes, secret] = [Buffer.from(given, "base64url"), await secretOf(about, sealing)];
  return bytes.length === secret.length && timingSafeEqual(bytes, secret);
}

async function secretOf({ runId, digest }: InView, { sealKey, caller }: Sealing): Promise<Buffer> {
  const about = JSON.stringify(["decision in a view", runId, digest, caller]);
  return createHmac("sha256", await sealKey())
    .update(about)
    .digest();
}
