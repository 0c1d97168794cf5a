import { randomBytes } from "node:crypto";
import * as z from "zod";
import { type Approval, approvalLines, approvalOf, effectText } from "../answers/approvals.ts";
import { renderAnswer } from "../answers/budget.ts";
import { quoteShort } from "../answers/fence.ts";
import { confirmationStep, confirmationText } from "../answers/run-report.ts";
import { liveTestsEffect, suiteReportAnswer } from "../answers/suite-reports.ts";
import { isApproval } from "../changes/approvals.ts";
import { BASIS_WORDS } from "../events/catalogue.ts";
import { observerOf } from "../events/run/verdicts.ts";
import { junitXml, runSuite } from "../events/suites/run-suite.ts";
import type { SuiteReport } from "../events/suites/suite.ts";
import { type EventSuite, eventSuite } from "../events/suites/suite.ts";
import type { KeptSuite } from "../events/suites/suite-store.ts";
import { validateEvent } from "../events/validate.ts";
import { findFile, findFreePlace, type Place } from "../files/folders.ts";
import { saveFile } from "../files/save-file.ts";
import { textOf } from "../files/text.ts";
import { FileError } from "../platform/files.ts";
import { bytesAt } from "../platform/held-folder.ts";
import { capitalized } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import type { Asked } from "../runs/outcome.ts";
import { ulidOfBytes } from "../spec/names-and-contexts.ts";
import { eventsOf, testBenchOf } from "./apis.ts";
import { readableDirs } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError, type ToolOutcome } from "./define-tool.ts";
import { reportRun } from "./run-reports.ts";
import { askFor, checkCounts, confirmationIn } from "./write/confirmation-token.ts";
import { confirmationArgument } from "./write/confirmed.ts";
import { personOf, readQuestion } from "./write/decide.ts";
import { decidedWork } from "./write/on-page.ts";
import { waitWithinCall } from "./write/within-call.ts";

const input = () =>
  z.strictObject({
    suiteId: z.string().optional().describe("From generate_event_tests"),
    suite: z.looseObject({}).optional().describe("Or the suite itself"),
    file: z.string().optional().describe("Or a file with it, in an allowed folder"),
    target: z
      .enum(["sandbox", "configured"])
      .default("sandbox")
      .describe("configured: the event API of the settings; if it is live, test purchases count as conversions"),
    saveTo: z.string().optional().describe("File to create in an allowed folder: the report as JUnit XML"),
    ...confirmationArgument(),
  });

type RunTestsInput = z.output<ReturnType<typeof input>>;

export const runEventTestsTool = {
  name: "run_event_tests",
  title: "Run event tests",
  description:
    "Runs a suite of event tests and compares expected with actual results. A live service answers ok to dropped events too, so drops cannot be seen there. A person is asked before live tests.",
  toolset: "events",
  effect: "tests",
  idempotent: false,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      suiteId: z.string().optional(),
      target: z.string().optional(),
      cases: z.number().optional(),
      matched: z.number().optional(),
      mismatched: z.number().optional(),
      unobservable: z.number().optional(),
      mismatches: z.array(z.looseObject({})).optional(),
      resourceUri: z.string().optional(),
      savedTo: z.string().optional(),
    }),
  handler: runTests,
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

async function runTests(given: RunTestsInput, context: ToolContext): Promise<ToolOutcome> {
  if (given.confirmation !== undefined) return confirmed(given.confirmation, given, context);
  const kept = await suiteOf(given, context);
  const { reply, suites } = context;
  const isRepeated = reply !== undefined && (await suites.wasRun(reply.token));
  const place = isRepeated ? undefined : await placeOf(given.saveTo, context);
  if (given.target === "configured" && context.environment === "live") {
    return runLive(kept, { saveTo: given.saveTo, place }, context);
  }
  return answerOf({ kept, target: given.target, place }, await reportOf(kept, given.target, context), context);
}

async function suiteOf({ suite, suiteId, file }: RunTestsInput, context: ToolContext): Promise<KeptSuite> {
  const { suites, caller } = context;
  if ([suite, suiteId, file].filter((one) => one !== undefined).length !== 1) {
    throw new ToolError(
      "exactly one of suite, suiteId and file must be given",
      "Give one of them. generate_event_tests returns a suiteId.",
    );
  }
  if (suite !== undefined) return suites.keep(caller, readSuite(suite, "suite"), "json");
  if (file !== undefined)
    return suites.keep(caller, readSuite(await jsonIn(file, await readableDirs(context)), "the file"), "json");
  const kept = await suites.find(caller, suiteId ?? "");
  if (kept !== undefined) return kept;
  throw new ToolError(
    "there is no suite with this ID; it may have expired",
    "Call generate_event_tests again with the same seed.",
  );
}

const PROBLEMS_SHOWN = 3;
const LONGEST_FILE = 64 * 1_048_576;

async function jsonIn(file: string, allowedDirs: readonly string[]): Promise<unknown> {
  const bytes = bytesAt(await findFile(file, allowedDirs));
  let text = "";
  for await (const piece of textOf(bytes, "utf-8")) {
    text += piece;
    if (text.length > LONGEST_FILE)
      throw new ToolError("the file is too long for a suite", "Give a file with fewer test cases.");
  }
  if (text.trim() === "") throw new ToolError("the file is empty", "Give a file that contains a suite.");
  try {
    return JSON.parse(text);
  } catch {
    throw new ToolError("the file is not JSON", "Give a file that generate_event_tests saved with format json.");
  }
}

async function placeOf(saveTo: string | undefined, { allowedDirs }: ToolContext): Promise<Place | undefined> {
  return saveTo ? findFreePlace(saveTo, allowedDirs) : undefined;
}

function readSuite(given: unknown, what: string): EventSuite {
  const read = eventSuite.safeParse(given);
  if (read.success) {
    if (read.data.cases.length === 0)
      throw new ToolError(`${what} has no cases`, "Give a suite with at least one case.");
    refuseRepeatedIds(read.data, what);
    return read.data;
  }
  const problems = read.error.issues
    .slice(0, PROBLEMS_SHOWN)
    .map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ToolError(
    `${what} does not have the form of a suite (${problems.join("; ")})`,
    `Give a suite of this form, as generate_event_tests makes it with format json: ${SUITE_FORM}. Or give its suiteId.`,
  );
}

function refuseRepeatedIds({ cases }: EventSuite, what: string): void {
  const first = new Map<string, number>();
  for (const [index, { id }] of cases.entries()) {
    const earlier = first.get(id);
    if (earlier !== undefined) {
      throw new ToolError(
        `two cases of ${what} have the same id, ${quoteShort(id)} (cases.${earlier} and cases.${index})`,
        "Give each case an id of its own, because the report names cases by their id.",
      );
    }
    first.set(id, index);
  }
}

const SUITE_FORM =
  '{"seed":1,"uid":"event-tests-1","cases":[{"id":"1","title":"a purchase","kind":"minimal",' +
  '"expected":"recorded","basis":"documented","body":{"uid":"event-tests-1","eventName":"purchase","tx_id":"T1"}}]} ' +
  '(kind "sequence" has "events":[…] instead of "body"; "expected" holds for each of them)';

async function runLive(
  kept: KeptSuite,
  { saveTo, place }: { readonly saveTo: string | undefined; readonly place: Place | undefined },
  context: ToolContext,
): Promise<ToolOutcome> {
  refuseReadOnly(context);
  const { suiteId } = kept;
  const effect = liveTestsEffect(kept.suite);
  const yes = readQuestion(context.reply?.token ?? "")?.digest ?? randomBytes(16).toString("base64url");
  return decidedWork(
    {
      call: { tool: "run_event_tests", input: { about: suiteId, saveTo: saveTo ?? "" } },
      name: suiteId,
      effect,
      needsApproval: true,
      digest: yes,
      start: async (asked) =>
        context.confirm === "off"
          ? answerOf({ kept, target: "configured", place, asked }, await reportOf(kept, "configured", context), context)
          : runOnce(yes, { kept, place, asked }, context),
      after: (approval) => reportApprovedTests(approval, { kept, place }, context),
      declined: (approval, note) => notRun(kept, approval, note, context),
      async token(hints) {
        // The tests are stored under this ID. So the call with the confirmation token needs no other arguments.
        const run = ulidOfBytes(randomBytes(16));
        await context.suites.keepPlanned(context.caller, run, { suiteId, saveTo: saveTo ?? "" });
        const confirmation = await askFor({ run, digest: LIVE_TESTS }, effectText(effect), context);
        const step = confirmationStep("run_event_tests", confirmation);
        const notes = hints.length > 0 ? hints : undefined;
        return renderAnswer(
          { ...about(kept, context), status: "needs_confirmation", confirmation, notes, nextSteps: [step] },
          ["Approval required; nothing was sent.", ...hints, confirmationText(confirmation), `Next: ${step}`],
        );
      },
    },
    context,
  );
}

async function reportApprovedTests(
  approval: Run,
  { kept, place }: Pick<Reported, "kept" | "place">,
  context: ToolContext,
): Promise<ToolAnswer> {
  await waitWithinCall(approval.rest, context);
  if (approval.status() !== "succeeded") return reportRun(approval, context);
  const found = await context.suites.runOnce(approval.header.runId, () => reportOf(kept, "configured", context));
  const facts = isApproval(approval) ? approvalOf(approval.state.facts) : undefined;
  const picked = { ...about(kept, context), report: found, approval: facts };
  return suiteReportAnswer({ ...picked, ...(place !== undefined && { savedTo: place.path }) });
}

/** Runs the tests that a person approved on the page. `yes`: the ID of the run that waited for the approval. */
export async function runApprovedTests(
  yes: string,
  { suiteId, saveTo }: { readonly suiteId: string; readonly saveTo: string },
  context: ToolContext,
): Promise<void> {
  const kept = await context.suites.find(context.caller, suiteId);
  if (kept === undefined) throw new ToolError("the planned tests are no longer stored", "Make the call again.");
  const place = await placeOf(saveTo, context);
  const report = await context.suites.runOnce(yes, () => reportOf(kept, "configured", context));
  if (place !== undefined) await saveFile(place, [junitXml(report, `event tests ${suiteId}`)]);
}

/** The digest in the confirmation tokens for all event tests. The run ID in a token identifies the tests. */
const LIVE_TESTS = "live tests";

async function confirmed(token: string, given: RunTestsInput, context: ToolContext): Promise<ToolAnswer> {
  refuseReadOnly(context);
  const { suites, caller } = context;
  const confirmation = await confirmationIn(token, context);
  const planned = confirmation.isFor(LIVE_TESTS) ? await suites.planned(caller, confirmation.run) : undefined;
  const kept = planned && (await suites.find(caller, planned.suiteId));
  if (kept === undefined)
    throw new ToolError("the planned tests are no longer stored", "Call again without confirmation.");
  const saveTo = planned?.saveTo ?? "";
  const isGiven = given.suite !== undefined || given.suiteId !== undefined || given.file !== undefined;
  const isOther = isGiven && (await suiteOf(given, context)).suiteId !== kept.suiteId;
  const isElsewhere = given.saveTo !== undefined && given.saveTo !== saveTo;
  if (isOther || isElsewhere) {
    throw new ToolError(
      "the arguments given with confirmation differ from the planned ones",
      "Give confirmation alone.",
    );
  }
  const asked = "agreed_by_token";
  if (await suites.wasRun(confirmation.run)) {
    return runOnce(confirmation.run, { kept, place: undefined, asked }, context);
  }
  checkCounts(confirmation, context);
  return runOnce(confirmation.run, { kept, place: await placeOf(saveTo, context), asked }, context);
}

function refuseReadOnly({ readOnly }: ToolContext): void {
  if (!readOnly) return;
  throw new ToolError(
    "test events would be recorded by the live service, and this server only reads (TARGETING_MCP_READ_ONLY)",
    'Run them against the sandbox: target "sandbox".',
  );
}

async function runOnce(
  yes: string,
  picked: Pick<Reported, "kept" | "place" | "asked">,
  context: ToolContext,
): Promise<ToolAnswer> {
  const report = await context.suites.runOnce(yes, () => reportOf(picked.kept, "configured", context));
  return answerOf({ ...picked, target: "configured" }, report, context);
}

interface Reported {
  readonly kept: KeptSuite;
  readonly target: RunTestsInput["target"];
  readonly place: Place | undefined;
  readonly asked?: Asked;
}

async function answerOf(
  { kept, target, place, asked }: Reported,
  report: SuiteReport,
  context: ToolContext,
): Promise<ToolAnswer> {
  const facts = asked === "not_needed" ? { asked } : asked && { asked, decided: personOf(context) };
  // Beside a live service, the tests run in a sandbox of their own, and not in the one that inspect_events reads.
  const isShown = context.sandbox !== undefined && context.environment === "sandbox";
  const shownBefore = isShown ? new Date(context.clock.now() + 1).toISOString() : undefined;
  const run = { ...about(kept, context), target, report, approval: facts && approvalOf(facts), shownBefore };
  if (place === undefined) return suiteReportAnswer(run);
  try {
    await saveFile(place, [junitXml(report, `event tests ${kept.suiteId}`)]);
    return suiteReportAnswer({ ...run, savedTo: place.path });
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    return suiteReportAnswer({ ...run, notSaved: thrown.message });
  }
}

async function reportOf(kept: KeptSuite, target: RunTestsInput["target"], context: ToolContext): Promise<SuiteReport> {
  const { environment, suites, caller, clock } = context;
  const isLive = target === "configured" && environment === "live";
  const bench = isLive ? { events: eventsOf(context) } : testBenchOf(context);
  const late = new AbortController();
  const running = runSuite(kept.suite, {
    api: bench.events,
    clock,
    explain: findingOf,
    observe: "sandbox" in bench ? observerOf(bench.sandbox) : undefined,
    signal: AbortSignal.any([context.signal, context.stopping, late.signal]),
    onProgress: (done, cases) => context.progress?.(done, cases, undefined),
  });
  // Tests run only during the call. When the call must be answered, the remaining tests are not run.
  await waitWithinCall(running, context);
  late.abort();
  return suites.keepReport(caller, kept, await running);
}

/** Returns the broken rule that decides an event's verdict, and how to fix the event. Undefined if there is none. */
function findingOf(event: unknown): string | undefined {
  const found = validateEvent(event).findings.find(({ severity }) => severity === "verdict");
  return found && `${found.message} (${BASIS_WORDS[found.basis]}, event-tracking-api ${found.section}); ${found.fix}`;
}

function notRun(
  kept: KeptSuite,
  approval: Approval | undefined,
  note: string | undefined,
  context: ToolContext,
): ToolAnswer {
  const words = "it was declined: nothing was sent; do not try again unless the person asks for it";
  const notes = note === undefined ? [words] : [words, note];
  return renderAnswer({ ...about(kept, context), status: "cancelled", approval, notes }, [
    ...approvalLines(approval),
    ...notes.map((one) => `${capitalized(one)}.`),
  ]);
}

function about({ suiteId }: KeptSuite, { environment }: ToolContext) {
  return { environment, suiteId, target: "configured" };
}
