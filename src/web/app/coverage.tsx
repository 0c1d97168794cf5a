import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { CoverageRow, ParameterCoverage, TestFormat } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { Bar, Heads, Text } from "./parts.tsx";
import { number } from "./plain-words.ts";
import { save } from "./requests.ts";
import { metrics, set } from "./state.ts";
import { RESULTS, WordsOf } from "./words.tsx";

/** Shows how often each event arrived, how often with each parameter, and which were never sent. */
export function Coverage() {
  const { coverage, unknownNames } = metrics.value;
  if (coverage.length === 0) return null;
  const seen = coverage.filter(({ count }) => count > 0).length;
  const parameters = coverage.flatMap((row) => row.parameters);
  const sent = parameters.filter(({ count }) => count > 0).length;
  return (
    <section class="card" aria-labelledby="coverage">
      <h2 id="coverage">
        Coverage{" "}
        <span class="quiet small">
          {seen} of {coverage.length} events · {sent} of {parameters.length} parameters
        </span>
      </h2>
      <table class="coverage stacks">
        <caption class="spoken">Coverage</caption>
        <Heads of={["Event", "Recorded", "of received", "Parameters"]} />
        <tbody>{[...coverage, ...unknownNames].map(coverageRow)}</tbody>
      </table>
      <p class="small quiet">
        * required · ✓ sent · ✕ missing in some events · ! wrong type or empty in some · dashed: never sent
      </p>
      {(seen < coverage.length || sent < parameters.length) && <Tests />}
    </section>
  );
}

/** The rendered rows by event. A row is rendered again only if its counts changed: some change many times a second. */
const drawn = new Map<string, { readonly mark: string; readonly row: VNode }>();

function coverageRow(covered: CoverageRow): VNode {
  const mark = JSON.stringify(covered);
  const known = drawn.get(covered.name);
  if (known?.mark === mark) return known.row;
  const row = <Covered key={covered.name} covered={covered} />;
  drawn.set(covered.name, { mark, row });
  return row;
}

function Covered({ covered }: { readonly covered: CoverageRow }) {
  const { name, count, wrong, misspelt, note, parameters } = covered;
  const right = count - wrong;
  const all = count + misspelt;
  const shares = [
    { tone: RESULTS.recorded.tone, count: right, of: "recorded" },
    { tone: RESULTS.ignored.tone, count: all - right, of: "not recorded" },
  ];
  return (
    <tr>
      <th scope="row">
        <code class={all === 0 ? "quiet" : ""}>
          <Text of={name} most={60} />
        </code>
      </th>
      <td class="wide">{all === 0 ? "" : <Bar shares={shares} label={name} />}</td>
      <td class="small">{all === 0 ? <span class="quiet">never sent</span> : `${number(right)} / ${number(all)}`}</td>
      <td>
        {note && (
          <span class="line bad small">
            <WordsOf of={note} />
          </span>
        )}
        {parameters.map((parameter) => (
          <Chip key={parameter.name} parameter={parameter} of={count} />
        ))}
      </td>
    </tr>
  );
}

function Chip({ parameter, of }: { readonly parameter: ParameterCoverage; readonly of: number }) {
  const { name, required, count, missing, doubtful } = parameter;
  const [tone, mark, title] =
    missing > 0
      ? ["bad", "✕ ", `missing in ${number(missing)} of ${number(of)}`]
      : doubtful > 0
        ? ["warn", "! ", `wrong type or empty in ${number(doubtful)} of ${number(of)}`]
        : count > 0
          ? ["good", "✓ ", `sent ${number(count)} times`]
          : ["none", "", "never sent"];
  return (
    <span class={`chip ${tone}`} title={title}>
      {mark}
      {name}
      {required && "*"}
    </span>
  );
}

const FORMATS = {
  vitest: "Vitest",
  playwright: "Playwright",
  curl: "Shell script",
  json: "Suite as JSON",
} as const satisfies Record<TestFormat, string>;

/** Offers a file with tests for events and parameters that have not been sent. */
function Tests() {
  const format = useSignal("vitest");
  return (
    <div class="row">
      <span>Tests for what was never sent:</span>
      <select
        aria-label="Format of the tests"
        value={format}
        onChange={(event) => set(format, event.currentTarget.value)}
      >
        {Object.entries(FORMATS).map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => save(`${PATHS.eventTests}?format=${format.value}`)}>
        Download tests
      </button>
    </div>
  );
}
