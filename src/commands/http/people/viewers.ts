import { createHash } from "node:crypto";
import type { Viewer } from "../../../page/runs/runs-page.ts";
import type { Shown } from "../../../page/runs/seen.ts";
import { isSame } from "../../../page/serve/guard.ts";
import { ownerOf, tokenFinder } from "../../../server/http/auth.ts";
import { ALL_PROJECTS, callsTools, type ProjectKeys } from "../../../settings/access.ts";
import type { Project, Projects } from "../projects.ts";
import { type ApproversOf, nameOf, placesOf, type RunOf } from "./approvers.ts";

/** Who may see the page over HTTP, and what they are shown. */
export interface Viewers {
  /** What a session is opened for with a token of the access file; the reason where it opens none. */
  login(token: string): { readonly who: string } | { readonly refused: 401 | 403; readonly message: string };
  /** The person of a session; undefined once their entry has left the access file, or approves no more. */
  viewerOf(who: string): (Omit<Viewer, "token"> & { readonly about: string }) | undefined;
}

/** Finds the people of the access file as it is now. */
export function viewers(of: ApproversOf & { readonly all: Projects }): Viewers {
  const { settings, access } = of;
  const shownTo = { one: shownOfOne(of), all: shownOfAll(of) };
  const { kind } = settings.environment;
  /** What a person is shown: `person` is their name, `caller` the one under which they call tools. */
  const viewer = ({ approves, ...its }: ShownApprover, person: string, caller: string, where?: string) => {
    const except = access().requireOtherApprover ? caller : undefined;
    const about = `${kind}, ${where ?? `project ${its.project.name}`}, ${person}`;
    return { who: person, shown: { ...its, approves: { ...approves, except } }, about };
  };
  return {
    login(token) {
      const entry = tokenFinder(access().tokens)(token);
      if (entry === undefined) return { refused: 401, message: "This token is not known." };
      if (entry.approves) return { who: `${nameOf(entry)}\n${digestOf(entry.token)}` };
      return { refused: 403, message: 'This token approves nothing: its entry does not say "approves": true.' };
    },
    viewerOf(who) {
      const { tokens, projects } = access();
      const [name = "", digest = ""] = who.split(/\n(?=[^\n]*$)/);
      if (name.startsWith("oauth:")) {
        const isKnown = digest === "" || projects.has(digest);
        if (settings.http.oauth?.clientId === undefined || !isKnown) return undefined;
        return viewer(shownTo.one(digest === "" ? undefined : digest), name.slice("oauth:".length), name);
      }
      const entry = tokens.find((one) => nameOf(one) === name && isSame(digestOf(one.token), digest));
      if (!entry?.approves) return undefined;
      const { project } = entry;
      const its = project === ALL_PROJECTS ? shownTo.all() : shownTo.one(project);
      const caller = callsTools(entry) ? ownerOf(name, projects.get(project ?? "")) : "";
      return viewer({ ...its, caller }, entry.name, name, project === ALL_PROJECTS ? "all projects" : undefined);
    },
  };
}

/** What a person is shown who decides. */
type ShownApprover = Shown & Required<Pick<Shown, "approves">>;

/** What is decided in one project: undefined is that of the configured keys. */
function shownOfOne(of: ApproversOf & { readonly all: Projects }) {
  const { settings, access, all } = of;
  const { ofKeys, ofRun } = placesOf(of);
  return (name: string | undefined): ShownApprover => {
    const keys = access().projects.get(name ?? "");
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
    const driver = (run: RunOf): Shown => {
      const [name, keys] = named().find(([, its]) => ofKeys(its) === ofRun(run)) ?? [];
      if (name !== undefined || keys !== undefined) return shownOf(all.of(keys), name);
      // Callers bring keys of their own, which only this process may have.
      const living = all.living().find(({ id }) => id === run.project && ofRun(run) === id);
      return living === undefined ? { ...base, project: { id: "", name: "" } } : shownOf(living, undefined);
    };
    return { ...base, approves: { of: driver } };
  };
}

function shownOf({ id, services, audit }: Project, name = id): Shown {
  return { services: { ...services, noteDecision: audit }, caller: "", project: { id, name } };
}

/** What tells in a cookie which token it was opened with, and not the token. */
function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
