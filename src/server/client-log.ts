import type { ServerContext } from "@modelcontextprotocol/server";
import type { Log, LogFields } from "./log.ts";

/** What of a line is for the client: which tool it was, and under which ID the server's own log says more. */
const FOR_CLIENT = ["tool", "fault"] as const;

/**
 * A log whose errors are told to the client, too, if it wants to hear of them (2025-era clients say so with
 * `logging/setLevel`, those of 2026-07-28 in each call). Details stay in the server's own log.
 */
export function toldToClient(log: Log, call: ServerContext): Log {
  return {
    ...log,
    error(message, fields = {}) {
      log.error(message, fields);
      call.mcpReq
        .log("error", { message, ...forClient(fields) }, "targeting-mcp")
        .catch((error: unknown) => log.debug("an error could not be told to the client", { error }));
    },
    with: (fields) => toldToClient(log.with(fields), call),
  };
}

function forClient(fields: LogFields): LogFields {
  return Object.fromEntries(FOR_CLIENT.flatMap((name) => (name in fields ? [[name, fields[name]]] : [])));
}
