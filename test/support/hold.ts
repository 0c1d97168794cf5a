import * as z from "zod";

const added = z.object({ faults: z.array(z.object({ id: z.number() })) });

/**
 * Makes a sandbox hold requests of an operation, starting with the nth, at most `times` of them. The sandbox carries
 * them out when the returned function is called.
 */
export function hold(
  sandboxUrl: string,
  on: string,
  { nth = 1, times = 100_000 }: { readonly nth?: number; readonly times?: number } = {},
): Promise<() => Promise<void>> {
  return addFault(sandboxUrl, { kind: "hold", on, nth, times });
}

/** Adds a fault to a sandbox. Returns a function that removes it. */
export async function addFault(sandboxUrl: string, fault: object): Promise<() => Promise<void>> {
  const faults = `${sandboxUrl}/_sandbox/faults`;
  const answer = await fetch(faults, { method: "POST", body: JSON.stringify({ faults: [fault] }) });
  const { id } = added.parse(await answer.json()).faults.at(-1) ?? { id: 0 };
  return async () => {
    await fetch(`${faults}/${id}`, { method: "DELETE" });
  };
}
