import {
  ADDRESS_VARIABLE,
  asLines,
  EVENT_PATH,
  emittedCases,
  emittedHeader,
  KEY,
  NO_SANDBOX,
  SANDBOX_ARGUMENTS,
} from "./emit-frame.ts";
import type { EventSuite } from "./suite.ts";

/** The module of a generated file that starts processes; this server does not load it. */
const PROCESSES = "node:child_process";

/**
 * Writes a suite as a test file for vitest, which depends on nothing else. It compares answers: an ignored event is
 * answered like a recorded one, so only the sandbox can tell these two apart.
 * It starts a sandbox of its own, unless its environment names a service.
 */
export function emitVitest(suite: EventSuite): string {
  const header = emittedHeader(suite, "Run it with: npx vitest run <this file>");
  return `${header.map((line) => `// ${line}\n`).join("")}import { spawn, spawnSync } from ${JSON.stringify(PROCESSES)};
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const appKey = process.env.${KEY.variable} || ${JSON.stringify(KEY.fallback)};
let service = { url: process.env.${ADDRESS_VARIABLE}, stop: () => {} };

beforeAll(async () => {
  if (!service.url) service = await startSandbox();
}, 300_000);

afterAll(() => service.stop());

const cases = [
${asLines(emittedCases(suite))}];

${START_SANDBOX}
async function send(event) {
  const response = await fetch(service.url.replace(/\\/+$/, "") + ${JSON.stringify(EVENT_PATH)}, {
    method: "POST",
    headers: { authorization: appKey, "content-type": "application/json" },
    body: JSON.stringify(event),
  });
  const { message } = await response.json();
  return { statusCode: response.status, message };
}

describe("the event endpoint", () => {
  it.each(cases)("$id is $expected ($basis): $title", async ({ answer, events }) => {
    const answers = [];
    for (const event of events) answers.push(await send(event));
    expect(answers).toMatchObject(events.map(() => answer));
  });
});
`;
}

/** Starts a sandbox through npx. npx runs it in a further process, so both are ended together. */
const START_SANDBOX = `function startSandbox() {
  const isWindows = process.platform === "win32";
  const sandbox = spawn("npx -y ${SANDBOX_ARGUMENTS}", {
    shell: true,
    detached: !isWindows,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = () => {
    if (isWindows) spawnSync("taskkill", ["/pid", String(sandbox.pid), "/t", "/f"]);
    else process.kill(-sandbox.pid);
  };
  return new Promise((resolve, reject) => {
    let printed = "";
    sandbox.stdout.on("data", (text) => {
      printed += text;
      const url = /^Sandbox .*: (http:\\S+)\\n/m.exec(printed)?.[1];
      if (url !== undefined) resolve({ url, stop });
    });
    sandbox.on("close", () => reject(new Error("${NO_SANDBOX}")));
  });
}
`;
