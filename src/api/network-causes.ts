import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";
import { HeldBackError } from "../platform/fence.ts";

/**
 * Each cause has its own next step in `answers/request-messages.ts`. `name`: the host name was not found; `tls`: a
 * secure connection failed, but not because of the certificate; `notTheService`: a proxy or firewall answered.
 */
export type NetworkCause =
  | "name"
  | "refused"
  | "unreachable"
  | "untrusted"
  | "wrongHost"
  | "expired"
  | "noTls"
  | "tls"
  | "lost"
  | "notHttp"
  | "tooLarge"
  | "encoding"
  | "request"
  | "notTheService"
  | "sandboxPort"
  | "proxyUnreachable"
  | "proxyCredentials"
  | "proxyRefused";

/** Never contains the text of a foreign error. */
export interface NetworkFailure {
  readonly reason: string;
  readonly network?: NetworkCause | undefined;
}

/** By the error codes of Node, OpenSSL and undici. */
const BY_CODE: Readonly<Record<string, readonly [NetworkCause, string]>> = {
  ENOTFOUND: ["name", "the host name is unknown"],
  EAI_AGAIN: ["name", "the host name could not be looked up"],
  EAI_FAIL: ["name", "the host name could not be looked up"],
  ECONNREFUSED: ["refused", "the connection was refused"],
  EADDRINUSE: ["sandboxPort", "the port of the embedded sandbox is in use"],
  ETIMEDOUT: ["unreachable", "the connection timed out"],
  EHOSTUNREACH: ["unreachable", "the host cannot be reached"],
  ENETUNREACH: ["unreachable", "the network cannot be reached"],
  UND_ERR_CONNECT_TIMEOUT: ["unreachable", "the connection was not made in time"],
  UNABLE_TO_GET_ISSUER_CERT: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  SELF_SIGNED_CERT_IN_CHAIN: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  DEPTH_ZERO_SELF_SIGNED_CERT: ["untrusted", "the certificate is signed by itself, which Node does not trust"],
  CERT_UNTRUSTED: ["untrusted", "the certificate is signed by an authority that Node does not trust"],
  ERR_TLS_CERT_ALTNAME_INVALID: ["wrongHost", "the certificate is for another host name"],
  HOSTNAME_MISMATCH: ["wrongHost", "the certificate is for another host name"],
  CERT_HAS_EXPIRED: ["expired", "the certificate has expired"],
  CERT_NOT_YET_VALID: ["expired", "the certificate is not valid yet"],
  EPROTO: ["noTls", "the other end does not speak TLS as expected"],
  ERR_SSL_WRONG_VERSION_NUMBER: ["noTls", "the other end does not speak TLS"],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ["noTls", "the other end does not speak TLS"],
  ECONNRESET: ["lost", "the connection was reset"],
  EPIPE: ["lost", "the connection was closed while sending"],
  UND_ERR_SOCKET: ["lost", "the connection was closed before the answer was complete"],
  UND_ERR_RES_EXCEEDED_MAX_SIZE: ["tooLarge", "the answer is too large to read"],
  ERR_BUFFER_TOO_LARGE: ["tooLarge", "the answer is too large to read"],
  UND_ERR_HEADERS_OVERFLOW: ["tooLarge", "the answer's headers are too large to read"],
  UND_ERR_INVALID_ARG: ["request", "the request holds a header or a path that HTTP does not allow"],
};

const OTHER_TLS = /^(CERT_|ERR_TLS|ERR_SSL|INVALID_|UNABLE_TO_)/;

export class StoppedError extends Error {}

const PROXY_PROBLEMS = {
  unreachable: ["proxyUnreachable", "the proxy could not be reached"],
  credentials: ["proxyCredentials", "the proxy asks for a user and a password (407)"],
  refused: ["proxyRefused", "the proxy refused to connect to the service"],
} as const satisfies Record<string, readonly [NetworkCause, string]>;

/** The proxy was not reached or refused the connection. The request was not sent. */
export class ProxyError extends Error {
  readonly failure: NetworkFailure;
  constructor(
    problem: keyof typeof PROXY_PROBLEMS,
    { statusCode, cause }: { readonly statusCode?: number; readonly cause?: unknown } = {},
  ) {
    const [network, words] = PROXY_PROBLEMS[problem];
    const why = cause === undefined ? undefined : networkFailure(cause).reason;
    const because = problem === "refused" ? `status ${statusCode}` : why;
    super(words, { cause });
    this.failure = { network, reason: because === undefined ? words : `${words}: ${because}` };
  }
}

export function networkFailure(cause: unknown): NetworkFailure {
  if (cause instanceof StoppedError || cause instanceof HeldBackError) return { reason: cause.message };
  if (cause instanceof ProxyError) return cause.failure;
  if (cause instanceof EncodingError) {
    return { network: "encoding", reason: "the answer is compressed in a way that cannot be read" };
  }
  const code = codeOf(cause);
  if (code === undefined) return { reason: "the connection failed" };
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  if (known !== undefined) {
    const [network, words] = known;
    return { network, reason: network in CERTIFICATES ? `${words} (${code})` : words };
  }
  if (OTHER_TLS.test(code)) return { network: "tls", reason: `a secure connection could not be made (${code})` };
  if (code.startsWith("HPE_")) return { network: "notHttp", reason: `the answer is not HTTP (${code})` };
  return { reason: `the connection failed (${code})` };
}

/** The reasons of these causes include the error code, because people search for it. */
const CERTIFICATES: Partial<Record<NetworkCause, true>> = {
  untrusted: true,
  wrongHost: true,
  expired: true,
  noTls: true,
};

function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  // If a host name has several addresses, each attempt failed with its own error. The first one is reported.
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  return "cause" in cause ? codeOf(cause.cause) : undefined;
}

type Decoder = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const wrapped: Decoder = promisify(inflate);
const bare: Decoder = promisify(inflateRaw);

/** Some servers send `deflate` without the two bytes of a zlib header. */
const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? wrapped : bare)(body, options),
  br: promisify(brotliDecompress),
  identity: async (body) => body,
};

class EncodingError extends Error {
  readonly code = "ENCODING";
}

/**
 * Some gateways compress answers without being asked. `encodings` is the Content-Encoding header. Throws if the body is
 * broken, has an unknown encoding, or becomes larger than `largest` bytes.
 */
export async function decoded(body: Buffer, encodings: string, largest: number): Promise<Buffer> {
  let left = body;
  if (body.length === 0) return body;
  for (const encoding of encodings.toLowerCase().split(",").reverse()) {
    const name = encoding.trim();
    const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
    if (decode === undefined) throw new EncodingError();
    try {
      left = await decode(left, { maxOutputLength: largest });
    } catch (cause) {
      const isTooLarge = cause instanceof RangeError;
      throw isTooLarge ? cause : new EncodingError("the body is broken", { cause });
    }
  }
  return left;
}
