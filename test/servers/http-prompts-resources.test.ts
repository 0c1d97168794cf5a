import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { post, startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const rpc = z.object({ result: z.record(z.string(), z.unknown()) });
const contents = z.object({ contents: z.array(z.object({ text: z.string(), mimeType: z.string() })).length(1) });
const completion = z.object({ completion: z.object({ values: z.array(z.string()) }) });

async function start() {
  const service = await startService();
  const { url } = await startHttp({ ...service.live, TARGETING_MCP_CONFIRM: "off" });
  const ask = async (method: string, params: Record<string, unknown> = {}) =>
    rpc.parse(await (await post(url, method, params)).json()).result;
  const read = async (uri: string) => {
    const [content] = contents.parse(await ask("resources/read", { uri })).contents;
    return content?.text ?? "";
  };
  const complete = async (ref: Record<string, string>, name: string, value: string) =>
    completion.parse(await ask("completion/complete", { ref, argument: { name, value } })).completion.values;
  const client = await CLIENTS["2026 client, modern"]({ url });
  const make = async (name: string, args: Record<string, unknown>) => {
    const made = z.looseObject({ runId: z.string(), results: z.array(z.looseObject({ _id: z.string() })) });
    const { runId, results } = made.parse((await client.callTool(name, args)).structuredContent);
    return { runId, _id: results[0]?._id ?? "" };
  };
  const makeSuite = async () => {
    const { structuredContent } = await client.callTool("generate_event_tests", { eventNames: ["sign_up"] });
    return z.looseObject({ suiteId: z.string() }).parse(structuredContent).suiteId;
  };
  return { ask, read, complete, make, makeSuite };
}

const shared = perFile(start);

test("the documents can be looked up", async () => {
  const { ask, read } = await shared();
  const listed = JSON.stringify(await ask("resources/list"));
  for (const page of ["events", "limits", "errors"]) expect(listed).toContain(`targeting://spec/${page}`);
  expect(JSON.parse(await read("targeting://spec/limits"))).toMatchObject({
    management: { optionItems: { value: 5000 } },
    events: { items: { value: 100 } },
  });
  expect(await read("targeting://spec/events")).toContain("begin_checkout");
  expect(await read("targeting://spec/errors")).toContain("TARGETING_LOCKED");
});

test("the options of a targeting are read in parts, which go on after deletions", async () => {
  const { read, make } = await shared();
  const { _id } = await make("create_targetings", { items: [{ name: "Spring" }] });
  const group = { name: "Group", children: [{ name: "Child" }] };
  await make("bulk_add_options", { targetingId: _id, items: [group, ...optionItems(5500)] });
  const partOf = async (uri: string): Promise<readonly z.infer<typeof partRow>[]> =>
    (await read(uri))
      .trim()
      .split("\n")
      .map((line) => partRow.parse(JSON.parse(line)));
  const names: unknown[] = [];
  let uri: string | undefined = `targeting://targetings/${_id}/options`;
  let parts = 0;
  while (uri !== undefined) {
    const rows = await partOf(uri);
    names.push(...rows.flatMap(({ name }) => name ?? []));
    uri = rows.at(-1)?.next;
    parts += 1;
  }
  expect(parts).toBeGreaterThan(1);
  expect(names).toEqual(["Group", "Child", ...optionItems(5500).map(({ name }) => name)]);

  const first = await partOf(`targeting://targetings/${_id}/options`);
  const next = String(first.at(-1)?.next);
  const shown = first.flatMap(({ _id: id }) => id ?? []);
  await make("delete_options", { ids: shown.slice(2, 5) });
  expect((await partOf(next))[0]?.name).toBe(names[shown.length]);
  await make("delete_options", { ids: shown.slice(-1) });
  expect((await partOf(next))[0]?.note).toMatch(/^The list changed since the previous part/);
});

const partRow = z.looseObject({
  _id: z.string().optional(),
  name: z.string().optional(),
  next: z.string().optional(),
  note: z.string().optional(),
});

test("prompts name the tools, and what was seen before completes their arguments", async () => {
  const { ask, complete, make, makeSuite } = await start();
  const { _id, runId } = await make("create_targetings", { items: [{ name: "Spring" }] });
  expect(JSON.stringify(await ask("prompts/list"))).toMatch(
    /edit_targeting.*import_options.*generate_event_tests.*explain_run/,
  );
  const prompt = { name: "edit_targeting", arguments: { targeting: "Spring", change: "drop \u202Eit" } };
  const text = JSON.stringify(await ask("prompts/get", prompt));
  expect(text).toContain("Spring");
  expect(text).not.toContain("\u202E");
  const ofPrompt = (name: string) => ({ type: "ref/prompt", name });
  expect(await complete(ofPrompt("edit_targeting"), "targeting", "spr")).toEqual(["Spring"]);
  expect(await complete(ofPrompt("edit_targeting"), "targeting", _id.slice(0, 20))).toEqual([_id]);
  expect(await complete(ofPrompt("generate_event_tests"), "eventName", "add_to")).toEqual([
    "add_to_wishlist",
    "add_to_cart",
  ]);
  expect(await complete(ofPrompt("explain_run"), "runId", "")).toEqual([runId]);
  const template = { type: "ref/resource", uri: "targeting://targetings/{targetingId}/options" };
  expect(await complete(template, "targetingId", "")).toEqual([_id]);
  expect(await complete({ ...template, uri: `${template.uri}/{from}` }, "targetingId", "")).toEqual([_id]);
  const results = { ...template, uri: "targeting://runs/{runId}/results" };
  expect(await complete(results, "runId", "")).toEqual([runId]);
  expect(await complete({ ...results, uri: `${results.uri}/{from}` }, "runId", "")).toEqual([runId]);
  const suiteId = await makeSuite();
  for (const uri of ["targeting://suites/{suiteId}", "targeting://suites/{suiteId}/junit"]) {
    expect(await complete({ ...template, uri }, "suiteId", "")).toEqual([suiteId]);
  }
});
