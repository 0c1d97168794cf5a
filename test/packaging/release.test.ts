import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import packageJson from "../../package.json" with { type: "json" };
import { BUNDLE_NAME } from "../../scripts/packaging/bundle-contents.ts";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { publishedPackageJson } from "../../scripts/packaging/published.ts";
import { releasedServerJson } from "../../scripts/packaging/server-json.ts";
import { startCommand } from "../support/server-process.ts";

const WORKFLOWS = readdirSync(fileAt(".github/workflows")).map((name) => ({
  name,
  text: readFileSync(fileAt(`.github/workflows/${name}`), "utf8"),
}));

describe("workflows", () => {
  test.each(WORKFLOWS)(
    "$name: actions by the hash of a commit, with its version, and no right but to read",
    ({ text }) => {
      const uses = [...text.matchAll(/uses: (\S+)(.*)$/gm)];
      expect(uses.length).toBeGreaterThan(1);
      for (const [, action, version] of uses) {
        expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
        expect(version).toMatch(/^ # v\d+\.\d+\.\d+$/);
      }
      expect(text).toMatch(/^permissions:\n {2}contents: read$/m);
      // Text of other people, such as the title of a pull request, must never become part of a script.
      for (const [, script = ""] of text.matchAll(/run: (.*(?:\n {10}.*)*)/g)) expect(script).not.toContain("${" + "{");
      expect(text).not.toMatch(/secrets\./);
    },
  );

  test("three systems, three versions of Node", () => {
    const [tests] = WORKFLOWS.filter(({ name }) => name === "test.yml");
    expect(tests?.text).toContain("os: [ubuntu-latest, macos-latest, windows-latest]");
    expect(tests?.text).toContain("node: [20, 22, 24]");
  });

  test("every npm script that they run is there", () => {
    const named = WORKFLOWS.flatMap(({ text }) => [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = ""]) => name));
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((name) => !Object.hasOwn(packageJson.scripts, name))).toEqual([]);
  });
});

test("the registry's entry of a release names the bundle where it is released, with its checksum", () => {
  const entry = releasedServerJson({ repository: "owner/name", file: BUNDLE_NAME, sha256: "0".repeat(64) });
  const { version } = packageJson;
  expect(entry.packages.at(-1)).toEqual({
    registryType: "mcpb",
    identifier: `https://github.com/owner/name/releases/download/v${version}/targeting-mcp-${version}.mcpb`,
    fileSha256: "0".repeat(64),
    transport: { type: "stdio" },
  });
  expect(entry.packages.map(({ registryType }) => registryType)).toEqual(["npm", "mcpb"]);
});

test("the published package.json has all that the command needs, and no scripts or dependencies", () => {
  const published = publishedPackageJson();
  expect(Object.keys(published)).not.toContain("scripts");
  expect(Object.keys(published)).not.toContain("devDependencies");
  const { name, version, license, type, bin, engines, files, mcpName } = packageJson;
  expect(published).toMatchObject({ name, version, license, type, bin, engines, files, mcpName });
});

test("--version --json names the commit, and what is bundled as the lock file has it", async () => {
  const command = startCommand(["--version", "--json"]);
  expect((await command.exited).code).toBe(0);
  const told = z.strictObject({
    name: z.literal("targeting-mcp"),
    version: z.literal(packageJson.version),
    commit: z.string().regex(/^[0-9a-f]{40}(-dirty)?$/),
    node: z.literal(process.versions.node),
    bundled: z.record(z.string(), z.string()),
  });
  const { bundled } = told.parse(JSON.parse(command.lines.join("\n")));
  const locked = z
    .looseObject({ packages: z.record(z.string(), z.looseObject({ version: z.string().optional() })) })
    .parse(JSON.parse(readFileSync(fileAt("package-lock.json"), "utf8"))).packages;
  for (const name of ["@modelcontextprotocol/server", "zod", "undici", "yauzl", "sax", "hucre", "iconv-lite", "hono"]) {
    expect(bundled[name], name).toBe(locked[`node_modules/${name}`]?.version);
  }
  // Packages that only tests and builds need are not in the bundle.
  for (const name of ["@modelcontextprotocol/client", "vitest", "esbuild"]) expect(bundled).not.toHaveProperty(name);
});

test("the bill of materials has the license of each package, and its text travels with the code", () => {
  const bill = z
    .looseObject({
      bomFormat: z.literal("CycloneDX"),
      components: z.array(
        z.looseObject({
          name: z.string(),
          version: z.string(),
          licenses: z.array(z.object({ license: z.object({ id: z.string() }) })),
        }),
      ),
    })
    .parse(JSON.parse(readFileSync(fileAt("dist/sbom.cdx.json"), "utf8")));
  const texts = readFileSync(fileAt("dist/LICENSES.txt"), "utf8");
  expect(bill.components.length).toBeGreaterThan(8);
  for (const { name, version, licenses } of bill.components) {
    expect(texts).toContain(`${name} ${version}: ${licenses[0]?.license.id}`);
  }
});
