import * as z from "zod";

/** A page of the results of a run. */
export const page = z.looseObject({
  cursor: z.string().optional(),
  results: z.array(
    z.looseObject({ outcome: z.string(), _id: z.string().optional(), name: z.string().optional(), index: z.number() }),
  ),
});
export type Result = z.infer<typeof page>["results"][number];
const options = z.object({
  projects: z.array(z.object({ options: z.array(z.looseObject({ _id: z.string(), name: z.string() })) })),
});
const events = z.object({ events: z.array(z.looseObject({ uid: z.string().nullable() })), total: z.number() });

/** Returns the rows of a report that disagree with the options in the service, each as `name is … and there as …`. */
export async function wrongOptions(results: readonly Result[], sandbox: string): Promise<readonly string[]> {
  const there = options.parse(await get(sandbox, "/_sandbox/state")).projects.flatMap((project) => project.options);
  const byName = new Map<string, string[]>();
  for (const { name, _id } of there) byName.set(name, [...(byName.get(name) ?? []), _id]);
  return results.flatMap(({ name = "", outcome, _id }) => {
    const ids = byName.get(name) ?? [];
    const fits =
      ids.length <= 1 && (outcome === "succeeded" ? ids[0] === _id && _id !== undefined : outcome === "unknown");
    return fits ? [] : [`${name} is ${outcome} (${_id}) and there as ${ids.join() || "nothing"}`];
  });
}

/**
 * Returns the rows of a report that disagree with the events in the service. Each recorded event must have arrived
 * exactly once.
 */
export async function wrongEvents(results: readonly Result[], sandbox: string): Promise<readonly string[]> {
  const times = new Map<string, number>();
  const { events: all, total } = events.parse(await get(sandbox, "/_sandbox/events?limit=10000"));
  for (const { uid } of all) times.set(uid ?? "", (times.get(uid ?? "") ?? 0) + 1);
  const wrong = total > all.length ? [`${total - all.length} events could not be looked at`] : [];
  return results
    .flatMap(({ index, outcome }) => {
      const count = times.get(`user-${index}`) ?? 0;
      const fits = outcome === "succeeded" ? count === 1 : outcome === "unknown" && count <= 1;
      return fits ? [] : [`event ${index} is ${outcome} and arrived ${count} times`];
    })
    .concat(wrong);
}

async function get(sandbox: string, path: string): Promise<unknown> {
  return (await fetch(`${sandbox}${path}`)).json();
}
