/** In a cell, this means "no Context IDs" or "top level". An empty cell would mean that the present value stays. */
export const NONE = "[]";

/** The column in a file of failed rows with the reason of each failure. It is ignored when the file is read again. */
export const REASON_COLUMN = "reason";

/**
 * The accepted headings of each column, besides its name. Sheets are written with the first one. Headings are compared
 * without regard to case, spaces, `_`, `-`, `*`, `:`, `?` and invisible characters.
 */
export const HEADINGS: Readonly<Record<string, readonly string[]>> = {
  action: ["Action", "작업", "동작", "Aktion", "Acción", "Accion", "Ação", "Azione", "İşlem", "操作"],
  _id: [
    ...["Option ID", "id", "옵션 ID", "옵션 아이디", "Options-ID", "ID de opción", "ID de l'option"],
    ...["ID da opção", "ID opzione", "Seçenek ID", "オプションID"],
  ],
  name: [
    ...["Option", "option name", "옵션", "옵션명", "옵션 이름", "이름", "Optionsname", "Bezeichnung"],
    ...["Opción", "Opcion", "Nombre de la opción", "Nom de l'option", "Nom"],
    ...["Opção", "Nome da opção", "Opzione", "Nome opzione", "Seçenek", "Seçenek adı", "オプション", "オプション名"],
  ],
  parentName: [
    ...["Group", "parent", "group name", "option group", "parent group", "parent option"],
    ...["그룹", "그룹명", "그룹 이름", "옵션 그룹", "상위 그룹", "상위 옵션"],
    ...["Gruppe", "Gruppenname", "Optionsgruppe", "Übergeordnet", "Übergeordnete Gruppe", "Übergeordnete Option"],
    ...["Grupo", "Nombre del grupo", "Grupo de opciones", "Groupe", "Nom du groupe", "Groupe d'options"],
    ...["Nome do grupo", "Grupo de opções", "Gruppo", "Nome gruppo", "Grup", "Grup adı", "グループ", "グループ名"],
  ],
  contexts: [
    ...["Context IDs", "keywords", "article ids", "article numbers"],
    ...["컨텍스트 ID 목록", "콘텍스트 ID 목록", "키워드 목록", "기사 ID 목록"],
    ...["Kontext-IDs", "Artikel-IDs", "Artikelnummern", "Stichwörter", "Stichworte", "Schlüsselwörter", "Schlagwörter"],
    ...["IDs de contexto", "Palabras clave", "IDs de contexte", "Mots-clés"],
    ...["Palavras-chave", "Parole chiave", "Bağlam kimlikleri", "Anahtar kelimeler"],
  ],
  contextId: [
    ...["Context ID", "context", "keyword", "article id", "article number"],
    ...["컨텍스트", "콘텍스트", "컨텍스트 ID", "콘텍스트 ID", "키워드", "기사 ID", "기사 번호"],
    ...["Kontext-ID", "Kontext", "Artikel-ID", "Artikelnummer", "Artikel-Nr.", "Artikel-Nr", "Art.-Nr."],
    ...["Stichwort", "Schlüsselwort", "Schlagwort"],
    ...["ID de contexto", "Contexto", "Palabra clave", "ID de contexte", "Contexte", "Mot-clé"],
    ...["Palavra-chave", "ID di contesto", "Contesto", "Parola chiave", "Bağlam kimliği", "Anahtar kelime"],
    ...["コンテキスト", "コンテキストID", "キーワード", "記事ID"],
  ],
  op: [
    "Context Action",
    "operation",
    "컨텍스트 작업",
    "콘텍스트 작업",
    "Kontext-Aktion",
    "Acción de contexto",
    "Action de contexte",
  ],
  type: ["Is Group", "그룹 여부", "Ist Gruppe", "Es grupo", "Est un groupe"],
  exposeChildren: [
    ...["Expose Sub-options", "하위 옵션 노출", "Unteroptionen anzeigen"],
    ...["Mostrar subopciones", "Afficher les sous-options"],
  ],
  targeting: ["Targeting", "targeting id", "targeting name", "타게팅", "타겟팅", "ターゲティング"],
};

/** Returns the heading of a column in written sheets; if it has none, the name of the column. */
export function headingOf(column: string): string {
  return HEADINGS[column]?.[0] ?? column;
}

/** Returns the plain form of a heading such as "Context ID 2" without the number. */
export function withoutNumber(plain: string): string {
  return plain.replace(/(?<![#.(])[#.(]*\d{1,2}\)?$/, "");
}

/** Matches a formula that this program has made inert: in a text file, it wrote an apostrophe before the formula. */
export const INERT_FORMULA = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Longer texts are no headings. To normalize them would take seconds for each megabyte. */
const LONGEST_HEADING = 1000;

/**
 * Returns the form of a heading in which headings are compared: in lower case, with composed letters, and without
 * spaces, invisible characters, the signs `_-*:?¿` and the apostrophe before a formula. Returns a text that is too long
 * for a heading as it is.
 */
export function plainHeading(given: string): string {
  if (given.length > LONGEST_HEADING) return given;
  const heading = INERT_FORMULA.test(given) ? given.slice(1) : given;
  if (COMMON.test(heading)) return heading.toLowerCase().replace(/[ _\-*:?]/g, "");
  return heading
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s_\-*:?¿\p{Cf}\p{Cc}]/gu, "");
}

export function hasHeading(cells: readonly string[], heading: string): boolean {
  return cells.some((cell) => plainHeading(cell) === plainHeading(heading));
}

/** Matches a text of characters that normalization does not change. Such texts are much faster without it. */
const COMMON = /^[ -~가-힣]*$/;

export interface ValidColumns {
  readonly columns: readonly string[];
  /** Groups of columns. A file needs at least one column of each group. */
  readonly required: readonly (readonly string[])[];
  /** If set, unknown columns are errors, because their data would be lost. Names and totals are read as they are. */
  readonly isStrict?: true;
  /** Returns whether a column has numbers, which are read from a workbook as they are stored. */
  readonly isNumeric?: (column: string) => boolean;
  readonly spelt?: (name: string) => string | undefined;
  readonly nearest?: (name: string, columns: readonly string[]) => string | undefined;
}

/** The heading of each column in the file. If a heading is empty, the key is a column or heading to ignore. */
export type ColumnsArgument = Readonly<Record<string, string>>;

export interface Header {
  /** Returns the index of a column; -1 if the file does not have it. */
  readonly at: (column: string) => number;
  readonly names: readonly string[];
  /** The indexes of the columns of Context IDs. A sheet may have several numbered ones, such as "Context ID 2". */
  readonly contextsAt: readonly number[];
  readonly ignored: readonly string[];
  /** The headings of columns that the caller wants to be ignored. `ignored` contains them, too. */
  readonly omitted: readonly string[];
  readonly omitsContexts: boolean;
  /** Columns and headings that the caller wants to be ignored, but that the file does not have. */
  readonly absent: readonly string[];
  /** The columns that the caller mapped to a heading that the header does not have, each with this heading. */
  readonly unfound: readonly (readonly [column: string, heading: string])[];
}
