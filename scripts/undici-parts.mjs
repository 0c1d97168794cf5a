// Stands in the bundle for the whole of undici, of which a client of two APIs needs little: the rest (fetch, web
// sockets, caches, mocks) would be loaded and run at the first request. test/programs/network.test.ts tries what is
// left on the built command.
export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
