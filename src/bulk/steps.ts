import * as z from "zod";
import type { CreateTargetingItem, OptionChanges, OptionToCreate } from "../spec/records.ts";
import type { BulkOperation } from "../spec/routes.ts";
import { entryBytes } from "./weigh.ts";
import type { Binding, Reason, Step, Weight } from "./work.ts";

/** What every kind of step may carry besides its item. */
interface StepFields {
  readonly objects: readonly number[];
  readonly after?: readonly number[];
  readonly undoes?: Reason;
  readonly prepares?: true;
  readonly formerName?: string;
}

/** Gives steps their IDs, which are their positions in the run. */
export class StepMaker {
  readonly #next: () => number;

  /** `next` gives the ID of the next step to be made. */
  constructor(next: () => number) {
    this.#next = next;
  }

  /** Makes steps that follow those that there are, before any of them is added. */
  static after({ length }: { readonly length: number }): StepMaker {
    let next = length;
    return new StepMaker(() => next++);
  }

  /** A targeting to create, with the options that are created inside it. */
  createTargeting(item: CreateTargetingItem, fields: StepFields): Step {
    const options = item.options ?? [];
    return this.#make("createTargetings", item, [], fields, {
      options: options.reduce((sum, option) => sum + optionCount(option), 0),
      contextIds: options.reduce((sum, option) => sum + contextCount(option), 0),
    });
  }

  renameTargeting(targetingId: string, name: string, fields: StepFields): Step {
    return this.#make("renameTargetings", { name }, [{ field: "_id", id: targetingId }], fields, {});
  }

  deleteTargeting(targetingId: string, fields: StepFields): Step {
    return this.#make("deleteTargetings", undefined, [{ field: "_id", id: targetingId }], fields, {});
  }

  /** An option to add to a targeting; `parent`, where it has one, is bound, never part of `option`. */
  addOption(
    option: Omit<OptionToCreate, "parent">,
    place: { readonly targeting: Omit<Binding, "field">; readonly parent?: Omit<Binding, "field"> },
    fields: StepFields,
  ): Step {
    const bindings: Binding[] = [{ field: "targeting", ...place.targeting }];
    if (place.parent !== undefined) bindings.push({ field: "parent", ...place.parent });
    const group = option.type === "collection" || option.children !== undefined || place.parent !== undefined;
    return this.#make("addOptions", option, bindings, fields, {
      options: optionCount(option),
      groupItems: group ? 1 : 0,
      contextIds: contextCount(option),
    });
  }

  /** Changes to one option, by its ID or by the object that makes it. */
  updateOption(option: Omit<Binding, "field">, changes: OptionChanges, fields: StepFields): Step {
    const { add = [], remove = [], set = [] } = changes.contexts ?? {};
    return this.#make("updateOptions", changes, [{ field: "_id", ...option }], fields, {
      groupItems: changes.parent === undefined ? 0 : 1,
      contextIds: add.length + remove.length + set.length,
    });
  }

  /** An option to delete; `inTree` says that it is an option group or a sub-option (management-api 8.1). */
  deleteOption(option: Omit<Binding, "field">, inTree: boolean, fields: StepFields): Step {
    return this.#make("deleteOptions", undefined, [{ field: "_id", ...option }], fields, {
      groupItems: inTree ? 1 : 0,
    });
  }

  #make(
    operation: BulkOperation,
    item: object | undefined,
    bindings: readonly Binding[],
    fields: StepFields,
    weight: Partial<Weight>,
  ): Step {
    const json = item === undefined ? "" : JSON.stringify(item);
    return {
      id: this.#next(),
      operation,
      json,
      bindings,
      weight: { items: 1, options: 0, groupItems: 0, contextIds: 0, bytes: entryBytes(json, bindings), ...weight },
      ...fields,
    };
  }
}

const sentItem = z.record(z.string(), z.unknown());
const emptied = z.union([
  z.strictObject({ remove: z.array(z.string()) }),
  z.strictObject({ set: z.array(z.string()).length(0) }),
]);

/**
 * The fields in which a step's item says something: `parent: null` is `detach`, and `onlyLoss` stands beside `contexts`
 * that take Context IDs away and give none.
 */
export function sentFields({ json, bindings }: Step): readonly string[] {
  const item = sentItem.parse(json === "" ? {} : JSON.parse(json));
  return [
    ...bindings.map(({ field }) => field),
    ...Object.keys(item).map((field) => (item[field] === null ? "detach" : field)),
    ...(emptied.safeParse(item.contexts).success ? ["onlyLoss"] : []),
  ];
}

/** How many options an option to create is, its sub-options included. */
function optionCount(option: OptionToCreate): number {
  return 1 + (option.children?.length ?? 0);
}

function contextCount(option: OptionToCreate): number {
  const own = option.contexts?.length ?? 0;
  return (option.children ?? []).reduce((sum, child) => sum + (child.contexts?.length ?? 0), own);
}
