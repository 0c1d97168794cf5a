import * as z from "zod";
import { SettingsError } from "../settings/error.ts";

/** What the server is called in every configuration. */
const ENTRY_NAME = "targeting";

/** How a host starts the server. */
export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  /** Values by variable. */
  readonly values: Readonly<Record<string, string>>;
  /** Variables whose values the person's environment has, and what stands for each in the file. */
  readonly references: Readonly<Record<string, string>>;
}

/**
 * The command that starts the server: `program`, where that is a clone's own, or else the published package. On Windows
 * npx is a script, which only a shell starts.
 */
export function commandOn(platform: NodeJS.Platform, program?: string): Pick<Entry, "command" | "args"> {
  if (program !== undefined) return { command: "node", args: [program] };
  const args = ["-y", "targeting-mcp"];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

const jsonObject = z.record(z.string(), z.unknown());
const texts = z.record(z.string(), z.string());

/** What sets one JSON configuration apart from another. */
interface JsonForm {
  /** Fields of every entry. */
  readonly more?: Readonly<Record<string, string>>;
  /** The host asks for keys: each that is referred to stands among the `inputs` of the file. */
  readonly asks?: boolean;
}

/**
 * Puts an entry into a JSON file, among the servers under `section`. An entry that is there already keeps what is not
 * named now, such as a key that a person filled in. The function throws a SettingsError where the file is not plain JSON.
 */
export function jsonConfiguration(section: string, { more = {}, asks = false }: JsonForm = {}) {
  return (content: string, { command, args, values, references }: Entry): string => {
    const file = readJson(content.trim() === "" ? "{}" : content);
    const servers = objectIn(file, section);
    const old = objectIn(servers, ENTRY_NAME);
    const env = { ...references, ...(texts.safeParse(old.env).data ?? {}), ...values };
    const entry = { ...old, ...more, command, args, ...(Object.keys(env).length > 0 && { env }) };
    const asked = asks ? Object.keys(references).filter((variable) => env[variable] === references[variable]) : [];
    const all = { ...file, ...withInputs(file, asked), [section]: { ...servers, [ENTRY_NAME]: entry } };
    return `${JSON.stringify(all, null, /^\t/m.test(content) ? "\t" : 2)}\n`;
  };
}

/** What a host that asks for a key calls the answer. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** The questions of the file, with one for each variable; those that are there already stay as they are. */
function withInputs(file: Readonly<Record<string, unknown>>, variables: readonly string[]) {
  if (variables.length === 0) return {};
  const inputs = z.array(jsonObject).safeParse(file.inputs ?? []);
  if (!inputs.success) throw unsafe('what stands under "inputs" is no list of objects');
  const missing = variables.filter((variable) => !inputs.data.some(({ id }) => id === inputId(variable)));
  const added = missing.map((variable) => {
    return { type: "promptString", id: inputId(variable), description: variable, password: true };
  });
  return { inputs: [...inputs.data, ...added] };
}

function readJson(content: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(content.replace(/^\uFEFF/, ""));
  } catch {
    throw unsafe("it is not plain JSON (comments perhaps)");
  }
  const file = jsonObject.safeParse(value);
  if (!file.success) throw unsafe("it does not hold one JSON object");
  return file.data;
}

function objectIn(parent: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  if (!Object.hasOwn(parent, name)) return {};
  const found = jsonObject.safeParse(parent[name]);
  if (!found.success) throw unsafe(`what stands under ${JSON.stringify(name)} is no object`);
  return found.data;
}

/** The first start downloads the package. */
const FIRST_START_S = 60;

/** Puts an entry at the end of a TOML file and leaves the rest as it is. Throws a SettingsError where there is one already. */
export function tomlConfiguration(content: string, { command, args, values, references }: Entry): string {
  const table = `mcp_servers.${ENTRY_NAME}`;
  if (new RegExp(`^\\s*\\[\\s*mcp_servers\\s*\\.\\s*["']?${ENTRY_NAME}["']?\\s*[.\\]]`, "m").test(content)) {
    throw unsafe(`it has a [${table}] already; remove that first`);
  }
  if (/^\s*mcp_servers\s*[.=]/m.test(content)) throw unsafe("its mcp_servers are not written as tables");
  // A JSON text is a TOML text as well.
  const list = (all: readonly string[]) => `[${all.map((one) => JSON.stringify(one)).join(", ")}]`;
  const names = Object.keys(references);
  const pairs = Object.entries(values).map(([variable, value]) => `${variable} = ${JSON.stringify(value)}`);
  const lines = [
    `[${table}]`,
    `command = ${JSON.stringify(command)}`,
    `args = ${list(args)}`,
    `startup_timeout_sec = ${FIRST_START_S}`,
    ...(names.length > 0 ? [`env_vars = ${list(names)}`] : []),
    ...(pairs.length > 0 ? ["", `[${table}.env]`, ...pairs] : []),
  ];
  const before = content.trim() === "" ? "" : `${content.trimEnd()}\n\n`;
  return `${before}${lines.join("\n")}\n`;
}

function unsafe(why: string): SettingsError {
  return new SettingsError(`cannot be changed safely: ${why}`);
}
