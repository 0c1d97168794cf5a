/** The paths of the page, on the server that it came from. */
export const PATHS = {
  page: "/",
  script: "/page/page.js",
  style: "/page/page.css",
  /** The event stream of Messages. */
  stream: "/page/stream",
  /** `/page/runs/{runId}` is a RunDetail, `/page/runs/{runId}/{file}` a download, and a POST to `…/{action}` acts. */
  runs: "/page/runs",
  /** `/open/{code}` serves the page, whose script redeems the code by a POST of `{code}` to `redeem`. */
  open: "/open/",
  redeem: "/page/redeem",
  /** A POST of `{token}` logs in, and one to `logout` ends the session. */
  login: "/login",
  logout: "/page/logout",
  /** A POST gives what is needed to go to the authorization server, which leads back to `callback`. */
  issuer: "/login/issuer",
  /** Serves the page, whose script sends the query with which the person came back by a POST to the same path. */
  callback: "/callback",
  /** A POST has the person's rights looked at again, and gives the token with which the session goes on. */
  renew: "/page/renew",
  events: "/page/events",
  /** Tests for what has not arrived, as a file. */
  eventTests: "/page/events/tests",
  targetings: "/page/targetings",
  faults: "/page/faults",
  reset: "/page/reset",
} as const;

/** The header of every request for data, and of every POST, that holds the session's token. */
export const TOKEN_HEADER = "X-Page-Token";
