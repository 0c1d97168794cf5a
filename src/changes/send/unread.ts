import type { ApiError } from "../../api/errors.ts";
import type { BulkAnswer } from "../../api/management.ts";
import { settleAnswer, settleMade } from "../settle/answered.ts";
import type { Batch } from "../settle/batch.ts";
import type { ChangeDriver } from "../settle/change-driver.ts";

/** What came of a request that left, or was to leave. */
export type Answered =
  | { readonly kind: "answer"; readonly answer: BulkAnswer }
  | { readonly kind: "error"; readonly error: ApiError };

/**
 * An answer that is there but was not read: the sums at its end say that all items succeeded, and the next request leaves
 * first. A crash before it is read leaves its request in doubt like any whose answer was lost.
 */
export interface Unread {
  /** Reads it and applies it, where all items succeeded; they are in doubt where the results contradict the sums. */
  read(): Promise<void>;
  /** Applies results that contradicted the sums, once no other request is in flight. Reads it first. */
  finish(): Promise<void>;
}

/** The answer of a batch that `reading` reads. */
export function unreadAnswer(driver: ChangeDriver, batch: Batch, reading: () => Promise<Answered>): Unread {
  let applied: Promise<Answered | undefined> | undefined;
  const apply = async (): Promise<Answered | undefined> => {
    const answered = await reading();
    if (answered.kind === "answer" && settleMade(driver, batch, answered.answer)) return undefined;
    driver.change(batch.ids.map((step) => ({ step, to: "suspect" })));
    return answered;
  };
  const once = (): Promise<Answered | undefined> => {
    applied ??= apply();
    return applied;
  };
  return {
    async read() {
      await once();
    },
    async finish() {
      const left = await once();
      applied = Promise.resolve(undefined);
      // What is to be sent again is in doubt already, and follows with the steps that are ready then.
      if (left?.kind === "answer") await settleAnswer(driver, batch, left.answer);
    },
  };
}
