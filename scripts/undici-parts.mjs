// Replaces the whole of undici in the bundle, because a client of two APIs needs little of it. The other parts (fetch,
// web sockets, caches, mocks) would be loaded and run at the first request. test/programs/network.test.ts checks the
// remaining parts with the built command.
export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
