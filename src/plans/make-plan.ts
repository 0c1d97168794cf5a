import { FileError } from "../platform/file-error.ts";
import type { TargetingMemory } from "../runs/backend/backend.ts";
import type { Base } from "./base/base.ts";
import type { ServiceTargeting } from "./base/service-targeting.ts";
import { type DiffInput, planOf } from "./diff/diff.ts";
import type { Thresholds } from "./diff/thresholds.ts";
import { type PlanDocument, type PlanOrigin, planDocument } from "./plan-document.ts";
import { whichTargeting } from "./which-targeting.ts";

/** What a plan is asked for. */
export interface PlanRequest extends Pick<DiffInput, "desired" | "prune" | "byName"> {
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly fileDigest: string;
  readonly base: Base | undefined;
  /** The targeting that the caller names, by ID or name. */
  readonly targeting: string | undefined;
}

/** The service that a plan is made for, and what may be changed there. */
export interface PlanScene extends Pick<PlanOrigin, "environment" | "apiUrl"> {
  readonly memory: Pick<TargetingMemory, "resolve">;
  readonly thresholds: Thresholds;
  /** Reads a targeting as a whole. */
  readonly read: (targetingId: string) => Promise<ServiceTargeting>;
}

/** A plan, and the targeting as it was when it was made; undefined where the plan creates it. */
export interface MadePlan {
  readonly document: PlanDocument;
  readonly there: ServiceTargeting | undefined;
}

/**
 * Plans a desired state. Throws a FileError where the targeting is not said or unknown, and where `prune` has no base;
 * and what `read` throws.
 */
export async function makePlan(asked: PlanRequest, scene: PlanScene): Promise<MadePlan> {
  const { desired, fileDigest, base, targeting, prune, byName } = asked;
  const { memory, thresholds, environment, apiUrl } = scene;
  if (prune && base === undefined) {
    throw new FileError(
      "prune deletes what stood in the base and is gone from the file, and there is no base",
      "Export the targeting into a file, which writes the base beside it, or name the base.",
    );
  }
  const targetingId = await whichTargeting({ given: targeting, file: desired.targeting, base, byName, memory });
  const there = targetingId === undefined ? undefined : await scene.read(targetingId);
  const plan = planOf({ desired, base, there, prune, byName, thresholds });
  return { document: planDocument(plan, { environment, apiUrl, fileDigest, prune, byName }, groupsIn(there)), there };
}

/** The names of the groups of a targeting, by ID. */
function groupsIn(there: ServiceTargeting | undefined): Readonly<Record<string, string>> {
  const groups = there?.options.filter(({ type }) => type === "collection") ?? [];
  return Object.fromEntries(groups.map(({ _id, name }) => [_id, name]));
}
