import { randomUUID } from "node:crypto";
import type { Clock } from "../../platform/clock.ts";
import { HeldBackError } from "../../platform/fence.ts";
import {
  agoOf,
  checkFresh,
  type Intent,
  isFresh,
  type Lease,
  LeaseLostError,
  readClocks,
  TAKE_OVER_WAIT_MS,
} from "../turn.ts";
import type { Database } from "./database.ts";
import type { Member } from "./member.ts";

/** How often a holder renews a lease that nothing else renews, and how long after that others may take it over. */
const BEAT_MS = 2000;
export const TTL = "6 seconds";

export interface LeasesOf {
  readonly database: Database;
  readonly member: Member;
  readonly clock: Clock;
}

/** The name under which the lease of a run is kept. */
export function driverOf(runId: string): string {
  return `run:${runId}`;
}

/** Tries to take a lease; undefined while another holding has it. */
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

/** A lease in the database that this process holds. The journal renews it together with what it appends. */
export class StoredLease implements Lease {
  readonly name: string;
  readonly token: string;
  readonly epoch: bigint;
  readonly isTakenOver: boolean;
  readonly #of: LeasesOf;
  readonly #losing = new AbortController();
  readonly #settledAt: number;
  readonly #beat: NodeJS.Timeout;
  #renewedAt: Intent;
  /** How often others had asked for it when it was renewed last. */
  asked: bigint;

  constructor(of: LeasesOf, { name, token }: Pick<StoredLease, "name" | "token">, taken: Taken) {
    this.name = name;
    this.token = token;
    this.epoch = BigInt(taken.new_epoch);
    this.isTakenOver = taken.taken_over;
    this.asked = BigInt(taken.asked_before);
    this.#of = of;
    this.#renewedAt = readClocks(of.clock);
    this.#settledAt = taken.was_unsettled ? this.#renewedAt.monotonic + TAKE_OVER_WAIT_MS : Number.NEGATIVE_INFINITY;
    // Where the lease cannot be renewed now, it is renewed again before a request leaves by it.
    this.#beat = setInterval(() => void this.check(BEAT_MS / 2).catch(() => undefined), BEAT_MS).unref();
  }

  get lost(): AbortSignal {
    return this.#losing.signal;
  }

  async settled(signal?: AbortSignal): Promise<void> {
    const { clock } = this.#of;
    for (let left = this.#settledAt - clock.monotonic(); left > 0; left = this.#settledAt - clock.monotonic()) {
      await clock.sleep(Math.ceil(left), signal);
    }
  }

  async renew(): Promise<Intent> {
    await this.settled();
    for (;;) {
      const intent = readClocks(this.#of.clock);
      await this.check();
      // Where the database was away meanwhile, the readings are too old by now.
      if (isFresh(intent, this.#of.clock)) return intent;
    }
  }

  async check(recentMs = 0): Promise<void> {
    this.#losing.signal.throwIfAborted();
    if (agoOf(this.#renewedAt, this.#of.clock) < recentMs) return;
    const query = "select * from targeting_mcp.renew($1, $2, $3)";
    const [renewed] = await this.#of.database.rows<{ asked: string }>(query, [this.name, this.token, TTL]);
    if (renewed === undefined) throw this.lose();
    this.wasRenewed(BigInt(renewed.asked));
  }

  async stillHeld(): Promise<boolean> {
    const query = "select from targeting_mcp.lease where name = $1 and token = $2";
    return (await this.#of.database.rows(query, [this.name, this.token])).length > 0;
  }

  /** Notes that an append has renewed it. */
  wasRenewed(asked: bigint = this.asked): void {
    this.asked = asked;
    this.#renewedAt = readClocks(this.#of.clock);
  }

  /** Notes that another holding has it; gives the error that says so. */
  lose(): LeaseLostError {
    clearInterval(this.#beat);
    const lost = new LeaseLostError(`another process has taken over the lease "${this.name}"`);
    if (!this.#losing.signal.aborted) this.#losing.abort(lost);
    return lost;
  }

  mayLeave(intent: Intent): void {
    if (this.#losing.signal.aborted) throw new HeldBackError("another process writes now");
    checkFresh(intent, this.#of.clock);
  }

  async release(): Promise<void> {
    clearInterval(this.#beat);
    if (this.#losing.signal.aborted) return;
    const { database, clock } = this.#of;
    const query = "update targeting_mcp.lease set released = true, unsettled = $3 where name = $1 and token = $2";
    await database.rows(query, [this.name, this.token, clock.monotonic() < this.#settledAt]);
  }
}

/** A lease as this store has given it. Throws a TypeError for one of another store. */
export function storedLease(lease: Lease): StoredLease {
  if (!(lease instanceof StoredLease)) throw new TypeError("the lease is of another store");
  return lease;
}
