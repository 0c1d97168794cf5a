import { type OptionRow, optionRows } from "../files/option-rows.ts";
import { placeOf, type Row } from "../files/rows.ts";
import { Numbers } from "../lists.ts";
import { ownReason } from "../reasons.ts";
import type { RowSteps } from "../step-table.ts";
import type { Reason } from "../work.ts";
import type { AddOptionInput } from "./add-options.ts";
import { badId, badName } from "./checks.ts";
import { NameIndex } from "./name-index.ts";
import { type CheckedOption, checkOne, checkOption, type NamesInUse, type NewOption } from "./options.ts";
import type { Plan } from "./plan.ts";

/** An option with more Context IDs than this is not kept as a row: they may need several requests. */
const ROW_CONTEXT_IDS = 100;

/** An option or group that can be made, and what the caller gave. */
export interface Candidate {
  readonly item: AddOptionInput;
  readonly object: number;
  readonly option: NewOption;
}

/** An option that further rows of the file may add to. */
interface OpenOption {
  readonly place: { readonly index: number; readonly line?: number };
  readonly object: number;
  readonly item: OptionRow;
}

/**
 * Takes what a call gives, row by row, and checks it as it comes. Most of a large file are plain options: of those only
 * the item that is sent is kept, so that a file of a hundred thousand rows needs a few megabytes.
 */
export class OptionDrafts {
  readonly #plan: Plan;
  readonly #targetingId: string;
  readonly #index = new NameIndex();
  readonly #objects = new Numbers();
  readonly #texts = new Numbers();
  readonly #contextIds = new Numbers();
  /** Plain options that further rows made more of. */
  readonly #grown = new Set<number>();
  readonly #open = new Map<string, OpenOption>();
  /** Keys of rows that failed: further rows of theirs fail with them. */
  readonly #failed = new Set<string>();
  readonly #candidates: Candidate[] = [];
  readonly #otherNames = new Map<string, number>();
  /** The index of a name's first use. */
  readonly #names: NamesInUse = {
    get: (name) => {
      const plain = this.#plainNamed(name);
      return plain === undefined
        ? this.#otherNames.get(name)
        : this.#plan.objects.placeOf(this.#objects.at(plain)).index;
    },
    set: (name, index) => void this.#otherNames.set(name, index),
  };

  constructor(plan: Plan, targetingId: string) {
    this.#plan = plan;
    this.#targetingId = targetingId;
  }

  take(rows: readonly Row<AddOptionInput>[]): void {
    for (const row of rows) {
      const { content } = row;
      if ("reason" in content) this.#plan.failGiven({ ...placeOf(row), reason: content.reason });
      else if (content.key !== undefined) this.#takeKeyed(row, content.key, content.item);
      else if (isPlain(content.item)) this.#takePlain(row, checkOne(content.item, this.#names), content.item.name);
      else this.#takeFull(row, content.item);
    }
  }

  #takeKeyed(row: Row<AddOptionInput>, key: string, item: AddOptionInput): void {
    if (this.#failed.size > 0 && this.#failed.has(key)) return;
    const open = (this.#open.size > 0 ? this.#open.get(key) : undefined) ?? this.#grow(key);
    if (open !== undefined) {
      const clash = optionRows.merge(open.item, item);
      if (clash !== undefined) this.#plan.failGiven({ ...placeOf(row), reason: clash });
    } else if (isPlain(item)) {
      // The row was read with its Context IDs checked, and no row had its name before.
      const { name, contexts = [] } = item;
      if (!this.#takePlain(row, badName(name) ?? { name, contexts }, name)) this.#failed.add(key);
    } else this.#opened(key, row, this.#plan.object({ ...placeOf(row), name: item.name }), item);
  }

  /** The options and groups that need a closer look, once all rows were taken. */
  candidates(): readonly Candidate[] {
    for (const { place, object, item } of this.#open.values()) {
      this.#check({ ...place, object, child: () => object }, item, new Map());
    }
    return this.#candidates.sort((one, other) => one.object - other.object);
  }

  /** The plain options in their order: those together whose objects and items follow each other. */
  *plain(): Generator<RowSteps> {
    for (let from = 0; from < this.#objects.length; ) {
      const [object, text] = [this.#objects.at(from), this.#texts.at(from)];
      let to = from;
      while (this.#objects.at(to) - object === to - from && this.#texts.at(to) - text === to - from) {
        if (to === this.#objects.length || this.#grown.has(to)) break;
        to += 1;
      }
      if (to > from) yield { object, text, contextIds: this.#contextIds.slice(from, to) };
      from = Math.max(to, from + 1);
    }
  }

  #plainNamed(name: string): number | undefined {
    const { tables } = this.#plan;
    return this.#index.find(name, (plain) => tables.rowAt(this.#texts.at(plain)).name === name);
  }

  /** Takes what was checked; tells whether it can be made. */
  #takePlain(row: Row<AddOptionInput>, checked: CheckedOption | Reason, name: string): boolean {
    const { objects, tables } = this.#plan;
    if ("code" in checked) {
      this.#plan.fail(this.#plan.object({ ...placeOf(row), name }), checked);
      return false;
    }
    const text = tables.keepRow(this.#targetingId, checked.name, checked.contexts);
    this.#index.add(checked.name);
    this.#objects.push(objects.addRow(row, text));
    this.#texts.push(text);
    this.#contextIds.push(checked.contexts.length);
    return true;
  }

  #takeFull(row: Row<AddOptionInput>, item: AddOptionInput): void {
    const { index } = row;
    const object = this.#plan.object({ ...placeOf(row), name: item.name });
    const children = (item.children ?? []).map((child, position) =>
      this.#plan.object({ ...placeOf(row), child: position, name: child.name }),
    );
    this.#check({ index, object, child: (position) => children[position] ?? object }, item, this.#names);
  }

  #check(
    place: { readonly index: number; readonly object: number; child(position: number): number },
    item: AddOptionInput,
    names: NamesInUse,
  ): void {
    const { object } = place;
    const misplaced = badPlace(item);
    if (misplaced !== undefined) {
      this.#plan.fail(object, misplaced);
      const left = ownReason("NEEDS_FAILED", { needs: object });
      for (const position of (item.children ?? []).keys()) this.#plan.leaveOut(place.child(position), left);
      return;
    }
    // A group may still get sub-options of other items.
    const option = checkOption(this.#plan, item, place, names, true);
    if (option !== undefined) this.#candidates.push({ item, object, option });
  }

  /** A plain option gets a further row. */
  #grow(key: string): OpenOption | undefined {
    const plain = this.#plainNamed(key);
    if (plain === undefined) return undefined;
    this.#grown.add(plain);
    const object = this.#objects.at(plain);
    const { targeting: _, ...item } = this.#plan.tables.rowAt(this.#texts.at(plain));
    return this.#opened(key, this.#plan.objects.placeOf(object), object, item);
  }

  #opened(key: string, place: OpenOption["place"], object: number, item: AddOptionInput): OpenOption {
    const open = { place: placeOf(place), object, item: { ...item, contexts: [...(item.contexts ?? [])] } };
    this.#open.set(key, open);
    return open;
  }
}

function isPlain(item: AddOptionInput): boolean {
  return (
    (item.contexts?.length ?? 0) <= ROW_CONTEXT_IDS &&
    item.type !== "collection" &&
    item.children === undefined &&
    item.exposeChildren === undefined &&
    item.parent === undefined &&
    item.parentName === undefined
  );
}

/** Rules about `parent` (management-api 7.4, case 3). */
function badPlace(item: AddOptionInput): Reason | undefined {
  const { parent, parentName } = item;
  if (parent === undefined && parentName === undefined) return undefined;
  if (parent !== undefined && parentName !== undefined) {
    return ownReason("INVALID_ITEM", { problem: "parentAndParentName" });
  }
  if (item.type === "collection" || item.children !== undefined || item.exposeChildren !== undefined) {
    return ownReason("INVALID_ITEM", { problem: "groupWithParent" });
  }
  return parent === undefined ? undefined : badId("parent", parent);
}
