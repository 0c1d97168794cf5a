import { LIMITS } from "./limits.ts";

/**
 * Letters, digits and signs that a name may hold (management-api 8.3). Korean letters are the precomposed syllables
 * and the compatibility letters: assumed.
 */
const ALLOWED = /^[A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]*$/u;
const DISALLOWED = /[^A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]/gu;

/** Why a name is refused: the rule it breaks, and the characters at fault where the rule is about characters. */
export interface NameProblem {
  readonly rule: "tooShort" | "tooLong" | "outerSpace" | "characters";
  readonly length: number;
  /** The distinct characters that are not allowed, in order; only for `characters`. */
  readonly characters?: readonly string[];
}

/**
 * Checks a targeting or option name against management-api 8.3.
 * Takes the name as it would be sent; gives the first rule it breaks, or undefined when it is valid.
 */
export function nameProblem(name: string): NameProblem | undefined {
  if (!ALLOWED.test(name)) {
    const characters = [...new Set(name.match(DISALLOWED) ?? [])];
    return { rule: "characters", length: codePoints(name), characters };
  }
  // No character that is allowed takes more than one code unit.
  const { length } = name;
  if (length < LIMITS.nameMinLength.value) return { rule: "tooShort", length };
  if (length > LIMITS.nameMaxLength.value) return { rule: "tooLong", length };
  if (name.startsWith(" ") || name.endsWith(" ")) return { rule: "outerSpace", length };
  return undefined;
}

/** Length of a text in Unicode code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    const paired = unit >= 0xd800 && unit <= 0xdbff && isLowSurrogate(text.charCodeAt(at + 1));
    if (paired) at += 1;
    count += 1;
  }
  return count;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
