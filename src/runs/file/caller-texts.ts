import { createHash } from "node:crypto";
import { join } from "node:path";
import { makeFolder, replaceFile } from "../../platform/durable-files.ts";
import type { CallerTexts } from "../backend/backend.ts";
import { readText, usable } from "./files.ts";

/** Texts of callers, each in a file whose name tells nothing of the caller. */
export function callerTextsIn(folder: string): CallerTexts {
  const fileOf = (caller: string): string => join(folder, createHash("sha256").update(caller).digest("hex"));
  const inUse = <T>(work: () => Promise<T>): Promise<T> => usable(folder, work, "rights of callers");
  return {
    keep: (caller, text) =>
      inUse(async () => {
        await makeFolder(folder);
        await replaceFile(fileOf(caller), text);
      }),
    read: (caller) => inUse(() => readText(fileOf(caller))),
  };
}
