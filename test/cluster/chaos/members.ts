import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../faults/random.ts";
import { type Member, startReplica, startWorker } from "../cluster.ts";
import type { TestPostgres } from "../postgres.ts";
import type { ServiceGate } from "../service-gate.ts";
import { type StoreProxy, storeProxy } from "../store-proxy.ts";

/**
 * A process of the cluster, with its own connection to the store. When it was killed, it is started again under a new
 * number.
 */
export interface Place {
  readonly kind: "replica" | "worker";
  readonly way: StoreProxy;
  member: Member & { readonly url?: string };
}

/** A fault: of a process, of its connection to the store, or of the store itself. */
export type Trouble = "kill" | "stop" | "cut" | "hang" | "slow" | "store";

/** The processes of a cluster, and a function that makes faults happen to them. */
export interface Members {
  readonly places: readonly Place[];
  /** The addresses of the replicas that run now. */
  urls(): readonly string[];
  /** Returns the process ID of the process with this number at the gate. */
  pidOf(number: number): number | undefined;
  /**
   * Makes faults happen until a point in time. Each lane has one fault after another, and the lanes run at the same
   * time. Then ends all faults. Returns their names.
   */
  trouble(random: Random, untilMs: number, lanes: readonly (readonly Trouble[])[]): Promise<readonly Trouble[]>;
  close(): void;
}

interface Cluster {
  readonly postgres: TestPostgres;
  readonly gate: () => ServiceGate;
  readonly settings: Readonly<Record<string, string>>;
  readonly store: string;
  readonly kinds: readonly Place["kind"][];
  /** The kind of processes that have no faults; absent: all have faults. */
  readonly spared?: Place["kind"] | undefined;
}

/** Starts the processes of a cluster. */
export async function startMembers({ postgres, gate, settings, store, kinds, spared }: Cluster): Promise<Members> {
  const pids: number[] = [];
  const started = async (kind: Place["kind"], way: StoreProxy): Promise<Place["member"]> => {
    const number = pids.push(0) - 1;
    const its = { ...settings, ...(await gate().routesOf(number)), TARGETING_MCP_STORE: way.through(store) };
    const member = await (kind === "replica" ? startReplica(its) : startWorker(its));
    pids[number] = member.child.pid ?? 0;
    return member;
  };
  const places: Place[] = [];
  for (const kind of kinds) {
    const way = await storeProxy(postgres.port);
    places.push({ kind, way, member: await started(kind, way) });
  }
  /** The processes that have no fault at the moment. */
  const free = new Set(places.filter(({ kind }) => kind !== spared));
  const someone = async (random: Random, happens: (place: Place) => Promise<void>): Promise<void> => {
    const place = random.pick([...free]);
    free.delete(place);
    await happens(place);
    free.add(place);
  };
  const faults: Readonly<Record<Exclude<Trouble, "store">, (place: Place, random: Random) => Promise<void>>> = {
    async kill(place, random) {
      place.member.child.kill("SIGKILL");
      await delay(random.between(0, 3000));
      place.member = await started(place.kind, place.way);
    },
    async stop({ member: { child } }, random) {
      child.kill("SIGSTOP");
      await delay(random.between(1000, 12_000));
      child.kill("SIGCONT");
    },
    async cut({ way }, random) {
      way.cut();
      await delay(random.between(500, 9000));
      way.pass();
    },
    async hang({ way }, random) {
      way.hang();
      await delay(random.between(500, 9000));
      way.pass();
    },
    async slow({ way }, random) {
      way.pass(random.between(20, 300));
      await delay(random.between(1000, 5000));
      way.pass();
    },
  };
  const storeDies = async (random: Random): Promise<void> => {
    await delay(random.between(4000, 12_000));
    await postgres.kill();
    await delay(random.between(0, 2000));
    await postgres.start();
  };
  return {
    places,
    urls: () => places.flatMap(({ member }) => member.url ?? []),
    pidOf: (number) => pids[number],
    async trouble(random, untilMs, lanes) {
      const until = Date.now() + untilMs;
      const told: Trouble[] = [];
      const happenIn = async (lane: readonly Trouble[]): Promise<void> => {
        while (Date.now() < until) {
          const name = random.pick(lane);
          told.push(name);
          await (name === "store" ? storeDies(random) : someone(random, (place) => faults[name](place, random)));
          await delay(random.between(0, 500));
        }
      };
      await Promise.all(lanes.map(happenIn));
      return told;
    },
    close: () => {
      for (const { way } of places) way.close();
    },
  };
}
