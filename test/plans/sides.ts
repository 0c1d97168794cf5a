import { expect } from "vitest";
import {
  type Base,
  baseOf,
  digestOfContexts,
  type ServiceOption,
  type ServiceTargeting,
} from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import type { StatePlan } from "../../src/plans/plan.ts";

// The inputs of a plan (file, base, current targeting) in a short form for tests.

const TARGETING = { _id: "01J0000000000000000000000T", name: "Spring" };
export const idOf = (letter: string) => `01J0000000000000000000000${letter}`;

export function option(letter: string, fields: Partial<ServiceOption> = {}): ServiceOption {
  const contexts = fields.contexts ?? [];
  const type = fields.type ?? "atomic";
  const expose = type === "collection" ? { exposeChildren: false } : {};
  return {
    _id: idOf(letter),
    name: `Option ${letter}`,
    type,
    parent: null,
    ...expose,
    ...fields,
    contexts,
    digest: digestOfContexts(contexts),
  };
}

export const there = (...options: ServiceOption[]): ServiceTargeting => ({ targeting: TARGETING, options });
export const baseAt = (state: ServiceTargeting): Base => baseOf(state, "2026-01-01T00:00:00.000Z");

type More = Partial<Pick<Parameters<typeof planOf>[0], "base" | "prune" | "byName" | "thresholds">>;

/** Plans options in YAML for the current targeting. */
export async function plan(options: string, state: ServiceTargeting | undefined, more: More = {}): Promise<StatePlan> {
  return planText("yaml", `version: 1\noptions:\n${options}`, state, more);
}

export async function planText(
  format: "yaml" | "csv" | "ndjson",
  text: string,
  state: ServiceTargeting | undefined,
  more: More = {},
) {
  const { desired, problems } = await readDesired({ bytes: Buffer.from(text), format, folder: undefined });
  expect(problems).toEqual([]);
  const thresholds = { maxChangePercent: 100, maxDeletes: 500 };
  return planOf({ desired, there: state, prune: false, byName: false, thresholds, ...more });
}

export const wordsOf = ({ problems }: StatePlan) =>
  problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
