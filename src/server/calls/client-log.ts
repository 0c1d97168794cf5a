import type { ServerContext } from "@modelcontextprotocol/server";
import type { Log } from "../log.ts";

/**
 * A log that also sends its errors to the client, if the client subscribed to them (2025-era clients by
 * `logging/setLevel`, clients of 2026-07-28 in each call). Details stay in the server's own log.
 */
export function toldToClient(log: Log, call: ServerContext): Log {
  return {
    ...log,
    error(message, fields = {}) {
      log.error(message, fields);
      // The client sees the tool, and the ID of the fault in the server's own log.
      const { tool, fault } = fields;
      call.mcpReq
        .log("error", { message, tool, fault }, "targeting-mcp")
        .catch((error: unknown) => log.debug("an error could not be told to the client", { error }));
    },
    with: (fields) => toldToClient(log.with(fields), call),
  };
}
