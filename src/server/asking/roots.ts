import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { type RootGuard, usableRoots } from "../../files/folders.ts";
import { once } from "../../tools/once.ts";
import { isModern } from "./ask.ts";

const declared = z.object({ roots: z.unknown().refine((roots) => roots !== undefined) });
const answered = z.object({ roots: z.array(z.object({ uri: z.string() })) });

/** How long a client may take to say its roots, in milliseconds. */
const ROOTS_MS = 5000;

/**
 * What asks the client for its roots, once in a call, and gives the folders that may be read for it; undefined where the
 * client has none, or belongs to the 2026-07-28 era, which knows no such request.
 */
export function rootsOf(
  call: ServerContext,
  server: McpServer,
  guard: (() => Promise<RootGuard>) | undefined,
): (() => Promise<readonly string[]>) | undefined {
  if (guard === undefined || isModern(call)) return undefined;
  if (!declared.safeParse(server.server.getClientCapabilities()).success) return undefined;
  return once(async () => {
    const said = await call.mcpReq.send({ method: "roots/list" }, { timeout: ROOTS_MS }).catch(() => undefined);
    const { roots } = answered.safeParse(said).data ?? { roots: [] };
    return roots.length === 0
      ? []
      : usableRoots(
          roots.map(({ uri }) => uri),
          await guard(),
        );
  });
}
