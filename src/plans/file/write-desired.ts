import { BYTE_ORDER_MARK, csvLine } from "../../files/delimited.ts";
import { OPTION_HEADER, optionCells, type SheetFormat, type WrittenRow } from "../../files/written-rows.ts";
import { groupedBy } from "../../platform/by-key.ts";
import { FileError } from "../../platform/files.ts";
import { thousands } from "../../platform/text.ts";
import type { ServiceOption, ServiceTargeting } from "../base.ts";
import { type DesiredFormat, MAX_YAML_OPTIONS } from "./read-desired.ts";

const SCHEMA_ADDRESS = "https://unpkg.com/targeting-mcp/docs/desired-state.schema.json";

/** Yields a targeting as file text, always in the same form. Throws a FileError if it is too large for YAML. */
export function* desiredText(there: ServiceTargeting, format: DesiredFormat): Generator<string> {
  if (format === "csv") yield* csvText(there);
  else if (format === "ndjson") yield* ndjsonText(there);
  else if (format === "json") yield jsonText(there);
  else yield* yamlText(there);
}

function* topLevel({
  options,
}: ServiceTargeting): Generator<{ readonly option: ServiceOption; readonly children: readonly ServiceOption[] }> {
  const inside = groupedBy(options, ({ parent }) => parent);
  for (const option of inside.get(null) ?? []) yield { option, children: inside.get(option._id) ?? [] };
}

function sorted({ contexts }: ServiceOption): readonly string[] {
  return contexts.toSorted();
}

function jsonText(there: ServiceTargeting): string {
  const child = (option: ServiceOption) => ({ _id: option._id, name: option.name, contexts: sorted(option) });
  const options = [...topLevel(there)].map(({ option, children }) => ({
    _id: option._id,
    name: option.name,
    exposeChildren: option.exposeChildren,
    contexts: sorted(option),
    ...(option.type === "collection" && { children: children.map(child) }),
  }));
  const { _id, name } = there.targeting;
  return `${JSON.stringify({ $schema: SCHEMA_ADDRESS, version: 1, targeting: { _id, name }, options }, null, 2)}\n`;
}

function* ndjsonText(there: ServiceTargeting): Generator<string> {
  const { _id, name } = there.targeting;
  const names = new Map(there.options.map((option) => [option._id, option.name]));
  yield `${JSON.stringify({ version: 1, targeting: { _id, name } })}\n`;
  for (const option of there.options) {
    const row = {
      _id: option._id,
      name: option.name,
      parentName: option.parent === null ? null : (names.get(option.parent) ?? null),
      type: option.type,
      exposeChildren: option.exposeChildren,
      contexts: sorted(option),
    };
    yield `${JSON.stringify(row)}\n`;
  }
}

function* csvText(there: ServiceTargeting): Generator<string> {
  yield BYTE_ORDER_MARK;
  for (const { cells } of sheetOf(there, { format: "csv", delimiter: "," })) yield csvLine(cells);
}

export function* sheetOf(there: ServiceTargeting, form: SheetFormat): Generator<WrittenRow> {
  const names = new Map(there.options.map((option) => [option._id, option.name]));
  yield OPTION_HEADER;
  for (const option of there.options) {
    const groupName = option.parent === null ? undefined : names.get(option.parent);
    const isGroup = option.type === "collection";
    yield* optionCells({ ...option, isGroup, groupName, contexts: sorted(option) }, form);
  }
}

function* yamlText(there: ServiceTargeting): Generator<string> {
  if (there.options.length > MAX_YAML_OPTIONS) {
    throw new FileError(
      `the targeting has ${thousands(there.options.length)} options, but a YAML file may have at most ${thousands(MAX_YAML_OPTIONS)}`,
      "Name the file .json, .ndjson or .csv.",
    );
  }
  const { _id, name } = there.targeting;
  yield `# yaml-language-server: $schema=${SCHEMA_ADDRESS}\nversion: 1\ntargeting:\n`;
  yield `  _id: ${scalar(_id)}\n  name: ${scalar(name)}\n`;
  yield there.options.length === 0 ? "options: []\n" : "options:\n";
  for (const { option, children } of topLevel(there)) {
    yield yamlOption(option, "  ");
    if (option.type === "atomic") continue;
    yield children.length === 0 ? "    children: []\n" : "    children:\n";
    for (const child of children) yield yamlOption(child, "      ");
  }
}

function yamlOption(option: ServiceOption, indent: string): string {
  const lines = [`_id: ${scalar(option._id)}`, `name: ${scalar(option.name)}`];
  if (option.exposeChildren !== undefined) lines.push(`exposeChildren: ${option.exposeChildren}`);
  const ids = sorted(option).map(scalar);
  const inline = `contexts: [${ids.join(", ")}]`;
  if (inline.length <= LONGEST_LINE) lines.push(inline);
  else lines.push("contexts:", ...ids.map((id) => `  - ${id}`));
  return `${indent}- ${lines.join(`\n${indent}  `)}\n`;
}

const LONGEST_LINE = 100;

/** Matches texts that need no quotation marks in YAML, even in brackets. `RESERVED`: words that need them anyway. */
const PLAIN =
  /^[A-Za-z\uAC00-\uD7A3\u3131-\u318E](?:[A-Za-z0-9_ \-\uAC00-\uD7A3\u3131-\u318E]*[A-Za-z0-9_\uAC00-\uD7A3\u3131-\u318E])?$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
/** Characters that must be escaped in YAML, but that JSON does not escape. */
const UNPRINTED = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

function scalar(text: string): string {
  if (PLAIN.test(text) && !RESERVED.test(text)) return text;
  return JSON.stringify(text).replace(UNPRINTED, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
