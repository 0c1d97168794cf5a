import type { IncomingMessage } from "node:http";
import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Addresses of this machine and of private networks: a proxy in front of the server has one of them. */
const NEAR = new BlockList();
for (const [network, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
] as const) {
  NEAR.addSubnet(network, bits, "ipv4");
}
for (const [network, bits] of [
  ["::1", 128],
  ["fc00::", 7],
  ["fe80::", 10],
] as const) {
  NEAR.addSubnet(network, bits, "ipv6");
}

/**
 * The address that a request comes from, as it gets a share: of IPv6 the network (/64), since one host has all of its
 * addresses. Behind a proxy of this machine or a private network it is the last address in X-Forwarded-For, which that
 * proxy wrote; what others say there does not count.
 */
export function peerOf({
  socket,
  headers,
}: Pick<IncomingMessage, "headers"> & { socket: { remoteAddress?: string | undefined } }) {
  const from = plain(socket.remoteAddress ?? "");
  const forwarded = plain([headers["x-forwarded-for"] ?? ""].flat().join().split(",").at(-1)?.trim() ?? "");
  const isNear = (isIPv4(from) && NEAR.check(from)) || (isIPv6(from) && NEAR.check(from, "ipv6"));
  return networkOf(isNear && (isIPv4(forwarded) || isIPv6(forwarded)) ? forwarded : from);
}

/** An IPv4 address as such, where it is written as one of IPv6; without zone, brackets and port. */
function plain(address: string): string {
  const bare = address.replace(/^\[([^\]]*)\](?::\d+)?$/, "$1").replace(/%.*$/, "");
  const mapped = bare.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIPv6(mapped) ? mapped : mapped.replace(/:\d+$/, "");
}

function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const whole =
    tail === undefined ? groups : [...groups, ...Array(8 - groups.length - after.length).fill("0"), ...after];
  return whole
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
