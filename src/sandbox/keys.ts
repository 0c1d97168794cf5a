/** A right of a key of the management API (management-api 5). */
export type Scope = "context-targeting:read" | "context-targeting:write";

/** A key of the management API: its project, and its scopes. */
export interface ManagementKey {
  readonly key: string;
  /** The project's name; the sandbox's first project if absent. */
  readonly project?: string | undefined;
  /** Both scopes if absent. */
  readonly scopes?: readonly Scope[] | undefined;
  /** A revoked key allows nothing. */
  readonly revoked?: boolean | undefined;
}

/** Every scope of the management API. */
export const SCOPES = ["context-targeting:read", "context-targeting:write"] as const satisfies readonly Scope[];

/** The name of the project that always exists. */
export const DEFAULT_PROJECT = "sandbox";

/** The keys that every sandbox accepts. */
export const BUILT_IN_KEYS = {
  management: [
    { key: "sandbox-key", project: DEFAULT_PROJECT, scopes: SCOPES },
    { key: "sandbox-read-key", project: DEFAULT_PROJECT, scopes: ["context-targeting:read"] },
  ],
  app: ["sandbox-app-key"],
} as const satisfies { readonly management: readonly ManagementKey[]; readonly app: readonly string[] };
