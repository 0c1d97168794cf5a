import { asksWho, authenticator } from "../../server/http/auth.ts";
import { httpError } from "../../server/http/guards.ts";
import type { ServedFigures } from "../../server/http/probes.ts";
import { FIGURES_TYPE } from "../../server/observing/figures.ts";
import type { Access } from "../../settings/access.ts";
import { isLoopback } from "../../settings/loopback.ts";

/** Headers that a proxy adds: what comes with one comes from elsewhere. */
const OF_A_PROXY = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/**
 * Serves figures to programs of this machine, and to callers with a token of the access file. The right of a token does
 * not matter: figures name no caller and no object. Tokens of an issuer, and keys, open nothing here.
 */
export function servedFigures(text: () => string, access: Access): ServedFigures {
  const authenticate = authenticator({ access, addresses: [], ownKeys: false });
  return {
    contentType: FIGURES_TYPE,
    text,
    async refuse(request, from) {
      if (isFromHere(request, from)) return undefined;
      if (!asksWho({ access, jwt: undefined, ownKeys: false })) {
        return httpError(403, "figures are for this machine, and for tokens of TARGETING_MCP_ACCESS_FILE");
      }
      const caller = await authenticate(request);
      return caller instanceof Response ? caller : undefined;
    },
  };
}

/** Whether a request was sent on this machine, and to it: not through a proxy that runs here. */
function isFromHere({ url, headers }: Request, from: string | undefined): boolean {
  const isLocal = from === "::1" || /^(?:::ffff:)?127\./.test(from ?? "");
  return isLocal && isLoopback(url) && !OF_A_PROXY.some((name) => headers.has(name));
}
