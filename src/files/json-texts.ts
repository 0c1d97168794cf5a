import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { Encoding } from "./input-file.ts";
import { textOf } from "./text.ts";

export interface JsonText {
  readonly line: number;
  readonly text: string;
}

export async function* ndjsonTexts(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly JsonText[]> {
  let line = 1;
  // Parts of an unfinished line are joined when it ends, so that the whole line is not searched again with each part.
  let begun: string[] = [];
  const takeLines = (text: string): readonly JsonText[] => {
    const [first = "", ...others] = text.split("\n");
    begun.push(first);
    if (others.length === 0) return [];
    const lines = [begun.join(""), ...others];
    begun = [lines.pop() ?? ""];
    return lines.flatMap((one) => textAt(line++, one));
  };
  for await (const chunk of textOf(bytes, encoding)) yield takeLines(chunk);
  yield takeLines("\n");
}

function textAt(line: number, text: string): readonly JsonText[] {
  const trimmed = text.trim();
  return trimmed === "" ? [] : [{ line, text: trimmed }];
}

const NOT_AN_ARRAY =
  "A .json file must contain one array of rows: [{...}, {...}]. If each line is one object, name the file .ndjson.";

/** Yields the elements of a JSON array one by one, unparsed. Throws a FileError if the file is not one array. */
export async function* jsonArrayTexts(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly JsonText[]> {
  const splitter = new ArraySplitter();
  for await (const chunk of textOf(bytes, encoding)) yield splitter.take(chunk);
  splitter.end();
}

class ArraySplitter {
  /** The number of open brackets: 0 before the array, 1 between its elements. -1 after it. */
  #depth = 0;
  #inText = false;
  #escaped = false;
  #line = 1;
  #elementLine = 1;
  #element = "";
  #begun = false;

  take(chunk: string): readonly JsonText[] {
    const found: JsonText[] = [];
    let from = 0;
    const finish = (end: number): void => {
      const text = (this.#element + chunk.slice(from, end)).trim();
      this.#element = "";
      this.#begun = false;
      from = end + 1;
      if (text !== "") found.push({ line: this.#elementLine, text });
    };
    for (let at = 0; at < chunk.length; at += 1) {
      const character = chunk.charAt(at);
      if (character === "\n") this.#line += 1;
      if (this.#inText) this.#insideText(character);
      else if (this.#depth <= 0) from = this.#outside(character, at);
      else {
        if (!this.#begun && /\S/.test(character)) {
          this.#begun = true;
          this.#elementLine = this.#line;
        }
        if (character === '"') this.#inText = true;
        else if (character === "[" || character === "{") this.#depth += 1;
        else if (character === "," && this.#depth === 1) finish(at);
        else if (character === "]" && this.#depth === 1) {
          finish(at);
          this.#depth = -1;
        } else if (character === "]" || character === "}") this.#depth -= 1;
      }
    }
    if (this.#depth > 0) this.#element += chunk.slice(from);
    return found;
  }

  end(): void {
    if (this.#depth >= 0)
      throw new FileError(`the JSON array of the file is not closed (line ${this.#line})`, NOT_AN_ARRAY);
  }

  #insideText(character: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (character === "\\") this.#escaped = true;
    else if (character === '"') this.#inText = false;
  }

  /**
   * Checks a character outside the array, where only white space is allowed. Returns where the next element can
   * begin.
   */
  #outside(character: string, at: number): number {
    if (this.#depth === 0 && character === "[") this.#depth = 1;
    else if (/\S/.test(character)) {
      throw new FileError(`the file is not one JSON array: line ${this.#line} has text outside of it`, NOT_AN_ARRAY);
    }
    return at + 1;
  }
}
