import type { NetworkCause } from "../../api/network-causes.ts";

/** The settings that a remedy names. */
export interface Way {
  /** The setting that names the address, or words for it. */
  readonly address: string;
  /** The setting that holds the key. */
  readonly key: string;
}

/** What to do about a request that was not answered, by what kept it from that: for reads, writes, events and `doctor`. */
const REMEDIES: Readonly<Record<NetworkCause, (way: Way) => string>> = {
  name: ({ address }) =>
    `Check the host in ${address} for typing errors, and that this machine can look it up (DNS, VPN). ` +
    "Where only a proxy knows it, set HTTPS_PROXY.",
  refused: ({ address }) => `Nothing listens there: check the host and the port in ${address}.`,
  unreachable: ({ address }) =>
    `Check ${address}, and the network, VPN and firewall of this machine. Where a proxy leads out, set HTTPS_PROXY.`,
  untrusted: () =>
    "Let NODE_EXTRA_CA_CERTS name a PEM file with the certificate of that authority, in the environment that this " +
    "server is started with.",
  wrongHost: ({ address }) => `Let ${address} name a host that the certificate is for.`,
  expired: () => "Check the clock of this machine. If it is right, the service needs another certificate.",
  noTls: ({ address }) => `Check the scheme and the port in ${address}: https:// needs a port that speaks TLS.`,
  tls: ({ address }) => `Check ${address}, and what opens secure connections on the way.`,
  lost: ({ address }) => `Try again later. If it stays so, check the network and ${address}.`,
  notHttp: ({ address }) => `Check the port in ${address}: something else answers there.`,
  tooLarge: ({ address }) => `Check ${address}: no answer of the API is that large.`,
  encoding: () => "Check the gateway on the way: only gzip, deflate and br can be read.",
  request: ({ key }) => `Check ${key}, and the routes in the file that TARGETING_MCP_ROUTES names.`,
  notTheService: ({ address }) =>
    `Check ${address}, and what is on the way: a log-in page of the network, a firewall, a proxy.`,
  sandboxPort: () => "Set TARGETING_MCP_SANDBOX_PORT to a free port, or leave it out.",
  proxyUnreachable: () =>
    "Check the address in HTTPS_PROXY (HTTP_PROXY for http:// addresses); hosts in NO_PROXY are reached without it.",
  proxyCredentials: () =>
    "Put the user and the password into HTTPS_PROXY (HTTP_PROXY for http:// addresses): http://user:password@proxy:3128.",
  proxyRefused: ({ address }) =>
    `Have the proxy let the host in ${address} through, or add the host to NO_PROXY if no proxy is needed.`,
};

/** What to do about a request that was not answered; a cause that is not known gets what helps most often. */
export function networkRemedy(cause: string | undefined, way: Way): string {
  const remedy = isCause(cause) ? REMEDIES[cause] : REMEDIES.lost;
  return remedy(way);
}

function isCause(cause: string | undefined): cause is NetworkCause {
  return cause !== undefined && Object.hasOwn(REMEDIES, cause);
}
