import type { EventSuite } from "../events/suites/suite.ts";
import type { CoverageRow, TestFormat } from "./sandbox-wire.ts";

/** A file of tests. */
interface TestFile {
  readonly fileName: string;
  readonly text: string;
}

/** Whether a text is the name of a format of tests. */
export function isTestFormat(format: string): format is TestFormat {
  return ["vitest", "playwright", "curl", "json"].includes(format);
}

/**
 * Generates tests for what has not arrived: all cases of the events that never came, and the whole event where a
 * parameter never did. Undefined where everything arrived. `sandboxUrl` is where a page under test sends its events.
 */
export async function testsForUnseen(
  coverage: readonly CoverageRow[],
  format: TestFormat,
  sandboxUrl: string,
): Promise<TestFile | undefined> {
  const never = coverage.filter(({ count }) => count === 0).map(({ name }) => name);
  const partly = coverage
    .filter(({ count, parameters }) => count > 0 && parameters.some((parameter) => parameter.count === 0))
    .map(({ name }) => name);
  if (never.length + partly.length === 0) return undefined;
  // Loaded late: few pages are asked for tests.
  const [{ generateEventTests }, { emitSuite, SUITE_FORMATS }] = await Promise.all([
    import("../events/suites/generate.ts"),
    import("../events/suites/emit.ts"),
  ]);
  const whole = generateEventTests({ eventNames: never });
  const full = generateEventTests({ eventNames: partly, kinds: ["full"] });
  const suite: EventSuite = { ...whole, cases: [...whole.cases, ...full.cases] };
  return { fileName: SUITE_FORMATS[format].fileName, text: await emitSuite(suite, format, sandboxUrl) };
}
