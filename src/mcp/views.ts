import type { McpServer } from "@modelcontextprotocol/server";
import type { ToolAnswer, ToolContext } from "../tools/define-tool.ts";
import { VIEW_TYPE } from "./elicitation.ts";
import { MADE_VIEW_TOOLS } from "./made-view-tools.ts";
import { LASTING } from "./resources.ts";
import { asMade, catalogue, listedTools, type ToolAvailability, type Views } from "./server-parts.ts";

const VIEW_URI = "ui://targeting/run.html";
const LOOKS = { ui: { prefersBorder: false } };

/** The `_meta` that connects a tool with its view. Older hosts read the second key. */
const SHOWN = { ui: { resourceUri: VIEW_URI }, "ui/resourceUri": VIEW_URI };
const FOR_VIEWS = { ui: { visibility: ["app"] } };

const META = new Map<string, Readonly<Record<string, unknown>>>([
  ...[
    "delete_targeting",
    "delete_options",
    "update_contexts",
    "plan_targeting",
    "apply_plan",
    "undo_run",
    "get_run",
  ].map((tool) => [tool, SHOWN] as const),
  ["decide_run", FOR_VIEWS],
]);

export async function loadViews(offer: ToolAvailability): Promise<Views> {
  const isMade = MADE_VIEW_TOOLS.length > 0;
  const all = isMade
    ? MADE_VIEW_TOOLS.map(asMade)
    : catalogue(await (await import("../tools/registry.ts")).everyViewTool());
  const tools = listedTools(all, offer);
  return { tools, metaOf: (tool) => META.get(tool), attach, beside };
}

function attach(server: McpServer): void {
  const about = {
    title: "A run and its plan",
    description: "Shows a run with its plan to a person, who decides on it there.",
    mimeType: VIEW_TYPE,
    _meta: LOOKS,
    cacheHint: LASTING,
  };
  server.registerResource("run-view", VIEW_URI, about, async () => {
    const { viewDocument } = await import("../web/page.ts");
    return { contents: [{ uri: VIEW_URI, mimeType: VIEW_TYPE, text: await viewDocument(), _meta: LOOKS }] };
  });
}

/** Returns the run in the form of the web page, and the secret with which the person decides in the view. */
async function beside({ structured, decision }: ToolAnswer, context: ToolContext) {
  const runId = typeof structured.runId === "string" ? structured.runId : undefined;
  const { runDetail } = await import("../web/rows.ts");
  const { caller, project } = context;
  const run = runId === undefined ? undefined : await runDetail(runId, { services: context, caller, project });
  return {
    ...(run && { "targeting-mcp/run": { ...run, downloads: [] } }),
    ...(decision && { "targeting-mcp/decision": decision }),
  };
}
