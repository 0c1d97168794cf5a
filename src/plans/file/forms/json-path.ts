const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;

/**
 * Where in JSON text a character stands, as a path such as `options[1].name`, for text without line breaks: what a call
 * gives as an object has no lines that a person knows. Empty for the value as a whole.
 */
export function jsonPathAt(text: string, offset: number): string {
  /** Of the objects and lists around, from the outermost on: the key, or the position, at which the reading is. */
  const around: (string | number)[] = [];
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const isKey = token.startsWith('"') && text[index + token.length] === ":";
    if (isKey) around[around.length - 1] = `.${token.slice(1, -1)}`;
    if (index >= offset) break;
    if (token === "{") around.push("");
    else if (token === "[") around.push(0);
    else if (token === "}" || token === "]") around.pop();
    else if (token === ",") {
      const last = around.at(-1);
      if (typeof last === "number") around[around.length - 1] = last + 1;
    }
  }
  return around
    .map((at) => (typeof at === "number" ? `[${at}]` : at))
    .join("")
    .slice(1);
}
