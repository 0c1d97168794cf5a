import type { Source } from "../../settings/given.ts";
import type { Check } from "./machine.ts";
import type { StoreShown } from "./store.ts";

/** A setting, where it came from, and its text; of a secret only whether it is set. */
export interface SettingShown {
  readonly variable: string;
  readonly source: Source;
  readonly value: string;
}

/** A run that `resume_run` could continue, or that is being driven now. */
export interface UnfinishedRun {
  readonly runId: string;
  readonly tool: string;
  readonly status: string;
}

/** What `targeting-mcp doctor --json` prints. */
export interface Diagnosis {
  /** False when something must be fixed. */
  readonly ok: boolean;
  readonly version: string;
  /** Undefined where the settings cannot be used. */
  readonly environment: "live" | "sandbox" | undefined;
  readonly checks: readonly Check[];
  /** Where runs are kept; undefined where the settings cannot be used. */
  readonly store?: StoreShown;
  readonly settings: readonly SettingShown[];
  /** Names of the tools that would be listed. */
  readonly tools: readonly string[];
  readonly unfinishedRuns: readonly UnfinishedRun[];
}

const MARKS = { ok: "ok", note: "note", problem: "FIX" } as const satisfies Record<Check["state"], string>;

/** A diagnosis as a person reads it in a terminal. */
export function diagnosisText(diagnosis: Diagnosis): string {
  const { ok, version, environment, checks, settings, tools, unfinishedRuns } = diagnosis;
  const found = checks.flatMap(({ about, state, found, remedy }): readonly (readonly string[])[] => [
    [MARKS[state], about, found],
    ...(remedy === undefined ? [] : [["", "", `→ ${remedy}`]]),
  ]);
  const given = settings.filter(({ source }) => source !== "default");
  const paragraphs = [
    `targeting-mcp ${version}${environment === undefined ? "" : `, environment: ${environment}`}`,
    table(found),
    given.length === 0
      ? "Settings: every one has its default."
      : `Settings (all others have their defaults):\n${table(given.map((one) => [one.variable, one.source, one.value]))}`,
    tools.length === 0 ? "Tools: none would be listed." : `Tools (${tools.length}): ${tools.join(", ")}`,
    ...(unfinishedRuns.length === 0
      ? []
      : [`Unfinished runs:\n${table(unfinishedRuns.map((run) => [run.runId, run.tool, run.status]))}`]),
    ok ? "Nothing must be fixed." : "Something must be fixed: see the lines marked FIX.",
  ];
  return `${paragraphs.join("\n\n")}\n`;
}

/** Rows in columns; the last column is as wide as it is. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return rows.map((row) => `  ${line(row).trimEnd()}`).join("\n");
}
