import * as z from "zod";
import { reset, resetSchema } from "../sandbox/control-plane.ts";
import { takeFromPage } from "../sandbox/event-endpoint.ts";
import { BUILT_IN_KEYS } from "../sandbox/keys.ts";
import type { World } from "../sandbox/world.ts";
import { dataAnswer, fileAnswer, refusalAnswer } from "./answers.ts";
import { pageAsset, pageDocument } from "./assets.ts";
import { eventFigures, type Figures } from "./event-figures.ts";
import { eventDetail, fittingEvents } from "./event-rows.ts";
import { eventStream } from "./event-stream.ts";
import { addFault, faultsMessage } from "./faults.ts";
import { bodyOf, refusedPost, refusedScheme } from "./guard.ts";
import { PATHS } from "./paths.ts";
import { sandboxUpdates } from "./sandbox-updates.ts";
import type { SandboxMessage } from "./sandbox-wire.ts";
import { pageSessions } from "./sessions.ts";
import { contextIdsOf, foundOptions, optionsIn, type Part } from "./tree.ts";
import { isTestFormat, testsForUnseen } from "./unseen-tests.ts";
import type { Hello } from "./wire.ts";

const ROWS = 150;

const newEvent = z.strictObject({ text: z.string() });

/**
 * The page of a sandbox at `url`: its events, targetings and faults. Requests have been found to come from this machine
 * before. Loading the page gives a session without a link, since nothing real is behind it.
 */
export function sandboxPage(world: World, url: string): (request: Request) => Promise<Response> {
  const sessions = pageSessions({ person: z.literal("local") });
  const figures = eventFigures(world.events, world.sources.now);
  const updates = sandboxUpdates(world, figures);
  const hello: Hello = {
    kind: "hello",
    views: ["events", "targetings", "faults"],
    environment: { kind: "sandbox", address: new URL(url).host },
    returns: true,
  };
  const [appKey] = BUILT_IN_KEYS.app;
  const first = [hello, { kind: "sandbox", address: url, appKey } satisfies SandboxMessage];
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
    if (address.pathname === PATHS.stream) return eventStream(request, updates, { first });
    return data({ world, figures, url }, address);
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
  if (path === PATHS.events) {
    const event = newEvent.safeParse(body.data);
    if (!event.success) return refusalAnswer(400, "There is no event in this request.");
    takeFromPage(world, event.data.text);
    return dataAnswer({});
  }
  const [, id] = new RegExp(`^${PATHS.faults}/(\\d{1,15})/remove$`).exec(path) ?? [];
  if (id === undefined) return nothingHere();
  return world.faults.remove(Number(id)) ? dataAnswer({}) : refusalAnswer(404, "this fault is no longer there");
}

/** What the page reads is made of. */
interface Read {
  readonly world: World;
  readonly figures: Figures;
  readonly url: string;
}

/** Answers what the page reads beside its stream. */
async function data({ world, figures, url }: Read, { pathname, searchParams: query }: URL): Promise<Response> {
  if (pathname === PATHS.events) return eventList({ world, figures }, query);
  if (pathname === PATHS.eventTests) {
    const format = query.get("format") ?? "";
    if (!isTestFormat(format)) return nothingHere();
    const file = await testsForUnseen(figures.now().coverage, format, url);
    if (file === undefined) return refusalAnswer(404, "Every event and every parameter has arrived.");
    return fileAnswer(file.fileName, file.text);
  }
  if (pathname.startsWith(`${PATHS.events}/`)) {
    const detail = eventDetail(world.events, Number(pathname.slice(PATHS.events.length + 1)), figures);
    return detail === undefined ? refusalAnswer(404, "This event is not stored any more.") : dataAnswer(detail);
  }
  const part: Part = { from: countIn(query, "from", 0), limit: countIn(query, "limit", ROWS) };
  if (pathname === PATHS.targetings) return dataAnswer(foundOptions(world, query.get("search") ?? "", part));
  if (!pathname.startsWith(`${PATHS.targetings}/`)) return nothingHere();
  const targetingId = pathname.slice(PATHS.targetings.length + 1);
  const option = query.get("option");
  const list =
    option === null
      ? optionsIn(world, targetingId, query.get("parent") ?? undefined, part)
      : contextIdsOf(world, targetingId, option);
  return list === undefined ? refusalAnswer(404, "This was deleted meanwhile.") : dataAnswer(list);
}

function eventList({ world, figures }: Pick<Read, "world" | "figures">, query: URLSearchParams): Response {
  const [before, problem] = [query.get("before"), query.get("problem")];
  const wanted = {
    filter: query.get("filter") ?? "",
    verdict: query.get("verdict") ?? undefined,
    ...(problem !== null && { cause: figures.keyOf(Number(problem)) ?? null }),
  };
  return dataAnswer(fittingEvents(world.events, wanted, before === null ? undefined : Number(before)));
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
