/** How many objects and arrays may stand in one another: far more than any tool takes. */
export const DEEPEST = 64;

/** Whether data is nested so deep that walking through it is a danger. Looks level by level, and calls nothing again. */
export function isTooDeep(given: unknown): boolean {
  let level: readonly object[] = [given].filter(isNested);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= DEEPEST) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNested));
  }
  return false;
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
