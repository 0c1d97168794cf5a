/** Whether an address is this machine. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** Whether requests to an address leave this machine unencrypted. */
export function isPlain(url: string): boolean {
  return /^http:/i.test(url) && !isLoopback(url);
}
