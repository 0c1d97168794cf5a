import { createHash } from "node:crypto";
import type { OptionType } from "../../spec/records.ts";

/** An option as the service holds it. */
export interface ServiceOption {
  readonly _id: string;
  readonly name: string;
  readonly type: OptionType;
  /** Null at the top level. */
  readonly parent: string | null;
  /** Of groups alone. */
  readonly exposeChildren?: boolean | undefined;
  /** Its own Context IDs, in no order that means anything. */
  readonly contexts: readonly string[];
  /** How many Context IDs it holds, where they were not read. */
  readonly contextCount?: number | undefined;
  /** `digestOfContexts` of them. */
  readonly digest: string;
}

/** A targeting as the service holds it: each group stands before its sub-options, in the service's order otherwise. */
export interface ServiceTargeting {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: readonly ServiceOption[];
}

/** A digest that is the same for options with the same Context IDs in any order: SHA-256 in base64url. */
export function digestOfContexts(contexts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(contexts.toSorted())).digest("base64url");
}
