import { copyFile, mkdir, readFile, realpath, rename, stat, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { redactorFor } from "../render/redact.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SettingsError } from "../settings/error.ts";
import { folders, path, toggle } from "../settings/forms.ts";
import { givenText } from "../settings/given.ts";
import { SETTING_LIST, SETTINGS, type Setting } from "../settings/registry.ts";
import type { SettingsInput } from "../settings/settings.ts";
import { inputOf } from "./settings-input.ts";
import { commandOn, type Entry } from "./setup-entry.ts";
import { HOSTS, type Host } from "./setup-hosts.ts";

/** How `setUp` reaches the person. */
export interface Person {
  readonly say: (text: string) => void;
  /** Asks a question; undefined where nobody can answer. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined;
  /** The person has agreed to everything but keys. */
  readonly agreed: boolean;
  /** The built command that runs, where it is a clone's; undefined where it was installed as a package. */
  readonly clone?: string | undefined;
}

/** Writes this server into a host's configuration as the command line says; gives the exit code. */
export async function runSetup(line: CommandLine): Promise<number> {
  const agreed = optionOf(line, "yes", toggle) ?? false;
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  return setUp(line.words[0], inputOf(line), {
    say: (text) => process.stdout.write(`${text}\n`),
    ask: isTerminal && !agreed ? askInTerminal : undefined,
    agreed,
    clone: cloneOf(fileURLToPath(import.meta.url)),
  });
}

/** The command of the clone that a built file belongs to; undefined where that is an installed package. */
export function cloneOf(file: string): string | undefined {
  return /[\\/]node_modules[\\/]/.test(file) ? undefined : join(dirname(file), "main.js");
}

/**
 * Shows how the host's configuration would change, and changes it when the person agrees; the file as it was is kept
 * beside it. Settings that are given are written too, keys only after a question. Gives the exit code: 1 when nothing
 * was written for want of a yes. Throws a SettingsError where the host is unknown or its file cannot be changed.
 */
export async function setUp(word: string | undefined, input: SettingsInput, person: Person): Promise<number> {
  const host = hostOf(word);
  const file = await targetOf(await fileOf(host, input));
  const content = await contentOf(file);
  const entry = await entryOf(host, file, input, person);
  const changed = changedContent(host, file, content ?? "", entry);
  if (changed === content) {
    person.say(`${file} has this entry already.`);
    return 0;
  }
  person.say(`${host.title}: ${file}\n\n${linesChanged(content ?? "", changed, input)}\n`);
  const yes = person.agreed || (await person.ask?.("Write this?")) === true;
  if (!yes) {
    person.say("Nothing was written. (--yes writes without asking, and without keys.)");
    return 1;
  }
  const kept = content === undefined ? undefined : await keepBackup(file);
  await replaceFile(file, changed);
  person.say(`Written.${kept === undefined ? "" : ` The file as it was: ${kept}`}`);
  const referred = Object.keys(entry.references).join(" and ");
  if (referred !== "") person.say(WHERE_KEYS_COME_FROM[host.keysFrom](referred, host.title, file));
  person.say(`Restart ${host.title}. targeting-mcp doctor checks the settings.`);
  return 0;
}

const WHERE_KEYS_COME_FROM = {
  environment: (keys, host) => `${host} takes ${keys} from the environment that it is started in.`,
  question: (keys, host) => `${host} asks for ${keys} when it first starts the server, and keeps the answer.`,
  file: (keys, host, file) => `Now put ${keys} into ${file}: ${host} reads keys there.`,
} as const satisfies Record<Host["keysFrom"], (keys: string, host: string, file: string) => string>;

function hostOf(word: string | undefined): Host {
  const host = word !== undefined && Object.hasOwn(HOSTS, word) ? HOSTS[word] : undefined;
  if (host !== undefined) return host;
  const wrong = word === undefined ? "setup needs a host" : `there is no host ${JSON.stringify(word)}`;
  throw new SettingsError(`${wrong}; the hosts are ${Object.keys(HOSTS).join(", ")}`);
}

async function fileOf(host: Host, input: SettingsInput): Promise<string> {
  const instead = host.instead?.(input);
  const isThere = instead !== undefined && (await ifThere(() => stat(dirname(instead)))) !== undefined;
  return isThere ? instead : host.file(input);
}

/** Behind a link stands the file that is meant. */
async function targetOf(file: string): Promise<string> {
  return (await ifThere(() => realpath(file))) ?? file;
}

function contentOf(file: string): Promise<string | undefined> {
  return ifThere(() => readFile(file, "utf8"));
}

async function ifThere<Value>(look: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await look();
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw new SettingsError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

/** What is to be written: every setting that is given. A key is referred to, unless the person wants it written. */
async function entryOf(host: Host, file: string, input: SettingsInput, { ask, clone }: Person): Promise<Entry> {
  const values: Record<string, string> = {};
  const references: Record<string, string> = {};
  for (const setting of SETTING_LIST) {
    const { variable, secret, anyCase } = setting;
    const given = givenText(setting, input);
    if (anyCase === true) continue;
    if (!secret) {
      if (given !== undefined) values[variable] = writtenText(setting, given.text);
      continue;
    }
    const isWritten =
      given !== undefined && (await ask?.(`Write the value of ${variable} into ${file}, readable there?`)) === true;
    if (isWritten) values[variable] = given.text;
    else if (given !== undefined || isNeeded(variable, input)) references[variable] = host.reference(variable);
  }
  return { ...commandOn(input.platform, clone), values, references };
}

/** A text as it is understood from any folder. Throws a SettingsError where the server would not take it. */
function writtenText({ variable, form }: Setting<unknown>, text: string): string {
  if (form.read(text) === undefined) throw new SettingsError(`${variable} must be ${form.words}`, variable);
  if (form === path) return path.read(text) ?? text;
  return form === folders ? (folders.read(text) ?? []).join(delimiter) : text;
}

/** A key is needed where the address of its API is given. */
function isNeeded(variable: string, input: SettingsInput): boolean {
  const address = { TARGETING_API_KEY: SETTINGS.targetingApiUrl, EVENT_APP_KEY: SETTINGS.eventApiUrl };
  if (variable !== "TARGETING_API_KEY" && variable !== "EVENT_APP_KEY") return false;
  return givenText(address[variable], input) !== undefined;
}

function changedContent(host: Host, file: string, content: string, entry: Entry): string {
  try {
    return host.withEntry(content, entry);
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    const block = host.withEntry("", entry);
    throw new SettingsError(`${file} ${thrown.message}. Put this in by hand:\n${redacted(block, entry.values)}`);
  }
}

/** The lines that go and those that come, between what stays at the beginning and at the end. */
function linesChanged(before: string, after: string, input: SettingsInput): string {
  const [old, fresh] = [before, after].map((text) => (text === "" ? [] : text.trimEnd().split("\n")));
  if (old === undefined || fresh === undefined) return "";
  const most = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < most && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const marked = [
    ...old.slice(start, old.length - end).map((line) => `- ${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+ ${line}`),
  ].join("\n");
  return redacted(hideKeys(marked), input.environment);
}

/** Whatever stands for a key in a JSON line is not shown, unless it is a reference. */
function hideKeys(text: string): string {
  const secrets = SETTING_LIST.filter(({ secret }) => secret).map(({ variable }) => variable);
  return text.replace(new RegExp(`("(?:${secrets.join("|")})"\\s*:\\s*")(?!\\$\\{)[^"]*`, "g"), "$1[redacted]");
}

function redacted(text: string, values: Readonly<Record<string, string | undefined>>): string {
  const keys = SETTING_LIST.filter(({ secret }) => secret).map(({ variable }) => values[variable]);
  return redactorFor(keys.filter((key) => key !== undefined)).text(text);
}

async function keepBackup(file: string): Promise<string> {
  const kept = `${file}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}.backup`;
  await copyFile(file, kept);
  return kept;
}

/** Replaces a file in one step, so that no host ever reads half of it. */
async function replaceFile(file: string, content: string): Promise<void> {
  const fresh = `${file}.new`;
  await mkdir(dirname(file), { recursive: true });
  const mode = (await ifThere(() => stat(file)))?.mode ?? 0o600;
  await writeFile(fresh, content, { mode });
  await rename(fresh, file);
}

function askInTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve) => {
    // An input that ends answers nothing, which is no yes.
    terminal.once("close", () => resolve(false));
    terminal.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      terminal.close();
    });
  });
}
