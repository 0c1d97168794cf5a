import { listEventTypes } from "../../events/check/event-types.ts";
import { ERROR_CODES } from "../../spec/error-codes.ts";
import { EVENT_LIMITS, LIMITS } from "../../spec/limits.ts";
import type { ResourceDefinition } from "./definition.ts";

const JSON_TYPE = "application/json";
/** The content changes only with this server's version. */
const LASTING = { ttlMs: 86_400_000, cacheScope: "public" } as const;

function page(name: string, title: string, description: string, content: () => unknown): ResourceDefinition {
  const uri = `targeting://spec/${name}`;
  return {
    name: `spec-${name}`,
    title,
    description,
    uriTemplate: uri,
    cacheHint: LASTING,
    read: async () => ({ mimeType: JSON_TYPE, text: JSON.stringify(content(), null, 1) }),
  };
}

/** What the API documents say, to be looked up. */
export const SPEC_RESOURCES: readonly ResourceDefinition[] = [
  page(
    "events",
    "Supported events",
    "Every supported event with its required and optional parameters.",
    listEventTypes,
  ),
  page("limits", "Limits", "Every limit of both APIs, with the section that states it.", () => ({
    management: LIMITS,
    events: EVENT_LIMITS,
  })),
  page(
    "errors",
    "Error codes",
    "Every error code of the management API, when it comes, and what its detail holds.",
    () => ({
      errors: ERROR_CODES,
    }),
  ),
];
