/** Whether the API documents state a route. `assumed`: they do not, or the settings replace it. */
type Basis = "documented" | "assumed";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** The method and path of an operation. `{targetingId}` and `{optionId}` in the path are replaced by IDs. */
interface Route {
  readonly method: Method;
  readonly path: string;
  readonly basis: Basis;
}

/** The operations of the two APIs (management-api 4, event-tracking-api 4). */
export const ROUTES = {
  trackEvent: { method: "POST", path: "/event", basis: "documented" },
  createTargetings: { method: "POST", path: "/context-targeting/bulk/create", basis: "documented" },
  renameTargetings: { method: "POST", path: "/context-targeting/bulk/update", basis: "assumed" },
  deleteTargetings: { method: "POST", path: "/context-targeting/bulk/delete", basis: "assumed" },
  createTargeting: { method: "POST", path: "/context-targeting", basis: "assumed" },
  renameTargeting: { method: "PATCH", path: "/context-targeting/{targetingId}", basis: "assumed" },
  deleteTargeting: { method: "DELETE", path: "/context-targeting/{targetingId}", basis: "assumed" },
  getTargeting: { method: "GET", path: "/context-targeting/{targetingId}", basis: "assumed" },
  addOptions: { method: "POST", path: "/context-targeting/category/bulk/create", basis: "assumed" },
  updateOptions: { method: "POST", path: "/context-targeting/category/bulk/update", basis: "documented" },
  deleteOptions: { method: "POST", path: "/context-targeting/category/bulk/delete", basis: "assumed" },
  addOption: { method: "POST", path: "/context-targeting/category", basis: "assumed" },
  updateOption: { method: "PATCH", path: "/context-targeting/category/{optionId}", basis: "assumed" },
  deleteOption: { method: "DELETE", path: "/context-targeting/category/{optionId}", basis: "assumed" },
  listOptions: { method: "GET", path: "/context-targeting/{targetingId}/category", basis: "assumed" },
  getOption: { method: "GET", path: "/context-targeting/category/{optionId}", basis: "assumed" },
} as const satisfies Record<string, Route>;

export type Operation = keyof typeof ROUTES;

/** The management operations with which this program changes data. Each is sent as a bulk request. */
export const BULK_OPERATIONS = [
  "createTargetings",
  "renameTargetings",
  "deleteTargetings",
  "addOptions",
  "updateOptions",
  "deleteOptions",
] as const;
export type BulkOperation = (typeof BULK_OPERATIONS)[number];

/** How each operation applies items (management-api 4.1). `unit`: all that pass the checks, or none after an error. */
export const APPLIED_AS = {
  createTargetings: "unit",
  deleteTargetings: "unit",
  addOptions: "unit",
  deleteOptions: "unit",
  renameTargetings: "itemByItem",
  updateOptions: "itemByItem",
} as const satisfies Record<BulkOperation, "unit" | "itemByItem">;

export type RouteTable = Readonly<Record<Operation, Route>>;

export function isOperation(text: string): text is Operation {
  return Object.hasOwn(ROUTES, text);
}

/**
 * Returns the routes of all operations. `overrides` are the routes in the settings, by operation, as `"METHOD /path"`.
 * If one is invalid, throws a RangeError that names it.
 */
export function routesWith(overrides: Readonly<Record<string, string>>): RouteTable {
  const table: Record<Operation, Route> = { ...ROUTES };
  for (const [operation, text] of Object.entries(overrides)) {
    if (!isOperation(operation)) {
      throw new RangeError(`"${operation}" is not an operation; the operations are ${Object.keys(ROUTES).join(", ")}`);
    }
    table[operation] = parseRoute(operation, text);
  }
  return table;
}

function parseRoute(operation: Operation, text: string): Route {
  const [, method, path] = /^(GET|POST|PATCH|DELETE) (\/\S*)$/.exec(text) ?? [];
  if (path === undefined || !isMethod(method)) {
    throw new RangeError(`the route of "${operation}" is not of the form "METHOD /path": ${JSON.stringify(text)}`);
  }
  return { method, path, basis: "assumed" };
}

function isMethod(text: string | undefined): text is Method {
  return text === "GET" || text === "POST" || text === "PATCH" || text === "DELETE";
}
