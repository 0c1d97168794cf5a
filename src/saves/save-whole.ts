import type { ManagementApi } from "../api/management.ts";
import { findFreePlace, type Place } from "../files/folders.ts";
import { type BaseOption, baseOptionOf, basePathOf, baseText } from "../plans/base/base.ts";
import type { ServiceOption } from "../plans/base/service-targeting.ts";
import { formatOfDesired } from "../plans/file/read-desired.ts";
import { desiredText } from "../plans/file/write-desired.ts";
import { serviceOption } from "../plans/read-targeting.ts";
import type { Clock } from "../platform/clock.ts";
import type { PlacedOption } from "../reading/saved-options.ts";
import type { ContentsStore } from "../runs/backend/backend.ts";
import type { OptionRecord } from "../spec/records.ts";

/** Whether the name of a file asks for a desired state, which holds a whole targeting. */
export function asksDesired(saveTo: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(saveTo);
}

/** What saving needs of the world. */
export interface SavingWorld {
  readonly api: ManagementApi;
  readonly contents: ContentsStore | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** A whole targeting that is being saved: as a desired state, or in rows; with its base beside the file. */
export interface WholeTargeting {
  /** Takes an option whose Context IDs were read. */
  readonly take: (option: OptionRecord, contexts: readonly string[]) => void;
  /** Says which options there are, in their order, each group before its sub-options: before any is taken. */
  readonly expect: (options: readonly PlacedOption[]) => void;
  /** The desired state, once all rows were read. Throws a FileError where the form cannot hold so many. */
  readonly desired: (rows: AsyncIterable<unknown>) => AsyncGenerator<string>;
  /** Where the base will be. */
  readonly base: Place;
  /** The text of the base, once every option was taken. */
  readonly baseText: () => AsyncGenerator<string>;
}

/**
 * Prepares saving a whole targeting to a file. Throws an ApiError where the targeting cannot be read, and a FileError
 * where there is a base already.
 */
export async function wholeTargeting(
  targetingId: string,
  { path }: Place,
  folders: readonly string[],
  { api, clock, signal }: SavingWorld,
): Promise<WholeTargeting> {
  const base = await findFreePlace(basePathOf(path), folders);
  // Rows are written as they are read, so that only a desired state is held as a whole.
  const isHeld = asksDesired(path);
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const targeting = { _id, name };
  const lines = new Map<string, BaseOption>();
  const held = new Map<string, ServiceOption>();
  const groupOf = new Map<string, string>();
  let order: readonly string[] = [];
  return {
    base,
    expect(options) {
      order = options.map(({ option }) => option._id);
      let group = "";
      for (const { option, groupName } of options) {
        if (groupName === undefined) group = option._id;
        else groupOf.set(option._id, group);
      }
    },
    take(option, contexts) {
      const read = serviceOption(option, groupOf.get(option._id) ?? null, contexts);
      lines.set(option._id, baseOptionOf(read));
      if (isHeld) held.set(option._id, read);
    },
    async *desired(rows) {
      const reading = rows[Symbol.asyncIterator]();
      while (!(await reading.next()).done);
      yield* desiredText({ targeting, options: order.flatMap((id) => held.get(id) ?? []) }, formatOfDesired(path));
    },
    async *baseText() {
      const options = new Map(order.flatMap((id) => lines.get(id) ?? []).map((line) => [line._id, line]));
      const exportedAt = new Date(clock.now()).toISOString();
      yield [...baseText({ targeting, exportedAt, options })].join("");
    },
  };
}
