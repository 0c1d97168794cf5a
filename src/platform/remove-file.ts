import { rm } from "node:fs/promises";
import { type PatientSystem, THIS_SYSTEM, whenFree } from "./move-over.ts";

/**
 * Removes a file; nothing where it is not there. On Windows that fails while another program has it open, mostly for a
 * moment: there it is tried again for a short while. Throws what the operating system says at last.
 */
export function removeFile(file: string, system: PatientSystem = THIS_SYSTEM): Promise<void> {
  return whenFree(() => rm(file, { force: true }), system);
}
