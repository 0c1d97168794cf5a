import { expect, onTestFinished, test } from "vitest";
import { openHttp } from "../../src/api/http.ts";
import { keepingToLimits, managementOver } from "../../src/api/management.ts";
import { routesWith } from "../../src/spec/routes.ts";
import { startStub } from "../support/stub-server.ts";

const TARGETING = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const NOTHING = { count: 0, json: Buffer.from("[]") };

test("nothing is sent before the time that the service asked to wait for; reads and writes by themselves", async () => {
  let now = 1000;
  const { url, received } = await startStub(({ method }, count) =>
    count === 1
      ? { status: 429, text: "slow down", headers: { "retry-after": "30" } }
      : { status: 200, json: method === "GET" ? { _id: TARGETING, name: "a" } : { results: [] } },
  );
  const http = openHttp({ url, credential: {}, requestTimeoutMs: 20_000 });
  onTestFinished(() => http.close());
  const api = managementOver(
    keepingToLimits(http, () => now),
    routesWith({}),
  );
  const limited = (retryAfterMs: number) => ({ effect: "busy", statusCode: 429, retryAfterMs });

  await expect(api.bulk("addOptions", NOTHING)).rejects.toMatchObject(limited(30_000));
  now += 29_000;
  await expect(api.bulk("deleteOptions", NOTHING)).rejects.toMatchObject(limited(1000));
  await expect(api.getTargeting(TARGETING)).resolves.toMatchObject({ name: "a" });
  expect(received.map(({ method }) => method)).toEqual(["POST", "GET"]);
  now += 1000;
  await expect(api.bulk("addOptions", NOTHING)).resolves.toMatchObject({ results: [] });
});
