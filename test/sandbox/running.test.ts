import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startSandbox } from "../../src/sandbox/index.ts";
import { listening } from "../support/stub-server.ts";
import { withSandbox } from "./service.ts";

test("the data file keeps the state across restarts", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandbox-"));
  const dataFile = join(folder, "state.json");
  let targeting = "";
  await withSandbox(
    async (service) => {
      targeting = await service.create("News", [{ name: "one", contexts: ["a"] }]);
      await expect.poll(() => readFile(dataFile, "utf8")).toContain(targeting);
    },
    { dataFile, keys: { managementKeys: [{ key: "given-secret" }] } },
  );
  expect(await readFile(dataFile, "utf8")).not.toContain("given-secret");
  await withSandbox(
    async (service) => {
      expect((await service.list(targeting)).items).toMatchObject([{ name: "one", contextCount: 1 }]);
    },
    { dataFile },
  );
  expect(await readdir(folder)).toEqual(["state.json"]);
});

test("an address to which nothing can be passed on is refused", async () => {
  for (const forward of ["", "example", "file:///tmp"]) {
    await expect(startSandbox({ forward })).rejects.toThrow(/cannot be forwarded to/);
  }
});

test("events are passed on, with the real answer given back and our own verdict kept", async () => {
  const received: string[] = [];
  const real = createServer((incoming, outgoing) => {
    let text = "";
    incoming.setEncoding("utf8");
    incoming.on("data", (chunk: string) => {
      text += chunk;
    });
    incoming.on("end", () => {
      received.push(`${incoming.method} ${incoming.url} ${incoming.headers.authorization} ${text}`);
      outgoing.writeHead(202).end('{"message":"ok","from":"real"}');
    });
  });
  const forward = `${await listening(real)}/base/`;
  try {
    await withSandbox(
      async (service) => {
        const reply = await service.event('{"uid": "u", "eventName": "unknown"}', "real-key");
        expect(reply).toMatchObject({ status: 202, body: { message: "ok", from: "real" } });
        expect((await service.control("GET", "/events")).body).toMatchObject({
          events: [{ verdict: "ignored", forwarded: { status: 202, message: "ok" } }],
        });
      },
      { forward },
    );
  } finally {
    real.close();
  }
  expect(received).toEqual(['POST /base/event real-key {"uid": "u", "eventName": "unknown"}']);
  await withSandbox(
    async (service) => {
      const reply = await service.event({ uid: "u", eventName: "app_open" });
      expect(reply).toMatchObject({ status: 502, body: { message: expect.stringMatching(/did not answer/) } });
      expect((await service.control("GET", "/events")).body).toMatchObject({ events: [{ verdict: "recorded" }] });
    },
    { forward },
  );
});

test("a sandbox that was let go does not keep its process alive", async () => {
  const script = `
    const { startSandbox } = await import("./src/sandbox/index.ts");
    const sandbox = await startSandbox();
    await (await fetch(sandbox.url)).text();
    sandbox.unref();
    await (await fetch(sandbox.url)).text();
    setTimeout(() => process.exit(1), 4000).unref();
  `;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], { stdio: "inherit" });
  expect(await once(child, "exit")).toEqual([0, null]);
});
