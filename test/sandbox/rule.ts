import { test } from "vitest";
import type { SandboxOptions } from "../../src/sandbox/index.ts";
import { RULES } from "./rules.ts";
import { type SandboxService, withSandbox } from "./service.ts";

/** Tests one rule of rules.ts with a new sandbox over HTTP. */
export function rule(id: string, check: (service: SandboxService) => Promise<void>, options?: SandboxOptions): void {
  const held = RULES.find((known) => known.id === id);
  if (held === undefined) throw new RangeError(`"${id}" is not in the list of rules (test/sandbox/rules.ts)`);
  test(`${held.section} ${held.says}`, () => withSandbox(check, options));
}
