import { computed, effect, signal, useSignal } from "@preact/signals";
import type { TargetedEvent, TargetedFocusEvent, VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { EventCause, EventRow, Verdict } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { Coverage } from "./coverage.tsx";
import {
  clearFilter,
  hasOlder,
  hold,
  isOlder,
  isPaused,
  late,
  matches,
  matching,
  pause,
  showNewer,
  shownEvents,
  showOlder,
  want,
  wanted,
} from "./event-list.ts";
import { EventPane } from "./event-pane.tsx";
import {
  Ago,
  Ask,
  Badge,
  Bar,
  ClockTime,
  Columns,
  Copy,
  Filters,
  Heads,
  now,
  Pager,
  SCROLLS,
  Search,
  Text,
  useSteady,
} from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { act } from "./requests.ts";
import { arrived, clockAhead, events, isSandboxThere, metrics, route, sandbox, set, verdicts } from "./state.ts";
import { eventShares, Fix, RESULTS, VERDICTS, WordsOf } from "./words.tsx";

/** The number of problems that are shown before the person presses "Show more". */
const FIRST_PROBLEMS = 6;
const BARS = 60;

/**
 * The event that is shown if the person has chosen none: one with the most frequent problem. It changes only when
 * another problem becomes the most frequent one, so that a person can read it meanwhile.
 */
const suggested = signal<Pick<EventCause, "id" | "latest"> | undefined>(undefined);
effect(() => {
  const [first] = metrics.value.problems;
  if (first?.id !== suggested.peek()?.id) suggested.value = first;
});
const chosen = computed(() => (route.value.view === "events" && Number(route.value.id)) || suggested.value?.latest);

/** Shows the events of the sandbox as they arrive: which are recorded, which not and why, and which were never sent. */
export function Events() {
  const isReadOnly = sandbox.value?.readOnly === true;
  const isAsking = useSignal(false);
  const ask = (is: boolean) => () => set(isAsking, is);
  return (
    <>
      <div class="row">
        <h1>Events</h1>
        <State />
        <Endpoint />
        <span class="push row">
          <button type="button" onClick={pause} disabled={isOlder.value || !isSandboxThere.value}>
            {isPaused.value ? "Resume" : "Pause"}
          </button>
          {!isReadOnly && (
            <button type="button" onClick={ask(true)} disabled={arrived.value === 0 || !isSandboxThere.value}>
              Clear events…
            </button>
          )}
        </span>
      </div>
      {isAsking.value && (
        <Ask
          act="Clear events"
          tone="danger"
          close={ask(false)}
          press={() => void act(PATHS.reset, { only: ["events"] }, "All events were removed.")}
        >
          Remove {counted(arrived.value, "event")} from the sandbox? This cannot be undone.
        </Ask>
      )}
      {arrived.value > 0 ? (
        <Arrived />
      ) : sandbox.value === undefined ? (
        <p class="quiet">Reading the events…</p>
      ) : (
        <Nothing />
      )}
    </>
  );
}

function State() {
  if (!isSandboxThere.value) return null;
  const [last] = events.value;
  return (
    <>
      {isPaused.value ? <Badge tone="idle">Paused</Badge> : <Badge tone="good">● Listening</Badge>}
      {last !== undefined && (
        <span class="quiet small wide">
          latest event <Ago at={last.at - clockAhead.value} />
        </span>
      )}
    </>
  );
}

/** Shows the address to which events are sent. */
function Endpoint() {
  if (sandbox.value === undefined || sandbox.value.readOnly) return null;
  const address = `${sandbox.value.address}/event`;
  return (
    <span class="quiet small">
      POST {address} <Copy of={address} />
    </span>
  );
}

/** Shows instructions for the first event, if no event has arrived yet. */
function Nothing() {
  const { address = "", appKey = "" } = sandbox.value ?? {};
  const body = `'{"uid":"user-1","eventName":"app_open"}'`;
  const line = `curl -X POST ${address}/event -H "Authorization: ${appKey}" -H "Content-Type: application/json" -d ${body}`;
  const isFar = sandbox.value?.readOnly === true;
  return (
    <>
      <div class="card start">
        <h2>No events yet</h2>
        <p class="quiet">
          {isFar
            ? "They appear here as they arrive at the sandbox."
            : "Let your app send its events to this address, or send one from a terminal."}
        </p>
        {!isFar && (
          <>
            <pre>{line}</pre>
            <Copy of={line} name="Copy the command" />
          </>
        )}
      </div>
      <Coverage />
    </>
  );
}

function Arrived() {
  return (
    <>
      <div class="grid event-figures">
        <Counters />
        <Histogram />
      </div>
      <div class="grid event-panes">
        <div class="event-lists">
          <Problems />
          <Stream />
          <Coverage />
        </div>
        <EventPane seq={chosen.value} />
      </div>
    </>
  );
}

function Counters() {
  const shares = eventShares(verdicts.value);
  return (
    <div class="card">
      <div class="counters">
        <p>
          <strong>{number(arrived.value)}</strong> received
        </p>
        {shares.map(({ tone, count, of }) => (
          <p key={of} class={tone}>
            <strong>{number(count)}</strong> {of}
          </p>
        ))}
      </div>
      <Bar shares={shares} label="Events" />
    </div>
  );
}

/** Shows how many events arrived in the last ten minutes, by result. The chart also moves on while no events arrive. */
function Histogram() {
  const { bars, everyMs, now: at } = metrics.value.histogram;
  const last = Math.floor(Math.max(at, now.value + clockAhead.value) / everyMs) * everyMs;
  const byTime = new Map(bars.map((bar) => [bar.at, bar]));
  const none = { recorded: 0, ignored: 0, rejected: 0 };
  const slots = Array.from({ length: BARS }, (_, at) => last - (BARS - 1 - at) * everyMs);
  const columns = slots.map((at) => ({
    title: new Date(at).toLocaleTimeString("en", { hour12: false }),
    shares: eventShares(byTime.get(at) ?? none),
  }));
  const sum = columns.flatMap(({ shares }) => shares).reduce((all, { count }) => all + count, 0);
  return (
    <div class="card">
      <Columns columns={columns} label={`Events of the last ten minutes, ten seconds each: ${number(sum)}`} />
      <div class="row small quiet">
        <span>10 min ago</span>
        <span class="push">{counted(sum, "event")} in 10 min</span>
        <span class="push">now</span>
      </div>
    </div>
  );
}

const showsAll = signal(false);

/** Shows the causes for which events are not recorded, each with its number of events. */
function Problems() {
  const { problems, otherProblems } = metrics.value;
  const lost = arrived.value - verdicts.value.recorded;
  const { shown, holds } = useSteady(problems, ({ id }) => id);
  if (lost === 0) {
    return (
      <section class="card" aria-labelledby="problems">
        <h2 id="problems">No problems</h2>
        <p class="quiet">Every event so far counts.</p>
      </section>
    );
  }
  const rest = problems.length - FIRST_PROBLEMS;
  return (
    <section class="card flush" aria-labelledby="problems">
      <div class="head">
        <h2 id="problems">
          {counted(problems.length, "problem")}{" "}
          <span class="quiet small">
            {number(lost)} of {counted(arrived.value, "event")} not recorded
          </span>
        </h2>
      </div>
      <ul class="problems" {...holds}>
        {shown.slice(0, showsAll.value ? undefined : FIRST_PROBLEMS).map((problem) => (
          <Problem key={problem.id} problem={problem} />
        ))}
      </ul>
      {otherProblems > 0 && showsAll.value && (
        <p class="head quiet">{counted(otherProblems, "event")} with still other problems</p>
      )}
      {rest > 0 && (
        <p class="head">
          <button type="button" class="plain" onClick={() => set(showsAll, !showsAll.value)}>
            {showsAll.value ? "Show fewer" : `Show ${number(rest)} more`}
          </button>
        </p>
      )}
    </section>
  );
}

function Problem({ problem }: { readonly problem: EventCause }) {
  const { id, count, verdict, name, otherNames = 0, cause, fix, platforms, lastAt, latest } = problem;
  const isChosen = wanted.value.problem === id;
  const choose = () => {
    want({ filter: "", problem: isChosen ? undefined : id });
    if (!isChosen) location.hash = `#/events/${latest}`;
  };
  const [{ platform } = { platform: "" }] = platforms;
  return (
    <li>
      <button type="button" class="problem" aria-pressed={isChosen} onClick={choose}>
        <i class={`dot ${RESULTS[verdict].tone}`} title={RESULTS[verdict].title} />
        <strong>{number(count)}×</strong>
        <code class="trunc">
          {name === null ? "(no name)" : <Text of={name} most={80} />}
          {otherNames > 0 && `, ${number(otherNames)} more`}
        </code>
        <span class="cause">
          <WordsOf of={cause} />
          <Fix of={fix} />
        </span>
        <span class="quiet small wide">
          {platforms.length === 1 && (
            <>
              <Text of={platform} most={20} /> ·{" "}
            </>
          )}
          <ClockTime at={lastAt} to="second" />
        </span>
      </button>
    </li>
  );
}

type Choice = "all" | Verdict;

/**
 * These attributes stop rows from moving while the pointer or the keyboard focus is on the list. Focus by a mouse click
 * does not count.
 */
const HOLDS = {
  onPointerEnter: () => hold(true),
  onPointerLeave: ({ currentTarget }: TargetedEvent<HTMLElement>) => hold(currentTarget.matches(WITH_KEYS)),
  onFocusIn: ({ currentTarget }: TargetedEvent<HTMLElement>) => currentTarget.matches(WITH_KEYS) && hold(true),
  onFocusOut: ({ currentTarget, relatedTarget }: TargetedFocusEvent<HTMLElement>) =>
    hold(currentTarget.matches(":hover") || (relatedTarget instanceof Node && currentTarget.contains(relatedTarget))),
};
const WITH_KEYS = ":focus-visible, :has(:focus-visible)";

function Stream() {
  useEffect(() => () => hold(false), []);
  const { filter, verdict, problem } = wanted.value;
  const counts = verdicts.value;
  const of: readonly { readonly name: Choice; readonly title: string; readonly count: number }[] = [
    { name: "all", title: "All", count: arrived.value },
    ...VERDICTS.map((name) => ({ name, title: RESULTS[name].title, count: counts[name] })),
  ];
  return (
    <section class="card flush" aria-label="All events">
      <div class="row head">
        <Filters<Choice>
          label="Results"
          of={of}
          chosen={verdict ?? (problem === undefined ? "all" : undefined)}
          choose={(name) => want(name === "all" ? { verdict: undefined, problem: undefined } : { verdict: name })}
        />
        <span class="push" />
        <Search label="Filter" value={filter} change={(text) => want({ filter: text })} />
      </div>
      {problem !== undefined && <p class="head note">{problemNote(problem)}</p>}
      {matches.value && <p class="head quiet">{matches}</p>}
      <section class="stream-frame" aria-label="List of events" {...SCROLLS} {...HOLDS}>
        <table class="stream">
          <caption class="spoken">Events</caption>
          <Heads areSpoken of={["Result", "Time", "Event", "User, platform, problem"]} />
          <tbody>{shownEvents.value.map((event) => eventRow(event, event.seq === chosen.value))}</tbody>
        </table>
      </section>
      <div class="head">
        <Pager previous={isOlder.value ? showNewer : undefined} next={hasOlder.value ? showOlder : undefined}>
          {hasOlder.value && !isOlder.value && "the latest "}
          {number(shownEvents.value.length)} of {number(matching.value ?? arrived.value)}
          {matching.value === undefined ? " " : " matching "}events
          {isPaused.value ? "; paused" : isOlder.value ? "; older ones" : ""}
          {late.value > 0 && !isOlder.value && `; ${counted(late.value, "new event")}`}
        </Pager>
      </div>
    </section>
  );
}

function problemNote(id: number) {
  const problem = metrics.value.problems.find((one) => one.id === id);
  return (
    <>
      Events with the problem {problem === undefined ? "that you chose" : <WordsOf of={problem.cause} />}.{" "}
      <button type="button" class="plain" onClick={clearFilter}>
        Show all events
      </button>
    </>
  );
}

/** The rendered rows. A row is rendered again if it is chosen or no longer chosen, not when other events arrive. */
const drawn = new WeakMap<EventRow, { readonly isChosen: boolean; readonly row: VNode }>();

function eventRow(event: EventRow, isChosen: boolean): VNode {
  const known = drawn.get(event);
  if (known?.isChosen === isChosen) return known.row;
  // A restarted sandbox numbers its events from 1 again, so the number alone is not a unique key.
  const row = <Row key={`${event.seq} ${event.at}`} event={event} isChosen={isChosen} />;
  drawn.set(event, { isChosen, row });
  return row;
}

function Row({ event, isChosen }: { readonly event: EventRow; readonly isChosen: boolean }) {
  const { seq, at, verdict, uid, name, platform, cause } = event;
  const { title, tone } = RESULTS[verdict];
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <td>
        <i class={`dot ${tone}`} title={title} />
        <span class="spoken">{title}</span>
      </td>
      <td class="wide">
        <ClockTime at={at} to="millisecond" />
      </td>
      <th scope="row">
        <a href={`#/events/${seq}`} data-row="choose" {...(isChosen && { "aria-current": "true" as const })}>
          <Text of={name} most={120} />
        </a>
      </th>
      <td class="quiet">
        {uid === null ? "no uid" : <Text of={uid} most={120} />}
        {platform !== undefined && (
          <>
            {" · "}
            <Text of={platform} most={20} />
          </>
        )}
        {cause !== undefined && (
          <>
            <span class="wide"> · </span>
            <span class="cause">
              <WordsOf of={cause} />
            </span>
          </>
        )}
      </td>
    </tr>
  );
}
