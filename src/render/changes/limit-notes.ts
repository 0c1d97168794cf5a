import type { ReportedObject } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import { number } from "../failures/words.ts";
import { shown } from "../fence.ts";
import { placeWords } from "../places.ts";

/** An option whose change a limit stopped, with what it holds now, and the limit that the change met. */
export interface FullOption {
  readonly _id: string;
  readonly name: string;
  readonly contextIds: number;
  /** UTF-8 bytes of its Context IDs. */
  readonly bytes: number;
  readonly limit: "count" | "bytes" | "project";
}

/** A targeting with what it holds now, as far as that was read. */
export interface FullTargeting {
  readonly _id: string;
  readonly name: string;
  /** Present where its number of options stopped the run. */
  readonly options?: number;
  /** Of all its options, each counted once for each option. */
  readonly contextIds?: number;
}

/** How many objects of a run stand on one side of the first that a limit stopped, and how many of them are in. */
interface Side {
  readonly count: number;
  readonly isIn: number;
}

/** A limit that a run met, and where. */
export interface LimitsMet {
  readonly first: ReportedObject | undefined;
  readonly before: Side;
  readonly after: Side;
  readonly options: readonly FullOption[];
  readonly optionsOmitted: number;
  readonly targetings: readonly FullTargeting[];
  /** Whether the limit of the project was met. */
  readonly isProject: boolean;
}

/** Which limit stopped a run, how much is there, how many fit, and what of the run is in: a note for each. */
export function limitNotes(met: LimitsMet): readonly string[] {
  return [...whereWords(met), ...met.targetings.flatMap(targetingWords), ...optionsWords(met), ...projectWords(met)];
}

function whereWords({ first, before, after }: LimitsMet): readonly string[] {
  if (first === undefined) return [];
  const sides = [sideWords("before", before), sideWords("after", after)].filter((words) => words !== undefined);
  const told = sides.length === 0 ? "" : `: ${sides.join(", ")}`;
  return [`The limit was met first at ${placeWords(first)}${told}; nothing of it was applied`];
}

function sideWords(side: "before" | "after", { count, isIn }: Side): string | undefined {
  if (count === 0) return undefined;
  if (count === isIn) return `the ${number(count)} ${side} it ${count === 1 ? "is" : "are"} in`;
  return `of the ${number(count)} ${side} it ${number(isIn)} ${isIn === 1 ? "is" : "are"} in`;
}

function targetingWords({ _id, name, options }: FullTargeting): readonly string[] {
  if (options === undefined) return [];
  const limit = LIMITS.targetingOptions.value;
  return [
    `The targeting ${shown(name)} (${_id}) has ${number(options)} of at most ${number(limit)} options now, sub-options ` +
      `included: ${fitWords(limit - options)}`,
  ];
}

function optionsWords({ options, optionsOmitted }: LimitsMet): readonly string[] {
  const words = options.map((option) => `${shown(option.name)} (${option._id}) ${holdsWords(option)}`);
  const more = optionsOmitted === 0 ? [] : [`${number(optionsOmitted)} more options were stopped: get_option counts`];
  return [...words, ...more];
}

function holdsWords({ contextIds, bytes, limit }: FullOption): string {
  const most = LIMITS.optionContextIds.value;
  const holds = `holds ${number(contextIds)} of at most ${number(most)} Context IDs`;
  if (limit === "count") return `${holds}: ${fitWords(most - contextIds)}`;
  if (limit === "project") {
    const all = number(LIMITS.projectContextIds.value);
    return `${holds}, so the limit that was met is that of ${all} Context IDs of the project`;
  }
  const mostBytes = LIMITS.optionContextBytes.value;
  return `${holds}, and ${number(bytes)} of at most ${number(mostBytes)} bytes of them: bytes: ${fitWords(mostBytes - bytes)}`;
}

/** Targetings cannot be listed, so that what the project holds is known for a part of it only. */
function projectWords({ isProject, targetings }: LimitsMet): readonly string[] {
  if (!isProject) return [];
  const limit = LIMITS.projectContextIds.value;
  const held = targetings.flatMap(({ name, contextIds }) => (contextIds === undefined ? [] : [{ name, contextIds }]));
  const words = held.map(
    ({ name, contextIds }) =>
      `the options of ${shown(name)} alone hold ${number(contextIds)}, so at most ${fitWords(limit - contextIds)}`,
  );
  return [
    `The project may hold ${number(limit)} Context IDs over all its targetings, which the service does not count` +
      (words.length === 0 ? "" : `; ${words.join("; ")}`),
  ];
}

function fitWords(room: number): string {
  const left = Math.max(0, room);
  return `${number(left)} more ${left === 1 ? "fits" : "fit"}`;
}
