import { asLines, EVENT_PATH, emittedCases, emittedEnvironment, emittedHeader } from "./emit-frame.ts";
import type { EventSuite } from "./suite.ts";

/**
 * Writes a suite as a test file for vitest, which depends on nothing else. It compares answers: an ignored event is
 * answered like a recorded one, so only the sandbox can tell these two apart.
 * Sends to the sandbox at `sandboxUrl` unless its environment says otherwise.
 */
export function emitVitest(suite: EventSuite, sandboxUrl: string): string {
  const environment = emittedEnvironment(sandboxUrl);
  const { address, key } = environment;
  const header = emittedHeader(suite, environment, "Run it with: npx vitest run <this file>");
  return `${header.map((line) => `// ${line}\n`).join("")}import { describe, expect, it } from "vitest";

const baseUrl = (process.env.${address.variable} ?? ${JSON.stringify(address.fallback)}).replace(/\\/+$/, "");
const appKey = process.env.${key.variable} ?? ${JSON.stringify(key.fallback)};

const cases = [
${asLines(emittedCases(suite))}];

async function send(event) {
  const response = await fetch(baseUrl + ${JSON.stringify(EVENT_PATH)}, {
    method: "POST",
    headers: { authorization: appKey, "content-type": "application/json" },
    body: JSON.stringify(event),
  });
  const { message } = await response.json();
  return { statusCode: response.status, message };
}

describe("the event endpoint", () => {
  it.each(cases)("$id is $expected ($basis): $title", async ({ answer, events }) => {
    for (const event of events) expect(await send(event)).toMatchObject(answer);
  });
});
`;
}
