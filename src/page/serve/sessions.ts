import { randomBytes } from "node:crypto";

/** A person's session with the page: the browser holds `id` in a cookie, the page sends `token` with each POST. */
export interface PageSession<Who> {
  readonly id: string;
  readonly token: string;
  readonly who: Who;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

/** The sessions of one process. */
export interface PageSessions<Who> {
  /** Opens a session; `cookie` is the value of the header `Set-Cookie` that goes with it. */
  open(who: Who): { readonly session: PageSession<Who>; readonly cookie: string };
  /** The session to which a request's cookie belongs, while it lasts. */
  of(request: Request): PageSession<Who> | undefined;
  /** Ends the sessions of which this is true. */
  end(which: (session: PageSession<Who>) => boolean): void;
}

const LAST_MS = 12 * 3_600_000;
/** Where a page is opened over and over, the oldest session goes first. */
const MOST = 1000;

/**
 * Keeps sessions in memory. `cookieName` holds the port or a random part, since cookies of all ports of a host are
 * shared; `secure` where the page is reached by https.
 */
export function pageSessions<Who>({
  cookieName,
  secure = false,
  now = Date.now,
}: {
  readonly cookieName: string;
  readonly secure?: boolean;
  readonly now?: () => number;
}): PageSessions<Who> {
  const sessions = new Map<string, PageSession<Who>>();
  return {
    open(who) {
      const session = { id: secret(), token: secret(), who, endsAt: now() + LAST_MS };
      sessions.set(session.id, session);
      const [oldest] = sessions.keys();
      if (sessions.size > MOST && oldest !== undefined) sessions.delete(oldest);
      const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${LAST_MS / 1000}`];
      return {
        session,
        cookie: [`${cookieName}=${session.id}`, ...attributes, ...(secure ? ["Secure"] : [])].join("; "),
      };
    },
    of(request) {
      const session = sessions.get(cookieOf(request, cookieName) ?? "");
      if (session === undefined || session.endsAt > now()) return session;
      sessions.delete(session.id);
      return undefined;
    },
    end(which) {
      for (const session of sessions.values()) if (which(session)) sessions.delete(session.id);
    },
  };
}

/** The value of a cookie of a request. */
function cookieOf(request: Request, name: string): string | undefined {
  const cookies = (request.headers.get("cookie") ?? "").split(";").map((cookie) => cookie.trim());
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}

function secret(): string {
  return randomBytes(32).toString("base64url");
}
