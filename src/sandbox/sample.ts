import { readFile } from "node:fs/promises";
import * as z from "zod";
import { ulidSource } from "../spec/ulid.ts";
import { type Seed, type SeedInput, seedSchema } from "./seed.ts";

const MINUTE_MS = 60_000;

/**
 * Returns a small shop with some wrong events. `newId` returns ascending ULIDs; `now` is in milliseconds since 1970.
 */
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
  // The same brand with another spelling, as an example of data to clean up.
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
  // The event name has the wrong case, so the service answers ok but ignores the event.
  [900, { uid: "shopper-3", eventName: "Purchase", platform: "android", tx_id: "order-5002", currency: "USD" }],
  [880, { uid: "shopper-3", eventName: "view_item", platform: "android", ...SHIRT }],
  [610, { uid: "shopper-4", eventName: "app_open", platform: "android" }],
  [605, { uid: "shopper-4", eventName: "add_to_cart", platform: "android", ...SHIRT, quantity: 2 }],
  // A purchase needs `tx_id`, so the service ignores this event, too.
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

/**
 * Reads a seed (docs/reference/sandbox.md). Assigns an `_id` to each targeting without one, so that callers know the
 * IDs. Throws a SeedError if the file cannot be read or is not a seed.
 */
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
    return JSON.parse(await readFile(file, "utf8"));
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new SeedError(`${file} cannot be read as a seed of a sandbox: ${why}`, { cause: thrown });
  }
}
