import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stopSignals } from "../../src/runtime/terminal.ts";
import { COMMAND, startNode } from "../support/server-process.ts";
import { shop } from "./shop.ts";

test("a closed console window counts on Windows; elsewhere nohup is respected", () => {
  expect(stopSignals("win32")).toEqual(["SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP"]);
  expect(stopSignals("linux")).toEqual(["SIGTERM", "SIGINT"]);
});

test("an interrupt that comes twice, as through npx, still ends well", async () => {
  const data = join(mkdtempSync(join(tmpdir(), "targeting-mcp-stop-")), "state.json");
  const command = startNode([COMMAND, "sandbox", "--port", "0", "--data", data]);
  await expect.poll(() => command.lines.join()).toContain("http://127.0.0.1:");
  for (let time = 0; time < 3; time += 1) command.child.kill("SIGINT");
  expect(await command.exited).toEqual({ code: 0, signal: null });
  expect(JSON.parse(readFileSync(data, "utf8"))).toHaveProperty("projects");
});

test("the sandbox goes on when the program that read its address closes the pipe", async () => {
  const command = startNode([COMMAND, "sandbox", "--port", "0"]);
  await expect.poll(() => command.lines.join()).toContain("/_sandbox/events");
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(command.lines.join()) ?? [];
  command.child.stdout.destroy();
  // Each of these requests prints a line into the closed pipe.
  for (let time = 0; time < 3; time += 1) expect((await fetch(`${url}/missing`)).status).toBe(404);
  expect((await fetch(`${url}/_sandbox/events`)).status).toBe(200);
  command.child.kill("SIGINT");
  expect(await command.exited).toEqual({ code: 0, signal: null });
});

test("an export that is piped into head ends without an error", async () => {
  const { settings, seed, targeting } = await shop();
  await seed({ options: Array.from({ length: 3000 }, (_, at) => ({ targeting, name: `Option number ${at}` })) });
  const command = startNode([COMMAND, "export", targeting], settings);
  command.child.stdout.once("data", () => command.child.stdout.destroy());
  expect(await command.exited).toEqual({ code: 0, signal: null });
  expect(command.stderr()).not.toContain("EPIPE");
});
