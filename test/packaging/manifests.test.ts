import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { fileAt, GENERATED } from "../../scripts/packaging/generated.ts";
import { OPENING, startCommand } from "../support/server-process.ts";
import { mcpbManifest, registryEntry } from "./schemas.ts";

const textOf = (path: string) => readFileSync(fileAt(path), "utf8");
const manifest = mcpbManifest.parse(JSON.parse(textOf("manifest.json")));
const entry = registryEntry.parse(JSON.parse(textOf("server.json")));

test.each(GENERATED)("$path is what the code makes: else run npm run docs", ({ path, text }) => {
  // The formatter decides the layout of JSON, so only the content is compared.
  const compared = (given: string): unknown => (path.endsWith(".json") ? JSON.parse(given) : given);
  expect(compared(textOf(path))).toEqual(compared(text()));
});

test("one name and one version everywhere", () => {
  expect(entry.name).toBe(packageJson.mcpName);
  expect([manifest.version, entry.version, entry.packages[0]?.version]).toEqual(Array(3).fill(packageJson.version));
  expect([manifest.name, entry.packages[0]?.identifier]).toEqual(["targeting-mcp", "targeting-mcp"]);
});

test("keys, and only keys, are secret", () => {
  const sensitive = Object.entries(manifest.user_config).filter(([, field]) => field.sensitive === true);
  expect(sensitive.map(([name]) => name)).toEqual(["targeting_api_key", "event_app_key"]);
  const secret = entry.packages[0]?.environmentVariables.filter(({ isSecret }) => isSecret);
  expect(secret?.map(({ name }) => name)).toEqual(["TARGETING_API_KEY", "EVENT_APP_KEY"]);
});

test("nobody has to fill in anything, folders are chosen as folders", () => {
  expect(Object.values(manifest.user_config).some(({ required }) => required)).toBe(false);
  expect(manifest.user_config.targeting_mcp_allowed_dirs).toMatchObject({ type: "directory", multiple: true });
  expect(manifest.user_config.targeting_mcp_read_only).toMatchObject({ type: "boolean", default: false });
  expect(manifest.user_config.targeting_mcp_mode).toMatchObject({ type: "string", default: "auto" });
});

test("every field is handed to the server, and the server gets nothing else", () => {
  const { args, env } = manifest.server.mcp_config;
  const used = [...args, ...Object.values(env)].flatMap((text) => /\$\{user_config\.(\w+)\}/.exec(text)?.[1] ?? []);
  expect(used.sort()).toEqual(Object.keys(manifest.user_config).sort());
});

test("the manifest lists the tools that the server lists", async () => {
  const command = startCommand([]);
  for (const message of OPENING) command.send(message);
  command.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const { tools } = manifest;
  expect(await command.answer(1)).toMatchObject({
    result: { tools: tools.map((tool) => expect.objectContaining(tool)) },
  });
});
