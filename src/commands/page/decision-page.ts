import type { Log } from "../../server/log.ts";
import type { Settings } from "../../settings/settings.ts";
import type { DecisionPage, ToolServices } from "../../tools/context.ts";
import type { Connected } from "../connecting/connect.ts";
import { ownCaller } from "../connecting/own-caller.ts";
import { mayOpen, openBrowser } from "./browser.ts";
import type { LocalPage } from "./local-page.ts";
import { personHere } from "./person.ts";

/** How long a person has to come to a page that was opened for them. */
const COMES_WITHIN_MS = 15_000;

/** The services of a server over stdio, with the page on which its person decides. */
export function withPage(
  { services, audit, log }: Connected,
  { page, project: { id, name = id }, store }: Settings,
  environment: Parts["environment"],
): ToolServices {
  const project = { id, name };
  const all: ToolServices = {
    ...services,
    person: personHere(environment),
    noteDecision: audit,
    page: decisionPage({ page, services: () => all, caller: ownCaller({ store }), project, environment, log }),
  };
  return all;
}

/** What the page of a server over stdio is made of. */
interface Parts {
  readonly page: "auto" | "on" | "off";
  readonly services: () => ToolServices;
  /** Whose runs are shown. */
  readonly caller: string;
  readonly project: { readonly id: string; readonly name: string };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** The page of a server over stdio: it is served from the first run that has to be decided on, and loaded then. */
function decisionPage({ page, services, caller, project, environment, log }: Parts): DecisionPage {
  let serving: Promise<LocalPage> | undefined;
  const shownRuns = new Set<string>();
  const served = (): Promise<LocalPage> => {
    serving ??= import("./local-page.ts").then(({ localPage }) => {
      const shown = { services: services(), caller, project };
      return localPage(shown, { log, about: `${shown.services.environment}, project ${project.name}` });
    });
    return serving;
  };
  let isOffered: boolean | undefined;
  return {
    isOffered() {
      isOffered ??= mayOpen(page, environment);
      return isOffered;
    },
    async show(runId) {
      const local = await served();
      if (local.open() > 0) return true;
      if (shownRuns.has(runId)) return local.someoneWithin(COMES_WITHIN_MS);
      shownRuns.add(runId);
      const coming = local.someoneWithin(COMES_WITHIN_MS);
      return (await openBrowser(local.link(), environment)) && coming;
    },
  };
}
