import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { CallerTexts } from "../../runs/backend/backend.ts";
import type { SeenToken } from "../../server/http/auth.ts";

/** The clients of one caller of which something is remembered: the ones seen last. */
const MOST_CLIENTS = 8;
/** For so long a token that was noted is not looked for again, in milliseconds; and of how many callers. */
const FRESH_MS = 2000;
const MOST_CALLERS = 1000;

const seenTokens = z.array(
  z.object({ name: z.string(), client: z.string(), owner: z.string(), writes: z.boolean(), until: z.number() }),
);

/** What callers may do whose rights only the tokens of the issuer tell. */
export interface TokenRights {
  /** Remembers what a valid token says, for the runs of its caller. */
  note(seen: SeenToken): Promise<void>;
  /**
   * The last token of each client of a caller, as far as they have not expired, or else the very last one; undefined
   * where none was seen.
   */
  of(name: string): Promise<readonly SeenToken[] | undefined>;
}

/** Remembers the tokens of callers in `texts`, the last one of each client; `problem` gets what cannot be stored. */
export function tokenRights(
  texts: CallerTexts,
  { now, problem }: { readonly now: () => number; readonly problem: (error: unknown) => void },
): TokenRights {
  /** By caller: the token that was noted last here, and when. */
  const noted = new Map<string, { readonly seen: SeenToken; readonly at: number }>();
  /** What could not be stored yet. */
  const unstored = new Map<string, SeenToken>();
  const stored = async (name: string): Promise<readonly SeenToken[]> =>
    seenTokens.safeParse(parseJson((await texts.read(name)) ?? "[]")).data ?? [];
  return {
    async note(seen) {
      const { name } = seen;
      const last = noted.get(name);
      if (last !== undefined && isSame(last.seen, seen) && Math.abs(now() - last.at) < FRESH_MS) return;
      noted.delete(name);
      for (const [oldest] of noted) if (noted.size >= MOST_CALLERS) noted.delete(oldest);
      noted.set(name, { seen, at: now() });
      try {
        const before = await stored(name);
        if (!before.some((one) => isSame(one, seen))) await texts.keep(name, JSON.stringify(withLast(before, seen)));
        unstored.delete(name);
      } catch (thrown) {
        unstored.set(name, seen);
        problem(thrown);
      }
    },
    async of(name) {
      const before = await stored(name);
      const late = unstored.get(name);
      const all = late === undefined ? before : withLast(before, late);
      const last = all.at(-1);
      if (last === undefined) return undefined;
      const valid = all.filter(({ until }) => until > now());
      return valid.length > 0 ? valid : [last];
    },
  };
}

/** The last token of each client, the one seen last at the end. */
function withLast(tokens: readonly SeenToken[], seen: SeenToken): readonly SeenToken[] {
  return [...tokens.filter(({ client }) => client !== seen.client), seen].slice(-MOST_CLIENTS);
}

function isSame(one: SeenToken, other: SeenToken): boolean {
  const { client, owner, writes, until } = other;
  return one.client === client && one.owner === owner && one.writes === writes && one.until === until;
}
