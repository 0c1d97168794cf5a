import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";

/**
 * Runs the command as in a container, but without a container engine: as the first process of a namespace, with a
 * read-only root. The files are copied as by an installation, because only the owner may be able to read the clone's
 * folder.
 */
const CONTAINED = `
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/app
mkdir -m 700 /mnt/state
touch /mnt/node
cp "$ACCESS" /mnt/access.json
chmod 600 /mnt/access.json
chown 1000:1000 /mnt/state /mnt/access.json
cp -R "$APP/package.json" "$APP/dist" /mnt/app
chmod -R a+rX /mnt/app
mount --bind "$NODE" /mnt/node
mount --bind / /
mount -o remount,ro,bind /
if touch /etc/written 2>/dev/null; then exit 9; fi
exec setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all --no-new-privs /mnt/node "$@"`;
const NAMESPACES = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
/** Whether namespaces can be created here. This needs root and is not allowed everywhere. */
const isPossible =
  process.platform === "linux" &&
  spawnSync("unshare", [...NAMESPACES, "sh", "-c", "mount --make-rprivate / && setpriv --help"]).status === 0;

const line = z.looseObject({ message: z.string(), level: z.string(), url: z.string().optional() });

test.runIf(isPossible)(
  "as the first process of a container, as its user, without capabilities and over a read-only root it serves and stops",
  async () => {
    const access = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
    const tokens = [
      { name: "team", token: "a-token-of-a-team-01" },
      { name: "boss", token: "a-token-of-a-boss-01", approves: true },
    ];
    writeFileSync(access, JSON.stringify({ tokens }));
    const args = ["/mnt/app/dist/main.js", "http", "--host", "0.0.0.0", "--port", "0"];
    const child = spawn("unshare", [...NAMESPACES, "sh", "-c", CONTAINED, "sh", ...args], {
      env: {
        PATH: process.env.PATH ?? "",
        APP: fileURLToPath(fileAt(".")),
        NODE: process.execPath,
        ACCESS: access,
        TARGETING_MCP_MODE: "sandbox",
        TARGETING_MCP_STATE_DIR: "/mnt/state",
        TARGETING_MCP_ACCESS_FILE: "/mnt/access.json",
      },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const ended = once(child, "exit");
    const said: z.infer<typeof line>[] = [];
    for await (const text of createInterface({ input: child.stderr })) {
      said.push(line.parse(JSON.parse(text)));
      if (said.some(({ message }) => message === "serving")) break;
    }
    const { port } = new URL(said.find(({ url }) => url !== undefined)?.url ?? "");
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
    const [inside] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ");
    const status = readFileSync(`/proc/${inside}/status`, "utf8");
    expect(status).toMatch(/^NSpid:\t\d+\t1$/m);
    expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(said.filter(({ level }) => level !== "info")).toEqual([]);
    process.kill(Number(inside), "SIGTERM");
    expect(await ended).toEqual([0, null]);
  },
);
