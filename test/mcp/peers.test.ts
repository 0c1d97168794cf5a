import { expect, test } from "vitest";
import { peerOf } from "../../src/http/server.ts";

test.each([
  ["198.51.100.7", undefined, "198.51.100.7"],
  ["::ffff:198.51.100.7", undefined, "198.51.100.7"],
  ["2001:db8:1:2:3:4:5:6", undefined, "2001:db8:1:2"],
  ["2001:db8:1:2::9", undefined, "2001:db8:1:2"],
  ["2001:db8::9", undefined, "2001:db8:0:0"],
  // Only a proxy in a private network is believed, and only for the last address, which it wrote itself.
  ["198.51.100.7", "203.0.113.9", "198.51.100.7"],
  ["127.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["::ffff:10.1.2.3", "1.2.3.4, 203.0.113.9", "203.0.113.9"],
  ["::1", "[2001:db8:1:2::9]:4711", "2001:db8:1:2"],
  ["fd00::1", "203.0.113.9:4711", "203.0.113.9"],
  ["10.1.2.3", "unknown", "10.1.2.3"],
  ["10.1.2.3", "203.0.113.9, ", "10.1.2.3"],
] as const)("from %s with %s: a share of %s", (remoteAddress, forwarded, peer) => {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  expect(peerOf({ socket: { remoteAddress }, headers })).toBe(peer);
});
