import { damageIn, damageWords, NO_VALUE } from "../../files/damage.ts";
import { type DesiredOption, type Problems, quoted, type Spot, type Suspect } from "./desired.ts";

/** Looks for what two rows of a file claim at once: an `_id`, or a name. */
export function checkRows(options: readonly DesiredOption[], problems: Problems): void {
  const ids = new Map<string, Spot>();
  const names = new Map<string, Spot>();
  for (const option of options) {
    const { _id, name, spots } = option;
    if (_id !== undefined) claim(ids, _id, spots._id ?? option, `the _id ${_id}`, problems);
    if (name !== undefined) claim(names, name, spots.name ?? option, `the name ${quoted(name)}`, problems);
  }
}

function claim(claimed: Map<string, Spot>, what: string, spot: Spot, words: string, problems: Problems): void {
  const first = claimed.get(what);
  if (first === undefined) claimed.set(what, spot);
  else {
    problems.add(
      spot,
      `${words} stands twice${first.line === spot.line ? "" : ` in the file: on line ${first.line} and on line ${spot.line}`}`,
      "An option stands once, and names are unique within a targeting.",
      [first.line, spot.line],
    );
  }
}

/** The problem that a text most likely is not what was written before a spreadsheet opened the file. */
export function addSuspect({ text, field, ...spot }: Suspect, problems: Problems): void {
  const damage = damageIn(text);
  if (damage === undefined) return;
  const { message, remedy } = damageWords(damage);
  problems.add(
    spot,
    `${quoted(text.trim() === NO_VALUE ? "" : text)} in ${field} ${message}; neither the service nor the base has it`,
    remedy,
  );
}
