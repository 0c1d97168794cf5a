import type { PlanChange, PlanDifference, PlanView, ShownValue } from "../../wire.ts";
import { number } from "../announce.ts";
import { Sentences, Table, Text } from "./parts.tsx";

/** The kinds of changes in their order, as people read them. */
const KINDS = {
  created: "Created",
  renamed: "Renamed",
  moved: "Moved",
  contexts: "Changed Context IDs",
  settings: "Changed settings",
  deleted: "Deleted",
  adopted: "Matched by name",
} as const satisfies Record<PlanChange["kind"], string>;

/** At most so many of one kind, so that all kinds together are no more than 500 rows. */
const MOST_OF_KIND = 50;
const MOST_DIFFERENCES = 70;

/** The diff of a plan as a tree: kinds, and in them groups and their options; then conflicts and drift. */
export function Plan({ plan }: { readonly plan: PlanView }) {
  const { targeting, changes, conflicts, drift, refused, differs, omitted = {} } = plan;
  const kinds = Object.keys(KINDS).filter((name): name is PlanChange["kind"] => Object.hasOwn(KINDS, name));
  return (
    <section aria-labelledby="plan">
      <h2 id="plan">
        Plan{targeting.name !== undefined && ": "}
        {targeting.name !== undefined && <Text of={targeting.name} />}
      </h2>
      <Sentences title="Cannot be applied" of={refused} />
      <ul class="tree">
        {kinds.map((kind) => (
          <Kind
            key={kind}
            kind={kind}
            changes={changes.filter((change) => change.kind === kind)}
            omitted={omitted[kind] ?? 0}
          />
        ))}
      </ul>
      <Sentences title="What does not come back as it was" of={differs} />
      {omitted.differs !== undefined && <p>and {number(omitted.differs)} more</p>}
      <Differences caption="Conflicts" of={conflicts} omitted={omitted.conflicts ?? 0} />
      <Differences caption="Drift" of={drift} omitted={omitted.drift ?? 0} />
    </section>
  );
}

interface KindOfChange {
  readonly kind: PlanChange["kind"];
  readonly changes: readonly PlanChange[];
  readonly omitted: number;
}

function Kind({ kind, changes, omitted }: KindOfChange) {
  if (changes.length === 0) return null;
  const shown = changes.slice(0, MOST_OF_KIND);
  const more = changes.length - shown.length + omitted;
  const alone = shown.filter(({ group }) => group === undefined);
  const groups = Map.groupBy(
    shown.filter(({ group }) => group !== undefined),
    ({ group }) => group,
  );
  return (
    <li>
      <details open>
        <summary>
          {KINDS[kind]} <small>{number(changes.length + omitted)}</small>
        </summary>
        <ul class={kind}>
          {alone.map(changeLine)}
          {[...groups].map(([group, inside]) => (
            <li key={group}>
              <span class="group">
                <Text of={group} />
              </span>
              <ul>{inside.map(changeLine)}</ul>
            </li>
          ))}
          {more > 0 && <li>and {number(more)} more</li>}
        </ul>
      </details>
    </li>
  );
}

function changeLine(change: PlanChange, place: number) {
  const { kind, name, from, to, added, removed, isTargeting } = change;
  const hasValues = kind === "renamed" || kind === "moved" || kind === "settings";
  // What is renamed may be named already by the values.
  const isNamed = kind === "renamed" && (name === from || name === to);
  return (
    <li key={place}>
      {!isNamed && <Text of={name} />}
      {hasValues && !isNamed && ": "}
      {hasValues && (
        <>
          {kind === "settings" && "exposeChildren "}
          <Value of={from} /> → <Value of={to} />
        </>
      )}
      {isTargeting && " (the targeting itself)"}
      {added !== undefined && added > 0 && <ins> +{number(added)}</ins>}
      {removed !== undefined && removed > 0 && <del> −{number(removed)}</del>}
    </li>
  );
}

function Value({ of }: { readonly of: ShownValue | undefined }) {
  if (of === null) return <>top level</>;
  return <Text of={of === undefined ? "–" : String(of)} />;
}

interface DifferencesProps {
  readonly caption: string;
  readonly of: readonly PlanDifference[];
  readonly omitted: number;
}

function Differences({ caption, of, omitted }: DifferencesProps) {
  if (of.length === 0) return null;
  const more = Math.max(0, of.length - MOST_DIFFERENCES) + omitted;
  return (
    <>
      <Table caption={caption} heads={["Name", "Field", "When exported", "In the file", "In the service"]}>
        {of.slice(0, MOST_DIFFERENCES).map(({ name, field, base, file, service }) => (
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
      {more > 0 && <p>and {number(more)} more</p>}
    </>
  );
}
