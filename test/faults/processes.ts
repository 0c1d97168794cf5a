import * as z from "zod";
import type { ManagementApi } from "../../src/api/management.ts";
import { Changes } from "../../src/changes/changes.ts";
// Loaded beforehand: in virtual time, no process waits until a file is loaded.
import "../../src/changes/settle/adopt-lost.ts";
import "../../src/changes/settle/changed-since.ts";
import "../../src/changes/settle/refresh-previous.ts";
import type { ProjectLock } from "../../src/runs/backend.ts";
import { targetingMemory } from "../../src/runs/files/backend.ts";
import { processLock } from "../../src/runs/files/lease.ts";
import { Runs } from "../../src/runs/registry.ts";
import type { RunStore } from "../../src/runs/store.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import { ulidOf } from "./model/facts.ts";
import type { ModelService } from "./model/service.ts";
import { type MortalProcess, mortalProcess, storeOnFullDisk } from "./mortal.ts";
import { managementOverModel } from "./over-model.ts";
import { randomFrom } from "./random.ts";
import type { Schedule } from "./schedule.ts";
import { standingStill } from "./standstill.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** A process that executes calls. */
export interface Process {
  readonly changes: Changes;
  readonly runs: Runs;
  readonly mortal: MortalProcess;
}

/** When a process dies, and when its disk is full. */
export interface Fate {
  /** The number of the action (journal entry, flush or request) at which the process dies. */
  readonly dieAt?: number;
  readonly diskFullAfter?: number | undefined;
}

const sent = z.object({ steps: z.array(z.number()) });

/** What all processes of one machine share: the store, the lock and the time. */
export interface Machine {
  readonly store: RunStore;
  readonly lock: ProjectLock;
  readonly time: VirtualTime;
}

/** Returns a function that starts processes, one after another or at the same time. */
export function processesFor(
  { seed, settings }: Pick<Schedule, "seed"> & { readonly settings: Pick<Schedule["settings"], "retryBudgetMs"> },
  { store, lock, time }: Machine,
) {
  const random = randomFrom(seed * 31 + 7);
  const stills = randomFrom(seed * 613 + 5);
  const standsStill = stills.chance(0.3);
  const memory = targetingMemory({ now: () => time.now(), onProblem: () => {} });
  let runIds = 0;
  return (service: ModelService, { dieAt = Number.POSITIVE_INFINITY, diskFullAfter }: Fate = {}): Process => {
    const disk = diskFullAfter === undefined ? store : storeOnFullDisk(store, diskFullAfter);
    const mortal = mortalProcess({ store: disk, api: managementOverModel(service) }, dieAt, random);
    const watched = journaledFirst(mortal, service);
    const isOn = (): boolean => standsStill && service.disturbed;
    const still = standingStill({ lock, api: watched.api }, { time, random: stills, isOn });
    // A new process does not know that the one before it was told to wait.
    service.notBefore = 0;
    const world = {
      ...watched,
      ...still,
      routes: ROUTES,
      clock: time,
      random: random.next,
      newRunId: () => {
        runIds += 1;
        return ulidOf(time.now(), runIds);
      },
      project: "project",
      environment: "sandbox",
      ...{ retryBudgetMs: settings.retryBudgetMs, requestTimeoutMs: 60_000 },
      words: ({ code }: { readonly code: string }) => code,
      memory,
    } as const;
    const changes = new Changes(world);
    return { changes, runs: new Runs(world, [changes.runs]), mortal };
  };
}

/** Returns a machine that has no runs yet. */
export function newMachine(store: RunStore, time: VirtualTime): Machine {
  return { store, time, lock: processLock(time) };
}

/**
 * Records a violation if a request is sent before the journal on the disk announces it with the same number of items.
 */
function journaledFirst(
  { store, api }: { readonly store: RunStore; readonly api: ManagementApi },
  service: ModelService,
): { readonly store: RunStore; readonly api: ManagementApi } {
  const onDisk: number[] = [];
  return {
    store: {
      ...store,
      journal: async (runId, lease) => {
        const journal = await store.journal(runId, lease);
        const waiting: number[] = [];
        return {
          ...journal,
          append: (line) => {
            journal.append(line);
            const [text = ""] = line;
            const entry =
              typeof text === "string" && text.startsWith('{"t":"send"') ? sent.parse(JSON.parse(text)) : undefined;
            if (entry !== undefined) waiting.push(entry.steps.length);
          },
          flush: async () => {
            await journal.flush();
            onDisk.push(...waiting.splice(0));
          },
          intend: async (turn) => {
            const intent = await journal.intend(turn);
            // Requests that were announced but not sent are announced again.
            onDisk.splice(0, onDisk.length, ...waiting.splice(0));
            return intent;
          },
        };
      },
    },
    api: {
      ...api,
      bulk: (operation, items, options) => {
        if (onDisk.shift() !== items.count) service.complain(`${operation} was not journaled before it left`);
        return api.bulk(operation, items, options);
      },
    },
  };
}
