/** What spreadsheets make of texts that look like something else to them. */
const DAMAGE = [
  // A formula that failed: a name that begins with =, + or -.
  /^#(?:NAME\?|REF!|VALUE!|N\/A|DIV\/0!|NUM!|NULL!|SPILL!|CALC!|ERROR!)$/,
  // A long number, or digits around an E: the last digits are lost.
  /^[+-]?\d(?:[.,]\d+)?E[+-]?\d{1,3}$/i,
  // A truth value.
  /^(?:TRUE|FALSE)$/,
  // A date: 3-4, or MAR4.
  /^(?:\d{1,2}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d{2})$/,
  // A column that was too narrow when it was saved.
  /^#{3,}$/,
];

/** Whether a text looks like what a spreadsheet made of another one. */
export function looksDamaged(text: string): boolean {
  const trimmed = text.trim();
  return DAMAGE.some((form) => form.test(trimmed));
}
