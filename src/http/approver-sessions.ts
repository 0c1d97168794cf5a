import { createHash } from "node:crypto";
import * as z from "zod";
import { ALL_PROJECTS, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { isSame } from "../web/answers.ts";
import type { Viewer } from "../web/runs-page.ts";
import { type PageScope, shownEnvironment } from "../web/seen.ts";
import type { ShownEnvironment } from "../web/wire.ts";
import { type ApproversOf, keysOfProject, nameOf, placesOf, type RunOf } from "./approvers.ts";
import { claimedProject, ownerOf, tokenFinder } from "./auth.ts";
import type { Project, Projects } from "./projects.ts";

/** How a person came in, as their session holds it: what it takes to look again at what they may do. */
export const personForm = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("token"), name: z.string(), digest: z.string() }),
  z.strictObject({
    by: z.literal("issuer"),
    issuer: z.string(),
    clientId: z.string(),
    /** The setting that names the claim; absent: there was none. */
    projectClaim: z.string().optional(),
    /** As what they call tools. */
    name: z.string(),
    /** What the project claim held; absent where none is set, and only there. */
    project: z.string().optional(),
    /** With which the issuer is asked again; absent: it gave none. */
    refreshToken: z.string().optional(),
    /** When the issuer has to be asked again; absent: it cannot be asked. */
    checkAt: z.number().optional(),
  }),
]);

/** A person who logged in. */
export type Person = Readonly<z.infer<typeof personForm>>;

/** A person who logged in through the issuer. */
export type IssuerPerson = Extract<Person, { readonly by: "issuer" }>;

/** Who may see the page over HTTP, and what they are shown. */
export interface Viewers {
  /** Who holds a token of the access file; the reason where it opens no session. */
  login(token: string): { readonly person: Person } | { readonly refused: 401 | 403; readonly message: string };
  /**
   * What a person is shown; undefined once their entry has left the access file or approves no more, or the settings of
   * the issuer are others than those by which they came in.
   */
  viewerOf(person: Person): (Viewer & { readonly environment: ShownEnvironment }) | undefined;
}

/** Finds the people of the access file as it is now. */
export function approverSessions(of: ApproversOf & { readonly all: Projects }): Viewers {
  const { settings, access } = of;
  const shownTo = { one: shownOfOne(of), all: shownOfAll(of) };
  /** What a person is shown: `who` is their name, `caller` the one under which they call tools. */
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
      if (entry === undefined) return { refused: 401, message: "This token is not known." };
      if (entry.approves) return { person: { by: "token", name: entry.name, digest: digestOf(entry.token) } };
      return { refused: 403, message: 'This token approves nothing: its entry does not say "approves": true.' };
    },
    viewerOf(person) {
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

/** What a person is shown who decides. */
type ShownApprover = PageScope & Required<Pick<PageScope, "approves">>;

/** What is decided in one project: undefined is that of the configured keys. */
function shownOfOne(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  return (name: string | undefined): ShownApprover => {
    const keys = keysOfProject(name, access().projects);
    const its = shownOf(all.of(keys), name ?? settings.project.name);
    return { ...its, approves: { of: (run) => (ofRun(run) === ofKeys(keys) ? its : undefined) } };
  };
}

/** Where callers bring all keys, runs are read without one: nothing is ever sent with this. */
const NO_KEY: ProjectKeys = { targetingApiKey: "no-key-of-any-project" };

/** What is decided in all projects, each with the keys that this process has of it. */
function shownOfAll(of: ApproversOf & { readonly all: Projects }) {
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
      // Callers bring keys of their own, which only this process may have.
      const living = all.living().find(({ id }) => id === run.project && ofRun(run) === id);
      return living === undefined ? { ...base, project: { id: "", name: "" } } : shownOf(living, undefined);
    };
    return { ...base, approves: { of: driver } };
  };
}

function shownOf({ id, services, audit }: Project, name = id): PageScope {
  return { services: { ...services, noteDecision: audit }, caller: "", project: { id, name } };
}

/** What tells in a session which token it was opened with, and not the token. */
function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
