import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import * as z from "zod";
import type { EndedSessions } from "../runs/backend.ts";
import { TOKEN_HEADER } from "./wire.ts";

/** A person's session with the page. Its token is kept by the page alone, which sends it with each request. */
export interface PageSession<Person> {
  /** Which session it is, as long as it is renewed. */
  readonly id: string;
  /** Who it is, as it was opened. */
  readonly person: Person;
  readonly endsAt: number;
}

/** The sessions of those who share a key. */
interface PageSessions<Person> {
  /** Opens a session, for 12 hours or a shorter time; gives its token. */
  open(person: Person, lastsMs?: number): string;
  /** Gives the token with which a session goes on until its end, with what is known of its person now. */
  renew(session: PageSession<Person>, person: Person): string;
  /** The session of a request's token, while it lasts. Throws where it cannot be read which sessions were ended. */
  of(request: Request): Promise<PageSession<Person> | undefined>;
  /** Ends a session: none of its tokens is accepted any more, in other processes after two seconds at the latest. */
  end(session: PageSession<Person>): Promise<void>;
}

const LAST_MS = 12 * 3_600_000;
/** For so long after a look a session counts as not ended by another process, in milliseconds. */
const FRESH_MS = 2000;

/**
 * Keeps sessions in their tokens, sealed: with a key of this process they end with it, and with one that others share
 * they last in each of them. `person` is the form of what is sealed; `shared` are the sessions that any of these
 * processes has ended.
 */
export function pageSessions<Person>({
  person: form,
  key = randomBytes(32),
  shared,
  now = Date.now,
}: {
  readonly person: z.ZodType<Person>;
  readonly key?: Uint8Array;
  readonly shared?: EndedSessions | undefined;
  readonly now?: () => number;
}): PageSessions<Person> {
  const content = z.object({ id: z.string(), person: form });
  const { seal, open } = sealFor({ key, purpose: "page session", content, mostMs: LAST_MS, now });
  /** The sessions that were ended before their time, with that time. */
  const ended = new Map<string, number>();
  /** When it was last read that another process has not ended a session. */
  const lookedAt = new Map<string, number>();
  const isEnded = async (id: string, endsAt: number): Promise<boolean> => {
    if (ended.has(id) || shared === undefined) return ended.has(id);
    const at = now();
    if (at - (lookedAt.get(id) ?? Number.NEGATIVE_INFINITY) < FRESH_MS) return false;
    if (await shared.has(id)) ended.set(id, endsAt);
    else lookedAt.set(id, at);
    return ended.has(id);
  };
  return {
    open: (person, lastsMs = LAST_MS) =>
      seal({ id: randomBytes(16).toString("base64url"), person }, now() + Math.min(lastsMs, LAST_MS)),
    renew: ({ id, endsAt }, person) => seal({ id, person }, endsAt),
    async of(request) {
      const opened = open(request.headers.get(TOKEN_HEADER) ?? "");
      if (opened === undefined || (await isEnded(opened.content.id, opened.endsAt))) return undefined;
      return { ...opened.content, endsAt: opened.endsAt };
    },
    async end({ id, endsAt }) {
      for (const [one, until] of ended) if (until <= now()) ended.delete(one);
      for (const [one, at] of lookedAt) if (at <= now() - FRESH_MS) lookedAt.delete(one);
      ended.set(id, endsAt);
      await shared?.add(id, endsAt);
    },
  };
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Makes and reads sealed texts of one kind: who does not have the key can neither read, make nor change one. */
interface Seal<Content> {
  /** Seals content until a time, in milliseconds since 1970. */
  seal(content: Content, endsAt: number): string;
  /** The content of a sealed text; undefined where it is none of this kind and key, or its time is over. */
  open(text: string): { readonly content: Content; readonly endsAt: number } | undefined;
}

/** What texts are sealed with: a key that purposes share, and the purpose, which has a key of its own made of it. */
interface SealOptions<Content> {
  readonly key: Uint8Array;
  readonly purpose: string;
  readonly content: z.ZodType<Content>;
  /** How long one counts at most, in milliseconds: what ends later was sealed while the clock was ahead. */
  readonly mostMs: number;
  readonly now: () => number;
}

/** Seals texts of one purpose by authenticated encryption (AES-GCM). */
export function sealFor<Content>({ key, purpose, content, mostMs, now }: SealOptions<Content>): Seal<Content> {
  const own = new Uint8Array(hkdfSync("sha256", key, "", purpose, KEY_BYTES));
  // A number of zod is finite: an end that is none would never be over.
  const sealed = z.object({ endsAt: z.number(), content });
  return {
    seal(given, endsAt) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, own, nonce, { authTagLength: TAG_BYTES });
      const parts = [cipher.update(JSON.stringify({ endsAt, content: given }), "utf8"), cipher.final()];
      return Buffer.concat([nonce, ...parts, cipher.getAuthTag()]).toString("base64url");
    },
    open(text) {
      const bytes = Buffer.from(text, "base64url");
      // Of the texts that mean these bytes only the one that was made is taken.
      const decrypted = bytes.toString("base64url") === text ? decrypt(bytes, own) : undefined;
      if (decrypted === undefined) return undefined;
      const { data } = sealed.safeParse(JSON.parse(decrypted));
      const leftMs = (data?.endsAt ?? 0) - now();
      return leftMs > 0 && leftMs <= mostMs ? data : undefined;
    },
  };
}

/** The text in these bytes; undefined where they were not made with this key. */
function decrypt(bytes: Buffer, key: Uint8Array): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]).toString("utf8");
  } catch {
    // The tag does not fit: Node says so by an error without a class of its own.
    return undefined;
  }
}
