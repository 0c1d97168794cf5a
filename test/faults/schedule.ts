import type { WriteCall } from "../../src/changes/call.ts";
import { randomCall } from "./calls.ts";
import { DOCUMENTED_LIMITS, type StoredLimits } from "./model/facts.ts";
import type { Effect, Fault } from "./model/faults.ts";
import { Project } from "./model/project.ts";
import type { DateClock, Jump } from "./model/service.ts";
import { randomWrite } from "./other-writes.ts";
import type { OtherWrite } from "./others.ts";
import { pointedAt } from "./pointed.ts";
import { type Random, randomFrom } from "./random.ts";
import { VirtualTime } from "./virtual-time.ts";
import { fillWorld, POISON } from "./world.ts";

/** The settings of the service and the engine in one schedule. */
interface Settings {
  /** By how much the service's clock, which also makes IDs, is ahead. `jump` is when and by how much it is set. */
  readonly skewMs: number;
  readonly jump?: Jump | undefined;
  readonly dateClock?: DateClock | undefined;
  readonly latencyMs: number;
  readonly retryBudgetMs: number;
  readonly bodyBytes: number;
  readonly poison: string | undefined;
  readonly tellsTotal: boolean;
  readonly tellsDate: boolean;
  readonly limits: StoredLimits;
}

/** When another user does something: around a write request of the run, or at a read. */
interface OtherMoment {
  /** The number of the request; the first is 0. */
  readonly on: number;
  readonly moment: "before" | "answering" | "after" | "read";
  readonly write: OtherWrite;
}

/** One test case: a call, and everything that happens during it. A seed makes all of it; parts can be removed. */
export interface Schedule {
  readonly seed: number;
  readonly call: WriteCall;
  readonly settings: Settings;
  /** Each fault with the number of its write request; the first is 0. */
  readonly faults: readonly { readonly on: number; readonly fault: Fault }[];
  readonly others: readonly OtherMoment[];
  /** Another call, which another server executes at the same time. */
  readonly rival: { readonly call: WriteCall; readonly faults: Schedule["faults"] } | undefined;
  readonly failingReads: readonly number[];
  readonly stop: { readonly on: number; readonly cause: "cancelled" | "interrupted" } | undefined;
  /**
   * The numbers of the actions (journal entry, flush or request) at which the processes die, one process after the
   * other.
   */
  readonly kills: readonly number[];
  /** The disk is full after this many flushes of the first process; undefined: never. */
  readonly diskFullAfter: number | undefined;
}

const START = Date.UTC(2026, 2, 1, 12);

/** A project and its virtual time. */
export interface World {
  readonly project: Project;
  readonly time: VirtualTime;
  /** Called when the project is filled. The time until the jump of its clock then begins. */
  readonly begin: () => void;
}

/** Returns an empty project with the service's clock. */
export function emptyWorld({ skewMs = 0, jump }: Partial<Pick<Settings, "skewMs" | "jump">> = {}): World {
  const time = new VirtualTime(START);
  let beganAt = Number.POSITIVE_INFINITY;
  const now = () => time.now() + skewMs + (jump !== undefined && time.now() >= beganAt + jump.afterMs ? jump.byMs : 0);
  return {
    project: new Project(now),
    time,
    begin: () => {
      beganAt = time.now();
    },
  };
}

/** Returns the project that a seed makes. */
export function worldOf(seed: number, clock: Pick<Settings, "skewMs" | "jump">): World {
  const world = emptyWorld(clock);
  fillWorld(world.project, world.time, randomFrom(seed));
  world.begin();
  return world;
}

/**
 * Returns the schedule that a seed makes. Most are completely random. Some have exactly the faults that make it hardest
 * to find out what happened.
 */
export function scheduleOf(seed: number): Schedule {
  const { settings, ...rest } = anySchedule(seed);
  const schedule = {
    ...rest,
    settings: {
      ...settings,
      dateClock: randomDateClock(randomFrom(seed * 15_485_863 + 3)),
      jump: randomJump(randomFrom(seed * 32_452_843 + 5)),
    },
  };
  const random = randomFrom(seed * 104_729 + 1);
  const { project } = worldOf(seed, settings);
  return random.chance(0.1) ? { ...schedule, ...pointedAt(project, random) } : schedule;
}

/**
 * Returns how the clock of the header `Date` differs. In half of the schedules another machine, such as a gateway,
 * writes that header.
 */
function randomDateClock(random: Random): DateClock | undefined {
  if (random.chance(0.5)) return undefined;
  const { chance, pick } = random;
  return {
    aheadMs: pick([0, 500, -500, 1000, 2000, -2000, 5000, -5000, 3_600_000, -3_600_000]),
    driftMs: chance(0.3) ? pick([2, -2, 50, -50]) : 0,
    jump: chance(0.3) ? { afterMs: pick([20, 300, 3000]), byMs: pick([500, -500, 3000, -3000, 600_000]) } : undefined,
  };
}

function randomJump({ chance, pick }: Random): Jump | undefined {
  if (chance(0.8)) return undefined;
  return { afterMs: pick([0, 20, 60, 300, 3000]), byMs: pick([-1500, -3000, -60_000, -3_600_000, 3000, 600_000]) };
}

function anySchedule(seed: number): Schedule {
  const random = randomFrom(seed * 7919 + 13);
  const settings = randomSettings(random);
  const { project } = worldOf(seed, settings);
  const size = random.chance(0.03) ? "large" : random.chance(0.06) ? "many" : "small";
  const call = randomCall(project, random, size);
  const isCalm = random.chance(0.25);
  const some = <T>(probability: number, make: () => T[]): T[] => (!isCalm && random.chance(probability) ? make() : []);
  return {
    seed,
    call,
    settings: isCalm ? { ...settings, poison: undefined, bodyBytes: DOCUMENTED_BODY_BYTES } : settings,
    faults: some(0.85, () => randomFaults(random)),
    others: some(0.4, () => randomOthers(random, project, call)),
    rival: isCalm || random.chance(0.85) ? undefined : randomRival(random, project),
    failingReads: some(0.2, () => random.some([0, 1, 2, 3, 4, 5], 3)),
    stop: isCalm || random.chance(0.85) ? undefined : { on: random.below(4), cause: randomCause(random) },
    diskFullAfter: isCalm || random.chance(0.93) ? undefined : random.below(6),
    kills: some(0.25, () =>
      Array.from({ length: random.between(1, 3) }, () => random.below(size === "many" ? 30 : 18)),
    ),
  };
}

const DOCUMENTED_BODY_BYTES = 8 * 1_048_576;

function randomCause(random: Random): "cancelled" | "interrupted" {
  return random.pick(["cancelled", "interrupted"] as const);
}

function randomSettings(random: Random): Settings {
  const isTight = random.chance(0.12);
  // Without the header `Date`, IDs show what is older only if both clocks agree.
  const tellsDate = random.chance(0.9);
  return {
    skewMs: tellsDate ? random.pick([0, 0, 7, -300, 4000, -86_400_000]) : 0,
    latencyMs: random.pick([2, 20, 200]),
    retryBudgetMs: random.pick([1500, 20_000, 120_000, 120_000]),
    bodyBytes: random.chance(0.1) ? random.between(60, 600) : DOCUMENTED_BODY_BYTES,
    poison: random.chance(0.5) ? JSON.stringify(POISON) : undefined,
    tellsTotal: random.chance(0.9),
    tellsDate,
    limits: isTight
      ? {
          optionContextIds: random.between(2, 6),
          optionContextBytes: 1000,
          projectContextIds: random.between(10, 40),
          targetingOptions: random.between(6, 14),
          treeItems: random.between(1, 4),
        }
      : DOCUMENTED_LIMITS,
  };
}

/** Makes random faults: a few, nearly everywhere, or the same one repeatedly. */
function randomFaults(random: Random): { on: number; fault: Fault }[] {
  const [length, share] = random.pick([
    [8, 0.35],
    [8, 0.35],
    [8, 0.35],
    [30, 0.9],
    [12, 1],
  ] as const);
  const same = share === 1 ? randomFault(random) : undefined;
  const first = share === 1 ? random.below(4) : 0;
  return Array.from({ length }, (_, number) => first + number).flatMap((on) =>
    random.chance(share) ? { on, fault: same ?? randomFault(random) } : [],
  );
}

function randomFault(random: Random): Fault {
  const effect = (): Effect =>
    random.pick(["none", "whole", "whole", "part", { lateMs: random.pick([30, 400, 5000, 90_000]) }] as const);
  const retryAfterMs = random.between(0, 2000);
  return random.pick<() => Fault>([
    () => ({ kind: "busy", retryAfterMs }),
    () => ({ kind: "takeover", from: random.next(), retryAfterMs: random.chance(0.1) ? 1e9 : retryAfterMs }),
    () => ({ kind: "status", statusCode: random.pick([500, 502] as const), effect: effect() }),
    () => ({ kind: "reset", effect: effect() }),
    () => ({ kind: "timeout", effect: effect() }),
    () => ({ kind: "notSent" }),
    () => ({ kind: "uncatched", from: random.pick([0, 0, random.next()]), addFirst: random.chance(0.5) }),
    () => ({ kind: "slow", ms: random.pick([700, 30_000]), moment: random.pick(["before", "after"] as const) }),
    () =>
      random.chance(0.4)
        ? { kind: "refused", as: random.pick(["unauthorized", "forbidden", "validation", "tooLarge"]) }
        : { kind: "notSent" },
  ])();
}

/**
 * Makes another server's random call in the same project. It may or may not use the same objects as the call under
 * test.
 */
function randomRival(random: Random, project: Project): Schedule["rival"] {
  const call = randomCall(project, random, random.chance(0.1) ? "many" : "small");
  return { call, faults: random.chance(0.5) ? randomFaults(random) : [] };
}

function randomOthers(random: Random, project: Project, call: WriteCall): OtherMoment[] {
  return Array.from({ length: random.between(1, 4) }, () => ({
    on: random.below(4),
    moment: random.pick(["before", "before", "answering", "after", "after", "read"] as const),
    write: randomWrite(random, project, call),
  }));
}
