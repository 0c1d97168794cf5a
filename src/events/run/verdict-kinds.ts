import type { Prediction } from "../../runs/report.ts";
import type { Finding, RuleBasis, Validation, Verdict } from "../check/rules.ts";
import { ruleAt } from "./event-reason.ts";
import type { EventSettlement } from "./event-settlement.ts";

/** What was predicted of an event, and observed. */
export interface EventVerdict {
  readonly predicted: Verdict;
  readonly basis: RuleBasis;
  readonly observed?: Verdict;
  readonly findings: readonly Finding[];
}

/** Events with the same verdict for the same rules; what the findings say is said of the first one. */
export interface VerdictGroup extends EventVerdict {
  readonly count: number;
  /** The first of the events. */
  readonly objects: readonly number[];
  /** Whether what the findings say holds for the first event only: others break the same rules in another way. */
  readonly isOfFirst: boolean;
}

/** One kind of verdict; results name its first finding as the rule. */
interface VerdictKind {
  readonly verdict: EventVerdict;
  readonly prediction: Prediction | undefined;
  isOfFirst: boolean;
}

/** The most kinds that are distinguished by all their findings; further ones are distinguished by their first rule. */
const MOST_KINDS = 200;
const OBJECTS_NAMED = 20;
const FINDINGS_KEPT = 5;

const NOTHING_TO_SAY: EventVerdict = { predicted: "recorded", basis: "documented", findings: [] };

/** The verdicts of all events of a run: a number for each event, and the findings once for each kind of verdict. */
export class VerdictKinds {
  readonly #kinds: VerdictKind[] = [];
  readonly #byKey = new Map<string, number>();
  /** By event: the position of its kind in the list, counted from 1; 0 where it has none yet. */
  readonly #kindOf: number[] = [];
  #plain = 0;

  /** Makes room for the next events. */
  begin(items: number): void {
    for (let object = 0; object < items; object += 1) this.#kindOf.push(0);
  }

  /** Keeps the verdict of an event in place of an earlier one; undefined where it is plainly recorded. */
  keep(object: number, verdict: EventVerdict | undefined): void {
    if (verdict === undefined) {
      if (this.#plain === 0) this.#plain = this.#numberOf(NOTHING_TO_SAY);
      this.#kindOf[object] = this.#plain;
    } else {
      this.#kindOf[object] = this.#numberOf(verdict);
    }
  }

  /** What results say of an event: its verdict, where that is not `recorded`. */
  predictionOf(object: number): Prediction | undefined {
    return this.#kinds[(this.#kindOf[object] ?? 0) - 1]?.prediction;
  }

  /** All kinds with their events: uncertain ones first, then those that are not sent, and recorded ones last. */
  groups(): readonly VerdictGroup[] {
    const groups = this.#kinds.map(({ verdict, isOfFirst }) => {
      const objects: number[] = [];
      return { verdict, isOfFirst, count: 0, objects };
    });
    for (const [object, kind] of this.#kindOf.entries()) {
      const group = groups[kind - 1];
      if (group === undefined) continue;
      group.count += 1;
      if (group.objects.length < OBJECTS_NAMED) group.objects.push(object);
    }
    return groups
      .filter(({ count }) => count > 0)
      .sort((one, other) => weightOf(one.verdict) - weightOf(other.verdict) || other.count - one.count)
      .map(({ verdict, ...group }) => ({ ...verdict, ...group }));
  }

  #numberOf(verdict: EventVerdict): number {
    const { predicted, observed, findings } = verdict;
    const rules = findings.map(ruleAt);
    const exact = [predicted, observed, ...rules].join(" ");
    const isRoom = this.#kinds.length < MOST_KINDS;
    const key = isRoom || this.#byKey.has(exact) ? exact : [predicted, observed, findings[0]?.rule].join(" ");
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      const kind = this.#kinds[known - 1];
      if (kind !== undefined && !kind.isOfFirst) kind.isOfFirst = !saysTheSame(kind.verdict.findings, findings);
      return known;
    }
    const rule = key === exact ? rules[0] : findings[0]?.rule;
    const prediction = { predicted, ...(rule !== undefined && { rule }), ...(observed !== undefined && { observed }) };
    const told = predicted === "recorded" ? undefined : prediction;
    this.#kinds.push({ verdict, prediction: told, isOfFirst: false });
    this.#byKey.set(key, this.#kinds.length);
    return this.#kinds.length;
  }
}

function saysTheSame(one: readonly Finding[], other: readonly Finding[]): boolean {
  if (one === other) return true;
  return (
    one.length === other.length &&
    one.every(({ message, fix }, at) => message === other[at]?.message && fix === other[at]?.fix)
  );
}

function weightOf({ predicted, findings }: EventVerdict): number {
  if (predicted === "uncertain") return 0;
  if (predicted !== "recorded") return 1;
  return findings.length > 0 ? 2 : 3;
}

/** The verdict on an event as a run keeps it; undefined where it is plainly recorded. */
export function verdictOf(predicted: Validation, observed: EventSettlement["observed"]): EventVerdict | undefined {
  const { verdict, basis, findings } = predicted;
  if (verdict === "recorded" && basis === "documented" && findings.length === 0 && observed === undefined)
    return undefined;
  return {
    predicted: verdict,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.slice(0, FINDINGS_KEPT),
  };
}
