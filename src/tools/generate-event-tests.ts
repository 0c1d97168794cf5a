import * as z from "zod";
import { basisNote, suiteUri } from "../answers/event-suites.ts";
import { pageTestNote, previewOf, suiteText } from "../answers/suite-reports.ts";
import { contentsOf, emitSuite, type SuiteFormat } from "../events/suites/emit.ts";
import { generateEventTests, SEQUENCE_EVENTS } from "../events/suites/generate.ts";
import { CASE_KINDS, MAX_SEED } from "../events/suites/suite.ts";
import { findFreePlace } from "../files/folders.ts";
import { saveFile } from "../files/save-file.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { emittedUrl } from "./apis.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";

const FORMATS: readonly SuiteFormat[] = ["json", "vitest", "playwright", "curl"];

const SEQUENCE_WORDS = `name all of its events in eventNames (${SEQUENCE_EVENTS.map((names) => names.join(", ")).join("; or ")})`;

const input = () =>
  z.strictObject({
    eventNames: z.array(z.string()).min(1).optional().describe("Default: all"),
    kinds: z.array(z.enum(CASE_KINDS)).min(1).optional().describe("Default: all"),
    uid: z.string().min(1).max(EVENT_LIMITS.stringLength.value).optional().describe("uid of the test events"),
    seed: z.int().min(0).max(MAX_SEED).optional().describe("The same seed gives the same tests"),
    format: z
      .enum(FORMATS)
      .default("json")
      .describe(
        "json: a suite for run_event_tests; vitest, curl: tests of the service; playwright: a test of your page",
      ),
    saveTo: z.string().optional().describe("File to create in an allowed folder, in this format"),
  });

export const generateEventTestsTool = {
  name: "generate_event_tests",
  title: "Generate event tests",
  description:
    "Generates test cases from the API's rules: valid events, missing and wrong parameters, limits, misspelt names, sequences, with expected results; or playwright, vitest, curl tests. Sends nothing.",
  toolset: "events",
  effect: "local",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      suiteId: z.string().optional(),
      resourceUri: z.string().optional(),
      cases: z.number().optional(),
      byKind: z.looseObject({}).optional(),
      byVerdict: z.looseObject({}).optional(),
      byBasis: z.looseObject({}).optional(),
      target: z.string().optional(),
      savedTo: z.string().optional(),
      note: z.string().optional(),
      notes: z.array(z.string()).optional(),
      preview: z.string().optional(),
    }),
  async handler({ format, saveTo, ...choice }, context) {
    const { environment, suites, caller, allowedDirs } = context;
    const suite = generateEventTests(choice);
    if (suite.cases.length === 0) {
      throw new ToolError("no test case matches these arguments", `To include a sequence, ${SEQUENCE_WORDS}.`);
    }
    const place = saveTo ? await findFreePlace(saveTo, allowedDirs) : undefined;
    const { suiteId } = await suites.keep(caller, suite, format);
    const target = await emittedUrl(format, context);
    const text = await emitSuite(suite, format, target);
    if (place !== undefined) await saveFile(place, [text]);
    const isWithoutSequence =
      choice.kinds?.includes("sequence") === true && !suite.cases.some(({ kind }) => kind === "sequence");
    const notes = [
      ...(isWithoutSequence ? [`There is no test of kind sequence: to include one, ${SEQUENCE_WORDS}`] : []),
      ...basisNote(suite.cases.map(({ basis }) => basis)),
    ];
    const facts = {
      suiteId,
      resourceUri: suiteUri(suiteId),
      format,
      seed: suite.seed,
      ...contentsOf(suite, format),
      ...(notes.length > 0 && { notes }),
      ...(format === "playwright" && { target, note: pageTestNote(suite.cases.length) }),
      ...(place !== undefined && { savedTo: place.path }),
      preview: previewOf(text),
    };
    return { structured: { environment, ...facts }, text: suiteText(facts), isError: false };
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
