import type { ObjectResult, ReportCounts } from "../../src/runs/report.ts";
import { READS } from "./model/facts.ts";
import type { Fault } from "./model/faults.ts";
import type { Change, Project } from "./model/project.ts";
import type { ModelService } from "./model/service.ts";
import { checkContexts } from "./oracle/contexts.ts";
import { checkCreate } from "./oracle/creates.ts";
import { checkGone } from "./oracle/deletes.ts";
import { Evidence, type Snapshot } from "./oracle/evidence.ts";
import { foreignEffects } from "./oracle/foreign-effects.ts";
import { needlessFailures, needlesslyOpen } from "./oracle/needless-failures.ts";
import { checkUpdate } from "./oracle/updates.ts";
import type { Schedule } from "./schedule.ts";
import { type PlacedWish, wishesOf } from "./wishes.ts";

export { type Snapshot, snapshotOf } from "./oracle/evidence.ts";

/** The report of a run that has stopped. */
export interface Ended {
  readonly status: string;
  readonly counts: ReportCounts;
  readonly results: readonly ObjectResult[];
}

/** The facts by which a report is checked. */
export interface Case {
  readonly schedule: Schedule;
  readonly service: ModelService;
  readonly project: Project;
  /** Who changed what. `run` is the checked run, `other` is everybody else. */
  readonly log: readonly Change[];
  readonly before: Snapshot;
  readonly ended: Ended;
  /** Whether the run was resumed after all faults were over. Then only what cannot be proven may still be unknown. */
  readonly isSettled: boolean;
}

/** An object of the report, with what the call wanted for it. */
export interface Judged extends PlacedWish {
  readonly result: ObjectResult;
}

/** Compares a report with what really happened. Returns the differences that the guarantee forbids. */
export function judge(of: Case): readonly string[] {
  const { ended, schedule } = of;
  const wishes = wishesOf(schedule.call);
  const violations: string[] = [];
  const { items, ...counts } = ended.counts;
  const sum = Object.values(counts).reduce((total, count) => total + count, 0);
  if (items !== sum || items !== wishes.length)
    violations.push(`counts ${JSON.stringify(ended.counts)}: ${wishes.length} wishes`);
  const judged = match(wishes, ended.results);
  if (judged === undefined) return [...violations, "the objects of the report are not those of the call"];
  const evidence = new Evidence(of, judged);
  for (const each of judged) {
    const wrong = [...checkOne(evidence, each), ...checkOpen(evidence, each)];
    const at = [each.index, each.child, each.grandchild].filter((position) => position !== undefined).join(".");
    for (const what of wrong) violations.push(`${at} ${JSON.stringify(each.result)}: ${what}`);
  }
  violations.push(...foreignEffects(evidence));
  if (isCalm(schedule)) violations.push(...needlesslyOpen(evidence));
  if (isCalm(schedule) || (of.isSettled && isMended(schedule))) violations.push(...needlessFailures(evidence));
  return violations;
}

function match(wishes: readonly PlacedWish[], results: readonly ObjectResult[]): readonly Judged[] | undefined {
  const key = ({ index, child, grandchild }: Omit<PlacedWish, "wish">): string => `${index}.${child}.${grandchild}`;
  const byKey = new Map<string, ObjectResult[]>();
  for (const result of results) byKey.set(key(result), [...(byKey.get(key(result)) ?? []), result]);
  const judged = wishes.flatMap((placed) => {
    const result = byKey.get(key(placed))?.shift();
    return result === undefined ? [] : [{ ...placed, result }];
  });
  return judged.length === wishes.length && results.length === wishes.length ? judged : undefined;
}

function checkOne(evidence: Evidence, judged: Judged): readonly string[] {
  const { wish, result } = judged;
  switch (wish.kind) {
    case "targeting":
    case "option":
      return checkCreate(evidence, wish, result);
    case "targetingName":
    case "update":
      return checkUpdate(evidence, wish, result);
    case "nothing":
      return result.outcome === "failed" ? [] : ["an item that names nothing cannot but fail"];
    case "contexts":
      return checkContexts(evidence, wish, judged);
    case "targetingGone":
    case "optionGone":
      return checkGone(evidence, wish, result);
  }
}

/** Checks that `unknown` and `notApplied` have a cause, and that resuming the run without faults resolves them. */
function checkOpen(evidence: Evidence, { wish, result: { outcome, reason } }: Judged): readonly string[] {
  const wrong: string[] = [];
  if (outcome === "pending") wrong.push("pending at rest");
  if ((outcome === "failed" || outcome === "unknown" || outcome === "notApplied") && reason === undefined) {
    wrong.push("no reason");
  }
  if (outcome === "unknown" && !evidence.mayBeUnknown(wish)) wrong.push("unknown, though nothing put it in doubt");
  const { faults } = evidence.of.schedule;
  const isGivenUp = outcome === "failed" && reason?.code === "UNCATCHED";
  if (isGivenUp && faults.filter(({ fault }) => fault.kind === "uncatched").length < 3) wrong.push("given up at once");
  if (!evidence.of.isSettled) return wrong;
  const isGivenUpInBetween = faults.some(({ fault }) => fault.kind === "uncatched");
  const isPart = reason?.code === "PARTLY_APPLIED" && (hasOthers(evidence.of.schedule) || isGivenUpInBetween);
  // The answer was lost, and then another writer changed the object. So its current state does not show what was
  // applied.
  const isOverwritten = reason?.code === "PLAN_STALE" && hasOthers(evidence.of.schedule);
  const isOver = reason?.code === "OWNER_UNCLEAR" || isPart || isOverwritten;
  if (outcome === "unknown" && !isOver) wrong.push("still unknown");
  if (reason?.code === "OWNER_UNCLEAR" && isKnownToBeNew(evidence, wish)) {
    wrong.push("nobody else was there who could have made it");
  }
  if (outcome === "notApplied" && reason?.code !== "NEEDS_FAILED") wrong.push("still notApplied");
  return wrong;
}

/**
 * Returns whether a request may have been cut off by another writer while its answer was lost with the process or disk.
 * If it must be applied as a unit, nobody expects that a part was applied: that part then looks like the other writer's
 * work.
 */
function mayHaveLostTakeover({ faults, kills, diskFullAfter }: Schedule): boolean {
  const isLost = kills.length > 0 || diskFullAfter !== undefined;
  return isLost && faults.some(({ fault }) => fault.kind === "takeover");
}

/** The engine reads at most two pages of a list before a run. Of a longer list, it knows only the newest options. */
const LONGEST_LIST = 2 * READS.listLimit;

/** Returns whether the engine could see before the run, without any clock, that no object had this name. */
function isKnownToBeNew(evidence: Evidence, wish: PlacedWish["wish"]): boolean {
  const { schedule, before } = evidence.of;
  // A sub-option with this name may be newer than all top-level options, and may have existed before the run.
  if (wish.kind !== "option" || !("id" in wish.targeting) || wish.parent !== undefined) return false;
  const { id } = wish.targeting;
  const listed = [...before.options.values()].filter(({ targeting, parent }) => targeting === id && !parent);
  const isFree = listed.length <= LONGEST_LIST && evidence.optionsNamedBefore(wish.name).length === 0;
  return isFree && !mayHaveLostTakeover(schedule) && !hasOthers(schedule) && schedule.failingReads.length === 0;
}

/** Returns whether nothing disturbs a schedule. Every outcome must then be the best possible one. */
function isCalm(schedule: Schedule): boolean {
  const { faults, failingReads, stop, kills, diskFullAfter, settings } = schedule;
  const quiet = faults.length + failingReads.length + kills.length === 0 && stop === undefined;
  return (
    quiet &&
    !hasOthers(schedule) &&
    diskFullAfter === undefined &&
    settings.poison === undefined &&
    settings.bodyBytes > 1_000_000
  );
}

/**
 * Returns whether everything that disturbed a schedule is over and made nothing fail. Then the report may have no
 * failures either.
 */
function isMended(schedule: Schedule): boolean {
  const { faults, settings } = schedule;
  const failing = faults.filter(({ fault }) => fault.kind === "uncatched" || isRefusal(fault));
  return (
    !hasOthers(schedule) && failing.length === 0 && settings.poison === undefined && settings.bodyBytes > 1_000_000
  );
}

/**
 * Returns whether the service refused a request because of its content, not its key. Items that were alone in such a
 * request fail.
 */
function isRefusal(fault: Fault): boolean {
  return fault.kind === "refused" && (fault.as === "validation" || fault.as === "tooLarge");
}

/** Returns whether anyone else writes to the project during the run. */
function hasOthers({ others, rival }: Pick<Schedule, "others" | "rival">): boolean {
  return others.length > 0 || rival !== undefined;
}
