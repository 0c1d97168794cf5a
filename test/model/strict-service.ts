import type { CreateItem, Item, UpdateItem } from "../../src/model/targeting-model.ts";
import type { Random, Tree } from "./cases.ts";

/**
 * The options of a targeting with the rules of the API documents, written by hand. No rule is taken from the code under
 * test. The updates of a request run at the same time (management-api 4.1). So the request is tried in several orders,
 * and each must be accepted and lead to the same result. A request that creates or deletes is applied as one unit, in
 * its order.
 */
export class StrictService {
  tree: Tree;
  readonly #random: Random;

  constructor(before: Tree, random: Random) {
    this.tree = copyOf(before);
    this.#random = random;
  }

  /**
   * Applies a request. Throws an Error that names the broken rule if the service would refuse one of the items in some
   * order.
   */
  apply(items: readonly Item[]): void {
    checkNames(this.tree, items);
    const { shuffled } = this.#random;
    const areUpdates = items.every(({ op }) => op === "update");
    const orders = areUpdates ? [items, items.toReversed(), shuffled(items), shuffled(items)] : [items];
    const [result, ...others] = orders.map((order) => this.#inOrder(order));
    for (const other of others) if (textOf(other) !== textOf(result)) throw new Error("the order of the items matters");
    this.tree = result ?? this.tree;
  }

  #inOrder(items: readonly Item[]): Tree {
    const tree = copyOf(this.tree);
    for (const item of items) {
      if (item.op === "create") create(tree, item);
      else if (item.op === "update") update(tree, item);
      else remove(tree, item.ref);
    }
    return tree;
  }
}

function copyOf(tree: Tree): Tree {
  return new Map([...tree].map(([id, one]) => [id, { ...one, contexts: new Set(one.contexts) }]));
}

/** Returns options as a text that is the same for equal options. */
export function textOf(tree: Tree | undefined): string {
  const rows = [...(tree ?? [])].map(([id, one]) =>
    JSON.stringify([id, { ...one, contexts: [...one.contexts].sort() }]),
  );
  return rows.sort().join("\n");
}

/** Checks names in the order of the items: each name must be free when its item is applied (management-api 4.1). */
function checkNames(tree: Tree, items: readonly Item[]): void {
  const holders = new Map([...tree].map(([id, { name }]) => [name, id]));
  const take = (name: string, id: string): void => {
    const holder = holders.get(name);
    if (holder !== undefined && holder !== id) throw new Error(`the name "${name}" of ${id} is that of ${holder}`);
    holders.set(name, id);
  };
  for (const item of items) {
    if (item.op === "create") for (const one of [item, ...item.children]) take(one.name, one.ref);
    else if (item.op === "update" && item.name !== undefined) {
      const before = tree.get(item.ref)?.name;
      if (before !== undefined && holders.get(before) === item.ref) holders.delete(before);
      take(item.name, item.ref);
    }
  }
}

function checkOwner(tree: Tree, group: string, contexts: readonly string[]): void {
  for (const [id, one] of tree) {
    if (id === group || !one.group) continue;
    for (const context of contexts)
      if (one.contexts.has(context)) throw new Error(`${context} of ${group} is that of ${id}`);
  }
}

function checkFilled(tree: Tree, group: string | null): void {
  const one = group === null ? undefined : tree.get(group);
  if (one === undefined || one.contexts.size > 0) return;
  if (![...tree.values()].some(({ parent }) => parent === group)) throw new Error(`${group} is empty`);
}

function checkGroup(tree: Tree, parent: string | null): void {
  if (parent !== null && tree.get(parent)?.group !== true) throw new Error(`${parent} is not a group`);
}

function create(tree: Tree, { ref, name, group, parent, expose, contexts, children }: CreateItem): void {
  if (tree.has(ref)) throw new Error(`${ref} is made twice`);
  checkGroup(tree, parent);
  if (group && parent !== null) throw new Error(`${ref} is a group in a group`);
  if (group) checkOwner(tree, ref, contexts);
  tree.set(ref, { name, group, parent, expose, contexts: new Set(contexts) });
  for (const child of children) {
    tree.set(child.ref, {
      name: child.name,
      group: false,
      parent: ref,
      expose: false,
      contexts: new Set(child.contexts),
    });
  }
  if (group) checkFilled(tree, ref);
}

function update(tree: Tree, { ref, name, parent, expose, add, remove: gone }: UpdateItem): void {
  const one = tree.get(ref);
  if (one === undefined) throw new Error(`${ref} does not exist`);
  if (one.group && parent !== undefined) throw new Error(`${ref} is a group that moves`);
  if (one.group) checkOwner(tree, ref, add);
  if (name !== undefined) one.name = name;
  if (expose !== undefined) one.expose = expose;
  for (const id of add) one.contexts.add(id);
  for (const id of gone) one.contexts.delete(id);
  if (one.group) checkFilled(tree, ref);
  if (parent === undefined || parent === one.parent) return;
  checkGroup(tree, parent);
  const { parent: left } = one;
  one.parent = parent;
  checkFilled(tree, left);
}

function remove(tree: Tree, ref: string): void {
  const one = tree.get(ref);
  if (one === undefined) throw new Error(`${ref} does not exist`);
  tree.delete(ref);
  // The documents do not say whether sub-options are deleted with their group or move to the top level. So a group that
  // is deleted must not have any that should stay.
  for (const child of tree.values()) if (child.parent === ref) child.parent = null;
  checkFilled(tree, one.parent);
}
