import type * as z from "zod";
import { isUlid } from "../../spec/names-and-contexts.ts";
import { addOptions } from "./add-options.ts";
import { deleteOptions, treeItemsError, updateOptions } from "./change-options.ts";
import { bulkBody, businessError, type Interference, type ItemsRule, type Outcome, type Sources } from "./outcome.ts";
import { BODIES, type Bodies, type BodyOperation, QUERIES, requestProblems, validate } from "./requests.ts";
import type { Project } from "./store.ts";
import {
  createTargetings,
  deleteTargetings,
  getOption,
  getTargeting,
  listOptions,
  renameTargetings,
} from "./targetings.ts";

export type Applicable = (project: Project, sources: Sources, interference?: Interference) => Outcome;

/** A checked request: the function that applies it, or its problems as a list or one sentence (management-api 2.2). */
type Prepared = { readonly apply: Applicable } | { readonly problems: readonly string[] | string };

/** What the rules need of a request. `body`: the parsed JSON; undefined if the request has no body. */
export interface RequestParts {
  readonly pathId: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

type Preparer = (parts: RequestParts) => Prepared;

export const OPERATIONS = {
  createTargetings: write("createTargetings", ({ items }) => bulk(createTargetings, items)),
  renameTargetings: write("renameTargetings", ({ items }) => bulk(renameTargetings, items)),
  deleteTargetings: write("deleteTargetings", ({ ids }) => bulk(deleteTargetings, ids)),
  addOptions: write("addOptions", ({ items }) => bulk(addOptions, items)),
  updateOptions: write("updateOptions", ({ items }) => bulk(updateOptions, items)),
  deleteOptions: write("deleteOptions", ({ ids }) => (project, sources, interference) => {
    const error = treeItemsError(project, ids);
    return error === undefined ? bulk(deleteOptions, ids)(project, sources, interference) : { error };
  }),
  createTargeting: write("createTargeting", (item) => single(createTargetings, item)),
  renameTargeting: withPathId((_id) => write("renameTargeting", ({ name }) => single(renameTargetings, { _id, name }))),
  deleteTargeting: withPathId((id) => () => ({ apply: single(deleteTargetings, id) })),
  addOption: write("addOption", (item) => single(addOptions, item)),
  updateOption: withPathId((_id) => write("updateOption", (changes) => single(updateOptions, { _id, ...changes }))),
  deleteOption: withPathId((id) => () => ({ apply: single(deleteOptions, id) })),
  getTargeting: withPathId((pathId) => read(QUERIES.getTargeting, () => (project) => getTargeting(project, pathId))),
  listOptions: withPathId((pathId) =>
    read(QUERIES.listOptions, (query) => (project) => listOptions(project, pathId, query)),
  ),
  getOption: withPathId((pathId) => read(QUERIES.getOption, (query) => (project) => getOption(project, pathId, query))),
} as const satisfies Record<string, Preparer>;

export type ManagementOperation = keyof typeof OPERATIONS;

/** `BODIES`, typed so that TypeScript can derive the type of the body in `write` from the operation. */
const BODY_SCHEMAS: { readonly [K in keyof Bodies]: z.ZodType<Bodies[K]> } = BODIES;

function write<K extends BodyOperation>(operation: K, applicable: (body: Bodies[K]) => Applicable): Preparer {
  return ({ body }) => {
    const validated = validate(BODY_SCHEMAS[operation], body);
    const problems = ["problems" in validated ? validated.problems : [], requestProblems(operation, body)].flat();
    if ("problems" in validated || problems.length > 0) return { problems };
    return { apply: applicable(validated.value) };
  };
}

function read<T>(schema: z.ZodType<T>, applicable: (query: T) => Applicable): Preparer {
  return ({ query }) => {
    const validated = validate(schema, query);
    return "problems" in validated ? validated : { apply: applicable(validated.value) };
  };
}

/** Checks the ID in the path. If it is invalid, the problem is one sentence, not a list (management-api 2.2). */
function withPathId(preparer: (pathId: string) => Preparer): Preparer {
  return (parts) =>
    isUlid(parts.pathId) ? preparer(parts.pathId)(parts) : { problems: "the ID in the path must be a valid ULID" };
}

function bulk<Item>(rule: ItemsRule<Item>, items: readonly Item[]): Applicable {
  return (project, sources, interference) => ({ body: bulkBody(rule(project, items, interference, sources)) });
}

/** Applies a rule for several items to one object. Returns its data or error, not a list (management-api 4 rule 5). */
function single<Item>(rule: ItemsRule<Item>, item: Item): Applicable {
  return (project, sources, interference) => {
    const [outcome] = rule(project, [item], interference, sources);
    if (outcome === undefined) return { error: businessError("UNCATCHED") };
    return "data" in outcome ? { body: outcome.data } : outcome;
  };
}
