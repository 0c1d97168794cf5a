import { isUlid } from "../../spec/ulid.ts";
import { targetingIdsLike } from "../prompts/completion.ts";
import type { ResourceDefinition } from "./definition.ts";

const NDJSON = "application/x-ndjson";
/** A part ends at the first of these: so many characters, or so much time. */
const PART_CHARACTERS = 1_000_000;
const PART_MS = 10_000;

const readOptions: ResourceDefinition["read"] = async ({ targetingId = "", from = "0" }, context) => {
  const { management, clock, waitMs, stopping } = context;
  const [, top, , inside] = /^(\d{1,6})(-(\d{1,6}))?$/.exec(from) ?? [];
  if (top === undefined || management === undefined || !isUlid(targetingId)) return undefined;
  const start = { top: Number(top), inside: inside === undefined ? undefined : Number(inside) };
  const end = clock.now() + PART_MS;
  // Loaded late, with the first of these resources that is read.
  const { managementOf } = await import("../../tools/apis.ts");
  const api = managementOf({ management, clock, waitMs, arrivedAt: clock.now() });
  const { walkOptions } = await import("../../reading/option-walk.ts");
  const { steadily } = await import("../../reading/pages.ts");
  const { optionRow } = await import("../../render/reading.ts");
  const text = await steadily(async (walk) => {
    const lines: string[] = [];
    let size = 0;
    const list = { targetingId, signal: stopping, ...walk };
    for await (const { option, next } of walkOptions(api, list, start)) {
      const line = JSON.stringify(optionRow(option, "detailed"));
      lines.push(line);
      size += line.length;
      if (size < PART_CHARACTERS && clock.now() < end) continue;
      const place = next.inside === undefined ? `${next.top}` : `${next.top}-${next.inside}`;
      lines.push(JSON.stringify({ next: `targeting://targetings/${targetingId}/options/${place}` }));
      break;
    }
    return lines.map((line) => `${line}\n`).join("");
  });
  return { mimeType: NDJSON, text };
};

/** The options of a targeting, as they are now. */
export const TARGETING_RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "targeting-options",
    title: "Options of a targeting",
    description:
      "Every option of a targeting, each group followed by its sub-options, one JSON object a line. " +
      "A last line with `next` names the next part.",
    uriTemplate: "targeting://targetings/{targetingId}/options",
    complete: { targetingId: targetingIdsLike },
    read: readOptions,
  },
  {
    name: "targeting-options-part",
    title: "Further options of a targeting",
    description: "The options of a targeting from a place on.",
    uriTemplate: "targeting://targetings/{targetingId}/options/{from}",
    complete: { targetingId: targetingIdsLike },
    read: readOptions,
  },
];
