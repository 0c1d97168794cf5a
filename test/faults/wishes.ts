import type { WriteCall } from "../../src/changes/call.ts";

/** What a call wants to do with one object of its report. */
export type ApprovalRequest =
  | { readonly kind: "targeting"; readonly name: string }
  | {
      readonly kind: "option";
      /** The targeting's ID, or the name of the targeting that the call creates. */
      readonly targeting: { readonly id: string } | { readonly name: string };
      readonly name: string;
      readonly contexts: readonly string[];
      readonly parent: { readonly id: string } | { readonly name: string } | undefined;
      readonly isGroup: boolean;
    }
  | { readonly kind: "targetingName"; readonly id: string; readonly name: string }
  | {
      readonly kind: "update";
      readonly id: string;
      readonly name?: string | undefined;
      readonly parent?: string | null | undefined;
      readonly exposeChildren?: boolean | undefined;
    }
  | { readonly kind: "contexts"; readonly target: { readonly id: string } | { readonly name: string } }
  /** An item that names no object. */
  | { readonly kind: "nothing" }
  | { readonly kind: "targetingGone"; readonly id: string }
  | { readonly kind: "optionGone"; readonly target: { readonly id: string } | { readonly name: string } };

/** A wish, and its position in the call. */
export interface PlacedWish {
  readonly index: number;
  readonly child?: number;
  readonly grandchild?: number;
  readonly wish: ApprovalRequest;
}

interface OptionInput {
  readonly name: string;
  readonly contexts?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly children?:
    | readonly { readonly name: string; readonly contexts?: readonly string[] | undefined }[]
    | undefined;
  readonly parent?: string | undefined;
  readonly parentName?: string | undefined;
}

/** Returns one wish for each object that the report of a call must name. */
export function wishesOf(call: WriteCall): readonly PlacedWish[] {
  switch (call.tool) {
    case "create_targetings":
      return call.input.items.flatMap(({ name, options = [] }, index) => [
        { index, wish: { kind: "targeting", name } },
        ...options.flatMap((option, child) =>
          optionWishes({ name }, option).map((wish, position) =>
            position === 0 ? { index, child, wish } : { index, child, grandchild: position - 1, wish },
          ),
        ),
      ]);
    case "bulk_add_options": {
      const { targetingId, items } = call.input;
      const named = new Set(items.map(({ parentName }) => parentName));
      return items.flatMap((option, index) => {
        // An option that other items name as their group is a group, unless its `type` says otherwise.
        const type = option.type ?? (named.has(option.name) && isAtTop(option) ? "collection" : undefined);
        return optionWishes({ id: targetingId }, { ...option, type }).map((wish, position) =>
          position === 0 ? { index, wish } : { index, child: position - 1, wish },
        );
      });
    }
    case "rename_targetings":
      return call.input.items.map(({ _id = "", name }, index) => ({
        index,
        wish: { kind: "targetingName", id: _id, name },
      }));
    case "update_options":
      return call.input.items.map(({ _id = "", ...changes }, index) => ({
        index,
        wish: { kind: "update", id: _id, ...changes },
      }));
    case "update_contexts":
      return call.input.items.flatMap(({ _id, _ids = [], name, names = [] }, index): PlacedWish[] => {
        const ids = [...new Set([...(_id === undefined ? [] : [_id]), ..._ids])].map((id) => ({ id }));
        const named = [...new Set([...(name === undefined ? [] : [name]), ...names])].map((each) => ({ name: each }));
        const targets = [...ids, ...named].map((target) => ({ index, wish: { kind: "contexts" as const, target } }));
        return targets.length > 0 ? targets : [{ index, wish: { kind: "nothing" } }];
      });
    case "apply_plan":
      throw new RangeError("the plans of desired states have a model of their own");
    case "delete_targeting":
      return call.input.ids.map((id, index) => ({ index, wish: { kind: "targetingGone", id } }));
    case "delete_options": {
      const { ids = [], names = [] } = call.input;
      const targets = [...ids.map((id) => ({ id })), ...names.map((name) => ({ name }))];
      return targets.map((target, index) => ({ index, wish: { kind: "optionGone", target } }));
    }
  }
}

function isAtTop({ parent, parentName }: OptionInput): boolean {
  return parent === undefined && parentName === undefined;
}

function optionWishes(targeting: { id: string } | { name: string }, option: OptionInput): ApprovalRequest[] {
  const { name, contexts = [], type, children, parent, parentName } = option;
  const isGroup = type === "collection" || children !== undefined;
  const place = parent === undefined ? (parentName === undefined ? undefined : { name: parentName }) : { id: parent };
  return [
    { kind: "option", targeting, name, contexts, parent: place, isGroup },
    ...(children ?? []).map((child): ApprovalRequest => {
      const inside = { name: child.name, contexts: child.contexts ?? [], parent: { name } };
      return { kind: "option", targeting, ...inside, isGroup: false };
    }),
  ];
}
