import * as z from "zod";

/** A typical call, as a part of one session that starts with an empty sandbox. */
interface TypicalCall {
  readonly tool: string;
  /** Returns the arguments. `before` returns the answer that a tool has given earlier in the session. */
  readonly args: (before: (tool: string) => unknown) => Readonly<Record<string, unknown>>;
}

const made = z.object({ results: z.array(z.looseObject({ _id: z.string().optional(), name: z.string().optional() })) });
const listed = z.object({ options: z.array(z.looseObject({ _id: z.string() })) });
const started = z.object({ runId: z.string() });
const suite = z.object({ suiteId: z.string() });

/** Returns the ID of an object that a call has just created. */
const idOf = (name: string, answer: unknown): string | undefined =>
  made.parse(answer).results.find((one) => one.name === name)?._id;

/** One call for every tool, in the order of the session. A new tool adds its call here. */
export const TYPICAL_CALLS: readonly TypicalCall[] = [
  { tool: "create_targetings", args: () => ({ items: [{ name: "Spring" }, { name: "Summer" }, { name: "Wint_r" }] }) },
  { tool: "get_targeting", args: () => ({ targetingName: "Spring" }) },
  {
    tool: "bulk_add_options",
    args: () => ({
      targetingName: "Spring",
      items: [
        { name: "Shoes", contexts: ["shoes-1", "shoes-2"] },
        { name: "Hats", type: "collection", children: [{ name: "Caps", contexts: ["caps-1"] }] },
        { name: "Shoes" },
      ],
    }),
  },
  { tool: "list_options", args: () => ({ targetingName: "Spring", detail: "detailed" }) },
  { tool: "get_option", args: (before) => ({ optionId: listed.parse(before("list_options")).options[0]?._id }) },
  {
    tool: "rename_targetings",
    args: (before) => ({
      items: [{ _id: idOf("Summer", before("create_targetings")), name: "Autumn" }],
    }),
  },
  {
    tool: "update_options",
    args: (before) => ({ items: [{ _id: listed.parse(before("list_options")).options[0]?._id, name: "Boots" }] }),
  },
  {
    tool: "update_contexts",
    args: () => ({ targetingName: "Spring", items: [{ name: "Boots", add: ["boots-1"] }] }),
  },
  {
    tool: "plan_targeting",
    args: (before) => ({
      desired: {
        version: 1,
        targeting: { _id: idOf("Spring", before("create_targetings")) },
        options: [
          { name: "Shoes", contexts: ["shoes-1", "shoes-9"] },
          { name: "Gloves", contexts: ["gloves-1"] },
        ],
      },
    }),
  },
  { tool: "apply_plan", args: (before) => ({ runId: started.parse(before("plan_targeting")).runId }) },
  { tool: "undo_run", args: (before) => ({ runId: started.parse(before("apply_plan")).runId }) },
  { tool: "delete_options", args: () => ({ targetingName: "Spring", names: ["Boots"] }) },
  {
    tool: "delete_targeting",
    args: (before) => ({ ids: [idOf("Summer", before("create_targetings"))] }),
  },
  {
    tool: "get_run",
    args: (before) => ({ runId: started.parse(before("bulk_add_options")).runId, outcome: "failed" }),
  },
  { tool: "resume_run", args: (before) => ({ runId: started.parse(before("bulk_add_options")).runId }) },
  { tool: "cancel_run", args: (before) => ({ runId: started.parse(before("delete_options")).runId }) },
  { tool: "list_event_types", args: () => ({ eventName: "sign_up" }) },
  { tool: "track_event", args: () => ({ uid: "ann", eventName: "sign_up", method: "email" }) },
  {
    tool: "track_events",
    args: () => ({
      events: [
        { uid: "ann", eventName: "app_open" },
        { uid: "bob", eventName: "sign_up" },
        { uid: "bob", eventName: "signup", method: "email" },
      ],
    }),
  },
  { tool: "generate_event_tests", args: () => ({ eventNames: ["sign_up"], seed: 1 }) },
  { tool: "run_event_tests", args: (before) => ({ suiteId: suite.parse(before("generate_event_tests")).suiteId }) },
  { tool: "inspect_events", args: () => ({ eventName: "sign_up", limit: 3 }) },
];
