import { READS } from "./facts.ts";
import type { Option, Project, Targeting } from "./project.ts";

// How answers of the service show targetings and options (management-api 2.1, wire-assumptions "Shapes").

/** A targeting record. */
export function targetingRecord({ id, name, options }: Targeting) {
  return { _id: id, name, optionCount: options.size };
}

/** An option record. */
export function optionRecord({ id, targeting, name, isGroup, parent, contexts, children, exposeChildren }: Option) {
  return {
    _id: id,
    name,
    type: isGroup ? ("collection" as const) : ("atomic" as const),
    contextCount: contexts.size,
    targeting,
    ...(parent === undefined ? {} : { parent }),
    ...(isGroup
      ? { exposeChildren, children: [...children].sort().slice(0, READS.childrenShown), childCount: children.size }
      : {}),
  };
}

/** Returns the top-level options of a targeting, or the sub-options of a group, in the order of their creation. */
export function listed(project: Project, targeting: string, parent: string | undefined): readonly Option[] {
  return project
    .optionsOf(targeting)
    .filter((option) => option.parent === parent)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}
