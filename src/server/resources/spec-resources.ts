import type { ResourceDefinition } from "./definition.ts";

const JSON_TYPE = "application/json";
/** The content changes only with this server's version. */
const LASTING = { ttlMs: 86_400_000, cacheScope: "public" } as const;

function page(name: string, title: string, description: string, content: () => Promise<unknown>): ResourceDefinition {
  const uri = `targeting://spec/${name}`;
  return {
    name: `spec-${name}`,
    title,
    description,
    uriTemplate: uri,
    cacheHint: LASTING,
    read: async () => ({ mimeType: JSON_TYPE, text: JSON.stringify(await content(), null, 1) }),
  };
}

/** What the API documents say, to be looked up. */
export const SPEC_RESOURCES: readonly ResourceDefinition[] = [
  page("events", "Supported events", "Every supported event with its required and optional parameters.", async () =>
    (await import("../../events/event-types.ts")).listEventTypes(),
  ),
  page("limits", "Limits", "Every limit of both APIs, with the section that states it.", async () => {
    const { EVENT_LIMITS, LIMITS } = await import("../../spec/limits.ts");
    return { management: LIMITS, events: EVENT_LIMITS };
  }),
  page(
    "errors",
    "Error codes",
    "Every error code of the management API, when it comes, and what its detail holds.",
    async () => ({ errors: (await import("../../spec/error-codes.ts")).ERROR_CODES }),
  ),
];
