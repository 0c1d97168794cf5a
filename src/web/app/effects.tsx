import type { ChangeList, ChangeRow, EffectPart, PlanView, RunDetail, Waiting } from "../wire.ts";
import { signOf } from "./changes.tsx";
import { Bar, Text } from "./parts.tsx";
import { counted, number, percent, wholeWords } from "./plain-words.ts";
import { Kinds, Progress, totalOf } from "./run-words.tsx";

/** The maximum number of reasons of failures in this small view. The web page lists all of them. */
const MAX_FAILURES = 20;

/** Shows what an approval would change: the size, the names, what cannot be restored, and what can be undone. */
export function Effects({ detail: { run, plan, changes } }: { readonly detail: RunDetail }) {
  const { waiting, isUndo } = run;
  if (waiting === undefined) return null;
  const { parts, stale, ended, undo, check, stays, also } = waiting;
  return (
    <>
      {ended && (
        <p class="warning" id="why">
          The server that requested this is no longer running. Ask the agent again.
        </p>
      )}
      {stale !== undefined && (
        <div class="warning small" id="why">
          <strong>Changed since it was planned</strong>{" "}
          {stale.map((sentence) => (
            <Text key={sentence} of={sentence} most={400} isSentence />
          ))}
        </div>
      )}
      {plan === undefined && <Magnitude waiting={waiting} />}
      {undo !== undefined && <p class={undo.isImpossible ? "bad" : "small"}>{undo.title}</p>}
      {undo !== undefined && (
        <p class="small">
          {[stays, also && `${also.what} in another request.`, ...undo.notes, check].filter(Boolean).join(" ")}
        </p>
      )}
      {plan !== undefined ? (
        <PlanRows plan={plan} changes={changes} isUndo={isUndo} />
      ) : (
        <>
          {changes !== undefined && changes.total > 0 && (
            <ul class="names" aria-label="What it concerns">
              <ChangeNames list={changes} total={(waiting.optionsInside ?? 0) + totalOf(waiting.counts)} />
            </ul>
          )}
          {parts.map((part) => part.isNote && <Note key={part.title} part={part} />)}
        </>
      )}
    </>
  );
}

/** Shows a part of the effect that the changes do not show, for example objects that cannot be restored. */
function Note({ part: { title, count, objects } }: { readonly part: EffectPart }) {
  return (
    <ul class="names" aria-label={title}>
      <li class="quiet small">
        {title} {number(count)}
      </li>
      {objects.map(({ name, says = "" }, at) => (
        <li key={at}>
          <Text of={name} most={120} />{" "}
          <small>
            <Text of={says} most={120} />
          </small>
        </li>
      ))}
      {count > objects.length && <li class="quiet">and {number(count - objects.length)} more</li>}
    </ul>
  );
}

function Magnitude({ waiting: { magnitude, consequence, contextIds: removed } }: { readonly waiting: Waiting }) {
  if (magnitude === undefined && removed === undefined) return null;
  const { count = 0, whole, verb = "changed", what, within = "" } = magnitude ?? {};
  return (
    <div class="row magnitude">
      {magnitude !== undefined && (
        <span>
          {verb === "deleted" ? "Deletes " : "Changes "}
          <strong class={verb}>{whole === undefined ? what : number(count)}</strong>
          {whole === undefined ? ` ${within}` : ` of ${wholeWords(whole)} (${percent(count, whole)})`}
        </span>
      )}
      {whole !== undefined && <Bar shares={[{ tone: verb, count, of: verb }]} total={whole} label="Share" />}
      {consequence !== undefined && <span>{consequence}</span>}
      {removed !== undefined && (
        <span>
          Removes <strong class={verb}>{number(removed)}</strong> Context {removed === 1 ? "ID" : "IDs"}
        </span>
      )}
    </div>
  );
}

/**
 * Shows the first changes of a plan, deletions first. Also shows why the plan cannot be applied, its conflicts, what it
 * leaves as others have changed it, and what an undo does not restore exactly.
 */
export function PlanRows(rows: {
  readonly plan: PlanView;
  readonly changes: ChangeList | undefined;
  readonly isUndo: boolean | undefined;
}) {
  const { plan, changes, isUndo } = rows;
  const { conflicts, drift, refused = [], differs = [] } = plan;
  return (
    <>
      {refused.length > 0 && <p class="warning small">Cannot be applied: {refused.join(" ")}</p>}
      <div class="row">{changes !== undefined && <Kinds of={changes.counts} isUndo={isUndo} areAhead />}</div>
      <ul class="names" aria-label="Plan">
        {changes === undefined || changes.total === 0 ? (
          <li class="quiet">Nothing changes.</li>
        ) : (
          <ChangeNames list={changes} />
        )}
        {conflicts.map(({ name, field }) => (
          <li key={`conflict ${name} ${field}`} class="warn">
            ! <Text of={name} most={80} />: changed by someone else as well ({field})
          </li>
        ))}
        {drift.map(({ name, says }, at) => (
          <li key={at} class="quiet">
            <Text of={name} most={80} /> <Text of={says} isSentence />
          </li>
        ))}
        {differs.map((sentence) => (
          <li key={sentence}>
            <Text of={sentence} most={300} isSentence />
          </li>
        ))}
      </ul>
    </>
  );
}

/** About as many changes as are visible without scrolling. */
const MAX_SEEN = 3;

/** Shows the first changes, one per line, and how many there are. */
function ChangeNames({ list, total = list.total }: { readonly list: ChangeList; readonly total?: number }) {
  const all = Math.max(total, list.total);
  const more = all - list.rows.length;
  return (
    <>
      {all > MAX_SEEN && <li class="quiet small">{number(all)} in all: scroll to see them</li>}
      {list.rows.map((row, at) => (
        <li key={at}>
          <Change row={row} />
        </li>
      ))}
      {more > 0 && <li class="quiet">and {number(more)} more</li>}
    </>
  );
}

function Change({ row }: { readonly row: ChangeRow }) {
  const { kind, group, before, after } = row;
  const isRenamed = before !== undefined && after !== undefined && before.name !== after.name;
  const isMoved = before?.within !== after?.within;
  const says = after?.says ?? before?.says;
  return (
    <>
      <span class={kind}>{signOf(row)[0]}</span>{" "}
      {isRenamed ? <Sides from={before.name} to={after.name} /> : <Text of={(after ?? before)?.name} most={120} />}
      <small>
        {typeof group === "string" && !isMoved && (
          <>
            {" in "}
            <Text of={group} most={80} />
          </>
        )}
        {isMoved && (
          <>
            {" from "}
            <Sides from={before?.within ?? "top level"} to={after?.within ?? "top level"} />
          </>
        )}
        {says !== undefined && (
          <>
            {" "}
            <Text of={says} most={120} />
          </>
        )}
        {after?.count !== undefined && after.count > 0 && ` +${counted(after.count, "Context ID")}`}
        {before?.count !== undefined && before.count > 0 && ` −${counted(before.count, "Context ID")}`}
      </small>
    </>
  );
}

function Sides({ from, to }: { readonly from: string; readonly to: string }) {
  return (
    <>
      <del>
        <Text of={from} most={80} />
      </del>
      {" → "}
      <ins>
        <Text of={to} most={80} />
      </ins>
    </>
  );
}

const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "long" });

/** Shows the result of a run so far: progress, failures, and who decided. */
export function Done({ detail: { run, failures } }: { readonly detail: RunDetail }) {
  const { requests, decided, standsStill, undoUntil } = run;
  const shown = run.isDeclined ? [] : failures.slice(0, MAX_FAILURES);
  return (
    <>
      {!run.isDeclined && <Progress run={run} />}
      {standsStill !== undefined && <p class="warning">{standsStill}</p>}
      {shown.length > 0 && (
        <ul class="names" aria-label="Failures">
          {shown.map(({ count, places, message, remedy }, at) => (
            <li key={`${at}`}>
              <span class="bad">{counted(count, run.noun)}</span> (<Text of={places} most={400} />
              ): <Text of={message} most={400} />{" "}
              <small>
                <Text of={remedy} most={400} />
              </small>
            </li>
          ))}
          {failures.length > shown.length && <li>and {counted(failures.length - shown.length, "more reason")}</li>}
        </ul>
      )}
      <p class="small quiet">
        {requests !== undefined && requests.sent > 0 && `${counted(requests.sent, "request")} sent. `}
        {decided !== undefined && (
          <>
            <Text of={decided} most={300} />.
          </>
        )}
        {undoUntil !== undefined && ` It can be undone until ${DAY.format(new Date(undoUntil))}: ask the agent.`}
      </p>
    </>
  );
}
