import * as z from "zod";
import { readTextFile } from "../platform/files.ts";
import { messageOf } from "../platform/text.ts";
import { trimContextId, ulidSource } from "../spec/names-and-contexts.ts";
import { DEFAULT_PROJECT } from "./callers.ts";
import { arrivedEvent, eventFindings } from "./logs.ts";
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
 * Data for a sandbox. Like changes in the web console, it is stored without the API's checks and without the write lock
 * (management-api 4.2 rule 4). An entry with the `_id` of an existing object changes it, except for the type of an
 * option; any other entry creates an object.
 */
export const seedSchema = z.strictObject({
  project: z.string().min(1).default(DEFAULT_PROJECT),
  /** If true, the API reports that the project does not exist, although its data stays stored. */
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
  /** Events to store. `at`: when they arrived. Default: now. */
  events: list(z.strictObject({ at: z.iso.datetime({ offset: true }).optional(), event: z.unknown() })),
  /** The IDs of objects to remove. A targeting goes with its options; the sub-options of a group become top-level. */
  remove: list(z.string()),
});
type SeedInput = z.input<typeof seedSchema>;
export type Seed = z.output<typeof seedSchema>;

/** Stores a seed and returns the IDs of its objects. Throws a RangeError if an option's targeting or group is wrong. */
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

/** Checks that each option's targeting and group exist, in the project or earlier in the seed. Throws a RangeError. */
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
      throw new RangeError(
        `option "${name}" (${_id}) is not in targeting ${targeting}, and an option cannot move to another targeting`,
      );
    }
    if (parent !== undefined && (placeOf(parent)?.targeting !== targeting || isWithin(placeOf, parent, _id))) {
      throw new RangeError(
        `option "${name}" names parent ${parent}, which must be in the same targeting, but not the option itself or below it`,
      );
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

const MINUTE_MS = 60_000;

/** Returns the sample shop, with some wrong events. `newId` returns ascending ULIDs. `now`: ms since 1970. */
function sampleSeed(newId: () => string, now: number): SeedInput {
  const [categories, brands, campaigns] = [newId(), newId(), newId()];
  const options: NonNullable<SeedInput["options"]>[number][] = [];
  const add = (targeting: string, name: string, contexts: readonly string[] = [], parent?: string): string => {
    const _id = newId();
    options.push({ _id, targeting, name, contexts: [...contexts], ...(parent !== undefined && { parent }) });
    return _id;
  };
  const addGroup = (targeting: string, name: string, children: Readonly<Record<string, readonly string[]>>): void => {
    const _id = newId();
    options.push({ _id, targeting, name, type: "collection", exposeChildren: true });
    for (const [child, contexts] of Object.entries(children)) add(targeting, child, contexts, _id);
  };

  addGroup(categories, "Clothing", {
    "T-Shirts": ["category-tshirts", "category-tshirts-sale"],
    Jackets: ["category-jackets"],
    Jeans: ["category-jeans", "category-jeans-sale"],
  });
  addGroup(categories, "Shoes", {
    Sneakers: ["category-sneakers", "category-sneakers-sale", "category-running"],
    Boots: ["category-boots"],
  });
  const bags = add(categories, "Bags", ["category-bags", "category-backpacks"]);
  add(categories, "Gift Cards");

  const northwind = add(brands, "Northwind", ["brand-northwind"]);
  add(brands, "Contoso", ["brand-contoso", "brand-contoso-kids"]);
  add(brands, "Fabrikam", ["brand-fabrikam"]);
  // The same brand in another spelling, as an example of data that needs cleaning up.
  add(brands, "fabrikam", ["brand-fabrikam-outlet"]);

  addGroup(campaigns, "Seasons", {
    "Summer Sale": ["page-summer-sale", "category-tshirts-sale"],
    "Winter Sale": ["page-winter-sale"],
  });
  add(campaigns, "New Arrivals", ["page-new"]);
  add(campaigns, "Clearance 2023");

  return {
    targetings: [
      { _id: categories, name: "Shop Categories" },
      { _id: brands, name: "Shop Brands" },
      { _id: campaigns, name: "Shop Campaigns" },
    ],
    options,
    products: [{ name: "Home Banner", required: { include: [bags] } }],
    campaigns: [{ options: [northwind, bags] }],
    events: DAY.map(([minutesAgo, event]) => ({ at: new Date(now - minutesAgo * MINUTE_MS).toISOString(), event })),
  };
}

const SNEAKER = { item_id: "sku-100", item_name: "Runner", item_category: "Sneakers", brand: "Northwind", price: 89 };
const SHIRT = { item_id: "sku-200", item_name: "Basic Shirt", item_category: "T-Shirts", brand: "Contoso", price: 19 };

function purchase(uid: string, platform: string, tx_id: string, items: readonly object[]) {
  return { uid, eventName: "purchase", platform, tx_id, currency: "USD", items };
}

const DAY: readonly (readonly [minutesAgo: number, event: Readonly<Record<string, unknown>>])[] = [
  [1430, { uid: "shopper-1", eventName: "app_open", platform: "ios" }],
  [1428, { uid: "shopper-1", eventName: "view_item", platform: "ios", ...SNEAKER }],
  [1425, { uid: "shopper-1", eventName: "add_to_cart", platform: "ios", ...SNEAKER, quantity: 1 }],
  [1421, { uid: "shopper-1", eventName: "begin_checkout", platform: "ios", items: [{ ...SNEAKER, quantity: 1 }] }],
  [1418, purchase("shopper-1", "ios", "order-5001", [{ ...SNEAKER, quantity: 1 }])],
  [1200, { uid: "shopper-2", eventName: "sign_up", platform: "web", method: "email" }],
  [1195, { uid: "shopper-2", eventName: "page_view", platform: "web", page_id: "home" }],
  [1190, { uid: "shopper-2", eventName: "page_view", platform: "web", page_id: "summer-sale" }],
  [1180, { uid: "shopper-2", eventName: "add_to_wishlist", platform: "web", ...SHIRT }],
  // The case of the event name is wrong, so the service answers "ok" but drops the event.
  [900, { uid: "shopper-3", eventName: "Purchase", platform: "android", tx_id: "order-5002", currency: "USD" }],
  [880, { uid: "shopper-3", eventName: "view_item", platform: "android", ...SHIRT }],
  [610, { uid: "shopper-4", eventName: "app_open", platform: "android" }],
  [605, { uid: "shopper-4", eventName: "add_to_cart", platform: "android", ...SHIRT, quantity: 2 }],
  // The purchase lacks `tx_id`, so the service answers "ok" but drops the event.
  [600, { uid: "shopper-4", eventName: "purchase", platform: "android", currency: "USD", items: [SHIRT] }],
  [420, { uid: "shopper-5", eventName: "push_clicks", platform: "ios", campaign_id: "summer-sale" }],
  [419, { uid: "shopper-5", eventName: "page_view", platform: "ios", page_id: "summer-sale" }],
  [300, { uid: "shopper-2", eventName: "product_view", platform: "web", item_id: "sku-100" }],
  [240, { eventName: "app_open", platform: "ios" }],
  [120, { uid: "shopper-6", eventName: "app_open", platform: "web" }],
  [118, { uid: "shopper-6", eventName: "click", platform: "web", element_id: "banner-home", target_url: "/sale" }],
  [110, { uid: "shopper-6", eventName: "view_item", platform: "web", ...SNEAKER }],
  [
    95,
    purchase("shopper-6", "web", "order-5003", [
      { ...SNEAKER, quantity: 1 },
      { ...SHIRT, quantity: 3 },
    ]),
  ],
];

type SeedChoice = "none" | "sample" | { readonly file: string };

export class SeedError extends Error {}

/** Reads a seed (docs/reference/sandbox.md). Targetings without an ID get one. Throws a SeedError if reading fails. */
export async function readSeed(choice: SeedChoice, now: number = Date.now()): Promise<Seed | undefined> {
  if (choice === "none") return undefined;
  const newId = ulidSource(() => now, Math.random);
  if (choice === "sample") return seedSchema.parse(sampleSeed(newId, now));
  const { file } = choice;
  const result = seedSchema.safeParse(await contentOf(file));
  if (!result.success) throw new SeedError(`${file} is not a seed of a sandbox: ${z.prettifyError(result.error)}`);
  const seed = result.data;
  return { ...seed, targetings: seed.targetings.map(({ _id = newId(), name }) => ({ _id, name })) };
}

async function contentOf(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readTextFile(file));
  } catch (thrown) {
    const why = messageOf(thrown);
    throw new SeedError(`${file} cannot be read as a seed of a sandbox: ${why}`, { cause: thrown });
  }
}
