import * as z from "zod";
import { readTextFile, replaceFile, unlessMissing } from "../platform/files.ts";
import { parseJson } from "../platform/json.ts";
import { messageOf } from "../platform/text.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { SCOPES } from "./callers.ts";
import { emptyProject, type Project, putAudience, putOption, putTargeting, type StoredOption } from "./rules/store.ts";
import { projectNamed, resetProjects, type World } from "./world.ts";

const ulid = z.string().refine(isUlid, { error: "must be a ULID" });
const ids = z.array(z.string());
const sides = z.strictObject({ include: ids.default([]), exclude: ids.default([]) });
const times = { createdAt: z.string(), updatedAt: z.string() };

export const productSchema = z.strictObject({
  _id: ulid,
  name: z.string(),
  required: sides.prefault({}),
  newOptions: sides.prefault({}),
});

/** A campaign. `options`: the IDs of the options that it includes or excludes. */
export const campaignSchema = z.strictObject({
  _id: ulid,
  approved: z.boolean().default(true),
  ended: z.boolean().default(false),
  options: ids,
});

export const keySchema = z.strictObject({
  key: z.string().min(1),
  project: z.string().optional(),
  scopes: z.array(z.enum(SCOPES)).optional(),
  revoked: z.boolean().optional(),
});

export const namedSchema = z.strictObject({ _id: ulid, name: z.string() });

export const optionSchema = z.strictObject({
  _id: ulid,
  targeting: z.string(),
  name: z.string(),
  type: z.enum(["atomic", "collection"]),
  parent: z.string().optional(),
  exposeChildren: z.boolean().optional(),
  contexts: z.array(z.string()),
});

const projectSchema = z.strictObject({
  _id: ulid,
  name: z.string().min(1),
  deleted: z.boolean(),
  targetings: z.array(namedSchema.extend(times)),
  options: z.array(optionSchema.extend(times)),
  audience: z.array(namedSchema),
  products: z.array(productSchema),
  campaigns: z.array(campaignSchema),
});

/** The saved state of a sandbox: without events, requests, faults, app keys, and keys built in or from the settings. */
export const dumpSchema = z.strictObject({
  version: z.literal(1),
  keys: z.array(keySchema),
  projects: z.array(projectSchema),
});
type Dump = z.output<typeof dumpSchema>;
type ProjectDump = z.output<typeof projectSchema>;

/** Returns the state of a sandbox. The objects of a project are in the order of their IDs. */
export function dumpWorld(world: World): Dump {
  return {
    version: 1,
    keys: [...world.seededKeys.values()].map(({ scopes, ...key }) => ({
      ...key,
      ...(scopes !== undefined && { scopes: [...scopes] }),
    })),
    projects: [...world.projects.values()].map(dumpProject),
  };
}

export function dumpProject(project: Project): ProjectDump {
  return {
    _id: project._id,
    name: project.name,
    deleted: project.deleted,
    targetings: byId(
      [...project.targetings.values()].map(({ _id, name, createdAt, updatedAt }) => ({
        _id,
        name,
        createdAt,
        updatedAt,
      })),
    ),
    options: byId([...project.options.values()].map(optionDump)),
    audience: byId([...project.audience.values()]),
    products: byId(
      [...project.products.values()].map(({ required, newOptions, ...product }) => ({
        ...product,
        required: sidesOf(required),
        newOptions: sidesOf(newOptions),
      })),
    ),
    campaigns: byId(
      [...project.campaigns.values()].map((campaign) => ({ ...campaign, options: [...campaign.options].sort() })),
    ),
  };
}

function optionDump(option: StoredOption): ProjectDump["options"][number] {
  const { _id, targeting, name, type, parent, exposeChildren, contexts, createdAt, updatedAt } = option;
  return {
    _id,
    targeting,
    name,
    type,
    ...(parent === undefined ? {} : { parent }),
    ...(type === "collection" ? { exposeChildren } : {}),
    contexts: [...contexts],
    createdAt,
    updatedAt,
  };
}

function byId<T extends { readonly _id: string }>(records: readonly T[]): T[] {
  return [...records].sort((a, b) => (a._id < b._id ? -1 : 1));
}

function sidesOf(settings: ReadonlyMap<string, "include" | "exclude">): z.output<typeof sides> {
  const on = (side: "include" | "exclude") => [...settings].flatMap(([id, as]) => (as === side ? [id] : [])).sort();
  return { include: on("include"), exclude: on("exclude") };
}

function settingsOf({ include, exclude }: z.output<typeof sides>): Map<string, "include" | "exclude"> {
  return new Map([
    ...include.map((id): [string, "include"] => [id, "include"]),
    ...exclude.map((id): [string, "exclude"] => [id, "exclude"]),
  ]);
}

export function putProduct(
  project: Project,
  { required, newOptions, ...product }: z.output<typeof productSchema>,
): string {
  const settings = { required: settingsOf(required), newOptions: settingsOf(newOptions) };
  project.products.set(product._id, { ...product, ...settings });
  return product._id;
}

export function putCampaign(project: Project, campaign: z.output<typeof campaignSchema>): string {
  project.campaigns.set(campaign._id, { ...campaign, options: new Set(campaign.options) });
  return campaign._id;
}

/** Replaces the state of a sandbox by a dump. Throws a RangeError if the dump contradicts itself. */
export function loadWorld(world: World, dump: Dump): void {
  const projects = dump.projects.map(loadProject);
  resetProjects(world);
  for (const project of projects) world.projects.set(project.name, project);
  for (const key of dump.keys) {
    world.seededKeys.set(key.key, key);
    if (key.project !== undefined) projectNamed(world, key.project);
  }
}

function loadProject(dump: ProjectDump): Project {
  const project = emptyProject(dump._id, dump.name);
  project.deleted = dump.deleted;
  for (const targeting of dump.targetings) putTargeting(project, targeting);
  loadOptions(project, dump.options);
  for (const audience of dump.audience) putAudience(project, audience);
  for (const product of dump.products) putProduct(project, product);
  for (const campaign of dump.campaigns) putCampaign(project, campaign);
  return project;
}

/** Stores options, groups before their sub-options. A sub-option that was moved into its group can be older than it. */
function loadOptions(project: Project, options: ProjectDump["options"]): void {
  let waiting = options;
  while (waiting.length > 0) {
    const later: ProjectDump["options"] = [];
    for (const option of waiting) {
      if (!project.targetings.has(option.targeting)) {
        throw new RangeError(`option ${option._id} is in targeting ${option.targeting}, which is not in the state`);
      }
      const parent = option.parent === undefined ? undefined : project.options.get(option.parent);
      if (parent !== undefined && parent.targeting !== option.targeting) {
        throw new RangeError(`option ${option._id} has a parent in another targeting: ${parent._id}`);
      }
      if (option.parent === undefined || parent !== undefined) putOption(project, option);
      else later.push(option);
    }
    if (later.length === waiting.length) {
      throw new RangeError(`option ${later[0]?._id} has a parent that is not in the state: ${later[0]?.parent}`);
    }
    waiting = later;
  }
}

/** How long after a change the data file is written, in milliseconds. It then contains later changes, too. */
const GATHER_MS = 300;
/** The mode of the data file, which the umask restricts. Keys from the settings, which are secrets, are not in it. */
const DATA_FILE_MODE = 0o666;

export class DataFileError extends Error {}

/** Reads a dump. Undefined if there is no file. Throws a DataFileError if it cannot be read or is no dump. */
export async function readDataFile(file: string): Promise<Dump | undefined> {
  const text = await unlessMissing(readTextFile(file)).catch((cause: unknown) => {
    throw new DataFileError(`${file} cannot be read: ${messageOf(cause)}`, { cause });
  });
  if (text === undefined) return undefined;
  const value = parseJson(text);
  if (value === undefined) throw noState(file, "it is not JSON");
  const result = dumpSchema.safeParse(value);
  if (!result.success) throw noState(file, z.prettifyError(result.error));
  return result.data;
}

export function noState(file: string, why: string, cause?: unknown): DataFileError {
  return new DataFileError(`${file} does not contain the state of a sandbox: ${why}`, { cause });
}

export function dataFile(file: string, dump: () => Dump) {
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let failure: DataFileError | undefined;

  function write(): void {
    timer = undefined;
    writing = writing
      .then(() => replaceFile(file, JSON.stringify(dump()), DATA_FILE_MODE))
      .catch((error: unknown) => {
        failure = new DataFileError(`${file} cannot be written: ${messageOf(error)}`, { cause: error });
      });
  }

  return {
    touch(): void {
      timer ??= setTimeout(write, GATHER_MS).unref();
    },
    /** Writes the state now. Throws a DataFileError if this write or an earlier one failed. */
    async flush(): Promise<void> {
      clearTimeout(timer);
      write();
      await writing;
      if (failure !== undefined) throw failure;
    },
  };
}
