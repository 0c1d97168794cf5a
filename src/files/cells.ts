import { FileError } from "../platform/files.ts";
import { parseJson } from "../platform/json.ts";
import { ownReason, type Reason } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import { contextIdProblem, trimContextId } from "../spec/names-and-contexts.ts";
import { type Header, NONE } from "./columns.ts";
import { damageIn, type TextCells } from "./damage.ts";

/** The default separator of several Context IDs in one cell. Line breaks separate them, too. */
export const BETWEEN_CONTEXTS = "|";

export type CellContexts =
  | { readonly contexts: string[]; readonly isBlank: boolean; readonly split?: SplitCells }
  | { readonly reason: Reason };

/**
 * Returns a function that reads the Context IDs of a row from the column `contextId` or `contexts`. Throws a FileError
 * if a file has both.
 */
export function contextsReader(
  header: Header,
  separator?: string,
): (cells: readonly string[], asText?: TextCells) => CellContexts {
  const one = header.at("contextId");
  const many = header.at("contexts");
  if (one >= 0 && many >= 0) {
    throw new FileError(
      "the file has both columns contextId and contexts",
      `Keep contextId (one per row) or contexts (several, separated by ${BETWEEN_CONTEXTS}).`,
    );
  }
  const at = Math.max(one, many);
  const isSplit = one < 0 || separator !== undefined;
  const between = separator ?? BETWEEN_CONTEXTS;
  const textsOf = isSplit ? splitter(between) : oneText;
  return (cells, asText) => {
    const cell = cells[at] ?? "";
    const texts = textsOf(cell);
    if (texts === undefined)
      return { reason: ownReason("INVALID_ROW", { problem: "notAList", value: cell.slice(0, 40) }) };
    const contexts = texts.map(trimContextId).filter((contextId) => contextId !== "");
    for (const [position, contextId] of contexts.entries()) {
      const reason = problemOf(contextId, position, asText?.has(at));
      if (reason !== undefined) return { reason };
    }
    const isBlank = cell.trim() === "";
    const isTakenApart = isSplit && texts.length > 1 && !cell.trim().startsWith("[");
    return { contexts, isBlank, ...(isTakenApart && { split: { cells: [cell], separator: between } }) };
  };
}

/** Returns a cell as a single Context ID, or none if the cell is `[]`. */
export function oneText(cell: string): readonly string[] {
  return cell.trim() === NONE ? [] : [cell];
}

export interface SplitCells {
  readonly cells: readonly string[];
  readonly separator: string;
}

const MAX_LETTERS = LIMITS.contextIdBytes.value + 16;

/**
 * Splits cells into Context IDs. An ID that the option already has (`held`) is not split, even if it contains a
 * separator.
 */
export function splitBeside({ cells, separator }: SplitCells, held: Iterable<string>): readonly string[] {
  const between = separatorsOf(separator);
  const whole = new Set([...held].filter((id) => between.test(id)));
  const longest = whole.size === 0 ? 0 : MAX_LETTERS;
  return cells.flatMap((cell) => {
    const text = cell.trim();
    const starts = [0];
    const ends: number[] = [];
    for (const { index, 0: sign } of text.matchAll(new RegExp(between, "g"))) {
      ends.push(index);
      starts.push(index + sign.length);
    }
    ends.push(text.length);
    const ids: string[] = [];
    for (let at = 0; at < starts.length; at += 1) {
      const from = starts[at] ?? 0;
      let last = at;
      for (let end = at + 1; end < ends.length && (ends[end] ?? 0) - from <= longest; end += 1) {
        if (whole.has(trimContextId(text.slice(from, ends[end])))) last = end;
      }
      const id = trimContextId(text.slice(from, ends[last]));
      if (id !== "") ids.push(id);
      at = last;
    }
    return ids;
  });
}

function separatorsOf(separator: string): RegExp {
  return new RegExp(`[${separator.replaceAll(/[\\\]^-]/g, "\\$&")}\n\r]`);
}

/**
 * Returns a function that splits a cell into Context IDs. For a cell that starts with `[` but is not a JSON array of
 * texts, it returns undefined.
 */
export function splitter(separator: string): (cell: string) => readonly string[] | undefined {
  const between = separatorsOf(separator);
  return (cell) => {
    const trimmed = cell.trim();
    return trimmed.startsWith("[") ? listIn(trimmed) : trimmed.split(between);
  };
}

function listIn(text: string): readonly string[] | undefined {
  const value = parseJson(text);
  if (!Array.isArray(value)) return undefined;
  const list: readonly unknown[] = value;
  return list.every((one) => typeof one === "string") ? list : undefined;
}

function problemOf(contextId: string, position: number, isText: boolean | undefined): Reason | undefined {
  const damage = damageIn(contextId, isText);
  if (damage !== undefined) return damaged("Context ID", contextId, damage);
  const problem = contextIdProblem(contextId);
  if (problem === undefined) return undefined;
  return ownReason("INVALID_CONTEXT_ID", { ...problem, position, value: contextId.slice(0, 40), count: 1 });
}

function damaged(what: string, value: string, damage: object): Reason {
  return ownReason("INVALID_ROW", { problem: "damaged", what, value: value.slice(0, 40), ...damage });
}

/** Returns a reason if a name is probably damaged, for example because a spreadsheet changed it to a date. */
export function damagedName(name: string, what: "name" | "group", isText?: boolean): Reason | undefined {
  const damage = damageIn(name, isText);
  return damage === undefined ? undefined : damaged(what, name, damage);
}

export function cellReader(header: Header, column: string): (cells: readonly string[]) => string {
  const at = header.at(column);
  return at < 0 ? () => "" : (cells) => cells[at] ?? "";
}

/**
 * Returns a function that reads cells with fixed words, such as yes and no. For an empty cell, it returns undefined,
 * and for any other text null.
 */
export function wordReader<Meaning>(
  table: readonly (readonly [meaning: Meaning, words: readonly string[]])[],
): (cell: string) => Meaning | undefined | null {
  const meanings = new Map(table.flatMap(([meaning, words]) => words.map((word) => [word, meaning] as const)));
  return (cell) => {
    const text = cell.trim().toLowerCase();
    return text === "" ? undefined : (meanings.get(text) ?? null);
  };
}

const ADD = [
  ...["add", "추가", "hinzufügen", "añadir", "agregar", "ajouter", "ajout", "adicionar", "aggiungi", "ekle", "追加"],
];
const REMOVE = [
  ...["remove", "delete", "삭제", "제거", "entfernen", "löschen", "eliminar", "quitar", "supprimer", "retirer"],
  ...["remover", "excluir", "elimina", "rimuovi", "sil", "削除"],
];

export const actionIn = wordReader<"add" | "edit" | "remove">([
  ["add", [...ADD, "create", "new", "생성", "신규", "등록", "anlegen", "neu", "新規"]],
  ["edit", ["edit", "set", "update", "change", "move", "수정", "변경", "이동", "ändern", "bearbeiten", "verschieben"]],
  ["edit", ["editar", "modificar", "mover", "modifier", "déplacer", "alterar", "modifica", "düzenle", "変更", "修正"]],
  ["remove", REMOVE],
]);

export const contextActionIn = wordReader<"add" | "remove" | "set">([
  ["add", ADD],
  ["remove", REMOVE],
  ["set", ["set", "replace", "설정", "교체", "setzen", "ersetzen", "reemplazar", "remplacer"]],
]);

/** How many characters of a cell are searched for a sign between two numbers. Longer numbers are no Context IDs. */
const LONGEST_NUMBERS = 1000;

/**
 * Returns the sign between Context IDs in a cell, if it is an unusual one: a full-width or ideographic sign, or another
 * sign or a space between two numbers of at least four digits at the beginning.
 */
export function unusualSeparator(cell: string): string | undefined {
  return (/([、，；｜])/.exec(cell) ??
    /^\d{4,}\s*([/\\&+·・]|[^\S\r\n](?=\d))(?=\s*\d{4,})/.exec(cell.slice(0, LONGEST_NUMBERS)))?.[1];
}
