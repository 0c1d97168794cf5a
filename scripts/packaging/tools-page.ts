import { catalogue, type ListedTool, schemaAlternatives } from "../../src/mcp/server-parts.ts";
import { isJsonObject, type JsonObject } from "../../src/platform/json.ts";
import type { Effect } from "../../src/tools/define-tool.ts";
import { everyTool } from "../../src/tools/registry.ts";
import { OWN_ARGUMENTS, SHARED_ARGUMENTS } from "./argument-words.ts";
import { tableOf } from "./markdown.ts";

const TOOLS = await everyTool();

const EFFECTS = {
  reads: "changes nothing",
  adds: "adds to the ad platform",
  changes: "changes or deletes on the ad platform",
  local: "changes only data that this server stores",
  tests: 'sends events to a sandbox; to the ad platform only with `target: "configured"`',
} as const satisfies Record<Effect, string>;

const TOOLSETS = { targeting: "`targeting`", events: "`events`", either: "`targeting` or `events`" } as const;

/** Returns docs/reference/tools.md: every tool with its arguments, as clients receive them. */
export function toolsPage(): string {
  return [
    "# Tools",
    "This page lists the tools that agents call, with all their arguments. `npm run docs` generates this page from the code. If a call has an unknown " +
      "argument, the error lists the valid ones. A list or object may also arrive as JSON text. The annotations of a tool, such as " +
      "`readOnlyHint`, are hints of MCP for hosts. [Terms](../../README.md#terms) explains words such as option group, Context ID and run.",
    toolsTable(),
    "## Arguments of several tools",
    tableOf(
      ["argument", "meaning"],
      Object.entries(SHARED_ARGUMENTS).map(([name, meaning]) => [`\`${name}\``, meaning]),
    ),
    ...catalogue(TOOLS).map(chapter),
    "",
  ].join("\n\n");
}

function toolsTable(): string {
  return tableOf(
    ["tool", "does", "toolset", "effect"],
    TOOLS.map(({ name, title, toolset, effect, needsSandbox }) => [
      `\`${name}\``,
      title + (needsSandbox === true ? " (only if a sandbox is configured)" : ""),
      TOOLSETS[toolset],
      EFFECTS[effect],
    ]),
  );
}

function chapter({ tool, annotations, inputSchema }: ListedTool): string {
  const schema = inputSchema();
  const hints = Object.entries(annotations).flatMap(([hint, value]) => (value === true ? [`\`${hint}\``] : []));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = isJsonObject(schema.properties) ? Object.entries(schema.properties) : [];
  const isShared = (name: string) => meaningOf(tool.name, name) === undefined;
  const shared = properties.map(([name]) => name).filter(isShared);
  const rows = new Map<string, ArgumentRow>();
  for (const [name, given] of properties.filter(([name]) => !isShared(name))) {
    const argument = isJsonObject(given) ? given : {};
    const means = [meaningOf(tool.name, name), "default" in argument && `Default: \`${String(argument.default)}\`.`];
    const meaning = means.filter(Boolean).join(" ");
    const row = { type: typeWords(argument, schema), required: required.includes(name) ? "yes" : "", meaning };
    const key = JSON.stringify(row);
    rows.set(key, { ...row, names: [...(rows.get(key)?.names ?? []), name] });
  }
  const cells = [...rows.values()].map(({ names, type, required, meaning }) => [
    codeList(names),
    type,
    required,
    meaning,
  ]);
  return [
    `## ${tool.name}`,
    `**${tool.title}.** ${tool.description} Annotations: ${hints.join(", ") || "none"}.`,
    ...(cells.length === 0 ? [] : [tableOf([`argument of \`${tool.name}\``, "type", "required", "meaning"], cells)]),
    ...(shared.length === 0
      ? []
      : [
          `\`${tool.name}\` also takes ${shared.length === 1 ? "this [shared argument]" : "these [shared arguments]"}(#arguments-of-several-tools): ${codeList(shared)}.`,
        ]),
  ].join("\n\n");
}

/** Arguments of one tool that have the same type and meaning. */
interface ArgumentRow {
  readonly names: readonly string[];
  readonly type: string;
  readonly required: string;
  readonly meaning: string;
}

/** Returns what an argument means in its tool alone; undefined if it means the same in several tools. */
function meaningOf(tool: string, argument: string): string | undefined {
  const meaning = OWN_ARGUMENTS[tool]?.[argument];
  if (meaning !== undefined || Object.hasOwn(SHARED_ARGUMENTS, argument)) return meaning;
  throw new Error(`${tool}.${argument} has no description: add one to scripts/packaging/argument-words.ts`);
}

function codeList(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

function typeWords(schema: JsonObject, root: JsonObject): string {
  const words = schemaAlternatives(schema, root).map((form) => {
    if (Array.isArray(form.enum)) return form.enum.map((one) => `\`${String(one)}\``).join(", ");
    if (form.type === "array") return `list of ${isJsonObject(form.items) ? typeWords(form.items, root) : "anything"}`;
    if (form.type !== "object") return typeof form.type === "string" ? form.type : "anything";
    return isJsonObject(form.properties) ? `{${fieldsOf(form, form.properties)}}` : "object";
  });
  return [...new Set(words)].join(" or ");
}

function fieldsOf({ required }: JsonObject, properties: JsonObject): string {
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name);
  return Object.keys(properties)
    .map((name) => `\`${name}${isRequired(name) ? "" : "?"}\``)
    .join(", ");
}
