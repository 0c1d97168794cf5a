import { NOBODY_APPROVES } from "../answers/approvals.ts";
import { openHttp } from "../api/http.ts";
import type { Log } from "../observe/log.ts";
import type { EndedSessions } from "../runs/backend.ts";
import { decisionPage } from "../runtime/decision-page.ts";
import type { Access } from "../settings/access-file.ts";
import { proxyFor } from "../settings/environment.ts";
import type { Settings } from "../settings/settings.ts";
import type { DecisionPage, ToolServices } from "../tools/context.ts";
import { once } from "../tools/define-tool.ts";
import { personHere } from "../web/browser.ts";
import { type ApproversOf, hasApprover } from "./approvers.ts";
import type { Caller } from "./auth.ts";
import type { Project, Projects } from "./projects.ts";

/** The people who decide over HTTP. */
export interface People {
  /** How what a caller asks for is decided, and how they are called. */
  servicesFor(caller: Pick<Caller, "name" | "owner" | "keys">, project: Project): Pick<ToolServices, "page" | "person">;
  /** Answers a request of a peer for the page; undefined where it is for something else, or there is no page. */
  serve(request: Request, peer: string): Promise<Response | undefined>;
}

/** What people are reached with. */
interface PeopleParts {
  readonly settings: Settings;
  /** The access file as it is now. */
  readonly access: () => Access;
  readonly all: Projects;
  /** Whether callers have to say who they are. */
  readonly asksWho: boolean;
  /** The address of the server as people see it, once it listens. */
  readonly address: () => string;
  /** Gives the key that seals sessions. */
  readonly key: () => Promise<Uint8Array>;
  /** The sessions that any process with this key has ended. */
  readonly endedSessions: EndedSessions;
  readonly stopping: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const PAGE_PATHS = /^\/(?:$|page\/|open\/|login(?:\/|$)|callback$)/;

/** People who log in, or, where callers are not asked who they are, the person of this machine. */
export function people(parts: PeopleParts): People {
  const { settings, asksWho } = parts;
  const { serve, pageFor, personOf } = asksWho ? approversWithLogin(parts) : localApprover(parts);
  return {
    servicesFor: (caller, project) => ({ page: pageFor(caller, project), person: personOf(caller.name) }),
    async serve(request, peer) {
      if (settings.page === "off" || !PAGE_PATHS.test(new URL(request.url).pathname)) return undefined;
      return serve(request, peer);
    },
  };
}

/** One of the two ways in. */
interface ApproverAccess {
  readonly serve: (request: Request, peer: string) => Promise<Response>;
  readonly pageFor: (caller: Pick<Caller, "name" | "owner" | "keys">, project: Project) => DecisionPage;
  readonly personOf: (caller: string) => string;
}

function approversWithLogin({
  settings,
  access,
  all,
  address,
  key,
  endedSessions,
  stopping,
}: PeopleParts): ApproverAccess {
  const { log } = all.of(undefined);
  const of: ApproversOf = { settings, access, all };
  const page = once(async () => {
    const [{ approversPage }, { approverSessions }] = await Promise.all([
      import("./approvers-page.ts"),
      import("./approver-sessions.ts"),
    ]);
    return approversPage({
      viewers: approverSessions({ ...of, all }),
      address: address(),
      key: await key(),
      shared: endedSessions,
      log,
      stopping,
      settings,
    });
  });
  const told = toldRuns(settings, log);
  return {
    serve: async (request, peer) => (await page())(request, peer),
    pageFor: ({ name, owner, keys }, { id }) => ({
      isOffered: () => settings.page !== "off" && hasApprover(of, { name, caller: owner, project: id }),
      needsOther: () => access().requireOtherApprover === true,
      async show(run) {
        const [named] = [...access().projects].find(([, its]) => its === keys) ?? [];
        told({ ...run, project: named ?? (keys ? id : (settings.project.name ?? id)), url: address() });
        return true;
      },
      address,
      remedy: NOBODY_APPROVES,
    }),
    personOf: (caller) => caller.replace(/^(?:token|oauth|client):/, ""),
  };
}

/** The page is opened in the browser of this machine's person, as over stdio. */
function localApprover({ settings, all, address, stopping, environment }: PeopleParts): ApproverAccess {
  const { services, audit } = all.of(undefined);
  const { project } = services;
  const person = personHere(environment);
  const linked = once(async () => {
    const [{ linkedPage }, { shownEnvironment }] = await Promise.all([
      import("../web/linked-page.ts"),
      import("../web/seen.ts"),
    ]);
    const shown = { services: { ...services, person, noteDecision: audit }, caller: "local", project };
    return linkedPage(shown, {
      ...{ address: address(), signal: stopping },
      environment: shownEnvironment(services, project),
    });
  });
  const page = { ...decisionPage({ page: settings.page, serve: linked, environment }), remedy: NOBODY_APPROVES };
  return { serve: async (request) => (await linked()).serve(request), pageFor: () => page, personOf: () => person };
}

const WEBHOOK_MS = 10_000;
/** The most runs that are remembered as told of. */
const MOST_TOLD = 1000;

/** Tells the webhook of each waiting run once; what goes wrong with that is only logged. */
function toldRuns({ http: { approvalWebhook: address }, proxies }: Settings, log: Log) {
  const told = new Set<string>();
  return (run: Readonly<Record<"runId" | "tool" | "project" | "url", string>>): void => {
    if (address === undefined || told.has(run.runId)) return;
    if (told.size >= MOST_TOLD) told.clear();
    told.add(run.runId);
    const http = openHttp({
      url: new URL(address).origin,
      credential: {},
      requestTimeoutMs: WEBHOOK_MS,
      proxy: proxyFor(address, proxies),
    });
    const { pathname, search } = new URL(address);
    http
      .send({ operation: "webhook", method: "POST", path: pathname + search, body: JSON.stringify(run) })
      .then(({ statusCode }) => {
        if (statusCode >= 300) log.warn("the webhook for approvals refused", { status: statusCode });
      })
      .finally(() => http.close())
      .catch((error: unknown) => log.warn("the webhook for approvals could not be called", { error }));
  };
}
