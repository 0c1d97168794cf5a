import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { call, optionItems, reportOf, restOf } from "./cluster.ts";

const ROOT = join(import.meta.dirname, "..", "..");

test("npm run cluster: a killed replica is not missed, and Ctrl-C leaves nothing running", async () => {
  const child = spawn(process.execPath, ["--import", "tsx", "scripts/cluster.ts", "--port", "0"], { cwd: ROOT });
  onTestFinished(() => void child.kill("SIGINT"));
  const exited = once(child, "exit");
  let told = "";
  child.stdout.setEncoding("utf8");
  for await (const piece of child.stdout) {
    told += String(piece);
    if (told.includes("Ctrl-C")) break;
  }
  const [, url = ""] = /^proxy +(\S+)/m.exec(told) ?? [];
  const [, address = "", replica = ""] = /^replica +(\S+) +process (\d+)$/m.exec(told) ?? [];
  const pages = ["/", "/metrics", "/healthz"].map(async (path) => (await fetch(new URL(path, url))).status);
  const ofReplica = (await fetch(new URL("/", address))).status;
  expect(await Promise.all(pages)).toEqual([ofReplica, 404, 404]);
  const create = reportOf(await call(url, "create_targetings", { items: [{ name: "Spring" }] }));
  expect(create.status).toBe("succeeded");
  // The client is asked for approval through the proxy. Any process may execute the deletion.
  const asked: string[] = [];
  const client = new Client(
    { name: "person", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
  );
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { confirm: true } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const gone = await client.callTool({ name: "delete_targeting", arguments: { names: ["Spring"] } });
  expect(gone.structuredContent).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "client" },
  });
  expect(asked).toEqual([expect.stringContaining("Spring")]);
  await client.close();
  process.kill(Number(replica), "SIGKILL");
  // A process that is ending may still accept connections, and would not answer requests on them.
  const isThere = (): Promise<boolean> =>
    fetch(address).then(
      () => true,
      () => false,
    );
  await expect.poll(isThere).toBe(false);
  for (const name of ["Summer", "Autumn", "Winter"]) {
    const made = await call(url, "create_targetings", { items: [{ name, options: optionItems(2, name) }] });
    const { runId, status } = reportOf(made);
    expect(status === "running" ? (await restOf(url, runId)).status : status).toBe("succeeded");
  }
  child.kill("SIGINT");
  expect(await exited).toEqual([0, null]);
  await expect(fetch(url)).rejects.toThrow();
}, 120_000);
