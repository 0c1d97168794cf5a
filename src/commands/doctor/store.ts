import { join } from "node:path";
import { runsIn } from "../../runs/file/run-folder.ts";
import type { FoundStore } from "../../runs/postgres/start.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Check, checkStateFolder, note, ok, problem } from "./machine.ts";

/** Where runs are kept, in the diagnosis. */
export interface StoreShown {
  readonly kind: "files" | "postgres";
  /** Whether it can be worked with. */
  readonly ok: boolean;
  /** The database in words; absent where it was not reached. */
  readonly server?: string | undefined;
  /** The number of the last migration, the one that is needed, and what the tables hold: bytes by table. */
  readonly tables?: FoundStore["tables"];
  /** What must be fixed, and what is weak. */
  readonly problems: readonly string[];
}

/** Looks at where runs are kept; gives that, and the checks that tell of it. */
export async function checkStore({ store, stateDir }: Pick<Settings, "store" | "stateDir">): Promise<{
  readonly store: StoreShown;
  readonly checks: readonly Check[];
}> {
  if (store === undefined) {
    const check = await checkStateFolder(stateDir);
    const isUsable = check.state === "ok";
    return { store: { kind: "files", ok: isUsable, problems: isUsable ? [] : [check.found] }, checks: [check] };
  }
  const { lookAtStore } = await import("../../runs/postgres/start.ts");
  const { server, tables, weaknesses, problem: wrong } = await lookAtStore(store);
  const lying = (await Promise.all(["runs", "event-runs"].map((one) => runsIn(join(stateDir, one))))).flat().length;
  const problems = [...(wrong === undefined ? [] : [wrong.message]), ...weaknesses];
  const checks: readonly Check[] = [
    wrong === undefined
      ? ok("store", [server, ...(tables ? [sizeWords(tables)] : [])].join(", "))
      : problem("store", wrong.message, wrong.remedy),
    ...weaknesses.map((one) => note("store", one)),
    ...(lying === 0
      ? []
      : [
          note(
            "store",
            `${lying} runs lie in ${stateDir}, and are left there`,
            "Unset TARGETING_MCP_STORE to see them.",
          ),
        ]),
  ];
  return { store: { kind: "postgres", ok: wrong === undefined, server, tables, problems }, checks };
}

function sizeWords({ runs, bytes }: NonNullable<FoundStore["tables"]>): string {
  const sum = Object.values(bytes).reduce((total, one) => total + one, 0);
  return `${runs} runs, ${Math.ceil(sum / 1_048_576)} MB`;
}
