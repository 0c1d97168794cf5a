import type { StaleField } from "../changes/rows/entries.ts";
import { thousands } from "../platform/text.ts";
import type { Reason } from "../runs/outcome.ts";
import { isUlid } from "../spec/ulid.ts";
import { quoteUntrusted } from "./fence.ts";

/** What happened to an object, and what to do about it: two sentences of ours. */
export interface Message {
  readonly message: string;
  /** What `message` begins with where all reasons of its code begin alike: it is said once for several of them. */
  readonly shared?: string;
  readonly remedy: string;
}

/** What a reason holds besides its code. */
export type Detail = Readonly<Record<string, unknown>>;

/** Who reads a text: an agent, which calls tools; or a person, who presses buttons of the page or types commands. */
export type Reader = "agent" | "page" | "terminal";
/** A text that is the same for every reader, or one for each. */
export type Text = string | Readonly<Record<Reader, string>>;

/** What a code means, to each of its readers. */
export interface Entry extends Omit<Message, "message" | "remedy"> {
  readonly message: Text;
  readonly remedy: Text;
}

/** The entry of a code: as it is, or made of what a reason holds. */
export type Sentence = Entry | ((detail: Detail, reason: Reason) => Entry);

/** A text that names tools and arguments, and the same for people, who have none. */
export function texts(agent: string, people: string): Text {
  return { agent, page: people, terminal: people };
}

/** A text that says what finishes the run. */
export function resuming(write: (resume: string) => string): Text {
  return {
    agent: write("Call resume_run with this runId."),
    page: write("Press Resume run."),
    terminal: write("Run targeting-mcp apply with the ID of the run."),
  };
}

/** A text that says to make the call again. */
export function startingOver(write: (again: string) => string): Text {
  return {
    agent: write("make the call again."),
    page: write("ask the agent to make the change again."),
    terminal: write("run the command again."),
  };
}

/** A text for its reader. */
export function textFor(text: Text, reader: Reader): string {
  return typeof text === "string" ? text : text[reader];
}

/** A remedy without the sentence that names `resume_run`, where a next step has the whole call. */
export function withoutResume(remedy: string): string {
  return remedy.replace(/(?: Then:| When that time is over:)? ?Call resume_run with this runId\./, "").trim();
}
/** What makes a run wait longer for others. */
export const MORE_PATIENT = "A larger TARGETING_MCP_RETRY_BUDGET_MS retries longer.";

/** Where people set what this server needs. */
export const WHERE_SET = "It is set in the env of this server's entry in the host's configuration.";

/** A number for people. */
export const number = (value: unknown, fallback: number | string = "?"): string =>
  typeof value === "number" ? thousands(value) : String(fallback);

/** So many of something, as a sentence counts it. */
export const many = (value: unknown, one: string): string => `${number(value)} ${one}${value === 1 ? "" : "s"}`;
/** A foreign text, quoted. */
export const text = (value: unknown): string => (typeof value === "string" ? quoteUntrusted(value) : "?");

/** Up to three entries of a list, as text; what is left out is counted. */
export function list(value: unknown, most = 3): string {
  const entries = Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
  const more = entries.length > most ? ` and ${entries.length - most} more` : "";
  return entries.slice(0, most).map(plainOrShown).join(", ") + more;
}

/** IDs stand as they are; anything else from outside is shown with care. */
function plainOrShown(entry: string): string {
  return isUlid(entry) ? entry : quoteUntrusted(entry);
}

/** An earlier item of the same call, as a person counts: its line in a file, else its number. */
export function earlierItem({ duplicateOfIndex, duplicateOfLine }: Detail): string {
  if (typeof duplicateOfLine === "number") return `line ${duplicateOfLine}`;
  return `item ${typeof duplicateOfIndex === "number" ? duplicateOfIndex + 1 : "?"}`;
}

/** How much is there already, and how much more fits, where that was read before. */
export function there({ there, limit }: Detail): string {
  if (typeof there !== "number") return "";
  const left = typeof limit === "number" ? Math.max(0, limit - there) : undefined;
  const fits = left === undefined ? "" : `, so ${number(left)} more ${left === 1 ? "fits" : "fit"}`;
  return `; it has ${number(there)}${fits}`;
}

/** Why it is so, in brackets. */
export function because({ because, reason }: Detail): string {
  const why = typeof reason === "string" ? reason : because;
  return typeof why === "string" ? ` (${plainWords(why)})` : "";
}

/** Our own codes and reasons are plain words; anything else is shown with care. */
function plainWords(why: string): string {
  return /^[A-Za-z0-9_ ,.:'-]{1,120}$/.test(why) ? why : quoteUntrusted(why);
}

/** What the service said. */
export function saying({ messages }: Detail): string {
  return Array.isArray(messages) && messages.length > 0 ? `, saying ${list(messages, 2)}` : "";
}

/** How something differs from what was planned. */
export function staleWords({ field, planned, service }: Detail): string {
  if (field === "deleted") return "it no longer exists";
  if (field === "contexts") return plannedAndThere(planned, "Context ID", service);
  if (field === "subOptions") return plannedAndThere(planned, "sub-option", service);
  if (field === "name" && planned === undefined) return "another option has its name";
  const value = (side: unknown): string => (side === null ? "the top level" : text(String(side)));
  const now = service === undefined ? "" : `, but is ${value(service)}`;
  return `its ${field === "parent" ? "group" : String(field)} was expected to be ${value(planned)}${now}`;
}

function plannedAndThere(planned: unknown, one: string, there: unknown): string {
  return `it was expected to have ${many(planned, one)}, but has ${number(there)}`;
}

const MOST_STALE = 5;

/** What has changed since planning, object by object; names are escaped. */
export function staleText(fields: readonly StaleField[]): string {
  const picked = fields
    .slice(0, MOST_STALE)
    .map((field) => `${quoteUntrusted(field.name)}: ${staleWords({ ...field })}`);
  return picked.join("; ") + (fields.length > picked.length ? `; and ${fields.length - picked.length} more` : "");
}
