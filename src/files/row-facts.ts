import { NONE } from "./columns.ts";
import type { SheetSeen } from "./input-file.ts";
import type { SheetHeader, SheetRow } from "./sheet-rows.ts";
import { isDate } from "./total-rows.ts";
import { truthReader } from "./truth.ts";

/** How many lines are collected: one more than a note names, which shows that there are more. */
const MAX_LINES = 21;

const truthIn = truthReader();

/**
 * Collects what is worth reporting about the groups of rows, about rows that continue the option above, and about
 * Context IDs that are dates.
 */
export class RowFacts {
  readonly #at: Readonly<Record<"name" | "group" | "type", number>>;
  readonly #contextsAt: readonly number[];
  readonly #isOneContextARow: boolean;
  /** The last group that a row names. */
  #above = "";
  /** The name of the last row, and the group that the rows of its option name. */
  #option = { name: "", group: "" };
  #blankGroups = 0;
  #continued = 0;
  #otherGroup = 0;
  readonly #continuedLines: number[] = [];
  #dates = 0;
  readonly #dateLines: number[] = [];

  constructor({ at, contextsAt }: SheetHeader) {
    this.#contextsAt = contextsAt;
    this.#at = { name: at("name"), group: at("parentName"), type: at("type") };
    this.#isOneContextARow = at("contextId") >= 0;
  }

  take({ cells, raw, line, isContinued }: SheetRow): void {
    for (const at of this.#contextsAt) if (isDate((raw[at] ?? "").trim())) this.#takeDate(line);
    const group = (cells[this.#at.group] ?? "").trim();
    const name = cells[this.#at.name] ?? "";
    const isSame = isContinued || (this.#isOneContextARow && name === this.#option.name);
    const own = group === NONE ? "" : group;
    const ofOption = (isSame && this.#option.group) || own;
    if (isContinued) this.#takeContinued(line, own !== "" && own !== ofOption);
    if (group !== "") this.#above = group;
    else if (this.#above !== "" && this.#above !== NONE && ofOption === "" && !this.#isGroup(cells)) {
      this.#blankGroups += 1;
    }
    this.#option = { name, group: ofOption };
  }

  seen(): SheetSeen {
    return {
      continued: this.#continued,
      otherGroup: this.#otherGroup,
      ...(this.#otherGroup > 0 && { continuedLines: this.#continuedLines }),
      blankGroups: this.#blankGroups,
      dates: this.#dates,
      ...(this.#dates > 0 && { dateLines: this.#dateLines }),
    };
  }

  #isGroup(cells: readonly string[]): boolean {
    return truthIn(cells[this.#at.type] ?? "") === true;
  }

  #takeDate(line: number): void {
    this.#dates += 1;
    // A row may have several dates.
    if (this.#dateLines.length < MAX_LINES && this.#dateLines.at(-1) !== line) this.#dateLines.push(line);
  }

  #takeContinued(line: number, isOtherGroup: boolean): void {
    this.#continued += 1;
    if (isOtherGroup) this.#otherGroup += 1;
    else if (this.#continuedLines.length < MAX_LINES) this.#continuedLines.push(line);
  }
}
