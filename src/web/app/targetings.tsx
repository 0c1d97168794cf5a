import { type Signal, signal, useSignal } from "@preact/signals";
import type { OptionDetail, OptionList, OptionRow, TargetingRow } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { Ago, Bar, Copy, Empty, now, Search, Steps, Table, Text, visible } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { SEARCH_AFTER_MS, useRead } from "./requests.ts";
import { clockAhead, sandbox, set, targetings } from "./state.ts";

/** The maximum number of rows in one list. At most three nested lists are open, which keeps the view below 500 rows. */
const BRANCH_ROWS = 150;
const SEARCH_ROWS = 450;
/** How long an object stays marked after a change, in milliseconds. */
const MARKED_MS = 120_000;

interface Chosen {
  readonly targeting: string;
  readonly option?: OptionRow | undefined;
}

const chosen = signal<Chosen | undefined>(undefined);
const search = signal("");

/** Shows the tree of the sandbox with sizes, a search, and a pane about the chosen object. */
export function Targetings() {
  const all = targetings.value.targetings;
  const sum = (of: "options" | "groups" | "contexts"): number => all.reduce((total, one) => total + one[of], 0);
  if (all.length === 0 && sandbox.value !== undefined) {
    return (
      <Empty title="No targetings yet">
        Ask your agent to create one, or start the sandbox with sample data:{" "}
        <code>targeting-mcp sandbox --seed sample</code>
      </Empty>
    );
  }
  return (
    <>
      <div class="row">
        <h1>Targetings</h1>
        <span class="quiet">
          {counted(all.length, "targeting")} · {sizeWords(sum("options"), sum("groups"))} ·{" "}
          {counted(sum("contexts"), "Context ID")}
        </span>
        <span class="push" />
        <Search
          label="Search"
          value={search.value}
          change={(text) => {
            search.value = text;
            chosen.value = undefined;
          }}
        />
      </div>
      <div class="grid event-panes">
        <div>{search.value === "" ? <Tree /> : <Found search={search.value} />}</div>
        <Pane />
      </div>
    </>
  );
}

/** Describes the size of a targeting: `3 groups and 8 options`. `all` includes the groups. */
function sizeWords(all: number, groups: number): string {
  return (groups === 0 ? "" : `${counted(groups, "group")} and `) + counted(all - groups, "option");
}

/** Shows all targetings, in pages. One of them can be open. */
function Tree() {
  const open = useSignal<string | undefined>(undefined);
  const from = useSignal(0);
  const all = targetings.value.targetings;
  const most = Math.max(1, ...all.map(({ contexts }) => contexts));
  return (
    <div class="card">
      <p class="small quiet">Bars compare Context IDs within a list.</p>
      <ul class="tree">
        {all.slice(from.value, from.value + BRANCH_ROWS).map((targeting) => (
          <Branch
            key={targeting._id}
            name={targeting.name}
            says={sizeWords(targeting.options, targeting.groups)}
            contexts={targeting.contexts}
            most={most}
            times={targeting}
            open={open}
            targeting={targeting._id}
          />
        ))}
      </ul>
      <Steps from={from} total={all.length} rows={BRANCH_ROWS} of="targetings" />
    </div>
  );
}

/** Shows a targeting or group, with its contents if it is open. */
function Branch(branch: {
  readonly name: string;
  readonly says: string;
  /**
   * `contexts`: how many Context IDs the targeting or group has, including everything in it. `most`: the largest such
   * number in the list.
   */
  readonly contexts: number;
  readonly most: number;
  readonly times: Times;
  readonly open: Signal<string | undefined>;
  readonly targeting: string;
  readonly option?: OptionRow | undefined;
}) {
  const { name, says, contexts, most, times, open, targeting, option } = branch;
  const id = option?._id ?? targeting;
  const isOpen = open.value === id;
  const toggle = () => {
    open.value = isOpen ? undefined : id;
    chosen.value = { targeting, option };
  };
  return (
    <li>
      <div class={`tree-row ${isChosen({ targeting, option }) ? "chosen" : ""}`}>
        <button type="button" class="branch" aria-expanded={isOpen} onClick={toggle}>
          <Text of={name} most={120} /> <small>({says})</small>
        </button>
        <Changed at={times} />
        <Size of={contexts} most={most} label={name} />
      </div>
      {isOpen && <Options targeting={targeting} group={option} />}
    </li>
  );
}

/** Shows a number of Context IDs, and a bar that compares it with the largest of the list. */
function Size({ of, most, label }: { readonly of: number; readonly most: number; readonly label: string }) {
  return (
    <span class="size">
      <small>{counted(of, "Context ID")}</small>
      <Bar
        shares={[{ tone: "idle", count: of, of: of === 1 ? "Context ID" : "Context IDs" }]}
        total={most}
        label={visible(label.slice(0, 120))}
      />
    </span>
  );
}

function isChosen({ targeting, option }: Chosen): boolean {
  const current = chosen.value;
  return current?.targeting === targeting && current.option?._id === option?._id;
}

type Times = Pick<TargetingRow, "createdAt" | "changedAt">;

/** Marks a recently changed object. One created today is marked as created: an option only if never changed since. */
function Changed({ at: { createdAt = 0, changedAt = 0 } }: { readonly at: Times }) {
  const here = (at: number): number => Math.min(at - clockAhead.value, now.value);
  if (now.value - here(changedAt) > MARKED_MS) return null;
  const isNew = new Date(here(createdAt)).toDateString() === new Date(now.value).toDateString();
  return (
    <span class={`pill ${isNew ? "created" : "changed"}`}>
      {isNew ? "created" : "changed"} <Ago at={here(isNew ? createdAt : changedAt)} />
    </span>
  );
}

/** Shows the options and groups directly below a targeting or group. One group can be open. */
function Options({ targeting, group }: { readonly targeting: string; readonly group: OptionRow | undefined }) {
  const open = useSignal<string | undefined>(undefined);
  const from = useSignal(0);
  const list = useData<OptionList>(`${PATHS.targetings}/${targeting}`, {
    from: String(from.value),
    limit: String(BRANCH_ROWS),
    ...(group !== undefined && { parent: group._id }),
  });
  if (list === undefined) return null;
  const { total } = list;
  const options = group === undefined ? list.options : list.options.map((one) => ({ ...one, group: group.name }));
  const sizeOf = ({ contexts, contextsInside = 0 }: OptionRow): number => contexts + contextsInside;
  const most = Math.max(1, ...options.map(sizeOf));
  return (
    <>
      <ul>
        {options.map((option) =>
          option.isGroup ? (
            <Branch
              key={option._id}
              name={option.name}
              says={counted(option.children, "sub-option")}
              contexts={sizeOf(option)}
              most={most}
              times={option}
              open={open}
              targeting={targeting}
              option={option}
            />
          ) : (
            <Leaf key={option._id} targeting={targeting} option={option} most={most} />
          ),
        )}
      </ul>
      {total === 0 && <p class="leaf quiet">Empty</p>}
      <Steps from={from} total={total} rows={BRANCH_ROWS} of="options" />
    </>
  );
}

function Leaf(leaf: { readonly targeting: string; readonly option: OptionRow; readonly most: number }) {
  const { targeting, option, most } = leaf;
  const choose = () => set(chosen, { targeting, option });
  const is = isChosen({ targeting, option });
  return (
    <li>
      <div class={`tree-row ${is ? "chosen" : ""}`}>
        <button type="button" class="leaf" aria-pressed={is} onClick={choose}>
          <Text of={option.name} most={120} />
        </button>
        <Changed at={option} />
        <Size of={option.contexts} most={most} label={option.name} />
      </div>
    </li>
  );
}

/** Reads data about targetings, and again whenever a targeting changes. Undefined until the first answer. */
function useData<Data>(path: string, query: Record<string, string>, afterMs = 0): Data | undefined {
  const version = String(targetings.value.version);
  return useRead<Data>(`${path}?${new URLSearchParams({ ...query, version })}`, { afterMs }).value;
}

/** Shows the first options and groups with a matching name or Context ID, from all targetings. */
function Found({ search }: { readonly search: string }) {
  const list = useData<OptionList>(PATHS.targetings, { search, limit: String(SEARCH_ROWS) }, SEARCH_AFTER_MS);
  if (list === undefined) return null;
  const { options, total } = list;
  return (
    <div class="card flush">
      <Table caption="Found" heads={["Name", "Inside", "Context IDs", "Sub-options"]} className="stacks">
        {options.map((option) => (
          <tr key={option._id} class={isChosen({ targeting: option.targeting ?? "", option }) ? "chosen" : ""}>
            <th scope="row">
              <button
                type="button"
                class="plain"
                onClick={() => set(chosen, { targeting: option.targeting ?? "", option })}
              >
                <Marked text={option.name} search={search} />
              </button>
            </th>
            <td data-head="Inside">
              <Text of={option.group ?? ""} most={120} />
            </td>
            <td data-head="Context IDs">
              {number(option.contexts)}
              {/* A search finds only whole Context IDs, so the search text is the Context ID that was found. */}
              {!option.name.toLowerCase().includes(search.toLowerCase()) && (
                <>
                  {" with "}
                  <Marked text={search} search={search} />
                </>
              )}
            </td>
            <td data-head="Sub-options">{option.isGroup ? number(option.children) : ""}</td>
          </tr>
        ))}
      </Table>
      <p class="head quiet">
        {total > options.length && `${number(options.length)} of `}
        {counted(total, "option")} found
      </p>
    </div>
  );
}

/** The maximum length of a name in a list. */
const MAX_SHOWN = 120;

/** Shows a name with the search text marked. */
function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  const at = text.toLowerCase().indexOf(search.toLowerCase());
  const end = at + search.length;
  if (at < 0 || end > MAX_SHOWN) return <Text of={text} most={MAX_SHOWN} />;
  return (
    <bdi>
      {visible(text.slice(0, at))}
      <mark>{visible(text.slice(at, end))}</mark>
      {visible(text.slice(end, MAX_SHOWN))}
      {text.length > MAX_SHOWN && "…"}
    </bdi>
  );
}

/** Shows the chosen object, with IDs to copy. */
function Pane() {
  const current = chosen.value;
  const targeting = targetings.value.targetings.find(({ _id }) => _id === current?.targeting);
  if (current === undefined || targeting === undefined) {
    return (
      <section class="card event-pane tree-pane none" aria-label="Chosen">
        <p class="quiet">Choose a targeting, a group or an option to see its IDs.</p>
      </section>
    );
  }
  const { option } = current;
  return (
    <section class="card event-pane tree-pane" aria-label="Chosen">
      <div class="pane-head">
        <h2>
          <Text of={option?.name ?? targeting.name} most={300} />
        </h2>
        <button type="button" class="plain" onClick={() => set(chosen, undefined)}>
          Close
        </button>
      </div>
      {option === undefined ? (
        <TargetingFacts targeting={targeting} />
      ) : (
        <OptionFacts key={option._id} option={option} targeting={targeting} />
      )}
    </section>
  );
}

function Id({ label, id }: { readonly label: string; readonly id: string }) {
  return (
    <p class="row small">
      <span class="quiet">{label}</span> <code>{id}</code> <Copy of={id} />
    </p>
  );
}

function TargetingFacts({ targeting }: { readonly targeting: TargetingRow }) {
  const { _id, options, groups, contexts, project } = targeting;
  return (
    <>
      <p>
        {sizeWords(options, groups)}, {counted(contexts, "Context ID")}
      </p>
      <Id label="Targeting ID" id={_id} />
      <p class="small quiet">
        Project <Text of={project} most={120} />
      </p>
      <Changed at={targeting} />
    </>
  );
}

function OptionFacts({ option, targeting }: { readonly option: OptionRow; readonly targeting: TargetingRow }) {
  const detail = useData<OptionDetail>(`${PATHS.targetings}/${targeting._id}`, { option: option._id });
  return (
    <>
      <p class="quiet">
        {option.isGroup ? `Group with ${counted(option.children, "sub-option")}` : "Option"} in{" "}
        <Text of={option.group ?? targeting.name} most={200} />
      </p>
      <Id label="Option ID" id={option._id} />
      <Changed at={option} />
      {detail !== undefined && <ContextIds detail={detail} isGroup={option.isGroup} />}
    </>
  );
}

/** The maximum number of Context IDs that are displayed. The copy button copies all that the server returned. */
const SHOWN_IDS = 200;

function ContextIds({ detail, isGroup }: { readonly detail: OptionDetail; readonly isGroup: boolean }) {
  const { contextIds, total } = detail;
  if (total === 0) return <p>No Context IDs{isGroup && " of its own"}</p>;
  return (
    <>
      <div class="row">
        <h3>
          {counted(total, "Context ID")}
          {isGroup && " of its own"}
        </h3>
        <span class="push" />
        <Copy of={contextIds.join("\n")} name={total > contextIds.length ? "Copy the first 1,000" : "Copy all"} />
      </div>
      <p class="context-ids">
        {contextIds.slice(0, SHOWN_IDS).map((id) => (
          <code key={id} class="chip">
            {id === search.value ? <mark>{visible(id)}</mark> : <Text of={id} most={200} />}
          </code>
        ))}
        {total > SHOWN_IDS && <span class="quiet"> and {number(total - SHOWN_IDS)} more</span>}
      </p>
    </>
  );
}
