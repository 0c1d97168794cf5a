export type Scope = "context-targeting:read" | "context-targeting:write";

export interface ManagementKey {
  readonly key: string;
  readonly project?: string | undefined;
  /** Absent: both scopes. */
  readonly scopes?: readonly Scope[] | undefined;
  /** A revoked key is rejected like an unknown one. */
  readonly revoked?: boolean | undefined;
}

export const SCOPES = ["context-targeting:read", "context-targeting:write"] as const satisfies readonly Scope[];

export const DEFAULT_PROJECT = "sandbox";

export const BUILT_IN_KEYS = {
  management: [
    { key: "sandbox-key", project: DEFAULT_PROJECT, scopes: SCOPES },
    { key: "sandbox-read-key", project: DEFAULT_PROJECT, scopes: ["context-targeting:read"] },
  ],
  app: ["sandbox-app-key"],
} as const satisfies { readonly management: readonly ManagementKey[]; readonly app: readonly string[] };
