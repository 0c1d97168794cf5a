import { callerName, type RunHeader } from "../runs/store.ts";
import { type Access, type AccessToken, ALL_PROJECTS, type ProjectKeys } from "../settings/access-file.ts";
import type { Settings } from "../settings/settings.ts";
import { ownerOf } from "./auth.ts";
import type { Projects } from "./projects.ts";

/** What is needed to find approvers. */
export interface ApproversOf {
  readonly settings: Settings;
  /** The current access file. */
  readonly access: () => Access;
  readonly all: Pick<Projects, "idOf">;
}

/** What determines the project of a run. The caller is its owner, as in its header. */
export type RunOf = Pick<RunHeader, "project" | "caller">;

/** Which runs belong to which keys. A sandbox is one project for all keys, so there the keys themselves decide. */
export function placesOf({ settings: { environment }, all }: Pick<ApproversOf, "settings" | "all">) {
  const isSandbox = environment.kind === "sandbox";
  return {
    ofKeys: (keys: ProjectKeys | undefined): string => (isSandbox ? ownerOf("", keys) : all.idOf(keys)),
    ofRun({ caller, project }: RunOf): string {
      if (!isSandbox) return project;
      return caller.startsWith("key:") ? caller : caller.slice(0, -callerName(caller).length);
    },
  };
}

/** Whether a person can approve what a caller requests. */
export function hasApprover(of: ApproversOf, { name, ...run }: RunOf & { readonly name: string }): boolean {
  const { tokens, projects, requireOtherApprover } = of.access();
  const { ofKeys, ofRun } = placesOf(of);
  const { clientId, projectClaim } = of.settings.http.oauth ?? {};
  const ofIssuer = clientId === undefined ? [] : projectClaim === undefined ? [undefined] : [...projects.values()];
  if (ofIssuer.some((keys) => ofKeys(keys) === ofRun(run))) return true;
  return tokens.some((entry) => {
    if (!entry.approves || (requireOtherApprover && name === nameOf(entry))) return false;
    return entry.project === ALL_PROJECTS || ofKeys(keysOfProject(entry.project, projects)) === ofRun(run);
  });
}

/** The keys of a project in the access file; undefined means the configured keys, which have no name there. */
export function keysOfProject(name: string | undefined, projects: Access["projects"]): ProjectKeys | undefined {
  return name === undefined ? undefined : projects.get(name);
}

/** The name under which the holder of a token calls tools. */
export function nameOf({ name }: Pick<AccessToken, "name">): string {
  return `token:${name}`;
}
