import { lineBytes } from "../backend/kept.ts";
import { LostEntriesError, type RunJournal } from "../backend/store.ts";
import { type Intent, isFresh, type Lease, readClocks, type Turn } from "../turn.ts";
import { driverOf, type LeasesOf, StoredLease, storedLease, TTL } from "./lease.ts";

const APPEND = "select * from targeting_mcp.append($1, $2, $3, $4, $5, $6, $7, $8)";
interface Appended {
  readonly result: "ok" | "run lost" | "turn lost" | "elsewhere";
  readonly turn_asked: string;
  readonly seq_now: string;
  /** Not known where nothing was appended. */
  readonly stop_asked: boolean | null;
}

/**
 * Opens a journal for appending by a lease of this store. While the database is away an append waits for it, for as
 * long as the lease is not known to be lost: an answer of the API that came meanwhile is kept, and never asked for again.
 */
export async function openStoredJournal(of: LeasesOf, runId: string, given: Lease): Promise<RunJournal> {
  const lease = storedLease(given);
  const [found] = await of.database.rows<{ seq: string }>("select seq from targeting_mcp.run where id = $1", [runId]);
  let seq = BigInt(found?.seq ?? "0");
  let waiting: Buffer[] = [];
  let turns: Promise<unknown> = Promise.resolve();

  /** One commit: what waits is appended, and the leases are renewed. Gives whether the run was asked to stop before. */
  const append = async (turn: StoredLease | undefined): Promise<boolean | undefined> => {
    lease.lost.throwIfAborted();
    const taken = waiting.length;
    if (taken === 0 && turn === undefined) {
      await lease.check();
      return undefined;
    }
    const body = taken === 0 ? null : Buffer.concat(waiting);
    const values = [runId, driverOf(runId), lease.token, seq, body, turn?.name ?? null, turn?.token ?? null, TTL];
    const [told] = await of.database.rows<Appended & { [column: string]: unknown }>(APPEND, values, lease.lost);
    if (told?.result === "run lost") throw lease.lose();
    if (told?.result === "turn lost" && turn !== undefined) throw turn.lose();
    if (told?.result !== "ok") {
      // What still follows, such as why the run stops, comes after what is there.
      waiting = [];
      seq = BigInt(told?.seq_now ?? seq);
      throw behind(runId);
    }
    lease.wasRenewed();
    turn?.wasRenewed(BigInt(told.turn_asked));
    if (body !== null) seq = BigInt(told.seq_now);
    waiting = waiting.slice(taken);
    of.member.changed(runId);
    return told.stop_asked ?? undefined;
  };
  /** Appends follow each other. */
  const inTurn = (turn?: StoredLease): Promise<boolean | undefined> => {
    const done = turns.then(() => append(turn));
    turns = done.catch(() => undefined);
    return done;
  };
  return {
    append: (line) => void waiting.push(Buffer.concat(lineBytes(line))),
    // The next flush throws what goes wrong here.
    write: () => void inTurn().catch(() => undefined),
    flush: async () => void (await inTurn()),
    async intend(turn: Turn): Promise<Intent> {
      await lease.settled();
      const other = turn instanceof StoredLease && turn !== lease ? turn : undefined;
      await other?.settled();
      let stopAsked: boolean | undefined;
      for (;;) {
        const intent = readClocks(of.clock);
        stopAsked = (await inTurn(other)) ?? stopAsked;
        if (other === undefined && turn !== lease) await turn.renew();
        // Where the database was away meanwhile, the readings are too old by now.
        if (isFresh(intent, of.clock)) return stopAsked === undefined ? intent : { ...intent, stopAsked };
      }
    },
    async appendLate(line) {
      await of.database.rows(
        `with at as (update targeting_mcp.run set late = late + 1, changes = changes + 1 where id = $1 returning seq, late)
         insert into targeting_mcp.entry (run, seq, late, epoch, body) select $1, seq, late, $2, $3 from at`,
        [runId, lease.epoch, Buffer.concat(lineBytes(line))],
      );
    },
    async close() {
      if (waiting.length > 0) await inTurn();
      await turns;
    },
  };
}

/** After a failover that lost entries, the journal no longer holds what was acknowledged. */
function behind(runId: string): LostEntriesError {
  const remedy = "look at what was applied before it is resumed";
  return new LostEntriesError(
    `the store has lost entries of run ${runId} that it had acknowledged, as in a failover to a standby that was behind: ${remedy}`,
    `Use list_options: ${remedy}.`,
  );
}
