import { createHash } from "node:crypto";
import * as z from "zod";
import { ALL_PROJECTS, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { isSame } from "../web/page.ts";
import type { Viewer } from "../web/runs-page.ts";
import { type PageScope, shownEnvironment } from "../web/seen.ts";
import type { ShownEnvironment } from "../web/wire.ts";
import { type ApproversOf, keysOfProject, nameOf, placesOf, type RunOf } from "./access-now.ts";
import { claimedProject, ownerOf, tokenFinder } from "./auth.ts";
import type { Project, Projects } from "./projects.ts";

/** The maximum time between two checks of a person's rights, in milliseconds. */
export const CHECK_MS = 600_000;

/** The stored person of a session: how they logged in, and what is needed to check their rights again. */
export const personForm = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("token"), name: z.string(), digest: z.string() }),
  z.strictObject({
    by: z.literal("issuer"),
    issuer: z.string(),
    clientId: z.string(),
    /** The name of the project claim at the time of the login; absent if none was configured. */
    projectClaim: z.string().optional(),
    /** The caller name that the person has when they call tools. */
    name: z.string(),
    /** The value of the project claim; absent if no claim was configured. */
    project: z.string().optional(),
    /** The refresh token, which checks the person's rights again. Absent if the authorization server returned none. */
    refreshToken: z.string().optional(),
    /** When the rights must be checked again, in milliseconds since 1970. Absent if they cannot be checked. */
    checkAt: z.number().optional(),
  }),
]);

export type Person = Readonly<z.infer<typeof personForm>>;

export type IssuerPerson = Extract<Person, { readonly by: "issuer" }>;

/** The people who may use the page over HTTP, with the runs that each of them sees. */
export interface Viewers {
  /** Returns the owner of a token of the access file, or the reason why the token cannot log in. */
  login(token: string): { readonly person: Person } | { readonly refused: 401 | 403; readonly message: string };
  /**
   * Returns what a person sees. Returns undefined if the access file no longer lets them approve, or if the settings of
   * the authorization server have changed since the login.
   */
  viewerOf(person: Person): (Viewer & { readonly environment: ShownEnvironment }) | undefined;
}

/** Finds people in the current access file. */
export function approverSessions(of: ApproversOf & { readonly all: Projects }): Viewers {
  const { settings, access } = of;
  const shownTo = { one: viewOfProject(of), all: viewOfAllProjects(of) };
  /**
   * `who` is the name on the page, `caller` the name when the person calls tools, `where` the project that they see.
   */
  const viewer = ({ approves, ...its }: ShownApprover, who: string, caller: string, where?: string) => {
    const except = access().requireOtherApprover ? caller : undefined;
    const environment = { ...shownEnvironment(its.services, its.project), ...(where && { project: where }), who };
    return { who, shown: { ...its, approves: { ...approves, except } }, environment };
  };
  const viewerOfIssuer = (person: IssuerPerson) => {
    const { issuer, clientId, projectClaim } = settings.http.oauth ?? {};
    const isOfThis = person.issuer === issuer && person.clientId === clientId && person.projectClaim === projectClaim;
    const isClaimed = (person.project === undefined) === (projectClaim === undefined);
    const its = claimedProject(person.project, access().projects);
    if (!isOfThis || !isClaimed || its === undefined) return undefined;
    return viewer(shownTo.one(person.project), person.name.replace(/^oauth:/, ""), person.name);
  };
  return {
    login(token) {
      const entry = tokenFinder(access().tokens)(token);
      if (entry === undefined)
        return { refused: 401, message: "This token is unknown. Check it, or ask the administrator of this server." };
      if (entry.approves) return { person: { by: "token", name: entry.name, digest: digestOf(entry.token) } };
      return {
        refused: 403,
        message: 'This token may not approve changes. Its entry in the access file needs "approves": true.',
      };
    },
    viewerOf(person) {
      if (access().isUnreadable) return undefined;
      if (person.by === "issuer") return viewerOfIssuer(person);
      const { tokens, projects } = access();
      const entry = tokens.find(({ name, token }) => name === person.name && isSame(digestOf(token), person.digest));
      if (!entry?.approves) return undefined;
      const { project } = entry;
      const name = nameOf(entry);
      const its = project === ALL_PROJECTS ? shownTo.all() : shownTo.one(project);
      const caller = callsTools(entry) ? ownerOf(name, keysOfProject(project, projects)) : "";
      return viewer({ ...its, caller }, entry.name, name, project === ALL_PROJECTS ? "all projects" : undefined);
    },
  };
}

type ShownApprover = PageScope & Required<Pick<PageScope, "approves">>;

/** Returns the page scope of one project. Undefined is the project of the configured keys. */
function viewOfProject(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  return (name: string | undefined): ShownApprover => {
    const keys = keysOfProject(name, access().projects);
    const its = shownOf(all.of(keys), name ?? settings.project.name);
    return { ...its, approves: { of: (run) => (ofRun(run) === ofKeys(keys) ? its : undefined) } };
  };
}

/** A placeholder for projects whose keys only callers have. With it, stored runs can be read. It is never sent. */
const NO_KEY: ProjectKeys = { targetingApiKey: "no-key-of-any-project" };

/** Returns the page scope of all projects. A run uses the keys of its project if this process has them. */
function viewOfAllProjects(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  const named = (): readonly (readonly [string | undefined, ProjectKeys | undefined])[] => [
    [settings.project.name, undefined],
    ...access().projects,
  ];
  return (): ShownApprover => {
    const every = named().map(([name, keys]) => shownOf(all.of(keys), name));
    const base = every.find(({ services }) => services.changes) ?? shownOf(all.of(NO_KEY), undefined);
    const driver = (run: RunOf): PageScope => {
      const [name, keys] = named().find(([, its]) => ofKeys(its) === ofRun(run)) ?? [];
      if (name !== undefined || keys !== undefined) return shownOf(all.of(keys), name);
      // Only callers have the keys of such a project. They are here if the caller used this process recently.
      const living = all.living().find(({ id }) => id === run.project && ofRun(run) === id);
      return living === undefined ? { ...base, project: { id: "", name: "" } } : shownOf(living, undefined);
    };
    return { ...base, approves: { of: driver } };
  };
}

function shownOf({ id, services, audit }: Project, name = id): PageScope {
  return { services: { ...services, noteDecision: audit }, caller: "", project: { id, name } };
}

/** Returns a digest that identifies a token without containing it. */
function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
