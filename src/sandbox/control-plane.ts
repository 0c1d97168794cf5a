import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import * as z from "zod";
import { callerOf, DEFAULT_PROJECT, isFromLoopback } from "./callers.ts";
import { faultSchema } from "./faults.ts";
import { eventPage, eventQuery } from "./logs.ts";
import { statusAnswer } from "./rules/outcome.ts";
import { plantSeed, seedSchema } from "./seed.ts";
import { dumpSchema, dumpWorld, loadWorld } from "./state-dump.ts";
import { projectNamed, resetProjects, type World } from "./world.ts";

type ControlContext = Context<{ Bindings: HttpBindings }>;

const RESETTABLE = ["state", "events", "requests", "faults"] as const;

const faultList = z.strictObject({ faults: z.array(faultSchema) });
export const resetSchema = z.strictObject({ only: z.array(z.enum(RESETTABLE)).default([...RESETTABLE]) });
const holdSchema = z.strictObject({
  project: z.string().min(1).default(DEFAULT_PROJECT),
  ms: z.int().min(0).max(600_000),
});

/** Returns the HTTP app with which tests read and change data and faults (docs/reference/sandbox.md). */
export function controlPlane(world: World): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use(async (c, next) => {
    if (isFromLoopback(callerOf(c.env.incoming))) return next();
    return c.json(statusAnswer(403, "the control plane answers only requests from this machine").body, 403);
  });
  app.onError((error, c) => c.json(statusAnswer(400, error.message).body, 400));
  app.get("/", (c) => c.json(overview(world)));
  app.get("/state", (c) => c.json(dumpWorld(world)));
  app.put("/state", async (c) => {
    loadWorld(world, await parsed(c, dumpSchema));
    world.changed();
    return c.json(overview(world));
  });
  app.post("/seed", async (c) => c.json(plantSeed(world, await parsed(c, seedSchema))));
  app.post("/reset", async (c) => {
    reset(world, (await parsed(c, resetSchema)).only);
    return c.json(overview(world));
  });
  app.post("/lock", async (c) => {
    const { project, ms } = await parsed(c, holdSchema);
    await world.lock.hold(projectNamed(world, project)._id, ms);
    return c.json({ project, ms });
  });
  app.get("/faults", (c) => c.json({ faults: world.faults.list() }));
  app.post("/faults", async (c) => {
    world.faults.add((await parsed(c, faultList)).faults);
    return c.json({ faults: world.faults.list() });
  });
  app.delete("/faults/:id", (c) => {
    if (world.faults.remove(Number(c.req.param("id")))) return c.json({ faults: world.faults.list() });
    return c.json(statusAnswer(404, "there is no fault with this ID").body, 404);
  });
  app.delete("/faults", (c) => {
    world.faults.clear();
    return c.json({ faults: [] });
  });
  app.get("/requests", (c) => c.json(world.requests.read()));
  app.get("/events", (c) => {
    const query = checked(eventQuery, c.req.query());
    return c.body(eventPage(world.events, query), 200, { "Content-Type": "application/json; charset=utf-8" });
  });
  return app;
}

/** Parses the body of a request. An empty body counts as `{}`. Throws an Error that lists all problems. */
async function parsed<T extends z.ZodType>(c: ControlContext, schema: T): Promise<z.output<T>> {
  const text = await c.req.text();
  const body: unknown = text === "" ? {} : JSON.parse(text);
  return checked(schema, body);
}

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value);
  if (!result.success) throw new RangeError(z.prettifyError(result.error));
  return result.data;
}

export function reset(world: World, only: readonly (typeof RESETTABLE)[number][]): void {
  if (only.includes("events")) world.events.clear();
  if (only.includes("requests")) world.requests.clear();
  if (only.includes("faults")) world.faults.clear();
  if (!only.includes("state")) return;
  resetProjects(world);
  world.changed();
}

function overview(world: World) {
  return {
    projects: [...world.projects.values()].map(({ _id, name, deleted, targetings, options, contextCount }) => ({
      _id,
      name,
      deleted,
      targetings: targetings.size,
      options: options.size,
      contexts: contextCount,
    })),
    events: world.events.counts(),
    faults: world.faults.list().length,
  };
}
