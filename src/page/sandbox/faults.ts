import * as z from "zod";
import { type Fault, type Faults, faultSchema } from "../../sandbox/faults.ts";
import { ROUTES } from "../../spec/routes.ts";
import type { FaultRow, FaultsMessage } from "../wire.ts";

/** The kinds of faults, each with what it needs beside the operation and the times. */
const KINDS = {
  status: { status: 500 },
  reset: {},
  timeout: {},
  late: { delayMs: 1000 },
  slow: { delayMs: 1000 },
  hold: {},
  busy: {},
  takeover: {},
  uncatched: {},
} as const satisfies Record<Fault["kind"], object>;

const OPERATIONS = ["write", "read", "any", ...Object.keys(ROUTES)];

/** What the sandbox is told to do wrong, and what it can be told. */
export function faultsMessage(faults: Faults): FaultsMessage {
  return { kind: "faults", faults: faults.list().map(faultRow), operations: OPERATIONS, kinds: Object.keys(KINDS) };
}

function faultRow({ id, fault, met, struck }: ReturnType<Faults["list"]>[number]): FaultRow {
  const { on } = fault;
  return {
    id,
    operation: typeof on === "string" ? on : on.join(", "),
    kind: kindOf(fault),
    times: timesOf(fault),
    met,
    struck,
  };
}

function kindOf(fault: Fault): string {
  if (fault.kind === "status") return `status ${fault.status}`;
  return "delayMs" in fault && fault.delayMs !== undefined ? `${fault.kind}, ${fault.delayMs} ms` : fault.kind;
}

function timesOf({ nth, times, probability }: Fault): string {
  const chance = probability === undefined ? "" : `, each with a chance of ${probability}`;
  if (nth !== undefined) return `${times ?? 1} from request ${nth} on${chance}`;
  return `${times ?? (probability === undefined ? 1 : "always")}${chance}`;
}

const newFault = z.strictObject({ operation: z.string(), kind: z.string(), times: z.int() });

/** Adds a fault as the page describes it; gives what is wrong with it, where it cannot be added. */
export function addFault(faults: Faults, data: unknown): string | undefined {
  const given = newFault.safeParse(data);
  if (!given.success) return z.prettifyError(given.error);
  const { operation: on, kind, times } = given.data;
  const fault = faultSchema.safeParse({
    on,
    kind,
    times,
    ...Object.entries(KINDS).find(([name]) => name === kind)?.[1],
  });
  if (!fault.success) return z.prettifyError(fault.error);
  faults.add([fault.data]);
  return undefined;
}
