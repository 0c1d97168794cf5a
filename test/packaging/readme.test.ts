import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { fileAt } from "../../scripts/packaging/generated.ts";
import { readAccess } from "../../src/settings/access-file.ts";
import { SETTING_LIST } from "../../src/settings/registry.ts";
import { publishedLaunch } from "../../src/setup/config-file.ts";
import { HOSTS } from "../../src/setup/hosts.ts";
import { routesWith } from "../../src/spec/routes.ts";
import { cleanEnvironment, startCommand } from "../support/server-process.ts";

const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(fileAt("docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name.replaceAll("\\", "/")}`),
];

interface Block {
  readonly page: string;
  /** The heading above the block. */
  readonly under: string;
  readonly language: string;
  readonly text: string;
}

const textOf = (page: string) => readFileSync(fileAt(page), "utf8");

const BLOCKS: readonly Block[] = PAGES.flatMap((page) =>
  textOf(page)
    .split(/^#+ /m)
    .flatMap((part) => {
      const [under = ""] = part.split("\n");
      return [...part.matchAll(/^```(\w*)[^\n]*\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => {
        return { page, under, language, text };
      });
    }),
);

const blocks = (page: string, language: string) =>
  BLOCKS.filter((block) => block.page === page && block.language === language);

/** Returns the shell commands of a page, without comments, each on one line. */
const shellLines = (page: string) =>
  blocks(page, "sh").flatMap(({ text }) =>
    text
      .replaceAll(/\\\n\s*/g, "")
      .split("\n")
      .flatMap((line) => line.replace(/(^|\s+)#.*$/, "") || []),
  );

/** The pages whose commands this test runs. */
const WITH_COMMANDS = [
  "README.md",
  "docs/quickstart.md",
  "docs/guides/go-live.md",
  "docs/guides/import-a-spreadsheet.md",
  "docs/reference/hosts.md",
];

const linesOf = (page: string): number => textOf(page).trimEnd().split("\n").length;

test("the README is at most 120 lines long, all documents 2,000", () => {
  expect(linesOf("README.md")).toBeLessThanOrEqual(120);
  expect(linesOf("docs/architecture.md")).toBeLessThanOrEqual(120);
  expect(linesOf("CONTRIBUTING.md")).toBeLessThanOrEqual(60);
  const documents = PAGES.filter((page) => page.startsWith("docs/") && !page.startsWith("docs/contributing/"));
  expect(documents.reduce((sum, page) => sum + linesOf(page), 0)).toBeLessThanOrEqual(2000);
});

test("pages are found, with their blocks", () => {
  expect(PAGES.length).toBeGreaterThan(8);
  expect(blocks("docs/reference/hosts.md", "json").length).toBeGreaterThan(4);
  expect(WITH_COMMANDS.flatMap(shellLines).length).toBeGreaterThan(12);
});

test.each(BLOCKS.filter(({ language }) => language === "json"))("$page, $under: the JSON is JSON", ({ text }) => {
  expect(() => JSON.parse(text)).not.toThrow();
});

test("links between pages lead somewhere", () => {
  const links = PAGES.flatMap((page) =>
    [...textOf(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link = ""]) => ({ page, link })),
  ).filter(({ link }) => !link.startsWith("https://"));
  expect(links.length).toBeGreaterThan(15);
  const broken = links.filter(({ page, link }) => !existsSync(join(dirname(fileURLToPath(fileAt(page))), link)));
  expect(broken).toEqual([]);
});

test("every setting that a page names is one", () => {
  const known = new Set(SETTING_LIST.map(({ variable }) => variable));
  const named = PAGES.flatMap((page) => textOf(page).match(/\bTARGETING_MCP_[A-Z_]*[A-Z]\b/g) ?? []);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

describe("hosts", () => {
  const HEADINGS = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    vscode: "VS Code",
    cursor: "Cursor",
    codex: "Codex",
    gemini: "Gemini CLI",
  } as const;

  test.each(Object.entries(HEADINGS))("%s: the block is what setup writes", (word, heading) => {
    const host = HOSTS[word];
    const keys = { TARGETING_API_KEY: "your-key", EVENT_APP_KEY: "your-app-key" };
    const values = { TARGETING_API_URL: "https://api.example.com", EVENT_API_URL: "https://events.example.com" };
    const references = Object.entries(keys).map(([name, key]) => {
      return [name, host === undefined || host.keysFrom === "file" ? key : host.reference(name)] as const;
    });
    const entry = { ...publishedLaunch("linux"), values, references: Object.fromEntries(references) };
    const written = host?.list.withFields("", host.list.fieldsOf(entry, undefined)) ?? "";
    const [block] = BLOCKS.filter(({ page, under, language }) => {
      return page === "docs/reference/hosts.md" && under === heading && language !== "sh";
    });
    if (block?.language === "toml") expect(block.text).toBe(written);
    else expect(JSON.parse(block?.text ?? "")).toEqual(JSON.parse(written));
  });

  test("install links hold the same command", () => {
    const links = [...textOf("docs/reference/hosts.md").matchAll(/\((https:[^)]*[?&]config=[^)]*)\)/g)].map(
      ([, url = ""]) => new URL(url),
    );
    const configurations = links.map((link) => {
      expect(link.searchParams.get("name")).toBe("targeting");
      const config = link.searchParams.get("config") ?? "";
      return JSON.parse(config.startsWith("{") ? config : Buffer.from(config, "base64").toString("utf8"));
    });
    expect(configurations).toEqual([{ type: "stdio", ...publishedLaunch("linux") }, publishedLaunch("linux")]);
  });
});

describe("commands of the README and of the pages by task", () => {
  const commands = WITH_COMMANDS.flatMap(shellLines).flatMap((line) => line.split(" && "));
  const OURS = /^(?:npx -y targeting-mcp|node dist\/main\.js|targeting-mcp)(?= |$)/;
  const ours = commands.flatMap((line) => {
    return OURS.test(line) ? [line.replace(OURS, "").split(" ").slice(1)] : [];
  });

  test("each is one of npm's, one of a host that starts ours, or ours", () => {
    const known = (line: string) =>
      /^npm (ci|test)$/.test(line) ||
      Object.hasOwn(packageJson.scripts, /^npm run ([\w:]+)( -- \w+)?$/.exec(line)?.[1] ?? "") ||
      /^(claude|codex) mcp add (--scope user )?targeting (--env \w+=\S+ )*-- npx -y targeting-mcp$/.test(line) ||
      line === `npm install --global ./targeting-mcp-${packageJson.version}.tgz` ||
      // The Inspector's --tool-arg takes all words up to the next option, even those after `--`, so it must not be the
      // last option.
      /^npx -y @modelcontextprotocol\/inspector --cli .* --tool-name \w+ -- npx -y targeting-mcp$/.test(line) ||
      OURS.test(line);
    expect(commands.filter((line) => !known(line))).toEqual([]);
    const words = new Set(ours.map(([word]) => word));
    expect([...words].sort()).toEqual(["doctor", "setup"]);
  });

  test("npm scripts that the text names are there", () => {
    const named = PAGES.flatMap((page) =>
      [...textOf(page).matchAll(/npm run ([\w:]*\w)/g)].map(([, name = ""]) => name),
    );
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((name) => !Object.hasOwn(packageJson.scripts, name))).toEqual([]);
  });

  const [routes] = blocks("docs/guides/go-live.md", "json").filter(({ text }) => text.includes("addOptions"));

  test("the routes are routes", () => {
    expect(routesWith(JSON.parse(routes?.text ?? "")).addOptions.path).toBe(
      "/context-targeting/{targetingId}/category/bulk/create",
    );
  });

  /**
   * Returns the output that an example must print. Nobody can answer here, so setup writes nothing. The routes of the
   * example are not those of the sandbox.
   */
  function sentence([word, option, ...rest]: readonly (string | undefined)[]): string {
    if (word === "setup") return isRemoval(rest) ? "has no entry of this server" : "Nothing was written";
    return option === undefined ? "Nothing must be fixed" : "FIX  management API, addOptions";
  }

  const isRemoval = (args: readonly (string | undefined)[]): boolean => args.includes("--remove");

  /** Starts one of our commands as the documentation has it, but on a free port and with its own home folder. */
  function start(args: readonly string[]) {
    const home = mkdtempSync(join(tmpdir(), "targeting-mcp-readme-"));
    const file = join(home, "routes.json");
    writeFileSync(file, routes?.text ?? "");
    const placed = args.map((word) => (word === "routes.json" ? file : word));
    return startCommand(placed, cleanEnvironment({ HOME: home, USERPROFILE: home }));
  }

  test.each(ours)("%s %s ends", async (...args) => {
    const command = start(args.filter((word) => word !== undefined));
    const { code } = await command.exited;
    const said = command.lines.join("\n");
    const expected = args.length === 1 || isRemoval(args) ? 0 : 1;
    expect({ code, said }).toEqual({ code: expected, said: expect.stringContaining(sentence(args)) });
  });
});

test("the access files of the guide for teams are ones", () => {
  const files = blocks("docs/guides/run-for-a-team.md", "json").filter(({ text }) => text.includes('"tokens"'));
  expect(files).toHaveLength(2);
  for (const { text } of files) {
    const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-readme-")), "access.json");
    writeFileSync(file, text);
    const { projects, tokens } = readAccess(file);
    expect([projects.size, tokens.length]).toEqual([1, 3]);
  }
});
