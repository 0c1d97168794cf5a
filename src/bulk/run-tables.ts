import * as z from "zod";
import { ObjectTable } from "./object-table.ts";
import { StepTable } from "./step-table.ts";
import { Texts } from "./texts.ts";
import type { RowItem } from "./work.ts";

/** An option without sub-options, as it is read back. */
export const rowItem: z.ZodType<RowItem> = z.object({
  targeting: z.string(),
  name: z.string(),
  contexts: z.array(z.string()).exactOptional(),
});

/** What a run is about: its objects, and the steps that requests are made of. */
export class RunTables {
  readonly texts = new Texts();
  readonly objects = new ObjectTable(this.texts);
  readonly steps = new StepTable(this.texts);
  /** Of the row that was kept last; what an item of it begins with. */
  #targeting: string | undefined;
  #opening = "";

  /** Keeps an option without sub-options as the item that is sent; gives its position in the texts. */
  keepRow(targeting: string, name: string, contexts: readonly string[] = []): number {
    if (this.#targeting !== targeting) {
      this.#targeting = targeting;
      this.#opening = `{"targeting":${JSON.stringify(targeting)},"name":"`;
    }
    const [first] = contexts;
    if (first === undefined) return this.texts.add(`${this.#opening}${inJson(name)}"}`);
    const listed = contexts.length > 1 ? contexts.map(inJson).join('","') : inJson(first);
    return this.texts.add(`${this.#opening}${inJson(name)}","contexts":["${listed}"]}`);
  }

  /** The option that was kept at a position in the texts. */
  rowAt(position: number): RowItem {
    return rowItem.parse(JSON.parse(this.texts.at(position)));
  }
}

const ESCAPED = /[^\u0020-\u0021\u0023-\u005b\u005d-\ud7ff\ue000-\uffff]/;

/** What stands for a text between quotes in JSON: most need no escapes. */
function inJson(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}
