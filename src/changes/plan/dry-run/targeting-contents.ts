import type { RejectedError } from "../../../api/errors.ts";
import type { ManagementApi } from "../../../api/management.ts";
import { isMissing } from "../../../reading/find-options.ts";
import { readOptions } from "../../../reading/option-lists.ts";
import type { Reason } from "../../../runs/outcome.ts";
import { ERROR_CODES, type ErrorCode } from "../../../spec/error-codes.ts";
import type { OptionRecord } from "../../../spec/records.ts";
import type { Step } from "../../rows/entries.ts";
import { sentFields } from "../../rows/step-maker.ts";

/** What a targeting holds, as it was read. */
export interface TargetingContents {
  readonly options: ReadonlyMap<string, OptionRecord>;
  /** The IDs of the options that have a name, sub-options included. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  /** Context IDs of all its options, each counted once for each option. */
  readonly contextIds: number;
}

/** Reads targetings, each once; a targeting that does not exist gives the error of the service. */
export type ContentsReader = (targetingId: string) => Promise<TargetingContents | RejectedError>;

/** Reads everything of a targeting, once. Throws the ApiError of a read that fails for another reason. */
export function readingTargetings(api: ManagementApi, signal: AbortSignal): ContentsReader {
  const known = new Map<string, Promise<TargetingContents | RejectedError>>();
  return (targetingId) => {
    const held = known.get(targetingId) ?? readHeld(api, targetingId, signal);
    known.set(targetingId, held);
    return held;
  };
}

async function readHeld(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
): Promise<TargetingContents | RejectedError> {
  const options = new Map<string, OptionRecord>();
  const names = new Map<string, string[]>();
  let contextIds = 0;
  try {
    for await (const option of readOptions(api, targetingId, signal)) {
      options.set(option._id, option);
      names.set(option.name, [...(names.get(option.name) ?? []), option._id]);
      contextIds += option.contextCount ?? 0;
    }
  } catch (thrown) {
    if (isMissing(thrown)) return thrown;
    throw thrown;
  }
  return { options, names, contextIds };
}

/** The reason that the service would give for refusing a step. */
export function refusal(step: Step, code: ErrorCode, detail?: Readonly<Record<string, unknown>>): Reason {
  const { statusCode } = ERROR_CODES[code];
  const sent = code === "TARGETING_CATEGORY_NOT_SUPPORTED" ? { sent: sentFields(step) } : {};
  return { code, statusCode, operation: step.operation, ...(detail && { detail }), ...sent };
}

/** Why an option cannot be the `parent` of others in a targeting (management-api 7.4 case 4), or undefined. */
export function badParent(step: Step, { options }: TargetingContents, parent: string): Reason | undefined {
  const group = options.get(parent);
  if (group === undefined) return refusal(step, "TARGETING_CATEGORY_NOT_FOUND");
  const isTopLevelGroup = group.type === "collection" && typeof group.parent !== "string";
  return isTopLevelGroup ? undefined : refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED");
}
