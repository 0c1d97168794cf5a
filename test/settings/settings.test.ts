import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { settingsHelp } from "../../src/commands/help.ts";
import { shownAddress, withoutCredentials } from "../../src/commands/shown-address.ts";
import { wordsAsFolders } from "../../src/commands/stdio.ts";
import { parseCommandLine } from "../../src/settings/command-line.ts";
import { proxyFor } from "../../src/settings/environment.ts";
import { readSettings, stateFolder } from "../../src/settings/settings.ts";
import { SettingsError } from "../../src/settings/value-types.ts";

const HOME = "/home/person";

function read(environment: Record<string, string>, argv: readonly string[] = []) {
  const { flags } = parseCommandLine(argv);
  return readSettings({ environment, flags, platform: "linux", home: HOME });
}

function problem(environment: Record<string, string>, argv: readonly string[] = []): string {
  try {
    read(environment, argv);
  } catch (thrown) {
    if (thrown instanceof SettingsError) return thrown.message;
    throw thrown;
  }
  return "no error";
}

const MANAGEMENT = { TARGETING_API_URL: "https://api.example.com", TARGETING_API_KEY: "secret-one" };
const EVENTS = { EVENT_API_URL: "https://events.example.com/v1/", EVENT_APP_KEY: "secret-two" };

describe("words as folders", () => {
  const allowed = (argv: readonly string[], environment = {}) =>
    readSettings({
      ...{ environment, platform: "linux", home: HOME },
      ...wordsAsFolders(parseCommandLine(argv), environment),
    }).allowedDirs;

  test("absolute paths join those of the flag", () => {
    const [one, other] = [resolve("one"), resolve("other")];
    expect(allowed([one, other])).toEqual([one, other]);
    expect(allowed(["--allowed-dirs", one, other])).toEqual([one, other]);
  });

  test("absolute paths join those of the variable, for which a flag stands instead", () => {
    const [one, other, third] = [resolve("one"), resolve("other"), resolve("third")];
    const variable = { TARGETING_MCP_ALLOWED_DIRS: [one, other].join(delimiter) };
    expect(allowed([third], variable)).toEqual([one, other, third]);
    expect(allowed(["--allowed-dirs", one, third], variable)).toEqual([one, third]);
    expect(allowed([third], { TARGETING_MCP_ALLOWED_DIRS: "$" + "{user_config.folders}" })).toEqual([third]);
  });

  test("what an installer left unfilled is not a folder", () => {
    expect(allowed(["$" + "{user_config.folders}"])).toEqual([]);
    expect(allowed(["", "  "])).toEqual([]);
    expect(allowed(["", resolve("one")])).toEqual([resolve("one")]);
  });

  test("other words are refused", () => {
    expect(() => allowed(["more"])).toThrow('"more" is an unexpected argument');
  });
});

describe("where a value comes from", () => {
  test("a flag wins over the environment, which wins over the default", () => {
    expect(read({}).waitMs).toBe(45_000);
    expect(read({ TARGETING_MCP_WAIT_MS: "5" }).waitMs).toBe(5);
    const both = read({ TARGETING_MCP_WAIT_MS: "5", TARGETING_MCP_CONFIRM: "strict" }, ["--wait-ms", "7"]);
    expect(both.waitMs).toBe(7);
    expect(both.sources.get("TARGETING_MCP_WAIT_MS")).toBe("flag");
    expect(both.sources.get("TARGETING_MCP_CONFIRM")).toBe("environment");
    expect(both.sources.get("TARGETING_MCP_MODE")).toBe("default");
  });

  test("the defaults of the contract", () => {
    expect(read({})).toMatchObject({
      toolsets: ["targeting", "events"],
      readOnly: false,
      confirm: "ask",
      allowedTargetings: undefined,
      maxDeletes: 500,
      allowedDirs: [],
      stateDir: "/home/person/.local/state/targeting-mcp",
      routes: {},
      requestTimeoutMs: 60_000,
      retryBudgetMs: 120_000,
      waitMs: 45_000,
      http: { sessions: false, ownKeys: false, maxConcurrency: 64 },
      logLevel: "info",
    });
  });

  test.each(["", "  ", "\n", "$" + "{user_config.wait}"])("%j says nothing", (nothing) => {
    expect(read({ TARGETING_MCP_WAIT_MS: nothing, TARGETING_API_KEY: nothing })).toMatchObject({
      waitMs: 45_000,
      environment: { kind: "sandbox" },
    });
  });

  test("a toggle stands alone or takes a value", () => {
    expect(read({}, ["--read-only"]).readOnly).toBe(true);
    expect(read({}, ["--read-only=false"]).readOnly).toBe(false);
    expect(read({ TARGETING_MCP_READ_ONLY: "1" }).readOnly).toBe(true);
    expect(read({ TARGETING_MCP_READ_ONLY: "off" }, ["--read-only"]).readOnly).toBe(true);
  });

  test("lists, folders and proxies", () => {
    const settings = read({
      TARGETING_MCP_ALLOWED_TARGETINGS: " A, B,,",
      TARGETING_MCP_ALLOWED_DIRS: ["/data/one", "two"].join(delimiter),
      TARGETING_MCP_TOOLSETS: "events",
      https_proxy: "http://user:hidden%21@proxy.example.com:8080",
      NO_PROXY: "localhost",
    });
    expect(settings.allowedTargetings).toEqual(["A", "B"]);
    expect(settings.allowedDirs).toEqual([resolve("/data/one"), resolve("two")]);
    expect(settings.toolsets).toEqual(["events"]);
    expect(settings.proxies).toEqual({ https: "http://user:hidden%21@proxy.example.com:8080", none: "localhost" });
    expect(settings.secrets).toEqual(["hidden%21"]);
  });

  test("misspelt variables are noticed", () => {
    expect(read({ TARGETING_MCP_READONLY: "1" }).unknownVariables).toEqual(["TARGETING_MCP_READONLY"]);
  });
});

describe("what cannot be used", () => {
  test.each([
    [{ TARGETING_MCP_WAIT_MS: "soon" }, /TARGETING_MCP_WAIT_MS \(--wait-ms\) must be a whole number.*"soon"/],
    [{ TARGETING_MCP_MAX_DELETES: "-1" }, /TARGETING_MCP_MAX_DELETES \(--max-deletes\)/],
    [{ TARGETING_MCP_MODE: "production" }, /TARGETING_MCP_MODE \(--mode\) must be one of auto, live, sandbox/],
    [{ TARGETING_MCP_TOOLSETS: "targetings" }, /must be a comma list of targeting, events/],
    [{ TARGETING_MCP_READ_ONLY: "maybe" }, /must be on or off/],
    [{ TARGETING_API_URL: "api.example.com", TARGETING_API_KEY: "k" }, /TARGETING_API_URL \(--targeting-api-url\)/],
    [{ TARGETING_API_URL: "https://me:pw@example.com", TARGETING_API_KEY: "k" }, /without a user name/],
  ])("%j", (environment, sentence) => {
    expect(problem(environment)).toMatch(sentence);
  });

  test("a key that no header can carry is refused without being shown", () => {
    const sentence = problem({ ...MANAGEMENT, TARGETING_API_KEY: "geheim\nzwei" });
    expect(sentence).toMatch(/TARGETING_API_KEY must be a key of visible ASCII/);
    expect(sentence).not.toContain("geheim");
  });

  test("unknown flags, keys as flags, and flags without a value", () => {
    expect(problem({}, ["--readonly"])).toMatch(/unknown flag --readonly; did you mean --read-only\?/);
    expect(problem({}, ["--mod=live"])).toMatch(/unknown flag --mod; did you mean --mode\?/);
    expect(problem({}, ["--TARGETING_MCP_READ_ONLY"])).toMatch(/did you mean --read-only\?/);
    expect(problem({}, ["--something-else"])).toMatch(/unknown flag --something-else; the flags are .*--read-only/);
    expect(problem({}, ["--targeting-api-key=abc"])).toMatch(/not a flag; .*TARGETING_API_KEY/);
    expect(problem({}, ["--targeting-api-key=abc"])).not.toContain("abc");
    expect(problem({}, ["--mode"])).toMatch(/--mode needs a value/);
    expect(problem({}, ["--mode", "--read-only"])).toMatch(/--mode needs a value/);
  });

  test("a file of routes that is missing, no JSON, or of another shape", () => {
    const folder = mkdtempSync(join(tmpdir(), "settings-"));
    const file = join(folder, "routes.json");
    expect(problem({ TARGETING_MCP_ROUTES: file })).toMatch(/TARGETING_MCP_ROUTES.*cannot be read as JSON/);
    writeFileSync(file, "[]");
    expect(problem({ TARGETING_MCP_ROUTES: file })).toMatch(/one JSON object/);
    writeFileSync(file, '{"addOptions": 3}');
    expect(problem({ TARGETING_MCP_ROUTES: file })).toMatch(/"addOptions" is not a text/);
    writeFileSync(file, '{"addOptions": "POST /add"}');
    expect(read({ TARGETING_MCP_ROUTES: file }).routes).toEqual({ addOptions: "POST /add" });
  });
});

describe("the environment", () => {
  test("auto: the sandbox when none of the four is set", () => {
    expect(read({}).environment).toEqual({
      kind: "sandbox",
      port: 0,
      seed: "sample",
      managementKey: "sandbox-key",
      eventKey: "sandbox-app-key",
    });
  });

  test("auto: complete pairs are live, and an absent pair is absent", () => {
    expect(read({ ...MANAGEMENT, ...EVENTS }).environment).toEqual({
      kind: "live",
      management: { url: "https://api.example.com", key: "secret-one" },
      events: { url: "https://events.example.com/v1", key: "secret-two" },
    });
    expect(read(EVENTS).environment).not.toHaveProperty("management");
    expect(read(MANAGEMENT).environment).not.toHaveProperty("events");
  });

  test.each([
    [{ TARGETING_API_URL: "https://a.example.com" }, "TARGETING_API_KEY is missing"],
    [{ TARGETING_API_KEY: "k" }, "TARGETING_API_URL is missing"],
    [{ EVENT_API_URL: "https://a.example.com", ...MANAGEMENT }, "EVENT_APP_KEY is missing"],
    [{ EVENT_APP_KEY: "k", ...MANAGEMENT }, "EVENT_API_URL is missing"],
  ])("half a pair is refused: %j", (environment, sentence) => {
    expect(problem(environment)).toContain(sentence);
    expect(problem({ ...environment, TARGETING_MCP_MODE: "live" })).toContain(sentence);
  });

  test("the sample data is there only where nothing at all was chosen", () => {
    const seed = (environment: Record<string, string>, argv: string[] = []) => {
      const { environment: chosen } = read(environment, argv);
      return chosen.kind === "sandbox" ? chosen.seed : "live";
    };
    expect(seed({})).toBe("sample");
    expect(seed({ TARGETING_MCP_MODE: "sandbox" })).toBe("none");
    expect(seed({ ...MANAGEMENT, TARGETING_MCP_MODE: "sandbox" })).toBe("none");
    expect(seed({ TARGETING_MCP_SANDBOX_SEED: "none" })).toBe("none");
    expect(seed({ TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_SANDBOX_SEED: "sample" })).toBe("sample");
    expect(seed({}, ["--sandbox-seed", "/seeds/mine.json"])).toEqual({ file: resolve("/seeds/mine.json") });
  });

  test("live without any pair is refused", () => {
    expect(problem({}, ["--mode", "live"])).toMatch(/neither pair is set/);
  });

  test("sandbox never holds a real address, and takes given keys only on this machine", () => {
    const own = read({ ...MANAGEMENT, TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_SANDBOX_PORT: "4011" });
    expect(own.environment).toMatchObject({ kind: "sandbox", port: 4011, managementKey: "secret-one" });
    expect(JSON.stringify(own.environment)).not.toContain("api.example.com");
    const far = read({ ...MANAGEMENT, TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_SANDBOX_URL: "http://box:4010" });
    expect(far.environment).toMatchObject({ url: "http://box:4010", managementKey: "sandbox-key" });
  });

  test("projects differ by address and key, or by name alone", () => {
    const id = (environment: Record<string, string>) => read(environment).project.id;
    expect(id(MANAGEMENT)).not.toBe(id({ ...MANAGEMENT, TARGETING_API_KEY: "other" }));
    expect(id({ ...MANAGEMENT, TARGETING_MCP_PROJECT: "shop" })).toBe(
      id({ ...MANAGEMENT, TARGETING_API_KEY: "other", TARGETING_MCP_PROJECT: "shop" }),
    );
    expect(id(MANAGEMENT)).toMatch(/^[0-9a-f]{16}$/);
  });
});

test("proxies by scheme, never for this machine", () => {
  const proxies = { https: "http://proxy:1", none: "inner.example.com" };
  expect(proxyFor("https://api.example.com", proxies)).toBe("http://proxy:1");
  expect(proxyFor("http://api.example.com", proxies)).toBeUndefined();
  for (const near of ["https://localhost:1", "https://127.0.0.1:1", "https://[::1]:1"]) {
    expect(proxyFor(near, proxies)).toBeUndefined();
  }
});

test.each([
  ["api.example.com", true],
  ["example.com", true],
  [".example.com", true],
  ["*.example.com", true],
  ["other.test, EXAMPLE.com", true],
  ["*", true],
  ["example.com:8443", true],
  ["example.com:443", false],
  ["ample.com", false],
  ["api.example.com.other", false],
  ["", false],
])("NO_PROXY=%s names https://api.example.com:8443: %s", (none, isNamed) => {
  const proxy = proxyFor("https://api.example.com:8443", { https: "http://proxy:1", none });
  expect(proxy).toBe(isNamed ? undefined : "http://proxy:1");
});

test.each(["2001:db8::7", "[2001:db8::7]", "[2001:db8::7]:443"])("NO_PROXY=%s names an IPv6 address", (none) => {
  expect(proxyFor("https://[2001:db8::7]", { https: "http://proxy:1", none })).toBeUndefined();
  expect(proxyFor("https://[2001:db8::8]", { https: "http://proxy:1", none })).toBe("http://proxy:1");
});

test("a proxy without a scheme is one of plain http", () => {
  const proxy = (text: string) => read({ ...MANAGEMENT, HTTPS_PROXY: text }).proxies.https;
  expect(proxy("proxy.example.com:3128")).toBe("http://proxy.example.com:3128");
  expect(proxy("person:p%40ss@proxy:3128")).toBe("http://person:p%40ss@proxy:3128");
  expect(problem({ ...MANAGEMENT, HTTPS_PROXY: "socks5://proxy:1080" })).toMatch(/^HTTPS_PROXY must be/);
});

test("state folders of the platforms", () => {
  const folder = (platform: NodeJS.Platform, environment: Record<string, string>, home = HOME) =>
    stateFolder({ platform, home, environment });
  expect(folder("linux", { XDG_STATE_HOME: "/state" })).toBe("/state/targeting-mcp");
  expect(folder("linux", { XDG_STATE_HOME: "relative" })).toBe("/home/person/.local/state/targeting-mcp");
  expect(folder("darwin", {}, "/Users/p")).toBe("/Users/p/Library/Application Support/targeting-mcp");
  expect(folder("win32", { LOCALAPPDATA: "C:\\Local" }, "C:\\p")).toBe("C:\\Local\\targeting-mcp");
  expect(folder("win32", {}, "C:\\p")).toBe("C:\\p\\AppData\\Local\\targeting-mcp");
});

test("the help names every variable of the contract", () => {
  const variables =
    "TARGETING_API_URL TARGETING_API_KEY EVENT_API_URL EVENT_APP_KEY TARGETING_MCP_MODE TARGETING_MCP_SANDBOX_PORT " +
    "TARGETING_MCP_SANDBOX_URL TARGETING_MCP_PROJECT TARGETING_MCP_TOOLSETS TARGETING_MCP_READ_ONLY " +
    "TARGETING_MCP_CONFIRM TARGETING_MCP_ALLOWED_TARGETINGS TARGETING_MCP_MAX_DELETES TARGETING_MCP_ALLOWED_DIRS " +
    "TARGETING_MCP_STATE_DIR TARGETING_MCP_ROUTES TARGETING_MCP_REQUEST_TIMEOUT_MS TARGETING_MCP_RETRY_BUDGET_MS " +
    "TARGETING_MCP_WAIT_MS TARGETING_MCP_SESSIONS TARGETING_MCP_LOG_LEVEL";
  for (const variable of variables.split(" ")) expect(settingsHelp()).toContain(variable);
  expect(settingsHelp()).not.toContain("--targeting-api-key");
});

test.for([
  ["http://usr:pw@host:9/path", "http://***@host:9/path"],
  ["http://usr:p/w@host", "http://***@host"],
  ["http://u:p@w@host", "http://***@host"],
  ["http://host/path?key=1#part", "http://host/path?***"],
  ["http://host/#part", "http://host/#***"],
  ["http://u:p?w@host", "http://***"],
  ["http://host/?key=a@b", "http://***"],
  ["http:/usr:pw@host", "***@host"],
  ["usr:pw@host", "***@host"],
  ["http://host:1/path", "http://host:1/path"],
] as const)("of the address %s, %s is shown", ([given, shown]) => {
  expect(shownAddress(given)).toBe(shown);
  if (given.includes("://")) {
    expect(withoutCredentials(`It is "${given}", not b@c?`)).toBe(`It is "${shown}", not b@c?`);
  }
});
