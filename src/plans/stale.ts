import { digestOfContexts, type ServiceOption, type ServiceTargeting } from "./base.ts";
import { differingFields, type Service, serviceOf } from "./match.ts";
import type {
  ChangeItem,
  CreateItem,
  DeleteItem,
  Difference,
  DifferingField,
  ParentRef,
  PlannedTargeting,
  ShownValue,
  StatePlan,
} from "./plan.ts";

export interface StaleCheck {
  /** The differences that prevent sending. `at` is the index of the affected item, or -1 for the targeting. */
  readonly stale: readonly { readonly at: number; readonly difference: Difference }[];
  readonly alreadyDone: ReadonlySet<number>;
}

/** Checks whether everything that a plan changes, deletes or refers to is still as it was when the plan was made. */
export function lookAgain({ items, targeting }: StatePlan, there: ServiceTargeting | undefined): StaleCheck {
  const look = new Look(items, serviceOf(there));
  const alreadyDone = new Set<number>();
  if (there !== undefined) look.targeting(targeting, there);
  for (const [index, item] of items.entries()) {
    look.at = index;
    const isDone =
      item.kind === "create" ? look.creation(item) : item.kind === "change" ? look.change(item) : look.deletion(item);
    if (isDone) alreadyDone.add(index);
  }
  return { stale: look.stale, alreadyDone };
}

class Look {
  readonly stale: { readonly at: number; readonly difference: Difference }[] = [];
  at = -1;
  readonly #items: StatePlan["items"];
  readonly #service: Service;
  /** The options that the plan changes or deletes, so that their names may become free. */
  readonly #own: ReadonlySet<string>;

  constructor(items: StatePlan["items"], service: Service) {
    this.#items = items;
    this.#service = service;
    this.#own = new Set(items.flatMap((item) => (item.kind === "create" ? [] : [item._id])));
  }

  /** Checks that a targeting still has its name. If it is to be deleted, also that it has no further options. */
  targeting({ name, rename, delete: isDeleted }: PlannedTargeting, { targeting, options }: ServiceTargeting): void {
    if (rename === undefined && !isDeleted) return;
    const isKnown = targeting.name === name || targeting.name === rename;
    if (!isKnown) this.#tell({ _id: targeting._id, name }, "name", name, targeting.name);
    if (!isDeleted) return;
    for (const option of options)
      if (!this.#own.has(option._id)) this.#tell(targeting, "added", undefined, option.name);
  }

  creation(item: CreateItem): boolean {
    // An option that the plan itself changes may free its name, so it is not the option to create.
    const holder = this.#service.byName.get(item.name)?.find(({ _id }) => !this.#own.has(_id));
    if (holder !== undefined && this.#isMade(item, holder)) return true;
    if (holder !== undefined) this.#tell({ _id: holder._id, name: item.name }, "name", undefined, item.name);
    this.#group(item.parent, item.name);
    return false;
  }

  #isMade({ type, parent, contexts, exposeChildren }: CreateItem, there: ServiceOption): boolean {
    const isThere = this.#isIn(parent, there);
    const isExposed = exposeChildren === undefined || (there.exposeChildren ?? false) === exposeChildren;
    return isThere && isExposed && there.type === type && there.digest === digestOfContexts(contexts);
  }

  #isIn(parent: ParentRef, there: ServiceOption): boolean {
    if (parent === null || there.parent === null) return parent === there.parent;
    if ("_id" in parent) return parent._id === there.parent;
    const group = this.#service.byId.get(there.parent);
    const item = this.#items[parent.item];
    if (group === undefined || this.#own.has(group._id)) return false;
    return item?.kind === "create" && item.name === group.name && this.#isMade(item, group);
  }

  change(item: ChangeItem): boolean {
    const { _id, seen, name, parent, exposeChildren, contexts } = item;
    const there = this.#service.byId.get(_id);
    if (there === undefined) {
      this.#tell({ _id, name: seen.name }, "deleted");
      return false;
    }
    let open = 0;
    const field = (
      key: DifferingField,
      isDone: boolean,
      isSeen: boolean,
      planned: ShownValue,
      service: ShownValue,
    ): void => {
      if (isDone) return;
      open += 1;
      if (!isSeen) this.#tell(there, key, planned, service);
    };
    if (name !== undefined) {
      field("name", there.name === name, there.name === seen.name, seen.name, there.name);
      const other = this.#service.byName.get(name)?.find((one) => one._id !== _id && !this.#own.has(one._id));
      if (other !== undefined) this.#tell({ _id: other._id, name }, "name", undefined, name);
    }
    if (parent !== undefined) {
      const isDone = this.#isIn(parent, there);
      field("parent", isDone, there.parent === seen.parent, seen.parent, there.parent);
      this.#group(parent, there.name);
    }
    if (exposeChildren !== undefined) {
      const now = there.exposeChildren ?? false;
      const then = seen.exposeChildren ?? false;
      field("exposeChildren", now === exposeChildren, now === then, then, now);
    }
    if (contexts !== undefined) {
      const held = new Set(there.contexts);
      const { after, add } = contexts;
      const isDone = after === undefined ? add.every((id) => held.has(id)) : there.digest === after;
      // Without the digest `after`, changes of other Context IDs do not matter.
      const isSeen = after === undefined || there.digest === seen.digest;
      field("contexts", isDone, isSeen, seen.contexts, there.contexts.length);
    }
    return open === 0;
  }

  deletion({ _id, seen }: DeleteItem): boolean {
    const there = this.#service.byId.get(_id);
    if (there === undefined) return true;
    const subOptions = this.#service.byParent.get(_id)?.length ?? 0;
    for (const [field, planned, service] of differingFields(seen, there)) this.#tell(there, field, planned, service);
    if (subOptions !== (seen.subOptions ?? 0)) this.#tell(there, "subOptions", seen.subOptions ?? 0, subOptions);
    return false;
  }

  #group(parent: ParentRef, name: string): void {
    if (parent === null || !("_id" in parent)) return;
    const group = this.#service.byId.get(parent._id);
    if (group?.type !== "collection") this.#tell({ _id: parent._id, name }, "parent", parent._id, group?.type);
  }

  #tell(
    { _id, name }: { readonly _id: string; readonly name: string },
    field: DifferingField,
    planned?: ShownValue,
    service?: ShownValue,
  ): void {
    // A group that no longer exists is shown by its ID.
    const shown = (value: ShownValue | undefined): ShownValue | undefined =>
      field === "parent" && typeof value === "string" ? (this.#service.byId.get(value)?.name ?? value) : value;
    const difference = { _id, name, field, planned: shown(planned), service: shown(service) };
    this.stale.push({ at: this.at, difference });
  }
}
