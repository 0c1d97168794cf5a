import type { PlanDifference, PlanView, ShownValue } from "../wire.ts";
import { number } from "./announce.ts";
import { Sentences, Table, Text } from "./parts.tsx";

/** The most differences of a list that are shown. */
const MOST_DIFFERENCES = 70;

/** What a plan leaves alone, since others changed it, and what it cannot bring back. */
export function Differences({ plan }: { readonly plan: PlanView }) {
  const { conflicts, drift, differs, omitted = {} } = plan;
  return (
    <>
      {drift.slice(0, MOST_DIFFERENCES).map((one) => (
        <p key={`${one.field} ${one.name}`} class="card note small">
          <strong>
            Someone else changed <Text of={one.name} />
          </strong>{" "}
          ({one.field}): it was <Value of={one.base} /> and is now <Value of={one.service} />. The plan leaves it alone.
        </p>
      ))}
      <More than={MOST_DIFFERENCES} of={drift.length + (omitted.drift ?? 0)} />
      {conflicts.length > 0 && <Conflicts of={conflicts.slice(0, MOST_DIFFERENCES)} />}
      <More than={MOST_DIFFERENCES} of={conflicts.length + (omitted.conflicts ?? 0)} />
      <Sentences title="What does not come back as it was" of={differs} />
      {omitted.differs !== undefined && <p>and {number(omitted.differs)} more</p>}
    </>
  );
}

function More({ than, of }: { readonly than: number; readonly of: number }) {
  return of > than ? <p>and {number(of - than)} more</p> : null;
}

function Conflicts({ of }: { readonly of: readonly PlanDifference[] }) {
  return (
    <Table caption="Conflicts" heads={["Name", "Field", "When exported", "In the file", "In the service"]}>
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
