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

  /** Keeps an option without sub-options as the item that is sent; gives its position in the texts. */
  keepRow(targeting: string, name: string, contexts: readonly string[] = []): number {
    const [first] = contexts;
    const listed = contexts.length > 1 ? contexts.map(quoted).join(",") : first === undefined ? "" : quoted(first);
    const list = listed === "" ? "" : `,"contexts":[${listed}]`;
    return this.texts.add(`{"targeting":${quoted(targeting)},"name":${quoted(name)}${list}}`);
  }

  /** The option that was kept at a position in the texts. */
  rowAt(position: number): RowItem {
    return rowItem.parse(JSON.parse(this.texts.at(position)));
  }
}

const ESCAPED = /[^\u0020-\u0021\u0023-\u005b\u005d-\ud7ff\ue000-\uffff]/;

/** A text in JSON: most need no escapes, and adding quotes takes a fraction of the time. */
function quoted(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`;
}
