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
