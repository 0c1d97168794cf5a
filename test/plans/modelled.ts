import type { ManagementApi } from "../../src/api/management.ts";
import type { ChangeRun } from "../../src/changes/change-run.ts";
import type { ChangeHeader } from "../../src/changes/changes.ts";
import type { Plan } from "../../src/changes/plan/plan.ts";
import { applyPlan } from "../../src/tools/apply-plan.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { undoRun } from "../../src/tools/undo-run.ts";
import { DOCUMENTED_LIMITS } from "../faults/model/facts.ts";
import type { Fault } from "../faults/model/faults.ts";
import type { Option, Project } from "../faults/model/project.ts";
import { ModelService, type Traffic } from "../faults/model/service.ts";
import { Killed } from "../faults/mortal.ts";
import { managementOverModel } from "../faults/over-model.ts";
import { newMachine, processesFor } from "../faults/processes.ts";
import { emptyWorld } from "../faults/schedule.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { wasStarted } from "../support/records.ts";
import type { Thing, World } from "./meaning.ts";
import type { Random } from "./random-edits.ts";

// Executes runs with the model of the service in virtual time, with faults and with processes that die.

const CALLER = "tester";

/** What goes wrong while a run is executed: faults by the number of the write request, and when processes die. */
export interface Trouble {
  readonly faults: ReadonlyMap<number, Fault>;
  readonly kills: readonly number[];
  /** The service refuses larger bodies with 413. */
  readonly bodyBytes: number;
  /** Lets another writer change something before the write request with this number. */
  readonly others?: (request: number) => void;
}

const BODY_BYTES = 8 * 1_048_576;
export const CALM: Trouble = { faults: new Map(), kills: [], bodyBytes: BODY_BYTES };

/** Returns random trouble that ends. Afterwards, a resumed run can finish. */
export function randomTrouble(random: Random): Trouble {
  const effect = () =>
    random.one(["none", "whole", "whole", "part", { lateMs: random.one([30, 400, 5000]) ?? 0 }] as const) ?? "none";
  const retryAfterMs = random.below(2000);
  const fault = (): Fault =>
    random.one<() => Fault>([
      () => ({ kind: "busy", retryAfterMs }),
      () => ({ kind: "takeover", from: random.next(), retryAfterMs }),
      () => ({ kind: "status", statusCode: random.chance(0.5) ? 500 : 502, effect: effect() }),
      () => ({ kind: "reset", effect: effect() }),
      () => ({ kind: "timeout", effect: effect() }),
      () => ({ kind: "notSent" }),
      () => ({ kind: "slow", ms: 700, moment: random.chance(0.5) ? "before" : "after" }),
    ])?.() ?? { kind: "notSent" };
  const faults = new Map(Array.from({ length: 8 }, (_, on) => [on, fault()] as const).filter(() => random.chance(0.4)));
  // After three unexpected failures, an item counts as failed, so this fault happens at most once.
  if (random.chance(0.3)) faults.set(random.below(4), { kind: "uncatched", from: random.next(), addFirst: false });
  const kills = random.chance(0.4) ? Array.from({ length: 1 + random.below(3) }, () => random.below(20)) : [];
  return { faults, kills, bodyBytes: random.chance(0.2) ? 900 + random.below(900) : BODY_BYTES };
}

/** Creates a project of the model, and functions that execute runs in it. `context` is that of the tools. */
export function modelled(seed: number, services: ToolContext) {
  const { project, time } = emptyWorld();
  const { signal } = new AbortController();
  const store = memoryRunStore(time);
  const processOf = processesFor({ seed, settings: { retryBudgetMs: 120_000 } }, newMachine(store, time));
  const traffic: Traffic = { busyUntil: 0, isWriting: false };
  const serviceWith = ({ faults, bodyBytes, others = () => {} }: Trouble): ModelService =>
    new ModelService({
      ...{ project, time, actor: "run", traffic, faults, bodyBytes },
      ...{ limits: DOCUMENTED_LIMITS, latencyMs: 20, poison: undefined, tellsTotal: true, tellsDate: true },
      failingReads: new Set(),
      others: (request, moment) => {
        if (moment === "before") others(request);
      },
    });
  const quiet = serviceWith(CALM);
  const api: ManagementApi = managementOverModel(quiet);
  /** Returns the tools of a new process without faults. */
  const tools = () => {
    const { changes, runs } = processOf(quiet);
    const context: ToolContext = {
      ...services,
      ...{ management: api, changes, runs, confirm: "off", caller: CALLER, arrivedAt: Date.now(), signal },
      canAsk: () => false,
    };
    return { changes, runs, context };
  };

  /** Executes a stored run in as many processes as die, and then resumes it until nothing is unknown. */
  const carriedOut = async (header: ChangeHeader, trouble: Trouble): Promise<ChangeRun> => {
    const { runId, call } = header;
    // The service's clock is known to only about 20 ms, so earlier writes must be clearly older.
    time.advance(1000);
    const service = serviceWith(trouble);
    for (const dieAt of [...trouble.kills, Number.POSITIVE_INFINITY]) {
      const { changes, mortal } = processOf(service, { dieAt });
      try {
        const isStarted = await wasStarted(store, runId);
        const plan = async (): Promise<Plan> => changes.plan(call, signal, store.parts.read(runId, "input"));
        const run = isStarted ? await changes.runs.resume(runId) : await changes.start(header, await plan());
        await run?.rest;
      } catch (thrown) {
        if (!(thrown instanceof Killed)) throw thrown;
      }
      if (!mortal.isDead()) break;
      await mortal.bury();
    }
    time.drain();
    service.disturbed = false;
    for (let tries = 0; tries < 3; tries += 1) {
      const run = await processOf(service).changes.runs.resume(runId);
      await run?.rest;
    }
    quiet.improper.push(...service.improper);
    const run = await processOf(service).changes.runs.find(runId);
    if (run === undefined) throw new Error("the run is no longer stored");
    return run;
  };

  /** Plans the undo of a run with its tool; undefined if nothing can be undone. */
  const wayBack = async (runId: string) => {
    const { context, changes } = tools();
    const answer = await undoRun.handler({ runId }, context);
    if ("ask" in answer) throw new Error("nobody is to be asked");
    const id = answer.structured.runId;
    const header = typeof id === "string" ? (await changes.runs.stored(id))?.header : undefined;
    return { answer, header };
  };

  return { project, time, api, improper: quiet.improper, tools, store, carriedOut, wayBack, applyPlan };
}

export type Modelled = ReturnType<typeof modelled>;

/** Creates a targeting of the files' model in the project. Returns the targeting's ID. */
export function put(world: World, name: string, { project, time }: Pick<Modelled, "project" | "time">): string {
  const { id: targeting } = project.createTargeting("before", { name });
  const ids = new Map<string, string>();
  const all = [...world.values()];
  for (const thing of [
    ...all.filter(({ parent }) => parent === null),
    ...all.filter(({ parent }) => parent !== null),
  ]) {
    const parent = thing.parent === null ? undefined : ids.get(thing.parent);
    const { isGroup, contexts, expose: exposeChildren } = thing;
    const made = project.createOption("before", {
      targeting,
      name: thing.name,
      isGroup,
      parent,
      exposeChildren,
      contexts,
    });
    ids.set(thing.id, made.id);
  }
  time.advance(1000);
  return targeting;
}

/** Returns a targeting of the project in the form of the files' model. */
export function worldIn(project: Project, targeting: string): Map<string, Thing> {
  return new Map(
    project
      .optionsOf(targeting)
      .map(({ id, name, parent = null, isGroup, exposeChildren, contexts }): [string, Thing] => [
        id,
        { id, name, parent, isGroup, expose: exposeChildren, contexts: new Set(contexts) },
      ]),
  );
}

/** Returns everything in a project by name, so that restored objects, which have new IDs, compare as equal. */
export function byNames(project: Project): readonly string[] {
  const nameOf = (id: string | undefined): string | null =>
    id === undefined ? null : (project.options.get(id)?.name ?? id);
  const line = ({ targeting, name, parent, isGroup, exposeChildren, contexts }: Option): string =>
    JSON.stringify([
      project.targetings.get(targeting)?.name,
      ...[name, nameOf(parent), isGroup, exposeChildren, [...contexts].sort()],
    ]);
  const targetings = [...project.targetings.values()].map(({ name, kind }) => JSON.stringify([name, kind]));
  return [...targetings, ...[...project.options.values()].map(line)].sort();
}

/** Changes a targeting as another writer: from one state to the wanted one. Options keep their IDs. */
export function overwrite(project: Project, targeting: string, wanted: World): void {
  const ids = new Map<string, string>();
  const idOf = (id: string): string => ids.get(id) ?? id;
  const before = worldIn(project, targeting);
  for (const { id, name, isGroup, contexts, expose: exposeChildren } of wanted.values()) {
    if (before.has(id)) continue;
    ids.set(id, project.createOption("other", { targeting, name, isGroup, exposeChildren, contexts }).id);
  }
  for (const thing of wanted.values()) {
    const option = project.options.get(idOf(thing.id));
    if (option === undefined) throw new Error(`${thing.id} is not there`);
    project.renameOption("other", option, thing.name);
    project.exposeChildren("other", option, thing.expose);
    const [add, remove] = [[...thing.contexts], [...option.contexts].filter((id) => !thing.contexts.has(id))];
    project.changeContexts("other", option, { add, remove });
    project.moveOption("other", option, thing.parent === null ? undefined : idOf(thing.parent));
  }
  for (const { id } of before.values()) {
    const gone = wanted.has(id) ? undefined : project.options.get(id);
    if (gone !== undefined) project.deleteOption("other", gone);
  }
}
