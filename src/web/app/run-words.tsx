import type { ChangeCounts, RunRow } from "../wire.ts";
import { Ago, Badge, Bar, Empty, type Share, Text, type Tone } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";

// Describes runs for people: titles, requesters, statuses and bars.

/** The labels and colours of the statuses of runs. */
const STATUSES = {
  succeeded: ["Done", "good"],
  partial: ["Partly done", "warn"],
  failed: ["Failed", "bad"],
  unknown: ["Result unknown", "warn"],
  running: ["Running", "warn"],
  interrupted: ["Interrupted", "warn"],
  cancelled: ["Cancelled", "idle"],
  planned: ["Planned", "warn"],
  needs_confirmation: ["Waiting for approval", "warn"],
} as const satisfies Record<RunRow["status"], readonly [string, Tone]>;

export function Status({ of }: { readonly of: RunRow }) {
  return <Badge tone={of.undoneBy === undefined ? toneOf(of) : "idle"}>{statusWords(of)}</Badge>;
}

export function statusWords({ status, counts, isDeclined, isExpired, tool, undoneBy }: RunRow): string {
  if (undoneBy !== undefined) return "Undone";
  if (status === "planned" && tool === "track_events") return "Dry run";
  if (status === "partial" && counts.failed < 1 && counts.unknown) return "Partly unknown";
  return isExpired ? "Expired" : isDeclined ? "Declined" : STATUSES[status][0];
}

/** Returns the colour of a run's status. A partly done run with failures is red. */
export function toneOf({ status, counts }: RunRow): Tone {
  return status === "partial" && counts.failed > 0 ? "bad" : STATUSES[status][1];
}

/** Returns the name of the only object that a waiting run affects. Undefined if it affects several or does not wait. */
function onlyNameOf({ waiting }: RunRow): string | undefined {
  if (waiting !== undefined && totalOf(waiting.counts) > 1) return undefined;
  const [part, ...others] = waiting?.parts.filter(({ kind }) => kind !== undefined && kind !== "inside") ?? [];
  return others.length === 0 && part?.count === 1 ? part.objects[0]?.name : undefined;
}

interface Titled {
  readonly run: RunRow;
  readonly end?: string;
  /** Set if the name of the targeting is shown above the title, which then omits it. */
  readonly isWithin?: true;
}

/** Shows the title of a run, with the name of its targeting or of its only object in bold. */
export function Title({ run, end = "", isWithin }: Titled) {
  const { title, targeting } = run;
  const whole = targeting?.name ?? onlyNameOf(run) ?? "";
  // The server cuts long names in titles.
  const name = title.includes(whole) ? whole : `${whole.slice(0, 80)}…`;
  const within = [" in ", " to ", " into ", " from "].map((word) => word + name).find((text) => title.includes(text));
  if (isWithin && name !== "" && within !== undefined) {
    const short = title.replace(within, () => "");
    const [start = "", old] = run.tool === "rename_targetings" ? short.split(/(?<=^Renamed )/) : [short];
    return (
      <>
        <Text of={start} most={400} />
        {old !== undefined && (
          <span class="quiet small">
            from <Text of={old} />
          </span>
        )}
      </>
    );
  }
  const found = name === "" ? -1 : title.lastIndexOf(name);
  const at = found === -1 ? title.length : found;
  return (
    <>
      <Text of={title.slice(0, at)} most={400} />
      {found !== -1 && (
        <strong>
          <Text of={name} most={400} />
        </strong>
      )}
      <Text of={title.slice(at + name.length)} most={400} />
      {end}
    </>
  );
}

/** Says what happens to a waiting run that nobody approves or declines, and when. */
export function Expiry({ of: { waiting } }: { readonly of: RunRow }) {
  return waiting === undefined ? null : (
    <span>
      cancelled <Ago at={waiting.expiresAt} /> if nobody decides
    </span>
  );
}

/** Shown while there are no runs. */
export function NothingYet() {
  return (
    <Empty title="Nothing has happened yet">
      Here you see what agents change and send, and what needs your approval. Ask your agent, for example: "List my
      targetings."
    </Empty>
  );
}

/** Shows who requested a run: the person on the page, the caller or, on this computer, the client's name in quotes. */
export function ShortRequester({ run: { caller = "", client, requestedBy } }: { readonly run: RunRow }) {
  if (requestedBy !== undefined) return <Text of={requestedBy} most={80} />;
  if (client === undefined || !isLocal(caller)) return <Text of={callerWords(caller)} most={80} />;
  return (
    <>
      "<Text of={client} most={40} />"
    </>
  );
}

/** Shows who requested a run: the person on the page, or the caller and, in quotes, the client's name for itself. */
export function Requester({ run }: { readonly run: RunRow }) {
  const { caller = "", client, requestedBy } = run;
  if (requestedBy !== undefined) {
    return (
      <>
        <Text of={requestedBy} most={80} /> on the page
      </>
    );
  }
  return (
    <>
      {isLocal(caller) && (client === undefined ? "someone on " : "an agent on ")}
      <strong>
        <Text of={callerWords(caller)} most={80} />
      </strong>
      {client !== undefined && (
        <>
          {" "}
          (calls itself "<Text of={client} most={40} />
          ")
        </>
      )}
    </>
  );
}

function isLocal(caller: string): boolean {
  return caller === "" || caller === "local";
}

/** Returns the name of a caller for people. */
function callerWords(caller: string): string {
  if (isLocal(caller)) return "this computer";
  return caller.replace(/^(?:local|token|client|oauth):/, "");
}

/** Returns how many objects of a run are done, including those that were skipped or already done. */
export function doneOf({ counts }: RunRow): number {
  return counts.succeeded + counts.alreadyDone + (counts.skipped ?? 0);
}

export const NO_CHANGES: ChangeCounts = { created: 0, changed: 0, deleted: 0 };

/** Returns how many objects are created, changed or deleted. */
export function totalOf({ created, changed, deleted }: ChangeCounts): number {
  return created + changed + deleted;
}

/** Returns counts of changes as segments of a bar. `restored`: how many of the created objects an undo has created. */
export function changeShares({ created, changed, deleted }: ChangeCounts, restored = 0): readonly Share[] {
  return [
    { tone: "created", count: created - restored, of: "created" },
    { tone: "created", count: restored, of: "restored" },
    { tone: "changed", count: changed, of: "changed" },
    { tone: "deleted", count: deleted, of: "deleted" },
  ];
}

/** Shows counts of changes with symbols. `areAhead`: the changes have not been made yet. */
export function Kinds(kinds: {
  readonly of: ChangeCounts;
  readonly isUndo?: boolean | undefined;
  readonly areAhead?: boolean;
}) {
  const { of, isUndo = false, areAhead = false } = kinds;
  const { created, changed, deleted } = of;
  return (
    <>
      {created > 0 && (
        <span class="created">
          +{number(created)} {!isUndo ? "new" : areAhead ? "to restore" : "restored"}
        </span>
      )}
      {changed > 0 && (
        <span class="changed">
          ~{number(changed)} {areAhead ? "to change" : "changed"}
        </span>
      )}
      {deleted > 0 && (
        <span class="deleted">
          −{number(deleted)} {areAhead ? "to delete" : "deleted"}
        </span>
      )}
    </>
  );
}

/** Returns the items of a run by outcome, as segments of a bar. Omits those that are not applied. */
export function sharesOf({ counts, did, isUndo }: RunRow): readonly Share[] {
  const { succeeded, alreadyDone, skipped = 0, failed, unknown } = counts;
  // The bar shows the successful items by kind of change. If there are more changes than such items, the counts would
  // not fit, and the items are shown as done.
  const split = did === undefined || totalOf(did) > succeeded ? NO_CHANGES : did;
  return [
    ...changeShares(split, isUndo ? split.created : 0),
    { tone: "good", count: succeeded - totalOf(split) + alreadyDone, of: "done" },
    { tone: "idle", count: skipped, of: "skipped" },
    { tone: "bad", count: failed, of: "failed" },
    { tone: "unknown", count: unknown, of: "unknown" },
  ];
}

/** Shows the bar of a run, with its numbers as text. */
export function Progress({ run }: { readonly run: RunRow }) {
  const { items, failed, unknown } = run.counts;
  if (items === 0) return null;
  return (
    <>
      <Bar shares={sharesOf(run)} total={items} label="Progress" />
      <small>
        {number(doneOf(run))} of {counted(items, run.noun)}
        {failed > 0 && `, ${number(failed)} failed`}
        {unknown > 0 && `, ${number(unknown)} unknown`}
      </small>
    </>
  );
}
