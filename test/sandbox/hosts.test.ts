import { request } from "node:http";
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { startSandbox } from "../../src/sandbox/index.ts";
import { type SandboxService, withSandbox } from "./service.ts";

// A web page can point its own host name at this machine (DNS rebinding). Its requests then have that name as `Host`,
// and writes have it as `Origin`. The sandbox's keys are public, so only these headers show where a request comes from.

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Returns the status of a request with headers that fetch does not allow. */
function statusOf(url: string, { method = "GET", path, headers, body }: Sent): Promise<number> {
  return new Promise((resolve, reject) => {
    const keys = { "x-api-key": "sandbox-key", authorization: "sandbox-app-key", "content-type": "application/json" };
    const sent = request(url + path, { method, headers: { ...keys, ...headers } }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const CREATE = { method: "POST", path: "/context-targeting/bulk/create", body: { items: [{ name: "Written" }] } };
const EVENT = { method: "POST", path: "/event", body: { uid: "u", eventName: "app_open" } };

async function contents(service: SandboxService) {
  return (await service.control("GET", "")).body;
}

test.each(["evil.example", "127.0.0.1.evil.example:4010", "localhost.evil.example", "my-evil-box", "evil.local"])(
  "a name that only leads here, %j: nothing is read, written or sent",
  (host) =>
    withSandbox(async (service) => {
      const before = await contents(service);
      const origin = `http://${host}`;
      for (const headers of [{ host }, { host, origin }, { host, origin: "http://localhost" }]) {
        expect(await statusOf(service.url, { ...CREATE, headers })).toBe(403);
        expect(await statusOf(service.url, { ...EVENT, headers })).toBe(403);
        expect(await statusOf(service.url, { path: "/context-targeting/01ARZ3NDEKTSV4RRFFQ69G5FAV", headers })).toBe(
          403,
        );
        expect(await statusOf(service.url, { path: "/nowhere", headers })).toBe(403);
        expect(await statusOf(service.url, { method: "OPTIONS", path: "/event", headers })).toBe(403);
      }
      expect(await contents(service)).toEqual(before);
    }),
);

test("this machine's names, and addresses, which no page can take, are served", () =>
  withSandbox(async (service) => {
    // Android emulators reach the machine on which they run as 10.0.2.2.
    for (const host of [
      ...["localhost:4010", "127.0.0.1", "[::1]:4010", "shop.localhost", "10.0.2.2:4010", "192.168.1.7"],
    ]) {
      expect(await statusOf(service.url, { ...EVENT, headers: { host } }), host).toBe(200);
      const origin = `http://${host}`;
      expect(await statusOf(service.url, { ...CREATE, headers: { host, origin } }), host).toBe(200);
      await service.control("POST", "/reset", { only: ["state"] });
    }
  }));

test("a page of any site may send events, as the app under test does, but change nothing else", () =>
  withSandbox(async (service) => {
    const host = "127.0.0.1:4010";
    for (const origin of ["https://staging.shop.example", "http://localhost:3000", "null"]) {
      expect(await statusOf(service.url, { ...EVENT, headers: { host, origin } }), origin).toBe(200);
    }
    const before = await contents(service);
    for (const origin of [
      "https://evil.example",
      "null",
      "http://localhost.evil.example",
      "http://localhost/x",
      "ftp://localhost",
    ]) {
      expect(await statusOf(service.url, { ...CREATE, headers: { host, origin } }), origin).toBe(403);
    }
    expect(await contents(service)).toEqual(before);
  }));

test("a name that is listed is served, as Host and as Origin", () =>
  withSandbox(
    async (service) => {
      const headers = { host: "Sandbox.Team.example:4010", origin: "https://sandbox.team.example" };
      expect(await statusOf(service.url, { ...CREATE, headers })).toBe(200);
      expect(await statusOf(service.url, { path: "/_sandbox", headers })).toBe(403);
    },
    { allowedHosts: ["sandbox.team.example"] },
  ));

/** An address of this machine in the network, which is not a loopback address. */
const [address] = Object.values(networkInterfaces()).flatMap((all) =>
  (all ?? []).flatMap(({ address, family, internal }) => (family === "IPv4" && !internal ? [address] : [])),
);

describe.skipIf(address === undefined)("served to a network", () => {
  test("whoever comes from there gets the APIs, and never the control plane, whatever their Host says", async () => {
    const sandbox = await startSandbox({ host: "0.0.0.0" });
    try {
      const url = `http://${address}:${sandbox.port}`;
      for (const host of [`${address}:${sandbox.port}`, "localhost", "127.0.0.1", "[::1]:4010", "sandbox:4010"]) {
        for (const path of ["/_sandbox", "/_sandbox/state", "/_sandbox/events"]) {
          expect(await statusOf(url, { path, headers: { host } }), `${host} ${path}`).toBe(403);
        }
        expect(await statusOf(url, { method: "DELETE", path: "/_sandbox/faults", headers: { host } }), host).toBe(403);
        expect(await statusOf(url, { ...EVENT, headers: { host } }), host).toBe(200);
      }
      expect(await statusOf(url, { ...EVENT, headers: { host: "evil.example" } })).toBe(403);
      const near = `http://127.0.0.1:${sandbox.port}`;
      expect(await statusOf(near, { path: "/_sandbox", headers: { host: "localhost" } })).toBe(200);
    } finally {
      await sandbox.close();
    }
  });
});
