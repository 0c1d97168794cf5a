import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { SeenWrite } from "../service-gate.ts";

/** Checks for each write whether the process that sent it may write. */
export interface LeaseWatch {
  look(write: SeenWrite, pid: number | undefined): Promise<void>;
  /** Writes of a former holder of a lease that arrived after the first write of the next holder. */
  readonly late: readonly string[];
  /** The number of writes of a former holder that arrived before the first write of the next holder. */
  readonly betweenHolders: number;
  /** The number of writes that could be checked. */
  readonly looked: number;
  close(): Promise<void>;
}

interface Holding {
  readonly name: string;
  readonly epoch: string;
  readonly pid: number;
}

/**
 * For how many milliseconds a write waits for the store. Much less than a request may take: otherwise the process would
 * count the write as lost, and send another one beside it.
 */
const LOOK_MS = 2000;
const HELD = `
  select l.name, l.epoch, split_part(w.name, ':', 2)::int as pid
  from targeting_mcp.lease l join targeting_mcp.worker w on w.number = l.worker
  where l.name = 'project:' || (select project from targeting_mcp.run where caller like '%' || $1 limit 1) and not l.released`;

/** Watches the leases of projects. Each key has its own project, in which only one caller has runs. */
export function leaseWatch(store: string, callerOf: (key: string) => string): LeaseWatch {
  const pool = new pg.Pool({ connectionString: store, max: 8, connectionTimeoutMillis: 500, query_timeout: 500 });
  pool.on("error", () => undefined);
  const written = new Set<string>();
  const late: string[] = [];
  const counted = { between: 0, looked: 0 };
  /** Returns who holds the lease of a key's project; undefined if the store does not answer or nobody holds it. */
  const holding = async (key: string): Promise<Holding | undefined> => {
    const until = Date.now() + LOOK_MS;
    while (Date.now() < until) {
      try {
        return (await pool.query<Holding & pg.QueryResultRow>(HELD, [callerOf(key)])).rows[0];
      } catch {
        await delay(50);
      }
    }
    return undefined;
  };
  return {
    async look({ from, key, path }, pid) {
      const held = await holding(key);
      if (held === undefined) return;
      counted.looked += 1;
      const mark = `${held.name} ${held.epoch}`;
      if (held.pid === pid) written.add(mark);
      else if (written.has(mark)) late.push(`process ${from} (${pid}) ${path} beside ${held.pid} with ${key}`);
      else counted.between += 1;
    },
    late,
    get betweenHolders() {
      return counted.between;
    },
    get looked() {
      return counted.looked;
    },
    close: () => pool.end(),
  };
}
