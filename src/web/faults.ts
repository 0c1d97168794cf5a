import * as z from "zod";
import { type Fault, type Faults, faultSchema } from "../sandbox/faults.ts";
import { LIMITS } from "../spec/limits.ts";
import { ROUTES } from "../spec/routes.ts";
import type { FaultField, FaultKind, FaultRow, FaultsMessage } from "./sandbox-wire.ts";

/** The maximum delay, and the maximum time until a fault is removed, in milliseconds. */
const MAX_MS = 600_000;

const applied: FaultField = { name: "applied", label: "After the request was carried out", value: false };
const delay: FaultField = { name: "delayMs", label: "Delay in ms", value: 1000, least: 0, most: MAX_MS };
const retryAfter: FaultField = {
  ...{ name: "retryAfterMs", label: "Retry after, in ms", value: 100 },
  ...{ least: 0, most: LIMITS.retryAfterMs.value },
};

/** The kinds of faults that the sandbox can simulate, each with its own fields (docs/reference/sandbox.md). */
const KINDS = {
  status: {
    says: "answered with an error status",
    fields: [{ name: "status", label: "Status", value: 500, least: 300, most: 599 }, applied],
  },
  reset: { says: "the connection breaks before the answer", fields: [applied] },
  timeout: { says: "never answered", fields: [applied] },
  late: {
    says: "the connection breaks at once, and the write is carried out later",
    fields: [delay, { name: "holdsLock", label: "Hold the write lock until then", value: true }],
  },
  slow: { says: "answered late", fields: [delay] },
  hold: { says: "waits until this fault is removed", fields: [] },
  busy: { says: "refused, since another writer holds the lock", fields: [retryAfter] },
  takeover: {
    says: "another writer takes the lock in the middle of the request",
    fields: [{ name: "from", label: "From item", value: 0, least: 0 }, retryAfter],
  },
  uncatched: {
    says: "items fail with UNCATCHED",
    fields: [{ name: "addApplied", label: "Context IDs to add were added", value: false }],
  },
} as const satisfies Record<Fault["kind"], Omit<FaultKind, "name">>;

const OPERATIONS = ["write", "read", "any", ...Object.keys(ROUTES)];

export function faultsMessage(faults: Faults): FaultsMessage {
  const kinds = Object.entries(KINDS).map(([name, { says, fields }]) => ({ name, says, fields }));
  return { kind: "faults", faults: faults.list().map(faultRow), operations: OPERATIONS, kinds };
}

function faultRow({ id, fault, met, struck }: ReturnType<Faults["list"]>[number]): FaultRow {
  const { on } = fault;
  return {
    ...{ id, operation: typeof on === "string" ? on : on.join(", "), kind: kindOf(fault), times: timesOf(fault) },
    ...{ says: whatHappens(fault), met, struck },
  };
}

function kindOf(fault: Fault): string {
  if (fault.kind === "status") return `status ${fault.status}`;
  return "delayMs" in fault && fault.delayMs !== undefined ? `${fault.kind}, ${fault.delayMs} ms` : fault.kind;
}

function whatHappens(fault: Fault): string {
  const afterwards = "applied" in fault && fault.applied;
  switch (fault.kind) {
    case "status":
      return `answered with status ${fault.status}${afterwards ? " after the request was carried out" : ""}`;
    case "reset":
      return afterwards
        ? "the answer is lost after the request was carried out"
        : "the connection breaks before anything is done";
    case "timeout":
      return afterwards ? "carried out, and never answered" : "never answered";
    case "slow":
      return `answered ${fault.delayMs} ms late`;
    case "busy":
      return "refused, since another writer holds the lock";
    default:
      return KINDS[fault.kind].says;
  }
}

function timesOf({ nth, times, probability }: Fault): string {
  const chance = probability === undefined ? "" : `, each with a chance of ${Math.round(1000 * probability) / 10} %`;
  if (nth !== undefined) return `${times ?? 1} from request ${nth} on${chance}`;
  return `${times ?? (probability === undefined ? 1 : "always")}${chance}`;
}

const newFault = z.looseObject({
  operation: z.string(),
  kind: z.string(),
  forMs: z.int().min(1).max(MAX_MS).optional(),
});

/** Adds a fault from the page's form data. Returns an error text if the data is invalid. */
export function addFault(faults: Faults, data: unknown): string | undefined {
  const described = newFault.safeParse(data);
  if (!described.success) return z.prettifyError(described.error);
  const { operation: on, kind, forMs, ...its } = described.data;
  const [, known] = Object.entries(KINDS).find(([name]) => name === kind) ?? [];
  const usual = known?.fields.map(({ name, value }) => [name, value] as const) ?? [];
  const fault = faultSchema.safeParse({ on, kind, ...Object.fromEntries(usual), ...its });
  if (!fault.success) return z.prettifyError(fault.error);
  faults.add([fault.data]);
  const id = faults.list().at(-1)?.id;
  if (forMs !== undefined && id !== undefined) setTimeout(() => faults.remove(id), forMs).unref();
  return undefined;
}
