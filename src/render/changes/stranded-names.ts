import type { StrandedName } from "../../changes/settle/stranded-names.ts";
import { plain, shown } from "../fence.ts";

const MOST_STRANDED = 3;

/**
 * The next step of a run that left temporary names behind: what settles them, and the first of them. Nothing where there
 * are none.
 */
export function strandedWords(runId: string, stranded: readonly StrandedName[]): readonly string[] {
  if (stranded.length === 0) return [];
  const named = stranded.slice(0, MOST_STRANDED).map(({ _id, temporaryName, formerName, isSure }) => {
    const has = isSure ? "has" : "may have";
    return `${plain(_id)} ${has} the temporary name ${shown(temporaryName)} (it was ${shown(formerName)})`;
  });
  const more = stranded.length > MOST_STRANDED ? [`${stranded.length - MOST_STRANDED} more have one, too`] : [];
  return [
    `call resume_run with runId ${runId}, which gives each its new name, or its old one back: ${[...named, ...more].join("; ")}`,
  ];
}
