/**
 * The address in an `Origin` header as browsers write it: `http` or `https`, host and port, and nothing else. Undefined
 * for any other text, including `null`.
 */
export function originIn(header: string): URL | undefined {
  if (!URL.canParse(header)) return undefined;
  const url = new URL(header);
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  return isWeb && url.origin === header ? url : undefined;
}
