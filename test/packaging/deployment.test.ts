import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { passesOn, proxyTo } from "../../scripts/serving/proxy.ts";
import { SETTING_LIST } from "../../src/settings/registry.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, loggedIn, startApproved, TOKENS } from "../support/page-http.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const textOf = (path: string) => readFileSync(fileAt(path), "utf8");
const run = promisify(execFile);

const server = z.looseObject({
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  healthcheck: z.looseObject({ test: z.array(z.string()).optional() }),
  stop_grace_period: z.string(),
  read_only: z.literal(true),
  tmpfs: z.array(z.string()),
  init: z.literal(true),
  cap_drop: z.tuple([z.literal("ALL")]),
});
const compose = z.looseObject({
  services: z.looseObject({
    ...{ one: server, two: server, worker: server, migrate: server },
    postgres: z.looseObject({ healthcheck: z.looseObject({ test: z.array(z.string()) }) }),
    // Compose cannot write a configuration from compose.yaml into a container whose root is read-only.
    proxy: z.looseObject({ configs: z.array(z.unknown()).min(1), read_only: z.literal(false).optional() }),
  }),
  configs: z.looseObject({ proxy: z.object({ content: z.string() }) }),
});
const { services, configs } = compose.parse(parse(textOf("compose.yaml"), { merge: true }));
const OURS = [services.one, services.two, services.worker, services.migrate];
const variables = new Set(SETTING_LIST.map(({ variable }) => variable));

/** Returns the command of an instruction of the Dockerfile in exec form. */
function execForm(instruction: string): readonly string[] {
  const [, list = "[]"] = new RegExp(`^${instruction}(?: .*CMD)? (\\[.*\\])$`, "m").exec(textOf("Dockerfile")) ?? [];
  return z.array(z.string()).parse(JSON.parse(list));
}

/** Runs the health check of a container against another port. */
async function checked([, ...check]: readonly string[], port: string): Promise<number> {
  const [program = "", ...args] = check.map((one) => one.replace(":3000", `:${port}`));
  expect(program).toBe("node");
  try {
    await run(process.execPath, args);
    return 0;
  } catch (thrown) {
    return z.looseObject({ code: z.number() }).parse(thrown).code;
  }
}

/** Runs a command that must end at once. Returns its exit code and output. */
async function ended(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [COMMAND, ...args], { env: cleanEnvironment(settings) });
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  return { code, told };
}

test("the settings of compose.yaml are settings, and its commands are taken", async () => {
  for (const { environment, command } of OURS) {
    expect(Object.keys(environment).filter((one) => !variables.has(one))).toEqual([]);
    // Without a store, each of these commands only says that it needs one. This shows that its options are valid.
    const [name = ""] = command;
    if (name === "http") continue;
    const { code, told } = await ended(command, {});
    expect({ code, told }).toMatchObject({
      code: 1,
      told: expect.stringContaining(`${name} requires TARGETING_MCP_STORE`),
    });
  }
  expect(services.one.command).toEqual(services.two.command);
});

test("a replica of compose.yaml and the image serve with their own arguments, and their checks see whether they do", async () => {
  const service = await startService();
  const image = execForm("CMD");
  const [entry] = execForm("ENTRYPOINT");
  expect(entry).toBe("targeting-mcp");
  for (const command of [image, services.one.command.filter((one) => one !== "--no-migrate")]) {
    const [name, ...args] = command;
    expect(name).toBe("http");
    // On an address that is not loopback, the server starts only with authentication. In compose.yaml, the access file
    // provides it.
    expect((await ended(command, service.live)).told).toContain("TARGETING_MCP_ACCESS_FILE");
    expect(args.join(" ")).toBe("--host 0.0.0.0 --port 3000");
  }
  const access = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  await writeFile(access, JSON.stringify({ tokens: [{ name: "team", token: "a-token-of-a-team-01" }] }));
  const { url, child } = await startHttp({ ...service.live, TARGETING_MCP_ACCESS_FILE: access }, ["--host", "0.0.0.0"]);
  const { port } = new URL(url);
  const check = services.one.healthcheck.test ?? [];
  const ofImage = ["CMD", ...execForm("HEALTHCHECK")];
  expect([await checked(check, port), await checked(ofImage, port)]).toEqual([0, 0]);
  const gone = new Promise((resolve) => child.on("close", resolve));
  child.kill("SIGKILL");
  await gone;
  expect([await checked(check, port), await checked(ofImage, port)]).toEqual([1, 1]);
});

test("the image and compose.yaml give one user the folder of its state, and time to stop", () => {
  const image = textOf("Dockerfile");
  const [, user = "0"] = /^USER (\d+):\1$/m.exec(image) ?? [];
  expect(Number(user)).toBeGreaterThan(0);
  expect(image).toContain(`mkdir -m 700 /state && chown ${user}:${user} /state\n`);
  for (const { tmpfs, stop_grace_period: grace } of OURS) {
    expect(tmpfs).toEqual(["/tmp", `/state:uid=${user},gid=${user},mode=0700`]);
    // A process needs up to 25 seconds to end, so it must get more time than that.
    expect(Number.parseInt(grace, 10)).toBeGreaterThan(25);
  }
});

test("the proxy of compose.yaml leads to the replicas, and lets no body fail that the server takes", () => {
  const { content } = configs.proxy;
  expect([...content.matchAll(/server (\w+):(\d+) resolve;/g)].map(([, host, port]) => [host, port])).toEqual([
    ["one", "3000"],
    ["two", "3000"],
  ]);
  const passed = passesOn();
  const inside = ["/healthz", "/readyz", "/metrics", "/page", "/index.html", "/callbacks"];
  const outside = ["/", "/mcp", "/.well-known/oauth-protected-resource/mcp", "/login", "/login/issuer", "/callback"];
  expect([...inside, ...outside, "/page/page.js", "/page/stream"].filter(passed)).toEqual([
    ...outside,
    "/page/page.js",
    "/page/stream",
  ]);
  expect(content).toContain("client_max_body_size 16m;");
  expect(content).toContain("proxy_set_header Host $$http_host;");
  expect(content).toContain("proxy_buffering off;");
  const [, documented = ""] = /```nginx\n([\s\S]*?)```/.exec(textOf("docs/guides/run-for-a-team.md")) ?? [];
  for (const one of ["client_max_body_size 16m;", "Host $http_host;", "proxy_buffering off;"])
    expect(documented).toContain(one);
  // The address of a stopped container does not answer at all, so the proxy must give up quickly.
  expect(content).toMatch(/proxy_connect_timeout [1-5]s;/);
});

test("PostgreSQL of compose.yaml counts as healthy only where others reach it, so that migrate finds it", () => {
  const { test: check } = services.postgres.healthcheck;
  expect(check.slice(check.indexOf("-h"))).toEqual(["-h", "127.0.0.1", "-U", "targeting", "-d", "targeting"]);
});

test("through the proxy of compose.yaml a person approves what is asked for through it; figures stay inside", async () => {
  const server = await startApproved([{ name: "agent" }, { name: "boss", approves: true }], {
    env: { TARGETING_MCP_METRICS: "on" },
  });
  const proxy = proxyTo([server.url], passesOn());
  onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = z.object({ port: z.number() }).parse(proxy.address());
  const origin = `http://127.0.0.1:${port}`;
  const client = await clientOf(`${origin}/mcp`, "agent");
  await client.callTool("create_targetings", { items: [{ name: "Sports fans" }] });
  const answer = client.callTool("delete_targeting", { names: ["Sports fans"] });
  const boss = await loggedIn(origin, "boss");
  const { runId } = await boss.waiting();
  expect((await boss.press(runId, "approve")).status).toBe(200);
  expect((await answer).structuredContent).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "page" },
    runId,
  });
  const page = await (await fetch(`${origin}/`)).text();
  for (const [, path = ""] of page.matchAll(/(?:src|href)="(\/page\/[^"]+)"/g)) {
    expect([path, (await fetch(`${origin}${path}`)).status]).toEqual([path, 200]);
  }
  const headers = { authorization: `Bearer ${TOKENS.agent}` };
  const statusOf = async (at: string, path: string) => (await fetch(`${at}${path}`, { headers })).status;
  // The server keeps idle connections for 65 s, the proxy only for 5 s. A client that was told 65 s would use
  // connections that are already closed.
  const own = `timeout=${proxy.keepAliveTimeout / 1000}`;
  expect((await fetch(`${origin}/page/`)).headers.get("keep-alive")).toBe(own);
  for (const path of ["/metrics", "/healthz", "/readyz"]) {
    expect([path, await statusOf(server.origin, path), await statusOf(origin, path)]).toEqual([path, 200, 404]);
  }
});
