import type { ToolContext } from "./context.ts";

/**
 * The folders that a call may read: those of the setting, or over HTTP of the token; without any, those that the client
 * itself works in.
 */
export async function readableDirs({
  allowedDirs,
  roots,
}: Pick<ToolContext, "allowedDirs" | "roots">): Promise<readonly string[]> {
  return allowedDirs.length > 0 ? allowedDirs : ((await roots?.()) ?? []);
}
