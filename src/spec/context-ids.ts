import { LIMITS } from "./limits.ts";

/** Why a Context ID is invalid (management-api 8.1). `bytes` is its length in UTF-8 after trimming. */
export interface ContextIdProblem {
  readonly rule: "empty" | "tooLong" | "halfCharacter";
  readonly bytes: number;
}

/** Returns the form in which the service stores a Context ID: without surrounding white space (management-api 8.1). */
export function trimContextId(contextId: string): string {
  return contextId.trim();
}

/** Checks a trimmed Context ID. Returns the rule that it breaks; undefined if it is valid. */
export function contextIdProblem(trimmed: string): ContextIdProblem | undefined {
  if (trimmed.length === 0) return { rule: "empty", bytes: 0 };
  if (!trimmed.isWellFormed()) return { rule: "halfCharacter", bytes: 0 };
  // A UTF-16 code unit takes at most three bytes.
  if (trimmed.length * 3 <= LIMITS.contextIdBytes.value) return undefined;
  const bytes = Buffer.byteLength(trimmed, "utf8");
  return bytes > LIMITS.contextIdBytes.value ? { rule: "tooLong", bytes } : undefined;
}

/** A Context ID, and another one that differs from it only in case, width or composition. */
export interface NearContextId {
  readonly given: string;
  readonly held: string;
}

/**
 * Returns the given Context IDs that the option does not have, but that differ from one of its IDs only in case, width
 * or composition.
 */
export function nearContextIds(given: readonly string[], held: readonly string[]): readonly NearContextId[] {
  const exact = new Set(held);
  const fresh = given.filter((id) => !exact.has(id));
  if (fresh.length === 0) return [];
  const plain = (id: string): string => id.normalize("NFKC").toLowerCase();
  const byPlain = new Map(held.map((id) => [plain(id), id]));
  return fresh.flatMap((id) => {
    const other = byPlain.get(plain(id));
    return other === undefined ? [] : [{ given: id, held: other }];
  });
}
