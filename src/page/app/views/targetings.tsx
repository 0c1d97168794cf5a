import { type ReadonlySignal, type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { TargetedInputEvent } from "preact";
import { PATHS } from "../../paths.ts";
import type { OptionList, OptionRow, TargetingRow } from "../../wire.ts";
import { number } from "../announce.ts";
import { read } from "../requests.ts";
import { outcome, targetings } from "../state.ts";
import { Steps, Table, Text } from "./parts.tsx";

/** Rows of a branch; three of them can be open below each other, and no more than 500 rows are shown. */
const BRANCH_ROWS = 150;
const SEARCH_ROWS = 450;
const SEARCH_AFTER_MS = 250;

/** The tree of the sandbox with its counts, and a search over all of it. */
export function Targetings() {
  const search = useSignal("");
  const wanted = useLater(search, SEARCH_AFTER_MS);
  const type = (event: TargetedInputEvent<HTMLInputElement>) => {
    search.value = event.currentTarget.value;
  };
  return (
    <>
      <h1>Targetings</h1>
      <div class="bar">
        <label>
          Search <input type="search" value={search} onInput={type} />
        </label>
      </div>
      {wanted.value === "" ? <Tree /> : <Found key={wanted.value} search={wanted.value} />}
    </>
  );
}

/** A text some time after it was last changed. */
function useLater(text: ReadonlySignal<string>, ms: number): ReadonlySignal<string> {
  const later = useSignal(text.peek());
  useSignalEffect(() => {
    const now = text.value;
    const timer = setTimeout(() => {
      later.value = now;
    }, ms);
    return () => clearTimeout(timer);
  });
  return later;
}

/** All targetings, of which one at a time is open. */
function Tree() {
  const open = useSignal<string | undefined>(undefined);
  const from = useSignal(0);
  const all = targetings.value.targetings;
  if (all.length === 0) return <p>There are no targetings.</p>;
  return (
    <>
      <ul class="tree">
        {all.slice(from.value, from.value + BRANCH_ROWS).map((targeting) => (
          <Branch
            key={targeting._id}
            name={targeting.name}
            says={countsOf(targeting)}
            open={open}
            targeting={targeting._id}
          />
        ))}
      </ul>
      <Steps from={from} total={all.length} rows={BRANCH_ROWS} of="targetings" />
    </>
  );
}

function countsOf({ options, project }: TargetingRow): string {
  return `${plural(options, "option")}, project ${project}`;
}

/** A targeting or a group, with what it holds where it is the open one of its list. */
function Branch(branch: {
  readonly name: string;
  readonly says: string;
  readonly open: Signal<string | undefined>;
  readonly targeting: string;
  readonly group?: string | undefined;
}) {
  const { name, says, open, targeting, group } = branch;
  const id = group ?? targeting;
  const isOpen = open.value === id;
  const toggle = () => {
    open.value = isOpen ? undefined : id;
  };
  return (
    <li>
      <button type="button" class="branch" aria-expanded={isOpen} onClick={toggle}>
        <Text of={name} /> <small>{says}</small>
      </button>
      {isOpen && <Options targeting={targeting} group={group} />}
    </li>
  );
}

/** What is directly inside a targeting or a group, of which one group at a time is open. */
function Options({ targeting, group }: { readonly targeting: string; readonly group: string | undefined }) {
  const open = useSignal<string | undefined>(undefined);
  const from = useSignal(0);
  const list = useList(`${PATHS.targetings}/${targeting}`, () => ({
    from: String(from.value),
    limit: String(BRANCH_ROWS),
    ...(group !== undefined && { parent: group }),
  }));
  if (list === undefined) return null;
  const { options, total } = list;
  return (
    <>
      <ul>
        {options.map((option) =>
          option.isGroup ? (
            <Branch
              key={option._id}
              name={option.name}
              says={insideOf(option)}
              open={open}
              targeting={targeting}
              group={option._id}
            />
          ) : (
            <li key={option._id} class="leaf">
              <Text of={option.name} /> <small>{plural(option.contexts, "Context ID")}</small>
            </li>
          ),
        )}
      </ul>
      <Steps from={from} total={total} rows={BRANCH_ROWS} of="options" />
    </>
  );
}

function insideOf({ children, contexts }: OptionRow): string {
  return `${plural(children, "sub-option")}, ${plural(contexts, "Context ID")} of its own`;
}

/** A list of options, which is read again as its query or any targeting changes. */
function useList(path: string, query: () => Record<string, string>): OptionList | undefined {
  const list = useSignal<OptionList | undefined>(undefined);
  useSignalEffect(() => {
    const version = String(targetings.value.version);
    load(`${path}?${new URLSearchParams({ ...query(), version })}`, list);
  });
  return list.value;
}

/** Reads a list; a late answer of an earlier question never takes the place of a newer one. */
async function load(path: string, into: { value: OptionList | undefined }): Promise<void> {
  latest.set(into, path);
  const answer = await read<OptionList>(path);
  if (latest.get(into) !== path) return;
  if ("message" in answer) outcome.value = answer.message;
  else into.value = answer.data;
}

const latest = new WeakMap<object, string>();

/** The options and groups of all targetings whose name or Context ID fits. */
function Found({ search }: { readonly search: string }) {
  const list = useList(PATHS.targetings, () => ({ search, limit: String(SEARCH_ROWS) }));
  if (list === undefined) return null;
  const { options, total } = list;
  return (
    <>
      <Table caption="Found" heads={["Name", "Inside", "Context IDs", "Sub-options"]}>
        {options.map(({ _id, name, group, contexts, children, isGroup }) => (
          <tr key={_id}>
            <th scope="row">
              <Text of={name} />
            </th>
            <td>
              <Text of={group ?? ""} />
            </td>
            <td>{number(contexts)}</td>
            <td>{isGroup ? number(children) : ""}</td>
          </tr>
        ))}
      </Table>
      <p>
        {number(options.length)} of {number(total)} that fit
      </p>
    </>
  );
}

function plural(count: number, one: string): string {
  return `${number(count)} ${one}${count === 1 ? "" : "s"}`;
}
