import { readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import * as z from "zod";
import { SETTINGS } from "./registry.ts";
import { headerKey, SettingsError } from "./value-types.ts";

const SHORTEST_TOKEN = 16;
export const ALL_PROJECTS = "*";

const headerText = z.string().refine((text) => headerKey.read(text) !== undefined, `must be ${headerKey.words}`);
const projectKeys = z
  .strictObject({ targetingApiKey: headerText.optional(), eventAppKey: headerText.optional() })
  .refine((keys) => keys.targetingApiKey ?? keys.eventAppKey, "needs targetingApiKey, eventAppKey or both");
const accessToken = z.strictObject({
  name: z.string().min(1),
  token: headerText.min(SHORTEST_TOKEN, `must have at least ${SHORTEST_TOKEN} characters`),
  /** The project of the token. Absent: that of the configured keys. `*` (for approvals): all projects. */
  project: z.string().optional(),
  readOnly: z.boolean().default(false),
  folders: z.array(z.string().refine(isAbsolute, "must be an absolute path")).default([]),
  approves: z.boolean().default(false),
  /** Whether the token may call tools. Absent: it may, unless it may approve. */
  tools: z.boolean().optional(),
});
export const tokenEntry = accessToken.omit({ token: true });
const accessFile = z.strictObject({
  projects: z.record(z.string(), projectKeys).default({}),
  tokens: z.array(accessToken).default([]),
  requireOtherApprover: z.boolean().default(false),
});

export type ProjectKeys = Readonly<z.infer<typeof projectKeys>>;

export type AccessToken = Readonly<z.infer<typeof accessToken>>;

export type TokenEntry = Readonly<z.infer<typeof tokenEntry>>;

export interface Access {
  readonly projects: ReadonlyMap<string, ProjectKeys>;
  readonly tokens: readonly AccessToken[];
  readonly requireOtherApprover?: boolean;
  /** Set if the file was changed and is now unreadable or invalid. The server then refuses all callers. */
  readonly isUnreadable?: boolean;
}

export function callsTools({ approves, tools }: Pick<AccessToken, "approves" | "tools">): boolean {
  return tools ?? !approves;
}

/** Reads the access file. If that fails, throws a SettingsError, which contains no secrets. */
export function readAccess(file: string | undefined): Access {
  if (file === undefined) return { projects: new Map(), tokens: [] };
  const what = `the file ${file} (${SETTINGS.accessFile.variable})`;
  const refuse = (why: string) => new SettingsError(`${what} ${why}`, SETTINGS.accessFile.variable);
  const parsed = accessFile.safeParse(contentOf(file, refuse));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refuse(`is invalid at ${issue?.path.join(".") || "its beginning"}: ${issue?.message}`);
  }
  const { tokens, requireOtherApprover } = parsed.data;
  const projects = new Map(Object.entries(parsed.data.projects));
  for (const name of ["", ALL_PROJECTS]) {
    if (projects.has(name)) throw refuse(`has a project with the reserved name "${name}": give it another name`);
  }
  for (const { name, project, approves } of tokens) {
    if (project !== undefined && !projects.has(project) && !(approves && project === ALL_PROJECTS)) {
      throw refuse(`gives the token of ${name} the project ${project}, which is not in projects: add it there`);
    }
  }
  if (new Set(tokens.map(({ name }) => name)).size < tokens.length)
    throw refuse("has two tokens with the same name: rename one of them");
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length)
    throw refuse("has the same token under two names: replace one of them");
  return { projects, tokens, requireOtherApprover };
}

function contentOf(file: string, refuse: (why: string) => SettingsError): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    // The message of the JSON parser is not shown, because it quotes the file, which contains secrets.
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "it is not JSON";
    throw refuse(`cannot be read: ${reason}`);
  }
}

export function secretsIn({ projects, tokens }: Access): readonly string[] {
  const keys = [...projects.values()].flatMap(({ targetingApiKey, eventAppKey }) => [targetingApiKey, eventAppKey]);
  return [...keys, ...tokens.map(({ token }) => token)].filter((one) => one !== undefined);
}
