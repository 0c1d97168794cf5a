import * as z from "zod";

/** Who agreed, as it is read back. */
export const asked = z.enum([
  "agreed_in_client",
  "agreed_in_view",
  "agreed_on_page",
  "agreed_by_token",
  "agreed_in_terminal",
  "not_needed",
]);

/** What a run waits for, as it is read back. */
export const waits = z.object({
  digest: z.string(),
  effect: z.string(),
  parts: z.array(
    z.object({
      title: z.string(),
      count: z.number(),
      objects: z.array(z.object({ name: z.string(), _id: z.string().exactOptional(), says: z.string() })),
    }),
  ),
  until: z.number(),
  stale: z.string().exactOptional(),
  elsewhere: z.enum(["client", "token"]).exactOptional(),
});

/** A decision about a run, as it is read back. */
export const decided = z.object({
  who: z.string(),
  where: z.enum(["client", "view", "page", "token", "terminal"]),
  at: z.number(),
});
