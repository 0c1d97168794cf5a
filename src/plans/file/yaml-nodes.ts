import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type Alias,
  Composer,
  type CST,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Pair,
  Parser,
  type Range,
} from "yaml";
import { type Spot, UnreadableFile } from "./desired.ts";
import { type Entry, MAX_DEPTH, MAX_NODES, type Node, tooDeep, tooMany } from "./tree.ts";

/** The maximum length of a YAML text in characters. Parsing keeps all its comments and positions in memory. */
const MAX_CHARACTERS = 16_000_000;
/** The maximum number of lexemes. Each takes 200 bytes of memory. A whole project needs at most a fifth of them. */
const MAX_LEXEMES = 1_500_000;
/** After this many lexemes (about 10 ms), the parser pauses so that other work of the process can go on. */
const LEXEMES_PER_TURN = 5000;
/** The standard tags of YAML that are accepted, because they have no effect. */
const PLAIN_TAGS = ["tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"];

const OTHER_FORMS = "Save it as JSON, NDJSON or CSV, which have no such limit.";

/** Parses YAML, with all values as texts. Throws an UnreadableFile for wrong syntax or an exceeded limit. */
export async function yamlNodes(text: string): Promise<Node> {
  if (text.length > MAX_CHARACTERS) {
    const line = linesIn(text, MAX_CHARACTERS);
    throw new UnreadableFile(
      { line, column: 1 },
      "the YAML file has more than 16,000,000 characters: the limit is reached on this line",
      OTHER_FORMS,
    );
  }
  const lines = new LineCounter();
  const tokens = await tokensIn(text, lines);
  const composer = new Composer({ schema: "failsafe", uniqueKeys: false, merge: false, resolveKnownTags: false });
  const [document, ...further] = [...composer.compose(tokens)];
  const [fault] = document?.errors ?? [];
  if (fault !== undefined) {
    const [message = ""] = fault.message.split("\n");
    throw new UnreadableFile(spotAt(lines, fault.pos[0]), `the YAML cannot be read: ${message}`, SYNTAX);
  }
  const [second] = further;
  if (second !== undefined) {
    const spot = spotAt(lines, second.range?.[0] ?? 0);
    throw new UnreadableFile(spot, "a second YAML document begins here", "Keep one document per file.");
  }
  if (document?.contents === null || document === undefined) {
    throw new UnreadableFile({ line: 1, column: 1 }, "the file is empty", "Write version, targeting and options.");
  }
  return new Conversion(lines).of(document.contents, 1).node;
}

/** Splits a file into tokens. Throws an UnreadableFile as soon as it is nested too deeply or has too many lexemes. */
async function tokensIn(text: string, lines: LineCounter): Promise<readonly CST.Token[]> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    const deep = parser.stack.length > MAX_DEPTH ? parser.stack.filter(isCollection)[MAX_DEPTH] : undefined;
    if (deep !== undefined) throw tooDeep(spotAt(lines, deep.offset));
    count += 1;
    if (count > MAX_LEXEMES) throw tooMany(spotAt(lines, parser.offset), MAX_LEXEMES, "words and symbols");
    if (count % LEXEMES_PER_TURN === 0) await nextTurn();
  }
  tokens.push(...parser.end());
  return tokens;
}

const SYNTAX =
  "Indent with spaces, align entries that belong together, and put texts with : or # in quotes; an editor with YAML support marks the position.";

function spotAt(lines: LineCounter, offset: number): Spot {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function linesIn(text: string, end: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

function isCollection(token: CST.Token): token is CST.BlockMap | CST.BlockSequence | CST.FlowCollection {
  return token.type === "block-map" || token.type === "block-seq" || token.type === "flow-collection";
}

/** A converted node and the number of its values. An alias counts as all the values that it repeats. */
interface Converted {
  readonly node: Node;
  readonly nodes: number;
  readonly depth: number;
}

class Conversion {
  readonly #lines: LineCounter;
  readonly #anchors = new Map<string, Converted | "open">();

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  of(from: unknown, depth: number): Converted {
    if (isAlias(from)) return this.#repeated(from, depth);
    if (!isNode(from)) throw new Error("the YAML parser gave something that is not a node");
    const spot = this.#spotOf(from);
    if (from.tag !== undefined && !PLAIN_TAGS.includes(from.tag)) {
      throw new UnreadableFile(
        spot,
        `the tag ${JSON.stringify(from.tag)} is not allowed`,
        "Remove the tag. Names and Context IDs are always texts.",
      );
    }
    const anchor = "anchor" in from ? from.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, "open");
    const converted = isMap(from)
      ? this.#map(from.items, from.flow === true, spot, depth)
      : isSeq(from)
        ? this.#list(from.items, spot, depth)
        : textNode(isScalar(from) ? from.value : "", isScalar(from) && from.type === "PLAIN", spot);
    if (converted.nodes > MAX_NODES) throw tooMany(spot);
    if (depth + converted.depth - 1 > MAX_DEPTH) throw tooDeep(spot);
    if (anchor !== undefined) this.#anchors.set(anchor, converted);
    return converted;
  }

  #list(items: readonly unknown[], spot: Spot, depth: number): Converted {
    const converted = items.map((item) => this.of(item, depth + 1));
    return { node: { kind: "list", items: converted.map(({ node }) => node), ...spot }, ...sumOf(converted) };
  }

  #map(items: readonly Pair[], isFlow: boolean, spot: Spot, depth: number): Converted {
    const values: Converted[] = [];
    const entries = items.map(({ key, value }): Entry => {
      const { key: name, ...place } = this.#key(key, spot);
      const converted = value === null ? textNode("", true, place) : this.of(value, depth + 1);
      values.push(converted);
      return { key: name, value: converted.node, ...place };
    });
    return { node: { kind: "map", entries, isFlow, ...spot }, ...sumOf(values) };
  }

  #key(key: unknown, mapSpot: Spot): { readonly key: string; readonly offset: number } & Spot {
    const spot = isNode(key) ? this.#spotOf(key) : mapSpot;
    if (!isScalar(key) || typeof key.value !== "string") {
      throw new UnreadableFile(spot, "a key is not a text here", "Keys are words like name, contexts or children.");
    }
    if (key.value === "<<") {
      throw new UnreadableFile(spot, "a merge key (<<) is not allowed", "Write the fields in full.");
    }
    return { key: key.value, offset: key.range?.[0] ?? 0, ...spot };
  }

  #repeated(alias: Alias, depth: number): Converted {
    const spot = this.#spotOf(alias);
    const target = this.#anchors.get(alias.source);
    if (target === undefined) {
      throw new UnreadableFile(
        spot,
        `the alias *${alias.source} has no anchor before it`,
        `Put &${alias.source} before the value that it refers to.`,
      );
    }
    if (target === "open") {
      throw new UnreadableFile(
        spot,
        `the alias *${alias.source} refers to a value that contains it`,
        "Write the value in full instead of the alias.",
      );
    }
    if (depth + target.depth - 1 > MAX_DEPTH) throw tooDeep(spot);
    return target;
  }

  #spotOf({ range }: { readonly range?: Range | null | undefined }): Spot {
    return spotAt(this.#lines, range?.[0] ?? 0);
  }
}

function textNode(value: unknown, isPlain: boolean, spot: Spot): Converted {
  const text = typeof value === "string" ? value : "";
  return { node: { kind: "text", text, isPlain, ...spot }, nodes: 1, depth: 1 };
}

function sumOf(parts: readonly Converted[]): { readonly nodes: number; readonly depth: number } {
  let nodes = 1;
  let depth = 0;
  for (const part of parts) {
    nodes += part.nodes;
    depth = Math.max(depth, part.depth);
  }
  return { nodes, depth: depth + 1 };
}
