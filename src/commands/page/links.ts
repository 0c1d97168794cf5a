import { randomBytes } from "node:crypto";
import { isSame } from "../../page/serve/guard.ts";

const LINK_MS = 120_000;

/** Codes of links that work once. */
export interface Links {
  /** Makes a code. */
  make(): string;
  /** Uses a code up: `fresh`, or `used` where it was used before, or `unknown` where it is late or none of ours. */
  use(code: string): "fresh" | "used" | "unknown";
}

/** Keeps the codes of this process; each works once, within two minutes. */
export function oneTimeLinks(now: () => number): Links {
  const made: { readonly code: string; readonly until: number; isUsed: boolean }[] = [];
  return {
    make() {
      const code = randomBytes(32).toString("base64url");
      made.push({ code, until: now() + LINK_MS, isUsed: false });
      return code;
    },
    use(given) {
      const link = made.find(({ code }) => isSame(code, given));
      if (link === undefined) return "unknown";
      if (link.isUsed) return "used";
      link.isUsed = true;
      return link.until > now() ? "fresh" : "unknown";
    },
  };
}
