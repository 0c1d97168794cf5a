import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startSandbox } from "../../src/sandbox/index.ts";
import { listening } from "../support/stub-server.ts";
import { withSandbox } from "./service.ts";

/** A folder for one test. */
async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sandbox-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("the data file keeps the state across restarts", () =>
  withFolder(async (folder) => {
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
  }));

test("a data file that holds something else, or cannot be written, is refused by name", () =>
  withFolder(async (folder) => {
    const dataFile = join(folder, "state.json");
    for (const text of ["", "{", "[]", '{"version":7}']) {
      await writeFile(dataFile, text);
      await expect(startSandbox({ dataFile })).rejects.toThrow(/state\.json does not contain the state of a sandbox/);
      expect(await readFile(dataFile, "utf8")).toBe(text);
    }
    await expect(startSandbox({ dataFile: join(folder, "missing", "state.json") })).rejects.toThrow(/ENOENT/);
  }));

test("an address to which nothing can be passed on is refused", async () => {
  for (const forward of ["", "example", "file:///tmp"]) {
    await expect(startSandbox({ forward })).rejects.toThrow(/cannot be forwarded to/);
  }
});

test("a port that is taken is refused", () =>
  withSandbox(async (service) => {
    await expect(startSandbox({ port: Number(new URL(service.url).port) })).rejects.toThrow(/EADDRINUSE/);
  }));

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
      expect(reply).toMatchObject({ status: 502, body: { message: expect.stringMatching(/could not be reached/) } });
      expect((await service.control("GET", "/events")).body).toMatchObject({ events: [{ verdict: "recorded" }] });
    },
    { forward },
  );
});

test("a sandbox that was let go does not keep its process alive", async () => {
  const child = runScript(`
    const { startSandbox } = await import("./src/sandbox/index.ts");
    const sandbox = await startSandbox();
    await (await fetch(sandbox.url)).text();
    sandbox.unref();
    await (await fetch(sandbox.url)).text();
    setTimeout(() => process.exit(1), 4000).unref();
  `);
  expect(await once(child, "exit")).toEqual([0, null]);
});

test.skipIf(process.platform === "win32")("the command serves until it is told to stop, and says what it saw", () =>
  withFolder(async (folder) => {
    const data = join(folder, "state.json");
    const child = runScript(`
      const { runSandbox } = await import("./src/commands/sandbox-line.ts");
      await runSandbox({ host: "127.0.0.1", port: 0, data: ${JSON.stringify(data)} });
    `);
    let printed = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      printed += chunk;
    });
    await expect.poll(() => printed).toContain("/_sandbox/events");
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? "";
    for (const key of ["sandbox-key", "sandbox-read-key", "sandbox-app-key"]) expect(printed).toContain(key);
    for (const eventName of ["app_open", "sign_up", ""]) {
      await fetch(`${url}/event`, {
        method: "POST",
        headers: { Authorization: "sandbox-app-key" },
        body: JSON.stringify({ uid: "u", eventName }),
      });
    }
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(printed).toContain("events: 1 recorded, 1 ignored, 1 rejected\n");
    expect(await readFile(data, "utf8")).toContain('"version":1');
  }),
);

/** Runs a script of this project in a process of its own. */
function runScript(script: string): ChildProcess {
  return spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}
