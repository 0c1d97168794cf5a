import * as z from "zod";
import { inputFile } from "../../files/input-file.ts";
import type { RunForm } from "../../runs/kind.ts";
import { notApplied, reason, reportedObject } from "../../runs/outcome-schema.ts";
import { RULES, type RuleName } from "../check/rules.ts";
import type { EventCall, EventEntry } from "./event-run-state.ts";

const at = z.number();
const object = z.number();
const verdict = z.enum(["recorded", "ignored", "rejected", "uncertain"]);
const basis = z.enum(["documented", "assumed", "notShown"]);

const eventVerdict = z.object({
  predicted: verdict,
  basis,
  observed: verdict.exactOptional(),
  findings: z.array(
    z.object({
      path: z.string(),
      rule: z.custom<RuleName>((name) => typeof name === "string" && Object.hasOwn(RULES, name)),
      section: z.string(),
      basis,
      severity: z.enum(["verdict", "warning"]),
      message: z.string(),
      fix: z.string(),
    }),
  ),
});

const keptEvents = z.object({
  digest: z.string(),
  file: inputFile.exactOptional(),
  mend: z.literal(true).exactOptional(),
});

/** Runs that send events. */
export const EVENT_FORM: RunForm<EventCall, EventEntry> = {
  name: "events",
  tools: ["track_events", "track_event"],
  call: z.object({
    tool: z.enum(["track_events", "track_event"]),
    input: z.object({ events: keptEvents, onUnknown: z.enum(["report", "resend"]) }),
  }),
  entry: z.discriminatedUnion("t", [
    z.object({ t: z.literal("begin"), items: z.number(), skipped: z.number().exactOptional(), at }),
    z.object({ t: z.literal("events"), objects: z.array(reportedObject), at }),
    z.object({ t: z.literal("leave"), objects: z.array(object), at }),
    z.object({ t: z.literal("predicted"), object, verdict: eventVerdict.exactOptional(), at }),
    z.object({
      t: z.literal("settled"),
      object,
      outcome: z.enum(["succeeded", "alreadyDone", "failed", "unknown"]).or(notApplied),
      reason: reason.exactOptional(),
      attempts: z.number(),
      verdict: eventVerdict.exactOptional(),
      maybeTwice: z.literal(true).exactOptional(),
      afterCrash: z.literal(true).exactOptional(),
      at,
    }),
    z.object({ t: z.literal("accepted"), objects: z.array(object), at }),
    z.object({
      t: z.literal("stop"),
      cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
      reason: reason.exactOptional(),
      waitedMs: z.number(),
      at,
    }),
    z.object({ t: z.literal("resume"), resend: z.boolean(), at }),
  ]),
  line: (entry) => [JSON.stringify(entry)],
};
