import { randomUUID } from "node:crypto";
import type { Clock } from "../../platform/clock.ts";
import { HeldLease, type Lease } from "../turn.ts";
import type { Database } from "./database.ts";
import type { Member } from "./member.ts";

export const TTL = "6 seconds";

export interface LeasesOf {
  readonly database: Database;
  readonly member: Member;
  readonly clock: Clock;
}

export function driverOf(runId: string): string {
  return `run:${runId}`;
}

export async function takeLease(of: LeasesOf, name: string): Promise<StoredLease | undefined> {
  const token = randomUUID();
  const number = await of.member.number();
  const query = "select * from targeting_mcp.take($1, $2, $3, $4)";
  const [taken] = await of.database.rows<Taken>(query, [name, number, token, TTL]);
  return taken && new StoredLease(of, { name, token }, taken);
}

type Taken = {
  readonly new_epoch: string;
  readonly taken_over: boolean;
  readonly was_unsettled: boolean;
  readonly asked_before: string;
};

/** Each journal entry renews this lease. */
export class StoredLease extends HeldLease {
  readonly token: string;
  readonly #database: Database;
  asked: bigint;

  constructor({ database, clock }: LeasesOf, { name, token }: Pick<StoredLease, "name" | "token">, taken: Taken) {
    const { new_epoch, taken_over, was_unsettled, asked_before } = taken;
    super({ name, epoch: BigInt(new_epoch), isTakenOver: taken_over, isUnsettled: was_unsettled }, clock);
    this.token = token;
    this.#database = database;
    this.asked = BigInt(asked_before);
  }

  protected async renewed(): Promise<boolean> {
    const query = "select * from targeting_mcp.renew($1, $2, $3)";
    const [renewed] = await this.#database.rows<{ asked: string }>(query, [this.name, this.token, TTL]);
    if (renewed !== undefined) this.asked = BigInt(renewed.asked);
    return renewed !== undefined;
  }

  async stillHeld(): Promise<boolean> {
    const query = "select from targeting_mcp.lease where name = $1 and token = $2";
    return (await this.#database.rows(query, [this.name, this.token])).length > 0;
  }

  protected async giveBack(isUnsettled: boolean): Promise<void> {
    const query = "update targeting_mcp.lease set released = true, unsettled = $3 where name = $1 and token = $2";
    await this.#database.rows(query, [this.name, this.token, isUnsettled]);
  }
}

export function storedLease(lease: Lease): StoredLease {
  if (!(lease instanceof StoredLease)) throw new TypeError("the lease belongs to another store");
  return lease;
}
