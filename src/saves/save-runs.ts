import type { ManagementApi } from "../api/management.ts";
import { endingOf } from "../changes/change-kinds.ts";
import type { ContentsStore } from "../runs/backend.ts";
import type { ExecutableRun, Run, RunExecution, RunKind, RunsContext } from "../runs/kind.ts";
import { KindRuns, type Requested } from "../runs/kind-runs.ts";
import { SAVE_FORM, type SaveCall, type SaveEntry, SaveState } from "./save-state.ts";

interface SaveWorld {
  readonly api: ManagementApi;
  readonly contents?: ContentsStore | undefined;
}

type SaveRun = Run<SaveCall, SaveState>;

type OnError = (thrown: unknown) => void;

export function isSaveRun(run: Run): run is SaveRun {
  return run.kind === SAVE_FORM.name;
}

/** Returns whether a run saves a file. Unlike `isSaveRun`, also accepts a run of which only the header was read. */
export function isSaveKind(run: ExecutableRun): run is Pick<SaveRun, "kind" | "header"> {
  return run.kind === SAVE_FORM.name;
}

/** Runs that save options or Context IDs to a file. When a run is resumed, it starts from the beginning. */
export class SaveRuns {
  readonly runs: KindRuns<SaveCall, SaveEntry, SaveState, OnError>;

  constructor(context: RunsContext & SaveWorld) {
    this.runs = new KindRuns(saveKind(context), context);
  }

  /** Starts a run in the background. `onError` is called with an error that ends the run. */
  start(
    call: SaveCall,
    { caller, requested }: { readonly caller: string; readonly requested?: Requested | undefined },
    onError: OnError,
  ): SaveRun {
    const first = (now: number) => ({ t: "begin", saveTo: call.input.saveTo, at: now }) as const;
    const nothing = { bytes: () => none(), digest: NOTHING_DIGEST };
    return this.runs.startAtOnce(call, caller, { input: nothing, first, given: onError, requested });
  }
}

/** The SHA-256 of an empty input, in hexadecimal. Runs that save a file have no input except their call. */
const NOTHING_DIGEST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

async function* none(): AsyncGenerator<never> {}

function saveKind(world: RunsContext & SaveWorld): RunKind<SaveCall, SaveEntry, SaveState, OnError> {
  const { clock } = world;
  return {
    ...SAVE_FORM,
    newState: () => new SaveState(),
    isPlannedFirst: false,
    async readBack({ header: { call, createdAt }, entries }) {
      const state = new SaveState();
      for await (const entry of entries) state.apply(entry);
      if (state.objects.length > 0) return { state };
      // The process ended before the first entry of the journal was stored, so the run starts from the beginning.
      const begin = { t: "begin", saveTo: call.input.saveTo, at: createdAt } as const;
      state.apply(begin);
      return { state, first: [begin] };
    },
    start: (run, onError) => save(run, world, onError),
    resume: async (run) => {
      run.record({ t: "resume", at: clock.now() });
      await save(run, world, () => {});
    },
    stop: (ending, now) => ({ t: "stop", ...ending, at: now }),
  };
}

async function save(
  run: RunExecution<SaveCall, SaveEntry, SaveState>,
  { api, contents, clock }: RunsContext & SaveWorld,
  onError: OnError,
): Promise<void> {
  await run.flush();
  await run.markStarted();
  try {
    // Imported only when needed, because many processes never save files.
    const { saveAsked } = await import("./save-options.ts");
    const world = { api: api.forCall?.() ?? api, contents, clock, signal: run.signal };
    run.record({ t: "saved", saved: await saveAsked(run.header.call, world), at: clock.now() });
    run.record({ t: "stop", cause: "finished", at: clock.now() });
  } catch (thrown) {
    const ending = run.signal.aborted ? { cause: run.cause() } : endingOf(thrown, "NOT_SAVED");
    onError(thrown);
    if (ending === undefined) throw thrown;
    run.record({ t: "stop", ...ending, at: clock.now() });
  }
  await run.flush();
}
