import { createHmac, randomBytes } from "node:crypto";
import { isSame } from "./guard.ts";

/** A person's session with the page: the browser holds it in a cookie, the page sends `token` with each POST. */
interface PageSession {
  readonly token: string;
  /** Who it is, as it was opened. */
  readonly who: string;
}

/** The sessions of those who share a key. */
export interface PageSessions {
  /** Opens a session; gives the value of the header `Set-Cookie`. */
  open(who: string): string;
  /** The session of a request's cookie, while it lasts. */
  of(request: Request): PageSession | undefined;
}

const LAST_MS = 12 * 3_600_000;

/**
 * Keeps sessions in their cookies, sealed: with a key of this process they end with it, and with one that others share
 * they last in each of them. `cookieName` holds the port or a random part, since cookies of all ports of a host are shared;
 * `secure` where the page is reached by https.
 */
export function pageSessions({
  cookieName,
  key = randomBytes(32),
  secure = false,
  now = Date.now,
}: {
  readonly cookieName: string;
  readonly key?: Uint8Array;
  readonly secure?: boolean;
  readonly now?: () => number;
}): PageSessions {
  const seal = (text: string): string => createHmac("sha256", key).update(text).digest("base64url");
  return {
    open(who) {
      const held = [now() + LAST_MS, Buffer.from(who).toString("base64url"), randomBytes(16).toString("base64url")];
      const text = held.join(".");
      const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${LAST_MS / 1000}`];
      return [`${cookieName}=${text}.${seal(text)}`, ...attributes, ...(secure ? ["Secure"] : [])].join("; ");
    },
    of(request) {
      const [text = "", sealed = ""] = (cookieOf(request, cookieName) ?? "").split(/\.(?=[^.]*$)/);
      if (!isSame(sealed, seal(text))) return undefined;
      const [endsAt, who = ""] = text.split(".");
      if (Number(endsAt) <= now()) return undefined;
      return { token: seal(`token ${text}`), who: Buffer.from(who, "base64url").toString() };
    },
  };
}

/** The value of a cookie of a request. */
export function cookieOf(request: Request, name: string): string | undefined {
  const cookies = (request.headers.get("cookie") ?? "").split(";").map((cookie) => cookie.trim());
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}
