import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import * as z from "zod";
import { faultSchema } from "./faults.ts";
import type { World } from "./world.ts";

/** The control plane (docs/sandbox.md): look into a sandbox, and arrange what happens in it. */
export function controlPlane(world: World): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const faultList = z.strictObject({ faults: z.array(faultSchema) });
  app.get("/faults", (c) => c.json({ faults: world.faults.list() }));
  app.post("/faults", async (c) => {
    const parsed = faultList.safeParse(await c.req.json());
    if (!parsed.success) return c.json({ message: z.prettifyError(parsed.error) }, 400);
    world.faults.add(parsed.data.faults);
    return c.json({ faults: world.faults.list() });
  });
  app.delete("/faults", (c) => {
    world.faults.clear();
    return c.json({ faults: [] });
  });
  app.get("/requests", (c) => c.json(world.requests.read()));
  return app;
}
