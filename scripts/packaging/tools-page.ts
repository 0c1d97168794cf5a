import { type JsonSchema, schemaAlternatives } from "../../src/mcp/json-schema.ts";
import { catalogue, type ListedTool } from "../../src/mcp/tool-list.ts";
import { isJsonObject } from "../../src/platform/json.ts";
import type { Effect } from "../../src/tools/define-tool.ts";
import { everyTool } from "../../src/tools/registry.ts";
import { tableOf } from "./markdown.ts";

const TOOLS = await everyTool();

const EFFECTS = {
  reads: "changes nothing",
  adds: "adds to an API",
  changes: "changes or deletes in an API",
  local: "changes only what this server stores",
  tests: "changes a sandbox; changes an API only if the call requests it",
} as const satisfies Record<Effect, string>;

const TOOLSETS = { targeting: "`targeting`", events: "`events`", either: "either" } as const;

/** Returns docs/reference/tools.md: every tool with its arguments, as clients receive them. */
export function toolsPage(): string {
  return [
    "# Tools",
    "Generated from the code by `npm run docs`. Unknown arguments are an error that lists the valid ones; an array or object " +
      "that arrives as JSON text is parsed.",
    toolsTable(),
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
  const rows = properties.map(([name, given]) => {
    const argument = isJsonObject(given) ? given : {};
    const means = [argument.description, "default" in argument ? `Default: ${JSON.stringify(argument.default)}.` : ""];
    return [
      `\`${name}\``,
      typeWords(argument, schema),
      required.includes(name) ? "yes" : "",
      means.filter((part) => typeof part === "string" && part !== "").join(". "),
    ];
  });
  return [
    `## ${tool.name}`,
    `**${tool.title}.** ${tool.description} Annotations: ${hints.join(", ") || "none"}.`,
    rows.length === 0 ? "No arguments." : tableOf(["argument", "type", "required", "meaning"], rows),
  ].join("\n\n");
}

function typeWords(schema: JsonSchema, root: JsonSchema): string {
  const words = schemaAlternatives(schema, root).map((form) => {
    if (Array.isArray(form.enum)) return form.enum.map((one) => `\`${String(one)}\``).join(", ");
    if (form.type === "array") return `list of ${isJsonObject(form.items) ? typeWords(form.items, root) : "anything"}`;
    if (form.type !== "object") return typeof form.type === "string" ? form.type : "anything";
    return isJsonObject(form.properties) ? `{${fieldsOf(form, form.properties)}}` : "object";
  });
  return [...new Set(words)].join(" or ");
}

function fieldsOf({ required }: JsonSchema, properties: JsonSchema): string {
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name);
  return Object.keys(properties)
    .map((name) => `\`${name}${isRequired(name) ? "" : "?"}\``)
    .join(", ");
}
