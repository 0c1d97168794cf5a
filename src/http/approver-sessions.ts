import * as z from "zod";
import { ALL_PROJECTS, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { isSame, RefusedRequest } from "../web/page.ts";
import type { Viewer } from "../web/runs-page.ts";
import { type PageScope, shownEnvironment } from "../web/seen.ts";
import type { ShownEnvironment } from "../web/wire.ts";
import {
  type ApproversOf,
  keysOfProject,
  nameOf,
  type Project,
  type Projects,
  placesOf,
  type RunOf,
  undefinedIfUnusable,
} from "./access-now.ts";
import { claimedProject, digestOf, ownerOf, tokenFinder } from "./auth.ts";

export const CHECK_MS = 600_000;

export const personForm = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("token"), name: z.string(), digest: z.string() }),
  z.strictObject({
    by: z.literal("issuer"),
    issuer: z.string(),
    clientId: z.string(),
    projectClaim: z.string().optional(),
    name: z.string(),
    project: z.string().optional(),
    refreshToken: z.string().optional(),
    /** When the rights must be checked again, in ms since 1970. Absent without a refresh token: the check needs it. */
    checkAt: z.number().optional(),
  }),
]);

export type Person = Readonly<z.infer<typeof personForm>>;

export type IssuerPerson = Extract<Person, { readonly by: "issuer" }>;

export interface Viewers {
  /** Returns whether the access file cannot be read now. Nobody is let in then, but sessions do not end. */
  isUnreadable(): boolean;
  login(token: string): { readonly person: Person } | { readonly refused: 401 | 403; readonly message: string };
  /**
   * Returns what a person may see. Undefined if they may not approve (any more), or OAuth settings changed. Throws a
   * RefusedRequest if this server cannot use the keys of the person's project.
   */
  viewerOf(person: Person): (Viewer & { readonly environment: ShownEnvironment }) | undefined;
}

export function approverSessions(of: ApproversOf & { readonly all: Projects }): Viewers {
  const { settings, access } = of;
  const shownTo = { one: viewOfProject(of), all: viewOfAllProjects(of) };
  /**
   * Returns what a person sees on the page. `who` is the name that the page shows. `caller` is the person's name in
   * tool calls. It is needed to keep people from approving their own changes, if that is forbidden. `where` names the
   * project.
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
    isUnreadable: () => access().isUnreadable === true,
    login(token) {
      const entry = tokenFinder(access().tokens)(token);
      if (entry === undefined)
        return { refused: 401, message: "This token is unknown. Check it, or ask the administrator of this server." };
      if (entry.approves) return { person: { by: "token", name: entry.name, digest: tokenDigest(entry.token) } };
      return {
        refused: 403,
        message: 'This token may not approve changes. Its entry in the access file needs "approves": true.',
      };
    },
    viewerOf(person) {
      if (access().isUnreadable) return undefined;
      if (person.by === "issuer") return viewerOfIssuer(person);
      const { tokens, projects } = access();
      const entry = tokens.find(({ name, token }) => name === person.name && isSame(tokenDigest(token), person.digest));
      if (!entry?.approves) return undefined;
      const { project } = entry;
      const name = nameOf(entry);
      const its = project === ALL_PROJECTS ? shownTo.all() : shownTo.one(project);
      const caller = callsTools(entry) ? ownerOf(name, keysOfProject(project, projects)) : "";
      return viewer({ ...its, caller }, entry.name, name, project === ALL_PROJECTS ? "all projects" : undefined);
    },
  };
}

const NO_ADDRESS =
  "This server has no address of the API for which your project has a key. Ask the administrator of this server.";

type ShownApprover = PageScope & Required<Pick<PageScope, "approves">>;

function viewOfProject(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  return (name: string | undefined): ShownApprover => {
    const keys = keysOfProject(name, access().projects);
    const usable = undefinedIfUnusable(() => all.of(keys));
    if (usable === undefined) throw new RefusedRequest(403, NO_ADDRESS);
    const its = shownOf(usable, name ?? settings.project.name);
    return { ...its, approves: { of: (run) => (ofRun(run) === ofKeys(keys) ? its : undefined) } };
  };
}

/** Keys for reading stored runs of projects whose keys this process does not know. They are never sent in a request. */
const NO_KEY: ProjectKeys = { targetingApiKey: "no-key-of-any-project" };

function viewOfAllProjects(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  const named = (): readonly (readonly [string | undefined, ProjectKeys | undefined])[] => [
    [settings.project.name, undefined],
    ...access().projects,
  ];
  return (): ShownApprover => {
    const every = named().flatMap(([name, keys]) => {
      const its = undefinedIfUnusable(() => all.of(keys));
      return its === undefined ? [] : [shownOf(its, name)];
    });
    const other = () => shownOf(undefinedIfUnusable(() => all.of(NO_KEY)) ?? all.of(undefined), undefined);
    const base = every.find(({ services }) => services.changes) ?? other();
    const driver = (run: RunOf): PageScope => {
      const [name, keys] = named().find(([, its]) => ofKeys(its) === ofRun(run)) ?? [];
      if (name !== undefined || keys !== undefined) return shownOf(all.of(keys), name);
      // This project is not configured. The process has its keys only if a caller has used them recently.
      const living = all.living().find(({ id }) => id === run.project && ofRun(run) === id);
      return living === undefined ? { ...base, project: { id: "", name: "" } } : shownOf(living, undefined);
    };
    return { ...base, approves: { of: driver } };
  };
}

function shownOf({ id, services, audit }: Project, name = id): PageScope {
  return { services: { ...services, noteDecision: audit }, caller: "", project: { id, name } };
}

const tokenDigest = (token: string): string => digestOf(token).toString("base64url");
