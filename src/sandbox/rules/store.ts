import { LIMITS } from "../../spec/limits.ts";
import type { OptionRecord, OptionType, TargetingRecord } from "../../spec/records.ts";

export interface StoredTargeting {
  readonly _id: string;
  name: string;
  readonly createdAt: string;
  updatedAt: string;
  readonly names: IdIndex;
  readonly topLevel: OrderedIds;
  optionCount: number;
}

export interface StoredOption {
  readonly _id: string;
  readonly targeting: string;
  name: string;
  readonly type: OptionType;
  parent: string | undefined;
  exposeChildren: boolean;
  contexts: readonly string[];
  contextBytes: number;
  /** The IDs of the sub-options. One empty list serves all options that never had a sub-option, which saves memory. */
  children: OrderedIds;
  readonly createdAt: string;
  updatedAt: string;
}

/** How an ad product requires an option: Required Include or Required Exclude (management-api 1). */
type RequiredAs = "include" | "exclude";

/** An ad product: options it requires, by ID, and targetings of which it requires all new top-level options. */
export interface AdProduct {
  readonly _id: string;
  readonly name: string;
  readonly required: Map<string, RequiredAs>;
  readonly newOptions: ReadonlyMap<string, RequiredAs>;
}

/** A campaign. Until it ends, its top-level options cannot move and, if approved, its targetings cannot be deleted. */
interface Campaign {
  readonly _id: string;
  readonly approved: boolean;
  readonly ended: boolean;
  readonly options: Set<string>;
}

/** An audience targeting. The API does not show it, but no other targeting can have its name (management-api 1). */
type AudienceTargeting = Pick<AdProduct, "_id" | "name">;

/** The content of a project. Only this file changes targetings and the names, groups and Context IDs of options. */
export interface Project {
  readonly _id: string;
  readonly name: string;
  deleted: boolean;
  readonly targetings: Map<string, StoredTargeting>;
  readonly options: Map<string, StoredOption>;
  readonly audience: Map<string, AudienceTargeting>;
  readonly products: Map<string, AdProduct>;
  readonly campaigns: Map<string, Campaign>;
  readonly targetingNames: IdIndex;
  /** By Context ID: the IDs of the groups that have it themselves. */
  readonly groupContexts: IdIndex;
  contextCount: number;
}

export function emptyProject(_id: string, name: string): Project {
  return {
    _id,
    name,
    deleted: false,
    targetings: new Map(),
    options: new Map(),
    audience: new Map(),
    products: new Map(),
    campaigns: new Map(),
    targetingNames: new Map(),
    groupContexts: new Map(),
    contextCount: 0,
  };
}

export function putAudience(project: Project, audience: AudienceTargeting): void {
  removeAudience(project, audience._id);
  project.audience.set(audience._id, audience);
  indexId(project.targetingNames, audience.name, audience._id);
}

export function removeAudience(project: Project, id: string): void {
  const audience = project.audience.get(id);
  if (audience === undefined) return;
  project.audience.delete(id);
  unindexId(project.targetingNames, audience.name, id);
}

export function putTargeting(
  project: Project,
  record: { readonly _id: string; readonly name: string; readonly createdAt: string; readonly updatedAt: string },
): StoredTargeting {
  const targeting: StoredTargeting = { ...record, names: new Map(), topLevel: new OrderedIds(), optionCount: 0 };
  project.targetings.set(targeting._id, targeting);
  indexId(project.targetingNames, targeting.name, targeting._id);
  return targeting;
}

export function renameStoredTargeting(project: Project, targeting: StoredTargeting, name: string, at: string): void {
  if (name === targeting.name) return;
  unindexId(project.targetingNames, targeting.name, targeting._id);
  indexId(project.targetingNames, name, targeting._id);
  targeting.name = name;
  targeting.updatedAt = at;
}

export function dropTargeting(project: Project, targeting: StoredTargeting): void {
  for (const id of [...targeting.topLevel]) {
    const option = project.options.get(id);
    if (option !== undefined) dropTree(project, option);
  }
  project.targetings.delete(targeting._id);
  unindexId(project.targetingNames, targeting.name, targeting._id);
}

function dropTree(project: Project, option: StoredOption): void {
  for (const id of [...option.children]) {
    const child = project.options.get(id);
    if (child !== undefined) dropTree(project, child);
  }
  dropOption(project, option);
}

type NewStoredOption = Pick<StoredOption, "_id" | "targeting" | "name" | "type" | "createdAt" | "updatedAt"> &
  Partial<Pick<StoredOption, "parent">> & {
    readonly exposeChildren?: boolean | undefined;
    /** The Context IDs, already trimmed. */
    readonly contexts: Iterable<string>;
  };

export function putOption(project: Project, record: NewStoredOption): StoredOption {
  const { _id, name, type, parent, exposeChildren = false, createdAt, updatedAt } = record;
  const targeting = project.targetings.get(record.targeting);
  const option: StoredOption = {
    _id,
    // All options of a targeting share one copy of its ID, which saves memory: each item of a request has its own.
    targeting: targeting?._id ?? record.targeting,
    name,
    type,
    parent,
    exposeChildren,
    contexts: [],
    contextBytes: 0,
    children: NO_CHILDREN,
    createdAt,
    updatedAt,
  };
  project.options.set(_id, option);
  if (targeting !== undefined) {
    indexId(targeting.names, option.name, option._id);
    targeting.optionCount += 1;
  }
  siblings(project, option)?.add(option._id);
  replaceContexts(project, option, new Set(record.contexts));
  return option;
}

/** Removes an option, also from ad products and campaigns. Its sub-options must have been moved or removed before. */
export function dropOption(project: Project, option: StoredOption): void {
  replaceContexts(project, option, new Set());
  siblings(project, option)?.remove(option._id);
  const targeting = project.targetings.get(option.targeting);
  if (targeting !== undefined) {
    unindexId(targeting.names, option.name, option._id);
    targeting.optionCount -= 1;
  }
  for (const product of project.products.values()) product.required.delete(option._id);
  for (const campaign of project.campaigns.values()) campaign.options.delete(option._id);
  project.options.delete(option._id);
}

export function renameStoredOption(project: Project, option: StoredOption, name: string): void {
  const names = project.targetings.get(option.targeting)?.names;
  if (names === undefined) return;
  unindexId(names, option.name, option._id);
  indexId(names, name, option._id);
  option.name = name;
}

/** Moves an option into the group `parent`, or to the top level if `parent` is undefined. */
export function moveStoredOption(project: Project, option: StoredOption, parent: string | undefined): void {
  siblings(project, option)?.remove(option._id);
  option.parent = parent;
  siblings(project, option)?.add(option._id);
}

/** Replaces the Context IDs of an option. `contexts` must be trimmed already. */
export function replaceContexts(project: Project, option: StoredOption, contexts: ReadonlySet<string>): void {
  if (option.type === "collection") {
    const before = new Set(option.contexts);
    for (const value of before) if (!contexts.has(value)) unindexId(project.groupContexts, value, option._id);
    for (const value of contexts) if (!before.has(value)) indexId(project.groupContexts, value, option._id);
  }
  project.contextCount += contexts.size - option.contexts.length;
  option.contexts = [...contexts];
  option.contextBytes = contextBytesOf(contexts);
}

export function contextBytesOf(contexts: Iterable<string>): number {
  let bytes = 0;
  for (const value of contexts) bytes += Buffer.byteLength(value, "utf8");
  return bytes;
}

function siblings(project: Project, option: StoredOption): OrderedIds | undefined {
  if (option.parent === undefined) return project.targetings.get(option.targeting)?.topLevel;
  const parent = project.options.get(option.parent);
  if (parent?.children === NO_CHILDREN) parent.children = new OrderedIds();
  return parent?.children;
}

/** The IDs of objects by name or Context ID. Objects from the web console can share one (management-api 4.2 rule 4). */
type IdIndex = Map<string, string | readonly string[]>;

function indexId(index: IdIndex, text: string, id: string): void {
  const held = idsBy(index, text);
  index.set(text, held.length === 0 ? id : [...held, id]);
}

function unindexId(index: IdIndex, text: string, id: string): void {
  const others = idsBy(index, text, id);
  if (others.length === 0) index.delete(text);
  else index.set(text, others);
}

export function idsBy(index: IdIndex, text: string, except?: string): readonly string[] {
  const found = index.get(text) ?? [];
  const held = typeof found === "string" ? [found] : found;
  return except === undefined ? held : held.filter((id) => id !== except);
}

/** Returns a targeting as the API shows it (its fields are assumed). */
export function targetingRecordOf(targeting: StoredTargeting): TargetingRecord {
  const { _id, name, optionCount, createdAt, updatedAt } = targeting;
  return { _id, name, optionCount, createdAt, updatedAt };
}

/** Returns an option as the API shows it, with its first 50 sub-options and their number (management-api 2.1, 8.1). */
export function optionRecordOf(option: StoredOption): OptionRecord {
  const { _id, targeting, name, type, parent, exposeChildren, children, createdAt, updatedAt } = option;
  return {
    _id,
    targeting,
    name,
    type,
    ...(parent === undefined ? {} : { parent }),
    contextCount: option.contexts.length,
    ...(type === "collection"
      ? { exposeChildren, children: children.page(0, LIMITS.childrenShown.value), childCount: children.size }
      : {}),
    createdAt,
    updatedAt,
  };
}

const CHUNK = 512;

/** IDs in the order of creation, which is alphabetical. They are stored in chunks, so that a change moves few IDs. */
export class OrderedIds implements Iterable<string> {
  readonly #chunks: string[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(id: string): void {
    const place = this.#chunkOf(id);
    const chunk = this.#chunks[place];
    if (chunk === undefined) {
      this.#chunks.push([id]);
      this.#size = 1;
      return;
    }
    const at = lowerBound(chunk.length, (index) => (chunk[index] ?? "") < id);
    if (chunk[at] === id) return;
    chunk.splice(at, 0, id);
    this.#size += 1;
    if (chunk.length > CHUNK) this.#chunks.splice(place + 1, 0, chunk.splice(CHUNK / 2));
  }

  remove(id: string): void {
    const place = this.#chunkOf(id);
    const chunk = this.#chunks[place];
    if (chunk === undefined) return;
    const at = lowerBound(chunk.length, (index) => (chunk[index] ?? "") < id);
    if (chunk[at] !== id) return;
    chunk.splice(at, 1);
    this.#size -= 1;
    if (chunk.length === 0) this.#chunks.splice(place, 1);
  }

  page(offset: number, limit: number): string[] {
    const page: string[] = [];
    let skip = offset;
    for (const chunk of this.#chunks) {
      if (page.length >= limit) break;
      if (skip < chunk.length) page.push(...chunk.slice(skip, skip + limit - page.length));
      skip = Math.max(0, skip - chunk.length);
    }
    return page;
  }

  *[Symbol.iterator](): Iterator<string> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  #chunkOf(id: string): number {
    const chunks = this.#chunks;
    const found = lowerBound(chunks.length, (place) => (chunks[place]?.at(-1) ?? "") < id);
    return Math.max(0, Math.min(found, chunks.length - 1));
  }
}

const NO_CHILDREN = new OrderedIds();

/** Returns the first index from 0 to `length` for which `before` is false (binary search). */
function lowerBound(length: number, before: (position: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
