import * as z from "zod";
import { reset, resetSchema } from "../../sandbox/control-plane.ts";
import type { World } from "../../sandbox/world.ts";
import { PATHS } from "../paths.ts";
import { dataAnswer, refusalAnswer } from "../serve/answers.ts";
import { pageAsset, pageDocument } from "../serve/assets.ts";
import { eventStream } from "../serve/event-stream.ts";
import { bodyOf, refusedPost, refusedScheme } from "../serve/guard.ts";
import { pageSessions } from "../serve/sessions.ts";
import type { EventBody, Hello } from "../wire.ts";
import { fittingEvents } from "./event-rows.ts";
import { addFault, faultsMessage } from "./faults.ts";
import { foundOptions, optionsIn, type Part } from "./tree.ts";
import { sandboxUpdates } from "./updates.ts";

const ROWS = 150;

/**
 * The page of a sandbox at `url`: its events, targetings and faults. Requests have been found to come from this machine
 * before. Loading the page gives a session without a link, since nothing real is behind it.
 */
export function sandboxPage(world: World, url: string): (request: Request) => Promise<Response> {
  const sessions = pageSessions({ person: z.literal("local") });
  const updates = sandboxUpdates(world);
  const hello: Hello = {
    kind: "hello",
    views: ["events", "targetings", "faults"],
    about: `sandbox ${url}`,
    returns: true,
  };
  return async (request) => {
    const { method } = request;
    const address = new URL(request.url);
    const isRead = method === "GET" || method === "HEAD";
    if (address.pathname === PATHS.page) {
      if (!isRead) return notAllowed();
      return pageDocument({ session: sessions.open("local") }, { isHead: method === "HEAD" });
    }
    const asset = isRead ? await pageAsset(address.pathname) : undefined;
    if (asset !== undefined) return asset;
    if ((await sessions.of(request)) === undefined) return refusalAnswer(401, `open ${url}/ first`);
    if (method === "POST")
      return refusedScheme(request, url) ?? refusedPost(request) ?? change(world, address.pathname, request);
    if (!isRead) return notAllowed();
    if (address.pathname === PATHS.stream) return eventStream(request, updates, { first: [hello] });
    return data(world, address);
  };
}

/** Carries out a POST of the page. */
async function change(world: World, path: string, request: Request): Promise<Response> {
  const body = await bodyOf(request);
  if (body instanceof Response) return body;
  if (path === PATHS.reset) {
    const only = resetSchema.safeParse(body.data);
    if (!only.success) return refusalAnswer(400, "there is no such thing to reset");
    reset(world, only.data.only);
    return dataAnswer({});
  }
  if (path === PATHS.faults) {
    const wrong = addFault(world.faults, body.data);
    return wrong === undefined ? dataAnswer(faultsMessage(world.faults)) : refusalAnswer(400, wrong);
  }
  const [, id] = new RegExp(`^${PATHS.faults}/(\\d{1,15})/remove$`).exec(path) ?? [];
  if (id === undefined) return nothingHere();
  return world.faults.remove(Number(id)) ? dataAnswer({}) : refusalAnswer(404, "this fault is no longer there");
}

/** Answers what the page reads beside its stream. */
function data(world: World, { pathname, searchParams: query }: URL): Response {
  if (pathname === PATHS.events) {
    const before = query.get("before");
    const list = fittingEvents(world.events, query.get("filter") ?? "", before === null ? undefined : Number(before));
    return dataAnswer(list);
  }
  if (pathname.startsWith(`${PATHS.events}/`)) {
    const event = world.events.at(Number(pathname.slice(PATHS.events.length + 1)));
    if (event === undefined) return refusalAnswer(404, "this event was forgotten for room");
    const body: EventBody = { text: event.text, ...(event.forwarded && { forwarded: event.forwarded }) };
    return dataAnswer(body);
  }
  const part: Part = { from: countIn(query, "from", 0), limit: countIn(query, "limit", ROWS) };
  if (pathname === PATHS.targetings) return dataAnswer(foundOptions(world, query.get("search") ?? "", part));
  if (!pathname.startsWith(`${PATHS.targetings}/`)) return nothingHere();
  const list = optionsIn(world, pathname.slice(PATHS.targetings.length + 1), query.get("parent") ?? undefined, part);
  return list === undefined ? refusalAnswer(404, "this targeting or group is no longer there") : dataAnswer(list);
}

function countIn(query: URLSearchParams, name: string, otherwise: number): number {
  const given = query.get(name) ?? "";
  return /^\d{1,9}$/.test(given) ? Number(given) : otherwise;
}

function nothingHere(): Response {
  return refusalAnswer(404, "the page has nothing here");
}

function notAllowed(): Response {
  return refusalAnswer(405, "the page is read by GET");
}
