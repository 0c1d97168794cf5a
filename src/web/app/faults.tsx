import { useSignal } from "@preact/signals";
import type { TargetedSubmitEvent } from "preact";
import type { FaultField, FaultRow, NewFault } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { Table } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { act } from "./requests.ts";
import { faults, isSandboxThere, set } from "./state.ts";

/** Shows the faults that the sandbox simulates: active ones, presets, and a form for any kind. */
export function Faults() {
  const rows = faults.value.faults;
  return (
    <fieldset disabled={!isSandboxThere.value}>
      <div class="row">
        <h1>Fault injection</h1>
        <span class="quiet">What the sandbox does wrong on purpose, to test clients.</span>
        <span class="push" />
        <button type="button" disabled={rows.length === 0} onClick={removeAll}>
          Reset
        </button>
      </div>
      <Active rows={rows} />
      <div class="grid three">
        {faults.value.presets.map(({ title, says, fault }) => (
          <div key={title} class="card">
            <button type="button" onClick={() => add(fault)}>
              {title}
            </button>
            <p class="quiet">{says}</p>
          </div>
        ))}
      </div>
      <Form />
    </fieldset>
  );
}

export async function removeAll(): Promise<void> {
  await act(PATHS.reset, { only: ["faults"] }, "All faults were removed.");
}

async function add(fault: NewFault): Promise<void> {
  await act(PATHS.faults, fault, "The fault was added.");
}

function Active({ rows }: { readonly rows: readonly FaultRow[] }) {
  if (rows.length === 0)
    return <p class="card quiet">No fault is active: the sandbox answers every request normally.</p>;
  const heads = ["Requests", "What happens", "Kind", "Times", "Matched", "Triggered", "Remove it"];
  return (
    <div class="card flush">
      <div class="head">
        <strong class="sandbox">{counted(rows.length, "active fault")}</strong>
      </div>
      <Table caption="Faults" heads={heads} className="faults stacks">
        {rows.map(({ id, operation, kind, says, times, met, struck }) => (
          <tr key={id}>
            <th scope="row" id={`fault-${id}`} data-head="Requests">
              {operation}
            </th>
            <td>{says}</td>
            <td>{kind}</td>
            <td data-head="Times">{times}</td>
            <td>{number(met)}</td>
            <td data-head="Triggered">{number(struck)}</td>
            <td>
              <button
                type="button"
                aria-describedby={`fault-${id}`}
                onClick={() => act(`${PATHS.faults}/${id}/remove`, {}, "The fault was removed.")}
              >
                Remove
              </button>
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

/** Shows the form for a new fault of any kind, with the fields of that kind. */
function Form() {
  const { operations, kinds } = faults.value;
  const chosen = useSignal("");
  const kind = kinds.find(({ name }) => name === chosen.value) ?? kinds[0];
  if (kind === undefined) return null;
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    await add(faultOf(new FormData(event.currentTarget), kind.fields));
  };
  return (
    <section class="card" aria-labelledby="new-fault">
      <h2 id="new-fault">Another fault</h2>
      <form class="row fault-form" onSubmit={submit}>
        <label>
          Operation{" "}
          <select name="operation">
            {operations.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Kind{" "}
          <select name="kind" onChange={(event) => set(chosen, event.currentTarget.value)}>
            {kinds.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {kind.fields.map((field) => (
          <Field key={`${kind.name} ${field.name}`} field={field} />
        ))}
        <label>
          Times <input name="times" type="number" min="1" step="1" value="1" required />
        </label>
        <button type="submit" class="primary">
          Add
        </button>
      </form>
      <p class="quiet">
        <code>{kind.name}</code>: {kind.says}.
      </p>
    </section>
  );
}

function Field({ field: { name, label, value, least, most } }: { readonly field: FaultField }) {
  if (typeof value === "boolean") {
    return (
      <label>
        <input type="checkbox" name={name} defaultChecked={value} /> {label}
      </label>
    );
  }
  const range = { ...(least !== undefined && { min: least }), ...(most !== undefined && { max: most }) };
  return (
    <label>
      {label} <input type="number" name={name} step="1" defaultValue={value} required {...range} />
    </label>
  );
}

function faultOf(form: FormData, fields: readonly FaultField[]): NewFault {
  const own = fields.map(({ name, value }) => {
    return [name, typeof value === "boolean" ? form.has(name) : Number(form.get(name))] as const;
  });
  return {
    operation: String(form.get("operation")),
    kind: String(form.get("kind")),
    times: Number(form.get("times")),
    ...Object.fromEntries(own),
  };
}
