/** The name of a caller, as people know it: the owner of runs in another project begins with a digest of its keys. */
export function callerName(owner: string): string {
  return owner.replace(/^keys:\w+ /, "");
}
