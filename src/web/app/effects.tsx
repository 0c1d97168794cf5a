import type {
  ChangeCounts,
  EffectPart,
  FailureRow,
  PlanChange,
  PlanView,
  RunRow,
  ShownValue,
  Waiting,
} from "../wire.ts";
import { Bar, Text } from "./parts.tsx";
import { counted, number, percent } from "./plain-words.ts";
import { Kinds, Progress, undoWords } from "./run-words.tsx";

/** The maximum number of names, changes and failures in the view. The page shows all. */
const MAX_NAMES = 100;
const MAX_FAILURES = 20;

/** The effect of an approval: its size, the names, what cannot be restored, and what can be undone. */
export function Effects({ waiting, plan }: { readonly waiting: Waiting; readonly plan: PlanView | undefined }) {
  const { parts, stale, ended } = waiting;
  return (
    <>
      {ended && (
        <p class="warning" id="why">
          The server that requested this is no longer running: ask the agent again.
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
      {waiting.undoable.length > 0 && <p class="small">{undoWords(waiting)}</p>}
      {plan === undefined ? (
        <ul class="names" aria-label="What it concerns">
          {parts.map(({ title, kind, count, objects }) => [
            parts.length > 1 && (
              <li key={title} class="quiet small">
                {title} {number(count)}
              </li>
            ),
            ...objects.slice(0, MAX_NAMES).map(({ name, says = "" }, at) => (
              <li key={`${title} ${at}`}>
                <span class={toneOf(kind)}>{MARKS[toneOf(kind)]}</span> <Text of={name} most={120} />
                <small>
                  {" "}
                  <Text of={says} most={120} />
                </small>
              </li>
            )),
            count > Math.min(objects.length, MAX_NAMES) && (
              <li key={`${title} more`} class="quiet">
                and {number(count - Math.min(objects.length, MAX_NAMES))} more
              </li>
            ),
          ])}
        </ul>
      ) : (
        <PlanRows plan={plan} />
      )}
      <Lost waiting={waiting} />
    </>
  );
}

/** What cannot be restored, and what can be undone. */
function Lost({ waiting: { lost, undoable } }: { readonly waiting: Waiting }) {
  return (
    <p class="small quiet">
      {[...lost, ...undoable].map((sentence) => (
        <span key={sentence}>
          <Text of={sentence} most={300} />{" "}
        </span>
      ))}
    </p>
  );
}

const MARKS = { created: "+", changed: "~", deleted: "−" } as const;

/** Returns the colour of an effect part. */
function toneOf(kind: EffectPart["kind"] = "changed"): keyof typeof MARKS {
  return kind === "inside" ? "deleted" : kind;
}

function Magnitude({ waiting: { magnitude, contextIds: removed } }: { readonly waiting: Waiting }) {
  if (magnitude === undefined && removed === undefined) return null;
  const { count = 0, whole, verb = "changed", within = verb } = magnitude ?? {};
  return (
    <div class="row magnitude">
      {magnitude !== undefined && (
        <span>
          <strong class={verb}>{number(count)}</strong>
          {whole === undefined ? ` ${within}` : ` of ${counted(whole, "option")} (${percent(count, whole)})`}
        </span>
      )}
      {whole !== undefined && <Bar shares={[{ tone: verb, count, of: verb }]} total={whole} label="Share" />}
      {removed !== undefined && (
        <span>
          <strong class={verb}>{number(removed)}</strong> Context {removed === 1 ? "ID" : "IDs"} removed
        </span>
      )}
    </div>
  );
}

/** Returns how many objects a plan creates, changes and deletes. */
function countsOf({ changes, omitted = {} }: PlanView): ChangeCounts {
  const of = (kind: PlanChange["kind"]) => changes.filter((one) => one.kind === kind).length + (omitted[kind] ?? 0);
  const changed = (["renamed", "moved", "contexts", "settings", "adopted"] as const).reduce(
    (sum, kind) => sum + of(kind),
    0,
  );
  return { created: of("created"), changed, deleted: of("deleted") };
}

/** The changes of a plan, deletions first, with conflicts, drift and the reasons why it cannot be applied. */
export function PlanRows({ plan }: { readonly plan: PlanView }) {
  const { changes, conflicts, drift, refused = [], differs = [], omitted = {} } = plan;
  const sorted = [
    ...changes.filter(({ kind }) => kind === "deleted"),
    ...changes.filter(({ kind }) => kind !== "deleted"),
  ];
  const shown = sorted.slice(0, MAX_NAMES);
  const more = Object.values(omitted).reduce((sum, count) => sum + count, changes.length - shown.length);
  return (
    <>
      {refused.length > 0 && <p class="warning small">Cannot be applied: {refused.join(" ")}</p>}
      <div class="row">
        <Kinds of={countsOf(plan)} />
      </div>
      <ul class="names" aria-label="Plan">
        {shown.map((change, at) => (
          <li key={`${at}`}>
            <Change change={change} />
          </li>
        ))}
        {changes.length === 0 && <li class="quiet">Nothing changes.</li>}
        {more > 0 && <li class="quiet">and {number(more)} more</li>}
        {conflicts.map(({ name, field }) => (
          <li key={`conflict ${name} ${field}`} class="warn">
            ! <Text of={name} most={80} />: changed by someone else as well ({field})
          </li>
        ))}
        {drift.map(({ name, field }) => (
          <li key={`drift ${name} ${field}`} class="quiet">
            Someone else changed <Text of={name} most={80} /> ({field}); the plan leaves it alone.
          </li>
        ))}
        {differs.map((sentence) => (
          <li key={sentence} class="warn">
            <Text of={sentence} most={300} isSentence />
          </li>
        ))}
      </ul>
    </>
  );
}

function toneOfChange(kind: PlanChange["kind"]): keyof typeof MARKS {
  return kind === "created" || kind === "deleted" ? kind : "changed";
}

function Change({ change }: { readonly change: PlanChange }) {
  const { kind, name, group, from, to, added = 0, removed = 0 } = change;
  const tone = toneOfChange(kind);
  return (
    <>
      <span class={tone}>{kind === "moved" ? "→" : MARKS[tone]}</span>{" "}
      {kind === "renamed" ? <Sides from={from} to={to} /> : <Text of={name} most={80} />}
      <small>
        {group !== undefined && (
          <>
            {" in "}
            <Text of={group} most={80} />
          </>
        )}
        {kind === "moved" && (
          <>
            {" from "}
            <Sides from={from ?? "top level"} to={to ?? "top level"} />
          </>
        )}
        {added > 0 && ` +${counted(added, "Context ID")}`}
        {removed > 0 && ` −${counted(removed, "Context ID")}`}
      </small>
    </>
  );
}

function Sides({ from, to }: { readonly from: ShownValue | undefined; readonly to: ShownValue | undefined }) {
  return (
    <>
      <del>
        <Text of={String(from)} most={80} />
      </del>
      {" → "}
      <ins>
        <Text of={String(to)} most={80} />
      </ins>
    </>
  );
}

const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "long" });

/** The result of a run so far: its progress, its failures, and who decided. */
export function Done({ run, failures }: { readonly run: RunRow; readonly failures: readonly FailureRow[] }) {
  const { requests, decided, standsStill, undoUntil } = run;
  const shown = failures.slice(0, MAX_FAILURES);
  return (
    <>
      <Progress run={run} />
      {standsStill !== undefined && <p class="warning">{standsStill}</p>}
      {shown.length > 0 && (
        <ul class="names" aria-label="Failures">
          {shown.map(({ count, places, message, remedy }, at) => (
            <li key={`${at}`}>
              <span class="bad">{number(count)}×</span> <Text of={places} most={120} />:{" "}
              <Text of={message} most={400} />{" "}
              <small>
                <Text of={remedy} most={400} />
              </small>
            </li>
          ))}
          {failures.length > shown.length && (
            <li>and {number(failures.length - shown.length)} more kinds of failures</li>
          )}
        </ul>
      )}
      <p class="small quiet">
        {requests !== undefined && `${counted(requests.sent, "request")} sent. `}
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
