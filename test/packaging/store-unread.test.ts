import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { startHttp } from "../support/http-server.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";

/** Words of the PostgreSQL driver, its protocol and our tables. A file with one of them belongs to the store. */
const OF_THE_STORE = /SCRAM-SHA-256|targeting_mcp\.run|pg-pool/;
const storeFiles = readdirSync(fileAt("dist")).filter(
  (name) => name.endsWith(".js") && OF_THE_STORE.test(readFileSync(fileAt(`dist/${name}`), "utf8")),
);
const coverage = z.object({ result: z.array(z.object({ url: z.string() })) });

/** Returns the files of dist/ that a process has loaded, according to V8's coverage data. */
function loaded(folder: string): readonly string[] {
  const told = readdirSync(folder).map((name) => coverage.parse(JSON.parse(readFileSync(join(folder, name), "utf8"))));
  return told
    .flatMap(({ result }) => result.map(({ url }) => url.split("/dist/")[1] ?? ""))
    .filter((one) => one !== "");
}

test("without the setting not a byte of the store is read, whatever is called", async () => {
  expect(storeFiles.length).toBeGreaterThan(0);
  const [ofStdio, ofHttp, ofDoctor] = [1, 2, 3].map(() => mkdtempSync(join(tmpdir(), "targeting-mcp-loaded-")));
  const server = startCommand([], { NODE_V8_COVERAGE: ofStdio ?? "" });
  for (const message of OPENING) server.send(message);
  const calls = [
    toolCall(1, "create_targetings", { items: [{ name: "Spring" }] }),
    toolCall(2, "get_run", {}),
    toolCall(3, "track_event", { uid: "u", eventName: "app_open" }),
  ];
  for (const [at, message] of calls.entries()) {
    server.send(message);
    await server.answer(at + 1);
  }
  server.child.stdin.end();
  await server.exited;
  const http = await startHttp({ NODE_V8_COVERAGE: ofHttp ?? "" });
  const gone = new Promise((resolve) => http.child.on("close", resolve));
  http.child.kill("SIGTERM");
  await gone;
  await startCommand(["doctor"], { NODE_V8_COVERAGE: ofDoctor ?? "" }).exited;
  for (const folder of [ofStdio, ofHttp, ofDoctor]) {
    const files = loaded(folder ?? "");
    expect(files).toContain("main.js");
    expect(files.filter((name) => storeFiles.includes(name))).toEqual([]);
  }
});
