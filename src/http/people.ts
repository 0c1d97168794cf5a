import { openHttp } from "../api/http.ts";
import type { Log } from "../observe/log.ts";
import type { EndedSessions } from "../runs/backend.ts";
import { decisionPage } from "../runtime/decision-page.ts";
import type { Access } from "../settings/access-file.ts";
import { proxyFor } from "../settings/environment.ts";
import type { Settings } from "../settings/settings.ts";
import { type DecisionPage, once, type ToolServices } from "../tools/define-tool.ts";
import { localUserName } from "../web/browser.ts";
import { type ApproversOf, hasApprover, type Project, type Projects } from "./access-now.ts";
import type { Caller } from "./auth.ts";

const NOBODY_APPROVES =
  "Nobody can approve this here. Use a client that can ask (elicitation), or add an entry to TARGETING_MCP_ACCESS_FILE " +
  'with "approves": true for this project, or set TARGETING_MCP_CONFIRM=ask (docs/guides/run-for-a-team.md).';

interface PeopleParts {
  readonly settings: Settings;
  readonly access: () => Access;
  readonly all: Projects;
  readonly asksWho: boolean;
  /** Returns the address of the server. Known only after the server has started to listen. */
  readonly address: () => string;
  readonly key: () => Promise<Uint8Array>;
  readonly endedSessions: EndedSessions;
  readonly stopping: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const PAGE_PATHS = /^\/(?:$|page\/|open\/|login(?:\/|$)|callback$)/;

/** Creates the page for approvals. Without authentication, the user of this machine approves without a login. */
export function people(parts: PeopleParts) {
  const { settings, asksWho } = parts;
  const { serve, pageFor, personOf } = asksWho ? approversWithLogin(parts) : localApprover(parts);
  return {
    /** Returns the page on which a caller's changes are approved, and the name that people see for the caller. */
    servicesFor: (caller: CallerOfPage, project: Project): Pick<ToolServices, "page" | "person"> => ({
      page: pageFor(caller, project),
      person: personOf(caller.name),
    }),
    /** Answers a request for the web page. Undefined for all other requests, and if the page is off. */
    async serve(request: Request, peer: string): Promise<Response | undefined> {
      if (settings.page === "off" || !PAGE_PATHS.test(new URL(request.url).pathname)) return undefined;
      return serve(request, peer);
    },
  };
}

type CallerOfPage = Pick<Caller, "name" | "owner" | "keys">;

interface ApproverAccess {
  readonly serve: (request: Request, peer: string) => Promise<Response>;
  readonly pageFor: (caller: CallerOfPage, project: Project) => DecisionPage;
  readonly personOf: (caller: string) => string;
}

function approversWithLogin(parts: PeopleParts): ApproverAccess {
  const { settings, access, all, address, key, endedSessions, stopping } = parts;
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
  const callWebhook = webhookCaller(settings, log);
  return {
    serve: async (request, peer) => (await page())(request, peer),
    pageFor: ({ name, owner, keys }, { id }) => ({
      isOffered: () => settings.page !== "off" && hasApprover(of, { name, caller: owner, project: id }),
      needsOther: () => access().requireOtherApprover === true,
      async show(run) {
        const [named] = [...access().projects].find(([, its]) => its === keys) ?? [];
        callWebhook({ ...run, project: named ?? (keys ? id : (settings.project.name ?? id)), url: address() });
        return true;
      },
      address,
      remedy: NOBODY_APPROVES,
    }),
    personOf: (caller) => caller.replace(/^(?:token|oauth|client):/, ""),
  };
}

function localApprover({ settings, all, address, stopping, environment }: PeopleParts): ApproverAccess {
  const { services, audit } = all.of(undefined);
  const { project } = services;
  const person = localUserName(environment);
  const linked = once(async () => {
    const [{ linkedPage }, { shownEnvironment }] = await Promise.all([
      import("../web/linked-page.ts"),
      import("../web/seen.ts"),
    ]);
    const shown = { services: { ...services, person, noteDecision: audit }, caller: "local", project };
    return linkedPage(shown, {
      address: address(),
      signal: stopping,
      environment: shownEnvironment(services, project),
    });
  });
  const page = { ...decisionPage({ page: settings.page, serve: linked, environment }), remedy: NOBODY_APPROVES };
  return {
    serve: async (request) => (await linked()).serve(request),
    pageFor: () => page,
    personOf: (caller) => caller,
  };
}

const WEBHOOK_MS = 10_000;
const MAX_REMEMBERED_RUNS = 1000;

/** Calls the webhook, if any, for each run that the page asks a person about, normally once. Failures are logged, not retried. */
function webhookCaller({ http: { approvalWebhook: address }, proxies }: Settings, log: Log) {
  const notified = new Set<string>();
  return (run: Readonly<Record<"runId" | "tool" | "project" | "url", string>>): void => {
    if (address === undefined || notified.has(run.runId)) return;
    if (notified.size >= MAX_REMEMBERED_RUNS) notified.clear();
    notified.add(run.runId);
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
        if (statusCode >= 300) log.warn("the webhook for approvals answered with an error", { status: statusCode });
      })
      .finally(() => http.close())
      .catch((error: unknown) => log.warn("the webhook for approvals could not be called", { error }));
  };
}
