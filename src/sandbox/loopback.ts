const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Whether a request may use the control plane: it was addressed to this machine by a loopback name, and a page that
 * sent it, if one did, came from there too. Keeps web pages out that point a name of theirs at 127.0.0.1.
 */
export function isFromLoopback(host: string | undefined, origin: string | undefined): boolean {
  const hostname = hostnameOf(`http://${host ?? ""}`);
  if (hostname === undefined || !LOOPBACK.has(hostname)) return false;
  if (origin === undefined) return true;
  const from = hostnameOf(origin);
  return from !== undefined && LOOPBACK.has(from);
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
