import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import * as z from "zod";

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
