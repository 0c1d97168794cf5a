import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import * as z from "zod";
import { atEnd } from "../support/ends.ts";
import { COMMAND, OPENING, startNode, toolCall } from "../support/server-process.ts";
import { optionItems } from "../support/service.ts";
import { startService } from "./service.ts";

// Simulates a power cut on real file systems. The state folder is in a disk image. While the service has received a
// write request but the server has no answer yet, the image is copied and the server is killed. The copy lacks
// everything that the file system had not written to the disk. A server that uses the copy then finishes the run.

const answered = z.looseObject({
  result: z.looseObject({
    structuredContent: z.looseObject({
      status: z.string().optional(),
      confirmation: z.looseObject({ token: z.string() }).optional(),
      runs: z.array(z.looseObject({ runId: z.string() })).optional(),
    }),
  }),
});

const FILE_SYSTEMS = ["ext4", "xfs", "btrfs"];

/** These options need two requests, because a request takes at most 5,000. */
const OPTIONS = 6000;

function run(program: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}

/** Mounts a disk image. It is unmounted by the test, or at the latest when the test ends. */
function mount(image: string) {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-disk-"));
  run("mount", "-o", "loop", image, folder);
  let isMounted = true;
  const unmount = (): void => {
    if (isMounted) run("umount", folder);
    isMounted = false;
  };
  return { folder, unmount };
}

/**
 * Returns whether this machine can create and mount an image with this file system, which needs root and tools of the
 * system.
 */
function canMount(fileSystem: string): boolean {
  const image = join(mkdtempSync(join(tmpdir(), "targeting-mcp-disk-")), "probe.img");
  try {
    run("truncate", "--size=512M", image);
    run(`mkfs.${fileSystem}`, "-q", image);
    mount(image).unmount();
    return true;
  } catch {
    return false;
  }
}

function server(service: { readonly live: Record<string, string> }, disk: string) {
  const { child, exited, ...rest } = startNode([COMMAND], {
    ...service.live,
    TARGETING_MCP_STATE_DIR: join(disk, "new", "state"),
    TARGETING_MCP_LOG_LEVEL: "silent",
  });
  for (const message of OPENING) rest.send(message);
  let calls = 0;
  const call = async (name: string, args: unknown) => {
    calls += 1;
    rest.send(toolCall(calls, name, args));
    return answered.parse(await rest.answer(calls)).result.structuredContent;
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return { call, kill };
}

const cases = FILE_SYSTEMS.flatMap((fileSystem) =>
  (["addOptions", "deleteOptions"] as const).flatMap((operation) =>
    [true, false].map((applied) => ({ fileSystem, operation, applied })),
  ),
);
// `npm run test:kill:some` tries only one power cut.
const tried = inject("deaths") === "some" ? cases.slice(0, 1) : cases;
const canTry = new Map(FILE_SYSTEMS.map((each) => [each, canMount(each)]));

test.for(tried)("$fileSystem, $operation, applied: $applied", async (the, { skip }) => {
  if (canTry.get(the.fileSystem) !== true) skip(`${the.fileSystem} cannot be mounted here`);
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-disk-"));
  const [image, copy] = [join(folder, "disk.img"), join(folder, "copy.img")];
  run("truncate", "--size=512M", image);
  run(`mkfs.${the.fileSystem}`, "-q", image);
  const targetingId = await service.targeting("Spring");
  const ids = await service.options(targetingId, optionItems(20));
  const nth = the.operation === "addOptions" ? 2 : 1;
  const before = await service.count(the.operation);
  const fault = { kind: "timeout", on: the.operation, nth, applied: the.applied };
  await service.control("POST", "/faults", { faults: [fault] });

  const disk = mount(image);
  const first = server(service, disk.folder);
  atEnd(async () => {
    await first.kill();
    disk.unmount();
  });
  const items = Array.from({ length: OPTIONS }, (_, number) => ({ name: `New ${number}`, contexts: [`c${number}`] }));
  const sent =
    the.operation === "addOptions"
      ? first.call("bulk_add_options", { targetingId, items })
      : first
          .call("delete_options", { ids })
          .then(({ confirmation }) => first.call("delete_options", { confirmation: confirmation?.token }));
  sent.catch(() => "the server is killed");
  await expect.poll(() => service.count(the.operation)).toBe(before + nth);
  run("cp", "--sparse=always", image, copy);
  await first.kill();
  // The same file system cannot be mounted twice, so the original is unmounted before the copy is used.
  disk.unmount();
  await service.mend();

  const left = mount(copy);
  const second = server(service, left.folder);
  atEnd(async () => {
    await second.kill();
    left.unmount();
  });
  const { runs = [] } = await second.call("get_run", {});
  const runId = runs[0]?.runId;
  await expect
    .poll(async () => (await second.call("resume_run", { runId })).status, { interval: 1000 })
    .toBe("succeeded");
  const names = [...(await service.names()).values()];
  expect(names).toHaveLength(new Set(names).size);
  expect(names).toHaveLength(1 + (the.operation === "addOptions" ? 20 + OPTIONS : 0));
});
