import { describe, expect, test } from "vitest";
import { CLIENTS } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { type Received, startStub } from "../support/stub-server.ts";
import { checkedReport } from "../support/writing.ts";

/**
 * By how many milliseconds the header `Date` is ahead of the clock that the service uses for IDs; null: no such header.
 */
const OFFSETS = [2000, 500, 5000, -2000, null] as const;

/**
 * Starts the built command behind a gateway that writes the header `Date` by its own clock. For the writes with these
 * numbers (the first is 1), the gateway loses the answer after the service has applied the write.
 */
async function throughGateway(aheadMs: number | null, lostWrites: readonly number[]) {
  const sandbox = await startService();
  let writes = 0;
  const gateway = await startStub((request) => (response) => {
    if (request.method !== "GET") writes += 1;
    const isLost = request.method !== "GET" && lostWrites.includes(writes);
    passedOn(sandbox.url, request)
      .then(({ status, text }) => {
        if (isLost) {
          response.destroy();
          return;
        }
        response.sendDate = false;
        const date = aheadMs === null ? {} : { date: new Date(Date.now() + aheadMs).toUTCString() };
        response.writeHead(status, { "content-type": "application/json", ...date }).end(text);
      })
      .catch(() => response.destroy());
  });
  const env = cleanEnvironment({
    TARGETING_API_URL: gateway.url,
    TARGETING_API_KEY: "sandbox-key",
    TARGETING_MCP_MODE: "live",
  });
  const client = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
  return {
    sandbox,
    write: async (name: string, args: Record<string, unknown>) => checkedReport(await client.callTool(name, args)),
  };
}

async function passedOn(service: string, { url, method, headers, body }: Received) {
  const answer = await fetch(`${service}${url}`, {
    method,
    headers: { "x-api-key": String(headers["x-api-key"] ?? ""), "content-type": "application/json" },
    ...(method === "GET" ? {} : { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

describe.each(OFFSETS)("the header Date is %s ms ahead of the clock inside IDs", (aheadMs) => {
  test("the first write of a process, its answer lost: what it made is reported as made", async () => {
    const { sandbox, write } = await throughGateway(aheadMs, [1]);
    const targetingId = await sandbox.targeting("News");
    const items = Array.from({ length: 500 }, (_, at) => ({ name: `Option ${at}`, contexts: [`article-${at}`] }));
    const { counts } = await write("bulk_add_options", { targetingId, items });
    expect(counts).toMatchObject({ items: 500, succeeded: 500 });
  });

  test("and where nothing proves whose it is, it is unknown, and never failed", async () => {
    const { write } = await throughGateway(aheadMs, [1]);
    const [first, ...others] = Array.from({ length: 20 }, (_, at) => ({ name: `Targeting ${at}` }));
    const items = [{ ...first, options: [{ name: "Inner" }] }, ...others];
    const { counts, failures, nextSteps } = await write("create_targetings", { items });
    expect(counts).toMatchObject({ items: 21, unknown: 21, failed: 0 });
    // The existing object has the name of the targeting. The option inside that targeting has another name.
    expect(failures).toMatchObject([
      { errorCode: "OWNER_UNCLEAR", count: 20, message: expect.stringContaining("an object with this name") },
      {
        errorCode: "OWNER_UNCLEAR",
        count: 1,
        message: expect.stringContaining("an object with the name of this item, or of an object inside it"),
      },
    ]);
    // Resuming the run could not find out more, so it is not suggested.
    expect(nextSteps).toEqual([]);
  });
});
