// Replaces undici in the bundle by the few parts that a client of two APIs needs. The others (fetch, web sockets,
// caches, mocks) would otherwise be loaded and run with the first request. test/programs/network.test.ts checks this
// with the built command.
export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
