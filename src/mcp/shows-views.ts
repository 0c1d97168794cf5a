import { CLIENT_CAPABILITIES_META_KEY } from "@modelcontextprotocol/server";
import * as z from "zod";

/** The media type of a view (MCP Apps, 2026-01-26). */
export const VIEW_TYPE = "text/html;profile=mcp-app";

const withViews = z.object({
  extensions: z.object({
    "io.modelcontextprotocol/ui": z.object({
      mimeTypes: z
        .array(z.unknown())
        .refine((types) => types.includes(VIEW_TYPE))
        .optional(),
    }),
  }),
});

/** A message that declares its client's capabilities: the first one of the 2025 era, or any request of the 2026 era. */
const declaring = z.object({
  method: z.string(),
  params: z.looseObject({
    capabilities: z.unknown().optional(),
    _meta: z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown().optional() }).optional(),
  }),
});

/** Whether the client of a message shows views to a person; undefined if the message does not declare capabilities. */
export function showsViews(message: unknown): boolean | undefined {
  const { data } = declaring.safeParse(message);
  if (data === undefined) return undefined;
  const { capabilities, _meta } = data.params;
  const declared = data.method === "initialize" ? capabilities : _meta?.[CLIENT_CAPABILITIES_META_KEY];
  return declared === undefined ? undefined : withViews.safeParse(declared).success;
}
