// In the bundle, replaces undici by the few parts that a client of two APIs needs. With all of undici, the first
// request would also load fetch, web sockets, caches and mocks. test/programs/network.test.ts checks this with the
// built command.
export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
