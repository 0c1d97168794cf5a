import { createHash } from "node:crypto";
import * as z from "zod";
import { FileError } from "../platform/files.ts";
import { parseJson } from "../platform/json.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import type { OptionType } from "../spec/records.ts";

export const ulid = z.string().refine(isUlid);

export const baseLine = z.strictObject({
  _id: ulid,
  name: z.string(),
  parent: ulid.nullable(),
  type: z.enum(["atomic", "collection"]),
  exposeChildren: z.boolean().optional(),
  /** The number of the option's Context IDs. `digest`: their digest as returned by `digestOfContexts`. */
  contexts: z.int().min(0),
  digest: z.string(),
});

export type BaseOption = z.infer<typeof baseLine>;

const baseHead = z.strictObject({
  version: z.literal(1),
  targeting: z.strictObject({ _id: ulid, name: z.string() }),
  exportedAt: z.string(),
});

/**
 * The state of a targeting when it was exported to a file. By comparing it with the file and with the service, a plan
 * finds out which side has changed a value.
 */
export interface Base {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly exportedAt: string;
  readonly options: ReadonlyMap<string, BaseOption>;
}

/** Returns the path of the base that belongs to a file: `spring.base.ndjson` for `spring.yaml`, in the same folder. */
export function basePathOf(path: string): string {
  return `${path.replace(/\.[^./\\]+$/, "")}.base.ndjson`;
}

export function baseOf({ targeting, options }: ServiceTargeting, exportedAt: string): Base {
  const { _id, name } = targeting;
  return { targeting: { _id, name }, exportedAt, options: new Map(options.map((one) => [one._id, baseOptionOf(one)])) };
}

export function baseOptionOf({ _id, name, parent, type, exposeChildren, contexts, digest }: ServiceOption): BaseOption {
  return { _id, name, parent, type, exposeChildren, contexts: contexts.length, digest };
}

/** Yields the text of a base: a line for the targeting, then a line for each option. */
export function* baseText({ targeting, exportedAt, options }: Base): Generator<string> {
  yield `${JSON.stringify({ version: 1, targeting, exportedAt })}\n`;
  for (const option of options.values()) yield `${JSON.stringify(option)}\n`;
}

/** Reads a base. Throws a FileError that names `path` and the first invalid line. */
export function readBase(text: string, path: string): Base {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const head = baseHead.safeParse(parseJson(lines[0] ?? "")).data;
  if (head === undefined) throw noBase(path, 1);
  const options = new Map<string, BaseOption>();
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    const option = baseLine.safeParse(parseJson(line)).data;
    if (option === undefined || options.has(option._id)) throw noBase(path, index + 1);
    options.set(option._id, option);
  }
  return { targeting: head.targeting, exportedAt: head.exportedAt, options };
}

function noBase(path: string, line: number): FileError {
  return new FileError(
    `${JSON.stringify(path)} is not a base that export wrote: line ${line} cannot be read`,
    "Do not edit bases by hand. Restore it from version control, or export the targeting again: list_options with saveTo and a new file.",
  );
}

export interface WrittenOption {
  readonly _id: string;
  readonly fields: readonly BaseField[] | "created" | "deleted";
}

type BaseField = "name" | "parent" | "exposeChildren" | "contexts";

/**
 * Returns a base with the current values of the fields that an applied plan wrote. All other values stay as exported:
 * if they were updated, the next plan would see changes by others as changes of the file, and revert them.
 */
export function renewedBase(
  base: Base,
  there: ServiceTargeting,
  wrote: readonly WrittenOption[],
  targetingRenamed: boolean,
): Base {
  const now = new Map(there.options.map((option) => [option._id, option]));
  const options = new Map(base.options);
  for (const { _id, fields } of wrote) {
    const option = now.get(_id);
    const before = options.get(_id);
    if (fields === "deleted") {
      if (option === undefined) options.delete(_id);
    } else if (option === undefined) continue;
    else if (fields === "created") options.set(_id, baseOptionOf(option));
    else if (before !== undefined) options.set(_id, renewed(before, baseOptionOf(option), fields));
  }
  return { ...base, ...(targetingRenamed && { targeting: there.targeting }), options };
}

function renewed(before: BaseOption, now: BaseOption, fields: readonly BaseField[]): BaseOption {
  const next = { ...before };
  for (const field of fields) {
    if (field === "name") next.name = now.name;
    if (field === "parent") next.parent = now.parent;
    if (field === "exposeChildren" && now.exposeChildren !== undefined) next.exposeChildren = now.exposeChildren;
    if (field === "contexts") Object.assign(next, { contexts: now.contexts, digest: now.digest });
  }
  return next;
}

export interface ServiceOption {
  readonly _id: string;
  readonly name: string;
  readonly type: OptionType;
  /** The ID of the option's group. Null for a top-level option. */
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
  readonly contextCount?: number | undefined;
  readonly digest: string;
}

/** A targeting as read from the service. Options keep the order of the service, but groups precede sub-options. */
export interface ServiceTargeting {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: readonly ServiceOption[];
}

/** Returns a digest of Context IDs (SHA-256 in base64url). The order of the IDs does not matter. */
export function digestOfContexts(contexts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(contexts.toSorted())).digest("base64url");
}
