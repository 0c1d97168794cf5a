import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect } from "preact/hooks";
import type { BodyLine, CorrectedEvent, EventCause, EventDetail, EventProblem } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { want } from "./event-list.ts";
import { Badge, ClockTime, Copy, copyText, SCROLLS, Text, visible, visibleLines } from "./parts.tsx";
import { counted } from "./plain-words.ts";
import { act, read } from "./requests.ts";
import { eventsAge, isSandboxThere, metrics, route, sandbox } from "./state.ts";
import { RESULTS } from "./words.tsx";

/** The sentence that explains each result to a person. */
const MEANING = {
  recorded: "This event was recorded.",
  ignored: 'The service answers "ok", but does not count this event.',
  rejected: "The service refuses this event.",
} as const;

/** Shows one event: its result and the reasons, its body, and the corrected body. */
export function EventPane({ seq }: { readonly seq: number | undefined }) {
  const detail = useSignal<EventDetail | string | undefined>(undefined);
  const { id } = route.value;
  const age = eventsAge.value;
  useEffect(() => {
    let isCurrent = true;
    if (seq !== undefined) {
      void read<EventDetail>(`${PATHS.events}/${seq}`).then((answer) => {
        if (isCurrent) detail.value = "message" in answer ? answer.message : answer.data;
      });
    }
    return () => {
      isCurrent = false;
    };
  }, [seq, detail, age]);
  useEffect(() => {
    // In a narrow window, the pane is below the list of problems, so it is scrolled into view.
    const pane = id === undefined ? null : document.querySelector(".event-pane");
    if (pane !== null && innerWidth <= 1000) pane.scrollIntoView({ block: "nearest" });
  }, [id]);
  const known = detail.value;
  return (
    <section class="card event-pane" aria-label="Event">
      {seq === undefined || known === undefined ? (
        <p class="quiet">Choose an event or a problem to see how to fix it.</p>
      ) : typeof known === "string" ? (
        <p>{known}</p>
      ) : (
        <Detail detail={known} />
      )}
    </section>
  );
}

function Detail({ detail }: { readonly detail: EventDetail }) {
  const { event, text, problems, corrected, sameProblem, forwarded } = detail;
  const { verdict, name, uid, at, platform } = event;
  const { title, tone } = RESULTS[verdict];
  return (
    <>
      <div class="row">
        <Badge tone={tone}>{title}</Badge>
        <code>
          <Text of={name} most={200} />
        </code>
        <span class="push small quiet">
          <ClockTime at={at} to="millisecond" />
        </span>
      </div>
      <p class="small quiet">
        {uid === null ? "no uid" : <Text of={uid} most={200} />}
        {platform !== undefined && ` · ${visible(platform)}`}
      </p>
      <p>
        <strong>{MEANING[verdict]}</strong>
      </p>
      <Reasons problems={problems} isRecorded={verdict === "recorded"} />
      {corrected !== undefined && <Corrected corrected={corrected} problems={problems} />}
      {sameProblem !== undefined && sameProblem.count > 1 && <SameProblem problem={sameProblem} />}
      {forwarded !== undefined && (
        <p class="small">
          The real endpoint answered {forwarded.status}: <Text of={forwarded.message} />
        </p>
      )}
      <details key={event.seq} open={corrected === undefined}>
        <summary>Body as sent</summary>
        <pre {...SCROLLS}>{visibleLines(text)}</pre>
        <Copy of={text} name="Copy this body" />
      </details>
    </>
  );
}

/** Shows the problems of an event, each with its fix. */
function Reasons({ problems, isRecorded }: Pick<EventDetail, "problems"> & { readonly isRecorded: boolean }) {
  const deciding = problems.filter(({ isDecisive }) => isDecisive);
  const others = problems.filter(({ isDecisive }) => !isDecisive);
  const sections = [...new Set(deciding.flatMap(({ section = [] }) => section))];
  return (
    <>
      <List problems={deciding} />
      {sections.length > 0 && <p class="small quiet">Event API, section {sections.join(", ")}</p>}
      {others.length > 0 && (
        <details open={isRecorded}>
          <summary>{counted(others.length, "hint")}</summary>
          <List problems={others} />
        </details>
      )}
    </>
  );
}

function List({ problems }: { readonly problems: readonly EventProblem[] }) {
  return (
    <ul class="reasons">
      {problems.map(({ message, fix }) => (
        <li key={message}>
          <Text of={sentence(message)} most={400} isSentence /> <Text of={sentence(fix)} most={400} isSentence />
        </li>
      ))}
    </ul>
  );
}

function sentence(text: string): string {
  const first = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.?!]$/.test(first) ? first : `${first}.`;
}

function Corrected({ corrected, problems }: Pick<EventDetail, "problems"> & { readonly corrected: CorrectedEvent }) {
  const { text, lines, examples } = corrected;
  // Omits renamed fields that the fix of a problem already names.
  const renamed = corrected.renamed.filter(
    (one) => !problems.some(({ fix }) => fix.includes(`"${one.split(" ")[0]}"`)),
  );
  const send = () => act(PATHS.events, { text }, "The corrected event was sent to the sandbox.");
  return (
    <>
      {renamed.length > 0 && (
        <p>
          Rename these fields as well: <Text of={renamed.join(", ")} />.
        </p>
      )}
      <h3>Corrected event</h3>
      <pre class="corrected" {...SCROLLS}>
        {lines.map((line, at) => (
          <Line key={`${at}`} line={line} />
        ))}
      </pre>
      {examples.length > 0 && (
        <p class="small quiet">
          Send your own value for{" "}
          {examples.map((path, at) => (
            <span key={path}>
              {at > 0 && ", "}
              <code>{path}</code>
            </span>
          ))}
          : {examples.length === 1 ? "this one is an example" : "these are examples"}.
        </p>
      )}
      <div class="row">
        <button type="button" class="primary" onClick={() => copyText(text)}>
          Copy corrected event
        </button>
        {sandbox.value?.readOnly !== true && (
          <button type="button" disabled={!isSandboxThere.value} onClick={send}>
            Send to the sandbox
          </button>
        )}
      </div>
    </>
  );
}

const MARKS = { same: "", removed: "removed", added: "added" } as const;
const TAGS = { same: "span", removed: "del", added: "ins" } as const;
/** Parts of a line with more characters than this are cut. The copy button copies the whole body. */
const MAX_SHOWN = 100;

/** Shows a line of a body. A line that was added or removed as a whole is marked as a whole. */
function Line({ line }: { readonly line: BodyLine }) {
  const [first] = line;
  const whole = line.length === 1 && first !== undefined ? MARKS[first.is] : "";
  return (
    <span class={`line ${whole}`}>
      {line.map(({ is, text }, at) => {
        const Tag = TAGS[is];
        return (
          <Fragment key={at}>
            {is === "added" && at > 0 && line[at - 1]?.is === "removed" && " → "}
            <Tag>{visible(text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`)}</Tag>
          </Fragment>
        );
      })}
      {"\n"}
    </span>
  );
}

function SameProblem({ problem }: { readonly problem: EventCause }) {
  const { id, count, firstAt, platforms } = problem;
  // The number of events with this problem may grow while the pane is open.
  const current = metrics.value.problems.find((one) => one.id === id)?.count ?? count;
  const shares = platforms
    .slice(0, 3)
    .map(({ platform, events }) => `${events.toLocaleString("en")} ${visible(platform)}`);
  return (
    <p class="small quiet">
      Same problem in {counted(current, "event")} since <ClockTime at={firstAt} to="second" /> ({shares.join(", ")}).{" "}
      <button type="button" class="plain" onClick={() => want({ problem: id })}>
        Show all
      </button>
    </p>
  );
}
