import type { Settings } from "../settings/settings.ts";
import { type DecisionPage, once, type ToolServices } from "../tools/define-tool.ts";
import { localCaller, localUserName, mayOpenBrowser } from "../web/browser.ts";
import type { LinkedPage } from "../web/linked-page.ts";
import type { ServerProcess } from "./connect.ts";

/** If the opened page is not shown within this many milliseconds, approval is requested in another way. */
const COMES_WITHIN_MS = 15_000;

/** Adds the web page to a server over stdio, so that the user of this machine can approve changes there. */
export function withPage(
  { services, audit, log }: ServerProcess,
  { page, store }: Settings,
  environment: Parts["environment"],
): ToolServices {
  const { project } = services;
  const serve = async (): Promise<LinkedPage> => {
    // Imported only when needed, because most servers never open the page.
    const [{ localPage }, { shownEnvironment }] = await Promise.all([
      import("./local-page.ts"),
      import("../web/seen.ts"),
    ]);
    const shown = shownEnvironment(services, project);
    return localPage({ services: all, caller: localCaller({ store }), project }, { log, environment: shown });
  };
  const all: ToolServices = {
    ...services,
    person: localUserName(environment),
    noteDecision: audit,
    page: decisionPage({ page, serve, environment }),
  };
  return all;
}

interface Parts {
  readonly page: "auto" | "on" | "off";
  readonly serve: () => Promise<LinkedPage>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Creates the page on which a person decides: one browser tab for all runs. It is not opened twice while it loads. */
export function decisionPage({ page, serve, environment }: Parts): DecisionPage {
  const serving = once(serve);
  const shownRuns = new Set<string>();
  let opening: Promise<boolean> | undefined;
  const openOnce = (local: LinkedPage): Promise<boolean> => {
    if (opening !== undefined) return opening;
    const link = `${local.link()}#/approvals`;
    const mine = import("../web/open-browser.ts").then(({ openBrowser }) => openBrowser(link, environment));
    opening = mine;
    const finish = (): void => {
      if (opening === mine) opening = undefined;
    };
    void local.someoneWithin(local.linkMs).then(finish);
    void mine.then((isOpen) => isOpen || finish());
    return mine;
  };
  return {
    isOffered: once(() => mayOpenBrowser(page, environment)),
    async show({ runId }) {
      const local = await serving();
      if (local.open() > 0) return true;
      const coming = local.someoneWithin(COMES_WITHIN_MS);
      if (shownRuns.has(runId)) return coming;
      shownRuns.add(runId);
      return (await openOnce(local)) && coming;
    },
  };
}
