import { useSignal } from "@preact/signals";
import type { TargetedInputEvent, VNode } from "preact";
import { PATHS } from "../../paths.ts";
import type { CoverageRow, EventBody, EventRow } from "../../wire.ts";
import { number } from "../announce.ts";
import { act, read } from "../requests.ts";
import { arrived, coverage } from "../state.ts";
import {
  filter,
  hasOlder,
  isOlder,
  isPaused,
  pause,
  setFilter,
  showNewer,
  shownEvents,
  showOlder,
} from "./event-list.ts";
import { Pager, SCROLLS, Table, Text, Time, visibleLines } from "./parts.tsx";

/** What arrives at the sandbox, live, and what of the catalogue it touches. */
export function Events() {
  const type = (event: TargetedInputEvent<HTMLInputElement>) => setFilter(event.currentTarget.value);
  const reset = () => act(PATHS.reset, { only: ["events"] }, "The events are forgotten.");
  return (
    <>
      <h1>Events</h1>
      <div class="bar">
        <label>
          Filter <input type="search" value={filter} onInput={type} />
        </label>
        <button type="button" onClick={pause} disabled={isOlder.value}>
          {isPaused.value ? "Resume" : "Pause"}
        </button>
        <button type="button" onClick={reset}>
          Reset
        </button>
      </div>
      <Table caption="Events" heads={["Time", "Event", "User", "Verdict", "How to fix it", "Body"]} className="events">
        {shownEvents.value.map(eventRow)}
      </Table>
      <Pager previous={isOlder.value ? showNewer : undefined} next={hasOlder.value ? showOlder : undefined}>
        {number(shownEvents.value.length)} of {number(arrived.value)} events
        {isPaused.value ? "; paused" : isOlder.value ? "; older ones" : ""}
      </Pager>
      <Coverage />
    </>
  );
}

/** Rows never change: a row that was drawn once is not drawn again as others arrive. */
const drawn = new WeakMap<EventRow, VNode>();

function eventRow(event: EventRow): VNode {
  // A sandbox that starts again counts from 1 again.
  const known = drawn.get(event) ?? <Row key={`${event.seq} ${event.at}`} event={event} />;
  drawn.set(event, known);
  return known;
}

function Row({ event: { seq, at, verdict, uid, name, says } }: { readonly event: EventRow }) {
  return (
    <tr>
      <td>
        <Time at={at} />
      </td>
      <th scope="row">
        <Text of={name} most={120} />
      </th>
      <td>
        <Text of={uid} most={120} />
      </td>
      <td class={verdict}>{verdict}</td>
      <td>
        {says.map((sentence) => (
          <p key={sentence}>
            <Text of={sentence} most={400} />
          </p>
        ))}
      </td>
      <td>
        <Body seq={seq} />
      </td>
    </tr>
  );
}

/** The body of an event as it came, read when it is asked for. */
function Body({ seq }: { readonly seq: number }) {
  const body = useSignal<string | undefined>(undefined);
  const open = async () => {
    if (body.value !== undefined) return;
    const answer = await read<EventBody>(`${PATHS.events}/${seq}`);
    if ("message" in answer) body.value = answer.message;
    else body.value = bodyText(answer.data);
  };
  return (
    <details onToggle={open}>
      <summary>Raw body</summary>
      {body.value !== undefined && <pre {...SCROLLS}>{body.value}</pre>}
    </details>
  );
}

function bodyText({ text, forwarded }: EventBody): string {
  const answer =
    forwarded === undefined ? "" : `\n\nThe real endpoint answered ${forwarded.status}: ${forwarded.message}`;
  return visibleLines(text + answer);
}

/** How often each event arrived, and how often with each parameter. */
function Coverage() {
  const rows = coverage.value;
  const parameters = [...new Set(rows.flatMap((row) => Object.keys(row.parameters)))];
  return (
    <Table caption="Coverage" heads={["Event", "Arrived", "Not recorded", ...parameters]} className="coverage">
      {rows.map((row) => coverageRow(row, parameters))}
    </Table>
  );
}

/** Rows as they were drawn last: one whose event has not come since is not drawn again. */
const drawnCoverage = new Map<string, { readonly mark: string; readonly row: VNode }>();

function coverageRow(covered: CoverageRow, parameters: readonly string[]): VNode {
  const { name, count, wrong, parameters: seen } = covered;
  const mark = JSON.stringify(covered);
  const known = drawnCoverage.get(name);
  if (known?.mark === mark) return known.row;
  const row = (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td class={count === 0 ? "none" : ""}>{number(count)}</td>
      <td class={wrong === 0 ? "none" : "rejected"}>{number(wrong)}</td>
      {parameters.map((parameter) => {
        const times = seen[parameter];
        return (
          <td key={parameter} class={times === 0 ? "none" : ""}>
            {times === undefined ? "" : number(times)}
          </td>
        );
      })}
    </tr>
  );
  drawnCoverage.set(name, { mark, row });
  return row;
}
