/**
 * A small event service, written by hand from event-tracking-api and from our assumptions where that is silent. Imports
 * nothing from src/, so that a wrong fact there fails a test. Records what the document leaves open.
 */
import { createServer } from "node:http";
import { listening } from "../support/stub-server.ts";

type Kept = "recorded" | "ignored" | "rejected";

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  app_open: [],
  sign_up: ["method"],
  push_clicks: ["campaign_id"],
  page_view: ["page_id"],
  click: ["element_id"],
  view_item: ["item_id"],
  add_to_wishlist: ["item_id"],
  add_to_cart: ["item_id", "price", "quantity"],
  begin_checkout: [],
  purchase: ["tx_id"],
  view_content: ["content_id"],
  begin_lead_form: ["form_id"],
  generate_lead: ["form_id"],
};
const WITH_ITEMS = ["begin_checkout", "purchase"];

/** Returns what the service does with a body. */
export function keptAs(body: unknown): Kept {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "rejected";
  const event = new Map<string, unknown>(Object.entries(body));
  const uid = event.get("uid");
  const eventName = event.get("eventName");
  const items = event.get("items");
  if (typeof uid !== "string" || typeof eventName !== "string" || eventName === "") return "rejected";
  if ([...eventName].length > 64 || holdsLongString(body)) return "rejected";
  if (Array.isArray(items) && items.length > 100) return "rejected";
  const required = Object.hasOwn(REQUIRED, eventName) ? REQUIRED[eventName] : undefined;
  if (required?.every((name) => isThere(event.get(name))) !== true) return "ignored";
  if (!WITH_ITEMS.includes(eventName) || !Array.isArray(items)) return "recorded";
  return items.every(hasItemId) ? "recorded" : "ignored";
}

function hasItemId(item: unknown): boolean {
  return typeof item === "object" && item !== null && "item_id" in item && isThere(item.item_id);
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function holdsLongString(value: unknown): boolean {
  if (typeof value === "string") return [...value].length > 1024;
  return typeof value === "object" && value !== null && Object.values(value).some(holdsLongString);
}

export interface ReferenceService {
  readonly url: string;
  /** Everything that arrived, in order. */
  readonly arrived: { readonly body: unknown; readonly verdict: Kept; readonly arrivedAt: number }[];
  close(): Promise<void>;
}

/**
 * Starts the service on a free port. It accepts the app key of the sandbox. With `answerWrongly`, it refuses
 * everything.
 */
export async function startReferenceService(answerWrongly = false): Promise<ReferenceService> {
  const arrived: ReferenceService["arrived"] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = (status: number, message: string): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ message }));
    };
    if (request.method !== "POST" || request.url !== "/event") return answer(404, "not found");
    if (request.headers.authorization !== "sandbox-app-key") return answer(401, "unauthorized");
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const verdict = keptAs(body);
    arrived.push({ body, verdict, arrivedAt: Date.now() });
    return verdict === "rejected" || answerWrongly ? answer(400, "!invalid") : answer(200, "ok");
  });
  return {
    url: await listening(server),
    arrived,
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
}
