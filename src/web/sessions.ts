import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import * as z from "zod";
import type { EndedSessions } from "../runs/backend.ts";
import { TOKEN_HEADER } from "./wire.ts";

/**
 * A person's login to the web page. The page stores the token of the session and sends it with each request. The server
 * stores nothing about open sessions.
 */
export interface PageSession<Person> {
  /** The ID of the session. It stays the same when the session is renewed. */
  readonly id: string;
  readonly person: Person;
  readonly endsAt: number;
}

interface PageSessions<Person> {
  /** Opens a session for 12 hours, or for `lastsMs` if that is shorter. Returns its token. */
  open(person: Person, lastsMs?: number): string;
  /** Returns a new token for a session, with the same end and with current data about the person. */
  renew(session: PageSession<Person>, person: Person): string;
  /**
   * Returns the session of the token in a request. Undefined if the token is invalid or has expired, or if the session
   * was ended. Throws if the store of ended sessions cannot be read.
   */
  of(request: Request): Promise<PageSession<Person> | undefined>;
  /**
   * Ends a session. This process refuses its tokens at once, others with the same store within two seconds. If the end
   * cannot be stored, throws, and the session stays open, so that its person can end it again.
   */
  end(session: PageSession<Person>): Promise<void>;
}

const LAST_MS = 12 * 3_600_000;
/** For this many milliseconds after a check, a session counts as open, although another process may have ended it. */
const FRESH_MS = 2000;

/**
 * Keeps the data of each session in its encrypted token. Without `key`, a new key is used, so all sessions end with the
 * process. With a key that several processes share, each accepts the sessions of the others; ended sessions are stored
 * in `shared`. `person` is the schema of the data about the person.
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
  /** The IDs of ended sessions. No ID is ever removed: if the clock is set back, its tokens would be valid again. */
  const ended = new Set<string>();
  /** When `shared` last said that a session has not ended, by session ID. */
  const lookedAt = new Map<string, number>();
  const isEnded = async (id: string): Promise<boolean> => {
    if (ended.has(id) || shared === undefined) return ended.has(id);
    const at = now();
    if (Math.abs(at - (lookedAt.get(id) ?? Number.NEGATIVE_INFINITY)) < FRESH_MS) return false;
    if (await shared.has(id)) ended.add(id);
    else lookedAt.set(id, at);
    return ended.has(id);
  };
  return {
    open: (person, lastsMs = LAST_MS) =>
      seal({ id: randomBytes(16).toString("base64url"), person }, now() + Math.min(lastsMs, LAST_MS)),
    renew: ({ id, endsAt }, person) => seal({ id, person }, endsAt),
    async of(request) {
      const opened = open(request.headers.get(TOKEN_HEADER) ?? "");
      if (opened === undefined || (await isEnded(opened.content.id))) return undefined;
      return { ...opened.content, endsAt: opened.endsAt };
    },
    async end({ id, endsAt }) {
      for (const [one, at] of lookedAt) if (Math.abs(now() - at) >= FRESH_MS) lookedAt.delete(one);
      await shared?.add(id, endsAt);
      ended.add(id);
    },
  };
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts content for one purpose and decrypts it. Without the key, nobody can read, create or change such a text. */
interface Seal<Content> {
  /** Encrypts content that is valid until `endsAt`, in milliseconds since 1970. */
  seal(content: Content, endsAt: number): string;
  /** Decrypts a text. Undefined if it was not made with the key for this purpose, was changed, or has expired. */
  open(text: string): { readonly content: Content; readonly endsAt: number } | undefined;
}

interface SealOptions<Content> {
  readonly key: Uint8Array;
  readonly purpose: string;
  readonly content: z.ZodType<Content>;
  /** The maximum validity in milliseconds. Longer validity is refused: the clock was ahead when the text was made. */
  readonly mostMs: number;
  readonly now: () => number;
}

/** Encrypts texts for one purpose with authenticated encryption (AES-GCM). Each purpose has its own key. */
export function sealFor<Content>({ key, purpose, content, mostMs, now }: SealOptions<Content>): Seal<Content> {
  const own = new Uint8Array(hkdfSync("sha256", key, "", purpose, KEY_BYTES));
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
      // Several base64url texts decode to the same bytes. Only the canonical one is accepted.
      const decrypted = bytes.toString("base64url") === text ? decrypt(bytes, own) : undefined;
      if (decrypted === undefined) return undefined;
      const { data } = sealed.safeParse(JSON.parse(decrypted));
      const leftMs = (data?.endsAt ?? 0) - now();
      return leftMs > 0 && leftMs <= mostMs ? data : undefined;
    },
  };
}

/** Returns the decrypted text. Undefined if the bytes were not made with this key. */
function decrypt(bytes: Buffer, key: Uint8Array): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]).toString("utf8");
  } catch {
    // If decrypting fails, the key is another one or the text was changed. Node has no error class for this.
    return undefined;
  }
}
