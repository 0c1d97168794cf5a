import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { Fragment } from "preact";
import { PAGE_ROWS } from "../list-page.ts";
import type { ChangeList, ChangeRow, ChangeSide, PlanDifference, PlanView, RunRow, ShownValue } from "../wire.ts";
import { Filters, SCROLLS, Search, Sentences, Steps, Table, Text } from "./parts.tsx";
import { counted, diffWords, number, wholeWords } from "./plain-words.ts";
import { runPath, SEARCH_AFTER_MS, save, useRead } from "./requests.ts";
import { totalOf } from "./run-words.tsx";
import { narrows, set } from "./state.ts";

/** The number of rows that are shown at first. */
const FIRST_ROWS = 20;
/** While a run that only deletes waits for approval, fewer rows: the note below is then visible without scrolling. */
const FIRST_DELETED = 7;
/** While the server is still completing a list, the page reads the list again after this many milliseconds. */
const AGAIN_MS = 1000;

/** The server marks the row of the targeting itself with this text. */
const ITSELF = "(targeting)";

type Kind = "" | ChangeRow["kind"];

/** Shows the changes of a run, each before and after, in the targeting's order, with pages and a search. */
export function Changes({ run, shown }: ChangesProps) {
  const { runId, status, updatedAt, isUndo } = run;
  const waiting = status === "needs_confirmation" ? run.waiting : undefined;
  const isRunning = status === "running";
  const version = waiting ? `${waiting.digest} ${waiting.effect}` : `${status} ${isRunning ? "" : updatedAt}`;
  const search = useSignal("");
  const kind = useSignal<Kind>("");
  const from = useSignal(0);
  const isOpen = useSignal(false);
  const reads = useSignal(0);
  const first = waiting && waiting.counts.deleted === totalOf(waiting.counts) ? FIRST_DELETED : FIRST_ROWS;
  const limit = String(isOpen.value ? PAGE_ROWS : first);
  const query = new URLSearchParams({ search: search.value, kind: kind.value, from: String(from.value), limit });
  const list = useRead<ChangeList>(runPath(runId, `changes?${query}`), {
    version: `${version} ${reads.value}`,
    afterMs: SEARCH_AFTER_MS,
  });
  useSignalEffect(() => {
    if (shown !== undefined) shown.value = list.value;
    if (!list.value?.isReading) return;
    const timer = setTimeout(() => {
      reads.value += 1;
    }, AGAIN_MS);
    return () => clearTimeout(timer);
  });
  if (list.value === undefined) return <p class="quiet">Reading the changes…</p>;
  const { rows, total, counts, unchanged, freed, findsNames = false, isReading = false } = list.value;
  const isAll = isWhole(list.value, from.value);
  const all = totalOf(counts);
  const kinds = [...KINDS, isUndo ? RESTORED : CREATED].filter(({ name }) => counts[name] > 0);
  const where = findsNames || isReading ? "names" : "names and Context IDs";
  if (all === 0) {
    return (
      <p class="quiet">{isRunning ? "The changes are listed here when the run has ended." : "It changes nothing."}</p>
    );
  }
  return (
    <div class="changes">
      <div class="row">
        {kinds.length > 1 && (
          <Filters
            label="Kinds of changes"
            chosen={kind.value}
            choose={narrows(kind, from)}
            of={[
              { name: "", title: "All", count: all },
              ...kinds.map((one) => ({
                name: one.name,
                title: waiting ? one.act : one.title,
                count: counts[one.name],
              })),
            ]}
          />
        )}
        <span class="push row">
          <Search label={`Search ${where}`} value={search.value} change={narrows(search, from)} />
          {all + (freed?.count ?? 0) > first && (
            <button type="button" class="plain" onClick={() => void save(runPath(runId, "list"))}>
              Download list
            </button>
          )}
        </span>
      </div>
      <ChangeTable rows={rows} isWaiting={waiting !== undefined} {...(isAll && { unchanged, freed })} />
      {total === 0 && <p>No {findsNames || isReading ? "name" : "name or Context ID"} matches.</p>}
      {isReading && <p class="quiet small">The Context IDs are being read…</p>}
      {findsNames && <p class="quiet small">Not all Context IDs are known here, so only names are searched.</p>}
      {isOpen.value || total <= first ? (
        <Steps from={from} total={total} rows={PAGE_ROWS} of="changes" />
      ) : (
        <p>
          <button type="button" class="plain" onClick={() => set(isOpen, true)}>
            Show {counted(total - rows.length, "more change")}
          </button>
        </p>
      )}
    </div>
  );
}

interface ChangesProps {
  readonly run: RunRow;
  /** Set by this component to the list that it shows, for other components. Undefined until the list has been read. */
  readonly shown?: Signal<ChangeList | undefined>;
}

const KINDS = [
  { name: "deleted", title: "Deleted", act: "Delete" },
  { name: "changed", title: "Changed", act: "Change" },
] as const;
const CREATED = { name: "created", title: "New", act: "Add" } as const;
const RESTORED = { name: "created", title: "Restored", act: "Restore" } as const;

/** Returns whether the shown rows are the last ones of the complete list, without a filter. */
function isWhole({ rows, total, counts }: ChangeList, from: number): boolean {
  return from + rows.length >= total && total === totalOf(counts);
}

/**
 * Shows changes as a table with columns for the state before and after. If the rows are only creations, or only
 * deletions, the columns are name and Context IDs. If any row is in a group, each group and the top level have a
 * heading row. `unchanged` is counted in the last row.
 */
function ChangeTable({ rows, unchanged, freed, isWaiting }: TableProps) {
  const title = isWaiting ? "What changes" : "Changes";
  const hasOneSide = rows.every(({ after }) => after === undefined) || rows.every(({ before }) => before === undefined);
  let group: string | null | undefined;
  const hasGroups = rows.some((row) => typeof row.group === "string");
  const isTargeting = ({ before, after }: ChangeRow) => (before ?? after)?.says === ITSELF;
  return (
    <section class="card flush frame" aria-label={title} {...SCROLLS}>
      <table class="diff">
        <caption class="spoken">{title}</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="spoken">Kind</span>
            </th>
            <th scope="col">{hasOneSide ? "Name" : "Before"}</th>
            <th scope="col">{hasOneSide ? "Context IDs" : "After"}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => {
            const isItself = isTargeting(row);
            const place = row.group ?? null;
            const isNew = hasGroups && !row.isHead && !isItself && place !== group;
            group = row.isHead ? (row.before ?? row.after)?.name : isItself ? group : place;
            return (
              <Fragment key={at}>
                {isNew && <GroupRow name={place} />}
                {hasOneSide ? <OneSide row={row} /> : <BothSides row={row} />}
              </Fragment>
            );
          })}
          {freed !== undefined && (
            <tr class="changed">
              <td class="mark" aria-hidden="true">
                →
              </td>
              <td class="inside" colSpan={2}>
                <Freed {...freed} areAhead={isWaiting} />
              </td>
            </tr>
          )}
          {unchanged !== undefined && unchanged > 0 && (
            <tr>
              <td class="mark" />
              <td class={hasGroups ? "quiet apart" : "inside quiet"} colSpan={2}>
                ⋯ unchanged: {wholeWords(unchanged)}
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}

interface TableProps extends Pick<ChangeList, "rows" | "unchanged" | "freed"> {
  readonly isWaiting: boolean;
}

/** Counts the sub-options that move to the top level because their group is deleted, and names the first. */
function Freed({ count, names, areAhead }: NonNullable<ChangeList["freed"]> & { readonly areAhead: boolean }) {
  const isOpen = useSignal(false);
  const shown = isOpen.value ? names : names.slice(0, FIRST_ROWS);
  const more = count - shown.length;
  return (
    <>
      {counted(count, "sub-option")} {areAhead ? (count === 1 ? "moves" : "move") : "moved"} to the top level
      {shown.length > 0 && ": "}
      {shown.map((name, at) => (
        <Fragment key={at}>
          {at > 0 && ", "}
          <Text of={name} most={120} />
        </Fragment>
      ))}
      {shown.length > 0 && more > 0 && " and "}
      {shown.length < names.length ? (
        <button type="button" class="plain" onClick={() => set(isOpen, true)}>
          {number(more)} more
        </button>
      ) : (
        shown.length > 0 && more > 0 && `${number(more)} more`
      )}
    </>
  );
}

function GroupRow({ name }: { readonly name: string | null | undefined }) {
  return (
    <tr class="group">
      <td />
      <td colSpan={2}>{typeof name === "string" ? <Text of={name} /> : "Top level"}</td>
    </tr>
  );
}

/** Returns the symbol of a change, and the word that screen readers read instead. */
export function signOf({ kind, before, after }: ChangeRow): readonly [sign: string, word: string] {
  if (kind === "created") return ["+", "new"];
  if (kind === "deleted") return ["−", "deleted"];
  return before?.within === after?.within ? ["~", "changed"] : ["→", "moved"];
}

function Mark({ row }: { readonly row: ChangeRow }) {
  const [sign, word] = signOf(row);
  return (
    <td class="mark">
      <span aria-hidden="true">{sign}</span>
      <span class="spoken">{word}</span>
    </td>
  );
}

/** Returns the CSS classes of a row. A new or deleted group above its sub-options looks like a heading. */
function rowClass({ kind, isHead }: ChangeRow): string {
  return isHead ? `${kind} group` : kind;
}

function OneSide({ row }: { readonly row: ChangeRow }) {
  const side = row.before ?? row.after;
  if (side === undefined) return null;
  // The note of a group or targeting (`says`) is shown beside its name. The notes of other objects are shown in the
  // last cell, which stays empty for a targeting, because it has no Context IDs of its own.
  const isInName = side.isGroup || side.says === ITSELF;
  return (
    <tr class={rowClass(row)}>
      <Mark row={row} />
      <td class={row.isHead || side.says === ITSELF ? "" : "inside"}>
        <SideName side={side} />
        {isInName && side.says !== undefined && <span class="quiet"> {side.says}</span>}
      </td>
      <td class="quiet">
        {side.says !== ITSELF && <SideIds side={isInName ? { ...side, says: undefined } : side} isUnderHead />}
      </td>
    </tr>
  );
}

function BothSides({ row }: { readonly row: ChangeRow }) {
  const { before, after } = row;
  return (
    <tr class={rowClass(row)}>
      <Mark row={row} />
      <td class="inside">{before !== undefined && <Side side={before} other={after} as="del" />}</td>
      <td class="inside">{after !== undefined && <Side side={after} other={before} as="ins" />}</td>
    </tr>
  );
}

interface SideProps {
  readonly side: ChangeSide;
  readonly other: ChangeSide | undefined;
  readonly as: "ins" | "del";
}

/** Shows the state before or after a change. Words that differ from the other state are marked. */
function Side({ side, other, as: Tag }: SideProps) {
  const isMoved = other !== undefined && side.within !== other.within;
  return (
    <>
      {isMoved && (
        <>
          <span class="quiet">in </span>
          <Tag>{typeof side.within === "string" ? <Text of={side.within} /> : "top level"}</Tag>
          {" / "}
        </>
      )}
      {other === undefined ? (
        <Tag>
          <SideName side={side} />
        </Tag>
      ) : (
        <Marked name={side.name} other={other.name} as={Tag} />
      )}
      {side.says !== undefined && <span class="quiet"> {side.says}</span>}
      {other === undefined ? (
        <span class="quiet">
          {" "}
          <SideIds side={{ ...side, says: undefined }} />
        </span>
      ) : (
        <ChangedIds side={side} as={Tag} />
      )}
    </>
  );
}

/** Shows how many Context IDs a changed option loses or gets, and the first of them. */
function ChangedIds({ side: { contextIds = [], count = contextIds.length }, as: Tag }: Omit<SideProps, "other">) {
  if (count === 0) return null;
  const rest = count - contextIds.length;
  return (
    <>
      {" "}
      <span class="quiet">
        {Tag === "ins" ? "+" : "−"}
        {counted(count, "Context ID")}
        {contextIds.length > 0 && ":"}
      </span>
      {contextIds.map((id) => (
        <Fragment key={id}>
          {" "}
          <Tag>
            <Text of={id} most={120} />
          </Tag>
        </Fragment>
      ))}
      {contextIds.length > 0 && rest > 0 && <span class="quiet"> and {number(rest)} more</span>}
    </>
  );
}

function SideName({ side }: { readonly side: ChangeSide }) {
  return (
    <>
      <Text of={side.name} />
      {side.isGroup && side.says === undefined && " (group)"}
    </>
  );
}

/**
 * Shows the first Context IDs before or after a change, and the number of all. The number is omitted if all are shown
 * below a column heading (`isUnderHead`). If none is known, shows the note of the object (`says`), if it has one.
 */
function SideIds({ side, isUnderHead }: { readonly side: ChangeSide; readonly isUnderHead?: true }) {
  const { count, contextIds = [], says } = side;
  if (says !== undefined && contextIds.length === 0) return <Text of={says} most={400} />;
  if (count === undefined) return null;
  if (count === 0) return <>no Context IDs</>;
  const isCut = count > contextIds.length;
  const words = isUnderHead && !isCut ? "" : counted(count, "Context ID");
  if (contextIds.length === 0) return <>{words}</>;
  return (
    <>
      {words !== "" && `${words}: `}
      {contextIds.map((id, at) => (
        <Fragment key={id}>
          {at > 0 && ", "}
          <span class="id">
            <Text of={id} most={120} />
          </span>
        </Fragment>
      ))}
      {isCut && ", …"}
    </>
  );
}

/** Shows a name. Marks its words from the first to the last one that differ from another name. */
function Marked(marked: { readonly name: string; readonly other: string; readonly as: "ins" | "del" }) {
  const { name, other, as: Tag } = marked;
  const { before, middle, after } = diffWords(name, other);
  return (
    <>
      <Text of={before} />
      {middle !== "" && (
        <Tag>
          <Text of={middle} />
        </Tag>
      )}
      <Text of={after} />
    </>
  );
}

/** Shows what a plan leaves as others changed it, its conflicts, and what an undo cannot restore exactly. */
export function Differences({ plan }: { readonly plan: PlanView }) {
  const { conflicts, drift, differs, omitted = {} } = plan;
  return (
    <>
      {drift.map(({ name, says }, at) => (
        <p key={at} class="card note small">
          <strong>
            <Text of={name} />
          </strong>{" "}
          <Text of={says} most={400} isSentence />
        </p>
      ))}
      <More of={omitted.drift} />
      {conflicts.length > 0 && <Conflicts of={conflicts} />}
      <More of={omitted.conflicts} />
      <Sentences title="Not restored exactly" of={differs} />
      <More of={omitted.differs} />
    </>
  );
}

function More({ of }: { readonly of: number | undefined }) {
  return of ? <p>and {number(of)} more</p> : null;
}

function Conflicts({ of }: { readonly of: readonly PlanDifference[] }) {
  return (
    <Table caption="Conflicts" isTitled heads={["Name", "Field", "When exported", "In the file", "In the service"]}>
      {of.map(({ name, field, base, file, service }) => (
        <tr key={`${field} ${name}`}>
          <th scope="row">
            <Text of={name} />
          </th>
          <td>{field}</td>
          {[base, file, service].map((value, place) => (
            <td key={place}>
              <Value of={value} />
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function Value({ of }: { readonly of: ShownValue | undefined }) {
  if (of === null) return <>top level</>;
  return <Text of={of === undefined ? "–" : String(of)} />;
}
