import * as z from "zod";
import { trimContextId } from "../spec/context-ids.ts";
import { arrivedEvent } from "./event-log.ts";
import { eventFindings } from "./event-verdict.ts";
import { DEFAULT_PROJECT } from "./keys.ts";
import {
  dropOption,
  dropTargeting,
  moveStoredOption,
  type Project,
  putAudience,
  putOption,
  putTargeting,
  removeAudience,
  renameStoredOption,
  renameStoredTargeting,
  replaceContexts,
} from "./rules/store.ts";
import {
  campaignSchema,
  keySchema,
  namedSchema,
  optionSchema,
  productSchema,
  putCampaign,
  putProduct,
} from "./state-dump.ts";
import { projectNamed, type World } from "./world.ts";

const list = <T extends z.ZodType>(entry: T) => z.array(entry).default([]);

/**
 * A seed is stored without validation or write lock, as if from the web console (management-api 4.2 rule 4). An entry
 * with the `_id` of an existing object changes that object; any other entry creates one.
 */
export const seedSchema = z.strictObject({
  project: z.string().min(1).default(DEFAULT_PROJECT),
  /** The API reports that the project does not exist. Its data remains. */
  deleted: z.boolean().optional(),
  keys: list(keySchema.omit({ project: true })),
  appKeys: list(z.string().min(1)),
  audience: list(namedSchema.partial({ _id: true })),
  targetings: list(namedSchema.partial({ _id: true })),
  options: list(
    optionSchema.extend({
      _id: namedSchema.shape._id.optional(),
      type: optionSchema.shape.type.default("atomic"),
      contexts: z.array(z.string().transform(trimContextId)).default([]),
    }),
  ),
  products: list(productSchema.partial({ _id: true })),
  campaigns: list(campaignSchema.partial({ _id: true })),
  /** `at` is now by default. */
  events: list(z.strictObject({ at: z.iso.datetime({ offset: true }).optional(), event: z.unknown() })),
  /** Removing a targeting removes its options. */
  remove: list(z.string()),
});
export type SeedInput = z.input<typeof seedSchema>;
export type Seed = z.output<typeof seedSchema>;

/** Stores a seed, or throws a RangeError if an option names a missing targeting or parent. Returns the IDs. */
export function plantSeed(world: World, seed: Seed) {
  const project = projectNamed(world, seed.project);
  checkOptions(project, seed);
  const { newId } = world.sources;
  const at = new Date(world.sources.now()).toISOString();
  for (const id of seed.remove) removeAnything(project, id);
  if (seed.deleted !== undefined) project.deleted = seed.deleted;
  for (const key of seed.keys) world.seededKeys.set(key.key, { ...key, project: project.name });
  for (const key of seed.appKeys) world.appKeys.add(key);
  const planted = {
    project: project._id,
    audience: seed.audience.map(({ _id = newId(), name }) => {
      putAudience(project, { _id, name });
      return _id;
    }),
    targetings: seed.targetings.map(({ _id = newId(), name }) => {
      const known = project.targetings.get(_id);
      if (known === undefined) putTargeting(project, { _id, name, createdAt: at, updatedAt: at });
      else renameStoredTargeting(project, known, name, at);
      return _id;
    }),
    options: seed.options.map((option) => plantOption(project, { ...option, _id: option._id ?? newId() }, at)),
    products: seed.products.map(({ _id = newId(), ...product }) => putProduct(project, { _id, ...product })),
    campaigns: seed.campaigns.map(({ _id = newId(), ...campaign }) => putCampaign(project, { _id, ...campaign })),
  };
  for (const { at: arrivedAt = at, event } of seed.events) {
    const about = { at: new Date(arrivedAt).toISOString(), text: JSON.stringify(event), body: event };
    world.events.add(arrivedEvent({ ...about, findings: eventFindings(event) }));
  }
  world.changed();
  return planted;
}

/** Checks that the parent of each option exists before the option is added: in the project, or earlier in the seed. */
function checkOptions(project: Project, seed: Seed): void {
  const removed = new Set(seed.remove);
  const targetings = new Set(seed.targetings.map(({ _id }) => _id));
  for (const id of project.targetings.keys()) if (!removed.has(id)) targetings.add(id);
  const earlier = new Map<string, { readonly targeting: string; readonly parent: string | undefined }>();
  const stays = (id: string) => !removed.has(id) && !removed.has(project.options.get(id)?.targeting ?? "");
  const placeOf = (id: string) => earlier.get(id) ?? (stays(id) ? project.options.get(id) : undefined);
  for (const { _id, name, targeting, parent } of seed.options) {
    if (!targetings.has(targeting)) {
      throw new RangeError(`option "${name}" names targeting ${targeting}, which is not in the project`);
    }
    if (_id !== undefined && (placeOf(_id)?.targeting ?? targeting) !== targeting) {
      throw new RangeError(`option "${name}" (${_id}) is in another targeting than ${targeting}, and cannot leave it`);
    }
    if (parent !== undefined && (placeOf(parent)?.targeting !== targeting || isWithin(placeOf, parent, _id))) {
      throw new RangeError(`option "${name}" names parent ${parent}, which is not in its targeting or is below it`);
    }
    if (_id !== undefined) earlier.set(_id, { targeting, parent });
  }
}

function isWithin(
  placeOf: (id: string) => { readonly parent: string | undefined } | undefined,
  id: string,
  ancestor: string | undefined,
): boolean {
  for (let at: string | undefined = id; at !== undefined; at = placeOf(at)?.parent) {
    if (at === ancestor) return true;
  }
  return false;
}

function plantOption(project: Project, seeded: Seed["options"][number] & { _id: string }, at: string): string {
  const known = project.options.get(seeded._id);
  if (known === undefined) {
    putOption(project, { ...seeded, createdAt: at, updatedAt: at });
    return seeded._id;
  }
  renameStoredOption(project, known, seeded.name);
  moveStoredOption(project, known, seeded.parent);
  replaceContexts(project, known, new Set(seeded.contexts));
  known.exposeChildren = seeded.exposeChildren ?? known.exposeChildren;
  known.updatedAt = at;
  return seeded._id;
}

function removeAnything(project: Project, id: string): void {
  const targeting = project.targetings.get(id);
  if (targeting !== undefined) dropTargeting(project, targeting);
  const option = project.options.get(id);
  if (option !== undefined) {
    for (const childId of [...option.children]) {
      const child = project.options.get(childId);
      if (child !== undefined) moveStoredOption(project, child, undefined);
    }
    dropOption(project, option);
  }
  removeAudience(project, id);
  project.products.delete(id);
  project.campaigns.delete(id);
}
