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
  /** A POST of `{token}` logs in; `callback` serves the page, which goes on to `/`. */
  login: "/login",
  issuer: "/login/issuer",
  callback: "/callback",
  events: "/page/events",
  targetings: "/page/targetings",
  faults: "/page/faults",
  reset: "/page/reset",
} as const;

/** The header of every POST that holds the session's token. */
export const TOKEN_HEADER = "X-Page-Token";
