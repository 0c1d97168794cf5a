import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stopSignals } from "../../src/runtime/terminal.ts";
import { COMMAND, startNode } from "../support/server-process.ts";

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
