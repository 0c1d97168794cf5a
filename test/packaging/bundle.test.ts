import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { unzipSync } from "fflate";
import { beforeAll, expect, test } from "vitest";
import { bundleContents } from "../../scripts/packaging/bundle-contents.ts";
import { OPENING, startNode, toolCall } from "../support/server-process.ts";
import { mcpbManifest } from "./schemas.ts";

let folder: string;
let manifest: ReturnType<typeof mcpbManifest.parse>;

/** Unpacks the bundle into a folder without any node_modules above it. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "targeting-mcp-bundle-"));
  for (const [path, content] of Object.entries(unzipSync(bundleContents()))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
    if (path === "manifest.json") manifest = mcpbManifest.parse(JSON.parse(Buffer.from(content).toString("utf8")));
  }
});

/** Starts the bundle as a host does. Settings that the person left empty keep the text of the manifest. */
function install(given: Readonly<Record<string, string | readonly string[]>>) {
  const filled = (text: string): readonly string[] => {
    const [whole, field] = /^\$\{user_config\.(\w+)\}$/.exec(text) ?? [];
    const value = field === undefined ? undefined : (given[field] ?? manifest.user_config[field]?.default ?? whole);
    if (Array.isArray(value)) return value;
    return [value === undefined ? text.replace(/\$\{__dirname\}/g, folder) : String(value)];
  };
  const { command, args, env } = manifest.server.mcp_config;
  expect(command).toBe("node");
  return startNode(
    args.flatMap(filled),
    Object.fromEntries(Object.entries(env).map(([name, text]) => [name, filled(text).join()])),
  );
}

test("the same contents make the same bundle", () => {
  expect(Buffer.from(bundleContents()).equals(Buffer.from(bundleContents()))).toBe(true);
});

test("it works unpacked, without an installation and without a setting", async () => {
  const server = install({});
  for (const message of OPENING) server.send(message);
  server.send(toolCall(1, "create_targetings", { items: [{ name: "Bundled" }] }));
  expect(await server.answer("open")).toMatchObject({
    result: { serverInfo: { name: "targeting-mcp", version: manifest.version } },
  });
  expect(await server.answer(1)).toMatchObject({
    result: { structuredContent: { environment: "sandbox", status: "succeeded" } },
  });
});

test("read-only, and an API that is not there, reach the server as filled in", async () => {
  const server = install({
    targeting_api_url: "http://127.0.0.1:9",
    targeting_api_key: "some-key",
    targeting_mcp_read_only: "true",
  });
  for (const message of OPENING) server.send(message);
  server.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const text = JSON.stringify(await server.answer(1));
  expect(text).toContain("get_option");
  expect(text).not.toContain('"name":"bulk_add_options"');
  expect(text).not.toContain('"name":"track_event"');
});

test.each([
  ["none", []],
  ["one", ["first"]],
  ["several", ["first", "second"]],
])("folders: %s", async (_words, names) => {
  const server = install({ targeting_mcp_allowed_dirs: names.map((name) => join(folder, name)) });
  for (const message of OPENING) server.send(message);
  expect(await server.answer("open")).toHaveProperty("result");
});
