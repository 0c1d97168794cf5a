import { completable, type McpServer } from "@modelcontextprotocol/server";
import type { Skill, SkillSource } from "@modelcontextprotocol/server/ext/skills";
import * as z from "zod";
import { quoteUntrusted, type Redactor } from "../answers/fence.ts";
import { once } from "../tools/define-tool.ts";
import { matching, type ResourceContext, runsLike, targetingsLike } from "./resources.ts";

interface PromptArgument {
  readonly meaning: string;
  readonly needed?: true;
  readonly complete?: (typed: string, context: ResourceContext) => string[] | Promise<string[]>;
}

interface PromptDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, PromptArgument>>;
  /** Returns the text of the prompt. Absent if the text is that of the skill with the same name. */
  readonly text?: (given: Readonly<Record<string, string | undefined>>) => string;
}

const TARGETING = { meaning: "Name or ID of the targeting", needed: true, complete: targetingsLike } as const;

export const PROMPTS: readonly PromptDefinition[] = [
  {
    name: "edit_targeting",
    title: "Edit a targeting",
    description: "Changes options of a targeting: reads it, plans, shows the plan, then applies it.",
    tool: "update_options",
    arguments: { targeting: TARGETING, change: { meaning: "The change, in plain words", needed: true } },
    text: ({ targeting = "", change = "" }) =>
      `Change the targeting ${quoteUntrusted(targeting)} like this: ${quoteUntrusted(change)}.\n` +
      "1. Find the targeting with get_targeting, and the options to change with list_options.\n" +
      "2. Make the change with as few calls as possible, each with dryRun: true first, and show me the plan.\n" +
      "3. When I agree, apply each plan with apply_plan and its runId, and tell me what failed and why.",
  },
  {
    name: "import_options",
    title: "Import options",
    description: "Adds many options with their Context IDs to a targeting.",
    tool: "bulk_add_options",
    arguments: {
      targeting: TARGETING,
      source: { meaning: "A file, or another source of the options", needed: true },
    },
    text: ({ targeting = "", source = "" }) =>
      `Add the options from ${quoteUntrusted(source)} to the targeting ${quoteUntrusted(targeting)}.\n` +
      "1. Read the source. Sub-options go into the children of their group.\n" +
      "2. Call bulk_add_options once with all of them and dryRun: true, and tell me how many options and requests it " +
      "takes, and which names break the rules.\n" +
      "3. When I agree, apply the plan with apply_plan and its runId. Correct what failed and send only that again. onExisting: skip leaves " +
      "existing options unchanged.",
  },
  {
    name: "generate_event_tests",
    title: "Generate event tests",
    description: "Generates tests for the conversion events of an app and runs them against the sandbox.",
    tool: "generate_event_tests",
    arguments: {
      eventName: {
        meaning: "The event to test; default: all",
        complete: async (typed) => matching(typed, Object.keys((await import("../spec/events.ts")).EVENTS)),
      },
      format: {
        meaning: "Format of the tests",
        complete: async (typed) =>
          matching(typed, Object.keys((await import("../events/suites/emit.ts")).SUITE_FORMATS)),
      },
    },
    text: ({ eventName, format }) =>
      `Generate tests for ${eventName ? `the event ${quoteUntrusted(eventName)}` : "all supported events"} with ` +
      `generate_event_tests${format ? ` in the format ${quoteUntrusted(format)}` : ""}, run them with run_event_tests against ` +
      "the sandbox, and explain every mismatch: which rule, which parameter, and what an app has to send.",
  },
  {
    name: "explain_run",
    title: "Explain a run",
    description: "Explains what a run did, what failed and why, and what is left to do.",
    tool: "get_run",
    arguments: { runId: { meaning: "ID of the run; default: the newest", complete: runsLike } },
    text: ({ runId }) =>
      `Explain ${runId ? `the run ${quoteUntrusted(runId)}` : "my newest run"}: read it with get_run, first as a whole, then its ` +
      "items that failed or are unknown. Tell me in plain words what was done, what was not and why, and what I should " +
      "do next. Change nothing.",
  },
  {
    name: "spreadsheet_to_targetings",
    title: "Spreadsheet to targetings",
    description: "Turns a spreadsheet or a list into options of a targeting: export, edit, plan, review, apply, undo.",
    tool: "apply_plan",
  },
  {
    name: "clean_up_safely",
    title: "Clean up safely",
    description:
      "Cleans up a targeting without losing anything: reads it, saves it, lists the changes, and asks first.",
    tool: "delete_options",
  },
  {
    name: "why_conversions_are_missing",
    title: "Why are my conversions missing",
    description: "Finds out why events of an app do not count, and what the app has to send.",
    tool: "list_event_types",
  },
  {
    name: "test_my_tracking",
    title: "Test my tracking",
    description:
      "Tests against a sandbox whether an app sends its events correctly, and writes tests for its repository.",
    tool: "inspect_events",
  },
];

export function registerPrompts(
  server: McpServer,
  tools: ReadonlySet<string>,
  context: () => Promise<ResourceContext>,
  redactor: Redactor,
): void {
  for (const prompt of PROMPTS) {
    const { name, title, description, tool, arguments: given = {} } = prompt;
    if (!tools.has(tool)) continue;
    const fields = Object.entries(given).map(([field, argument]) => [field, schemaOf(argument, context)] as const);
    server.registerPrompt(
      name,
      { title, description, argsSchema: z.object(Object.fromEntries(fields)) },
      async (values) => ({
        messages: [{ role: "user", content: { type: "text", text: redactor.text(await promptText(prompt, values)) } }],
      }),
    );
  }
}

export async function promptText(
  { name, text }: PromptDefinition,
  values: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  if (text !== undefined) return text(values);
  const { SKILL_TEXTS } = await import("./skill-texts.ts");
  return (SKILL_TEXTS[name.replaceAll("_", "-")] ?? "").replace(/^---\n[\s\S]*?\n---\n+/, "");
}

function schemaOf({ meaning, needed, complete }: PromptArgument, context: () => Promise<ResourceContext>) {
  const plain = z.string().describe(meaning);
  const schema = complete === undefined ? plain : completable(plain, async (typed) => complete(typed, await context()));
  return needed ? schema : schema.optional();
}

export type Skills = Awaited<ReturnType<typeof loadSkills>>;

/** Returns the SDK's extension that serves `skills/` (SEP-2640). Imported only here, for a fast start. */
export async function loadSkills() {
  const { SkillsExtension, skillEntry } = await import("@modelcontextprotocol/server/ext/skills");
  return new SkillsExtension({ source: sourceOf(skillEntry), strict: true });
}

interface ServedSkill {
  readonly skill: Skill;
  readonly text: string;
}

const FILE = "SKILL.md";
const MARKDOWN = "text/markdown";

/** Returns the source of the extension's skills. Their digests are computed on request, for a fast start. */
function sourceOf(entryOf: (name: string, files: Record<string, string>) => Promise<Skill>): SkillSource {
  const all = once(async (): Promise<readonly ServedSkill[]> => {
    const { SKILL_TEXTS } = await import("./skill-texts.ts");
    const texts = Object.entries(SKILL_TEXTS);
    return Promise.all(texts.map(async ([name, text]) => ({ skill: await entryOf(name, { [FILE]: text }), text })));
  });
  const at = async (uri: string): Promise<ServedSkill | undefined> =>
    (await all()).find(({ skill }) => skill.uri === uri);
  return {
    list: async () => ({ skills: (await all()).map(({ skill }) => skill) }),
    get: async (uri) => (await at(uri))?.skill,
    async read(uri) {
      const found = await at(uri);
      return found === undefined ? undefined : { text: found.text, mimeType: MARKDOWN };
    },
    async readDirectory(uri) {
      const found = await at(`${uri}/${FILE}`);
      return found === undefined ? undefined : { resources: [{ ...fileOf(found), name: FILE }] };
    },
    listResources: async () =>
      (await all()).map((one) => {
        const { name, description } = one.skill.frontmatter;
        return { ...fileOf(one), name, description };
      }),
  };
}

function fileOf({ skill, text }: ServedSkill) {
  return { uri: skill.uri, mimeType: MARKDOWN, size: Buffer.byteLength(text) };
}
