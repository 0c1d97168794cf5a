import { splitBeside } from "../../files/cells.ts";
import { digestOfContexts, type ServiceOption } from "../base/service-targeting.ts";
import type { ContextsWish } from "../file/desired.ts";
import type { DesiredRow, Sides } from "./match.ts";
import type { WantedPlace, WantedPlaces } from "./places.ts";
import type { ContextsChange, DifferingField, ShownValue } from "./plan.ts";

/** The fields of an option that are to change. */
export interface FieldChanges {
  name?: string;
  place?: WantedPlace;
  exposeChildren?: boolean;
  contexts?: ContextsChange;
}

/** Compares a row with its option and its base, field by field. Gives what is to change. */
export function compareRow(row: DesiredRow, there: ServiceOption, wanted: WantedPlaces, sides: Sides): FieldChanges {
  const { service, conflicts, groupName } = sides;
  const { option, base } = row;
  const changes: FieldChanges = {};
  const tell = tellerOf(row, there, sides);
  const isNamed = tell("name", {
    file: option.name === undefined ? undefined : side(option.name),
    base: base && side(base.name),
    service: side(there.name),
  });
  if (isNamed && option.name !== undefined) changes.name = option.name;
  const parentSide = (parent: string | null): Side => ({
    key: parent,
    told: parent === null ? null : groupName(parent),
  });
  const place = wanted.place(row);
  const isMoved = tell("parent", {
    file: placeSide(place, groupName),
    base: base && parentSide(base.parent),
    service: parentSide(there.parent),
  });
  // A group that is gone cannot take anything in.
  const isLost = place.kind === "there" && !service.byId.has(place._id);
  if (isMoved && isLost) {
    const file = groupName(place._id);
    conflicts.push({ _id: there._id, name: there.name, field: "parent", file, line: option.line });
  } else if (isMoved) changes.place = place;
  if (there.type === "collection") {
    const isSet = tell("exposeChildren", {
      file: option.exposeChildren === undefined ? undefined : side(option.exposeChildren),
      base: base && side(base.exposeChildren ?? false),
      service: side(there.exposeChildren ?? false),
    });
    if (isSet && option.exposeChildren !== undefined) changes.exposeChildren = option.exposeChildren;
  }
  const contexts = compareContexts(wishBeside(option.contexts, there), row, there, tell);
  if (contexts !== undefined) changes.contexts = contexts;
  return changes;
}

/** Whether the file wants another value of a field, and may have it. */
type Teller = (field: DifferingField, values: Sided) => boolean;

/** Three-way: looks at what the file says against what it was and what it is, and notes drift and conflicts. */
function tellerOf({ option }: DesiredRow, { _id, name }: ServiceOption, { drift, conflicts }: Sides): Teller {
  return (field, { file, base, service }) => {
    if (file?.key === service.key) return false;
    if (base === undefined || base.key === service.key) return file !== undefined;
    const told = { base: base.told, file: file?.told, service: service.told };
    const isDrift = file === undefined || file.key === base.key;
    (isDrift ? drift : conflicts).push({ _id, name, field, ...told, line: option.line });
    return false;
  };
}

/** The value of a field on one side: the key by which it is compared, and the value that is shown. */
interface Side {
  readonly key: ShownValue | object;
  readonly told: ShownValue;
}

interface Sided {
  /** Absent: not managed. */
  readonly file: Side | undefined;
  readonly base: Side | undefined;
  readonly service: Side;
}

function side(value: string | boolean): Side {
  return { key: value, told: value };
}

function placeSide(place: WantedPlace, groupName: (id: string) => string): Side | undefined {
  if (place.kind === "unsaid" || place.kind === "lost") return undefined;
  if (place.kind === "top") return { key: null, told: null };
  if (place.kind === "there") return { key: place._id, told: groupName(place._id) };
  // A group that is yet to be created is no parent on any other side.
  return { key: place.row, told: place.row.option.name ?? "" };
}

/** A wish of which the Context IDs stay whole that the option holds with a separator in them. */
function wishBeside(wish: ContextsWish | undefined, { contexts }: ServiceOption): ContextsWish | undefined {
  if (wish?.split === undefined) return wish;
  const taken = new Set(splitBeside(wish.split, []));
  const whole = splitBeside(wish.split, contexts);
  if (whole.length === taken.size && whole.every((id) => taken.has(id))) return wish;
  const kept = (ids: readonly string[]) => ids.filter((id) => !taken.has(id));
  if (wish.remove !== undefined) return { ...wish, remove: [...new Set([...kept(wish.remove), ...whole])] };
  return { ...wish, ids: [...new Set([...kept(wish.ids), ...whole])] };
}

function compareContexts(
  wish: ContextsWish | undefined,
  { base }: DesiredRow,
  there: ServiceOption,
  tell: Teller,
): ContextsChange | undefined {
  const exact = wish === undefined || wish.atLeast ? undefined : digestOfContexts(wish.ids);
  const isWanted = tell("contexts", {
    file: exact === undefined ? undefined : { key: exact, told: wish?.ids.length ?? 0 },
    base: base && { key: base.digest, told: base.contexts },
    service: { key: there.digest, told: there.contexts.length },
  });
  if (wish === undefined || (exact !== undefined && !isWanted)) return undefined;
  const held = new Set(there.contexts);
  const add = wish.ids.filter((id) => !held.has(id));
  if (exact === undefined) {
    const remove = (wish.remove ?? []).filter((id) => held.has(id) && !wish.ids.includes(id));
    return add.length + remove.length === 0 ? undefined : { add, remove };
  }
  const ids = new Set(wish.ids);
  return { add, remove: there.contexts.filter((id) => !ids.has(id)), after: exact };
}
