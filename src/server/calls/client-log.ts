import type { ServerContext } from "@modelcontextprotocol/server";
import type { Log, LogFields } from "../log.ts";

/** The fields that a client sees: the tool, and the ID of the fault in the server's own log. */
const FOR_CLIENT = ["tool", "fault"] as const;

/**
 * A log that also sends its errors to the client, if the client subscribed to them (2025-era clients by
 * `logging/setLevel`, clients of 2026-07-28 in each call). Details stay in the server's own log.
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
