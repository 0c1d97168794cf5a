import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLIENTS, call } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const WRITES = [
  ...["createTargetings", "renameTargetings", "deleteTargetings", "addOptions", "updateOptions", "deleteOptions"],
] as const;

test("only listed targetings change, whichever tool is called", async () => {
  const service = await startService();
  const connect = (more: Record<string, string>) =>
    CLIENTS["2026 client, modern"]({ args: [COMMAND], env: cleanEnvironment({ ...service.live, ...more }) });
  const free = await connect({});
  const idsOf = async (name: string, args: Record<string, unknown>) =>
    (await call(free, name, args)).results.map(({ _id }) => _id);
  const [mine = "", other = ""] = await idsOf("create_targetings", { items: [{ name: "Mine" }, { name: "Other" }] });
  const items = [{ name: "One", contexts: ["a"] }];
  const [myOption = ""] = await idsOf("bulk_add_options", { targetingId: mine, items });
  const [otherOption = ""] = await idsOf("bulk_add_options", { targetingId: other, items });
  const counts = () => Promise.all(WRITES.map((operation) => service.count(operation)));
  const before = await counts();

  const bound = await connect({ TARGETING_MCP_ALLOWED_TARGETINGS: mine, TARGETING_MCP_CONFIRM: "off" });
  const refused: readonly (readonly [string, Record<string, unknown>])[] = [
    ["create_targetings", { items: [{ name: "Third" }] }],
    [
      "rename_targetings",
      {
        items: [
          { _id: mine, name: "Ours" },
          { _id: other, name: "Theirs" },
        ],
      },
    ],
    ["delete_targeting", { ids: [other] }],
    ["bulk_add_options", { targetingId: other, items: [{ name: "Two" }] }],
    ["update_options", { items: [{ _id: otherOption, name: "Two" }] }],
    [
      "update_options",
      {
        items: [
          { _id: myOption, name: "Two" },
          { _id: otherOption, name: "Two" },
        ],
      },
    ],
    ["update_contexts", { items: [{ _id: otherOption, add: ["b"] }] }],
    ["update_contexts", { targetingId: mine, items: [{ _ids: [myOption, otherOption], add: ["b"] }] }],
    ["update_contexts", { targetingId: other, items: [{ name: "One", add: ["b"] }] }],
    ["delete_options", { ids: [otherOption] }],
    ["delete_options", { targetingId: other, names: ["One"] }],
    ["delete_options", { ids: [otherOption], dryRun: true }],
  ];
  for (const [name, args] of refused) {
    const { isError, text } = await call(bound, name, args);
    expect(isError).toBe(true);
    expect(text).toContain("TARGETING_MCP_ALLOWED_TARGETINGS");
  }
  expect(await counts()).toEqual(before);

  for (const [name, args] of [
    ["update_contexts", { items: [{ _id: myOption, addFrom: [otherOption], add: ["b"] }] }],
    ["delete_options", { ids: [myOption] }],
    ["rename_targetings", { items: [{ _id: mine, name: "Ours" }] }],
  ] as const) {
    expect((await bound.callTool(name, args)).structuredContent).toMatchObject({ status: "succeeded" });
  }
  const allows = `TARGETING_MCP_ALLOWED_TARGETINGS allows changes only in ${mine}`;
  expect((await call(bound, "delete_targeting", { ids: [other] })).text).toContain(allows);
  for (const targeting of [{ _id: other }, { name: "Third" }]) {
    const desired = { version: 1, targeting, options: [{ name: "Two" }] };
    const { text } = await call(bound, "plan_targeting", { desired });
    expect(text).toMatch(/^The plan for "\w+" \([\w ]+\) cannot be applied on this server: .*may/);
    expect(text).toContain(allows);
    expect(text).not.toContain("apply_plan {");
  }
  const fresh = await connect({
    TARGETING_MCP_ALLOWED_TARGETINGS: mine,
    TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "allowed-")),
  });
  const { text: unseen } = await call(fresh, "get_targeting", {});
  expect(unseen).toContain(`ask the person for the ID (a ULID, shown in the web console). ${allows}`);
  const missing = await bound.callTool("delete_options", { ids: ["01JABCDEFGHJKMNPQRSTVWXYZ0"] });
  expect(missing.structuredContent).toMatchObject({ status: "failed" });
});
