import { HeldBackError } from "../platform/fence.ts";

/** Our words for the codes of Node and undici; other codes are shown as they are. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EADDRINUSE: "the port of the embedded sandbox is in use",
  EPIPE: "the connection was closed while sending",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ENOTFOUND: "the host name is unknown",
  EAI_AGAIN: "the host name could not be looked up",
  UND_ERR_CONNECT_TIMEOUT: "no connection in time",
  UND_ERR_SOCKET: "the connection was closed before the answer was complete",
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "the answer is too large to read",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large to read",
  UND_ERR_INVALID_ARG: "the request holds a header or a path that HTTP does not allow",
};

const TLS = /^(CERT_|ERR_TLS|ERR_SSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/;

/** We ended a request ourselves; the message is ours. */
export class StoppedError extends Error {}

/** What stopped a request, in our own words; never the text of a foreign error. */
export function connectionReason(cause: unknown): string {
  if (cause instanceof StoppedError || cause instanceof HeldBackError) return cause.message;
  const code = codeOf(cause);
  if (code === undefined) return "the connection failed";
  if (TLS.test(code)) return `a secure connection could not be made (${code})`;
  if (code.startsWith("HPE_")) return `the answer is not HTTP (${code})`;
  return REASONS[code] ?? `the connection failed (${code})`;
}

function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  return "cause" in cause ? codeOf(cause.cause) : undefined;
}
