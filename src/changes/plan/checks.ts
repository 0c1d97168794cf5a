import { ownReason, type Reason } from "../../runs/outcome.ts";
import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import { bytesOf, contextIdProblem, nameProblem, trimContextId } from "../../spec/names-and-contexts.ts";
import { isUlid } from "../../spec/ulid.ts";

/** Returns why a name cannot be sent (management-api 8.3). */
export function badName(name: string): Reason | undefined {
  const problem = nameProblem(name);
  return problem === undefined ? undefined : ownReason("INVALID_NAME", { ...problem });
}

/** Returns why an ID cannot be sent. `field` is the input field. */
export function badId(field: string, id: string): Reason | undefined {
  return isUlid(id) ? undefined : ownReason("INVALID_ID", { field, value: id.slice(0, 40) });
}

/** Context IDs as the service stores them: trimmed, without duplicates, in the order of first occurrence. */
type CheckedContextIds =
  | { readonly ok: true; readonly ids: readonly string[] }
  | { readonly ok: false; readonly reason: Reason };

const NO_CONTEXT_IDS: CheckedContextIds = { ok: true, ids: [] };

/** Trims and checks Context IDs (management-api 8.1). A reason has the first problem and the number of invalid ones. */
export function checkContextIds(contextIds: readonly string[]): CheckedContextIds {
  const [only] = contextIds;
  if (only === undefined) return NO_CONTEXT_IDS;
  if (contextIds.length === 1) {
    const trimmed = trimContextId(only);
    if (contextIdProblem(trimmed) === undefined) return { ok: true, ids: [trimmed] };
  }
  const ids = new Set<string>();
  let bad: Reason | undefined;
  let count = 0;
  contextIds.forEach((contextId, position) => {
    const trimmed = trimContextId(contextId);
    const problem = contextIdProblem(trimmed);
    if (problem === undefined) ids.add(trimmed);
    else {
      count += 1;
      bad ??= ownReason("INVALID_CONTEXT_ID", { ...problem, position, value: trimmed.slice(0, 40) });
    }
  });
  if (bad !== undefined) return { ok: false, reason: { ...bad, detail: { ...bad.detail, count } } };
  return { ok: true, ids: [...ids] };
}

/** Returns why an option cannot hold these Context IDs (management-api 8.1). */
export function tooManyForOption(ids: readonly string[]): Reason | undefined {
  const limit = LIMITS.optionContextIds.value;
  const limitBytes = LIMITS.optionContextBytes.value;
  if (ids.length > limit) return ownReason("TOO_MANY_CONTEXT_IDS", { count: ids.length, limit });
  if (ids.length * LIMITS.contextIdBytes.value <= limitBytes) return undefined;
  const bytes = bytesOf(ids);
  return bytes > limitBytes ? ownReason("TOO_MANY_CONTEXT_IDS", { bytes, limitBytes }) : undefined;
}

const OTHER_FIELDS_BYTES = 4096;

/** The Context IDs in one request body have at most this size. The rest is reserved for the other fields of an item. */
export const PART_BYTES = OWN_BODY_BYTES - OTHER_FIELDS_BYTES;

/** Returns the bytes of a Context ID in a body, including the comma. */
export function bytesInBody(id: string): number {
  return Buffer.byteLength(JSON.stringify(id), "utf8") + 1;
}

/** Divides Context IDs into at least one part that fits into a request (management-api 8.1). */
export function parts(ids: readonly string[]): readonly (readonly string[])[] {
  const all: string[][] = [[]];
  let bytes = 0;
  for (const id of ids) {
    const size = bytesInBody(id);
    const part = all.at(-1) ?? [];
    const full = part.length >= LIMITS.requestContextIds.value || bytes + size > PART_BYTES;
    if (full) {
      all.push([id]);
      bytes = size;
    } else {
      part.push(id);
      bytes += size;
    }
  }
  return all;
}
