/** How many objects and arrays may stand in one another: far more than any tool takes. */
export const DEEPEST = 64;

/** Whether data is nested so deep that walking through it is a danger. */
export function isTooDeep(given: unknown): boolean {
  return reaches(given, DEEPEST);
}

/** Its recursion is no deeper than `levels`. */
function reaches(given: unknown, levels: number): boolean {
  if (typeof given !== "object" || given === null) return false;
  if (levels === 0) return true;
  for (const value of Object.values(given)) if (reaches(value, levels - 1)) return true;
  return false;
}
