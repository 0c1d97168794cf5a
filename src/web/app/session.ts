// The secret of the session. It lives in this tab of this very origin: no other port of the host can read it, as it could
// a cookie, and it stands in no address.

/** Where a tab keeps its session, and what a login at the authorization server began with. */
const SESSION = "session";
const LOGIN = "login";
const PLACE = "place";

/** What the server wrote into the page. */
export function written<Content>(name: "login" | "session", page: ParentNode = document): Content | undefined {
  const content = page.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content;
  return content === undefined ? undefined : JSON.parse(decodeURIComponent(content));
}

/** The token of the session; undefined where there is none. */
export function sessionToken(): string | undefined {
  return sessionStorage.getItem(SESSION) ?? undefined;
}

/** Keeps the token of a session from now on; undefined ends it. */
export function keepSession(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(SESSION);
  else sessionStorage.setItem(SESSION, token);
}

/** Keeps what a login began with, and the view that it began in, until the person is back in this tab. */
export function keepLogin(login: string): void {
  sessionStorage.setItem(LOGIN, login);
  sessionStorage.setItem(PLACE, location.hash);
}

/** The view in which the login of this tab began, once. */
export function takePlace(): string {
  const place = sessionStorage.getItem(PLACE) ?? "";
  sessionStorage.removeItem(PLACE);
  return place;
}

/** What the login of this tab began with, once. */
export function takeLogin(): string {
  const login = sessionStorage.getItem(LOGIN) ?? "";
  sessionStorage.removeItem(LOGIN);
  return login;
}
