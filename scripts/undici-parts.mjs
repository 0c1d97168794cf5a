// Stands in the bundle for the whole of undici, of which a client of two APIs needs little: the rest (fetch, web
// sockets, caches, mocks) would be loaded and run at the first request.
export { default as EnvHttpProxyAgent } from "undici/lib/dispatcher/env-http-proxy-agent.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
