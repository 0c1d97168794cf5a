import {
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { type RootGuard, usableRoots } from "../../files/folders.ts";
import { once } from "../../tools/once.ts";
import { declaredIn } from "./ask.ts";

const declared = z.object({ roots: z.unknown().refine((roots) => roots !== undefined) });
const answered = z.object({ roots: z.array(z.object({ uri: z.string() })) });

/** How long a client may take to say its roots, in milliseconds. */
const ROOTS_MS = 5000;

/** The name of the request for roots in the protocol. */
const ROOTS = "roots";

/** Thrown where a call needs the roots of a client of the 2026-07-28 era, which makes it again with them. */
export class RootsNeeded extends Error {}

/** The roots of a client in one call. */
export interface ClientRoots {
  /** The folders that may be read for the client. Throws a RootsNeeded where the call does not have its roots yet. */
  readonly folders: () => Promise<readonly string[]>;
  /** The request for the roots, where the call has used them: what it is answered with needs them again. */
  readonly again: () => Readonly<Record<string, InputRequest>>;
}

/**
 * What gets the roots of a client, once in a call; undefined where it has none. A 2025-era client is asked during the
 * call; one of the 2026-07-28 era is answered with the request, and makes the call again.
 */
export function rootsOf(
  call: ServerContext,
  server: McpServer,
  guard: (() => Promise<RootGuard>) | undefined,
): ClientRoots | undefined {
  const modern = declaredIn(call);
  if (guard === undefined || !declared.safeParse(modern ?? server.server.getClientCapabilities()).success) {
    return undefined;
  }
  let isUsed = false;
  const folders = once(async () => {
    isUsed = true;
    const said = modern === undefined ? await askedDuring(call) : repliedIn(call);
    const { roots } = answered.safeParse(said).data ?? { roots: [] };
    return roots.length === 0
      ? []
      : usableRoots(
          roots.map(({ uri }) => uri),
          await guard(),
        );
  });
  return { folders, again: () => (modern !== undefined && isUsed ? rootsRequest() : {}) };
}

function askedDuring(call: ServerContext): Promise<unknown> {
  return call.mcpReq.send({ method: "roots/list" }, { timeout: ROOTS_MS }).catch(() => undefined);
}

/** A call that was made again without roots has none: it is not asked twice. */
function repliedIn({ mcpReq: { inputResponses } }: ServerContext): unknown {
  if (inputResponses === undefined) throw new RootsNeeded();
  return inputResponses[ROOTS];
}

function rootsRequest() {
  return { [ROOTS]: inputRequired.listRoots() };
}

/** The result by which a client of the 2026-07-28 era is asked for its roots. */
export function askingRoots(): InputRequiredResult {
  return inputRequired({ inputRequests: rootsRequest() });
}
