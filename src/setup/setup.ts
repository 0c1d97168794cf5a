import { stat } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { redactorFor } from "../answers/fence.ts";
import { inputOf, isOn } from "../runtime/settings-input.ts";
import { askInTerminal, QuestionInterrupted } from "../runtime/terminal.ts";
import { type CommandLine, didYouMean } from "../settings/command-line.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type SettingsInput, settingText } from "../settings/settings.ts";
import { SettingsError } from "../settings/value-types.ts";
import {
  bytesOf,
  checkWritable,
  type Entry,
  exchange,
  type Fields,
  isFileError,
  isFilledIn,
  isThere,
  type Launch,
  launchOf,
  linesChanged,
  makePrivate,
  modeForOthers,
  tableOf,
  targetOf,
  textOf,
  UnsafeChange,
} from "./config-file.ts";

import { HOSTS, type Host, hostsFound, isHere, OTHER_WORDS, programFound } from "./hosts.ts";
import {
  checkAsServer,
  commandLine,
  doctorLine,
  entryOf,
  givenKeys,
  keysHeld,
  openWords,
  withoutEmptied,
} from "./settings.ts";

const INTERRUPTED_CODE = 130;

interface Person {
  readonly say: (text: string) => void;
  /** Asks the person a question. Undefined if there is no terminal, or with `--yes`. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined;
  /** Whether the person agrees in advance (`--yes`). Keys are written only if `ask` is there and the person agrees. */
  readonly agreed: boolean;
  readonly launch: Launch;
}

/** Adds this server to a host's configuration, or removes it. */
export async function runSetup(line: CommandLine): Promise<number> {
  const agreed = isOn(line, "yes");
  const isRemoval = isOn(line, "remove");
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  try {
    const person = {
      say,
      ask: isTerminal && !agreed ? askInTerminal : undefined,
      agreed,
      launch: await launchOf(fileURLToPath(import.meta.url), process.platform, process.execPath),
    };
    return await (isRemoval ? remove : setUp)(line.words[0], inputOf(line), person);
  } catch (thrown) {
    if (!(thrown instanceof QuestionInterrupted)) throw thrown;
    say("\nNothing was written.");
    return INTERRUPTED_CODE;
  }
}

/**
 * Shows how the configuration of a host would change, and changes it if the person agrees. Exit code 1: the person did
 * not agree. Throws a SettingsError if the host is unknown, if its file cannot be changed, or if the settings are
 * invalid.
 */
export async function setUp(word: string | undefined, input: SettingsInput, person: Person): Promise<number> {
  const host = await hostOf(word, input);
  const file = await fileOf(host, input);
  // A host that is not found is not an error: it may be installed later or elsewhere.
  const found = await isHere(host, input);
  const byHand = (): string => {
    const entry = entryOf(host, input, person.launch);
    return `Add this by hand:\n${host.list.withFields("", host.list.fieldsOf(entry, undefined))}`;
  };
  return changeSafely(file, byHand, async (target) => {
    const bytes = await bytesOf(target);
    const old = host.list.entryIn((bytes && textOf(bytes)) ?? "");
    const asked = await withFolders(input, old, person.ask);
    const entry = entryOf(host, asked, person.launch);
    while (true) {
      const code = await change({ host, file: target, entry, input: asked, found }, person);
      if (code !== undefined) return code;
      person.say(`Another program has changed ${file}, so nothing was written yet. The new change:`);
    }
  });
}

/** Shows this server's entry, and removes it if the person agrees. Throws a SettingsError if that is not possible. */
export async function remove(word: string | undefined, input: SettingsInput, person: Person): Promise<number> {
  const host = await hostOf(word, input);
  return changeSafely(
    await fileOf(host, input),
    () => "Remove the entry by hand.",
    (target) => takeOut(host, target, input, person),
  );
}

/** Changes a file. If this is not possible safely, the error explains with `byHand` how to change the file by hand. */
async function changeSafely(
  file: string,
  byHand: () => string,
  work: (target: string) => Promise<number>,
): Promise<number> {
  try {
    return await work(await targetOf(file));
  } catch (thrown) {
    if (!(thrown instanceof UnsafeChange || isFileError(thrown))) throw thrown;
    throw new SettingsError(`${file} cannot be changed safely: ${thrown.message}. ${byHand()}`);
  }
}

/** Removes the entry, and writes a backup of the file into the same folder. Exit code 1: the person did not agree. */
async function takeOut(host: Host, file: string, input: SettingsInput, person: Person): Promise<number> {
  const { text: redacted } = redactorFor([...givenKeys(input).values()]);
  while (true) {
    const bytes = await bytesOf(file);
    const content = bytes && textOf(bytes);
    const old = content === undefined ? undefined : host.list.entryIn(content);
    if (content === undefined || old === undefined) {
      person.say(`${file} has no entry of this server.`);
      return 0;
    }
    await checkWritable(file);
    const after = host.list.without(content);
    person.say(`${host.title}: ${file}\n\n${redacted(linesChanged(host.list, { old }, person.launch.args))}\n`);
    if (!person.agreed && (await person.ask?.("Remove this?")) !== true) {
      person.say(undone(person, "Nothing was removed", "removes it without asking"));
      await reportOpen(file, keysHeld(old), person);
      return 1;
    }
    const exchanged = await exchange(file, { before: bytes, after, isPrivate: false });
    if (exchanged.done) {
      const held = keysHeld(old);
      const keys =
        held.length === 0 ? "" : `, which still contains ${held.join(" and ")}. Delete it when you no longer need it`;
      person.say(`Removed. Backup of the file: ${exchanged.kept}${keys}.\nRestart ${host.title}.`);
      return 0;
    }
    person.say(`Another program has changed ${file}, so nothing was removed yet. The new change:`);
  }
}

async function fileOf(host: Host, input: SettingsInput): Promise<string> {
  const instead = host.instead?.(input);
  return instead !== undefined && (await isThere(dirname(instead))) ? instead : host.file(input);
}

async function hostOf(given: string | undefined, input: SettingsInput): Promise<Host> {
  const word = given !== undefined && Object.hasOwn(OTHER_WORDS, given) ? OTHER_WORDS[given] : given;
  const host = word !== undefined && Object.hasOwn(HOSTS, word) ? HOSTS[word] : undefined;
  if (host !== undefined) return host;
  const all = Object.keys(HOSTS);
  if (word !== undefined)
    throw new SettingsError(`there is no host ${JSON.stringify(word)}; ${didYouMean(word, all, "hosts")}`);
  const found = await hostsFound(input);
  const here = found.length === 0 ? "none was found on this machine" : `found on this machine: ${found.join(", ")}`;
  throw new SettingsError(`setup needs a host. The hosts are ${all.join(", ")}; ${here}`);
}

/** Shows the change, asks, and writes the file. Undefined if another program has changed the file: call it again. */
async function change(task: Task, person: Person): Promise<number | undefined> {
  const { host, file, entry, input } = task;
  const bytes = await bytesOf(file);
  const content = bytes && textOf(bytes);
  const old = host.list.entryIn(content ?? "");
  const kept = old && withoutEmptied(old, input);
  const withKeys = (keys: Entry["values"]) => {
    const fields = host.list.fieldsOf({ ...entry, values: { ...entry.values, ...keys } }, kept);
    checkAsServer(fields, entry, input);
    return { fields, after: host.list.withFields(content ?? "", fields) };
  };
  const show = (fields: Fields): void => {
    const lines = linesChanged(host.list, { old, fresh: fields }, entry.args);
    const { text } = redactorFor([...givenKeys(input).values()]);
    person.say(`${host.title}: ${file}\n\n${text(lines)}\n`);
  };
  const first = withKeys({});
  const isThereAlready = first.after === content;
  if (isThereAlready) person.say(`${file} has this entry already.`);
  else {
    await checkWritable(file);
    show(first.fields);
  }
  const keys = await keysToWrite(task, person, tableOf(first.fields.env) ?? {});
  const { fields, after } = withKeys(keys);
  const held = keysHeld(fields);
  if (after === content) return keepPrivate(file, held, person);
  if (isThereAlready) show(fields);
  const mode = held.length > 0 ? await modeForOthers(file) : undefined;
  if (mode !== undefined) {
    person.say(
      `${file} will contain ${held.join(" and ")}. Others can read it now (mode ${mode.toString(8)}); afterwards, only you can.`,
    );
  }
  const names = Object.keys(keys).join(" and ");
  const question = names === "" ? "Write this?" : `Write this, with the value of ${names}?`;
  if (!person.agreed && (await person.ask?.(question)) !== true) {
    person.say(undone(person, "Nothing was written", "writes without asking, and without keys"));
    await reportOpen(file, keysHeld(old ?? {}), person);
    return 1;
  }
  const exchanged = await exchange(file, { before: bytes, after, isPrivate: held.length > 0 });
  if (!exchanged.done) return undefined;
  person.say(`Written.${exchanged.kept === undefined ? "" : ` Backup of the file: ${exchanged.kept}`}`);
  for (const line of await nextSteps(task, fields, keys)) person.say(line);
  return 0;
}

async function reportOpen(file: string, held: readonly string[], person: Person): Promise<void> {
  const mode = held.length > 0 ? await modeForOthers(file) : undefined;
  if (mode === undefined) return;
  person.say(`${openWords(file, held, mode)}: ${makePrivateLine(file)}`);
}

function makePrivateLine(file: string): string {
  return commandLine(["chmod", "600", file], process.platform);
}

/** Called if the entry stays the same. If other users can read keys in the file, offers to make the file private. */
async function keepPrivate(file: string, held: readonly string[], person: Person): Promise<number> {
  const mode = held.length > 0 ? await modeForOthers(file) : undefined;
  if (mode === undefined) return 0;
  person.say(`${openWords(file, held, mode)}.`);
  if (!person.agreed && (await person.ask?.("Make it readable by you only?")) !== true) {
    person.say(`To do it by hand: ${makePrivateLine(file)}`);
    return 1;
  }
  await makePrivate(file);
  person.say(`${file} can now be read by you only.`);
  return 0;
}

async function keysToWrite({ file, input }: Task, person: Person, env: Fields): Promise<Entry["values"]> {
  const keys: Record<string, string> = {};
  for (const [variable, key] of givenKeys(input)) {
    const held = env[variable];
    if (held === key) continue;
    const question = isFilledIn(held)
      ? `${file} has a different value for ${variable}. Replace it with the value from your environment?`
      : `Write the value of ${variable} into ${file}, as plain text?`;
    if ((await person.ask?.(question)) === true) keys[variable] = key;
  }
  return keys;
}

function undone({ ask }: Person, what: string, withYes: string): string {
  return ask === undefined ? `${what}: there is no terminal for the question. --yes ${withYes}.` : `${what}.`;
}

export interface Task {
  readonly host: Host;
  readonly file: string;
  readonly entry: Entry;
  readonly input: SettingsInput;
  readonly found: boolean;
}

/** Returns the next steps, with a first question to ask. `keys`: the secrets just written to the file. */
export async function nextSteps(
  { host, file, entry, input, found }: Task,
  fields: Fields,
  keys: Fields,
): Promise<readonly string[]> {
  const env = tableOf(fields.env) ?? {};
  const names = Object.keys(entry.references);
  const referred = names.filter((variable) => !isFilledIn(env[variable]));
  const kept = names.filter((variable) => isFilledIn(env[variable]) && !Object.hasOwn(keys, variable));
  const added = Object.keys(keys);
  const own = await ownCommand(host, entry, input);
  const withKeys = names.length === 0 ? "" : ` (with ${names.join(" and ")} in the environment)`;
  return [
    ...(found ? [] : [`${host.title} was not found on this machine. Check that it is installed for this account.`]),
    ...(added.length > 0 ? [`${file} now contains ${added.join(" and ")} as plain text.`] : []),
    ...(kept.length > 0 ? [`${file} still contains ${kept.join(" and ")}, as before.`] : []),
    ...(referred.length > 0 ? [missing(host, file, referred, input)] : []),
    ...(host.trust === undefined ? [] : [host.trust]),
    ...(hasNoFolder(fields) ? [folderLine(wordOf(host), await usualFolders(input))] : []),
    ...(own === undefined ? [] : [`Alternatively, this command of ${host.title} writes the same entry:\n${own}`]),
    `Restart ${host.title}. To check the same settings${withKeys}:\n${doctorLine(entry, fields, input.platform)}`,
    ...firstQuestion(env, names),
  ];
}

function wordOf(host: Host): string {
  return Object.keys(HOSTS).find((word) => HOSTS[word] === host) ?? "HOST";
}

/** Returns the command line with which the host's own, installed program adds the entry. Undefined if it cannot. */
async function ownCommand({ own }: Host, entry: Entry, input: SettingsInput): Promise<string | undefined> {
  const args = own?.add(entry);
  if (own === undefined || args === undefined || !(await programFound(own.program, input))) return undefined;
  return commandLine([own.program, ...args], input.platform);
}

function missing(host: Host, file: string, referred: readonly string[], { environment }: SettingsInput): string {
  const keys = referred.join(" and ");
  const absent = referred.filter((variable) => (environment[variable] ?? "").trim() === "");
  const sentence = WHERE_KEYS_COME_FROM[host.keysFrom](keys, host.title, file);
  if (host.keysFrom !== "environment" || absent.length === 0) return sentence;
  return `${sentence} Not set in this terminal: ${absent.join(" and ")}. Calls report each key that ${host.title} lacks.`;
}

const WHERE_KEYS_COME_FROM = {
  environment: (keys, host) => `${host} takes ${keys} from the environment that it is started in.`,
  question: (keys, host) => `${host} asks for ${keys} when it first starts the server, and keeps the answer.`,
  file: (keys, host, file) => `Now write ${keys} into ${file}: ${host} reads keys from this file.`,
} as const satisfies Record<Host["keysFrom"], (keys: string, host: string, file: string) => string>;

/** Returns a first question to the agent. A live service cannot list targetings, so its question contains an ID. */
function firstQuestion(env: Fields, references: readonly string[]): readonly string[] {
  const isLive = (address: string, key: string): boolean =>
    isFilledIn(env[address]) && (isFilledIn(env[key]) || references.includes(key));
  if (env.TARGETING_MCP_MODE !== "sandbox" && isLive("TARGETING_API_URL", "TARGETING_API_KEY")) {
    return ['Then ask: "What is in the targeting 01…?", with an ID from the console.'];
  }
  if (env.TARGETING_MCP_MODE !== "sandbox" && isLive("EVENT_API_URL", "EVENT_APP_KEY")) {
    return ['Then ask: "Which events can I send, and what does a purchase need?"'];
  }
  if (isFilledIn(env.TARGETING_MCP_SANDBOX_URL) || isFilledIn(env.TARGETING_MCP_MODE)) {
    return ['The server uses a sandbox. Then ask: "Create a targeting News with the options Sports and Weather."'];
  }
  return [
    "You can try the server now: it uses a sandbox with the data of a small shop. For the real service, run " +
      "this command again with --targeting-api-url and --event-api-url.",
    'Then ask: "Which targetings are there, and what is in them?"',
  ];
}

const { variable, flag } = SETTINGS.allowedDirs;

function hasNoFolder(fields: Fields): boolean {
  return !isFilledIn(tableOf(fields.env)?.[variable]);
}

/** Asks in which folders the server may use files, unless the settings or the entry already name some. */
async function withFolders(
  input: SettingsInput,
  old: Fields | undefined,
  ask: ((question: string) => Promise<boolean>) | undefined,
): Promise<SettingsInput> {
  const isSaid = settingText(SETTINGS.allowedDirs, input) !== undefined || (old !== undefined && !hasNoFolder(old));
  if (isSaid || ask === undefined || flag === undefined) return input;
  const allowed: string[] = [];
  for (const folder of await usualFolders(input)) {
    if (await ask(`May files in ${folder} be read, and new ones be saved there?`)) allowed.push(folder);
  }
  if (allowed.length === 0) return input;
  return { ...input, flags: new Map([...input.flags, [flag, allowed.join(delimiter)]]) };
}

async function usualFolders({ home, environment }: SettingsInput): Promise<readonly string[]> {
  const named = [environment.XDG_DOWNLOAD_DIR, environment.XDG_DOCUMENTS_DIR];
  const usual = ["Downloads", "Documents"].map((name, at) => named[at] || join(home, name));
  const found = await Promise.all(usual.map(async (folder) => ((await isFolder(folder)) ? [folder] : [])));
  return found.flat();
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

function folderLine(word: string, folders: readonly string[]): string {
  const shown = folders.length === 0 ? "FOLDER" : folders.join(delimiter);
  return `No folder is allowed, so files cannot be read or saved. To allow some: targeting-mcp setup ${word} --allowed-dirs="${shown}"`;
}
