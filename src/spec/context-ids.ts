import { LIMITS } from "./limits.ts";

/** The rule of management-api 8.1 that a Context ID breaks. `bytes` is the UTF-8 length after trimming. */
interface ContextIdProblem {
  readonly rule: "empty" | "tooLong" | "halfCharacter";
  readonly bytes: number;
}

/** Removes leading and trailing white space, as the service does before it stores a Context ID (management-api 8.1). */
export function trimContextId(contextId: string): string {
  return contextId.trim();
}

export function contextIdProblem(trimmed: string): ContextIdProblem | undefined {
  if (trimmed.length === 0) return { rule: "empty", bytes: 0 };
  if (!trimmed.isWellFormed()) return { rule: "halfCharacter", bytes: 0 };
  // A UTF-16 code unit takes at most three bytes in UTF-8, so short IDs need no exact count.
  if (trimmed.length * 3 <= LIMITS.contextIdBytes.value) return undefined;
  const bytes = Buffer.byteLength(trimmed, "utf8");
  return bytes > LIMITS.contextIdBytes.value ? { rule: "tooLong", bytes } : undefined;
}

/** Returns the given Context IDs that are probably mistyped: the option has a similar one. */
export function nearContextIds(given: readonly string[], held: readonly string[]) {
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

/** Returns the UTF-8 bytes of Context IDs. */
export function bytesOf(ids: Iterable<string>): number {
  let bytes = 0;
  for (const id of ids) bytes += Buffer.byteLength(id, "utf8");
  return bytes;
}
