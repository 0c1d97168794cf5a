import type { BaseOption } from "../base/base.ts";
import type { ServiceOption } from "../base/service-targeting.ts";
import type { Difference } from "./plan.ts";

/** What others changed on an option since the base, field by field. `groupName` gives the name of a group by its ID. */
export function changedSince(
  base: BaseOption,
  there: ServiceOption,
  groupName: (id: string) => string,
): readonly Difference[] {
  const { _id, name } = there;
  const about = { _id, name };
  const parentName = (parent: string | null): string | null => (parent === null ? null : groupName(parent));
  const changes: Difference[] = [];
  if (base.name !== there.name) changes.push({ ...about, field: "name", base: base.name, service: there.name });
  if (base.parent !== there.parent) {
    changes.push({ ...about, field: "parent", base: parentName(base.parent), service: parentName(there.parent) });
  }
  if (base.type !== there.type) changes.push({ ...about, field: "type", base: base.type, service: there.type });
  const [exposed, exposes] = [base.exposeChildren ?? false, there.exposeChildren ?? false];
  if (exposed !== exposes) changes.push({ ...about, field: "exposeChildren", base: exposed, service: exposes });
  if (base.digest !== there.digest) {
    changes.push({ ...about, field: "contexts", base: base.contexts, service: there.contexts.length });
  }
  return changes;
}
