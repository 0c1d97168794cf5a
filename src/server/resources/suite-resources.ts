import { suiteReportUri, suiteUri } from "../../render/event-suites.ts";
import { suitesLike } from "../prompts/completion.ts";
import type { ResourceDefinition } from "./definition.ts";

const JUNIT = "application/xml";

/** What writes suites. Only reading one loads it, so that starting stays fast. */
const emitting = () => import("../../events/suites/emit.ts");

/** Suites of event tests, and the reports on them: each seen only by the caller who made it. */
export const SUITE_RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "event-test-suite",
    title: "Suite of event tests",
    description: "A suite of event tests, in the form that was asked for.",
    uriTemplate: suiteUri("{suiteId}"),
    complete: { suiteId: suitesLike },
    async read({ suiteId = "" }, context) {
      const kept = await context.suites.find(context.caller, suiteId);
      if (kept === undefined) return undefined;
      const [{ emitSuite, SUITE_FORMATS }, { emittedUrl }] = await Promise.all([
        emitting(),
        import("../../tools/apis.ts"),
      ]);
      const { suite, format } = kept;
      const text = await emitSuite(suite, format, await emittedUrl(format, context));
      return { mimeType: SUITE_FORMATS[format].mimeType, text };
    },
    async list({ suites, caller }) {
      const { SUITE_FORMATS } = await emitting();
      return (await suites.list(caller)).map(({ suiteId, suite, format }) => ({
        uri: suiteUri(suiteId),
        name: `${suite.cases.length} event tests (${SUITE_FORMATS[format].fileName})`,
        mimeType: SUITE_FORMATS[format].mimeType,
      }));
    },
  },
  {
    name: "event-test-report",
    title: "Report of event tests",
    description: "What the last run of a suite of event tests gave, case by case, as JUnit XML.",
    uriTemplate: suiteReportUri("{suiteId}"),
    complete: { suiteId: suitesLike },
    async read({ suiteId = "" }, { suites, caller }) {
      const report = (await suites.find(caller, suiteId))?.report;
      if (report === undefined) return undefined;
      const { junitXml } = await import("../../events/suites/junit.ts");
      return { mimeType: JUNIT, text: junitXml(report, `event tests ${suiteId}`) };
    },
    async list({ suites, caller }) {
      const run = (await suites.list(caller)).filter(({ report }) => report !== undefined);
      return run.map(({ suiteId }) => ({
        uri: suiteReportUri(suiteId),
        name: `Report of the event tests ${suiteId}`,
        mimeType: JUNIT,
      }));
    },
  },
];
