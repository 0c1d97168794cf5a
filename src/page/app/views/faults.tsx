import type { TargetedSubmitEvent } from "preact";
import { PATHS } from "../../paths.ts";
import type { NewFault } from "../../wire.ts";
import { number } from "../announce.ts";
import { act } from "../requests.ts";
import { faults } from "../state.ts";
import { Table } from "./parts.tsx";

/** What the sandbox is told to do wrong. */
export function Faults() {
  const { faults: rows, operations, kinds } = faults.value;
  return (
    <>
      <h1>Faults</h1>
      <form class="bar" onSubmit={add}>
        <Choice label="Operation" name="operation" of={operations} />
        <Choice label="Kind" name="kind" of={kinds} />
        <label>
          Times <input name="times" type="number" min="1" step="1" value="1" required />
        </label>
        <button type="submit">Add</button>
        <button type="button" onClick={() => act(PATHS.reset, { only: ["faults"] }, "All faults are removed.")}>
          Reset
        </button>
      </form>
      <Table caption="Faults" heads={["Operation", "Kind", "Times", "Requests met", "Struck", "Remove it"]}>
        {rows.map(({ id, operation, kind, times, met, struck }) => (
          <tr key={id}>
            <th scope="row" id={`fault-${id}`}>
              {operation}
            </th>
            <td>{kind}</td>
            <td>{times}</td>
            <td>{number(met)}</td>
            <td>{number(struck)}</td>
            <td>
              <button
                type="button"
                aria-describedby={`fault-${id}`}
                onClick={() => act(`${PATHS.faults}/${id}/remove`, {}, "The fault is removed.")}
              >
                Remove
              </button>
            </td>
          </tr>
        ))}
      </Table>
      {rows.length === 0 && <p>The sandbox does nothing wrong.</p>}
    </>
  );
}

async function add(event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> {
  event.preventDefault();
  const form = new FormData(event.currentTarget);
  const fault: NewFault = {
    operation: String(form.get("operation")),
    kind: String(form.get("kind")),
    times: Number(form.get("times")),
  };
  await act(PATHS.faults, fault, "The fault is added.");
}

function Choice({
  label,
  name,
  of,
}: {
  readonly label: string;
  readonly name: string;
  readonly of: readonly string[];
}) {
  return (
    <label>
      {label}{" "}
      <select name={name}>
        {of.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}
