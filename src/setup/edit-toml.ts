import { isDeepStrictEqual } from "node:util";
import { parse, stringify } from "smol-toml";
import { ENTRY_NAME, type Entry, type Fields, type ServerList, tableIn, tableOf, UnsafeChange } from "./entry.ts";

const SECTION = "mcp_servers";

/** How long Codex waits for the server to start, in seconds. The first start downloads the package. */
const FIRST_START_S = 60;

/** Edits the list of servers in a TOML file. Refuses a list in which this server's entry is not a table of its own. */
export const tomlList: ServerList = {
  entryIn: (content) => {
    const servers = tableIn(tomlIn(content), SECTION);
    return Object.hasOwn(servers, ENTRY_NAME) ? tableIn(servers, ENTRY_NAME) : undefined;
  },
  fieldsOf,
  withFields,
  without,
};

function fieldsOf({ command, args, values, references }: Entry, old: Fields = {}): Fields {
  const env = { ...tableIn(old, "env"), ...values };
  const handedOn: readonly unknown[] = Array.isArray(old.env_vars) ? old.env_vars : [];
  const missing = Object.keys(references).filter((name) => !Object.hasOwn(env, name) && !handedOn.includes(name));
  const names = [...handedOn, ...missing];
  return {
    startup_timeout_sec: FIRST_START_S,
    ...Object.fromEntries(Object.entries(old).filter(([name]) => !REMOTE_FIELDS.includes(name))),
    command,
    args,
    ...(names.length > 0 && { env_vars: names }),
    ...(Object.keys(env).length > 0 && { env }),
  };
}

/** Fields of a server over HTTP. Codex refuses an entry that has one of them and also a command. */
const REMOTE_FIELDS = ["url", "bearer_token_env_var", "http_headers", "env_http_headers"];

function withFields(content: string, fields: Fields): string {
  const before = tomlIn(content);
  const servers = tableIn(before, SECTION);
  if (Object.hasOwn(servers, ENTRY_NAME)) {
    if (areSame(servers[ENTRY_NAME], fields)) return content;
    return withFields(without(content), fields);
  }
  const { command, args, startup_timeout_sec, ...rest } = fields;
  const ordered = { command, args, startup_timeout_sec, ...rest };
  const eol = content.includes("\r\n") ? "\r\n" : "\n";
  const block = stringify({ [SECTION]: { [ENTRY_NAME]: ordered } }).trimEnd();
  const kept = content === "" || content.endsWith("\n") ? content : content + eol;
  const after = `${kept}${/\S/.test(content) ? eol : ""}${block.replaceAll("\n", eol)}${eol}`;
  const expected = { ...before, [SECTION]: { ...servers, [ENTRY_NAME]: fields } };
  if (areSame(tomlOf(after), expected)) return after;
  throw new UnsafeChange(`its ${SECTION} must be written as tables`);
}

/** Matches the header of this server's table, or of a table inside it. */
const OWN_HEADER = /^\s*\[\s*(["']?)mcp_servers\1\s*\.\s*(["']?)targeting\2\s*(?:\.[^\]]*)?\]/;

function without(content: string): string {
  const before = tomlIn(content);
  const { [ENTRY_NAME]: entry, ...others } = tableIn(before, SECTION);
  if (entry === undefined) return content;
  const after = linesWithoutOurs(content.split(/(?<=\n)/)).join("");
  const left = tomlOf(after);
  const expected = { ...before, [SECTION]: others };
  if (left !== undefined && areSame({ ...left, [SECTION]: tableIn(left, SECTION) }, expected)) return after;
  throw new UnsafeChange(`its [${SECTION}.${ENTRY_NAME}] must be written as a separate table`);
}

/**
 * Removes this server's table and the empty line before it. Comments and empty lines at its end stay: they belong to
 * the table that follows.
 */
function linesWithoutOurs(lines: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let between: string[] = [];
  let isOurs = false;
  for (const line of lines) {
    const isHeader = /^\s*\[/.test(line);
    const begins = isHeader && OWN_HEADER.test(line);
    if (begins && !isOurs && kept.at(-1)?.trim() === "") kept.pop();
    if (isHeader && !begins) kept.push(...between);
    if (isHeader) isOurs = begins;
    const isBetween = isOurs && /^\s*(?:#.*)?$/.test(line.trimEnd());
    if (isBetween) between.push(line);
    else between = [];
    if (!isOurs) kept.push(line);
  }
  return [...kept, ...(between.some((line) => line.trim() !== "") ? between : [])];
}

function tomlIn(content: string): Fields {
  const found = tomlOf(content);
  if (found === undefined) throw new UnsafeChange("it is not valid TOML");
  return found;
}

function tomlOf(content: string): Fields | undefined {
  try {
    return tableOf(parse(content, { integersAsBigInt: "asNeeded" }));
  } catch {
    // An invalid file has no value. The parser's message is not shown: it quotes the file, which may contain keys.
    return undefined;
  }
}

/** Returns whether two values are equal. Compares copies, because parsed tables have no prototype. */
function areSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(structuredClone(one), structuredClone(other));
}
